"""Resolves a plan: finds encoders, loads tasks, and checks layers and settings. All problems are reported together."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from closerlook.encoders.pooling import choose_pool
from closerlook.encoders.source import EncoderInfo, Source, resolve
from closerlook.encoders.stated import stated_info
from closerlook.errors import InputError
from closerlook.representations.extract import choose_layers
from closerlook.representations.requested import encoder_info
from closerlook.representations.store import Store
from closerlook.study.cells import ResolvedPlan, Variant, layers_of, tuning_dtype
from closerlook.study.entries import LayeredPart
from closerlook.study.methods import read_method, variant_name
from closerlook.study.plan import Plan, PlanError, make_plan, read_plan
from closerlook.study.problems import Problems
from closerlook.study.resolving_runs import existing_runs
from closerlook.tasks import load_task
from closerlook.tasks.splitting import with_test_split
from closerlook.tasks.task import Task, split_name
from closerlook.tuning.finetune import check_trainable
from closerlook.tuning.settings import TuningSettings
from closerlook.tuning.steps import planned_steps

log = logging.getLogger("closerlook.tasks")


def resolve_source(plan: Plan | dict[str, Any] | str | Path, store: str | Path, **changes: Any) -> ResolvedPlan:
    """Resolve a plan, its entries, a YAML file or a preset; nothing is written. changes: entries to replace."""
    try:
        if isinstance(plan, Plan):
            return resolve_plan(plan, store)
        if isinstance(plan, dict):
            return resolve_plan(make_plan(plan, **changes), store)
        return resolve_plan(read_plan(plan, **changes), store, f"plan {plan}")
    except PlanError as error:
        if error.rest is None:
            raise
        resolve_plan(error.rest, store, error.source, error.problems)
        raise


def resolve_plan(plan: Plan, store: str | Path, source: str = "the plan", known: Sequence[str] = ()) -> ResolvedPlan:
    """The plan with its encoders, tasks and settings; one PlanError lists everything that cannot be used.

    A plan is first checked with what the files of its encoders state, which needs no torch. Models are loaded only if
    no problem was found, and only if the store has no facts about them. known: problems that were found before.
    """
    problems = Problems(known)
    opened_store = Store(store)
    sources = problems.catch_each(plan.encoders, partial(_source, plan=plan))
    tasks = problems.catch_each(plan.tasks, partial(_task, plan=plan))
    stated = problems.catch_each(sources, lambda name: _stated(sources[name], opened_store, plan))
    _check(plan, {name: (sources[name], info) for name, info in stated.items() if info is not None}, tasks, problems)
    _refuse_same([task.content_hash for task in tasks.values()], tasks, "task", problems)
    _refuse_same([source.fingerprint for source in sources.values()], sources, "encoder", problems)
    problems.stop(source)
    encoders = problems.catch_each(sources, lambda name: _with_info(sources[name], opened_store, plan))
    settings = _check(plan, encoders, tasks, problems)
    runs = existing_runs(plan, opened_store, problems)
    for run, task in product(runs.values(), tasks.values()):
        problems.catch(partial(_check_layers, plan, run.base.source, run.info))
        problems.catch(partial(choose_pool, plan.pool, task.unit, run.info))
    problems.stop(source)
    names = {name: name for name in encoders} | {name: run.base.name for name, run in runs.items()}
    variants = _variants(plan, encoders)
    starts = [variant.base for variant in variants.values() if variant.method.is_random]
    randoms = {
        f"random:{name}": _random(encoder, plan, opened_store)
        for name, encoder in names.items()
        if name in starts or _wants_random(encoder, plan)
    }
    root = str(opened_store.root)
    return ResolvedPlan(plan, encoders, randoms, tasks, settings, root, os.getcwd(), runs=runs, variants=variants)


def _variants(plan: Plan, encoders: Iterable[str]) -> dict[str, Variant]:
    """Every encoder with every method by which the plan fine-tunes it, by the name of the two."""
    if plan.tuning is None:
        return {}
    methods = [read_method(entry) for entry in plan.tuning.methods]
    return {
        variant_name(encoder, method): Variant(f"random:{encoder}" if method.is_random else encoder, encoder, method)
        for encoder, method in product(encoders, methods)
    }


def _refuse_same(contents: Sequence[str], names: Iterable[str], kind: str, problems: Problems) -> None:
    """Report names with the same content."""
    if len(set(contents)) < len(contents):
        problems.lines.append(f"{_same(contents, names)} are the same {kind}; expected each once")


def _same(contents: Sequence[str], names: Iterable[str]) -> str:
    """The names whose contents are equal, as 'a and b'."""
    return " and ".join(name for name, content in zip(names, contents, strict=True) if contents.count(content) > 1)


def _wants_random(name: str, plan: Plan) -> bool:
    """Whether an encoder is compared with random weights; False if the plan lists these as an encoder."""
    wanted = "nulls" in plan.measures and plan.nulls.random_encoder
    return wanted and not name.startswith("random:") and f"random:{name}" not in plan.encoders


def _random(name: str, plan: Plan, store: Store) -> tuple[Source, EncoderInfo]:
    return _with_info(_source(f"random:{name}", plan), store, plan)


def _source(name: str, plan: Plan) -> Source:
    """The files of an encoder, under the name that the plan gives it."""
    source = resolve(name)
    prefix = "random:" if name.startswith("random:") else ""
    given = plan.encoder_names.get(name.removeprefix(prefix))
    return source if given is None else replace(source, name=prefix + given)


def _stated(source: Source, store: Store, plan: Plan) -> EncoderInfo | None:
    """The facts about an encoder, if the store has them or its files state them; loads no model."""
    return encoder_info(source, store, device=plan.device, load=False) or stated_info(source)


def _with_info(source: Source, store: Store, plan: Plan) -> tuple[Source, EncoderInfo]:
    return source, encoder_info(source, store, device=plan.device)


def _check_layers(plan: Plan, source: Source, info: EncoderInfo) -> None:
    """Raise InputError if the plan requests layers that the encoder does not have, or that are not measured."""
    parts = [part for _, part in plan if isinstance(part, LayeredPart)]
    for layers in (plan.layers, plan.snapshot_layers, *(part.layers for part in parts)):
        choose_layers(layers, info.layers, source.name)
    measured = layers_of(plan, source, info, ends=True)
    requests = {
        "the classifier requests": plan.classifier.layers if "classifier" in plan.measures else None,
        "cross_layers has": plan.cross_layers,
    }
    for who, chosen in requests.items():
        unseen = set() if chosen is None else set(choose_layers(chosen, info.layers, source.name)) - set(measured)
        if unseen:
            raise InputError(f"{who} layer {min(unseen)} of {source.name}; layers and snapshot_layers have {measured}")


def _task(name: str, plan: Plan) -> Task:
    """The task, with all splits of the plan; a test split is made if only that is missing."""
    task = load_task(name, plan.data)
    splits = [split.name for split in task.splits]
    missing = [split for split in plan.splits if split_name(split) not in splits]
    if missing == ["test"] and "train" in splits:
        task = with_test_split(task, plan.test_share)
        log.warning("%s", task.notes[-1])
    elif missing:
        raise InputError(
            f"task {task.name} has {', '.join(splits)} but no {', '.join(missing)}; name a column with split_column=, "
            f"give a folder with a file for each split, or write splits: [{', '.join(splits)}] in the plan"
        )
    return task


def _check(
    plan: Plan, encoders: dict[str, tuple[Source, EncoderInfo]], tasks: dict[str, Task], problems: Problems
) -> dict[tuple[str, str], TuningSettings]:
    """Check the layers and the pooling of each encoder; the resolved settings of the fine-tuning of each variant.

    The settings are those for the first seed, by the names of variant and task.
    """
    usable = []
    for encoder, (source, info) in encoders.items():
        known = len(problems.lines)
        problems.catch(partial(_check_layers, plan, source, info))
        if len(problems.lines) == known:
            usable.append(encoder)
            for task in tasks.values():
                problems.catch(partial(choose_pool, plan.pool, task.unit, info))
    all_settings: dict[tuple[str, str], TuningSettings] = {}
    for encoder, variant in _variants(plan, usable).items():
        for name, task in tasks.items():
            probes = {other: tasks[other].content_hash for other in plan.probed(name) if other in tasks}
            settings = problems.catch(partial(_settings, plan, variant, encoders[variant.base], (name, task), probes))
            if settings is not None:
                all_settings[encoder, name] = settings
    return all_settings


def _settings(
    plan: Plan, variant: Variant, encoder: tuple[Source, EncoderInfo], named: tuple[str, Task], probes: dict[str, str]
) -> TuningSettings:
    """The resolved settings of the fine-tuning of one encoder on one task; checks that the task can be learnt.

    named: the task, after its name in the plan. probes: the tasks on which the encoder is measured, with their hashes.
    """
    assert plan.tuning is not None  # noqa: S101 - for mypy
    (name, task), (source, info) = named, encoder
    check_trainable(task)
    shared = plan.tuning.model_dump(exclude={"methods"})
    snapshot_layers = plan.snapshot_layers_for(variant.base, name)
    settings = TuningSettings(
        **(shared | dict(variant.method.settings)),
        seed=plan.seeds_for(variant.base, name)[0],
        snapshots=plan.snapshots,
        pool=plan.pool,
        template=plan.template,
        dtype=tuning_dtype(plan),
        probe=probes,
        splits=plan.splits,
        layers=layers_of(plan, source, info, ends=True, snapshot_layers=snapshot_layers),
        snapshot_layers=layers_of(plan, source, info, ends=False, snapshot_layers=snapshot_layers),
        save_weights=plan.save_weights,
    ).resolve(info, source.name)
    planned_steps(settings, task)  # raises InputError if a snapshot lies beyond the last step
    return settings

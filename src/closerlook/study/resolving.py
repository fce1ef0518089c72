"""Resolves a plan: finds encoders, loads tasks, and checks layers and settings. All problems are reported together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from closerlook.encoders.source import EncoderInfo, Source, resolve
from closerlook.errors import CloserLookError, InputError
from closerlook.representations.extract import choose_layers, choose_pool, encoder_info
from closerlook.representations.store import Store
from closerlook.study.cells import ResolvedPlan, ResolvedRun, Variant, layers_of
from closerlook.study.entries import LayeredPart
from closerlook.study.methods import Method, read_method, variant_name
from closerlook.study.plan import ExistingRun, Plan, PlanError, make_plan, read_plan
from closerlook.study.runs import UNKNOWN
from closerlook.tasks import load_task
from closerlook.tasks.task import Task
from closerlook.tuning.existing import read_run
from closerlook.tuning.finetune import check_trainable
from closerlook.tuning.settings import TuningSettings
from closerlook.tuning.steps import planned_steps

T = TypeVar("T")


class _Problems:
    """Collects error messages, so that all problems of a plan are reported together."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)

    def catch(self, work: Callable[[], T]) -> T | None:
        """The result of the work; None if it raises, and the message is added to the problems."""
        try:
            return work()
        except CloserLookError as error:
            if str(error) not in self.lines:
                self.lines.append(str(error))
            return None


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

    known: problems that were found before.
    """
    problems = _Problems(known)
    opened_store = Store(store)
    encoders: dict[str, tuple[Source, EncoderInfo]] = {}
    for name in plan.encoders:
        encoder = problems.catch(partial(_encoder, name, plan, opened_store))
        if encoder is not None:
            encoders[name] = encoder
    tasks: dict[str, Task] = {}
    for name in plan.tasks:
        task = problems.catch(partial(_task, name, plan))
        if task is not None:
            tasks[name] = task
    runs = _existing_runs(plan, opened_store, problems)
    variants = _variants(plan, encoders)
    random_starts = {
        variant.encoder: _random(variant.base, plan, opened_store)
        for variant in variants.values()
        if variant.method.is_random
    }
    settings = _all_settings(plan, variants, encoders | random_starts, tasks, problems)
    for run, task in product(runs.values(), tasks.values()):
        problems.catch(partial(choose_pool, plan.pool, task.unit, has_cls=run.info.has_cls))
    hashes = [task.content_hash for task in tasks.values()]
    if len(set(hashes)) < len(hashes):
        problems.lines.append(f"{_same(hashes, tasks)} are the same task; expected each once")
    weights = [source.fingerprint for source, _ in encoders.values()]
    if len(set(weights)) < len(weights):
        problems.lines.append(f"{_same(weights, encoders)} are the same encoder; expected each once")
    if problems.lines:
        raise PlanError(source, problems.lines)
    names = {name: name for name in encoders} | {name: run.base.name for name, run in runs.items()}
    randoms = {
        f"random:{name}": _random(encoder, plan, opened_store)
        for name, encoder in names.items()
        if _wants_random(encoder, plan)
    }
    randoms |= random_starts
    here = os.getcwd()
    return ResolvedPlan(plan, encoders, randoms, tasks, settings, str(opened_store.root), here, runs, variants)


def _variants(plan: Plan, encoders: Iterable[str]) -> dict[str, Variant]:
    """Every encoder with every method by which the plan fine-tunes it, by the name of the two."""
    if plan.tuning is None:
        return {}
    methods = [read_method(entry) for entry in plan.tuning.methods]
    return {
        variant_name(encoder, method): Variant(f"random:{encoder}" if method.is_random else encoder, encoder, method)
        for encoder, method in product(encoders, methods)
    }


def _existing_runs(plan: Plan, store: Store, problems: _Problems) -> dict[str, ResolvedRun]:
    """The existing trainings of a plan, by name."""
    runs: dict[str, ResolvedRun] = {}
    for entry in plan.runs:
        run = problems.catch(partial(_existing_run, entry, plan, store))
        name = _run_name(entry)
        if name in runs or name in plan.encoders:
            problems.lines.append(f"two encoders or runs are called {name!r}; give this run another name")
        if run is not None:
            runs[name] = run
    return runs


def _run_name(entry: ExistingRun) -> str:
    """The name of a run in tables: as given, or that of its folder."""
    if entry.name is not None:
        return entry.name
    first = entry.checkpoints if isinstance(entry.checkpoints, str) else entry.checkpoints[-1]
    return Path(first.partition("*")[0].partition(",")[0]).expanduser().name or first


def _existing_run(entry: ExistingRun, plan: Plan, store: Store) -> ResolvedRun:
    """One existing training, with the files of its checkpoints found and the layers of the plan checked."""
    run = read_run(entry.checkpoints, entry.base)
    base, info = _measurable(run.base.source, plan, store)
    last = encoder_info(run.checkpoints[-1].source, store, device=plan.device)
    if (last.layers, last.width, last.has_cls) != (info.layers, info.width, info.has_cls):
        raise InputError(
            f"run {_run_name(entry)}: its checkpoints have {last.layers} layers × {last.width}, base {base.name} has "
            f"{info.layers} × {info.width}; give the encoder that the training started from as base"
        )
    known = run.tuned_on if run.tuned_on in plan.tasks else None
    return ResolvedRun(
        run.base,
        run.checkpoints,
        entry.tuned_on or known or UNKNOWN,
        entry.method or run.method,
        run.seed or 0 if entry.seed is None else entry.seed,
        info,
        run.skipped,
    )


def _same(contents: Sequence[str], names: Iterable[str]) -> str:
    """The names whose contents are equal, as 'a and b'."""
    return " and ".join(name for name, content in zip(names, contents, strict=True) if contents.count(content) > 1)


def _wants_random(name: str, plan: Plan) -> bool:
    """Whether an encoder is compared with random weights; False if the plan lists these as an encoder."""
    wanted = "nulls" in plan.measures and plan.nulls.random_encoder
    return wanted and not name.startswith("random:") and f"random:{name}" not in plan.encoders


def _random(name: str, plan: Plan, store: Store) -> tuple[Source, EncoderInfo]:
    source = resolve(f"random:{name}")
    return source, encoder_info(source, store, device=plan.device)


def _encoder(name: str, plan: Plan, store: Store) -> tuple[Source, EncoderInfo]:
    return _measurable(resolve(name), plan, store)


def _measurable(source: Source, plan: Plan, store: Store) -> tuple[Source, EncoderInfo]:
    """The encoder and its facts; checks that it has the layers that the plan names."""
    info = encoder_info(source, store, device=plan.device)
    parts = [part for _, part in plan if isinstance(part, LayeredPart)]
    for layers in (plan.layers, plan.snapshot_layers, *(part.layers for part in parts)):
        choose_layers(layers, info.layers, source.name)
    measured = layers_of(plan, source, info, ends=True)
    unseen = set(choose_layers(plan.classifier.layers, info.layers, source.name)) - set(measured)
    if unseen and "classifier" in plan.measures:
        raise InputError(
            f"the classifier requests layer {min(unseen)} of {source.name}; layers and snapshot_layers have {measured}"
        )
    return source, info


def _task(name: str, plan: Plan) -> Task:
    task = load_task(name, plan.data)
    splits = [split.name for split in task.splits]
    missing = [split for split in plan.splits if split not in splits]
    if missing:
        raise InputError(
            f"task {task.name} has {', '.join(splits)} but no {', '.join(missing)}; name a column with split_column=, "
            f"give a folder with a file for each split, or write splits: [{', '.join(splits)}] in the plan"
        )
    return task


def _all_settings(
    plan: Plan,
    variants: dict[str, Variant],
    encoders: dict[str, tuple[Source, EncoderInfo]],
    tasks: dict[str, Task],
    problems: _Problems,
) -> dict[tuple[str, str], TuningSettings]:
    """The resolved settings of the fine-tuning of each variant of an encoder on each task, for the first seed."""
    all_settings: dict[tuple[str, str], TuningSettings] = {}
    for (_, info), task in product(encoders.values(), tasks.values()):
        problems.catch(partial(choose_pool, plan.pool, task.unit, has_cls=info.has_cls))
    for encoder, variant in variants.items():
        source, info = encoders[variant.encoder]
        for name, task in tasks.items():
            probes = {other: tasks[other].content_hash for other in plan.probed(name) if other in tasks}
            settings = problems.catch(partial(_settings, plan, variant.method, (source, info), task, probes))
            if settings is not None:
                all_settings[encoder, name] = settings
    return all_settings


def _settings(
    plan: Plan, method: Method, encoder: tuple[Source, EncoderInfo], task: Task, probes: dict[str, str]
) -> TuningSettings:
    """The resolved settings of the fine-tuning of one encoder on one task; checks that the task can be learnt."""
    assert plan.tuning is not None  # noqa: S101 - for mypy
    check_trainable(task)
    source, info = encoder
    shared = plan.tuning.model_dump(exclude={"methods"})
    settings = TuningSettings(
        **(shared | dict(method.settings)),
        seed=plan.seeds[0],
        snapshots=plan.snapshots,
        pool=plan.pool,
        probe=probes,
        splits=plan.splits,
        layers=layers_of(plan, source, info, ends=True),
        snapshot_layers=layers_of(plan, source, info, ends=False),
        save_weights=plan.save_weights,
    ).resolve(info, source.name)
    planned_steps(settings, task)  # raises InputError if a snapshot lies beyond the last step
    return settings

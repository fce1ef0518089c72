"""Resolves a plan: finds encoders, loads tasks, and checks layers and settings. All problems are reported together."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from closerlook.encoders.source import EncoderInfo, Source, resolve
from closerlook.encoders.stated import stated_info
from closerlook.errors import CloserLookError, InputError
from closerlook.representations.extract import choose_layers, choose_pool, encoder_info
from closerlook.representations.store import Store
from closerlook.study.cells import ResolvedPlan, layers_of
from closerlook.study.entries import LayeredPart
from closerlook.study.plan import Plan, PlanError, make_plan, read_plan
from closerlook.tasks import load_task
from closerlook.tasks.splitting import with_test_split
from closerlook.tasks.task import Task, split_name
from closerlook.tuning.finetune import check_trainable
from closerlook.tuning.settings import TuningSettings
from closerlook.tuning.steps import planned_steps

T = TypeVar("T")

log = logging.getLogger("closerlook.tasks")


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

    def catch_each(self, names: Iterable[str], work: Callable[[str], T]) -> dict[str, T]:
        """The result of the work for each name for which it raises nothing."""
        results = {name: self.catch(partial(work, name)) for name in names}
        return {name: result for name, result in results.items() if result is not None}

    def stop(self, source: str) -> None:
        """Raise one PlanError with all problems, if there are any. source: the name of the plan."""
        if self.lines:
            raise PlanError(source, self.lines)


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
    problems = _Problems(known)
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
    problems.stop(source)
    randoms = {f"random:{name}": _random(name, plan, opened_store) for name in encoders if _wants_random(name, plan)}
    return ResolvedPlan(plan, encoders, randoms, tasks, settings, str(opened_store.root), os.getcwd())


def _refuse_same(contents: Sequence[str], names: Iterable[str], kind: str, problems: _Problems) -> None:
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
    """Raise InputError if the plan requests layers that the encoder does not have."""
    parts = [part for _, part in plan if isinstance(part, LayeredPart)]
    for layers in (plan.layers, plan.snapshot_layers, *(part.layers for part in parts)):
        choose_layers(layers, info.layers, source.name)
    measured = layers_of(plan, source, info, ends=True)
    unseen = set(choose_layers(plan.classifier.layers, info.layers, source.name)) - set(measured)
    if unseen and "classifier" in plan.measures:
        raise InputError(
            f"the classifier requests layer {min(unseen)} of {source.name}; layers and snapshot_layers have {measured}"
        )


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
    plan: Plan, encoders: dict[str, tuple[Source, EncoderInfo]], tasks: dict[str, Task], problems: _Problems
) -> dict[tuple[str, str], TuningSettings]:
    """Check the layers and the pooling of each encoder; the resolved settings of its fine-tuning on each task.

    The settings are those for the first seed.
    """
    all_settings: dict[tuple[str, str], TuningSettings] = {}
    for encoder, (source, info) in encoders.items():
        known = len(problems.lines)
        problems.catch(partial(_check_layers, plan, source, info))
        if len(problems.lines) > known:
            continue
        for name, task in tasks.items():
            problems.catch(partial(choose_pool, plan.pool, task.unit, has_cls=info.has_cls))
            if plan.tuning is None:
                continue
            probes = {other: tasks[other].content_hash for other in plan.probed(name) if other in tasks}
            settings = problems.catch(partial(_settings, plan, source, info, task, probes))
            if settings is not None:
                all_settings[encoder, name] = settings
    return all_settings


def _settings(plan: Plan, source: Source, info: EncoderInfo, task: Task, probes: dict[str, str]) -> TuningSettings:
    """The resolved settings of the fine-tuning of one encoder on one task; checks that the task can be learnt."""
    assert plan.tuning is not None  # noqa: S101 - for mypy
    check_trainable(task)
    settings = TuningSettings(
        **plan.tuning.model_dump(),
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

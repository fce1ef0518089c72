"""Resolves a plan: finds encoders, loads tasks, and checks layers and settings. All problems are reported together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from closerlook.encoders.pooling import choose_pool
from closerlook.encoders.source import EncoderInfo, Source, resolve
from closerlook.errors import CloserLookError, InputError
from closerlook.representations.extract import choose_layers
from closerlook.representations.requested import encoder_info
from closerlook.representations.store import Store
from closerlook.study.cells import ResolvedPlan, layers_of, tuning_dtype
from closerlook.study.entries import LayeredPart
from closerlook.study.plan import Plan, PlanError, make_plan, read_plan
from closerlook.tasks import load_task
from closerlook.tasks.task import Task
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
    settings = _all_settings(plan, encoders, tasks, problems)
    hashes = [task.content_hash for task in tasks.values()]
    if len(set(hashes)) < len(hashes):
        problems.lines.append(f"{_same(hashes, tasks)} are the same task; expected each once")
    weights = [source.fingerprint for source, _ in encoders.values()]
    if len(set(weights)) < len(weights):
        problems.lines.append(f"{_same(weights, encoders)} are the same encoder; expected each once")
    if problems.lines:
        raise PlanError(source, problems.lines)
    randoms = {f"random:{name}": _random(name, plan, opened_store) for name in encoders if _wants_random(name, plan)}
    return ResolvedPlan(plan, encoders, randoms, tasks, settings, str(opened_store.root), os.getcwd())


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
    source = resolve(name)
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
    plan: Plan, encoders: dict[str, tuple[Source, EncoderInfo]], tasks: dict[str, Task], problems: _Problems
) -> dict[tuple[str, str], TuningSettings]:
    """The resolved settings of the fine-tuning of each encoder on each task, for the first seed."""
    all_settings: dict[tuple[str, str], TuningSettings] = {}
    for encoder, (source, info) in encoders.items():
        for name, task in tasks.items():
            problems.catch(partial(choose_pool, plan.pool, task.unit, info))
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
        template=plan.template,
        dtype=tuning_dtype(plan),
        probe=probes,
        splits=plan.splits,
        layers=layers_of(plan, source, info, ends=True),
        snapshot_layers=layers_of(plan, source, info, ends=False),
        save_weights=plan.save_weights,
    ).resolve(info, source.name)
    planned_steps(settings, task)  # raises InputError if a snapshot lies beyond the last step
    return settings

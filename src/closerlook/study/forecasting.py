"""The cells that a study will have, as far as they can be foreseen before its fine-tunings have run."""

from __future__ import annotations

import math
from dataclasses import replace

from closerlook.study.cells import ResolvedPlan
from closerlook.study.graph import Graph, ResultLookup, add_run, expand
from closerlook.study.runs import Run
from closerlook.tasks.task import Task
from closerlook.tuning.schedule import snapshot_steps
from closerlook.tuning.settings import TuningSettings
from closerlook.tuning.tuned import Snapshot, TuningResult

DEV = ("dev", "validation", "valid")
"""Splits that early stopping looks at; without one it holds out a tenth of train, see `tuning.training`."""


def foresee(study: ResolvedPlan, finished: ResultLookup) -> Graph:
    """The whole graph: each fine-tuning that is not finished is taken to end after all its epochs."""
    graph = expand(study, finished)
    for key, run in list(graph.waiting.items()):
        add_run(study, graph, key, run, _imagined(study, key, run))
    return graph


def foresee_run(study: ResolvedPlan, key: str, run: Run) -> Graph:
    """What one fine-tuning will bring. key: of its cell."""
    graph = Graph()
    add_run(study, graph, key, run, _imagined(study, key, run))
    return graph


def planned_steps(settings: TuningSettings, task: Task) -> list[int]:
    """The steps at which a fine-tuning on that task will be looked at, unless it stops early."""
    texts = len(set(task.split("train").sentence.tolist()))
    if settings.early_stopping is not None and not any(split.name in DEV for split in task.splits):
        texts -= max(1, round(0.1 * texts))
    batches = math.ceil(texts / settings.batch_size)
    accumulated = settings.trainer_arguments.get("gradient_accumulation_steps", 1)
    per_epoch = max(1, math.ceil(batches / (accumulated if isinstance(accumulated, int) and accumulated > 0 else 1)))
    return snapshot_steps(settings.snapshots, math.ceil(settings.epochs * per_epoch), per_epoch)


def _imagined(study: ResolvedPlan, key: str, run: Run) -> TuningResult:
    """What a fine-tuning will leave, with names in the place of weights that do not exist yet."""
    encoder, name, seed = run.encoder, run.tuned_on, run.seed
    (source, info), task = study.encoders[encoder], study.tasks[name]
    settings = replace(study.settings[encoder, name], seed=seed)
    steps = planned_steps(settings, task)
    weights = [source.fingerprint if step == 0 else f"{key}:{step}" for step in steps]
    return TuningResult(
        encoder=source.name,
        base=source.fingerprint,
        info=info,
        parameters=info.parameters,
        task=task.name,
        task_hash=task.content_hash,
        settings=settings,
        snapshots=tuple(Snapshot(step, 0.0, name, {}, {}) for step, name in zip(steps, weights, strict=True)),
        steps=steps[-1],
        seconds=0.0,
        device="",
        versions={},
    )

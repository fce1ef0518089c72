"""The cells that a study is expected to have, before its fine-tunings have run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from closerlook.study.cells import ResolvedPlan
from closerlook.study.graph import ResultLookup, add_run, expand
from closerlook.study.runs import Run
from closerlook.study.states import Graph
from closerlook.tuning.steps import planned_steps
from closerlook.tuning.tuned import Snapshot, TuningResult

LastStep = Callable[[ResolvedPlan, Run], int | None]
"""The step at which a fine-tuning is expected to stop; None: after all its epochs."""


def all_epochs(study: ResolvedPlan, run: Run) -> None:
    """No fine-tuning is expected to stop early."""


def foresee(study: ResolvedPlan, finished: ResultLookup, last_step: LastStep = all_epochs) -> Graph:
    """The expected graph of the whole study, with the snapshots of fine-tunings that have not finished."""
    graph = expand(study, finished)
    for key, run in list(graph.waiting.items()):
        add_run(study, graph, key, run, _expected_result(study, key, run, last_step(study, run)))
    return graph


def foresee_run(study: ResolvedPlan, key: str, run: Run, last_step: LastStep = all_epochs) -> Graph:
    """The expected cells for the snapshots of one fine-tuning. key: the key of the cell that fine-tunes."""
    graph = Graph()
    add_run(study, graph, key, run, _expected_result(study, key, run, last_step(study, run)))
    return graph


def _expected_result(study: ResolvedPlan, key: str, run: Run, last_step: int | None = None) -> TuningResult:
    """The expected result of a fine-tuning run, with placeholders for fingerprints that are not known yet."""
    encoder, name, seed = run.encoder, run.tuned_on, run.seed
    (source, info), task = study.source_and_info(encoder), study.tasks[name]
    settings = replace(study.settings[encoder, name], seed=seed)
    steps = planned_steps(settings, task)
    if last_step is not None:
        steps = [*(step for step in steps if step < last_step), last_step]
    fingerprints = [source.fingerprint if step == 0 else f"{key}:{step}" for step in steps]
    snapshots = tuple(Snapshot(step, 0.0, name, {}, {}) for step, name in zip(steps, fingerprints, strict=True))
    return TuningResult(
        encoder=source.name,
        base=source.fingerprint,
        info=info,
        parameters=info.parameters,
        task=task.name,
        task_hash=task.content_hash,
        settings=settings,
        snapshots=snapshots,
        steps=steps[-1],
        seconds=0.0,
        device="",
        versions={},
    )

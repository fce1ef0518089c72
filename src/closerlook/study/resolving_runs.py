"""Resolves the existing trainings of a plan: finds their checkpoints, and checks that they fit their base."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from closerlook.errors import InputError
from closerlook.representations.requested import encoder_info
from closerlook.representations.store import Store
from closerlook.study.cells import ResolvedRun
from closerlook.study.plan import ExistingRun, Plan
from closerlook.study.problems import Problems
from closerlook.study.runs import UNKNOWN
from closerlook.tuning.existing import read_run


def existing_runs(plan: Plan, store: Store, problems: Problems) -> dict[str, ResolvedRun]:
    """The existing trainings of a plan, by name."""
    runs: dict[str, ResolvedRun] = {}
    for entry in plan.runs:
        name = _run_name(entry)
        if name in runs or name in plan.encoders:
            problems.lines.append(f"two encoders or runs are called {name!r}; give this run another name")
        run = problems.catch(partial(_existing_run, entry, plan, store))
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
    """One existing training, with the files of its checkpoints found."""
    run = read_run(entry.checkpoints, entry.base)
    base = run.base.source
    info = encoder_info(base, store, device=plan.device)
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

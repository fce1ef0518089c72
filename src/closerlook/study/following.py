"""Follows trainings that are going on: a study of their checkpoints is run again whenever new ones are complete."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from closerlook.errors import CloserLookError, InputError
from closerlook.study.cells import ResolvedPlan, ResolvedRun
from closerlook.tuning.growing import Checkpoints, Files, ended, has_checkpoint, list_files

INTERVAL = 5.0
"""Seconds between two looks at the folders. A checkpoint is read once its files did not change for this time."""


def follow(
    runs: Sequence[Checkpoints],
    refresh: Callable[[], None],
    *,
    timeout: float,
    interval: float | None = None,
    note: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Call `refresh` whenever the runs have new complete checkpoints; return why it ended, as text.

    It ends when the trainings of all runs are over (see `growing.ended`), when no file of a checkpoint changed for
    `timeout` seconds, or by Ctrl-C while it waits. note: gets messages for the user. interval: by default INTERVAL.
    """
    wait = INTERVAL if interval is None else interval
    done: list[Files] | None = None
    before: list[Files] | None = None
    changed = clock()
    while True:
        reasons = [ended(run) for run in runs]  # before the files are listed: what comes later is not missed
        now = [list_files(run) for run in runs]
        missing = [run for run in runs if not has_checkpoint(run)]
        if now == before and now != done and not missing:
            if _refreshed(runs, now, refresh, note):
                done = now
            changed = clock()
            continue
        if now == done and all(reasons):
            return f"the training is over: {'; '.join(dict.fromkeys(filter(None, reasons)))}"
        if now != before:
            before, changed = now, clock()
        elif clock() - changed >= timeout:
            if done is None:
                raise InputError(f"{_shown(missing)}: no checkpoint within {timeout:g} s; expected one of a training")
            return f"no new checkpoint for {timeout:g} s"
        try:
            sleep(wait)
        except KeyboardInterrupt:
            if done is None:
                raise
            return "stopped by Ctrl-C"


def _refreshed(
    runs: Sequence[Checkpoints], now: list[Files], refresh: Callable[[], None], note: Callable[[str], None]
) -> bool:
    """Whether the refresh succeeded; it may fail if files change while they are read, and then is done again."""
    try:
        refresh()
    except (CloserLookError, OSError) as error:
        if [list_files(run) for run in runs] == now:
            raise
        note(f"checkpoints changed while they were read, and are read again ({error})")
        return False
    return True


def _shown(runs: Sequence[Checkpoints]) -> str:
    return "; ".join(run if isinstance(run, str) else ", ".join(run) for run in runs)


def keep_measured(resolved: ResolvedPlan, earlier: ResolvedPlan | None) -> ResolvedPlan:
    """The plan with the checkpoints that an earlier round measured and that the Trainer has deleted since.

    A Trainer with `save_total_limit` keeps only the last checkpoints; the results of the others are in the study.
    """
    if earlier is None:
        return resolved
    runs = {name: _with_earlier(run, earlier.runs.get(name)) for name, run in resolved.runs.items()}
    return replace(resolved, runs=runs)


def _with_earlier(run: ResolvedRun, earlier: ResolvedRun | None) -> ResolvedRun:
    """The run with the checkpoints of an earlier round that come before its last one and are missing."""
    if earlier is None or earlier.base.source.fingerprint != run.base.source.fingerprint:
        return run
    by_step = {checkpoint.step: checkpoint for checkpoint in (*earlier.checkpoints, *run.checkpoints)}
    last = run.checkpoints[-1].step
    return replace(run, checkpoints=tuple(by_step[step] for step in sorted(by_step) if step <= last))

"""`closerlook study`: a whole plan carried out, resumable, on one machine or a cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from closerlook.cli.options import Data
from closerlook.errors import WorkError

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.study.cells import ResolvedPlan
    from closerlook.study.runner import ProgressCallback, StudyState
    from closerlook.study.study import CompletedStudy

EXAMPLE = "Example: closerlook study plan.yaml --out my-study --workers 4"
QUIET_SECONDS = 10.0
BAR_SECONDS = 0.25
"""Where standard error is a file, progress is a line this often; on a terminal the bar moves so often."""


def study(
    plan: Annotated[
        str, Argument(help="A plan in YAML, or a preset: default (embedded), paper, paper-small (with --encoder).")
    ] = "default",
    out: Annotated[Path, Option(help="Folder for the results; the same folder goes on where it stopped.")] = Path(
        "study"
    ),
    encoder: Annotated[
        list[str] | None, Option("--encoder", "-e", help="In place of the plan's encoders; may be repeated.")
    ] = None,
    task: Annotated[
        list[str] | None, Option("--task", "-t", help="In place of the plan's tasks, spelt as there; may be repeated.")
    ] = None,
    data: Data = None,
    store: Annotated[Path | None, Option(help="Where vectors are kept. (default: OUT/store)")] = None,
    device: Annotated[str | None, Option(help="auto (CUDA, else MPS, else CPU), cuda, mps, cpu.")] = None,
    engine: Annotated[
        str | None, Option(help="here, processes or dask. (default: processes, one for each core)")
    ] = None,
    workers: Annotated[
        int | None, Option(min=1, help="Cells worked on at a time. (default: one for each core)")
    ] = None,
    scheduler: Annotated[str | None, Option(help="Address of a Dask scheduler, such as tcp://host:8786.")] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Say what would be done and what it may cost; do nothing.")
    ] = False,
    report: Annotated[
        bool, Option("--report/--no-report", help="End with the page of the study and its figures.")
    ] = True,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Fine-tune, extract and measure everything in a plan; what is finished already is not done again."""
    from closerlook.cli.console import note, print_json
    from closerlook.study.engines import choose_engine
    from closerlook.study.results import study_in
    from closerlook.study.study import execute_study, resolve_study

    choose_engine(engine, workers, scheduler)
    changes = {"encoders": encoder, "tasks": task, "data": None if data is None else str(data), "device": device}
    opened = resolve_study(plan, out, store, **changes)
    if dry_run:
        _forecast(opened, out, as_json=as_json)
        return
    asked = opened.plan
    note(f"study {asked.name}: {', '.join(asked.encoders)} × {', '.join(asked.tasks)}, into {out}")
    before = study_in(out)
    if before not in (None, asked.name):
        note(f"the table and page of study {before} there are replaced; its cells stay, and its plan brings them back")
    with watching() as watch:
        done = execute_study(opened, out, engine=engine, workers=workers, scheduler=scheduler, watch=watch)
    page = _report(done.out) if report else None
    if as_json:
        print_json(_as_dict(done) | {"report": page})
    else:
        _print(done)
        if page is not None:
            sys.stdout.write(f"{page}\n")
    if done.state.failed:
        failed, blocked = len(done.state.failed), done.state.blocked
        first = next(iter(done.state.failed.values()))
        raise WorkError(
            f"{failed} of {done.state.total} cells failed, and {blocked} wait for them; the first: {first}; see "
            f"{out / 'failed'}, and run the same command to try them again"
        )


# ---- before ----


def _forecast(opened: ResolvedPlan, out: Path, *, as_json: bool) -> None:
    """What would be done."""
    from closerlook.cli.console import bytes_text, print_json, print_table
    from closerlook.study.engines import cores
    from closerlook.study.study import forecast

    kinds = forecast(opened, out)
    hours = sum(kind.seconds for kind in kinds)
    if as_json:
        print_json({"kinds": [vars(kind) for kind in kinds], "core_seconds": hours, "plan": opened.plan.to_dict()})
        return
    _settings(opened)
    print_table(
        "cells",
        ["kind", "cells", "done", "time on one core", "memory of one", "disk"],
        [
            [kind.kind, kind.cells, kind.done, span(kind.seconds), bytes_text(kind.memory), bytes_text(kind.disk)]
            for kind in kinds
        ],
        ["cells", "done", "time on one core", "memory of one", "disk"],
    )
    print_table(
        "",
        ["in all", "time on one core", f"on the {cores()} cores here", "disk"],
        [
            [
                sum(kind.cells for kind in kinds),
                span(hours),
                span(hours / cores()),
                bytes_text(sum(kind.disk for kind in kinds)),
            ]
        ],
    )


def _settings(opened: ResolvedPlan) -> None:
    """How encoders are tuned, and what is measured."""
    from closerlook.cli.console import print_table

    plan = opened.plan
    print_table(
        "fine-tuning",
        ["encoder", "task", "epochs", "learning rate", "batch", "snapshots", "probed"],
        [
            [e, t, s.epochs, s.learning_rate, s.batch_size, s.snapshots, ", ".join(plan.probed(t))]
            for (e, t), s in opened.settings.items()
        ],
    )
    rest = plan.to_dict()
    hidden = {"name", "encoders", "tasks", "tuning", "snapshots", "cross"}
    print_table("settings", ["entry", "value"], [[key, rest[key]] for key in rest if key not in hidden])


def span(seconds: float) -> str:
    """A time for people: '12 s', '3 min', '2.5 h'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# ---- meanwhile ----


class watching:  # noqa: N801 - a context manager, used like a function
    """A function that shows where a study stands: a bar with what runs now, or a line now and then in a file."""

    def __enter__(self) -> ProgressCallback:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        console = Console(stderr=True)
        self._bar = None
        self._due = time.monotonic() + (0.0 if console.is_terminal else QUIET_SECONDS)
        if console.is_terminal:
            columns = (
                TextColumn("cells"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[told]}"),
            )
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task("cells", total=None, told="")
            self._bar.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _show(self, state: StudyState) -> None:
        now = time.monotonic()
        if now < self._due:  # a study tells of every cell, and looking up memory takes longer than a small one
            return
        if self._bar is not None:
            self._due = now + BAR_SECONDS
            self._bar.update(self._task, completed=len(state.done), total=state.total, told=_told(state))
        else:
            self._due = now + QUIET_SECONDS
            sys.stderr.write(f"{len(state.done):,} of {state.total:,} cells, {_told(state)}\n")


def _told(state: StudyState) -> str:
    from closerlook.cli.console import bytes_text

    running = [state.graph.cells[key].title for key in state.running]
    failed = f"{len(state.failed)} failed · " if state.failed else ""
    more = f" and {len(running) - 1} more" if len(running) > 1 else ""
    now = f" · {running[0]}{more}" if running else ""
    seconds = state.seconds_left
    left = "" if seconds is None else f"about {span(seconds)} left · "
    return f"{failed}{left}{bytes_text(_memory())}{now}"


def _memory() -> int:
    """What this process and its workers hold."""
    import psutil

    here = psutil.Process()
    total = 0
    for process in [here, *here.children(recursive=True)]:
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total


# ---- after ----


def _report(folder: Path) -> str | None:
    """The path of the study's page; where it cannot be made, a line says why, and the results stay what they are."""
    from closerlook.cli.console import note
    from closerlook.report import write_report

    try:
        return str(write_report(folder))
    except Exception as error:  # whatever it is, the study is done
        why = " ".join(str(error).split())
        note(f"the page could not be made ({type(error).__name__}: {why}); closerlook report {folder} tries again")
        return None


def _as_dict(done: CompletedStudy) -> dict[str, object]:
    return {
        "out": str(done.out),
        "table": str(done.table),
        "cells": len(done.state.done),
        "total": done.state.total,
        "computed": done.state.computed,
        "failed": done.state.failed,
        "seconds": done.seconds,
    }


def _print(done: CompletedStudy) -> None:
    from closerlook.cli.console import note, print_table
    from closerlook.study.results import load_results

    table = load_results(done.out)
    if len(table):
        print_table(
            "the last layer, before → after (similarity: of train and test)", COLUMNS, _rows(table), COLUMNS[2:]
        )
    state = done.state
    note(
        f"{len(state.done)} of {state.total} cells are there, {state.computed} of them new; "
        f"{len(table):,} measurements in {done.table} and .csv; {span(done.seconds)}"
    )


COLUMNS = ["encoder", "task", "labels", "clusters", "linear", "mean minimum distance", "accuracy", "similarity"]


def _rows(table: pd.DataFrame) -> list[list[object]]:
    """A line for each encoder and task: the start and, where it was tuned, the end."""
    from closerlook.study.summary import summarise

    return [
        [
            one.encoder,
            one.task,
            one.labels,
            _arrow(one.n_clusters, "{:.0f}"),
            _arrow(tuple("yes" if value == 1 else "no" for value in one.is_separable if value is not None), "{}"),
            _arrow(one.mean_minimum_distance, "{:.3f}"),
            _arrow(one.accuracy, "{:.3f}"),
            _arrow(one.similarity, "{:.2f}"),
        ]
        for one in summarise(table)
    ]


def _arrow(values: Sequence[object], shown: str) -> str:
    return " → ".join(shown.format(value) for value in values if value is not None)

"""`closerlook study`: run a plan, on one machine or a cluster; an interrupted study can be continued."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from closerlook.cli.options import Data, Resume, TestShare
from closerlook.cli.study_progress import span, watching
from closerlook.errors import InputError, WorkError

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.study.cells import ResolvedPlan, ResolvedRun
    from closerlook.study.cluster import Cluster
    from closerlook.study.plan import ExistingRun
    from closerlook.study.study import CompletedStudy

EXAMPLE = "Example: closerlook study plan.yaml --out my-study --workers 4"
CLUSTER = "Dask cluster"


def study(
    plan: Annotated[
        str,
        Argument(
            help="A YAML file with a plan, or a preset: default, paper, paper-small or lora-vs-full (the last two need "
            "--encoder)."
        ),
    ] = "default",
    out: Annotated[
        Path, Option(help="Folder for the results; an interrupted study in this folder continues where it stopped.")
    ] = Path("study"),
    encoder: Annotated[
        list[str] | None,
        Option("--encoder", "-e", help="Use this encoder instead of those in the plan; may be repeated."),
    ] = None,
    task: Annotated[
        list[str] | None, Option("--task", "-t", help="Use this task instead of those in the plan; may be repeated.")
    ] = None,
    run: Annotated[
        list[str] | None,
        Option(
            "--run",
            help="A training that you already have, measured instead of the plan's encoders: the output folder of a "
            "Trainer, a pattern such as 'out/step-*', or checkpoints separated by commas; may be repeated.",
        ),
    ] = None,
    base: Annotated[
        list[str] | None,
        Option(help="Encoder that the run started from, if its files do not name it; one for all runs, or one each."),
    ] = None,
    tuned_on: Annotated[
        list[str] | None, Option(help="Task that the run was trained on, if known; one for all runs, or one each.")
    ] = None,
    watch: Annotated[
        bool,
        Option(
            "--watch",
            help="Follow a training that is going on: measure each new complete checkpoint of the runs, and write the "
            "page again, until the training is over.",
        ),
    ] = False,
    watch_timeout: Annotated[
        float, Option(min=0, help="Seconds without a new checkpoint after which --watch ends.")
    ] = 3600.0,
    control: Annotated[
        bool | None,
        Option(
            "--control/--no-control",
            help="Also measure the selectivity of the classifier probes (against random labels of words) and the "
            "description length of the labels. (default: as the plan says; plans without this entry: no)",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    test_share: TestShare = None,
    store: Annotated[Path | None, Option(help="Folder in which the vectors are cached. (default: OUT/store)")] = None,
    device: Annotated[str | None, Option(help="Device: auto (CUDA, else MPS, else CPU), cuda, mps, cpu.")] = None,
    engine: Annotated[
        str | None,
        Option(
            help="Where cells (units of work) run: here (in this process), processes (in worker processes) or dask. "
            "(default: processes; here with one worker; dask with --scheduler)"
        ),
    ] = None,
    workers: Annotated[
        int | None, Option(min=1, help="Number of cells that run at the same time. (default: number of cores)")
    ] = None,
    gpu_cells: Annotated[
        int | None, Option(min=1, help="Number of cells that use the GPU at the same time. (default: 6)")
    ] = None,
    scheduler: Annotated[
        str | None, Option(help="Address of a Dask scheduler, such as tcp://host:8786, or tls://host:8786 with TLS.")
    ] = None,
    tls_ca: Annotated[
        Path | None,
        Option(help="Certificate of the authority of a cluster with TLS (PEM file).", rich_help_panel=CLUSTER),
    ] = None,
    tls_cert: Annotated[
        Path | None, Option(help="Own certificate for a cluster with TLS (PEM file).", rich_help_panel=CLUSTER)
    ] = None,
    tls_key: Annotated[
        Path | None,
        Option(help="Key of --tls-cert (PEM file), if that file does not contain it.", rich_help_panel=CLUSTER),
    ] = None,
    worker_timeout: Annotated[
        float,
        Option(
            help="Seconds to wait for a Dask worker that can run a waiting cell, after the last one has disappeared.",
            rich_help_panel=CLUSTER,
        ),
    ] = 300.0,
    resume: Resume = True,
    dry_run: Annotated[
        bool,
        Option("--dry-run", help="Only list the cells and estimate their time, memory and disk space; run none."),
    ] = False,
    finished_only: Annotated[
        bool,
        Option(
            "--finished-only",
            help="Write the table and the page from the cells that are finished, for instance on other machines; run "
            "only cells that need nothing else.",
        ),
    ] = False,
    complete: Annotated[
        Path | None,
        Option(
            help="Folder with results of the same study, such as an archive: run only what they lack, and what that "
            "needs. Then join both with closerlook combine, which the page is made from.",
        ),
    ] = None,
    report: Annotated[
        bool, Option("--report/--no-report", help="Write the report page and its figures at the end.")
    ] = True,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Run a study: fine-tune encoders, extract their vectors, measure and compare them, and write a report page.

    To continue an interrupted study, run the same command again: finished units of work (cells) are not repeated.
    """
    from closerlook.cli.console import print_json
    from closerlook.representations.atomic import check_writable
    from closerlook.study.engines import choose_engine
    from closerlook.study.plan import read_plan
    from closerlook.study.study import execute_study, resolve_study

    cluster = _cluster(scheduler, {"tls_ca": tls_ca, "tls_cert": tls_cert, "tls_key": tls_key}, worker_timeout)
    choose_engine(engine, workers, cluster)
    if watch and (dry_run or complete):
        raise InputError(f"--watch and {'--dry-run' if dry_run else '--complete'} given; expected one of them")
    if not dry_run:
        check_writable(out, "--out")
    runs = _runs(run, base, tuned_on)
    if runs and encoder is None:
        encoder = []
    changes = {
        "encoders": encoder,
        "runs": runs,
        "tasks": task,
        "control": control,
        "data": None if data is None else str(data),
        "test_share": test_share,
        "device": device,
    }
    resolve = partial(resolve_study, plan, out, store, **changes)
    if dry_run:
        _forecast(resolve(), out, complete, as_json=as_json)
        return
    execute = partial(
        execute_study,
        out=out,
        complete=complete,
        engine=engine,
        workers=workers,
        scheduler=cluster,
        resume=resume,
        finished_only=finished_only,
        gpu_cells=gpu_cells,
    )
    run_resolved = partial(_run_resolved, execute=execute, out=out, report=report and complete is None)
    if watch:
        done, page = _follow(read_plan(plan, **changes).runs, resolve, run_resolved, watch_timeout)
    else:
        resolved = resolve()
        if complete is not None and _lacks_nothing(resolved, out, complete, as_json=as_json):
            return
        done, page = run_resolved(resolved)
    if as_json:
        print_json(_as_dict(done) | {"report": page})
    else:
        _print(done)
        if page is not None:
            sys.stdout.write(f"report: {page}\n")
        if complete is not None:
            sys.stdout.write(f"to join both: closerlook combine WHOLE {complete} {out}\n")
    _check(done, complete)


Completed = tuple["CompletedStudy", str | None]
"""A study that has run, and the path of its page."""


def _run_resolved(
    resolved: ResolvedPlan, *, execute: Callable[..., CompletedStudy], out: Path, report: bool
) -> Completed:
    """Run a resolved plan, with notes about it, and write its page."""
    from closerlook.cli.console import note
    from closerlook.study.results import study_in

    requested = resolved.plan
    subjects = ", ".join([*requested.encoders, *resolved.runs])
    note(f"study {requested.name}: {subjects} × {', '.join(requested.tasks)}, into {out}")
    for name, existing in resolved.runs.items():
        note(f"run {name}: {_describe_run(existing)}")
    previous = study_in(out)
    if previous not in (None, requested.name):
        note(
            f"the results table and report of study {previous} in this folder are replaced; its finished cells are kept"
        )
    with watching() as show:
        done = execute(resolved, watch=show)
    return done, _report(done.out) if report else None


def _lacks_nothing(resolved: ResolvedPlan, out: Path, complete: Path, *, as_json: bool) -> bool:
    """Whether given results lack nothing of a study; if so, say it."""
    from closerlook.cli.console import note, print_json
    from closerlook.study.study import forecast

    if forecast(resolved, out, complete):
        return False
    note(f"{complete} lacks nothing of this plan; nothing was run")
    if as_json:
        counts = {"cells": 0, "total": 0, "computed": 0}
        print_json({"out": str(out), "table": None, **counts, "failed": {}, "seconds": 0.0, "report": None})
    return True


def _follow(
    runs: Sequence[ExistingRun],
    resolve: Callable[[], ResolvedPlan],
    run_resolved: Callable[[ResolvedPlan], Completed],
    timeout: float,
) -> Completed:
    """Complete the study again whenever its runs have new checkpoints, until their trainings are over."""
    from closerlook.cli.console import note
    from closerlook.study.following import follow, keep_measured

    if not runs:
        raise InputError("--watch given without a run; expected --run, or runs in the plan")
    rounds: list[Completed] = []
    measured: ResolvedPlan | None = None

    def refresh() -> None:
        nonlocal measured
        resolved = keep_measured(resolve(), measured)
        rounds[:] = [run_resolved(resolved)]
        done, page = rounds[0]
        if done.state.failed:
            note(f"{_failures(done)}; they are tried again with the next checkpoint")
        else:
            measured = resolved
        note(f"waiting for checkpoints; the page so far: {page}" if page else "waiting for checkpoints")

    note(f"waiting for checkpoints; ends with the training, after {timeout:g} s without a new one, or with Ctrl-C")
    note(f"no longer watching: {follow([run.checkpoints for run in runs], refresh, timeout=timeout, note=note)}")
    return rounds[0]


def _check(done: CompletedStudy, complete: Path | None) -> None:
    """Raise WorkError if cells failed, or if trainings do not complete the results that they were repeated for."""
    if done.state.failed:
        raise WorkError(f"{_failures(done)}; see {done.out / 'failed'}, and run the same command again to retry them")
    if done.state.differing:
        raise WorkError(
            f"{len(done.state.differing)} training(s) have different weights than in {complete}; expected the same "
            "weights: see the warning above for what to do"
        )


def _failures(done: CompletedStudy) -> str:
    """How many cells failed, and the first failure."""
    first = next(iter(done.state.failed.values()))
    return (
        f"{len(done.state.failed)} of {done.state.total} cells failed, and {done.state.blocked} depend on them; first "
        f"failure: {first}"
    )


def _cluster(scheduler: str | None, tls: dict[str, Path | None], worker_timeout: float) -> Cluster | None:
    """The Dask cluster that the options name; None without --scheduler."""
    from closerlook.study.cluster import Cluster

    if scheduler is None:
        given = next((name for name, file in tls.items() if file is not None), None)
        if given is not None:
            raise InputError(f"--{given.replace('_', '-')} given without --scheduler; give --scheduler tls://HOST:PORT")
        return None
    return Cluster(scheduler, **tls, worker_timeout=worker_timeout)


def _runs(
    runs: list[str] | None, bases: list[str] | None, tasks: list[str] | None
) -> list[dict[str, str | None]] | None:
    """The entries of a plan for the runs of the command line; None if there are none."""
    if not runs:
        if bases or tasks:
            raise InputError("--base or --tuned-on given without --run; expected a run that they belong to")
        return None
    return [
        {"checkpoints": run, "base": own_base, "tuned_on": task}
        for run, own_base, task in zip(
            runs, _one_each(bases, runs, "--base"), _one_each(tasks, runs, "--tuned-on"), strict=True
        )
    ]


def _one_each(values: list[str] | None, runs: list[str], option: str) -> list[str | None]:
    """A value for each run: the same for all, or as many as there are runs."""
    if not values:
        return [None] * len(runs)
    if len(values) not in (1, len(runs)):
        raise InputError(f"{option} given {len(values)} times for {len(runs)} runs; give it once, or once for each run")
    return list(values) if len(values) == len(runs) else [values[0]] * len(runs)


def _describe_run(run: ResolvedRun) -> str:
    """One line about an existing run: its base, its checkpoints and what is known about its training."""
    steps = ", ".join(str(checkpoint.step) for checkpoint in run.checkpoints)
    skipped = f"; {len(run.skipped)} folder(s) not used" if run.skipped else ""
    return (
        f"base {run.base.source.name}, steps {steps}, method {run.method}, seed {run.seed}, on {run.tuned_on}{skipped}"
    )


# ---- dry run ----


def _forecast(resolved: ResolvedPlan, out: Path, complete: Path | None, *, as_json: bool) -> None:
    """Print the cells of a plan and their estimated costs. complete: only of what these results lack."""
    from closerlook.cli.console import bytes_text, note, print_json, print_table
    from closerlook.report.tables import count_of
    from closerlook.study.engines import cores
    from closerlook.study.study import forecast

    kinds = forecast(resolved, out, complete)
    core_seconds = sum(kind.seconds for kind in kinds)
    if as_json:
        print_json(
            {"kinds": [vars(kind) for kind in kinds], "core_seconds": core_seconds, "plan": resolved.plan.to_dict()}
        )
        return
    if complete is not None and not kinds:
        note(f"{complete} lacks nothing of this plan")
        return
    _settings(resolved)
    print_table(
        "cells (units of work) of the study",
        ["kind", "cells", "finished", "time on one core", "memory of a cell", "disk space"],
        [
            [kind.kind, kind.cells, kind.done, span(kind.seconds), bytes_text(kind.memory), bytes_text(kind.disk)]
            for kind in kinds
        ],
        ["cells", "finished", "time on one core", "memory of a cell", "disk space"],
    )
    print_table(
        "",
        ["total cells", "time on one core", f"time on {count_of(cores(), 'core')}", "disk space"],
        [
            [
                sum(kind.cells for kind in kinds),
                span(core_seconds),
                span(core_seconds / cores()),
                bytes_text(sum(kind.disk for kind in kinds)),
            ]
        ],
    )


def _settings(resolved: ResolvedPlan) -> None:
    """Print the settings of fine-tuning and of the other entries of a plan."""
    from closerlook.cli.console import print_table

    plan = resolved.plan
    print_table(
        "fine-tuning",
        ["encoder", "task", "epochs", "learning rate", "batch size", "snapshots", "probed tasks"],
        [
            [e, t, s.epochs, s.learning_rate, s.batch_size, s.snapshots, ", ".join(plan.probed(t))]
            for (e, t), s in resolved.settings.items()
        ],
    )
    rest = plan.to_dict()
    hidden = {"name", "encoders", "tasks", "tuning", "snapshots", "cross"}
    print_table("settings", ["entry", "value"], [[key, rest[key]] for key in rest if key not in hidden])


# ---- results ----


def _report(folder: Path) -> str | None:
    """The path of the report page; None, with a note, if it cannot be written."""
    from closerlook.cli.console import note
    from closerlook.report import write_report

    try:
        return str(write_report(folder))
    except Exception as error:  # the results are complete all the same
        why = " ".join(str(error).split())
        note(f"the report could not be written ({type(error).__name__}: {why}); retry with closerlook report {folder}")
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
        print_table("Last layer, before → after fine-tuning", COLUMNS, _rows(table), COLUMNS[2:])
    state = done.state
    note(
        f"{len(state.done)} of {state.total} cells finished ({state.computed} computed now) in {span(done.seconds)}; "
        f"{len(table):,} measurements are in {done.table} and results.csv"
    )


COLUMNS = [
    "encoder",
    "task",
    "labels",
    "clusters",
    "linearly separable",
    "mean minimum distance",
    "accuracy, %",
    "train–test similarity",
]


def _rows(table: pd.DataFrame) -> list[list[object]]:
    """A row for each encoder and task: the values before and, if it was fine-tuned, after fine-tuning."""
    from closerlook.study.summary import summarise

    return [
        [
            row.encoder,
            row.task,
            row.labels,
            _arrow(row.n_clusters, "{:.0f}"),
            _arrow(tuple("yes" if value == 1 else "no" for value in row.is_separable if value is not None), "{}"),
            _arrow(row.mean_minimum_distance, "{:.3f}"),
            _arrow([None if value is None else 100 * value for value in row.accuracy], "{:.1f}"),
            _arrow(row.similarity, "{:.2f}"),
        ]
        for row in summarise(table)
    ]


def _arrow(values: Sequence[object], shown: str) -> str:
    return " → ".join(shown.format(value) for value in values if value is not None)

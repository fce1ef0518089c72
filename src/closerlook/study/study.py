"""`run_study`: runs all cells of a plan (its units of work) and writes the table of results, all in one folder."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.notebook import html
from closerlook.progress import bars_off, progress_bar
from closerlook.representations.atomic import check_writable
from closerlook.study.cells import ResolvedPlan
from closerlook.study.cluster import Cluster
from closerlook.study.engines import check_gpu_cells, choose_engine, limit_gpu_cells, open_engine
from closerlook.study.files import is_finished, read_result
from closerlook.study.forecasting import all_epochs, foresee
from closerlook.study.kinds import estimate_cell
from closerlook.study.lacking import Lacking
from closerlook.study.plan import Plan
from closerlook.study.resolving import resolve_source
from closerlook.study.results import load_results, write_results
from closerlook.study.runner import Limits, ProgressCallback, StudyState, check_folder, study_lock, work_through

if TYPE_CHECKING:
    import pandas as pd

STORE = "store"


@dataclass(frozen=True, eq=False)
class CompletedStudy:
    """A study that has run: its folder, the path of its table, its final state and the seconds it took.

    >>> plan = {"encoders": "bert-tiny", "tasks": "toy-question", "tuning": None, "measures": "clusters"}
    >>> study = run_study(plan, "my-study", workers=1)
    >>> study  # doctest: +ELLIPSIS
    CompletedStudy(my-study: ... cells, ... s)
    >>> study.out.name, study.table.name, len(study.state.failed)
    ('my-study', 'results.parquet', 0)
    """

    out: Path
    table: Path
    state: StudyState
    seconds: float

    def __repr__(self) -> str:
        failed = f", {len(self.state.failed)} failed" if self.state.failed else ""
        return f"CompletedStudy({self.out.name}: {len(self.state.done)} cells{failed}, {self.seconds:.0f} s)"

    def to_frame(self) -> pd.DataFrame:
        """The table of results: one row for each measurement."""
        return load_results(self.table)

    def _repr_html_(self) -> str:
        return html(repr(self), f"Table: {self.table}")


def run_study(
    plan: Plan | dict[str, Any] | str | Path = "default",
    out: str | Path = "study",
    *,
    store: str | Path | None = None,
    engine: str | None = None,
    workers: int | None = None,
    scheduler: str | Cluster | None = None,
    resume: bool = True,
    finished_only: bool = False,
    complete: str | Path | None = None,
    gpu_cells: int | None = None,
    watch: ProgressCallback | None = None,
) -> CompletedStudy:
    """Run every cell of a plan whose result is not in `out` yet, and write the table.

    plan: a Plan, its entries, a YAML file, or a preset (see `PRESETS`). store: the folder for vectors; by
    default in `out`. engine: 'here' (this process), 'processes' or 'dask'; by default processes, or here for a single
    worker. workers: the number of processes; by default one for each core. scheduler: the address of a Dask scheduler,
    or a `Cluster` with TLS files and a timeout for lost workers. resume: continue interrupted fine-tunings from their
    saved state; False saves no state, see `tune`. finished_only: write the table from the cells that are finished, and
    run only those that need nothing else, such as similarities of finished spaces. complete: a folder with results of
    the same study (its table or an archive); run only cells that measure what these lack, and what they need, so that
    `combine_results` completes them. gpu_cells: how many cells use the GPU of this machine at the same time, by default
    6: many small kernels of different processes slow each other down. watch: called with the state of the study after
    every change.

    >>> plan = {"encoders": "bert-tiny", "tasks": "toy-question", "tuning": None, "measures": "clusters"}
    >>> table = run_study(plan, "my-study", workers=1).to_frame()
    >>> rows = table[(table.measure == "n_clusters") & (table.split == "train") & (table.layer == 2)]
    >>> rows[["encoder", "task", "value"]].values.tolist()
    [['bert-tiny', 'toy-question', 20.0]]
    """
    choose_engine(engine, workers, scheduler)
    check_writable(Path(out))
    resolved = resolve_study(plan, out, store)
    options: dict[str, Any] = {
        "engine": engine,
        "workers": workers,
        "scheduler": scheduler,
        "resume": resume,
        "finished_only": finished_only,
        "complete": complete,
        "gpu_cells": gpu_cells,
    }
    if watch is not None:
        with bars_off():
            return execute_study(resolved, out, **options, watch=watch)
    with progress_bar("cells", None) as show:
        cells = None if show is None else (lambda state: show(len(state.done), state.total))
        return execute_study(resolved, out, **options, watch=cells)


def resolve_study(
    plan: Plan | dict[str, Any] | str | Path, out: str | Path, store: str | Path | None = None, **changes: Any
) -> ResolvedPlan:
    """The plan with its encoders and tasks loaded and checked; nothing is written. changes: entries to replace."""
    check_folder(Path(out))
    return resolve_source(plan, store or Path(out) / STORE, **changes)


def execute_study(
    resolved: ResolvedPlan,
    out: str | Path,
    *,
    engine: str | None = None,
    workers: int | None = None,
    scheduler: str | Cluster | None = None,
    resume: bool = True,
    finished_only: bool = False,
    complete: str | Path | None = None,
    gpu_cells: int | None = None,
    watch: ProgressCallback | None = None,
) -> CompletedStudy:
    """Run a resolved plan, see `run_study`."""
    folder = Path(out).expanduser().absolute()
    name = choose_engine(engine, workers, scheduler)
    check_gpu_cells(name, gpu_cells)
    lacking = None if complete is None else Lacking.of(resolved, complete, folder)
    limits = Limits(finished_only, lacking, cache(partial(limit_gpu_cells, name, resolved.plan.device, gpu_cells)))
    start = time.monotonic()
    with study_lock(folder):
        with_engine = open_engine(engine, workers, scheduler)
        state = work_through(replace(resolved, resume=resume), folder, with_engine, watch, limits)
        with_engine.close()
        seconds = time.monotonic() - start
        return CompletedStudy(folder, write_results(resolved, folder, state, seconds), state, seconds)


@dataclass(frozen=True)
class Forecast:
    """The expected cost of all cells of one kind.

    cells: their number. done: how many have a result. seconds: on one core, for the others. memory: bytes of the
    largest cell. disk: bytes that the others will write.
    """

    kind: str
    cells: int
    done: int
    seconds: float
    memory: int
    disk: int


def forecast(resolved: ResolvedPlan, out: Path, complete: str | Path | None = None) -> list[Forecast]:
    """The expected cost of what a study still has to do, by kind of cell; nothing is run.

    complete: only of what the results in this folder lack; the list is empty if they lack nothing.
    """
    lacking = None if complete is None else Lacking.of(resolved, complete, out)
    last_step = all_epochs if lacking is None else lacking.last_step
    graph = foresee(resolved, lambda key: read_result(out, key), last_step)
    needed = set(graph.cells) if lacking is None else lacking.cells(graph)
    kinds: dict[str, list[Forecast]] = {}
    for key, cell in graph.cells.items():
        if key not in needed:
            continue
        cost, done = estimate_cell(resolved, cell), is_finished(out, key)
        part = Forecast(cell.kind, 1, int(done), 0.0 if done else cost.seconds, cost.bytes, 0 if done else cost.disk)
        kinds.setdefault(cell.kind, []).append(part)
    return [
        Forecast(
            kind,
            len(parts),
            sum(part.done for part in parts),
            sum(part.seconds for part in parts),
            max(part.memory for part in parts),
            sum(part.disk for part in parts),
        )
        for kind, parts in kinds.items()
    ]

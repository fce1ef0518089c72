"""The runner of a study: runs every cell once and continues after interruptions.

It runs a cell again if its worker died or if its input disappeared.
"""

from __future__ import annotations

import heapq
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import filelock

from closerlook.errors import InputError, WorkError
from closerlook.representations.atomic import PART, atomic_write
from closerlook.representations.locking import try_lock
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.combining import Training
from closerlook.study.engines import Engine
from closerlook.study.execution import Outcome
from closerlook.study.files import CELLS, find_finished, is_finished, read_result, require_result, result_path
from closerlook.study.forecasting import all_epochs, foresee, foresee_run
from closerlook.study.graph import expand, grow
from closerlook.study.kinds import estimate_cell, kind_of
from closerlook.study.kinds.kind import EARLY
from closerlook.study.lacking import Lacking
from closerlook.study.remaining import RemainingTime
from closerlook.study.states import Graph
from closerlook.study.workers import WorkerLost

log = logging.getLogger(__name__)

FAILED = "failed"
ATTEMPTS = 3
"""A cell counts as failed after this many attempts in which its worker died. At the last attempt it runs alone, so that
another cell on the same machine cannot be the cause.
"""

BETWEEN = ""
"""Stands for the key of a fine-tuning where cells compare several of them, such as two seeds."""

LEARNT_FROM = 20
"""For each kind of cell: how many of the cells that earlier runs finished are used to predict times."""

PATIENCE = 60.0
"""Seconds to wait until a result that another machine wrote is visible; network file systems may take that long."""


@dataclass
class StudyState:
    """The progress of a study.

    time_left: returns the seconds that the study still needs, if known. coming: the keys of the cells that each
    unfinished fine-tuning is expected to add, by its key. done: the keys of finished cells. failed: the error message
    of each failed cell, by key. running: the start time of each running cell, by key. computed: the number of cells
    that this run has finished; cells that an earlier run finished are not counted. damaged: results of earlier runs
    that are damaged, under the names that they are kept as; their cells run again. left_out: the keys of cells that
    only measure what other results already have; they do not count, except as inputs of cells that run. whole: if cells
    are left out, the expected number of all cells of the study. differing: trainings that are not measured, because
    they should complete other results but have different weights.
    """

    graph: Graph
    time_left: Callable[[], float | None] = lambda: None
    coming: dict[str, set[str]] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    computed: int = 0
    damaged: list[str] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)
    whole: int | None = None
    differing: set[Training] = field(default_factory=set)

    @property
    def total(self) -> int:
        """The number of all cells, including those that unfinished fine-tunings will add."""
        return len(self.graph.cells) - len(self.left_out) + sum(map(len, self.coming.values()))

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the study ends, roughly; None as long as that is not known."""
        return self.time_left()

    @property
    def blocked(self) -> int:
        """The number of cells that cannot run because a cell they need has failed; valid once nothing runs any more."""
        return self.total - len(self.done) - len(self.failed)


@dataclass(frozen=True)
class Limits:
    """Which cells of a study run, and how many at the same time; by default all, and as many as the engine takes.

    finished_only: only cells that read nothing but results of finished cells. lacking: only cells that measure what
    other results lack, and cells that these need. gpu_cells: returns how many cells that use a GPU run at the same
    time, None for any number; it may have to load torch, so it is called when a second such cell could start.
    """

    finished_only: bool = False
    lacking: Lacking | None = None
    gpu_cells: Callable[[], int | None] = lambda: None


ProgressCallback = Callable[[StudyState], None]
"""Called after every change of the state."""


def check_folder(out: Path) -> None:
    """Raise InputError if the study's folder is a file."""
    if out.exists() and not out.is_dir():
        raise InputError(f"out {out} is a file; expected a folder, existing or new")


@contextmanager
def study_lock(out: Path) -> Iterator[None]:
    """Lock the study's folder for this process; raises InputError if another process has locked it."""
    check_folder(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = try_lock(out / ".lock", "do not run the same study twice at the same time")
    except filelock.Timeout:
        raise InputError(
            f"{out} is in use by another run of this study; wait for it, or choose another --out"
        ) from None
    except OSError as error:
        raise InputError(f"out {out} cannot be written: {error.strerror or error}; choose another folder") from None
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def work_through(
    study: ResolvedPlan,
    out: Path,
    engine: Engine,
    watch: ProgressCallback | None = None,
    limits: Limits | None = None,
) -> StudyState:
    """Run all cells of a study that can run, and return its final state; results are files in `out`."""
    try:
        return _Runner(study, out, engine, watch or (lambda state: None), limits or Limits()).run()
    except BaseException:
        engine.close(now=True)
        raise


class _Runner:
    """Runs the cells of one study.

    pilots: for each kind, the number of cells that are run early to learn how long cells of this kind take.
    queue: cells that can run now, as a heap. needs: the unfinished inputs of each cell that cannot run yet.
    followers: the reverse, the cells that wait for each input. futures: the running cells. deaths: how often the worker
    of each cell died. losses: how often each cell is run again because vectors disappeared from the store. expected:
    with `lacking`, the needed cells of the whole study, as far as they can be foreseen.
    """

    def __init__(self, study: ResolvedPlan, out: Path, engine: Engine, watch: ProgressCallback, limits: Limits) -> None:
        self.study, self.out, self.engine, self.watch, self.limits = study, out, engine, watch, limits
        self.expected: set[str] = set()
        self.time = RemainingTime(partial(estimate_cell, study), engine.workers)
        self.state = StudyState(Graph(), self.time.seconds)
        self.pilots: Counter[str] = Counter()
        self.queue: list[tuple[int, bool, float, str]] = []
        self.needs: dict[str, set[str]] = {}
        self.followers: dict[str, list[str]] = {}
        self.futures: dict[Future[Outcome], Cell] = {}
        self.deaths: Counter[str] = Counter()
        self.losses: Counter[str] = Counter()

    def run(self) -> StudyState:
        """Run cells until none is left that can run."""
        _sweep(self.out)
        self._begin()
        while True:
            self._fill()
            self._report_progress()
            if not self.futures:
                return self.state
            finished, _ = wait(self.futures, timeout=1.0, return_when=FIRST_COMPLETED)
            for future in finished:
                cell = self.futures.pop(future)
                self.state.running.pop(cell.key, None)
                self._settle(cell, future)

    # ---- the queue ----

    def _begin(self) -> None:
        """Build the graph from the results on disk, and queue what is not finished."""
        state = self.state
        for part in (self.queue, self.needs, self.followers, state.done, state.coming, state.left_out):
            part.clear()
        self.time.restart()
        self.state.graph = expand(self.study, lambda key: read_result(self.out, key))
        lacking = self.limits.lacking
        if lacking is not None:
            whole = foresee(self.study, lambda key: read_result(self.out, key), lacking.last_step)
            self._leave_out(lacking)
            self.expected, state.whole = lacking.cells(whole, state.differing), len(whole.cells)
        self._enter(state.graph.cells.values())
        known = set(state.graph.cells)
        for key, run in state.graph.waiting.items():
            if key in state.left_out:
                continue
            coming = foresee_run(self.study, key, run, all_epochs if lacking is None else lacking.last_step).cells
            new = [cell for cell in coming.values() if cell.key not in known]
            if lacking is not None:
                new = [cell for cell in new if cell.key in self.expected]
            state.coming[key] = {cell.key for cell in new}
            known |= state.coming[key]
            if not self.limits.finished_only:
                self.time.expect_from(key, new)
        if state.coming:
            state.coming[BETWEEN] = self.expected - known
        if not state.computed:
            self._learn()

    def _enter(self, cells: Iterable[Cell]) -> None:
        """Add new cells: those that an earlier run finished are done, others are queued or wait for their inputs."""
        new = list(cells) if self.limits.lacking is None else self._take_needed(self.limits.lacking, cells)
        finished, damaged = find_finished(self.out, [cell.key for cell in new])
        self.state.done |= finished
        self.state.damaged += damaged
        settled = self.state.done | set(self.state.failed)
        busy = {cell.key for cell in self.futures.values()}
        ready = []
        for cell in [cell for cell in new if cell.key not in settled and self._may_run(cell)]:
            self.time.expect(cell)
            missing = {key for key in cell.inputs if key not in self.state.done}
            for key in missing:
                self.followers.setdefault(key, []).append(cell.key)
            if missing:
                self.needs[cell.key] = missing
            elif cell.key not in busy:
                ready.append(cell)
        self._queue(ready)

    def _take_needed(self, lacking: Lacking, cells: Iterable[Cell]) -> list[Cell]:
        """The needed cells that have not been entered yet: among new ones, and earlier ones that new ones need.

        Cells that an earlier run finished are taken too, so that they stay in the table of this folder.
        """
        graph, left_out = self.state.graph, self.state.left_out
        left_out.update(cell.key for cell in cells)
        self._leave_out(lacking)
        needed = lacking.cells(graph, self.state.differing) | (self.expected & set(graph.cells))
        needed |= {key for key in left_out if is_finished(self.out, key)}
        new = [cell for key, cell in graph.cells.items() if key in needed and key in left_out]
        left_out.difference_update(cell.key for cell in new)
        return new

    def _leave_out(self, lacking: Lacking) -> None:
        """Find trainings whose weights are not those of the results that they should complete, and warn of new ones."""
        new = lacking.differing(self.state.graph) - self.state.differing
        if new:
            log.warning(lacking.explain(new))
        self.state.differing |= new

    def _may_run(self, cell: Cell) -> bool:
        """Whether this run computes a cell once its inputs are there."""
        if not self.limits.finished_only:
            return True
        return kind_of(cell).from_results and all(is_finished(self.out, key) for key in cell.inputs)

    def _queue(self, cells: Sequence[Cell]) -> None:
        """Queue cells that can run now: by the priority of their kind, then those that take longest first.

        The first cells of a kind come before fine-tunings: their times tell how long the others will take.
        """
        for seconds, cell in sorted(((self.time.expected_seconds(cell), cell) for cell in cells), key=_longest_first):
            is_pilot = self.time.needs_pilot(cell.kind, self.pilots[cell.kind])
            self.pilots[cell.kind] += is_pilot
            priority = kind_of(cell).priority
            heapq.heappush(
                self.queue, (min(priority, EARLY) if is_pilot else priority, not is_pilot, -seconds, cell.key)
            )

    def _learn(self) -> None:
        """Use the times of cells that earlier runs finished."""
        seen: Counter[str] = Counter()
        for key in self.state.done:
            cell = self.state.graph.cells[key]
            seen[cell.kind] += 1
            result = read_result(self.out, key) if seen[cell.kind] <= LEARNT_FROM else None
            if result is not None:
                self.time.learn(cell, result["seconds"])

    # ---- running cells ----

    def _fill(self) -> None:
        """Start cells while the engine has room; cells that must wait for the GPU stay in the queue."""
        waiting = []
        while self.queue:
            cell = self.state.graph.cells[self.queue[0][-1]]
            if cell.gpu and self._is_gpu_full():
                waiting.append(heapq.heappop(self.queue))
                continue
            if not self._has_room(cell):
                break
            heapq.heappop(self.queue)
            self.state.running[cell.key] = time.monotonic()
            self.time.begin(cell)
            self._report_progress()
            self.futures[self.engine.submit(cell, str(self.out))] = cell
        for item in waiting:
            heapq.heappush(self.queue, item)

    def _is_gpu_full(self) -> bool:
        """Whether so many cells use the GPU that another one has to wait; torch is not asked before the second."""
        running = sum(cell.gpu for cell in self.futures.values())
        if running and self.time.gpu_workers is None:
            self.time.gpu_workers = self.limits.gpu_cells()
        return self.time.gpu_workers is not None and running >= self.time.gpu_workers

    def _has_room(self, cell: Cell) -> bool:
        running = list(self.futures.values())
        if running and any(self.deaths[other.key] >= ATTEMPTS - 1 for other in [cell, *running]):
            return False
        reserved = sum(self.time.estimate(other).bytes for other in running)
        return self.engine.has_room(len(running), self.time.estimate(cell).bytes, reserved)

    def _settle(self, cell: Cell, future: Future[Outcome]) -> None:
        """Handle the end of a cell."""
        if cell.key not in self.state.graph.cells:
            return  # its input is being computed again; it is queued again after that
        if future.cancelled():
            raise WorkError(
                "the scheduler stopped and lost its running cells; start it, and run the same command again"
            )
        error = future.exception()
        if error is not None:
            self._lost_worker(cell, error)
            return
        outcome = future.result()
        if not outcome.error:
            self._finish(cell, outcome.seconds)
        elif outcome.reason == "full":
            raise WorkError(
                f"{outcome.error}; free disk space, and run the same command again: it goes on where it stopped"
            )
        elif outcome.reason == "lost" and self.losses[cell.key] == 0:
            self._lost_input(cell)
        else:
            self._fail(cell, outcome.error, outcome.trace)

    def _finish(self, cell: Cell, seconds: float | None) -> None:
        self._await(cell)
        self.state.done.add(cell.key)
        if seconds is None:
            self.time.drop(cell)
        else:
            self.state.computed += 1
            self.time.finish(cell, seconds)
        ready = []
        for key in self.followers.pop(cell.key, ()):
            self.needs[key].discard(cell.key)
            if not self.needs[key] and key not in self.state.done:
                ready.append(self.state.graph.cells[key])
        self._queue(ready)
        if cell.key in self.state.graph.waiting:
            self._grow(cell.key)

    def _grow(self, key: str) -> None:
        """Add the cells of a finished fine-tuning's snapshots."""
        graph = self.state.graph
        known = set(graph.cells)
        grow(self.study, graph, key, require_result(self.out, key))
        self.state.coming.pop(key, None)
        for coming in self.state.coming.values():  # trainings share some cells, such as those of step 0
            coming.difference_update(graph.cells)
        if self.state.coming.keys() == {BETWEEN}:
            self.state.coming.clear()
        self.time.arrived(key)
        self._enter(cell for new, cell in list(graph.cells.items()) if new not in known)

    def _await(self, cell: Cell) -> None:
        """Wait until the result is visible from this machine."""
        start = time.monotonic()
        while not is_finished(self.out, cell.key):
            if time.monotonic() - start > PATIENCE:
                raise WorkError(
                    f"a worker has finished '{cell.title}', but its result is not in {self.out}; expected a folder "
                    "that all machines share"
                )
            time.sleep(0.05)

    # ---- failures ----

    def _lost_worker(self, cell: Cell, error: BaseException) -> None:
        """Queue a cell again whose worker died, up to the limit of attempts; raise any other error of the engine."""
        if not isinstance(error, WorkerLost):
            if isinstance(error, WorkError):
                raise error
            raise WorkError(
                f"the engine failed ({type(error).__name__}: {error}); run the same command again"
            ) from error
        if is_finished(self.out, cell.key):
            self._finish(cell, None)
            return
        self.deaths[cell.key] += error.attempts
        if self.deaths[cell.key] < ATTEMPTS:
            self._queue([cell])
        else:
            self._fail(cell, f"its worker died {ATTEMPTS} times, the last time while no other cell ran: out of memory?")

    def _lost_input(self, cell: Cell) -> None:
        """Compute the missing inputs of a cell again: delete the results of the cells that made them."""
        self.losses[cell.key] += 1
        for key in cell.inputs:
            maker = self.state.graph.cells[key]
            if kind_of(maker).makes_spaces and self.losses[key] == 0 and is_finished(self.out, key):
                self.losses[key] += 1
                result_path(self.out, key).unlink(missing_ok=True)
        self._begin()

    def _fail(self, cell: Cell, error: str, trace: str = "") -> None:
        """Record a failed cell, and write its error to a file; other cells continue."""
        self.state.failed[cell.key] = error
        self.time.drop(cell)
        report = {"key": cell.key, "kind": cell.kind, "title": cell.title, "error": error, "traceback": trace}
        with atomic_write(self.out / FAILED / f"{cell.key}.json") as stream:
            stream.write(json.dumps(report, ensure_ascii=False, indent=1).encode())

    def _report_progress(self) -> None:
        self.watch(self.state)


def _longest_first(item: tuple[float, Cell]) -> tuple[float, str]:
    seconds, cell = item
    return -seconds, cell.key


def _sweep(out: Path) -> None:
    """Remove incomplete files of killed processes, and the errors of earlier runs, whose cells are tried again."""
    for folder in (out, out / FAILED, *(out / CELLS).glob("*")):
        for part in folder.glob(f".*{PART}"):
            part.unlink(missing_ok=True)
    for path in (out / FAILED).glob("*.json"):
        path.unlink(missing_ok=True)

"""Workers that die, schedulers that go away, folders that are not shared: what a study makes of it."""

import os
import signal
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from closerlook.errors import InputError, WorkError
from closerlook.study import engines, runner
from closerlook.study.cells import Cell
from closerlook.study.engines import Here, Processes, open_engine
from closerlook.study.execution import Outcome, attempt
from closerlook.study.graph import expand
from closerlook.study.kinds import geometry
from closerlook.study.runner import StudyState, study_lock, work_through
from closerlook.study.study import run_study
from closerlook.study.workers import THREAD_VARIABLES, WorkerLost, WorkerProcess, children_memory
from tests.study.small import opened, small_plan


class Dying(Here):
    """Loses its worker with certain cells, and with those that run beside them, as a pool of processes does."""

    name, workers = "dying", 2

    def __init__(self, kind: str, times: int, error: Exception | None = None) -> None:
        self.kind, self.times = kind, times
        self.error = error or WorkerLost("a process died")
        self.begun: list[tuple[str, ...]] = []
        self.waiting: list[tuple[Future[Outcome], Cell, str]] = []

    def has_room(self, running: int, expected: int, reserved: int) -> bool:
        return running < 2

    def submit(self, cell: Cell, out: str) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        self.waiting.append((future, cell, out))
        return future

    def work(self, state: StudyState) -> None:
        """Called when all that has room was begun: everything ends at once, well or not."""
        if {cell.key for _, cell, _ in self.waiting} != set(state.running):
            return
        together, self.waiting = self.waiting, []
        self.begun.append(tuple(cell.kind for _, cell, _ in together))
        dies = self.times > 0 and any(cell.kind == self.kind for _, cell, _ in together)
        self.times -= dies
        for future, cell, out in together:
            if dies:
                future.set_exception(self.error)
            else:
                future.set_result(attempt(cell, out, 1))


def test_cells_whose_worker_dies_are_begun_again(tasks: Path, tmp_path: Path) -> None:
    engine = Dying("extract", times=2)
    out = tmp_path / "out"
    with study_lock(out):
        state = work_through(opened(small_plan(tasks, measures=["clusters"]), out), out, engine, engine.work)
    assert not state.failed
    assert state.computed == state.total
    assert sorted(engine.begun[0]) == sorted(engine.begun[1]) == ["extract", "tune"]
    assert {("extract",), ("tune",)} <= set(engine.begun[2:])  # after two deaths each runs alone


def test_a_cell_that_takes_its_worker_down_every_time_fails_alone(tasks: Path, tmp_path: Path) -> None:
    engine = Dying("extract", times=99)
    out = tmp_path / "out"
    with study_lock(out):
        state = work_through(opened(small_plan(tasks, measures=["clusters"]), out), out, engine, engine.work)
    (key,) = state.failed
    assert state.graph.cells[key].kind == "extract"
    assert "its worker died 3 times" in state.failed[key]
    assert any(state.graph.cells[key].kind == "tune" for key in state.done)


def test_a_cell_that_a_cluster_has_given_up_runs_once_more_alone(tasks: Path, tmp_path: Path) -> None:
    engine = Dying("extract", times=99, error=WorkerLost("after four attempts", attempts=2))
    out = tmp_path / "out"
    with study_lock(out):
        state = work_through(opened(small_plan(tasks, measures=["clusters"]), out), out, engine, engine.work)
    assert [state.graph.cells[key].kind for key in state.failed] == ["extract"]
    assert sorted(engine.begun[0]) == ["extract", "tune"]
    assert sum("extract" in together for together in engine.begun) == 2


def test_an_engine_that_fails_otherwise_is_told_in_one_line(tasks: Path, tmp_path: Path) -> None:
    class Failing(Here):
        def submit(self, cell: Cell, out: str) -> Future[Outcome]:
            future: Future[Outcome] = Future()
            future.set_exception(OSError("the network is down"))
            return future

    out = tmp_path / "out"
    with study_lock(out), pytest.raises(WorkError, match=r"the engine failed \(OSError: the network is down\)"):
        work_through(opened(small_plan(tasks), out), out, Failing())


def test_a_scheduler_that_goes_away_is_told_in_one_line(tasks: Path, tmp_path: Path) -> None:
    class Cancelling(Here):
        def submit(self, cell: Cell, out: str) -> Future[Outcome]:
            future: Future[Outcome] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    out = tmp_path / "out"
    with study_lock(out), pytest.raises(WorkError, match="the scheduler stopped and lost its running cells"):
        work_through(opened(small_plan(tasks), out), out, Cancelling())


def test_a_folder_that_workers_do_not_share_is_noticed(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(Here):
        def submit(self, cell: Cell, out: str) -> Future[Outcome]:
            future: Future[Outcome] = Future()
            future.set_result(Outcome(seconds=1.0))
            return future

    monkeypatch.setattr(runner, "PATIENCE", 0.1)
    out = tmp_path / "out"
    with (
        study_lock(out),
        pytest.raises(WorkError, match="its result is not in .*; expected a folder that all machines share"),
    ):
        work_through(opened(small_plan(tasks), out), out, Elsewhere())


def test_an_interruption_in_this_process_is_not_swallowed(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **rest: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(geometry, "measure_space", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_study(small_plan(tasks, tuning=None), tmp_path / "out", engine="here")
    assert not (tmp_path / "out" / "failed").exists()


def test_memory_that_running_cells_will_still_take_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 10_000

    monkeypatch.setattr(engines.psutil, "virtual_memory", Memory)
    monkeypatch.setattr(engines, "children_memory", lambda: 0)  # other tests may have left processes
    engine = Processes(4)
    assert engine.has_room(0, 99_000, 0)  # one always runs
    assert engine.has_room(1, 3_000, 5_000)
    assert not engine.has_room(1, 3_001, 5_000)
    assert not engine.has_room(4, 1, 0)
    engine.close()


@pytest.fixture
def unknown(tasks: Path, tmp_path: Path) -> Cell:
    """A cell that fails before it begins, so that its worker is idle soon."""
    study = opened(small_plan(tasks, measures=["clusters"], tuning=None), tmp_path)
    (cell,) = [cell for cell in expand(study, lambda key: None).cells.values() if cell.kind == "extract"]
    return replace(cell, kind="unknown")


def worker_processes() -> list[psutil.Process]:
    """The worker processes below this one; loky's resource trackers are not among them."""
    children = psutil.Process().children()
    return [
        child for child in children if THREAD_VARIABLES[0] in child.environ() and "--process-name" in child.cmdline()
    ]


def test_a_worker_that_dies_is_reported_and_replaced(unknown: Cell, tmp_path: Path) -> None:
    engine = Processes(1)
    try:
        assert "KeyError" in engine.submit(unknown, str(tmp_path)).result().error
        (process,) = worker_processes()
        process.kill()
        process.wait()
        with pytest.raises(WorkerLost, match="ended with a cell unfinished") as caught:
            engine.submit(unknown, str(tmp_path)).result()
        assert caught.value.attempts == 1
        assert "KeyError" in engine.submit(unknown, str(tmp_path)).result().error
        (replacement,) = worker_processes()
        assert replacement.pid != process.pid
    finally:
        engine.close(now=True)
    assert not worker_processes()


def test_a_worker_that_dies_leaves_other_workers_and_their_cells_alone(unknown: Cell, tmp_path: Path) -> None:
    engine = Processes(2)
    try:
        both = [engine.submit(unknown, str(tmp_path)) for _ in range(2)]
        assert all("KeyError" in future.result().error for future in both)
        first, second = worker_processes()
        first.kill()
        first.wait()
        outcomes = [engine.submit(unknown, str(tmp_path)) for _ in range(2)]
        assert sorted(type(future.exception()) is WorkerLost for future in outcomes) == [False, True]
        assert second.is_running()
    finally:
        engine.close(now=True)


def test_a_worker_ends_with_its_parent(unknown: Cell, tmp_path: Path) -> None:
    worker = WorkerProcess(1)
    worker.submit(unknown, str(tmp_path)).result()
    (process,) = worker_processes()
    worker._parent_end.close()  # as the operating system does when the parent ends
    assert process.wait(60) in {1, None}  # None: loky was first to collect the exit code; too late raises an error
    assert not process.is_running()


def test_workers_find_thread_limits_and_ignore_interrupts(
    unknown: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    before = children_memory()
    worker = WorkerProcess(2)
    try:
        worker.submit(unknown, str(tmp_path)).result()
        (process,) = worker_processes()
        assert {process.environ()[name] for name in THREAD_VARIABLES} == {"2"}
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.2)
        assert process.is_running()
        assert children_memory() > before + 10_000_000
    finally:
        worker.close(now=True)
    assert not process.is_running()
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_a_worker_does_not_import_modules_of_the_current_folder(
    unknown: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("argparse", "loky"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    worker = WorkerProcess(1)
    try:
        assert "KeyError" in worker.submit(unknown, str(tmp_path)).result().error
    finally:
        worker.close(now=True)


def test_a_worker_that_takes_more_memory_is_not_restarted(unknown: Cell, tmp_path: Path) -> None:
    worker = WorkerProcess(1)
    try:
        worker.submit(unknown, str(tmp_path)).result()  # loky takes the memory after the first cell for normal
        (process,) = worker_processes()
        worker._pool.submit(_keep_memory, 400_000_000).result()
        worker.submit(unknown, str(tmp_path)).result()
        worker.submit(unknown, str(tmp_path)).result()
        assert worker_processes() == [process]
    finally:
        worker.close(now=True)


def _keep_memory(size: int) -> None:
    """Take memory that is not given back, for longer than loky waits between two looks at it."""
    kept.append(b"1" * size)
    time.sleep(1.1)


kept: list[bytes] = []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("threads", None, None), "engine 'threads' is unknown; expected here, processes or dask"),
        (("dask", None, None), "engine dask needs --scheduler ADDRESS"),
        (("dask", 2, "tcp://h:1"), "--workers given with engine dask; the cluster determines the number of workers"),
        (("here", 2, None), "engine here runs one cell at a time; 2 workers need engine processes"),
        (("processes", None, "tcp://h:1"), "--scheduler given with engine processes; only engine dask has a scheduler"),
    ],
)
def test_engines_that_cannot_be_are_refused(given: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_engine(*given)


def test_the_engine_follows_from_the_number_of_workers() -> None:
    assert open_engine(None, 1, None).name == "here"
    assert open_engine(None, 3, None).workers == 3
    assert open_engine("processes", 1, None).name == "processes"
    assert open_engine(None, None, None).workers == engines.cores()

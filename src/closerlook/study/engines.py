"""Where cells are worked on: in this process, in others on this machine, or on a Dask cluster; all are Executors."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import connection
from typing import Any, Protocol

import psutil

from closerlook.errors import InputError, WorkError
from closerlook.geometry.kernels import count_threads
from closerlook.study.cells import Cell
from closerlook.study.execution import Outcome, attempt
from closerlook.version import __version__

SPARE = 0.8
"""The share of the free memory that cells may be expected to take."""

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Engine(Protocol):
    """Takes cells; says how many at a time, and whether there is memory for one more.

    A future that raises BrokenExecutor or KilledWorker has lost its worker; the engine goes on with others.
    """

    name: str
    workers: int

    def submit(self, cell: Cell, out: str) -> Future[Outcome]:
        """How the cell ended, once it has."""

    def has_room(self, running: int, expected: int, reserved: int) -> bool:
        """Whether a cell that may take `expected` bytes can start beside `running` others that may take `reserved`."""

    def close(self, *, now: bool = False) -> None:
        """Stop; now: without waiting for what runs."""


def cores() -> int:
    """How many this process may use."""
    return count_threads(None)


class Here:
    """One cell at a time, in this process, with all cores."""

    name, workers = "here", 1

    def submit(self, cell: Cell, out: str) -> Future[Outcome]:
        """Done when this returns."""
        future: Future[Outcome] = Future()
        future.set_result(attempt(cell, out, cores()))
        return future

    def has_room(self, running: int, expected: int, reserved: int) -> bool:
        """One at a time."""
        return running == 0

    def close(self, *, now: bool = False) -> None:
        """Nothing runs."""


class Processes:
    """Several cells at a time on this machine, each in a process with its share of the cores."""

    name = "processes"

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.threads = max(1, cores() // workers)
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self.workers, mp_context=multiprocessing.get_context("spawn"), initializer=_settle_in
        )

    def submit(self, cell: Cell, out: str) -> Future[Outcome]:
        """On the next process that is free; where processes have died, on new ones."""
        with _as_a_parent(self.threads):
            try:
                return self._pool.submit(attempt, cell, out, self.threads)
            except BrokenExecutor:
                self.close(now=True)
                self._pool = self._start()
                return self._pool.submit(attempt, cell, out, self.threads)

    def has_room(self, running: int, expected: int, reserved: int) -> bool:
        """A process, and memory beside what the others will still take; one cell always runs, however large."""
        if running == 0:
            return True
        if running >= self.workers:
            return False
        taken = sum(_memory(pid) for pid in list(self._pool._processes or {}))
        free: int = psutil.virtual_memory().available
        return expected + max(0, reserved - taken) <= SPARE * free

    def close(self, *, now: bool = False) -> None:
        """Stop the processes; now: kill them, since a result is written whole or not at all."""
        if now:
            for process in list((self._pool._processes or {}).values()):  # the pool has no kill before 3.14
                with suppress(OSError):
                    process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)


def _memory(pid: int) -> int:
    try:
        held: int = psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return 0
    return held


@contextmanager
def _as_a_parent(threads: int) -> Iterator[None]:
    """While processes may be started: what they are to find when they begin.

    Their share of the cores stands in the environment, which libraries read when they are loaded. Ctrl-C does not reach
    them: it is their parent's business. The main module is hidden from them: they need nothing of it, and would run a
    user's script, study and all, once more.
    """
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, str(threads)))
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    main = vars(sys.modules["__main__"])
    shown: dict[str, Any] = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(shown)
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _settle_in() -> None:
    """A worker's start: Ctrl-C is not for it, and it ends when its parent does, however that comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(parent: int) -> None:
    connection.wait([parent])
    os._exit(1)  # at once: what it was at is not finished, and nobody asks for it


class Dask:
    """The workers of a Dask cluster that runs already; cells that a GPU helps go where one is declared.

    A worker has one cell at a time, which may use all its threads.
    """

    name = "dask"

    def __init__(self, scheduler: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise InputError("engine dask needs the package distributed; pip install closerlook[cluster]") from None
        try:
            self._client: Any = Client(scheduler, timeout="20s", set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise WorkError(f"no Dask scheduler answers at {scheduler}: {' '.join(str(error).split())}") from None
        try:
            found = self._client.scheduler_info(n_workers=-1)["workers"]
            _check_workers(scheduler, self._client, found)
        except BaseException:
            self._client.close()
            raise
        self.workers = len(found)
        self._most = sum(2 if worker["nthreads"] == 1 else 1 for worker in found.values())
        gpus = any("GPU" in worker.get("resources", {}) for worker in found.values())
        self._plain: Executor = self._client.get_executor(pure=False)
        self._gpu: Executor = self._client.get_executor(pure=False, resources={"GPU": 1}) if gpus else self._plain

    def submit(self, cell: Cell, out: str) -> Future[Outcome]:
        """On a worker of the scheduler's choice."""
        return (self._gpu if cell.gpu else self._plain).submit(_on_a_worker, cell, out)

    def has_room(self, running: int, expected: int, reserved: int) -> bool:
        """The scheduler looks after memory; workers of one thread are given the next cell before they ask for it."""
        return running < self._most

    def close(self, *, now: bool = False) -> None:
        """Leave the cluster as it was; now: what runs ends by itself, and its result counts."""
        for executor in {self._plain, self._gpu}:
            executor.shutdown(wait=not now)
        self._client.close()


def _on_a_worker(cell: Cell, out: str) -> Outcome:
    from distributed import get_worker

    return attempt(cell, out, get_worker().state.nthreads)


def _check_workers(scheduler: str, client: Any, found: dict[str, Any]) -> None:
    """There are some, and all have this version of the package."""
    if not found:
        raise WorkError(f"the Dask scheduler at {scheduler} has no workers; start some, and run this again")
    for worker, answer in client.run(_installed, on_error="return").items():
        if answer != __version__:
            raise WorkError(
                f"Dask worker {worker} answers {answer!r}; expected closerlook {__version__} there, as here"
            )


def _installed() -> str:
    return __version__


def choose_engine(name: str | None, workers: int | None, scheduler: str | None) -> str:
    """The name of the engine asked for; by default processes, or this one where there is one worker."""
    if scheduler is not None and name not in (None, "dask"):
        raise InputError(f"--scheduler given with engine {name}; it belongs to dask")
    if name == "dask" or scheduler is not None:
        if scheduler is None:
            raise InputError("engine dask needs --scheduler ADDRESS, such as tcp://host:8786")
        if workers is not None:
            raise InputError("--workers given with engine dask; the cluster has its own")
        return "dask"
    if name not in (None, "here", "processes"):
        raise InputError(f"engine {name!r} is unknown; expected here, processes or dask")
    if name == "here" and workers not in (None, 1):
        raise InputError(f"engine here works on one cell at a time; {workers} workers need engine processes")
    return name or ("here" if (workers or cores()) == 1 else "processes")


def open_engine(name: str | None, workers: int | None, scheduler: str | None) -> Engine:
    """The engine asked for, ready to work; processes are as many as there are cores unless `workers` says."""
    chosen = choose_engine(name, workers, scheduler)
    if chosen == "dask":
        return Dask(str(scheduler))
    return Here() if chosen == "here" else Processes(workers or cores())

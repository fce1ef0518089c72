"""Where cells run: in this process, in worker processes on this machine, or on a Dask cluster."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import psutil

from closerlook.errors import InputError, WorkError
from closerlook.geometry.kernels import count_threads
from closerlook.study.cells import Cell
from closerlook.study.cluster import Cluster, as_cluster
from closerlook.study.execution import Outcome, attempt
from closerlook.study.workers import LOST, WorkerLost, WorkerProcess, children_memory
from closerlook.version import __version__

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger("closerlook")

WATCH_SECONDS = 1.0
"""Seconds between two looks at the workers of a Dask cluster."""

MEMORY_SHARE = 0.8
"""A further cell starts only if the memory it is expected to need is at most this share of the free memory."""


GPU_CELLS = 6
"""How many cells use the GPU of this machine at the same time, by default.

Their kernels are small, so the GPU switches from process to process: with 12 fine-tunings of bert-small at a time, each
took 3.5 times as long as with 6.
"""


class Engine(Protocol):
    """Runs cells. workers: the number of cells that run at the same time.

    A future raises WorkerLost if the worker died; the engine continues with a new worker.
    """

    name: str
    workers: int

    def submit(self, cell: Cell, out: str) -> Future[Outcome]:
        """Start a cell; the result of the future says how the cell ended."""

    def has_room(self, running: int, expected: int, reserved: int) -> bool:
        """Whether a cell that needs `expected` bytes can start while `running` other cells need `reserved` bytes."""

    def close(self, *, now: bool = False) -> None:
        """Stop the engine. now: do not wait for running cells."""


def cores() -> int:
    """The number of cores that this process may use."""
    return count_threads(None)


class Here:
    """Runs one cell at a time, in this process, with all cores."""

    name, workers = "here", 1

    def submit(self, cell: Cell, out: str) -> Future[Outcome]:
        """Run a cell; the future is done when this returns."""
        future: Future[Outcome] = Future()
        future.set_result(attempt(cell, out, cores()))
        return future

    def has_room(self, running: int, expected: int, reserved: int) -> bool:
        """Whether no other cell is running."""
        return running == 0

    def close(self, *, now: bool = False) -> None:
        """Do nothing: no cell is running."""


class Processes:
    """Runs several cells at a time on this machine, each in a worker process with an equal share of the cores.

    A worker is started when no idle worker is left for a cell. A worker that dies is replaced; the others continue.
    """

    name = "processes"

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.threads = max(1, cores() // workers)
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()

    def submit(self, cell: Cell, out: str) -> Future[Outcome]:
        """Run a cell on an idle worker, or on a new one."""
        worker = self._idle.pop() if self._idle else WorkerProcess(self.threads)
        self._busy.add(worker)
        try:
            future = worker.submit(cell, out)
        except LOST as error:  # it died while it was idle
            future = Future()
            future.set_exception(error)
        return _relay(future, LOST, _process_lost, partial(self._release, worker))

    def _release(self, worker: WorkerProcess, *, lost: bool) -> None:
        """Keep a worker for the next cell, unless it is lost."""
        self._busy.discard(worker)
        if not lost:
            self._idle.append(worker)

    def has_room(self, running: int, expected: int, reserved: int) -> bool:
        """Whether a worker is free, and memory is left after what the running cells are still expected to take.

        If no cell is running, the next one always starts, however large it is.
        """
        if running == 0:
            return True
        if running >= self.workers:
            return False
        free: int = psutil.virtual_memory().available
        return expected + max(0, reserved - children_memory()) <= MEMORY_SHARE * free

    def close(self, *, now: bool = False) -> None:
        """Stop the workers. now: stop them even while they run cells; these cells have no result then."""
        for worker in [*self._idle, *self._busy]:
            worker.close(now=now)


def _process_lost(error: BaseException) -> WorkerLost:
    return WorkerLost(f"a worker process ended with a cell unfinished ({type(error).__name__})")


class Dask:
    """Runs cells on the workers of a Dask cluster that is already running.

    Cells that are faster on a GPU go to the workers that declare the resource GPU, if there are any. A worker runs one
    cell at a time, which may use all threads of the worker. If no worker is left that can run a waiting cell, the study
    ends after `Cluster.worker_timeout` seconds. If only the workers with a GPU are gone, and the plan does not require
    device cuda, the other workers run their cells from then on.
    """

    name = "dask"

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client = cluster.connect()
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
            _check_workers(cluster.scheduler, self._client, workers)
        except BaseException:
            self._client.close()
            raise
        self.workers = len(workers)
        self._most_cells = sum(2 if worker["nthreads"] == 1 else 1 for worker in workers.values())
        self._plain: Executor = self._client.get_executor(pure=False)
        self._gpu: Executor | None = None
        if _count_gpus(workers):
            self._gpu = self._client.get_executor(pure=False, resources={"GPU": 1})
        self._executors = [executor for executor in (self._plain, self._gpu) if executor is not None]
        self._unfinished: dict[Future[Outcome], tuple[Cell, Future[Outcome]]] = {}
        self._is_closed = threading.Event()
        threading.Thread(target=self._watch_workers, daemon=True).start()

    def submit(self, cell: Cell, out: str) -> Future[Outcome]:
        """Run a cell on a worker that the scheduler chooses."""
        from distributed import KilledWorker

        executor = self._gpu if cell.gpu and self._gpu is not None else self._plain
        future = executor.submit(_run_on_worker, cell, out)
        relayed = _relay(future, KilledWorker, _dask_workers_lost)
        self._unfinished[relayed] = cell, future
        relayed.add_done_callback(lambda done: self._unfinished.pop(done, None))
        return relayed

    def has_room(self, running: int, expected: int, reserved: int) -> bool:
        """Whether the cluster takes another cell. Memory is left to the scheduler.

        A worker with one thread is sent its next cell before it has finished the present one.
        """
        return running < self._most_cells

    def close(self, *, now: bool = False) -> None:
        """Disconnect from the cluster. now: do not wait for running cells; their results are still written."""
        self._is_closed.set()
        for executor in self._executors:
            executor.shutdown(wait=not now)
        self._client.close()

    def _watch_workers(self) -> None:
        """Notice, until the engine is closed, that waiting cells have had no worker for too long."""
        present = time.monotonic()
        while not self._is_closed.wait(WATCH_SECONDS):
            workers = None
            with suppress(OSError, RuntimeError, ValueError):  # the scheduler is gone; the client cancels all futures
                workers = self._client.scheduler_info(n_workers=-1)["workers"]
            waiting = [] if workers is None else self._waiting_for_worker(workers)
            if workers is None or not waiting:
                present = time.monotonic()
            elif time.monotonic() - present >= self._cluster.worker_timeout:
                self._give_up(waiting, workers)

    def _waiting_for_worker(self, workers: dict[str, Any]) -> list[Future[Outcome]]:
        """The unfinished cells that no worker can run."""
        lacks_gpu = self._gpu is not None and not _count_gpus(workers)
        unfinished = list(self._unfinished.items())
        return [relayed for relayed, (cell, _) in unfinished if not workers or (cell.gpu and lacks_gpu)]

    def _give_up(self, waiting: Sequence[Future[Outcome]], workers: dict[str, Any]) -> None:
        """Let other workers run the cells of lost workers with a GPU, if the plan allows it; else let them fail."""
        unfinished = [(relayed, *self._unfinished[relayed]) for relayed in waiting if relayed in self._unfinished]
        needs_gpu = any(str(cell.resources.get("device")).startswith("cuda") for _, cell, _ in unfinished)
        seconds = f"{self._cluster.worker_timeout:g} s"
        error: WorkError
        if workers and not needs_gpu:
            self._gpu = None
            log.warning(
                "the Dask cluster has had no worker with a GPU for %s; others run its cells from now on", seconds
            )
            error = WorkerLost("the workers with a GPU are gone", attempts=0)
        else:
            kind = "worker with a GPU" if workers else "worker"
            error = WorkError(
                f"the Dask cluster at {self._cluster.scheduler} has had no {kind} for {seconds} (--worker-timeout); "
                "start some, and run the same command again"
            )
        for relayed, _, future in unfinished:
            with suppress(InvalidStateError):  # it has finished in the meantime
                relayed.set_exception(error)
            future.cancel()


def _count_gpus(workers: dict[str, Any]) -> int:
    return sum("GPU" in worker.get("resources", {}) for worker in workers.values())


DASK_ATTEMPTS = 2
"""The number of attempts that one KilledWorker error counts as: Dask itself has tried the cell several times."""


def _dask_workers_lost(error: BaseException) -> WorkerLost:
    return WorkerLost(f"Dask lost its workers: {error}", DASK_ATTEMPTS)


def _relay(
    future: Future[Outcome],
    lost: type[Exception] | tuple[type[Exception], ...],
    as_worker_lost: Callable[[BaseException], WorkerLost],
    release: Callable[..., None] = lambda *, lost: None,
) -> Future[Outcome]:
    """A future that ends as `future` does, but with WorkerLost in place of the errors in `lost`.

    release: called with `lost`, whether the worker was lost, before the returned future ends.
    """
    relayed: Future[Outcome] = Future()

    def settle(done: Future[Outcome]) -> None:
        if relayed.done():
            return  # given up before
        if done.cancelled():
            release(lost=True)
            relayed.cancel()
            relayed.set_running_or_notify_cancel()
            return
        error = done.exception()
        release(lost=isinstance(error, lost))
        if error is None:
            relayed.set_result(done.result())
        else:
            relayed.set_exception(as_worker_lost(error) if isinstance(error, lost) else error)

    future.add_done_callback(settle)
    return relayed


def _run_on_worker(cell: Cell, out: str) -> Outcome:
    from distributed import get_worker

    return attempt(cell, out, get_worker().state.nthreads)


def _check_workers(scheduler: str, client: Client, workers: dict[str, Any]) -> None:
    """Check that there are workers, and that all have this version of the package."""
    if not workers:
        raise WorkError(f"the Dask scheduler at {scheduler} has no workers; start some, and run the same command again")
    for worker, answer in client.run(_installed_version, on_error="return").items():
        if answer != __version__:
            raise WorkError(
                f"Dask worker {worker} answers {answer!r}; expected closerlook {__version__}, as on this machine"
            )


def _installed_version() -> str:
    return __version__


def choose_engine(name: str | None, workers: int | None, scheduler: str | Cluster | None) -> str:
    """The name of the requested engine; by default 'processes', or 'here' for a single worker."""
    if scheduler is not None and name not in (None, "dask"):
        raise InputError(f"--scheduler given with engine {name}; only engine dask has a scheduler")
    if name == "dask" or scheduler is not None:
        if scheduler is None:
            raise InputError("engine dask needs --scheduler ADDRESS, such as tcp://host:8786")
        if workers is not None:
            raise InputError("--workers given with engine dask; the cluster determines the number of workers")
        return "dask"
    if name not in (None, "here", "processes"):
        raise InputError(f"engine {name!r} is unknown; expected here, processes or dask")
    if name == "here" and workers not in (None, 1):
        raise InputError(f"engine here runs one cell at a time; {workers} workers need engine processes")
    return name or ("here" if (workers or cores()) == 1 else "processes")


def check_gpu_cells(name: str, requested: int | None) -> None:
    """Raise InputError if so many cells cannot use a GPU at the same time. name: of the engine."""
    if requested is not None and requested < 1:
        raise InputError(f"{requested} GPU cells requested; expected at least 1")
    if requested is not None and name == "dask":
        raise InputError("GPU cells given for a Dask cluster; expected none: its workers say what they run")


def limit_gpu_cells(name: str, device: str, requested: int | None) -> int | None:
    """How many cells that use a GPU run at the same time; None: any number, as without a GPU or on a Dask cluster.

    name: of the engine. device: as the plan names it. requested: the number that the caller chose, if any.
    """
    from closerlook.encoders.loading import choose_device

    if name == "dask" or choose_device(device).type == "cpu":
        return None
    return requested or GPU_CELLS


def open_engine(name: str | None, workers: int | None, scheduler: str | Cluster | None) -> Engine:
    """The requested engine, ready to run cells. workers: the number of processes; by default one for each core."""
    chosen, cluster = choose_engine(name, workers, scheduler), as_cluster(scheduler)
    if cluster is not None:
        return Dask(cluster)
    return Here() if chosen == "here" else Processes(workers or cores())

"""Where cells run: in this process, in worker processes on this machine, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import psutil

from closerlook.errors import InputError, WorkError
from closerlook.geometry.kernels import count_threads
from closerlook.study.cells import Cell
from closerlook.study.execution import Outcome, attempt
from closerlook.study.workers import LOST, WorkerLost, WorkerProcess, children_memory
from closerlook.version import __version__

if TYPE_CHECKING:
    from distributed import Client

MEMORY_SHARE = 0.8
"""A further cell starts only if the memory it is expected to need is at most this share of the free memory."""


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
    cell at a time, which may use all threads of the worker.
    """

    name = "dask"

    def __init__(self, scheduler: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise InputError("engine dask needs the package distributed; pip install closerlook[cluster]") from None
        try:
            self._client = Client(scheduler, timeout="20s", set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise WorkError(f"no Dask scheduler answers at {scheduler}: {' '.join(str(error).split())}") from None
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
            _check_workers(scheduler, self._client, workers)
        except BaseException:
            self._client.close()
            raise
        self.workers = len(workers)
        self._most_cells = sum(2 if worker["nthreads"] == 1 else 1 for worker in workers.values())
        gpus = any("GPU" in worker.get("resources", {}) for worker in workers.values())
        self._plain: Executor = self._client.get_executor(pure=False)
        self._gpu: Executor = self._client.get_executor(pure=False, resources={"GPU": 1}) if gpus else self._plain

    def submit(self, cell: Cell, out: str) -> Future[Outcome]:
        """Run a cell on a worker that the scheduler chooses."""
        from distributed import KilledWorker

        executor = self._gpu if cell.gpu else self._plain
        return _relay(executor.submit(_run_on_worker, cell, out), KilledWorker, _dask_workers_lost)

    def has_room(self, running: int, expected: int, reserved: int) -> bool:
        """Whether the cluster takes another cell. Memory is left to the scheduler.

        A worker with one thread is sent its next cell before it has finished the present one.
        """
        return running < self._most_cells

    def close(self, *, now: bool = False) -> None:
        """Disconnect from the cluster. now: do not wait for running cells; their results are still written."""
        for executor in {self._plain, self._gpu}:
            executor.shutdown(wait=not now)
        self._client.close()


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
        raise WorkError(f"the Dask scheduler at {scheduler} has no workers; start some, and run the same command")
    for worker, answer in client.run(_installed_version, on_error="return").items():
        if answer != __version__:
            raise WorkError(
                f"Dask worker {worker} answers {answer!r}; expected closerlook {__version__}, as on this machine"
            )


def _installed_version() -> str:
    return __version__


def choose_engine(name: str | None, workers: int | None, scheduler: str | None) -> str:
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


def open_engine(name: str | None, workers: int | None, scheduler: str | None) -> Engine:
    """The requested engine, ready to run cells. workers: the number of processes; by default one for each core."""
    chosen = choose_engine(name, workers, scheduler)
    if chosen == "dask":
        return Dask(str(scheduler))
    return Here() if chosen == "here" else Processes(workers or cores())

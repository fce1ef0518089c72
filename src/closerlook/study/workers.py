"""Worker processes on this machine: each is a loky pool of one process, so that a killed process loses one cell.

loky does not import the parent's main module in a worker, as `multiprocessing` does; a user's script would start its
study again there.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from multiprocessing.connection import Connection

import psutil
from loky import BrokenProcessPool, ProcessPoolExecutor
from loky.backend import get_context
from loky.process_executor import ShutdownExecutorError

from closerlook.errors import WorkError
from closerlook.study.cells import Cell
from closerlook.study.execution import Outcome, attempt

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Environment variables that libraries read when they are loaded."""

LOST = (BrokenProcessPool, ShutdownExecutorError)
"""Errors of loky that mean that a process ended before its cell did."""

CONTEXT = get_context("loky")


class WorkerLost(WorkError):  # noqa: N818 - it is an event that the runner handles, not an error that users see
    """A worker ended while it ran a cell. attempts: how many attempts at the cell were made until then."""

    def __init__(self, message: str, attempts: int = 1) -> None:
        super().__init__(message)
        self.attempts = attempts


class WorkerProcess:
    """A worker process. It starts with its first cell. threads: how many it may use."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._parent_end, self._child_end = CONTEXT.Pipe()
        self._pool = ProcessPoolExecutor(
            1, context=CONTEXT, initializer=_prepare, initargs=(self._child_end,), env=_environment(threads)
        )

    def submit(self, cell: Cell, out: str) -> Future[Outcome]:
        """Start a cell; the future raises one of the errors in LOST if the process ends before the cell does."""
        try:
            with _interrupts_blocked():
                future: Future[Outcome] = self._pool.submit(attempt, cell, out, self.threads)
        except OSError as error:
            raise WorkError(
                f"a worker process cannot be started: {error.strerror or error}; end other programs or set a smaller "
                "--workers, and run the same command again"
            ) from None
        return future

    def close(self, *, now: bool) -> None:
        """End the process. now: even if it runs a cell; no result file is damaged, since each is written at once."""
        self._pool.shutdown(wait=True, kill_workers=now)


def children_memory() -> int:
    """The number of bytes of memory that all child processes use, and their children."""
    total = 0
    for process in psutil.Process().children(recursive=True):
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue  # it has ended
    return total


def _environment(threads: int) -> dict[str, str]:
    """The environment variables of a worker that differ from those of the parent.

    PYTHONSAFEPATH: a worker must not import modules from the current folder that the parent does not import from there.
    LOKY_MAX_MEMORY_LEAK_SIZE: loky would restart a worker whose memory grows after its first cell, as it does when
    torch is loaded; every restart would load torch again.
    """
    own = {"PYTHONSAFEPATH": "1", "LOKY_MAX_MEMORY_LEAK_SIZE": "1e18"}
    return dict.fromkeys(THREAD_VARIABLES, str(threads)) | own


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C for processes started here: a terminal sends it to the workers as well, but only the parent acts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---- in the worker ----


def _prepare(connection: Connection) -> None:
    """Ignore Ctrl-C, and end this process when its parent ends. connection: to the parent, which never sends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(connection,), daemon=True).start()


def _end_with_parent(connection: Connection) -> None:
    """Wait until the connection closes, which it does however the parent ends; then end this process at once."""
    try:
        connection.recv()
    except (EOFError, OSError):
        os._exit(1)

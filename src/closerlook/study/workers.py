"""Worker processes of this machine: one Python process that runs one cell after another for its parent.

A worker is a program of its own (`python -m closerlook.study.workers`). `multiprocessing` would import the main module
of the parent in every worker, and a user's script would start its study again there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue

import psutil

from closerlook.errors import WorkError
from closerlook.study.cells import Cell
from closerlook.study.execution import Outcome, attempt

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Environment variables that libraries read when they are loaded."""

Request = tuple[Cell, str, int]
"""A cell, the study's folder, and the number of threads."""


class WorkerLost(WorkError):  # noqa: N818 - it is an event that the runner handles, not an error that users see
    """A worker ended while it ran a cell. attempts: how many attempts at the cell were made until then."""

    def __init__(self, message: str, attempts: int = 1) -> None:
        super().__init__(message)
        self.attempts = attempts


class WorkerProcess:
    """The parent's side of a worker. threads: how many the worker may use."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._connection, remote = Pipe()
        with remote, _interrupts_blocked():
            self._process = subprocess.Popen(  # noqa: S603 - our own module and a number
                [sys.executable, "-P", "-m", "closerlook.study.workers", str(remote.fileno())],
                env=_environment(threads),
                pass_fds=[remote.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def run(self, cell: Cell, out: str) -> Outcome:
        """Run a cell; WorkerLost if the process ends before it has answered."""
        try:
            self._connection.send((cell, out, self.threads))
            outcome: Outcome = self._connection.recv()
        except (EOFError, OSError):
            self.kill()
            raise WorkerLost(f"the worker process {self._process.pid} ended with a cell unfinished") from None
        return outcome

    @property
    def memory(self) -> int:
        """The bytes of memory that the process holds."""
        try:
            resident: int = psutil.Process(self._process.pid).memory_info().rss
        except psutil.Error:
            return 0
        return resident

    def kill(self) -> None:
        """End the process at once; a result file is complete or not there, so nothing is damaged."""
        self._process.kill()
        self._process.wait()


def _environment(threads: int) -> dict[str, str]:
    """The environment of a worker: thread limits, and the parent's module search path."""
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    return os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads)) | {"PYTHONPATH": path}


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C for processes started here: a terminal sends it to the workers as well, but only the parent acts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---- the worker's side ----


def main(descriptor: int) -> None:
    """Run the cells that arrive, until the parent closes the connection or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(descriptor)
    requests: SimpleQueue[Request] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, requests), daemon=True).start()
    while True:
        connection.send(attempt(*requests.get()))


def _receive(connection: Connection, requests: SimpleQueue[Request]) -> None:
    """Pass requests on. The connection ends when the parent does, however it ends: then the worker ends at once."""
    try:
        while True:
            requests.put(connection.recv())
    except (EOFError, OSError):
        os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Runs one cell (a unit of work of a study) in the current process: reads its inputs and writes one result file."""

from __future__ import annotations

import errno
import os
import platform
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from closerlook.errors import CloserLookError
from closerlook.progress import bars_off
from closerlook.study.cells import Cell
from closerlook.study.files import LostError, is_finished, write_result
from closerlook.study.kinds import kind_of
from closerlook.version import __version__

if TYPE_CHECKING:
    import threadpoolctl

JOURNAL = "journal"

DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
"""Errors of the operating system after which no other result can be written either."""

_one_at_a_time = threading.Lock()
"""Only one cell runs at a time in a process: torch's threads and random numbers belong to the whole process."""


@dataclass(frozen=True)
class Outcome:
    """How a cell ended, as plain values that any engine can send between processes.

    seconds: the time it took; None if its result existed already. error: the error message, in one line. trace: its
    traceback. reason: 'lost' if an input is gone, 'full' if nothing more can be written.
    """

    seconds: float | None = None
    error: str = ""
    trace: str = ""
    reason: Literal["", "lost", "full"] = ""


def attempt(cell: Cell, out: str, threads: int) -> Outcome:
    """Run a cell and return how it ended; only an interruption is raised."""
    with _one_at_a_time, bars_off():
        try:
            return Outcome(seconds=run_cell(cell, out, threads))
        except Exception as error:  # recorded with the cell; other cells go on
            message = str(error) if isinstance(error, CloserLookError) else f"{type(error).__name__}: {error}"
            trace = "".join(traceback.format_exception(error))
            return Outcome(error=" ".join(message.split()), trace=trace, reason=_reason(error))


def _reason(error: BaseException | None) -> Literal["", "lost", "full"]:
    """The reason code of an error, or of the error that caused it."""
    while error is not None:
        if isinstance(error, LostError):
            return "lost"
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            return "full"
        error = error.__cause__ or error.__context__
    return ""


def run_cell(cell: Cell, out: str, threads: int) -> float | None:
    """Run a cell, write its result, and return the seconds it took; None if its result existed already.

    threads: how many this process may use. torch uses the plan's number, so that results do not depend on this one.
    """
    folder = Path(out)
    if is_finished(folder, cell.key):
        return None
    journal(folder, cell.key)
    start, cpu = time.perf_counter(), time.process_time()
    with _thread_limits(cell):
        rows, payload = kind_of(cell).run(cell, folder, threads)
    seconds = time.perf_counter() - start
    result = {
        "key": cell.key,
        "kind": cell.kind,
        "title": cell.title,
        "content": cell.content,
        "rows": rows,
        "payload": payload,
        "seconds": round(seconds, 4),
        "cpu_seconds": round(time.process_time() - cpu, 4),
        "peak_bytes": _peak_memory(),
        "host": platform.node(),
        "threads": threads,
        "version": __version__,
    }
    write_result(folder, result)
    return seconds


def journal(out: Path, key: str) -> None:
    """Record that a cell begins: one line in a file that only this process writes."""
    path = out / JOURNAL / f"{platform.node()}-{os.getpid()}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        stream.write(f"{time.time():.3f} {key}\n")


def _peak_memory() -> int:
    """The peak memory of this process, in bytes."""
    import resource
    import sys

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@contextmanager
def _thread_limits(cell: Cell) -> Iterator[None]:
    """Limit the threads of libraries to a number that does not depend on the engine, since it may change last digits.

    torch uses the plan's number, BLAS in numpy and scipy one thread; the package's C kernels give the same results
    with any number.
    """
    torch_threads = cell.resources.get("threads") if kind_of(cell).makes_spaces else None
    with _blas_libraries().limit(limits=1, user_api="blas"):
        if not torch_threads:
            yield
            return
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(torch_threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@cache
def _blas_libraries() -> threadpoolctl.ThreadpoolController:
    """The BLAS libraries of this process, found once, since the search takes milliseconds."""
    import scipy.linalg  # noqa: F401 - brings its own BLAS, which is only found once it is loaded
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()

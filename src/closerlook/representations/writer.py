"""Write a space file row by row through a memory map; its checksum is added at the end."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import WorkError
from closerlook.representations.files import header, with_checksum
from closerlook.representations.space import Provenance

MADV_POPULATE_WRITE = 23
SMALL = 1 << 28
"""The largest memory map, in bytes, whose pages are allocated at once."""


@dataclass(frozen=True, eq=False)
class SpaceWriter:
    """A space file that is being written.

    X: (n, d) writable, mapped to the file. fresh: the file is new, not continued from an interrupted run.
    """

    path: Path
    start: bytes
    X: NDArray[np.float32]
    y: NDArray[np.int32]
    key: str
    fresh: bool

    @classmethod
    def open(
        cls, path: Path, d: int, *, y: NDArray[np.int32], labels: tuple[str, ...], provenance: Provenance, key: str
    ) -> SpaceWriter:
        """A writer for the file at that path; continues the file if an interrupted run left the same one there."""
        n = len(y)
        start = header(n, d, labels, provenance, key=key)
        size = len(start) + 4 * n * d + 4 * n
        try:
            fresh = not _is_same_file(path, start, size)
            if fresh:
                _allocate(path, start, size, y.astype("<i4"))
            X = np.memmap(path, dtype="<f4", mode="r+", offset=len(start), shape=(n, d))
            _prefault(X)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise WorkError(f"{path} cannot be written ({size:,} bytes): {error.strerror or error}") from None
        return cls(path, start, X, y.astype("<i4"), key, fresh)

    def finish(self) -> None:
        """Write the checksum into the header, which completes the file."""
        pages = getattr(self.X, "_mmap", None)
        if pages is not None and sys.platform != "linux":  # on Linux, fsync of the file writes its mapped pages too
            pages.flush()
        with self.path.open("r+b") as stream:
            stream.write(with_checksum(self.start, self.X, self.y))


def _prefault(X: NDArray[np.float32]) -> None:
    """Allocate all pages of a small memory map at once, which is faster than one page fault for each."""
    pages = getattr(X, "_mmap", None)
    if pages is not None and X.nbytes <= SMALL:
        with suppress(OSError, ValueError):  # not supported by Linux before 5.14 and other systems
            pages.madvise(MADV_POPULATE_WRITE)


def _is_same_file(path: Path, start: bytes, size: int) -> bool:
    """Whether an interrupted run left a file of this size and with this header there."""
    if not path.is_file() or path.stat().st_size != size:
        return False
    with path.open("rb") as stream:
        return stream.read(len(start)) == start


def _allocate(path: Path, start: bytes, size: int, y: NDArray[np.int32]) -> None:
    """Create the file at its full size, so that a full disk is an error now and not a crash when a page is written."""
    with path.open("wb") as stream:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(stream.fileno(), 0, size)
        else:
            for written in range(0, size, 1 << 20):
                stream.write(bytes(min(1 << 20, size - written)))
            stream.seek(0)
        stream.write(start)
        stream.seek(size - 4 * len(y))
        stream.write(y.data)

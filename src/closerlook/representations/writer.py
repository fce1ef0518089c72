"""A space file under way: rows are filled in through a memory map, then it is sealed with its checksum."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import WorkError
from closerlook.representations.files import header, sealed
from closerlook.representations.space import Provenance

MADV_POPULATE_WRITE = 23
SMALL = 1 << 28


@dataclass(frozen=True, eq=False)
class Draft:
    """An unfinished space file. X: (n, d), writable, in the file itself. fresh: no earlier run has written to it."""

    path: Path
    start: bytes
    X: NDArray[np.float32]
    y: NDArray[np.int32]
    key: str
    fresh: bool

    @classmethod
    def open(
        cls, path: Path, d: int, *, y: NDArray[np.int32], labels: tuple[str, ...], provenance: Provenance, key: str
    ) -> Draft:
        """The draft at that path, begun anew unless an earlier run left the very same one there."""
        n = len(y)
        start = header(n, d, labels, provenance, key=key)
        size = len(start) + 4 * n * d + 4 * n
        try:
            fresh = not _begun(path, start, size)
            if fresh:
                _allocate(path, start, size, y.astype("<i4"))
            X = np.memmap(path, dtype="<f4", mode="r+", offset=len(start), shape=(n, d))
            _prefault(X)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise WorkError(f"{path} cannot be written ({size:,} bytes): {error.strerror or error}") from None
        return cls(path, start, X, y.astype("<i4"), key, fresh)

    def seal(self) -> None:
        """The file made complete: its checksum goes into the header.

        Nothing is forced to the disk: should the machine lose power before the system writes, the checksum tells.
        """
        with self.path.open("r+b") as stream:
            stream.write(sealed(self.start, self.X, self.y))


def _prefault(X: NDArray[np.float32]) -> None:
    """The map's pages made ready at once, which is faster than meeting them one by one; only where there are few."""
    pages = getattr(X, "_mmap", None)
    if pages is not None and X.nbytes <= SMALL:
        with suppress(OSError, ValueError):  # Linux before 5.14 and other systems do not know the word
            pages.madvise(MADV_POPULATE_WRITE)


def _begun(path: Path, start: bytes, size: int) -> bool:
    """Whether an earlier run left this very draft there."""
    if not path.is_file() or path.stat().st_size != size:
        return False
    with path.open("rb") as stream:
        return stream.read(len(start)) == start


def _allocate(path: Path, start: bytes, size: int, y: NDArray[np.int32]) -> None:
    """The file at its full size: a disk that is too small says so now, not as a crash when a mapped page is written."""
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

"""A space file under way: rows are filled in through a memory map, then it is sealed with its checksum."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import WorkError
from closerlook.representations.files import UNWRITTEN, checksum, header
from closerlook.representations.space import Provenance, Space


@dataclass(frozen=True, eq=False)
class Draft:
    """An unfinished space file. X: (n, d), writable, in the file itself. fresh: no earlier run has written to it."""

    path: Path
    X: NDArray[np.float32]
    y: NDArray[np.int32]
    labels: tuple[str, ...]
    provenance: Provenance
    key: str
    fresh: bool

    @classmethod
    def open(
        cls, path: Path, d: int, *, y: NDArray[np.int32], labels: tuple[str, ...], provenance: Provenance, key: str
    ) -> Draft:
        """The draft at that path, begun anew unless an earlier run left the very same one there."""
        n = len(y)
        start = header(n, d, labels, provenance, checksum=UNWRITTEN, key=key)
        size = len(start) + 4 * n * d + 4 * n
        try:
            fresh = not (path.is_file() and path.stat().st_size == size and path.open("rb").read(len(start)) == start)
            if fresh:
                _allocate(path, start, size, y)
            X = np.memmap(path, dtype="<f4", mode="r+", offset=len(start), shape=(n, d))
        except OSError as error:
            path.unlink(missing_ok=True)
            raise WorkError(f"{path} cannot be written ({size:,} bytes): {error.strerror or error}") from None
        return cls(path, X, y, labels, provenance, key, fresh)

    def seal(self) -> None:
        """The file made complete: everything on disk, then the checksum in its header."""
        assert isinstance(self.X, np.memmap)  # noqa: S101 - for mypy: open() made it
        self.X.flush()
        digest = checksum(Space(self.X.view(), self.y, self.labels, self.provenance))
        with self.path.open("r+b") as stream:
            stream.write(
                header(len(self.y), self.X.shape[1], self.labels, self.provenance, checksum=digest, key=self.key)
            )
            stream.flush()
            os.fsync(stream.fileno())


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
        stream.write(y.astype("<i4").data)

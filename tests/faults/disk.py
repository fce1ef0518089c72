"""A disk whose k-th operation fails: wraps the functions through which Python opens, writes, renames and flushes."""

import builtins
import errno
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

Operation = Literal["open", "write", "read", "rename", "sync", "folder", "allocate"]
OPERATIONS: tuple[Operation, ...] = ("open", "write", "read", "rename", "sync", "folder", "allocate")
"""open: a file for writing. read: opening a file for reading. folder: creating one. allocate: space for a file."""

FUNCTIONS: dict[str, Operation] = {
    "replace": "rename",
    "rename": "rename",
    "fsync": "sync",
    "mkdir": "folder",
    "posix_fallocate": "allocate",
}
"""The functions of `os` that are wrapped."""

WRITING = set("wxa+")


class FaultyDisk:
    """Counts the operations on files below a folder, and lets chosen ones fail.

    operation: which ones may fail; None: none. k: the number of the one that fails, from 1. lasting: whether all
    later ones fail as well, as on a full disk. code: the error of the operating system.
    """

    def __init__(
        self,
        root: Path,
        operation: Operation | None = None,
        k: int = 0,
        *,
        code: int = errno.EIO,
        lasting: bool = False,
    ) -> None:
        self.root, self.operation, self.k, self.code, self.lasting = root.absolute(), operation, k, code, lasting
        self.seen: Counter[str] = Counter()
        self.failures = 0

    def concerns(self, path: Any) -> bool:
        """Whether a path is below the folder."""
        if isinstance(path, int):
            try:
                path = os.readlink(f"/proc/self/fd/{path}")
            except OSError:
                return False
        return Path(os.fsdecode(path)).absolute().is_relative_to(self.root)

    def step(self, operation: Operation, path: Any) -> None:
        """Count an operation; raises OSError if it is one that fails."""
        self.seen[operation] += 1
        if operation != self.operation:
            return
        number = self.seen[operation]
        if number == self.k or (self.lasting and number > self.k):
            self.failures += 1
            raise OSError(self.code, os.strerror(self.code), str(path))

    @contextmanager
    def mounted(self) -> Iterator["FaultyDisk"]:
        """Operations go through this disk within the block."""
        with pytest.MonkeyPatch.context() as patch:
            opening = self._opening(io.open)
            patch.setattr(io, "open", opening)
            patch.setattr(builtins, "open", opening)
            for name, operation in FUNCTIONS.items():
                patch.setattr(os, name, self._wrapped(getattr(os, name), operation))
            yield self

    def _wrapped(self, plain: Callable[..., Any], operation: Operation) -> Callable[..., Any]:
        def called(path: Any, *rest: Any, **options: Any) -> Any:
            if self.concerns(path):
                self.step(operation, path)
            return plain(path, *rest, **options)

        return called

    def _opening(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **options: Any) -> Any:
            if isinstance(file, int) or not self.concerns(file):
                return plain(file, mode, buffering, *rest, **options)
            if not WRITING & set(mode):
                self.step("read", file)
                return plain(file, mode, buffering, *rest, **options)
            self.step("open", file)
            raw = _FaultyFile(self, os.fspath(file), mode.replace("b", "").replace("t", ""))
            stream = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return stream if "b" in mode else io.TextIOWrapper(stream, *rest, **options)

        return opened


class _FaultyFile(io.FileIO):
    """A file whose writes the disk counts; half of a write that fails is on the disk."""

    def __init__(self, disk: FaultyDisk, path: str, mode: str) -> None:
        super().__init__(path, mode)  # type: ignore[arg-type]
        self.disk, self.path = disk, path

    def write(self, data: Any) -> int:
        try:
            self.disk.step("write", self.path)
        except OSError:
            super().write(bytes(data)[: len(data) // 2])
            raise
        return super().write(data)

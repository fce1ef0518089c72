"""A record of what a program does to a disk, and the states that a power failure may leave of it at any moment.

The model is that of a file system which promises no more than POSIX: the content of a file is on the disk as of its
last fsync, the entries of a folder as of the folder's last fsync; what came later may be there or not.
"""

import builtins
import io
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

Kind = Literal["create", "mkdir", "rename", "remove", "content", "entries"]
Cut = Literal["synced", "names first", "random"]
"""What is on the disk of what was not flushed: nothing, all names but no content, or a random part of the names."""

CUTS: tuple[Cut, ...] = ("synced", "names first", "random")


@dataclass(frozen=True)
class Event:
    """One operation. path: below the root. file: the number of the file, the same under all its names.

    content: the bytes that an fsync of a file puts on the disk, or that the file had when it got its present name.
    """

    kind: Kind
    path: Path
    file: int = -1
    content: bytes = b""


@dataclass
class Record:
    """The operations of a program on files below a folder, in their order."""

    root: Path
    events: list[Event] = field(default_factory=list)
    numbers: dict[Path, int] = field(default_factory=dict)

    @contextmanager
    def recording(self) -> Iterator["Record"]:
        """Operations are recorded within the block."""
        with pytest.MonkeyPatch.context() as patch:
            opening = self._opening(io.open)
            patch.setattr(io, "open", opening)
            patch.setattr(builtins, "open", opening)
            patch.setattr(shutil, "_use_fd_functions", False)  # remove files by their paths
            for name, note in (
                ("fsync", self._synced),
                ("mkdir", self._made),
                ("unlink", self._removed),
                ("rmdir", self._removed),
            ):
                patch.setattr(os, name, self._after(getattr(os, name), note))
            for name in ("replace", "rename"):
                patch.setattr(os, name, self._after(getattr(os, name), self._renamed))
            yield self

    def _below(self, path: Any) -> Path | None:
        """The path from the root on; None if it is elsewhere, or a lock."""
        whole = Path(os.fsdecode(path)).absolute()
        if not whole.is_relative_to(self.root) or whole.suffix == ".lock":
            return None
        return whole.relative_to(self.root)

    def _after(self, plain: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            result = plain(*arguments, **options)
            note(*arguments)
            return result

        return called

    def _opening(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
            path = None if isinstance(file, int) else self._below(file)
            is_new = path is not None and not os.path.exists(file)
            stream = plain(file, mode, *rest, **options)
            if path is not None and is_new:
                self.numbers[path] = len(self.events)
                self.events.append(Event("create", path, self.numbers[path]))
            return stream

        return opened

    def _synced(self, descriptor: int) -> None:
        place = os.readlink(f"/proc/self/fd/{descriptor}")
        path = self._below(place)
        if path is None:
            return
        if os.path.isdir(place):
            self.events.append(Event("entries", path))
        else:
            self.events.append(Event("content", path, self.numbers[path], Path(place).read_bytes()))

    def _made(self, place: Any, *_: Any) -> None:
        path = self._below(place)
        if path is not None:
            self.events.append(Event("mkdir", path))

    def _renamed(self, source: Any, target: Any) -> None:
        before, path = self._below(source), self._below(target)
        if before is None or path is None:
            return
        self.numbers[path] = self.numbers.pop(before)
        self.events.append(Event("rename", path, self.numbers[path], Path(target).read_bytes()))

    def _removed(self, place: Any, *_: Any) -> None:
        path = self._below(place)
        if path is not None:
            self.numbers.pop(path, None)
            self.events.append(Event("remove", path))


def after_cut(events: list[Event], k: int, cut: Cut) -> tuple[set[Path], dict[Path, bytes]]:
    """The folders and the files that are on the disk if the power fails after k operations."""
    rng = random.Random(k)  # noqa: S311 - a state, not a secret
    last_sync = {event.path: i for i, event in enumerate(events[:k]) if event.kind == "entries"}
    contents: dict[int, bytes] = {}
    folders, names = {Path()}, dict[Path, int]()
    for i, event in enumerate(events[:k]):
        if event.kind == "content":
            contents[event.file] = event.content
        if event.kind in ("content", "entries"):
            continue
        is_synced = last_sync.get(event.path.parent, -1) > i
        if not (is_synced or cut == "names first" or (cut == "random" and rng.random() < 0.5)):
            continue
        if event.kind == "mkdir":
            folders.add(event.path)
        elif event.kind == "remove":
            folders.discard(event.path)
            names.pop(event.path, None)
        else:
            for former in [path for path, file in names.items() if file == event.file]:
                del names[former]
            names[event.path] = event.file
    reachable = {path: file for path, file in names.items() if folders.issuperset(path.parents)}
    return folders, {path: contents.get(file, b"") for path, file in reachable.items()}


def restore(folder: Path, state: tuple[set[Path], dict[Path, bytes]]) -> None:
    """Write the folders and files of a state into a folder; what was there before is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in sorted(state[0]):
        if state[0].issuperset(path.parents):
            (folder / path).mkdir()
    for path, content in state[1].items():
        (folder / path).write_bytes(content)

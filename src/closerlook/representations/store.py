"""A store of spaces on disk, found by a hash of everything that determines them.

Spaces are memory-mapped and verified on every read. Many processes can use one store at the same time.

spaces/ab/ab….safetensors   one space; its key and name: the hash of everything that determines its vectors and labels
facts/ab/ab….json           the `EncoderInfo` of an encoder, so that its spaces are found without loading it
work/NAME/                  an extraction that is running, or was interrupted and can continue
work/NAME.lock              locked while a process works in that folder
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import filelock
import platformdirs

from closerlook.encoders.source import EncoderInfo
from closerlook.errors import DamagedFileError, InputError, WorkError
from closerlook.representations.atomic import PART, make_folder, move_into_place, set_aside
from closerlook.representations.checked_json import read_checked, write_checked
from closerlook.representations.files import load_mapped, read_header
from closerlook.representations.locking import try_lock
from closerlook.representations.space import Provenance, Space
from closerlook.representations.writer import SpaceWriter

FORMAT = 1
"""Part of every key; increase it when the same request would give different vectors or a different file layout."""

ABANDONED = 24 * 3600.0
"""After this many seconds without a change, `gc` removes unfinished work, unless a process has locked it."""

UNREADABLE = "cannot be read"
"""How the message of `verify` begins for a file that could not be opened."""

log = logging.getLogger("closerlook")


@dataclass(frozen=True)
class Entry:
    """One space in the store: its file, its size in bytes, and when it was last used (seconds since 1970)."""

    key: str
    path: Path
    size: int
    used: float
    n: int
    d: int
    provenance: Provenance


@dataclass(frozen=True)
class Removal:
    """A file or folder that `gc` removes, and why."""

    path: Path
    size: int
    reason: str


class Store:
    """The store in the folder `root`; by default CLOSERLOOK_STORE, else the user's cache folder.

    >>> from closerlook import extract
    >>> spaces = extract("bert-tiny", "toy-question", layers="last", store=Store("my-store"))
    >>> [entry.provenance.title() for entry in Store("my-store").entries()]
    ['bert-tiny · toy-question/train · layer 2 · cls']
    """

    def __init__(self, root: str | Path | None = None) -> None:
        chosen = root or os.environ.get("CLOSERLOOK_STORE") or platformdirs.user_cache_path("closerlook")
        self.root = Path(chosen).expanduser().absolute()
        if self.root.exists() and not self.root.is_dir():
            raise InputError(f"store {self.root} is a file; expected a folder (--store or CLOSERLOOK_STORE)")

    def get(self, key: str) -> Space | None:
        """The space with that key, memory-mapped and verified; None if it is missing or damaged."""
        path = self._path("spaces", key, ".safetensors")
        try:
            space = _load_verified(path)
        except FileNotFoundError:
            return None
        except DamagedFileError as error:
            log.warning("%s; it will be computed again", str(error).split(";")[0])
            return None
        except OSError as error:
            raise WorkError(f"{path} is in the store but cannot be read: {error.strerror or error}") from None
        with suppress(OSError):  # the store may be read-only
            os.utime(path)
        return space

    def load_info(self, key: str) -> EncoderInfo | None:
        """The saved info of an encoder; None if it is missing or damaged."""
        try:
            saved = read_checked(self._path("facts", key, ".json"))
            return EncoderInfo(**saved["facts"]) if saved["key"] == key else None
        except (OSError, DamagedFileError, KeyError, TypeError):
            return None

    def save_info(self, key: str, info: EncoderInfo) -> None:
        """Save the info of an encoder under that key; does nothing if the store is read-only."""
        with suppress(WorkError):
            write_checked(self._path("facts", key, ".json"), {"key": key, "facts": asdict(info)})

    @contextmanager
    def workspace(self, name: str) -> Iterator[Path]:
        """A folder for unfinished files, removed if the block ends without an error.

        If the process is killed, the next one finds its files there. If another process works in this folder already,
        or if the file system has no locks, a separate folder is created: both processes do the work, and neither waits.
        The separate folder is removed when the block ends, with or without an error, and no other process continues it.
        """
        folder = self.root / "work" / name
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            separate = folder.with_name(f"{name}-{secrets.token_hex(4)}")
            try:
                lock = try_lock(Path(f"{folder}.lock"), "what is interrupted there cannot be continued")
                folder = separate if lock is None else folder
            except filelock.Timeout:
                folder = separate
                lock = try_lock(Path(f"{folder}.lock"), "gc does not see it")  # `gc` removes only what is not locked
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from None
        is_separate, is_finished = folder.name != name, False
        try:
            yield folder
            is_finished = True
        finally:
            if is_finished or is_separate:
                shutil.rmtree(folder, ignore_errors=True)
            if lock is not None:
                lock.release()
            if is_separate:
                Path(f"{folder}.lock").unlink(missing_ok=True)

    def commit(self, writer: SpaceWriter) -> None:
        """Finish the space file and move it to its place in the store, in one step."""
        final = self._path("spaces", writer.key, ".safetensors")
        try:
            make_folder(final.parent)
            writer.finish()
            if final.is_dir():
                set_aside(final)
            move_into_place(writer.path, final)
        except OSError as error:
            raise self._unwritable(error) from None

    def entries(self) -> Iterator[Entry]:
        """Every space in the store, read from its header only; damaged files are skipped (see `verify`)."""
        for path in self._files():
            try:
                _, parts = read_header(path)
                n, d = parts["X"]["shape"]
                provenance = Provenance.from_dict(json.loads(parts["__metadata__"]["provenance"]))
                stat = path.stat()
            except (DamagedFileError, KeyError, ValueError, TypeError, OSError):
                continue
            yield Entry(path.stem, path, stat.st_size, stat.st_mtime, n, d, provenance)

    def verify(self) -> Iterator[tuple[Path, str | None]]:
        """Every space file in the store with the problem found in it, None for a good file; each is read completely."""
        for path in self._files():
            try:
                _load_verified(path)
                yield path, None
            except FileNotFoundError:
                continue  # removed by another process in the meantime
            except DamagedFileError as error:
                yield path, str(error).removeprefix(f"{path} ").split(";")[0]
            except OSError as error:
                yield path, f"{UNREADABLE}: {error.strerror or error}"

    def gc(
        self, *, unused_days: float | None = None, max_bytes: int | None = None, dry_run: bool = False
    ) -> list[Removal]:
        """Remove damaged files, abandoned work and old spaces; return what was removed, or would be (dry_run).

        Old spaces are those that were not used for `unused_days`, and the least recently used ones until the rest takes
        at most `max_bytes`. A file that cannot be opened stays: it may be intact.
        """
        damaged = [(path, problem) for path, problem in self.verify() if problem and not problem.startswith(UNREADABLE)]
        removals = [Removal(path, path.stat().st_size if path.exists() else 0, problem) for path, problem in damaged]
        intact = sorted(self.entries(), key=lambda entry: entry.used)
        intact = [entry for entry in intact if entry.path not in {removal.path for removal in removals}]
        total = sum(entry.size for entry in intact)
        for entry in intact:
            days = (time.time() - entry.used) / 86400
            if unused_days is not None and days > unused_days:
                removals.append(Removal(entry.path, entry.size, f"unused for {days:.0f} days"))
                total -= entry.size
            elif max_bytes is not None and total > max_bytes:
                removals.append(Removal(entry.path, entry.size, "the store exceeds its size limit"))
                total -= entry.size
        if not dry_run:
            for removal in removals:
                _remove(removal.path)
        return removals + list(self._remove_abandoned(dry_run))

    def _remove_abandoned(self, dry_run: bool) -> Iterator[Removal]:
        """Remove unfinished work that was not changed for `ABANDONED` seconds: part files, and folders not locked."""
        reason = "left behind by an interrupted run"
        for part in [path for path in self.root.rglob(f".*{PART}") if _age(path) > ABANDONED]:
            yield Removal(part, part.stat().st_size, reason)
            if not dry_run:
                part.unlink(missing_ok=True)
        paths = [path for path in (self.root / "work").glob("*") if path.is_dir() or path.suffix == ".lock"]
        for folder in sorted({path.with_name(path.name.removesuffix(".lock")) for path in paths}):
            lock_file = folder.with_name(f"{folder.name}.lock")
            if _age(lock_file, folder, *folder.rglob("*")) <= ABANDONED:
                continue
            had_lock = lock_file.exists()
            with suppress(OSError), filelock.FileLock(lock_file, timeout=0):  # in use, or no locks: it stays
                if folder.exists():
                    yield Removal(
                        folder, sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()), reason
                    )
                if not dry_run:
                    shutil.rmtree(folder, ignore_errors=True)
                if not (dry_run and had_lock):
                    lock_file.unlink(missing_ok=True)

    def _unwritable(self, error: OSError) -> WorkError:
        return WorkError(f"store {self.root} cannot be written: {error.strerror}; set --store or CLOSERLOOK_STORE")

    def _files(self) -> list[Path]:
        return sorted((self.root / "spaces").glob("*/*.safetensors"))

    def _path(self, kind: str, key: str, suffix: str) -> Path:
        return self.root / kind / key[:2] / f"{key}{suffix}"


def _load_verified(path: Path) -> Space:
    """The space in a file of the store; raises if its content does not match its checksum or its name."""
    if path.is_dir():
        raise DamagedFileError(f"{path} is a folder; expected a file")
    space, meta = load_mapped(path)
    if meta.get("key") != path.stem:
        raise DamagedFileError(f"{path} holds a different space than its name says")
    return space


def open_store(store: Store | str | Path | None) -> Store:
    """The store itself, or the store in that folder."""
    return store if isinstance(store, Store) else Store(store)


def _remove(path: Path) -> None:
    """Remove a file, or a folder in its place."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _age(*paths: Path) -> float:
    """Seconds since the latest change of any of these paths; missing paths are ignored."""
    changed = 0.0
    for path in paths:
        with suppress(OSError):
            changed = max(changed, path.stat().st_mtime)
    return time.time() - changed


def content_key(content: Mapping[str, object]) -> str:
    """Hex digest of a description in plain JSON values; the same on every machine."""
    text = json.dumps({"format": FORMAT, **content}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()

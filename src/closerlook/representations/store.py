"""A content-addressed store of spaces on disk: memory-mapped, checked on every read, safe for many processes at once.

spaces/ab/ab….safetensors   one space; its name is the hash of what it was made from
facts/ab/ab….json           what is known of an encoder, so that it need not be loaded to find its spaces
work/NAME/                  an extraction under way, or one that was interrupted and can go on
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import filelock
import platformdirs

from closerlook.encoders.source import EncoderInfo
from closerlook.errors import InputError, WorkError
from closerlook.representations.atomic import PART, atomic_write
from closerlook.representations.draft import Draft
from closerlook.representations.files import TornFileError, open_mapped, read_header
from closerlook.representations.space import Provenance, Space

FORMAT = 1
"""Goes into every key: raise it when the same request would give other vectors or another layout."""

ABANDONED = 24 * 3600.0
"""Seconds after which work that nobody holds is swept away by `gc`."""

UNREADABLE = "cannot be read"
"""How `verify` begins what it says of a file that it could not look into."""

log = logging.getLogger("closerlook")


@dataclass(frozen=True)
class Entry:
    """One space in the store: its file, how large it is, and when it was last used (seconds since 1970)."""

    key: str
    path: Path
    size: int
    used: float
    n: int
    d: int
    provenance: Provenance


@dataclass(frozen=True)
class Swept:
    """A file or folder that `gc` removed, or would, and why."""

    path: Path
    size: int
    reason: str


class Store:
    """The store in `root`: the argument, else CLOSERLOOK_STORE, else the user's cache folder."""

    def __init__(self, root: str | Path | None = None) -> None:
        chosen = root or os.environ.get("CLOSERLOOK_STORE") or platformdirs.user_cache_path("closerlook")
        self.root = Path(chosen).expanduser().absolute()
        if self.root.exists() and not self.root.is_dir():
            raise InputError(f"store {self.root} is a file; expected a folder (--store or CLOSERLOOK_STORE)")

    def get(self, key: str) -> Space | None:
        """The space under that key, memory-mapped and checked; None if there is none or it is damaged."""
        path = self._path("spaces", key, ".safetensors")
        try:
            space = _checked(path)
        except FileNotFoundError:
            return None
        except TornFileError as error:
            log.warning("%s; it will be computed again", str(error).split(";")[0])
            return None
        except OSError as error:
            raise WorkError(f"{path} is in the store but cannot be read: {error.strerror or error}") from None
        with suppress(OSError):  # a store that one may only read
            os.utime(path)
        return space

    def info(self, key: str) -> EncoderInfo | None:
        """What was remembered of an encoder, None if nothing or if the note is damaged."""
        try:
            note = json.loads(self._path("facts", key, ".json").read_bytes())
            return EncoderInfo(**note["facts"]) if note["checksum"] == content_key(note["facts"]) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def remember(self, key: str, info: EncoderInfo) -> None:
        """Facts kept under that key, if the store may be written to."""
        with suppress(WorkError), atomic_write(self._path("facts", key, ".json")) as stream:
            stream.write(json.dumps({"facts": asdict(info), "checksum": content_key(asdict(info))}).encode())

    @contextmanager
    def workspace(self, name: str) -> Iterator[Path]:
        """A folder to work in, removed when the block ends well; what a killed process leaves there, the next finds.

        Where another process is at the same work, a private folder is given instead: both do it, neither waits.
        """
        folder = self.root / "work" / name
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(f"{folder}.lock", timeout=0)
            try:
                lock.acquire()
            except filelock.Timeout:
                folder = folder.with_name(f"{name}-{secrets.token_hex(4)}")
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from None
        try:
            yield folder
        except BaseException:
            if not lock.is_locked:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        else:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            lock.release()

    def commit(self, draft: Draft) -> None:
        """The finished draft put under its key, in one step."""
        final = self._path("spaces", draft.key, ".safetensors")
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            draft.seal()
            os.replace(draft.path, final)
        except OSError as error:
            raise self._unwritable(error) from None

    def entries(self) -> Iterator[Entry]:
        """Every space in the store, by its header alone; damaged ones are left to `verify`."""
        for path in self._files():
            try:
                _, parts = read_header(path)
                n, d = parts["X"]["shape"]
                provenance = Provenance.from_dict(json.loads(parts["__metadata__"]["provenance"]))
                stat = path.stat()
            except (TornFileError, KeyError, ValueError, TypeError, OSError):
                continue
            yield Entry(path.stem, path, stat.st_size, stat.st_mtime, n, d, provenance)

    def verify(self) -> Iterator[tuple[Path, str | None]]:
        """Every file in the store, read whole, and what is wrong with it (None: nothing)."""
        for path in self._files():
            try:
                _checked(path)
                yield path, None
            except FileNotFoundError:
                continue  # swept by somebody else meanwhile
            except TornFileError as error:
                yield path, str(error).removeprefix(f"{path} ").split(";")[0]
            except OSError as error:
                yield path, f"{UNREADABLE}: {error.strerror or error}"

    def gc(
        self, *, unused_days: float | None = None, max_bytes: int | None = None, dry_run: bool = False
    ) -> list[Swept]:
        """What was swept: damaged files, abandoned work, and spaces long unused or over the size, oldest first.

        A file that cannot be read is not known to be damaged, and stays.
        """
        damaged = [(path, problem) for path, problem in self.verify() if problem and not problem.startswith(UNREADABLE)]
        swept = [Swept(path, path.stat().st_size if path.exists() else 0, problem) for path, problem in damaged]
        kept = sorted(self.entries(), key=lambda entry: entry.used)
        kept = [entry for entry in kept if entry.path not in {item.path for item in swept}]
        total = sum(entry.size for entry in kept)
        for entry in kept:
            days = (time.time() - entry.used) / 86400
            if unused_days is not None and days > unused_days:
                swept.append(Swept(entry.path, entry.size, f"unused for {days:.0f} days"))
                total -= entry.size
            elif max_bytes is not None and total > max_bytes:
                swept.append(Swept(entry.path, entry.size, "the store is over its size"))
                total -= entry.size
        if not dry_run:
            for item in swept:
                item.path.unlink(missing_ok=True)
        return swept + list(self._sweep_work(dry_run))

    def _sweep_work(self, dry_run: bool) -> Iterator[Swept]:
        """Work and files under way that no living process holds, a day after they were last touched."""
        reason = "left behind by an interrupted run"
        for part in [path for path in self.root.rglob(f".*{PART}") if _age(path) > ABANDONED]:
            yield Swept(part, part.stat().st_size, reason)
            if not dry_run:
                part.unlink(missing_ok=True)
        for lock_file in (self.root / "work").glob("*.lock"):
            folder = lock_file.with_suffix("")
            if _age(lock_file, folder, *folder.rglob("*")) <= ABANDONED:
                continue
            with suppress(filelock.Timeout), filelock.FileLock(lock_file, timeout=0):
                if folder.exists():
                    yield Swept(
                        folder, sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()), reason
                    )
                if not dry_run:
                    shutil.rmtree(folder, ignore_errors=True)
                    lock_file.unlink(missing_ok=True)

    def _unwritable(self, error: OSError) -> WorkError:
        return WorkError(f"store {self.root} cannot be written: {error.strerror}; set --store or CLOSERLOOK_STORE")

    def _files(self) -> list[Path]:
        return sorted((self.root / "spaces").glob("*/*.safetensors"))

    def _path(self, kind: str, key: str, suffix: str) -> Path:
        return self.root / kind / key[:2] / f"{key}{suffix}"


def _checked(path: Path) -> Space:
    """The space in a file of the store, found to be what was written there under that name."""
    space, meta = open_mapped(path)
    if meta.get("key") != path.stem:
        raise TornFileError(f"{path} holds another space than its name says")
    return space


def _age(*paths: Path) -> float:
    """Seconds since any of them was last touched; those that are gone do not count."""
    touched = 0.0
    for path in paths:
        with suppress(OSError):
            touched = max(touched, path.stat().st_mtime)
    return time.time() - touched


def content_key(content: dict[str, Any]) -> str:
    """Hex digest of a JSON-able description: the same wherever and whenever it is made."""
    text = json.dumps({"format": FORMAT, **content}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()

"""Write a file so that it appears complete or not at all, also after a power failure.

Also: check before any work that a folder can be written.
"""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from closerlook.errors import InputError, WorkError

PART = ".part"
"""The suffix of a file that is being written; if one remains, its process was killed."""

DAMAGED = ".damaged"
"""The suffix of a file that was set aside because its content is damaged."""

NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EBADF}
"""Errors of systems that cannot flush a folder to the disk."""


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose content becomes the file `path` if the block ends without an error, and is discarded otherwise."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}{PART}")
    try:
        make_folder(path.parent)
        with part.open("xb") as stream:
            yield stream
        move_into_place(part, path)
    except OSError as error:
        raise WorkError(f"{path} cannot be written: {error.strerror or error}; no partial file remains") from None
    finally:
        with suppress(OSError):
            part.unlink()


def move_into_place(part: Path, path: Path) -> None:
    """Rename a file or folder, so that after a power failure `path` is what it was before, or is complete.

    The content is flushed to the disk before the rename, and the folder with the new name after it.
    """
    for written in [part, *part.rglob("*")] if part.is_dir() else [part]:
        sync(written)
    os.replace(part, path)
    sync(path.parent)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and flush the folders that contain the new ones to the disk."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in new:
        sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file, or the list of files in a folder, from the memory of the system to the disk."""
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":
        return  # Windows opens no folders
    try:
        descriptor = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if not is_folder or error.errno not in NO_FOLDER_SYNC:
            raise


def set_aside(path: Path) -> Path:
    """Rename a damaged file, or a folder in its place, and return its new path; the suffix says that it is damaged."""
    aside = path.with_name(f"{path.name}.{secrets.token_hex(3)}{DAMAGED}")
    try:
        os.replace(path, aside)
    except OSError as error:
        raise WorkError(f"{path} is damaged and cannot be renamed: {error.strerror or error}; move it away") from None
    return aside


def check_writable(folder: Path, option: str = "out") -> None:
    """Raise InputError if files cannot be written to a folder, existing or new; nothing remains of the trial.

    option: the name of the option that names the folder, for the message.
    """
    folder = folder.expanduser().absolute()
    nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if nearest.is_symlink() and not nearest.exists():
        raise InputError(f"{option} {folder} cannot be written: {nearest} is a link to nowhere; choose another folder")
    if not nearest.is_dir():
        where = "" if nearest == folder else f"{nearest} "
        raise InputError(f"{option} {folder}: {where}is a file; expected a folder, existing or new")
    try:
        with tempfile.TemporaryDirectory(dir=nearest, prefix=".closerlook-"):
            pass
    except OSError as error:
        raise InputError(
            f"{option} {folder} cannot be written: {error.strerror or error}; choose another folder"
        ) from None

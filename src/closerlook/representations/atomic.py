"""Write a file so that it appears complete or not at all; check before any work that a folder can be written."""

from __future__ import annotations

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


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose content becomes the file `path` if the block ends without an error, and is discarded otherwise."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}{PART}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
    except OSError as error:
        raise WorkError(f"{path} cannot be written: {error.strerror or error}; no partial file remains") from None
    finally:
        with suppress(OSError):
            part.unlink()


def check_writable(folder: Path, option: str = "out") -> None:
    """Raise InputError if files cannot be written to a folder, existing or new; nothing remains of the trial.

    option: the name of the option that names the folder, for the message.
    """
    folder = folder.expanduser().absolute()
    nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
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

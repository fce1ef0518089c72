"""Write a file so that it appears complete or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from closerlook.errors import WorkError

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

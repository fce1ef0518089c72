"""The memory that a file of vectors may take; it is checked before the file is read."""

from __future__ import annotations

import re
from pathlib import Path

from closerlook.errors import InputError

MAX_MEMORY = 2_000_000_000
"""Bytes that any file may take; a file that is larger than half of this on disk may take twice its size."""

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def check_memory(path: Path, size: int, max_memory: int | None) -> None:
    """Raise InputError if the content of a file takes more bytes than allowed.

    max_memory: the limit in bytes; None: `MAX_MEMORY`, or twice the size of the file if that is more.
    """
    limit = max(MAX_MEMORY, 2 * path.stat().st_size) if max_memory is None else max_memory
    if size > limit:
        raise InputError(
            f"{path} takes {_gigabytes(size)} in memory; the limit is {_gigabytes(limit)}: if you trust the file, pass "
            "--max-memory with more (max_memory= in Python)"
        )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 10**8 else f"{size:,} bytes"


def parse_memory(text: str) -> int:
    """The number of bytes that a text such as '4GB' or '500 MB' stands for.

    >>> parse_memory("4GB"), parse_memory("500 mb"), parse_memory("1000")
    (4000000000, 500000000, 1000)
    """
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,3})?) ?([kmgt]?b)?", text.strip(), re.IGNORECASE | re.ASCII)
    if found is None:
        raise InputError(f"memory {text!r} is no size; expected a number with a unit, such as 4GB or 500MB")
    return int(float(found[1]) * UNITS[(found[2] or "").upper()])

"""JSON files with a checksum of their own content as the first entry, so that a damaged file is noticed when read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xxhash

from closerlook.errors import DamagedFileError
from closerlook.escaping import parse_json
from closerlook.representations.atomic import atomic_write

CHECKSUM = "checksum"
UNWRITTEN = "0" * 32
"""The placeholder for the checksum while the checksum is computed."""

START = re.compile(rb'\{\s*"checksum": "([0-9a-f]{32})"')
"""How a file with a checksum begins."""


def write_checked(path: Path, content: Mapping[str, Any], *, indent: int | None = None, allow_nan: bool = True) -> None:
    """Write an object as JSON, with a checksum of the file's bytes as its first entry; completely or not at all."""
    values = {CHECKSUM: UNWRITTEN} | {name: value for name, value in content.items() if name != CHECKSUM}
    text = json.dumps(values, ensure_ascii=False, indent=indent, allow_nan=allow_nan).encode()
    with atomic_write(path) as stream:
        stream.write(fill_checksum(text, text.index(UNWRITTEN.encode())))


def fill_checksum(content: bytes, start: int) -> bytes:
    """The content with its own checksum at position `start`, where the placeholder is."""
    return content[:start] + _digest(content, start) + content[start + len(UNWRITTEN) :]


def matches_checksum(content: bytes, start: int) -> bool:
    """Whether the checksum at position `start` is that of the content."""
    return content[start : start + len(UNWRITTEN)] == _digest(content, start)


def _digest(content: bytes, start: int) -> bytes:
    """The checksum of the content with the placeholder at position `start`."""
    digest = xxhash.xxh3_128(content[:start])
    digest.update(UNWRITTEN.encode())
    digest.update(memoryview(content)[start + len(UNWRITTEN) :])
    return digest.hexdigest().encode()


def verify_checked(path: Path, content: bytes) -> None:
    """Raise DamagedFileError unless the content of a file begins with a checksum, and matches it."""
    start = START.match(content)
    if start is None:
        raise DamagedFileError(f"{path} has no checksum: it is damaged, or from an earlier version")
    if not matches_checksum(content, start.start(1)):
        raise DamagedFileError(f"{path} does not match its checksum: it was damaged or edited")


def read_checked(path: Path, *, required: bool = True) -> dict[str, Any]:
    """The object in a file, without its checksum; raises DamagedFileError if file and checksum do not match.

    required: whether a file without a checksum counts as damaged. Earlier versions of this library wrote none.
    """
    try:
        content = path.read_bytes()
    except IsADirectoryError:
        raise DamagedFileError(f"{path} is a folder; expected a file") from None
    if required or START.match(content):
        verify_checked(path, content)
    try:
        values = parse_json(content)
    except ValueError as error:
        raise DamagedFileError(f"{path} is not JSON ({error})") from None
    if not isinstance(values, dict):
        raise DamagedFileError(f"{path} contains {type(values).__name__}; expected a JSON object")
    values.pop(CHECKSUM, None)
    return values

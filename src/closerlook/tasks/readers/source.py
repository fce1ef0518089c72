"""Shared by all readers of text files: decoded lines, and the options that a caller may give."""

from __future__ import annotations

import codecs
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from closerlook.errors import InputError
from closerlook.tasks.task import DEV_SPLITS, Annotated, Unit

Reading = tuple[Unit, dict[str, list[Annotated]]]
"""The content of one file: the unit of its examples, and the annotated texts of each split."""

SPLITS = ("train", *DEV_SPLITS, "test")
"""The names of splits that are recognised in file names and in a column `split`."""

short_repr = reprlib.repr
"""A function that formats a value for an error message: escaped, on one line, shortened if long or deeply nested."""


@dataclass(frozen=True)
class Options:
    """The options for reading a file; `FORMATS` says which of them each format accepts."""

    label: str | None = None
    words: str | None = None
    text: str | None = None
    unit: Unit | None = None
    empty_nodes: bool = False
    split_column: str | None = None
    find_splits: bool = False  # neither the file's name nor an option names the split: a column `split` may

    def given(self) -> list[str]:
        """The names of the options that are not at their default."""
        options = [field for field in fields(self) if field.name != "find_splits"]
        return [field.name for field in options if getattr(self, field.name) != field.default]


def read_bytes(path: Path) -> bytes:
    """The content of a file, without a byte order mark."""
    try:
        return path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason}); expected a text file") from None


def read_text(path: Path) -> str:
    """The content of a UTF-8 file, with `\\n` as its only line ending."""
    data = read_bytes(path)
    try:
        return data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        problem = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        raise InputError(f"{path}: {problem}; expected UTF-8 text: convert the file first") from None


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its number from 1; unlike `str.splitlines`, it splits only at `\\n`, not at U+2028 and others."""
    return enumerate(text.split("\n"), start=1)

"""Shared by all readers of files: decoded text, options that a caller may give, and what a reader returns."""

from __future__ import annotations

import codecs
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from closerlook.errors import InputError
from closerlook.tasks.task import Annotated, Unit

short_repr = reprlib.repr
"""A function that formats a value for an error message: escaped, on one line, shortened if long or deeply nested."""

SHOWN = 5
"""How many line numbers or examples a message lists."""


@dataclass
class Reading:
    """The content of one file: the unit of its examples, and the annotated texts of each split.

    lines: for each split, the line (or row) of each text. notes: what a user should know about the file.
    number_name: what `lines` counts: lines of a file, or rows of a table. is_table: whether it was read from records
    with columns, so that labels may be numbers.
    """

    unit: Unit
    splits: dict[str, list[Annotated]]
    lines: dict[str, list[int]]
    notes: list[str] = field(default_factory=list)
    number_name: str = "line"
    is_table: bool = False


@dataclass(frozen=True)
class Options:
    """The options for reading a file; `FORMATS` says which of them each format accepts."""

    label: str | None = None
    words: str | None = None
    text: str | None = None
    text_b: str | None = None
    unit: Unit | None = None
    empty_nodes: bool = False
    split_column: str | None = None
    join: str | None = None
    bins: str | None = None
    keep: str | None = None
    has: str | None = None
    encoding: str | None = None
    find_splits: bool = False  # neither the file's name nor an option names the split: a column `split` may

    def given(self) -> list[str]:
        """The names of the options that are not at their default."""
        options = [field for field in fields(self) if field.name != "find_splits"]
        return [field.name for field in options if getattr(self, field.name) != field.default]


def listed_lines(numbers: Sequence[int], name: str = "line") -> str:
    """Numbers of lines for a message.

    >>> listed_lines([3]), listed_lines([3, 8, 9, 12, 15, 20, 31])
    ('line 3', 'lines 3, 8, 9, 12, 15 and 2 more')
    """
    shown = ", ".join(str(number) for number in numbers[:SHOWN])
    more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return f"{name}{'' if len(numbers) == 1 else 's'} {shown}{more}"


def raise_problems(where: str, problems: Sequence[str]) -> None:
    """Raise one InputError that lists the problems of a file, each of which begins with its line; none: do nothing."""
    if len(problems) == 1:
        raise InputError(f"{where}, {problems[0]}")
    if problems:
        more = f"; and {len(problems) - 2 * SHOWN} more" if len(problems) > 2 * SHOWN else ""
        raise InputError(f"{where} has {len(problems)} problems: {'; '.join(problems[: 2 * SHOWN])}{more}")


def read_bytes(path: Path) -> bytes:
    """The content of a file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason}); expected a text file") from None


def read_text(path: Path) -> str:
    """The content of a UTF-8 file (or UTF-16, if its first bytes say so), with `\\n` as its only line ending."""
    return decode(path, read_bytes(path))[0]


def read_any_text(path: Path, encoding: str | None) -> tuple[str, list[str]]:
    """The content of a text file, and a note if it is not Unicode. encoding: its name in Python; None: detected."""
    return decode(path, read_bytes(path), encoding=encoding, guess=True)


def decode(path: Path, data: bytes, *, encoding: str | None = None, guess: bool = False) -> tuple[str, list[str]]:
    """The text of these bytes with `\\n` as its only line ending, and notes about its encoding.

    Without `encoding`, UTF-8 and UTF-16 are recognised. guess: other text is read as Windows-1252 or Latin-1.
    """
    notes: list[str] = []
    name = encoding or _unicode_encoding(data)
    try:
        text = data.decode(name)
    except LookupError:
        raise InputError(f"encoding {name!r} is unknown; expected a name such as utf-8, cp1252 or shift_jis") from None
    except UnicodeDecodeError as error:
        problem = f"byte 0x{data[error.start]:02x} at offset {error.start} is not {name.upper().removesuffix('-SIG')}"
        if encoding or not guess or b"\0" in data:
            expected = "text in that encoding" if encoding else "UTF-8 text: convert the file first"
            raise InputError(f"{path}: {problem}; expected {expected}") from None
        text, name = _western(data)
        line = data.count(b"\n", 0, error.start) + 1
        notes.append(f"{path}: {problem} (line {line}); it is read as {name}: if it is not, give encoding=")
    return text.removeprefix("\ufeff").replace("\r\n", "\n"), notes


def _unicode_encoding(data: bytes) -> str:
    """UTF-16 if the first bytes are its mark, or if every second byte of the first ones is zero; otherwise UTF-8."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    start = data[:64]
    if len(start) >= 4 and not any(start[1::2]) and all(start[::2]):
        return "utf-16-le"
    if len(start) >= 4 and not any(start[::2]) and all(start[1::2]):
        return "utf-16-be"
    return "utf-8-sig"


def _western(data: bytes) -> tuple[str, str]:
    """The text in the usual encoding of Windows in Western Europe, or else in Latin-1, and the encoding's name."""
    try:
        return data.decode("cp1252"), "Windows-1252 (cp1252)"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "Latin-1 (latin-1)"


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its number from 1; unlike `str.splitlines`, it splits only at `\\n`, not at U+2028 and others."""
    return enumerate(text.split("\n"), start=1)

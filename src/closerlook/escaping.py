"""Text of users, escaped: shown without control characters, safe in spreadsheets; and JSON of any depth."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff\ufffe\uffff]")
"""Characters that are not shown as they are.

Control characters, line separators, overrides of the writing direction, halves of surrogate pairs, and two
non-characters. XML forbids most of them, and terminals act on some.
"""

AMBIGUOUS = re.compile(r"\\(?:\\|x[0-9a-f]{2}|u[0-9a-f]{4})")
"""What `show_text` writes for a hidden character or a backslash."""

LONGEST_NAME = 400
"""Characters of a name in a figure: to measure the width of a text of 10,000 characters takes seconds."""

FORMULA = re.compile("^'*[=+\\-@\t\r\n]")
"""The start of a cell that a spreadsheet may take for a formula, after any number of apostrophes."""


def show_text(text: str) -> str:
    r"""The text with an escape such as `\x00` for each hidden character; different texts are shown differently.

    >>> show_text("a\0"), show_text("rain\u202e"), show_text("plain \\ text")
    ('a\\x00', 'rain\\u202e', 'plain \\ text')

    If a text already contains such an escape, its backslashes are doubled.

    >>> show_text("a\\x00")
    'a\\\\x00'
    """
    if text.isprintable() and "\\" not in text:
        return text
    if not HIDDEN.search(text) and not AMBIGUOUS.search(text):
        return text
    return HIDDEN.sub(_escape, text.replace("\\", "\\\\"))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def show_name(text: str) -> str:
    """The text as `show_text` shows it; if it is longer than LONGEST_NAME, its start and a part of its hash.

    >>> len(show_name("x" * 10_000)), show_name("x" * 10_000) == show_name("x" * 10_001)
    (400, False)
    """
    shown = show_text(text)
    if len(shown) <= LONGEST_NAME:
        return shown
    mark = f" … ({hashlib.sha256(shown.encode()).hexdigest()[:12]})"
    return shown[: LONGEST_NAME - len(mark)] + mark


def show_all(value: Any, show: Callable[[str], str] = show_text) -> Any:
    """A JSON value in which `show` has been applied to every text, the keys of objects included."""
    if isinstance(value, str):
        return show(value)
    if isinstance(value, dict):
        return {show_all(key, show): show_all(part, show) for key, part in value.items()}
    return [show_all(part, show) for part in value] if isinstance(value, list) else value


def csv_text(text: str) -> str:
    """A text for a cell of a CSV file, preceded by an apostrophe if a spreadsheet might take it for a formula.

    >>> csv_text("=1+1"), csv_text("-LRB-"), csv_text("NOUN"), csv_text("''")
    ("'=1+1", "'-LRB-", 'NOUN', "''")
    """
    return f"'{text}" if FORMULA.match(text) else text


def from_csv_text(cell: str) -> str:
    """The text that `csv_text` wrote.

    >>> from_csv_text("'=1+1"), from_csv_text("NOUN"), from_csv_text("''")
    ('=1+1', 'NOUN', "''")
    """
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def parse_json(data: str | bytes) -> Any:
    """The JSON value; ValueError for anything else, also for values that are nested too deeply."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None

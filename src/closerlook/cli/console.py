"""Output of all commands: tables and JSON on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from closerlook.escaping import show_text
from closerlook.progress import terminal_bar

QUIET_SECONDS = 10.0
"""Seconds between two lines of progress, if standard error is not a terminal."""

HALVES = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which no encoding of a terminal can write; JSON has escapes for them."""


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[str] = ()
) -> None:
    """Print a table on standard output; the columns in `numbers` are right-aligned."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(show_text(title)) if title else None, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(Text(column), justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else _lines_of(str(cell))) for cell in row))
    width = None if sys.stdout.isatty() else 160
    Console(width=width).print(table)


def _lines_of(text: str) -> str:
    """The text of a cell without control characters except line breaks."""
    return "\n".join(map(show_text, text.split("\n")))


def print_json(value: object) -> None:
    """Print one JSON value on standard output; arrays become lists, and NaN becomes null."""
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
    sys.stdout.write(HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text) + "\n")


def _plain(value: object) -> object:
    """The value in types that JSON knows."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def note(message: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(f"{show_text(message)}\n")


class _Formatter(logging.Formatter):
    """Messages without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """The text of a log message."""
        return _lines_of(super().format(record))


def show_notes() -> None:
    """Print log messages of this package on standard error, one line each."""
    log = logging.getLogger("closerlook")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Formatter("%(message)s"))
        log.addHandler(handler)
    log.setLevel(logging.INFO)


@contextmanager
def progress(name: str, after: float = 0.0) -> Iterator[Callable[[int, int], None]]:
    """Yield a function to call with the amounts done and in total; it shows a bar, or lines if not on a terminal.

    name: what is counted. after: show nothing for this many seconds.
    """
    from rich.console import Console

    if not Console(stderr=True).is_terminal:
        yield _lines(name, after)
        return
    with terminal_bar(name, after) as show:
        yield show


def _lines(name: str, after: float) -> Callable[[int, int], None]:
    start = time.monotonic()
    due = start + (after or QUIET_SECONDS)

    def show(done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due and done:
            due = now + QUIET_SECONDS
            left = (now - start) * (total - done) / done
            known = f", about {left:.0f} s left" if 10 * done >= total else ""  # the first parts are not typical
            note(f"{name}: {done:,} of {total:,}{known}")

    return show


def bytes_text(size: int) -> str:
    """A number of bytes as text: '34.5 MB'."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"

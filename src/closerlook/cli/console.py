"""What every command shares: tables and JSON on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

QUIET_SECONDS = 10.0
"""Where standard error is a file, progress is a line this often."""


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[str] = ()
) -> None:
    """A table on standard output; the columns in `numbers` are aligned on the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    width = None if sys.stdout.isatty() else 160
    Console(width=width).print(table)


def print_json(value: Any) -> None:
    """One JSON value on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def note(message: str) -> None:
    """A line on standard error, beside the results."""
    sys.stderr.write(f"{message}\n")


def show_notes() -> None:
    """The package's own log messages sent to standard error, a line each."""
    log = logging.getLogger("closerlook")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
    log.setLevel(logging.INFO)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A function to call with what is done and what there is in all: a bar with the time left, or lines in a file."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(what)
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(what: str) -> Callable[[int, int], None]:
    start = last = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= QUIET_SECONDS and done:
            last = now
            left = (now - start) * (total - done) / done
            note(f"{what}: {done:,} of {total:,}, about {left:.0f} s left")

    return show


def bytes_text(size: int) -> str:
    """A size for people: '34.5 MB'."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"

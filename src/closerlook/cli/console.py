"""What every command shares: tables and JSON on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import logging
import math
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

    table = Table(title=Text(title) if title else None, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(Text(column), justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    width = None if sys.stdout.isatty() else 160
    Console(width=width).print(table)


def print_json(value: Any) -> None:
    """One JSON value on standard output; arrays become lists, and NaN becomes null."""
    sys.stdout.write(json.dumps(_plain(value), ensure_ascii=False, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
def progress(what: str, after: float = 0.0) -> Iterator[Callable[[int, int], None]]:
    """A function to call with what is done and what there is in all: a bar with the time left, or lines in a file.

    after: show nothing for this many seconds.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(what, after)
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("left"), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(what, total=None)
    start = time.monotonic()

    def show(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if time.monotonic() - start >= after:
            bar.start()

    try:
        if not after:
            bar.start()
        yield show
    finally:
        if bar.live.is_started:
            bar.stop()


def _lines(what: str, after: float) -> Callable[[int, int], None]:
    start = time.monotonic()
    due = start + (after or QUIET_SECONDS)

    def show(done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due and done:
            due = now + QUIET_SECONDS
            left = (now - start) * (total - done) / done
            known = f", about {left:.0f} s left" if 10 * done >= total else ""  # the first parts are not typical
            note(f"{what}: {done:,} of {total:,}{known}")

    return show


def bytes_text(size: int) -> str:
    """A size for people: '34.5 MB'."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"

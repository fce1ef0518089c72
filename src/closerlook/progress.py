"""Progress of long work in Python: a bar in a notebook or on a terminal, unless the caller shows its own.

Nothing is shown for work of less than two seconds, nor if standard error is a file. `show_progress(False)`, or the
environment variable CLOSERLOOK_PROGRESS=0, turns the bars off.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

Progress = Callable[[int, int], None]
"""A function that is called with the amount of work done and the total."""

VARIABLE = "CLOSERLOOK_PROGRESS"
"""The environment variable that turns bars off: 0, false, no or off."""

AFTER = 2.0
"""Seconds without a bar: shorter work needs none."""

UPDATE = 0.1
"""Seconds between two updates of a bar in a notebook."""


class _Setting:
    """Whether bars are shown (None: as the environment variable says), and in how many calls within each other."""

    on: bool | None = None
    depth = 0


def show_progress(on: bool = True) -> None:
    """Turn the progress bars of this process on or off; by default they are on.

    >>> show_progress(False)
    >>> show_progress()
    """
    _Setting.on = on


@contextmanager
def progress_bar(name: str, given: Progress | None) -> Iterator[Progress | None]:
    """Yield the function that work must call with its progress, or None if nothing shows it.

    name: what is counted. given: the function that the caller of the work has given; if there is one, it is used. If
    the work is a part of other work that shows its progress, it has no bar of its own.
    """
    with bars_off() as is_part:
        if given is not None or is_part or not _is_on():
            yield given
        elif _shell() is not None:
            with _notebook_bar(name) as show:
                yield show
        elif sys.stderr is not None and sys.stderr.isatty():
            with terminal_bar(name, AFTER) as show:
                yield show
        else:
            yield None


@contextmanager
def bars_off() -> Iterator[bool]:
    """Show no bars within the block, because the caller shows progress itself; yield whether that was so before."""
    _Setting.depth += 1
    try:
        yield _Setting.depth > 1
    finally:
        _Setting.depth -= 1


def _is_on() -> bool:
    if _Setting.on is not None:
        return _Setting.on
    return os.environ.get(VARIABLE, "").strip().lower() not in {"0", "false", "no", "off"}


# ---- on a terminal ----


@contextmanager
def terminal_bar(name: str, after: float = 0.0) -> Iterator[Progress]:
    """Yield a function that shows a bar on standard error after `after` seconds; the bar is removed at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TextColumn("left"), TimeRemainingColumn())
    bar = RichProgress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(name, total=None)
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


# ---- in a notebook ----


def _shell() -> Any:
    """The shell of a notebook's kernel; None anywhere else."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


@contextmanager
def _notebook_bar(name: str) -> Iterator[Progress]:
    """Yield a function that shows a bar below the cell of a notebook; it is removed at the end.

    It is plain HTML, so that it needs no package of widgets.
    """
    from IPython.display import HTML, display

    start = time.monotonic()
    due, shown = start + AFTER, None

    def show(done: int, total: int) -> None:
        nonlocal due, shown
        now = time.monotonic()
        if now < due:
            return
        due = now + UPDATE
        bar = HTML(bar_html(name, done, total, now - start))
        if shown is None:
            shown = display(bar, display_id=True)
        else:
            shown.update(bar)

    try:
        yield show
    finally:
        if shown is not None:
            shown.update(HTML(""))


def bar_html(name: str, done: int, total: int, seconds: float) -> str:
    """A bar as HTML, with the seconds that are left if it goes on like this.

    >>> bar_html("examples", 30, 90, 4.0)
    '<progress value="30" max="90"></progress> examples: 30 of 90, about 8 s left'
    """
    left = f", about {seconds * (total - done) / done:.0f} s left" if done else ""
    return f'<progress value="{done}" max="{total}"></progress> {escape(name)}: {done:,} of {total:,}{left}'

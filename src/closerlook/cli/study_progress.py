"""The progress of `closerlook study` on a terminal or in a file."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from closerlook.escaping import show_text

if TYPE_CHECKING:
    from closerlook.study.runner import ProgressCallback, StudyState

QUIET_SECONDS = 10.0
BAR_SECONDS = 0.25
"""Seconds between two progress lines if standard error is a file, and between two updates of the bar on a terminal."""


def span(seconds: float) -> str:
    """A duration as text: '12 s', '3 min', '2.5 h'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class watching:  # noqa: N801 - a context manager, used like a function
    """Yields a function that shows the progress of a study: a bar on a terminal, a line every few seconds in a file."""

    def __enter__(self) -> ProgressCallback:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        console = Console(stderr=True)
        self._bar = None
        self._due = time.monotonic() + (0.0 if console.is_terminal else QUIET_SECONDS)
        if console.is_terminal:
            columns = (
                TextColumn("cells"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[details]}", markup=False),
            )
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task("cells", total=None, details="")
            self._bar.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _show(self, state: StudyState) -> None:
        now = time.monotonic()
        if now < self._due:  # it is called after every cell, and to look up the memory takes longer than a small cell
            return
        if self._bar is not None:
            self._due = now + BAR_SECONDS
            self._bar.update(self._task, completed=len(state.done), total=state.total, details=_progress_details(state))
        else:
            self._due = now + QUIET_SECONDS
            about = "about " if any(state.coming.values()) else ""
            sys.stderr.write(
                f"{len(state.done):,} of {about}{state.total:,} cells finished; {_progress_details(state)}\n"
            )


def _progress_details(state: StudyState) -> str:
    """Failures, remaining time, memory, and the cells that run now, in one line."""
    from closerlook.cli.console import bytes_text

    running = [state.graph.cells[key].title for key in state.running]
    others = len(running) - 1
    more = f" (and {others} other {'cell' if others == 1 else 'cells'})" if others > 0 else ""
    seconds = state.seconds_left
    parts = [
        f"{len(state.failed)} failed" if state.failed else "",
        "" if seconds is None else f"about {span(seconds)} left",
        f"{bytes_text(_memory())} memory",
        f"running: {show_text(running[0])}{more}" if running else "",
    ]
    return "; ".join(part for part in parts if part)


def _memory() -> int:
    """Memory of this process and its workers, in bytes."""
    import psutil

    here = psutil.Process()
    total = 0
    for process in [here, *here.children(recursive=True)]:
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total

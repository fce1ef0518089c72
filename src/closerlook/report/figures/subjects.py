"""What a figure is drawn for: decorators that draw one figure for each encoder, task, fine-tuning, or for the study.

A figure function takes the results and one subject, and returns a figure, or None if there are no data for it. Its
decorator makes it a function of the results alone, which draws all figures of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from itertools import groupby
from typing import TypeVar

from closerlook.report.figures.figure import Figure
from closerlook.study.readings import Results, Run

Subject = TypeVar("Subject")
DrawOne = Callable[[Results, Subject], Figure | None]
DrawAll = Callable[[Results], list[Figure]]


def _for_each(subjects: Callable[[Results], Iterable[Subject]], draw: DrawOne[Subject]) -> DrawAll:
    @wraps(draw)
    def draw_all(results: Results) -> list[Figure]:
        figures = (draw(results, subject) for subject in subjects(results))
        return [figure for figure in figures if figure is not None]

    return draw_all


def for_the_study(draw: Callable[[Results], Figure | None]) -> DrawAll:
    """Draw one figure of the whole study."""

    @wraps(draw)
    def draw_all(results: Results) -> list[Figure]:
        figure = draw(results)
        return [] if figure is None else [figure]

    return draw_all


def for_each_encoder(draw: DrawOne[str]) -> DrawAll:
    """Draw one figure for each encoder."""
    return _for_each(lambda results: results.encoders, draw)


def for_each_task(draw: DrawOne[str]) -> DrawAll:
    """Draw one figure for each task."""
    return _for_each(lambda results: results.tasks, draw)


def for_each_pair(draw: DrawOne[tuple[str, str]]) -> DrawAll:
    """Draw one figure for each encoder and task."""
    return _for_each(Results.pairs, draw)


def for_each_fine_tuning(draw: DrawOne[list[Run]]) -> DrawAll:
    """Draw one figure for each encoder and fine-tuning task. `draw` gets the runs of all seeds."""
    return _for_each(lambda results: _by_seed(results, own=True), draw)


def for_each_cross_task(draw: DrawOne[list[Run]]) -> DrawAll:
    """Draw one figure for each encoder, fine-tuning task and other measured task. `draw` gets the runs of all seeds."""
    return _for_each(lambda results: _by_seed(results, own=False), draw)


def _by_seed(results: Results, *, own: bool) -> list[list[Run]]:
    """The fine-tuning runs in groups; runs of one group differ only in the seed."""
    runs = results.runs(own=own)
    return [list(seeds) for _, seeds in groupby(runs, key=lambda run: (run.encoder, run.tuned_on, run.task))]

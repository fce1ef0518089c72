"""The figures of a study: one function for each, from the table to a chart with its data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from closerlook.report.ends import tuned
from closerlook.report.figures.alike import alike_by_layer
from closerlook.report.figures.chance import similarity_and_chance
from closerlook.report.figures.changes import accuracy_change, clusters_change
from closerlook.report.figures.distances import heat_map, minimum_distances
from closerlook.report.figures.figure import Figure, Toggle
from closerlook.report.figures.foresight import halves_and_test
from closerlook.report.figures.paths import centroid_paths, centroid_shifts
from closerlook.report.figures.similarity import similarity_along
from closerlook.study.readings import Results

__all__ = ["Figure", "Toggle", "draw"]


def draw(results: Results) -> list[Figure]:
    """Every figure that the table has data for, in the order of the page."""
    return [figure for figure in _drawn(results) if figure is not None]


def _drawn(results: Results) -> Iterator[Figure | None]:
    for encoder in results.encoders:
        yield accuracy_change(results, encoder)
        yield clusters_change(results, encoder)
    own = [list(runs) for _, runs in groupby(results.runs(own=True), key=lambda run: (run.encoder, run.task))]
    for runs in own:
        yield minimum_distances(results, runs)
        yield centroid_paths(results, runs[0])
        yield similarity_along(results, runs)
        yield centroid_shifts(results, runs[0])
    cross = results.runs(own=False)
    for _, group in groupby(cross, key=lambda run: (run.encoder, run.tuned_on, run.task)):
        yield minimum_distances(results, list(group))
    for encoder in results.encoders:
        yield similarity_and_chance(results, encoder)
    yield halves_and_test(results)
    for encoder in results.encoders:
        yield alike_by_layer(results, encoder)
    for encoder, task in results.pairs():
        yield heat_map(results, encoder, task, tuned(results, encoder, task))

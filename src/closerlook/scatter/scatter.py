"""`Scatter`: the shown points of a series, with everything that a page needs to draw them; `make_scatter` makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closerlook.geometry.frame import Integers
from closerlook.scatter.layers import Layer, Progress, ViewSettings, prepare_layers
from closerlook.scatter.series import Context, Series


@dataclass(frozen=True, eq=False)
class Scatter:
    """The m shown points of a series.

    rows: (m,) the points, as rows of the measured train points followed by the measured test points. row_numbers: (m,)
    the row of each in its whole split. rank: (m,) its place in the order in which points were chosen: the points of
    rank 0 to k - 1 are the k points that tell most. labels: (m,) the label of each. is_test: (m,). words, context: of
    the shown points, None if unknown. snapshots: their names. names: all labels, sorted. layers: one entry for each.
    n_points, n_train: how many points were measured, and how many of them are train points.
    """

    title: str
    snapshots: tuple[str, ...]
    names: tuple[str, ...]
    rows: Integers
    row_numbers: Integers
    rank: Integers
    labels: NDArray[Any]
    is_test: NDArray[np.bool_]
    words: tuple[str, ...] | None
    context: Context | None
    layers: tuple[Layer, ...]
    n_points: int
    n_train: int


def make_scatter(
    series: Series,
    settings: ViewSettings,
    *,
    first: Sequence[int] = (),
    threads: int | None = None,
    progress: Progress | None = None,
) -> Scatter:
    """The points of a series, measured and projected. first: rows that are shown in any case."""
    rows, rank, layers = prepare_layers(series, settings, first, threads, progress)
    words = series.words
    return Scatter(
        series.title,
        series.snapshots,
        tuple(str(name) for name in np.unique(series.names)),
        rows,
        series.row_numbers[rows],
        rank,
        series.names[rows],
        rows >= series.n_train,
        None if words is None else tuple(words[row] for row in rows.tolist()),
        None if series.context is None else series.context.take(rows),
        layers,
        len(series.names),
        series.n_train,
    )

"""`Layer`: what is shown of one layer of a series; `prepare_layers` measures all layers and chooses points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from closerlook.errors import InputError
from closerlook.geometry.frame import Floats, Integers
from closerlook.geometry.hulls import TAU
from closerlook.representations.points import Points
from closerlook.scatter.clusters import Measured, measure
from closerlook.scatter.points import MOST_POINTS, point_order
from closerlook.scatter.series import Series, vectors
from closerlook.scatter.views import (
    MOST_PAIRS,
    Gap,
    Plane,
    closest_pairs,
    find_gap,
    joint_pca,
    joint_umap,
    margin_plane,
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Margin:
    """The margin view of two labels. rows: which of the shown points have one of these labels; plane: of these."""

    first: str
    second: str
    rows: Integers
    plane: Plane
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer. measured: all points at each snapshot. moved: (s, m) for each snapshot and shown point.

    moved: the distance of a point from its position at the first snapshot, in RMS radii of the first snapshot.
    """

    number: int | None
    measured: tuple[Measured, ...]
    moved: Floats
    pca: Plane
    margins: tuple[Margin, ...]
    umap: Plane | None


@dataclass(frozen=True)
class ViewSettings:
    """What is shown of a series.

    points: at most this many. pairs: the pairs of labels with a margin view, or how many pairs with close means.
    umap: whether there is a UMAP view. seed: of samples and of UMAP. tau: see `geometry.cluster`.
    """

    points: int = MOST_POINTS
    pairs: Sequence[tuple[str, str]] | int = MOST_PAIRS
    umap: bool = False
    seed: int = 0
    tau: float = TAU


def prepare_layers(
    series: Series, settings: ViewSettings, first: Sequence[int], threads: int | None, progress: Progress | None
) -> tuple[Integers, Integers, tuple[Layer, ...]]:
    """The rows of the points to show, the rank of each in the order of choice, and the layers with their positions.

    first: rows that are shown in any case. Then come the points that prove a margin, then those of interest.
    """
    names, codes = np.unique(series.names, return_inverse=True)
    wanted = _choose_pairs(series, names.tolist(), codes, settings.pairs)
    measured, gaps = _measure_layers(series, codes, wanted, tau=settings.tau, threads=threads, progress=progress)
    rank = np.full(len(codes), 3)
    rank[np.any([space.of_interest for spaces in measured for space in spaces], axis=0)] = 2
    for gap in (gap for layer in gaps for pair in layer for gap in pair):
        rank[gap.rows] = 1
    rank[list(first)] = 0
    order = point_order(codes, rank, np.random.default_rng(settings.seed))[: settings.points]
    rows = np.sort(order)
    layers = []
    for at, number in enumerate(series.layers):
        margins = [
            Margin(
                str(names[pair[0]]), str(names[pair[1]]), *_margin_plane(series.points[at], codes, rows, pair, own), own
            )
            for pair, own in zip(wanted, gaps[at], strict=True)
        ]
        shown = [vectors(points)[rows] for points in series.points[at]]
        layers.append(
            Layer(
                number,
                measured[at],
                _moved(shown, measured[at][0].radius),
                joint_pca([points.X for points in series.points[at]], shown),
                tuple(margins),
                joint_umap(shown, settings.seed) if settings.umap else None,
            )
        )
    return rows, order.argsort(), tuple(layers)


def _measure_layers(
    series: Series,
    codes: Integers,
    pairs: Sequence[tuple[int, int]],
    *,
    tau: float,
    threads: int | None,
    progress: Progress | None,
) -> tuple[list[tuple[Measured, ...]], list[list[tuple[Gap, ...]]]]:
    """For each layer: the clusters at each snapshot, and the margins of each pair of labels at each snapshot."""
    total = len(series.layers) * len(series.snapshots)
    train = codes[: series.n_train]
    sides = [[np.flatnonzero(train == code) for code in pair] for pair in pairs]
    measured: list[tuple[Measured, ...]] = []
    gaps: list[list[tuple[Gap, ...]]] = []
    for at, snapshots in enumerate(series.points):
        spaces: list[Measured] = []
        for points in snapshots:
            if progress:
                progress(at * len(snapshots) + len(spaces), total)
            spaces.append(measure(points, tau, threads))
        measured.append(tuple(spaces))
        gaps.append([tuple(find_gap(points.X, *rows) for points in snapshots) for rows in sides])
    if progress:
        progress(total, total)
    return measured, gaps


def _choose_pairs(
    series: Series, names: Sequence[str], codes: Integers, pairs: Sequence[tuple[str, str]] | int
) -> list[tuple[int, int]]:
    """The pairs of labels with a margin view, as numbers; both labels have train points."""
    train = codes[: series.n_train]
    if isinstance(pairs, int):
        return closest_pairs(series.points[-1][-1].X, train, pairs)
    present = {names[code] for code in np.unique(train)}
    for pair in pairs:
        if len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= present:
            raise InputError(
                f"pair {', '.join(map(str, pair))} requested; expected two different labels of the train points: "
                f"{', '.join(sorted(present))}"
            )
    return [(names.index(first), names.index(second)) for first, second in pairs]


def _margin_plane(
    snapshots: Sequence[Points], codes: Integers, rows: Integers, pair: tuple[int, int], gaps: Sequence[Gap]
) -> tuple[Integers, Plane]:
    """Which of the shown points have one of two labels, and their positions. pair: the numbers of the labels."""
    own = np.flatnonzero(np.isin(codes[rows], pair))
    train = np.flatnonzero(np.isin(codes[: len(snapshots[0].y)], pair))
    shown = [vectors(points)[rows[own]] for points in snapshots]
    return own, margin_plane([points.X[train] for points in snapshots], gaps, shown)


def _moved(shown: Sequence[Floats], radius: float) -> Floats:
    return np.stack([np.linalg.norm(X - shown[0], axis=1) for X in shown]) / (radius or 1.0)

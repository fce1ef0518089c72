"""`Layer`: what the explorer shows of one layer; `prepare_layers` measures all layers and chooses the shown points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from closerlook.errors import InputError
from closerlook.explorer.clusters import Measured, measure
from closerlook.explorer.points import choose_points
from closerlook.explorer.series import Series, vectors
from closerlook.explorer.views import Gap, Plane, closest_pairs, find_gap, joint_pca, joint_umap, margin_plane
from closerlook.geometry.frame import Floats, Integers
from closerlook.representations.points import Points

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


def prepare_layers(
    series: Series,
    most: int,
    pairs: Sequence[tuple[str, str]] | None,
    *,
    umap: bool,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> tuple[Integers, tuple[Layer, ...]]:
    """The rows of at most `most` points to show, and the layers with their positions."""
    names, codes = np.unique(series.names, return_inverse=True)
    wanted = _choose_pairs(series, names.tolist(), codes, pairs)
    total = len(series.layers) * len(series.snapshots)
    measured: list[tuple[Measured, ...]] = []
    gaps: list[list[tuple[Gap, ...]]] = []
    for at, snapshots in enumerate(series.points):
        spaces: list[Measured] = []
        for points in snapshots:
            if progress:
                progress(at * len(snapshots) + len(spaces), total)
            spaces.append(measure(points, threads))
        measured.append(tuple(spaces))
        train = codes[: series.n_train]
        sides = [[np.flatnonzero(train == code) for code in pair] for pair in wanted]
        gaps.append([tuple(find_gap(points.X, *rows) for points in snapshots) for rows in sides])
    rank = np.full(len(codes), 2)
    rank[np.any([space.of_interest for spaces in measured for space in spaces], axis=0)] = 1
    for gap in (gap for layer in gaps for pair in layer for gap in pair):
        rank[gap.rows] = 0
    rows = choose_points(codes, rank, most, np.random.default_rng(seed))
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
                joint_umap(shown, seed) if umap else None,
            )
        )
    if progress:
        progress(total, total)
    return rows, tuple(layers)


def _choose_pairs(
    series: Series, names: Sequence[str], codes: Integers, pairs: Sequence[tuple[str, str]] | None
) -> list[tuple[int, int]]:
    """The pairs of labels with a margin view, as numbers; both labels have train points."""
    train = codes[: series.n_train]
    if pairs is None:
        return closest_pairs(series.points[-1][-1].X, train)
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

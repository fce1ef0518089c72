"""Views of a space in two dimensions: joint PCA, the margin of two labels, and UMAP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from closerlook.errors import InputError
from closerlook.geometry import separate
from closerlook.geometry.frame import Floats, Integers

MOST_PAIRS = 24
"""Pairs of labels with a margin view, by default."""


@dataclass(frozen=True, eq=False)
class Plane:
    """Positions of the same points at each snapshot, in one basis. xy: (s, n, 2). explained: variance of each axis."""

    xy: Floats
    explained: tuple[float, float] | None = None


def joint_pca(snapshots: Sequence[Floats], shown: Sequence[Floats]) -> Plane:
    """The two main directions of all snapshots together, and the positions of the shown points along them.

    snapshots: the (n, d) vectors of each snapshot. shown: the (m, d) vectors of the shown points. explained: the share
    of the variance over all snapshots.
    """
    mean, basis, shares = main_directions(snapshots, 2)
    return Plane(np.stack([(X - mean) @ basis for X in shown]), (shares[0], shares[1]))


def main_directions(parts: Sequence[Floats], k: int) -> tuple[Floats, Floats, list[float]]:
    """The mean of all rows, the (d, k) directions of largest variance, and their shares of the variance.

    A direction is zero if there are fewer. Signs are fixed: the largest coordinate of a direction is positive.
    """
    from scipy.linalg import eigh

    n, d = sum(map(len, parts)), parts[0].shape[1]
    mean = np.sum([X.sum(axis=0) for X in parts], axis=0) / n
    scatter = np.zeros((d, d))
    for X in parts:
        centred = X - mean
        scatter += centred.T @ centred
    found = min(k, d)
    values, columns = eigh(scatter, subset_by_index=[d - found, d - 1])
    basis, shares = np.zeros((d, k)), [0.0] * k
    total = float(np.trace(scatter))
    for at in range(found):
        direction = columns[:, found - 1 - at]
        basis[:, at] = direction * np.sign(direction[np.abs(direction).argmax()] or 1.0)
        shares[at] = float(max(values[found - 1 - at], 0.0) / total) if total > 0 else 0.0
    return mean, basis, shares


# ---- margins ----


@dataclass(frozen=True, eq=False)
class Gap:
    """The margin of two labels at one snapshot.

    normal: (d,) the unit vector of the horizontal axis; offset: where it is 0. distance: of the convex hulls of all
    train points of the labels, 0 if they overlap. edge: half of the gap that the projections show, from all train
    points. rows: the train rows at the gap, which prove the distance.
    """

    verdict: str
    distance: float
    normal: Floats
    offset: float
    edge: float
    rows: Integers


def find_gap(X: Floats, first: Integers, second: Integers) -> Gap:
    """The direction of largest margin between two labels: the second label is left of 0, the first one right.

    X: (n, d). first, second: the rows of each label. If the hulls overlap, no direction separates them, and the line
    through the two means is taken instead.
    """
    A, B = X[first], X[second]
    result = separate(A, B)
    length = float(np.linalg.norm(result.normal))
    if result.is_separable and length > 0:
        normal = result.normal / length
        high, low = float((A @ normal).min()), float((B @ normal).max())
        rows = np.concatenate([first[result.rows_a], second[result.rows_b]])
        return Gap(result.verdict, result.distance, normal, (high + low) / 2, max(high - low, 0.0) / 2, rows)
    normal = A.mean(axis=0) - B.mean(axis=0)
    if not normal.any():
        normal = np.eye(1, X.shape[1])[0]
    normal = normal / np.linalg.norm(normal)
    middle = float((A.mean(axis=0) + B.mean(axis=0)) @ normal) / 2
    return Gap(result.verdict, 0.0, normal, middle, 0.0, np.zeros(0, np.int64))


def margin_plane(snapshots: Sequence[Floats], gaps: Sequence[Gap], shown: Sequence[Floats]) -> Plane:
    """Positions for the margin view. Horizontal: along each snapshot's own direction of largest margin.

    Vertical: the main direction of what is left without the horizontal one, after centring each snapshot, so that a
    common drift does not hide the points. snapshots: the train points of the two labels at each snapshot. shown: the
    shown points.
    """
    rest = [_without(X, gap.normal) for X, gap in zip(snapshots, gaps, strict=True)]
    means = [X.mean(axis=0) for X in rest]
    _, basis, _ = main_directions([X - mean for X, mean in zip(rest, means, strict=True)], 1)
    xy = [
        np.stack([X @ gap.normal - gap.offset, (_without(X, gap.normal) - mean) @ basis[:, 0]], axis=1)
        for X, gap, mean in zip(shown, gaps, means, strict=True)
    ]
    return Plane(np.stack(xy))


def _without(X: Floats, direction: Floats) -> Floats:
    """X without its part along a unit vector."""
    return X - np.outer(X @ direction, direction)


def closest_pairs(X: Floats, labels: Integers, most: int = MOST_PAIRS) -> list[tuple[int, int]]:
    """At most `most` pairs of labels: for each label the one with the nearest mean, then other pairs by that distance.

    Among the former, pairs whose rarer label has many rows come first. labels: (n,) the number of each row's label.

    >>> closest_pairs(np.array([[0.0], [1.0], [5.0], [5.0], [5.5], [5.5]]), np.array([0, 1, 2, 2, 3, 3]), 3)
    [(2, 3), (0, 1), (1, 2)]
    """
    present, counts = np.unique(labels, return_counts=True)
    means = np.stack([X[labels == label].mean(axis=0) for label in present])
    squares = (means**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2 * means @ means.T, 0.0)
    np.fill_diagonal(distances, np.inf)
    nearest = {tuple(sorted((at, int(distances[at].argmin())))) for at in range(len(present))}
    pairs = [(a, b) for a in range(len(present)) for b in range(a + 1, len(present))]
    pairs.sort(key=lambda pair: (-counts[list(pair)].min() if pair in nearest else 0, distances[pair]))
    return [(int(present[a]), int(present[b])) for a, b in pairs[:most]]


# ---- UMAP ----


def joint_umap(shown: Sequence[Floats], seed: int) -> Plane:
    """UMAP of the shown points of all snapshots together, in one embedding. shown: the (m, d) vectors."""
    if find_spec("umap") is None:
        raise InputError("the UMAP view needs umap-learn, which is not installed; pip install 'closerlook[umap]'")
    from umap import UMAP

    X = np.concatenate(shown)
    if len(X) < 4:
        raise InputError(f"the UMAP view needs at least 4 points; there are {len(X)}: leave out umap")
    neighbours = min(15, len(X) - 1)
    start = "spectral" if len(X) > 10 else "random"
    xy = UMAP(n_neighbors=neighbours, random_state=seed, init=start, n_jobs=1).fit_transform(X)
    return Plane(np.asarray(xy, np.float64).reshape(len(shown), -1, 2))

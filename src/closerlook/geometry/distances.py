"""Distances of clusters and of labels, each held by a certified interval, and the extent of single clusters."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry import kernels
from closerlook.geometry.clusters import Clustering
from closerlook.geometry.frame import Floats, Frame, Integers, Label, as_points, longest
from closerlook.geometry.hulls import GAP
from closerlook.geometry.kernels import Progress

Statistic = Literal["mean", "min"]

BLOCK = 1024
"""Rows whose distances to all others are held at a time."""


@dataclass(frozen=True, eq=False)
class ClusterDistances:
    """Hull distances of all clusters of different labels.

    Clusters of the same hull (rows in conflict at one place) share a shape. shape: (k,) the shape of each cluster, -1
    where it is left out; lower, upper: (shapes, shapes), NaN where no two clusters of different labels have them.
    min_points: clusters of fewer rows are left out; excluded: their numbers. radius: the RMS radius of the space.
    """

    clustering: Clustering
    shape: Integers
    lower: Floats
    upper: Floats
    min_points: int
    excluded: Integers
    radius: float

    def between(self, first: int, second: int) -> tuple[float, float]:
        """The interval that holds the distance of two clusters of different labels; NaN if one is left out."""
        i, j = self.shape[first], self.shape[second]
        if min(i, j) < 0:
            return np.nan, np.nan
        return float(self.lower[i, j]), float(self.upper[i, j])

    def matrix(self) -> Floats:
        """(k, k) the middles of the intervals; 0 on the diagonal, NaN for clusters of one label or left out."""
        middle = self.lower + (self.upper - self.lower) / 2
        found = np.where(
            (self.shape[:, None] >= 0) & (self.shape >= 0), middle[self.shape[:, None], self.shape], np.nan
        )
        codes = self.clustering.cluster_codes
        found[codes[:, None] == codes] = np.nan
        np.fill_diagonal(found, 0.0)
        return found


@dataclass(frozen=True, eq=False)
class LabelDistances:
    """Distances of labels: over their pairs of clusters the mean, or the minimum.

    labels: sorted; values: (m, m), symmetric, 0 on the diagonal, NaN for a label without clusters of min_points rows;
    lower, upper: what is certain. separable: whether the space is linearly separable. excluded: for each label that
    loses any, how many clusters min_points leaves out. radius: the RMS radius; `relative` is in its units.
    """

    labels: tuple[Label, ...]
    values: Floats
    lower: Floats
    upper: Floats
    statistic: Statistic
    separable: bool
    min_points: int
    excluded: dict[Label, int]
    radius: float

    @property
    def relative(self) -> Floats:
        """(m, m) the distances in RMS radii; 0 where all points are one."""
        return self.values / (self.radius if self.radius > 0 else 1.0)

    def nearest(self) -> list[tuple[Label, Label | None, float]]:
        """For each label: it, the nearest other label, and their distance; (label, None, nan) where there is none."""
        apart = self.values.copy()
        np.fill_diagonal(apart, np.nan)
        found: list[tuple[Label, Label | None, float]] = []
        for label, row in zip(self.labels, apart, strict=True):
            if np.isnan(row).all():
                found.append((label, None, np.nan))
            else:
                at = int(np.nanargmin(row))
                found.append((label, self.labels[at], float(row[at])))
        return found

    def measured(self) -> set[Label]:
        """The labels that have a distance to another one."""
        return {label for label, other, _ in self.nearest() if other is not None}

    def minimum(self) -> Floats:
        """(m,) the distance of each label to the nearest other one."""
        return np.array([distance for _, _, distance in self.nearest()])

    def mean_minimum(self) -> float:
        """The mean of these over the labels that have one; NaN where none has."""
        minimum = self.minimum()
        return float(np.nanmean(minimum)) if np.isfinite(minimum).any() else np.nan


@dataclass(frozen=True, eq=False)
class ClusterExtents:
    """How large each cluster is inside: mean and maximum distance of two of its rows; 0 for a single row."""

    mean: Floats
    maximum: Floats
    radius: float = field(default=np.nan)


def cluster_distances(
    X: ArrayLike,
    clustering: Clustering,
    *,
    min_points: int = 1,
    gap: float = GAP,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ClusterDistances:
    """The hull distances of all clusters of different labels, to a relative gap.

    X: (n, d) the points that were clustered. min_points: leave out clusters of fewer rows (the paper's code: 6).
    """
    points = _points_of(X, clustering)
    if min_points < 1:
        raise InputError(f"min_points is {min_points}; expected at least 1")
    if not 0 < gap < 1:
        raise InputError(f"gap is {gap}; expected a relative gap between 0 and 1")
    frame = Frame.of(points)
    Z = frame.place(points)
    members = clustering.members()
    excluded = np.flatnonzero(clustering.sizes < min_points)
    shape, groups = _shapes(Z, members, clustering.sizes >= min_points)
    lower, upper = _hull_distances(
        Z, groups, _wanted(clustering, shape, len(groups)), gap=gap, threads=threads, progress=progress
    )
    return ClusterDistances(
        clustering,
        shape,
        frame.outside(lower),
        frame.outside(upper),
        min_points,
        excluded,
        float(frame.outside(frame.radius)),
    )


def label_distances(distances: ClusterDistances, *, statistic: Statistic = "mean") -> LabelDistances:
    """The distances of labels: over all pairs of their clusters the mean (as the released code) or the minimum.

    >>> from closerlook.geometry.clusters import cluster
    >>> X, y = [[0.0], [1.0], [3.0], [7.0]], ["a", "a", "b", "c"]
    >>> label_distances(cluster_distances(X, cluster(X, y))).values.round(6).tolist()
    [[0.0, 2.0, 6.0], [2.0, 0.0, 4.0], [6.0, 4.0, 0.0]]
    """
    if statistic not in ("mean", "min"):
        raise InputError(f"statistic is {statistic!r}; expected 'mean' or 'min'")
    clustering = distances.clustering
    labels, codes = clustering.labels, clustering.cluster_codes
    counts = np.zeros((len(labels), len(distances.lower)))
    kept = distances.shape >= 0
    np.add.at(counts, (codes[kept], distances.shape[kept]), 1.0)
    lower = _over_labels(distances.lower, counts, statistic)
    upper = _over_labels(distances.upper, counts, statistic)
    missing = [labels[codes[cluster]] for cluster in distances.excluded]
    return LabelDistances(
        labels,
        lower + (upper - lower) / 2,
        lower,
        upper,
        statistic,
        clustering.is_separable,
        distances.min_points,
        {label: missing.count(label) for label in dict.fromkeys(missing)},
        distances.radius,
    )


class PlacedClusters:
    """The clusters of a space, placed once; which of their rows are drawn may change from one question to the next."""

    def __init__(
        self, X: ArrayLike, clustering: Clustering, *, min_points: int = 1, threads: int | None = None
    ) -> None:
        points = _points_of(X, clustering)
        self.clustering, self.min_points, self.threads = clustering, min_points, threads
        self.frame = Frame.of(points)
        self.Z = self.frame.place(points)
        self.shape, self.groups = _shapes(self.Z, clustering.members(), clustering.sizes >= min_points)
        pairs = _wanted(clustering, self.shape, len(self.groups))
        single = (np.array([len(group) for group in self.groups])[pairs] == 1).all(axis=1)
        self.hulls = pairs[~single]
        self.points = _hull_distances(self.Z, self.groups, pairs[single], gap=GAP, threads=threads, progress=None)

    def distances(self, drawn: NDArray[np.bool_], *, gap: float = GAP) -> ClusterDistances:
        """The distances of the hulls of the rows drawn, (n,); a cluster none of whose rows is drawn is left out.

        Hulls of parts lie inside those of the whole: they are disjoint as well, and need no clustering of their own.
        """
        there = np.array([len(group) == 1 or drawn[group].any() for group in self.groups], dtype=bool)
        groups = [
            group[drawn[group]] if some and len(group) > 1 else group[:1]
            for some, group in zip(there, self.groups, strict=True)
        ]
        pairs = self.hulls[there[self.hulls].all(axis=1)]
        lower, upper = _hull_distances(self.Z, groups, pairs, gap=gap, threads=self.threads, progress=None)
        seen = np.bincount(self.clustering.assignments[drawn], minlength=self.clustering.n_clusters) > 0
        shape = np.where(seen, self.shape, -1)
        return ClusterDistances(
            self.clustering,
            shape,
            self.frame.outside(np.fmax(lower, self.points[0])),
            self.frame.outside(np.fmax(upper, self.points[1])),
            self.min_points,
            np.flatnonzero(shape < 0),
            float(self.frame.outside(self.frame.radius)),
        )


def within_cluster_distances(X: ArrayLike, clustering: Clustering) -> ClusterExtents:
    """Mean and maximum distance of two rows of each cluster.

    >>> from closerlook.geometry.clusters import cluster
    >>> X, y = [[0.0], [1.0], [2.0], [7.0]], ["a", "a", "a", "b"]
    >>> inside = within_cluster_distances(X, cluster(X, y))
    >>> inside.mean.round(6).tolist(), inside.maximum.tolist()
    ([1.333333, 0.0], [2.0, 0.0])
    """
    points = _points_of(X, clustering)
    frame = Frame.of(points)
    found = frame.outside(np.array([_pairwise(frame.place(points[rows])) for rows in clustering.members()]))
    return ClusterExtents(found[:, 0], found[:, 1], float(frame.outside(frame.radius)))


def _points_of(X: ArrayLike, clustering: Clustering) -> Floats:
    points = as_points(X)
    if len(points) != len(clustering.assignments):
        raise InputError(f"X has {len(points)} rows; expected the {len(clustering.assignments)} that were clustered")
    return points


def _pairwise(Z: Floats) -> tuple[float, float]:
    """The mean and the maximum distance of two rows."""
    n = len(Z)
    if n < 2:
        return 0.0, 0.0
    Z = Z - Z.mean(axis=0)
    square = np.einsum("ij,ij->i", Z, Z)
    total, largest = 0.0, 0.0
    for at in range(0, n, BLOCK):
        block = square[at : at + BLOCK, None] + square - 2 * (Z[at : at + BLOCK] @ Z.T)
        # where little is left of the difference, take it from the points themselves
        i, j = np.nonzero(block < 1e-9 * square.max())
        for part in range(0, len(i), BLOCK):
            a, b = i[part : part + BLOCK] + at, j[part : part + BLOCK]
            block[a - at, b] = ((Z[a] - Z[b]) ** 2).sum(axis=1)
        apart = np.sqrt(np.maximum(block, 0.0))
        total += float(apart.sum())
        largest = max(largest, float(apart.max()))
    return total / (n * (n - 1)), largest


def _shapes(Z: Floats, members: list[Integers], kept: ArrayLike) -> tuple[Integers, list[Integers]]:
    """For each cluster the number of its shape (-1: left out), and the rows of each; single rows at one place share."""
    shape = np.full(len(members), -1, np.int64)
    groups: list[Integers] = []
    places: dict[bytes, int] = {}
    for cluster in np.flatnonzero(kept):
        rows = members[cluster]
        number = len(groups)
        if len(rows) == 1:
            number = places.setdefault((Z[rows[0]] + 0.0).tobytes(), number)
        if number == len(groups):
            groups.append(rows)
        shape[cluster] = number
    return shape, groups


def _wanted(clustering: Clustering, shape: Integers, shapes: int) -> Integers:
    """(m, 2) the pairs of shapes that clusters of different labels have."""
    held = np.zeros((clustering.n_labels, shapes), bool)
    held[clustering.cluster_codes[shape >= 0], shape[shape >= 0]] = True
    several = held.sum(axis=0) > 1
    single = np.where(several, -1, held.argmax(axis=0))
    i, j = np.triu_indices(shapes, 1)
    differ = (single[i] != single[j]) | several[i]
    return np.column_stack([i[differ], j[differ]])


def _hull_distances(
    Z: Floats,
    groups: list[Integers],
    pairs: Integers,
    *,
    gap: float,
    threads: int | None,
    progress: Progress | None,
) -> tuple[Floats, Floats]:
    k = len(groups)
    lower, upper = np.full((k, k), np.nan), np.full((k, k), np.nan)
    np.fill_diagonal(lower, 0.0)
    np.fill_diagonal(upper, 0.0)
    if not len(pairs):
        return lower, upper
    slack = Frame.slack(longest(Z), Z.shape[1])
    size = np.array([len(group) for group in groups])
    single = (size[pairs] == 1).all(axis=1)
    first = np.array([group[0] for group in groups])
    points = pairs[single]
    for at in range(0, len(points), BLOCK):
        a, b = points[at : at + BLOCK].T
        apart = np.linalg.norm(Z[first[a]] - Z[first[b]], axis=1)
        lower[a, b], upper[a, b] = np.maximum(apart - 2 * slack, 0.0), apart + 2 * slack
    hulls = pairs[~single]
    hulls = hulls[np.argsort(-size[hulls].sum(axis=1), kind="stable")]  # the largest first: no thread is left waiting
    found = kernels.solve_pairs(
        Z,
        groups,
        hulls,
        tau=0.0,
        slack=slack,
        gap=gap,
        threads=kernels.count_threads(threads),
        progress=progress,
    )
    a, b = hulls.T
    lower[a, b], upper[a, b] = np.maximum(found.lower - 2 * slack, 0.0), found.upper + 2 * slack
    return np.fmax(lower, lower.T), np.fmax(upper, upper.T)


def _over_labels(table: Floats, counts: Floats, statistic: Statistic) -> Floats:
    """(m, m) the mean or the minimum over pairs of clusters. table: of shapes; counts: (m, shapes) clusters of each."""
    m = len(counts)
    found = np.full((m, m), np.nan)
    np.fill_diagonal(found, np.where(counts.any(axis=1), 0.0, np.nan))
    if statistic == "mean":
        share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)  # shares first: a sum might overflow
        mean = share @ np.nan_to_num(table) @ share.T
        mean[~counts.any(axis=1)] = mean[:, ~counts.any(axis=1)] = np.nan
        return np.where(np.eye(m, dtype=bool), found, mean)
    shapes = [np.flatnonzero(row) for row in counts]
    for i, j in combinations(range(m), 2):
        if len(shapes[i]) and len(shapes[j]):
            found[i, j] = found[j, i] = table[np.ix_(shapes[i], shapes[j])].min()
    return found

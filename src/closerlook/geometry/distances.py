"""Distances between clusters and between labels, with certified bounds, and distances within clusters."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry import kernels
from closerlook.geometry.clusters import Clustering
from closerlook.geometry.frame import Floats, Frame, Integers, Label, as_points, longest
from closerlook.geometry.hulls import GAP
from closerlook.geometry.kernels import Progress
from closerlook.notebook import html
from closerlook.plots.distances import DistanceChart, Linkage, plot_distances

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

Statistic = Literal["mean", "min"]

BLOCK = 1024
"""The number of rows in a block; the distances from one block to all rows are in memory together."""


@dataclass(frozen=True, eq=False)
class ClusterDistances:
    """Distances between the convex hulls of all clusters of different labels.

    Clusters with the same hull (conflicting rows at one position) share a shape, which is a number.

    shape: (k,) the shape of each cluster, -1 if it is excluded. lower, upper: (shapes, shapes) bounds of the distances;
    0 on the diagonal, NaN elsewhere if no two clusters of different labels have these shapes. min_points: clusters with
    fewer rows are excluded. excluded: the numbers of the excluded clusters. radius: the RMS radius of the space.

    >>> from closerlook.geometry import cluster
    >>> X, y = [[0.0], [1.0], [3.0]], ["a", "a", "b"]
    >>> distances = cluster_distances(X, cluster(X, y))
    >>> distances
    ClusterDistances(2 clusters, min_points 1)
    >>> [round(bound, 6) for bound in distances.between(0, 1)]
    [2.0, 2.0]
    """

    clustering: Clustering
    shape: Integers
    lower: Floats
    upper: Floats
    min_points: int
    excluded: Integers
    radius: float

    def between(self, first: int, second: int) -> tuple[float, float]:
        """The bounds of the distance between two clusters of different labels; NaN if one is excluded."""
        i, j = self.shape[first], self.shape[second]
        if min(i, j) < 0:
            return np.nan, np.nan
        return float(self.lower[i, j]), float(self.upper[i, j])

    def __repr__(self) -> str:
        left_out = f", {len(self.excluded)} excluded" if len(self.excluded) else ""
        return f"ClusterDistances({self.clustering.n_clusters} clusters{left_out}, min_points {self.min_points})"

    def to_frame(self) -> pd.DataFrame:
        """One row for each pair of clusters of different labels, with bounds of their distance."""
        import pandas as pd

        codes, names = self.clustering.cluster_codes, np.array(self.clustering.cluster_labels, dtype=np.object_)
        i, j = np.triu_indices(len(codes), 1)
        kept = (codes[i] != codes[j]) & (self.shape[i] >= 0) & (self.shape[j] >= 0)
        i, j = i[kept], j[kept]
        bounds = {"lower": self.lower[self.shape[i], self.shape[j]], "upper": self.upper[self.shape[i], self.shape[j]]}
        return pd.DataFrame({"cluster": i, "other": j, "label": names[i], "other_label": names[j], **bounds})

    def matrix(self) -> Floats:
        """(k, k) midpoints of the bounds; 0 on the diagonal, NaN within a label or if a cluster is excluded."""
        middle = self.lower + (self.upper - self.lower) / 2
        distances = np.where(
            (self.shape[:, None] >= 0) & (self.shape >= 0), middle[self.shape[:, None], self.shape], np.nan
        )
        codes = self.clustering.cluster_codes
        distances[codes[:, None] == codes] = np.nan
        np.fill_diagonal(distances, 0.0)
        return distances


@dataclass(frozen=True, eq=False)
class LabelDistances:
    """Distances between labels: the mean, or the minimum, over their pairs of clusters.

    labels: sorted. values: (m, m), symmetric, 0 on the diagonal, NaN for a label without clusters of min_points rows.
    lower, upper: certified bounds of the values. separable: whether the space is linearly separable. excluded: the
    number of clusters with fewer than min_points rows, for each label that has any. radius: the RMS radius; `relative`
    is in its units.

    >>> from closerlook.geometry import cluster
    >>> X, y = [[0.0], [1.0], [3.0], [7.0]], ["a", "a", "b", "c"]
    >>> distances = label_distances(cluster_distances(X, cluster(X, y)))
    >>> distances
    LabelDistances(3 labels, mean over pairs of clusters, mean distance to the nearest label 2.667)
    >>> [other for label, other, distance in distances.nearest()]
    ['b', 'a', 'b']
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

    def __repr__(self) -> str:
        return (
            f"LabelDistances({len(self.labels)} labels, {self.statistic} over pairs of clusters, "
            f"mean distance to the nearest label {self.mean_minimum():.4g})"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row for each pair of labels: their distance, its bounds, and the distance in RMS radii (`relative`)."""
        import pandas as pd

        i, j = np.triu_indices(len(self.labels), 1)
        return pd.DataFrame(
            {
                "label": [self.labels[at] for at in i],
                "other": [self.labels[at] for at in j],
                "distance": self.values[i, j],
                "lower": self.lower[i, j],
                "upper": self.upper[i, j],
                "relative": self.relative[i, j],
            }
        )

    def _repr_html_(self) -> str:
        return html(repr(self), self.to_frame().sort_values("distance", kind="stable"))

    @property
    def relative(self) -> Floats:
        """(m, m) the distances in RMS radii; 0 if all points are identical."""
        return self.values / (self.radius if self.radius > 0 else 1.0)

    def nearest(self) -> list[tuple[Label, Label | None, float]]:
        """Each label, its nearest other label, and their distance; (label, None, nan) if it has none."""
        distances = self.values.copy()
        np.fill_diagonal(distances, np.nan)
        nearest: list[tuple[Label, Label | None, float]] = []
        for label, row in zip(self.labels, distances, strict=True):
            if np.isnan(row).all():
                nearest.append((label, None, np.nan))
            else:
                at = int(np.nanargmin(row))
                nearest.append((label, self.labels[at], float(row[at])))
        return nearest

    def plot(self, *, kind: DistanceChart = "heatmap", linkage: Linkage = "average") -> alt.Chart | alt.LayerChart:
        """An altair chart: a heat map of all pairs of labels, or a dendrogram that joins the closest labels first.

        linkage: the distance of two groups of labels in the dendrogram: the mean ('average'), smallest ('single') or
        largest ('complete') distance of their labels.
        """
        return plot_distances(self.labels, self.values, kind=kind, linkage=linkage)

    def measured(self) -> set[Label]:
        """The labels that have a distance to another label."""
        return {label for label, other, _ in self.nearest() if other is not None}

    def minimum(self) -> Floats:
        """(m,) the minimum distance of each label: its distance to the nearest other label."""
        return np.array([distance for _, _, distance in self.nearest()])

    def mean_minimum(self) -> float:
        """The mean of the minimum distances over the labels that have one; NaN if none has."""
        minimum = self.minimum()
        return float(np.nanmean(minimum)) if np.isfinite(minimum).any() else np.nan


@dataclass(frozen=True, eq=False)
class ClusterExtents:
    """Mean and maximum distance between two rows of each cluster; 0 for a cluster of one row.

    >>> from closerlook.geometry import cluster
    >>> X, y = [[0.0], [2.0], [7.0]], ["a", "a", "b"]
    >>> within_cluster_distances(X, cluster(X, y))  # doctest: +ELLIPSIS
    ClusterExtents(mean=array([2., 0.]), maximum=array([2., 0.]), radius=2.94...)
    """

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
    """Distances between the convex hulls of all clusters of different labels.

    X: (n, d) the points that were clustered. min_points: exclude clusters with fewer rows (6 in the code of the paper).
    gap: the relative gap that the bounds should have; `hulls.GAP` names an exception.

    >>> from closerlook.geometry import cluster
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["a", "b", "b", "a"]
    >>> cluster_distances(X, cluster(X, y)).to_frame().round(6)
       cluster  other label other_label  lower  upper
    0        0      1     a           b    1.0    1.0
    1        1      2     b           a    1.0    1.0
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
        Z, groups, _shape_pairs(clustering, shape, len(groups)), gap=gap, threads=threads, progress=progress
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
    """Distances between labels: the mean (as in the released code) or the minimum over their pairs of clusters.

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
    """The clusters of a space, prepared once, so that distances of many subsets of the rows can be computed."""

    def __init__(
        self, X: ArrayLike, clustering: Clustering, *, min_points: int = 1, threads: int | None = None
    ) -> None:
        points = _points_of(X, clustering)
        self.clustering, self.min_points, self.threads = clustering, min_points, threads
        self.frame = Frame.of(points)
        self.Z = self.frame.place(points)
        self.shape, self.groups = _shapes(self.Z, clustering.members(), clustering.sizes >= min_points)
        pairs = _shape_pairs(clustering, self.shape, len(self.groups))
        single = (np.array([len(group) for group in self.groups])[pairs] == 1).all(axis=1)
        self.hulls = pairs[~single]
        self.points = _hull_distances(self.Z, self.groups, pairs[single], gap=GAP, threads=threads, progress=None)

    def distances(self, drawn: NDArray[np.bool_], *, gap: float = GAP) -> ClusterDistances:
        """Hull distances of the clusters restricted to the drawn rows; a cluster without drawn rows is excluded.

        drawn: (n,). The hulls of subsets lie inside the original hulls, so they are disjoint and need no new
        clustering.
        """
        present = np.array([len(group) == 1 or drawn[group].any() for group in self.groups], dtype=bool)
        groups = [
            group[drawn[group]] if is_present and len(group) > 1 else group[:1]
            for is_present, group in zip(present, self.groups, strict=True)
        ]
        pairs = self.hulls[present[self.hulls].all(axis=1)]
        lower, upper = _hull_distances(self.Z, groups, pairs, gap=gap, threads=self.threads, progress=None)
        drawn_clusters = np.bincount(self.clustering.assignments[drawn], minlength=self.clustering.n_clusters) > 0
        shape = np.where(drawn_clusters, self.shape, -1)
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
    """Mean and maximum distance between two rows of each cluster.

    >>> from closerlook.geometry.clusters import cluster
    >>> X, y = [[0.0], [1.0], [2.0], [7.0]], ["a", "a", "a", "b"]
    >>> inside = within_cluster_distances(X, cluster(X, y))
    >>> inside.mean.round(6).tolist(), inside.maximum.tolist()
    ([1.333333, 0.0], [2.0, 0.0])
    """
    points = _points_of(X, clustering)
    frame = Frame.of(points)
    distances = frame.outside(np.array([_pairwise(frame.place(points[rows])) for rows in clustering.members()]))
    return ClusterExtents(distances[:, 0], distances[:, 1], float(frame.outside(frame.radius)))


def _points_of(X: ArrayLike, clustering: Clustering) -> Floats:
    """Check that X has as many rows as were clustered."""
    points = as_points(X)
    if len(points) != len(clustering.assignments):
        raise InputError(f"X has {len(points)} rows; expected the {len(clustering.assignments)} that were clustered")
    return points


def _pairwise(Z: Floats) -> tuple[float, float]:
    """The mean and the maximum distance between two rows."""
    n = len(Z)
    if n < 2:
        return 0.0, 0.0
    Z = Z - Z.mean(axis=0)
    square = np.einsum("ij,ij->i", Z, Z)
    total, largest = 0.0, 0.0
    for at in range(0, n, BLOCK):
        block = square[at : at + BLOCK, None] + square - 2 * (Z[at : at + BLOCK] @ Z.T)
        # where the difference cancels, compute it from the coordinates
        i, j = np.nonzero(block < 1e-9 * square.max())
        for part in range(0, len(i), BLOCK):
            a, b = i[part : part + BLOCK] + at, j[part : part + BLOCK]
            block[a - at, b] = ((Z[a] - Z[b]) ** 2).sum(axis=1)
        distances = np.sqrt(np.maximum(block, 0.0))
        total += float(distances.sum())
        largest = max(largest, float(distances.max()))
    return total / (n * (n - 1)), largest


def _shapes(Z: Floats, members: list[Integers], kept: ArrayLike) -> tuple[Integers, list[Integers]]:
    """The shape number of each cluster (-1: excluded), and the rows of each shape; identical single rows share one."""
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


def _shape_pairs(clustering: Clustering, shape: Integers, shapes: int) -> Integers:
    """(m, 2) the pairs of shapes that clusters of different labels have."""
    has_shape = np.zeros((clustering.n_labels, shapes), bool)
    has_shape[clustering.cluster_codes[shape >= 0], shape[shape >= 0]] = True
    several = has_shape.sum(axis=0) > 1
    single = np.where(several, -1, has_shape.argmax(axis=0))
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
    """(k, k) bounds of the distances between the hulls of the groups of each pair; 0 on the diagonal, NaN elsewhere."""
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
        distances = np.linalg.norm(Z[first[a]] - Z[first[b]], axis=1)
        lower[a, b], upper[a, b] = np.maximum(distances - 2 * slack, 0.0), distances + 2 * slack
    hulls = pairs[~single]
    hulls = hulls[np.argsort(-size[hulls].sum(axis=1), kind="stable")]  # largest first: no thread idles at the end
    bounds = kernels.solve_pairs(
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
    lower[a, b], upper[a, b] = np.maximum(bounds.lower, 0.0), bounds.upper
    return np.fmax(lower, lower.T), np.fmax(upper, upper.T)


def _over_labels(table: Floats, counts: Floats, statistic: Statistic) -> Floats:
    """(m, m) the mean or the minimum over pairs of clusters.

    table: (shapes, shapes) distances. counts: (m, shapes) how many clusters of each label have each shape.
    """
    m = len(counts)
    result = np.full((m, m), np.nan)
    np.fill_diagonal(result, np.where(counts.any(axis=1), 0.0, np.nan))
    if statistic == "mean":
        share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)  # divide first: a sum might overflow
        mean = share @ np.nan_to_num(table) @ share.T
        mean[~counts.any(axis=1)] = mean[:, ~counts.any(axis=1)] = np.nan
        return np.where(np.eye(m, dtype=bool), result, mean)
    shapes = [np.flatnonzero(row) for row in counts]
    for i, j in combinations(range(m), 2):
        if len(shapes[i]) and len(shapes[j]):
            result[i, j] = result[j, i] = table[np.ix_(shapes[i], shapes[j])].min()
    return result

"""How clusters and spatial similarity depend on the settings `tau` and `min_points`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from closerlook.errors import InputError
from closerlook.geometry.clusters import Clustering, cluster
from closerlook.geometry.distances import (
    ClusterDistances,
    LabelDistances,
    Statistic,
    cluster_distances,
    label_distances,
)
from closerlook.geometry.hulls import TAU
from closerlook.geometry.similarity import FEWEST_LABELS, Table, read_table, spatial_similarity

MIN_POINTS = (1, 2, 6, 11)
"""The values of `min_points` that are tried: none excluded, single points, the value of the paper's code, more."""

TAUS = (1e-8, 1e-6, 1e-4, 1e-2)
"""The tolerances that are tried, in RMS radii."""


@dataclass(frozen=True)
class SimilarityAt:
    """The spatial similarity of two spaces for one value of min_points, and the number of labels that it compares.

    similarity: NaN with fewer than 3 common labels.

    >>> X, y = np.array([[0.0, 0], [0, 1], [4, 0], [4, 1], [9, 0], [9, 1]]), [*"aabbcc"]
    >>> similarity_by_min_points(X, y, 2 * X, y, min_points=[2])[0]  # doctest: +ELLIPSIS
    SimilarityAt(min_points=2, similarity=..., n_labels=3)
    """

    min_points: int
    similarity: float
    n_labels: int


def clusters_by_tau(
    X: ArrayLike, y: ArrayLike, *, taus: Iterable[float] = TAUS, threads: int | None = None
) -> dict[float, Clustering]:
    """The clusters of a space for each tolerance.

    >>> X, y = [[0.0], [1.0], [1.001], [3.0]], ["a", "a", "b", "b"]
    >>> {tau: clustering.n_clusters for tau, clustering in clusters_by_tau(X, y, taus=(1e-6, 0.1)).items()}
    {1e-06: 2, 0.1: 4}
    """
    return {tau: cluster(X, y, tau=tau, threads=threads) for tau in taus}


def distances_by_min_points(
    X: ArrayLike,
    clustering: Clustering,
    *,
    min_points: Sequence[int] = MIN_POINTS,
    statistic: Statistic = "mean",
    threads: int | None = None,
) -> dict[int, LabelDistances]:
    """The label distances of a clustered space for each value of min_points.

    Hull distances are computed once, for the lowest value; each higher value excludes more clusters.
    """
    if not min_points:
        raise InputError("min_points is empty; expected one or more numbers such as 1, 2, 6, 11")
    between = cluster_distances(X, clustering, min_points=min(min_points), threads=threads)
    return {least: label_distances(_restricted(between, least), statistic=statistic) for least in min_points}


def _restricted(distances: ClusterDistances, min_points: int) -> ClusterDistances:
    """The same distances without the clusters that have fewer than min_points rows."""
    small = distances.clustering.sizes < min_points
    shape = np.where(small, -1, distances.shape)
    return replace(distances, shape=shape, min_points=min_points, excluded=np.flatnonzero(small))


def similarity_by_min_points(
    X_a: ArrayLike,
    y_a: ArrayLike,
    X_b: ArrayLike,
    y_b: ArrayLike,
    *,
    min_points: Sequence[int] = MIN_POINTS,
    tau: float = TAU,
    statistic: Statistic = "mean",
    threads: int | None = None,
) -> tuple[SimilarityAt, ...]:
    """The spatial similarity of two spaces for each value of min_points.

    >>> X, y = np.array([[0.0, 0], [0, 1], [4, 0], [4, 1], [9, 0], [9, 1], [0, 9]]), [*"aabbccd"]
    >>> [(at.min_points, round(at.similarity, 6), at.n_labels) for at in similarity_by_min_points(X, y, 2 * X, y)]
    [(1, 1.0, 4), (2, 1.0, 3), (6, nan, 0), (11, nan, 0)]
    """
    a, b = (
        distances_by_min_points(
            X, cluster(X, y, tau=tau, threads=threads), min_points=min_points, statistic=statistic, threads=threads
        )
        for X, y in ((X_a, y_a), (X_b, y_b))
    )
    return compare_by_min_points(a, b)


def compare_by_min_points(a: Mapping[int, Table], b: Mapping[int, Table]) -> tuple[SimilarityAt, ...]:
    """The spatial similarity for each value of min_points. a, b: the label distances of two spaces for each value."""
    found = []
    for least in a:
        left, right = read_table(a[least], "a"), read_table(b[least], "b")
        n = len((set(left.labels) - left.undefined) & (set(right.labels) - right.undefined))
        enough = n >= FEWEST_LABELS
        value = spatial_similarity(a[least], b[least], permutations=0, resamples=0).pearson if enough else math.nan
        found.append(SimilarityAt(least, value, n))
    return tuple(found)

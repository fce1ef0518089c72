"""Measures one space for the explorer: its clusters, the nearest cluster of each point, and the points of interest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closerlook.geometry import Clustering, cluster, nearest_hulls
from closerlook.geometry.blocked import MOST_BLOCKED_MERGES, largest_pairs
from closerlook.geometry.frame import Integers
from closerlook.representations.points import Points
from closerlook.scatter.series import both

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Measured:
    """One space: the clusters of its train points, and how all n points (train, then test) relate to them.

    labels: (k,) the label of each cluster. sizes: (k,) its number of train points. nearest: (n,) the cluster of each
    train point, and the nearest cluster of each test point. wrong: (n,) whether this cluster has another label.
    blocks: (n,) train points that prove a blocked merge, as points of the blocking cluster. conflicts: (n,) train
    points with the same vector as a point of another label. radius: the RMS radius of the train points.
    """

    labels: NDArray[Any]
    sizes: Integers
    nearest: Integers
    wrong: Flags
    blocks: Flags
    conflicts: Flags
    radius: float
    separable: bool

    @property
    def of_interest(self) -> Flags:
        """(n,) whether a point blocks a merge, is in conflict, or is nearest to a cluster of another label."""
        return self.wrong | self.blocks | self.conflicts


def measure(points: Points, tau: float, threads: int | None = None) -> Measured:
    """The clusters of the train points, and the nearest cluster of every point. tau: see `geometry.cluster`."""
    clustering = cluster(points.X, points.y, tau=tau, threads=threads)
    test = points.test
    near = None
    if test is not None:
        near, _ = nearest_hulls(points.X, clustering.members(), test.X, threads=threads)
    nearest = both(clustering.assignments, near)
    labels = np.array([str(label) for label in clustering.cluster_labels], dtype=np.object_)
    names = both(points.y, None if test is None else test.y).astype(np.object_)
    n = len(names)
    return Measured(
        labels,
        clustering.sizes,
        nearest,
        labels[nearest] != names,
        _flags(n, blocking_rows(clustering)),
        _flags(n, clustering.conflicts),
        clustering.radius,
        clustering.is_separable,
    )


def blocking_rows(clustering: Clustering) -> Integers:
    """The rows of blocking clusters that prove the blocked merges between the largest clusters."""
    pairs = largest_pairs(clustering.cluster_codes, clustering.sizes, MOST_BLOCKED_MERGES)
    rows = [clustering.blocked_merge(*pair).blocking_rows for pair in pairs]
    return np.unique(np.concatenate(rows)) if rows else np.zeros(0, np.int64)


def _flags(n: int, rows: Integers) -> Flags:
    flags = np.zeros(n, np.bool_)
    flags[rows] = True
    return flags

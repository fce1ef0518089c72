"""Blocked merges: which cluster prevents the merge of two clusters of one label, and the points that prove it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closerlook.geometry.frame import Floats, Integers

MOST_BLOCKED_MERGES = 40
"""Blocked merges that are described for each space, at most: those whose smaller cluster has the most points."""


@dataclass(frozen=True)
class BlockedMerge:
    """Why two clusters of one label were not merged: the hull of their union overlaps a cluster of another label.

    first, second: the numbers of the two clusters. blocking: the number of the blocking cluster. rows, weights: a
    convex combination of points of the two clusters. blocking_rows, blocking_weights: a convex combination of points of
    the blocking cluster that is the same point, up to the tolerance. Together they prove the overlap.
    decided: False if neither was proved: that the union is separable from the blocking cluster, or that it overlaps it.
    The clusters were not merged then, and the rows and weights are empty.

    >>> from closerlook.geometry import cluster
    >>> blocked = cluster([[0.0], [1.0], [2.0]], ["a", "b", "a"]).blocked_merge(0, 2)
    >>> blocked.blocking, blocked.blocking_rows.tolist()
    (1, [1])
    >>> blocked.rows.tolist(), blocked.weights.round(6).tolist()
    ([0, 2], [0.5, 0.5])
    """

    first: int
    second: int
    blocking: int
    rows: Integers
    weights: Floats
    blocking_rows: Integers
    blocking_weights: Floats
    decided: bool = True


@dataclass(frozen=True, eq=False)
class Refusals:
    """The certificates of the blocked merges, in flat arrays.

    assignments: (n,) the final cluster of each row. blocking: the final cluster that blocks each merge.
    rows, weights: the convex combinations of all blocked merges, one after the other; blocked merge i has the entries
    begin[i] to begin[i + 1]. own: True for rows of the two clusters, False for rows of the blocking cluster.
    twin: see Arrangement. first_rows: the first row of each final cluster.
    index: for each pair of final clusters, its first blocked merge with a proof, or its first one if none has a proof.
    """

    assignments: Integers
    blocking: Integers
    begin: Integers
    rows: Integers
    weights: Floats
    own: NDArray[np.bool_]
    twin: Integers
    first_rows: Integers
    index: dict[tuple[int, int], int]

    def known(self, first: int, second: int) -> bool:
        """Whether a blocked merge of two final clusters with the same label is recorded, with the smaller one first."""
        return bool((self.twin[self.first_rows[[first, second]]] >= 0).any()) or (first, second) in self.index

    def between(self, first: int, second: int) -> BlockedMerge | None:
        """The blocked merge of two final clusters with the same label; None if none is recorded."""
        if max(first, second) >= len(self.first_rows):
            return None
        for cluster in (first, second):
            row = int(self.first_rows[cluster])
            if self.twin[row] >= 0:  # a row that never merges, since a row of another label is at its position
                twin = int(self.twin[row])
                weight = np.ones(1)
                blocking = int(self.assignments[twin])
                return BlockedMerge(first, second, blocking, np.array([row]), weight, np.array([twin]), weight)
        if (first, second) not in self.index:
            return None
        at = self.index[first, second]
        used = slice(int(self.begin[at]), int(self.begin[at + 1]))
        order = np.argsort(self.rows[used], kind="stable")
        rows, weights, own = self.rows[used][order], self.weights[used][order], self.own[used][order]
        return BlockedMerge(
            first, second, int(self.blocking[at]), rows[own], weights[own], rows[~own], weights[~own], len(rows) > 0
        )


def largest_pairs(codes: Integers, sizes: Integers, n: int) -> list[tuple[int, int]]:
    """The n largest pairs of clusters of one label, sorted by the size of the smaller cluster, then of the larger one.

    Ties stay in the order of labels and cluster numbers. codes: the label of each cluster. sizes: its number of points.
    """
    members = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    both = [clusters[np.triu_indices(len(clusters), 1)[side]] for side in (0, 1) for clusters in members]
    first, second = np.concatenate(both[: len(members)]), np.concatenate(both[len(members) :])
    smaller, larger = np.minimum(sizes[first], sizes[second]), np.maximum(sizes[first], sizes[second])
    largest = np.lexsort((-larger, -smaller))[:n]
    return list(zip(first[largest].tolist(), second[largest].tolist(), strict=True))

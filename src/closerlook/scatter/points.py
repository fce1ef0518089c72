"""Chooses the points that the explorer shows: those that explain the clusters first, then a sample of each label."""

from __future__ import annotations

import numpy as np

from closerlook.geometry.frame import Integers

MOST_POINTS = 2000
"""Points that a page shows: a browser draws them in a few milliseconds, and more would cover each other."""


def choose_points(labels: Integers, rank: Integers, most: int, random: np.random.Generator) -> Integers:
    """The rows of at most `most` points, in order: the first ones by `point_order`.

    >>> labels, rank = np.array([0, 0, 0, 0, 1, 1, 2]), np.array([1, 1, 1, 0, 1, 1, 1])
    >>> rows = choose_points(labels, rank, 4, np.random.default_rng(0))
    >>> 3 in rows, sorted(set(labels[rows].tolist()))
    (True, [0, 1, 2])
    """
    return np.sort(point_order(labels, rank, random)[:most])


def point_order(labels: Integers, rank: Integers, random: np.random.Generator) -> Integers:
    """All rows, in the order in which points are chosen.

    labels: (n,) the number of each point's label. rank: (n,) points of a lower rank come first. Among points of one
    rank, every label keeps its share wherever the list is cut, and has at least one point if there is room.
    """
    n = len(labels)
    order = random.permutation(n)
    share = np.empty(n)
    for group in np.unique(np.stack([rank, labels]), axis=1).T:
        rows = order[(rank[order] == group[0]) & (labels[order] == group[1])]
        share[rows] = np.arange(len(rows)) / len(rows)
    return np.asarray(order[np.lexsort((share[order], rank[order]))], np.int64)

"""Prepare points for the greedy merging: sort by label, keep each position once, set conflicting rows aside.

Rows conflict if they are identical but have different labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from closerlook.geometry.frame import Floats, Frame, Integers, longest

NEIGHBOURS, SMALL = 16, 1e-3
"""Where tau is not SMALL, only this many successors along a line are compared."""


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Points in the frame: first the points that may merge, sorted by label, then the frozen positions.

    A frozen position is the position of rows that never merge, because a row of another label is at the same position,
    up to the tolerance.

    Z: (n + frozen, d), each position once for each label. n: the number of points that may merge.
    codes: the label number of each row of X. labels: the number of labels. starts: where each label begins in Z.
    rows: for each row of Z, the corresponding row of X. item: for each row of X, the corresponding row of Z.
    mass: how many rows of X each row of Z represents. conflicts: rows of X identical to a row of another label.
    twin: for each row of X that never merges, a row of another label at its position; -1 for all other rows.
    blocking: the label of each frozen position; -1 if it has several labels. tau, slack: the tolerance, and a bound on
    the rounding error of a projection, both in the unit of the frame.
    """

    Z: Floats
    n: int
    codes: Integers
    labels: int
    starts: Integers
    rows: Integers
    item: Integers
    mass: Floats
    twin: Integers
    conflicts: Integers
    blocking: Integers
    tau: float
    slack: float


def arrange(Z: Floats, place: Integers, codes: Integers, labels: int, tau: float) -> Arrangement:
    """Sort points for the greedy merging.

    Z: (n, d) in a frame. place: the position number of each row, from `same_rows`. codes: label numbers below `labels`.
    """
    twin = _twins(codes, place)
    conflicts = np.flatnonzero(twin >= 0)
    _add_near_twins(twin, Z, codes, place, tau)
    frozen = twin >= 0
    key = place * labels + codes
    free, first, inverse, mass = np.unique(key[~frozen], return_index=True, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(~frozen)[first]
    order = np.lexsort((rows, free % labels))
    rows, mass = rows[order], mass[order]
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    n = len(rows)
    _, held_first, held_inverse = np.unique(place[frozen], return_index=True, return_inverse=True)
    frozen_rows = np.flatnonzero(frozen)
    blocking = codes[frozen_rows[held_first]].copy()
    blocking[np.unique(held_inverse[codes[frozen_rows] != blocking[held_inverse]])] = -1
    item = np.empty(len(Z), np.int64)
    item[~frozen] = rank[inverse]
    item[frozen] = n + held_inverse
    rows = np.concatenate([rows, frozen_rows[held_first]])
    arranged = np.ascontiguousarray(Z[rows])
    starts = np.searchsorted(codes[rows[:n]], np.arange(labels + 1)).astype(np.int64)
    slack = Frame.slack(longest(arranged), Z.shape[1])
    return Arrangement(
        arranged, n, codes, labels, starts, rows, item, mass.astype(np.float64), twin, conflicts, blocking, tau, slack
    )


def same_rows(points: Floats) -> Integers:
    """The position number of each row: equal for identical rows."""
    bits = np.ascontiguousarray(points + 0.0).view(np.uint64)  # + 0.0: zero has two signs
    factors = np.random.default_rng(0).integers(1, 2**63, (points.shape[1],), dtype=np.uint64) | np.uint64(1)
    hashes = np.zeros(len(points), np.uint64)
    for column in range(points.shape[1]):
        mixed = bits[:, column] * factors[column]
        hashes = (hashes ^ (mixed ^ (mixed >> np.uint64(29)))) * np.uint64(0x9E3779B97F4A7C15)
    _, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    if not (points[first[place]] == points).all():  # two different rows have the same hash: compare the rows themselves
        place = np.unique(points + 0.0, axis=0, return_inverse=True)[1]
    return place.reshape(-1).astype(np.int64)


def _twins(codes: Integers, place: Integers) -> Integers:
    """For each conflicting row, a row of another label at the same position; -1 for all other rows."""
    backwards = np.arange(len(place))[::-1]
    first = np.full(len(place), -1, np.int64)  # by place: its first row
    first[place[backwards]] = backwards
    other = np.full(len(place), -1, np.int64)  # by place: its first row of another label than that
    differing = backwards[codes[backwards] != codes[first[place[backwards]]]]
    other[place[differing]] = differing
    return np.where(codes == codes[first[place]], other[place], first[place])


def _add_near_twins(twin: Integers, Z: Floats, codes: Integers, place: Integers, tau: float) -> None:
    """Also give a twin to rows within tau of a row of another label: two such points already overlap.

    Points that near are neighbours along any line. The greedy merging would itself refuse every merge of such a row,
    with one exception: identical rows reach it as a single point. For these no twin is missed. For other rows one can
    be missed only if tau is large.
    """
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.r_[True, place[order][1:] != place[order][:-1]])
    ends = np.r_[starts[1:], len(order)]
    leaders = order[starts]
    several = ends - starts > 1
    line = np.random.default_rng(0).normal(size=Z.shape[1])
    along = Z[leaders] @ (line / np.linalg.norm(line))
    sequence = np.argsort(along, kind="stable")
    along = along[sequence]
    for step in range(1, len(sequence)):
        close = np.flatnonzero(along[step:] - along[:-step] <= tau)
        if not len(close):
            return
        a, b = sequence[close], sequence[close + step]
        alone = twin[leaders] < 0
        candidates = (alone[a] | alone[b]) & ((codes[leaders[a]] != codes[leaders[b]]) | ~alone[a] | ~alone[b])
        if step > NEIGHBOURS and tau > SMALL:
            candidates &= (several[a] & alone[a]) | (several[b] & alone[b])
        for left, right in zip(a[candidates].tolist(), b[candidates].tolist(), strict=True):
            if np.linalg.norm(Z[leaders[left]] - Z[leaders[right]]) <= tau:
                _pair_up(twin, codes, order[starts[left] : ends[left]], order[starts[right] : ends[right]])


def _pair_up(twin: Integers, codes: Integers, first: Integers, second: Integers) -> None:
    """Give each row of one position a twin among the rows of the other position, and the reverse."""
    for rows, others in ((first, second), (second, first)):
        for row in rows[twin[rows] < 0]:
            differing = others[codes[others] != codes[row]]
            if len(differing):
                twin[row] = differing[0]

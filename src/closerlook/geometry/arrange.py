"""The space as the engine wants it: sorted by label, each place once, rows in conflict set aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from closerlook.geometry.frame import Floats, Frame, Integers, longest

NEIGHBOURS, SMALL = 16, 1e-3
"""How far along a line points within tau are looked for where tau is not small."""


@dataclass(frozen=True, eq=False)
class Arrangement:
    """The points in the frame: those that may merge first, by label, then the places of those in conflict.

    Z: (n + frozen, d), each place once for each label. starts: where each label begins. rows: for each row of Z a row
    of X. item: for each row of X its row of Z. mass: how many rows of X it stands for. conflicts: rows of X
    that are identical to one of another label. twin: for each such row, and others that never merge, a row of another
    label at its place; -1 for the rest. blocking: for each frozen place its label, or -1 where it has several.
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
    """The points sorted for the engine. Z: (n, d) in a frame; place: see `same_rows`; codes: below `labels`."""
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
    """For each row the number of its place: the same for identical rows."""
    bits = np.ascontiguousarray(points + 0.0).view(np.uint64)  # + 0.0: zero has two signs
    factors = np.random.default_rng(0).integers(1, 2**63, (points.shape[1],), dtype=np.uint64) | np.uint64(1)
    hashes = np.zeros(len(points), np.uint64)
    for column in range(points.shape[1]):
        mixed = bits[:, column] * factors[column]
        hashes = (hashes ^ (mixed ^ (mixed >> np.uint64(29)))) * np.uint64(0x9E3779B97F4A7C15)
    _, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    if not (points[first[place]] == points).all():  # two rows with one hash: compare the rows themselves
        place = np.unique(points + 0.0, axis=0, return_inverse=True)[1]
    return place.reshape(-1).astype(np.int64)


def _twins(codes: Integers, place: Integers) -> Integers:
    """For each row in conflict a row of another label at the same place; -1 for the others."""
    backwards = np.arange(len(place))[::-1]
    first = np.full(len(place), -1, np.int64)  # by place: its first row
    first[place[backwards]] = backwards
    other = np.full(len(place), -1, np.int64)  # by place: its first row of another label than that
    differing = backwards[codes[backwards] != codes[first[place[backwards]]]]
    other[place[differing]] = differing
    return np.where(codes == codes[first[place]], other[place], first[place])


def _add_near_twins(twin: Integers, Z: Floats, codes: Integers, place: Integers, tau: float) -> None:
    """Give a twin also to rows that are within tau of one of another label: as they are, they meet it.

    Points that near are neighbours along any line. The greedy would refuse all pairs of such rows by itself, but for
    rows at one place, which come to it as one: for these none is missed, for others only if tau is large.
    """
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.r_[True, place[order][1:] != place[order][:-1]])
    rows = np.split(order, starts[1:])  # of each place, ascending
    leaders = order[starts]
    several = np.diff(np.r_[starts, len(order)]) > 1
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
        asked = (alone[a] | alone[b]) & ((codes[leaders[a]] != codes[leaders[b]]) | ~alone[a] | ~alone[b])
        if step > NEIGHBOURS and tau > SMALL:
            asked &= (several[a] & alone[a]) | (several[b] & alone[b])
        for one, other in zip(a[asked].tolist(), b[asked].tolist(), strict=True):
            if np.linalg.norm(Z[leaders[one]] - Z[leaders[other]]) <= tau:
                _pair_up(twin, codes, rows[one], rows[other])


def _pair_up(twin: Integers, codes: Integers, here: Integers, there: Integers) -> None:
    for rows, others in ((here, there), (there, here)):
        for row in rows[twin[rows] < 0]:
            differing = others[codes[others] != codes[row]]
            if len(differing):
                twin[row] = differing[0]

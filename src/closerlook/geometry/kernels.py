"""The compiled inner loops as functions on arrays. Every call releases the interpreter lock."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.geometry.binding import LIBRARY, Engine, header, load
from closerlook.geometry.frame import Floats, Integers, longest

Signs = NDArray[np.int8]
Singles = NDArray[np.float32]
Codes = NDArray[np.int16]
Progress = Callable[[int, int], None]

_NUMBERS = header().constants
UNDECIDED, SEPARABLE, OVERLAPPING = (_NUMBERS[name] for name in ("UNDECIDED", "SEPARABLE", "OVERLAPPING"))
LEADS = _NUMBERS["LEADS"]


@cache
def library() -> Engine:
    """The compiled library; WorkError if the installation has none."""
    return load(LIBRARY)


def count_threads(threads: int | None) -> int:
    """The number of threads to use: the given number, or else the number of cores that this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads < 1:
        raise InputError(f"threads is {threads}; expected at least 1")
    return threads


@dataclass(frozen=True)
class Verdicts:
    """Verdicts on m pairs of hulls; certificates only if requested.

    verdict: (m,). lower, upper: (m,) bounds of the distances in the frame, rounding included. normal: (m, d)
    unit vectors from the second hull to the first. place, weight and side: (m, d + 4), of which the first active[i]
    entries are used: rows of Z, weights that sum to 1 on each side, and +1 for the first hull or -1 for the second.
    """

    verdict: Signs
    lower: Floats
    upper: Floats
    steps: Integers
    normal: Floats | None = None
    active: Integers | None = None
    place: Integers | None = None
    weight: Floats | None = None
    side: Signs | None = None

    def certificate(self, at: int) -> tuple[Integers, Floats, Signs, Floats]:
        """The active rows of Z, their weights and sides, and the normal, for one pair."""
        if self.normal is None or self.active is None or self.place is None or self.weight is None or self.side is None:
            raise ValueError("certificates were not requested")
        used = int(self.active[at])
        return self.place[at, :used], self.weight[at, :used], self.side[at, :used], self.normal[at].copy()


@dataclass(frozen=True)
class Rows:
    """Points Z (n, d) in a frame, also in single precision, and the length of the longest; for several calls."""

    Z: Floats
    single: Singles
    longest: float

    @classmethod
    def of(cls, Z: Floats) -> Rows:
        """Prepare the points Z."""
        return cls(Z, Z.astype(np.float32), longest(Z))


def max_steps(d: int) -> int:
    """An upper limit on solver steps, against endless loops; real pairs need a few times d steps."""
    return 100 * (d + 100)


def solve_pairs(
    Z: Floats | Rows,
    groups: Sequence[Integers],
    pairs: Integers,
    *,
    tau: float,
    slack: float,
    gap: float = 0.0,
    threads: int = 1,
    certificates: bool = False,
    progress: Progress | None = None,
) -> Verdicts:
    """Decide whether the hulls of each pair are separable or overlapping.

    Z: (n, d) points in a frame. groups: rows of Z for each hull. pairs: (m, 2) group numbers. gap: the relative gap to
    which distances are computed; 0 stops at the first proof of either verdict.
    """
    rows = Z if isinstance(Z, Rows) else Rows.of(Z)
    d = rows.Z.shape[1]
    m, room = len(pairs), d + 4
    starts = np.zeros(len(groups) + 1, np.int64)
    np.cumsum([len(group) for group in groups], out=starts[1:])
    places = np.concatenate(groups).astype(np.int64) if len(groups) else np.zeros(0, np.int64)
    answers = Verdicts(np.zeros(m, np.int8), np.zeros(m), np.zeros(m), np.zeros(m, np.int64))
    if certificates:
        shape = (m, room)
        answers = Verdicts(
            answers.verdict, answers.lower, answers.upper, answers.steps, np.zeros((m, d)), np.zeros(m, np.int64),
            np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, np.int8),
        )  # fmt: skip
    pairs = np.ascontiguousarray(pairs, dtype=np.int64)
    at, block = 0, 16 * threads if progress else m  # each call computes the means of all groups again
    while at < m:
        start, part = time.monotonic(), slice(at, at + block)
        parts = [None if array is None else array[part] for array in vars(answers).values()]
        library().solve_pairs(
            rows.Z, rows.single, rows.longest, d,
            starts, len(groups), places, pairs[part], len(pairs[part]),
            tau, slack, gap, max_steps(d), threads, *parts,
        )  # fmt: skip
        at += block
        if time.monotonic() - start < 0.2:  # keep calls short, so that progress is reported often
            block *= 2
        if progress:
            progress(min(at, m), m)
    return answers


def nearest(
    K: Floats, S: Floats, square: Floats, cutoff: Floats, *, d: int, gap: float, threads: int
) -> tuple[Floats, Floats]:
    """Bounds of the distances from m points to a hull of n points, from inner products alone.

    K: (n, n) inner products of the hull's points. S: (m, n) of the points with these. square: (m,) of the points with
    themselves. Work on a point ends once its lower bound exceeds its cutoff. upper is infinite where inner products do
    not have enough digits.
    """
    m, n = S.shape
    lower, upper = np.zeros(m), np.full(m, np.inf)
    library().nearest(
        K, n, S, square, cutoff, m, d, gap, threads,
        lower, upper,
    )  # fmt: skip
    return lower, upper


def nearest_in_strip(
    X: Floats, lengths: Floats, about: Singles, which: Integers, *, k: int, unit: float
) -> tuple[Integers, Floats]:
    """The k nearest rows of X for each of the rows `which`, nearest first, and their squared distances.

    about: (b, n) squared distances minus the row's own squared length, in single precision, with an error of at most
    unit * (|x| + |y|)². lengths: (n,) the values |x|. The smaller row wins a tie.
    """
    b, n = about.shape
    rows, squared = np.zeros((b, k), np.int64), np.zeros((b, k))
    library().nearest_in_strip(
        X, n, X.shape[1], lengths, about, which, b, k, unit, rows,
        squared,
    )  # fmt: skip
    return rows, squared


def offer_pairs(block: Floats, *, first: int, column: int, value: Floats, row: Integers, limit: Floats) -> None:
    """Take the pairs of a block of squared distances into the lists of the nearest rows of both rows of each pair.

    first, column: the rows of the block's first row and column; only pairs whose column is the larger row count. value,
    row: (n, r) the lists, nearest first. limit: (n,) the last value of each.
    """
    library().offer_pairs(block, *block.shape, first, column, value.shape[1], value, row, limit)


def settle_nearest(
    X: Floats, lengths: Floats, value: Floats, row: Integers, counted: Signs, *, k: int, unit: float
) -> tuple[Integers, Floats, NDArray[np.bool_]]:
    """The k nearest rows from lists of candidates, their squared distances, and whether no other row can be as near.

    value: (n, r) squared distances with an error of at most unit * (|x| + |y|)², those of all rows that are not listed
    are no smaller. counted: (n,) 1 for rows that count. lengths: (n,) the values |x|. The smaller row wins a tie.
    """
    n, room = row.shape
    rows, squared, settled = np.zeros((n, k), np.int64), np.zeros((n, k)), np.zeros(n, np.int8)
    library().settle_nearest(
        X, n, X.shape[1], lengths, value, row, room, counted, k, unit,
        rows, squared, settled,
    )  # fmt: skip
    return rows, squared, settled == 1


LEVELS = _NUMBERS["OCTAVES"] << _NUMBERS["FINE"]
"""Number of distance levels: 2^FINE in each octave."""

FINER = 1 << _NUMBERS["FINER"]
"""Levels that a crowded level is divided into."""

CROWDED = 1 / 1024
"""A level is crowded if it has more than this share of all distances."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Distance levels; distances at one level get the same rank.

    scale: a factor that brings every distance below 1. places: (LEVELS,) the index of each divided level among the
    divided ones, -1 for all others; None if no level is divided. Counts and ranks are arrays over levels. The FINER
    levels of each divided level come after all undivided ones.
    """

    scale: float
    places: Integers | None = None

    def refined(self, counts: Integers) -> Levels:
        """Levels with the crowded ones divided; self if none is. The first level, nearly 0, is never divided."""
        crowded = np.flatnonzero(counts > CROWDED * counts.sum())
        crowded = crowded[crowded > 0]
        if len(crowded) == 0:
            return self
        places = np.full(LEVELS, -1, np.int64)
        places[crowded] = np.arange(len(crowded))
        return Levels(self.scale, places)

    def divided(self) -> Integers:
        """The divided levels."""
        return np.flatnonzero(self.places >= 0) if self.places is not None else np.empty(0, np.int64)

    def zeros(self) -> Integers:
        """A count of 0 for each level."""
        return np.zeros(LEVELS + FINER * len(self.divided()), np.int64)

    def count(self, distances: Floats, diagonal: int, counts: Integers, codes: Codes | None = None) -> bool:
        """Add the number of distances at each level to the counts.

        distances: (b, c), of which those above the diagonal count; row 0 is at column `diagonal`. codes: (b, c) the
        levels in two bytes, written if no level is divided. False if a level has no code.
        """
        coded = np.zeros(1, np.intc)
        library().count_levels(
            distances, *distances.shape, diagonal, self.scale, self.places, counts, codes,
            coded,
        )  # fmt: skip
        return bool(coded[0])

    def rank(self, distances: Floats, diagonal: int, ranks: Floats, codes: Codes | None = None) -> Floats:
        """Replace the distances above the diagonal by their ranks, or by those of `codes`. ranks: by level."""
        library().rank_distances(
            distances, *distances.shape, diagonal, self.scale, self.places, ranks, codes,
        )  # fmt: skip
        return distances

    def add(self, distances: Floats, diagonal: int, ranks: Floats, counts: Integers, sums: Floats) -> None:
        """Count the distances above the diagonal by level, and add up the ranks (b, c) of the same pairs."""
        library().sum_ranks(
            distances, ranks, *distances.shape, diagonal, self.scale, self.places, counts,
            sums,
        )  # fmt: skip

    def ranks(self, counts: Integers) -> Floats:
        """The mean rank of the distances at each level, counted from 1."""
        divided = self.divided()
        inner = counts[LEVELS:].reshape(len(divided), FINER)
        outer = counts[:LEVELS].copy()
        outer[divided] = inner.sum(axis=1)
        below = np.cumsum(outer) - outer
        own = below[divided][:, None] + np.cumsum(inner, axis=1) - (inner - 1) / 2
        return np.concatenate([below + (outer + 1) / 2, own.ravel()])


@dataclass(frozen=True)
class Merging:
    """The result of the greedy merging of points that are sorted by label.

    All fields use the numbers of the points in that order.

    owner: (n,) a cluster number for each point. first, second, distance: the merges in order; a cluster is identified
    by its smallest point. a, b, blocking: for each blocked merge, a point of each of the two clusters, and a point of
    the blocking cluster (frozen position i is n + i). place, weight, side: the points, weights and sides of the
    certificates; blocked merge i has the entries begin[i] to begin[i + 1]. effort: the numbers of tests made.
    """

    owner: Integers
    first: Integers
    second: Integers
    distance: Floats
    a: Integers
    b: Integers
    blocking: Integers
    begin: Integers
    place: Integers
    weight: Floats
    side: Signs
    effort: dict[str, int]


def merge_greedily(
    Z: Floats,
    *,
    n: int,
    starts: Integers,
    order: Integers,
    mass: Floats,
    basis: Floats,
    foes: Sequence[Sequence[int]],
    blocks: Sequence[Sequence[int]],
    planes: Sequence[tuple[int, int, Floats]],
    tau: float,
    slack: float,
    tie: float,
    limit: int | None,
    alone: Signs,
    regions: Integers,
    threads: int,
    progress: Progress | None = None,
) -> Merging:
    """Run DirectProbe's greedy merging; native/engine.h describes the arguments."""
    native, d = library(), Z.shape[1]
    basis = np.vstack([basis, np.zeros((max(0, LEADS - 1 - len(basis)), d))])[: LEADS - 1].copy()
    foe_starts, foe_list = _ragged(foes)
    block_starts, block_list = _ragged(blocks)
    greedy, finished = ctypes.c_void_p(), np.zeros(1, np.intc)
    native.greedy_new(
        Z, n, len(Z) - n, d, len(starts) - 1, starts, order, mass,
        basis, regions, foe_starts, foe_list, block_starts, block_list,
        tau, slack, tie, -1 if limit is None else limit, alone, threads, ctypes.byref(greedy),
    )  # fmt: skip
    try:
        for label, foe, normal in planes:
            native.greedy_add_plane(greedy, label, foe, np.ascontiguousarray(normal))
        while not finished[0]:
            native.greedy_run(greedy, 0.2, finished)
            if progress and not finished[0]:
                progress(native.greedy_counts(greedy).merges, n)
        return _merging(native, greedy, n)
    finally:
        native.greedy_free(greedy)


def _ragged(lists: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(row) for row in lists], out=starts[1:])
    return starts, np.array([value for row in lists for value in row] + [0], dtype=np.int64)


def _merging(native: Engine, greedy: ctypes.c_void_p, n: int) -> Merging:
    counted = native.greedy_counts(greedy)
    effort = {name: int(getattr(counted, name)) for name, _ in counted._fields_}
    merges, refusals, weights = effort["merges"], effort["refusals"], effort["weights"]
    owner = np.zeros(n, np.int64)
    first, second, distance = np.zeros(merges, np.int64), np.zeros(merges, np.int64), np.zeros(merges)
    a, b, blocking = (np.zeros(refusals, np.int64) for _ in range(3))
    begin = np.zeros(refusals + 1, np.int64)
    place, weight, side = np.zeros(weights, np.int64), np.zeros(weights), np.zeros(weights, np.int8)
    native.greedy_owners(greedy, owner)
    native.greedy_merges(greedy, first, second, distance)
    native.greedy_refusals(greedy, a, b, blocking, begin)
    native.greedy_weights(greedy, place, weight, side)
    return Merging(owner, first, second, distance, a, b, blocking, begin, place, weight, side, effort)

"""The rank correlation of the distances between all pairs of rows in two spaces, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from closerlook.geometry.frame import Floats, Integers
from closerlook.geometry.kernels import Codes, Levels
from closerlook.geometry.pairs import Block, Candidates, Centred, block_memory, each_strip
from closerlook.geometry.shape import in_range

KEPT = 1.25
"""Memory for the levels of distances that are not computed again, as a multiple of the memory of one space."""


def rank_correlation(
    A: ArrayLike,
    B: ArrayLike,
    threads: int | None = None,
    near_a: Candidates | None = None,
    near_b: Candidates | None = None,
) -> float:
    """The Spearman correlation of the distances of all pairs of rows in A and B, by `Levels`; NaN if it is undefined.

    near_a, near_b: empty lists of nearest rows, which the passes over all pairs fill. The products of ranks need no
    second pass over B: their sum is, over the levels of B, the rank of the level times the sum of the ranks in A of the
    pairs at this level.
    """
    space, second = Centred.of(in_range(A)), Centred.of(in_range(B))
    levels = _levels(second)
    first = None if levels is None else RankedDistances.of(space, threads, near_a)
    if levels is None or first is None:
        return math.nan
    counts, sums = first.sums_by_level(second, levels, threads, near_b)
    finer = levels.refined(counts)
    if finer != levels:
        counts, sums = first.sums_by_level(second, finer, threads)
    ranks = _centred_ranks(finer, counts)
    squares = float(counts @ ranks**2) * float(first.counts @ first.ranks**2)
    return float(sums @ ranks) / math.sqrt(squares) if squares > 0 else math.nan


@dataclass(frozen=True)
class RankedDistances:
    """The ranks of the distances of all pairs of rows, minus their mean. counts, ranks: by level.

    codes: the levels of some blocks of distances, by their first row and column; other distances are computed again.
    """

    centred: Centred
    levels: Levels
    counts: Integers
    ranks: Floats
    codes: dict[tuple[int, int], Codes]

    @classmethod
    def of(cls, centred: Centred, threads: int | None, near: Candidates | None) -> RankedDistances | None:
        """Rank the distances; None if all are 0. near: filled with candidates for the nearest rows."""
        levels = _levels(centred)
        if levels is None:
            return None
        codes: dict[tuple[int, int], Codes] = {}
        counts = _summed(each_strip(_counter(centred, levels, codes, near), len(centred), threads))
        finer = levels.refined(counts)
        if finer != levels:
            codes.clear()
            counts = _summed(each_strip(_counter(centred, finer), len(centred), threads))
        return cls(centred, finer, counts, _centred_ranks(finer, counts), codes)

    def sums_by_level(
        self, other: Centred, levels: Levels, threads: int | None, near: Candidates | None = None
    ) -> tuple[Integers, Floats]:
        """For each level of the distances of another space, the number of pairs and the sum of their ranks here."""

        def add(start: int, end: int) -> tuple[Integers, Floats]:
            counts = levels.zeros()
            sums, memory = np.zeros(len(counts)), block_memory()
            for block in other.blocks(start, end):
                if near:
                    near.offer(block)
                levels.add(block.distances(), block.diagonal, self._ranks_of(block, memory), counts, sums)
            return counts, sums

        results = each_strip(add, len(other), threads)
        counts, sums = next(results)
        for more, further in results:
            counts += more
            sums += further
        if near:
            near.squares[:] = other.squares
        return counts, sums

    def _ranks_of(self, block: Block, memory: Floats) -> Floats:
        """(b, c) the ranks here of the pairs of a block, in the given memory."""
        codes = self.codes.get((block.first, block.column))
        if codes is None:
            distances = self.centred.block(block.first, block.column, memory).distances()
        else:
            distances = memory[: codes.size].reshape(codes.shape)
        return self.levels.rank(distances, block.diagonal, self.ranks, codes)


def _counter(
    centred: Centred,
    levels: Levels,
    codes: dict[tuple[int, int], Codes] | None = None,
    near: Candidates | None = None,
) -> Callable[[int, int], Integers]:
    """A function that counts the distances of a strip by level, and keeps the codes of the first blocks."""

    def count(start: int, end: int) -> Integers:
        counts = levels.zeros()
        for block in centred.blocks(start, end):
            if near:
                near.offer(block)
            kept = None
            if codes is not None and 2 * centred.entries_up_to(block) <= KEPT * centred.lifted.nbytes:
                kept = np.empty(block.squared.shape, np.int16)
            if levels.count(block.distances(), block.diagonal, counts, kept) and codes is not None and kept is not None:
                codes[block.first, block.column] = kept
        return counts

    if near:
        near.squares[:] = centred.squares
    return count


def _levels(centred: Centred) -> Levels | None:
    """Levels up to an upper bound of all distances; None if all are 0.

    The bound is an odd number, so that no level ends at a round fraction of the largest distance, where ties are
    likely.
    """
    top = 2.0007 * math.sqrt(float(centred.squares.max()))
    return Levels(1 / top) if len(centred) > 2 and top > 0 else None


def _summed(parts: Iterator[Integers]) -> Integers:
    """The counts of all strips."""
    total = next(parts)
    for counts in parts:
        total += counts
    return total


def _centred_ranks(levels: Levels, counts: Integers) -> Floats:
    """The rank of each level minus the mean of all ranks."""
    return levels.ranks(counts) - (float(counts.sum()) + 1) / 2

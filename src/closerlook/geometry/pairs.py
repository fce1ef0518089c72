"""All pairs of rows of a space: their distances block by block, and the nearest rows of each row."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from closerlook.geometry import kernels
from closerlook.geometry.frame import UNIT, Floats, Frame, Integers

TILE = 256
"""Rows of a block of distances."""

WIDTH = 512
"""Columns of a block of distances, at least TILE: a block stays in the cache of a core while it is used."""

STRIPS = 32
"""Number of parts into which the rows are divided, if each has at least TILE rows; several are computed in parallel."""

BLOCK_BYTES = 1 << 25
"""Memory for the distances from some rows to all rows in `nearest_rows`."""

MOST_TASKS = 8
"""The maximum number of tasks that run in parallel, so that memory is bounded for any number of threads."""

SPARE = 6
"""Candidates that are kept for each row in addition to its k nearest rows."""

Task = TypeVar("Task")
Result = TypeVar("Result")


# ---- parallel work ----


def each_strip(work: Callable[[int, int], Result], n: int, threads: int | None = None) -> Iterator[Result]:
    """Results of work(start, end) for consecutive strips of n rows. Strips do not depend on the number of threads."""
    rows = max(1, n // (STRIPS * TILE)) * TILE
    strips = [(start, min(start + rows, n)) for start in range(0, n, rows)]
    return in_order(lambda strip: work(*strip), strips, threads)


def in_order(work: Callable[[Task], Result], tasks: Sequence[Task], threads: int | None = None) -> Iterator[Result]:
    """The result of each task, in the order of the tasks.

    Linear algebra uses one thread per task, so results do not depend on the number of threads.
    """
    workers = max(1, min(kernels.count_threads(threads), len(tasks), MOST_TASKS))
    with one_thread(), ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Result]] = deque()
        for task in tasks:
            if len(waiting) > workers:  # bounds the memory of results not yet fetched
                yield waiting.popleft().result()
            waiting.append(pool.submit(work, task))
        while waiting:
            yield waiting.popleft().result()


def one_thread() -> AbstractContextManager[Any]:
    """Limit linear algebra to one thread, so that results do not depend on the number of threads.

    It is also faster on a busy machine: threads that wait for each other slow a small decomposition down tenfold.
    """
    limited: AbstractContextManager[Any] = _linear_algebra().limit(limits=1, user_api="blas")
    return limited


@cache
def _linear_algebra() -> Any:
    """The linear algebra libraries of this process, found once: the search takes milliseconds."""
    import scipy.linalg  # noqa: F401 - it loads a BLAS of its own, which must be limited too
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()


# ---- distances ----


def around_mean(points: Floats) -> Floats:
    """The points minus their mean; exactly 0 if all are identical, in spite of the rounding of the mean."""
    return np.zeros_like(points) if (points == points[0]).all() else points - points.mean(axis=0)


@dataclass(frozen=True)
class Block:
    """Squared distances from some rows, from `first` on, to some rows from `column` on. squared: (b, c).

    column is `first` or later. Pairs are counted once: above the diagonal, where the column is the larger row.
    """

    first: int
    column: int
    squared: Floats

    @property
    def last(self) -> int:
        """The row after the last."""
        return self.first + len(self.squared)

    @property
    def end(self) -> int:
        """The column after the last."""
        return self.column + int(self.squared.shape[1])

    @property
    def diagonal(self) -> int:
        """The position, among the columns of the block, of its first row; negative if all columns are later rows."""
        return self.first - self.column

    def distances(self) -> Floats:
        """(b, c) the distances, in the place of their squares."""
        return np.sqrt(self.squared, out=self.squared)


@dataclass(frozen=True)
class Centred:
    """Points minus their mean (n, d), and their squared lengths (n,).

    lifted: (n, d + 2) the rows, then 1 and the squared length, so that a product of matrices gives squared distances.
    """

    lifted: Floats

    @classmethod
    def of(cls, points: Floats, order: Integers | None = None) -> Centred:
        """The points minus their mean; exactly 0 if all are identical. order: (n,) the rows in their new order."""
        n, d = points.shape
        mean = points[0] if (points == points[0]).all() else points.mean(axis=0)
        lifted: Floats = np.empty((n, d + 2))
        for start in range(0, n, TILE):
            part = slice(start, start + TILE)
            np.subtract(points[part if order is None else order[part]], mean, out=lifted[part, :d])
        lifted[:, d] = 1.0
        np.einsum("ij,ij->i", lifted[:, :d], lifted[:, :d], out=lifted[:, d + 1])
        return cls(lifted)

    @property
    def rows(self) -> Floats:
        """(n, d) the points minus their mean."""
        return self.lifted[:, :-2]

    @property
    def squares(self) -> Floats:
        """(n,) their squared lengths."""
        return self.lifted[:, -1]

    def __len__(self) -> int:
        return len(self.lifted)

    def blocks(self, start: int, end: int) -> Iterator[Block]:
        """The distances from the rows start to end to each other and to all later rows. Start is a multiple of TILE.

        BLAS computes the last digits of an entry differently in products of different shapes. So the block that an
        entry comes from depends on n, TILE and WIDTH alone. The next block overwrites the numbers of the present one.
        """
        memory = block_memory()
        for first in range(start, end, TILE):
            for column in range(first, len(self), WIDTH):
                yield self.block(first, column, memory)

    def block(self, first: int, column: int, memory: Floats) -> Block:
        """One of the `blocks`. memory: where it is written."""
        last, end = min(first + TILE, len(self)), min(column + WIDTH, len(self))
        squared = memory[: (last - first) * (end - column)].reshape(last - first, end - column)
        left = -2 * self.lifted[first:last]
        left[:, -2], left[:, -1] = self.squares[first:last], 1.0
        np.matmul(left, self.lifted[column:end].T, out=squared)  # |x|² - 2 x·y + |y|²
        np.maximum(squared, 0, out=squared)
        if column == first:
            np.fill_diagonal(squared, 0.0)
        return Block(first, column, squared)

    def entries_up_to(self, block: Block) -> int:
        """The number of entries in all blocks of the space up to the end of this one."""
        whole = block.first * len(self) - block.first * (block.first - TILE) // 2  # of the tiles before
        return whole + (block.last - block.first) * (block.end - block.first)


def block_memory() -> Floats:
    """Memory for one block of distances."""
    return np.empty(TILE * WIDTH)


# ---- nearest rows ----


def nearest_rows(
    points: Floats, k: int, threads: int | None = None, which: Integers | None = None
) -> tuple[Integers, Floats]:
    """(n, k) the nearest other rows of each row, and their squared distances in units of a power of two.

    Candidates are chosen in single precision with a bound on its error. Their distances are computed from differences
    of coordinates, so that nearly identical rows are distinguished. The smaller row wins a tie. which: only for these
    rows.
    """
    frame = Frame.of(points)
    scaled, centred = np.ldexp(points, -frame.exponent), frame.place(points)
    squares = np.einsum("ij,ij->i", centred, centred)
    lengths, single, offsets = np.sqrt(squares), centred.astype(np.float32), squares.astype(np.float32)
    # An inner product of d terms and a sum, in any order: d + 1 roundings; the operands: 3; the rest is a margin.
    unit = 1.01 * (points.shape[1] + 8) * 2.0**-24

    def search(rows: Integers) -> tuple[Integers, Floats]:
        estimates = (-2 * single[rows]) @ single.T
        estimates += offsets
        return kernels.nearest_in_strip(scaled, lengths, estimates, rows, k=k, unit=unit)

    rows = np.arange(len(points)) if which is None else which
    size = max(1, BLOCK_BYTES // (4 * len(points)))
    strips = list(in_order(search, [rows[at : at + size] for at in range(0, len(rows), size)], threads))
    return np.concatenate([near for near, _ in strips]), np.concatenate([squared for _, squared in strips])


@dataclass(frozen=True)
class Candidates:
    """For each of n rows the k + SPARE nearest rows so far, by distances from inner products.

    They are collected while another measure goes over all pairs, which saves a second pass. Each pair may be offered
    once. value: (n, k + SPARE) squared distances in ascending order. row: the rows, -1 for none. limit: (n,) the last
    of the values. squares: (n,) the squared distances of the rows from their mean.
    """

    k: int
    value: Floats
    row: Integers
    limit: Floats
    squares: Floats
    lock: Lock = field(default_factory=Lock)

    @classmethod
    def none(cls, n: int, k: int) -> Candidates:
        """No candidates yet."""
        room = (n, k + SPARE)
        return cls(k, np.full(room, np.inf), np.full(room, -1), np.full(n, np.inf), np.zeros(n))

    def offer(self, block: Block) -> None:
        """Take in the pairs of a block. The order of blocks does not matter for what `nearest` returns."""
        with self.lock:
            kernels.offer_pairs(
                block.squared,
                first=block.first,
                column=block.column,
                value=self.value,
                row=self.row,
                limit=self.limit,
            )

    def renumber(self, order: Integers, squares: Floats) -> None:
        """Give the rows the numbers that they had before they were sorted, once all pairs have been offered.

        order: (n,) the former number of each sorted row. squares: of the sorted rows.
        """
        self.value[order], self.limit[order], self.squares[order] = self.value.copy(), self.limit.copy(), squares
        self.row[order] = np.where(self.row < 0, -1, order[self.row])

    def nearest(self, points: Floats, among: Integers, threads: int | None = None) -> tuple[Integers, Floats]:
        """For the rows `among`, in ascending order: the k nearest of them, and their squared distances.

        The distances of the candidates are computed from differences of coordinates, as in `nearest_rows`. Where a row
        that was dropped could be as near, within the bound on the error of inner products, as for many identical rows,
        all rows are searched. The unit of the distances is a power of two, the same for all distances of one row.
        """
        counted = np.zeros(len(points), np.int8)
        counted[among] = 1
        # Inner products, squares and differences: d roundings each; see `nearest_rows`.
        unit = 1.01 * (3 * points.shape[1] + 16) * UNIT
        near, squared, settled = kernels.settle_nearest(
            points, np.sqrt(self.squares), self.value, self.row, counted, k=self.k, unit=unit
        )
        near, squared = near[among], squared[among]
        rest = np.flatnonzero(~settled[among])
        if len(rest):
            rows = points if len(among) == len(points) else points[among]
            found, squared[rest] = nearest_rows(rows, self.k, threads, rest)
            near[rest] = among[found]
        return near, squared

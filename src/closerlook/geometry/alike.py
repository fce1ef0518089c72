"""How alike two spaces of the same rows are: linear CKA, Procrustes, RSA, shared neighbours."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from closerlook.errors import InputError
from closerlook.geometry.frame import Floats, Integers, as_points
from closerlook.geometry.shape import BLOCK_BYTES

NEIGHBOURS = 10
BINS = 1 << 20
"""Levels to which distances are told apart for their ranks: the error of a rank correlation stays below 1e-5."""


@dataclass(frozen=True)
class Alikeness:
    """Two spaces of the same n rows, in any numbers of dimensions; each is 1 for a rotated and scaled copy.

    cka: linear, debiased: 0 in expectation for unrelated spaces (Nguyen et al. 2021). procrustes: the sum of the
    singular values of the centred spaces' product, both scaled to length 1. rsa: the rank correlation of the distances
    of all pairs of rows. neighbours: the share of the k nearest rows that are the same (Jaccard, mean over rows).
    """

    cka: float
    procrustes: float
    rsa: float
    neighbours: float
    n: int
    k: int

    def to_dict(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


def alikeness(A: ArrayLike, B: ArrayLike, *, k: int = NEIGHBOURS) -> Alikeness:
    """All measures of two spaces of the same rows."""
    a, b = _paired(A, B)
    return Alikeness(linear_cka(a, b), procrustes(a, b), rsa(a, b), shared_neighbours(a, b, k=k), len(a), k)


def linear_cka(A: ArrayLike, B: ArrayLike) -> float:
    """Debiased linear CKA, from (d, d) products alone: no n × n matrix. NaN where n < 4 or a space is one point.

    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(100, 5))
    >>> round(linear_cka(A, 3 * A[:, ::-1] + 1), 9)
    1.0
    """
    a, b = _paired(A, B)
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    if len(a) < 4:
        return math.nan
    length = math.sqrt(max(0.0, _hsic(a, a)) * max(0.0, _hsic(b, b)))
    return _hsic(a, b) / length if length > 0 else math.nan


def _hsic(a: Floats, b: Floats) -> float:
    """The unbiased estimate of Song et al. (2012), for linear kernels without their diagonals."""
    n = len(a)
    own_a, own_b = (a**2).sum(axis=1), (b**2).sum(axis=1)
    rows_a, rows_b = a @ a.sum(axis=0) - own_a, b @ b.sum(axis=0) - own_b
    crossed = float(((a.T @ b) ** 2).sum() - own_a @ own_b)
    sums = float(rows_a.sum() * rows_b.sum()) / ((n - 1) * (n - 2))
    return (crossed + sums - 2 * float(rows_a @ rows_b) / (n - 2)) / (n * (n - 3))


def procrustes(A: ArrayLike, B: ArrayLike) -> float:
    """How far one space can be turned into the other: 1 minus half the squared distance that is left.

    >>> round(procrustes([[0, 0], [1, 0], [0, 2]], [[0, 0], [0, 3], [-6, 0]]), 9)
    1.0
    """
    a, b = _paired(A, B)
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    if length == 0:
        return math.nan
    if max(a.shape[1], b.shape[1]) > len(a):  # the product of rows is smaller
        a, b = _rotated(a), _rotated(b)
    return float(np.linalg.svd(a.T @ b, compute_uv=False).sum()) / length


def _rotated(a: Floats) -> Floats:
    """The same points in no more dimensions than there are points."""
    left, singular, _ = np.linalg.svd(a, full_matrices=False)
    turned: Floats = left * singular
    return turned


def rsa(A: ArrayLike, B: ArrayLike) -> float:
    """The Spearman correlation of the Euclidean distances of all pairs of rows; blockwise, in bounded memory.

    Distances are told apart at BINS levels; those of one level share their mean rank, as ties do.
    """
    a, b = _paired(A, B)
    if len(a) < 3:
        return math.nan
    tops = [_top(space) for space in (a, b)]
    if min(tops) == 0:
        return math.nan
    counts = [np.zeros(BINS + 1, np.int64) for _ in range(2)]
    for levels in _levels(a, b, tops):
        counts = [count + np.bincount(level, minlength=BINS + 1) for count, level in zip(counts, levels, strict=True)]
    ranks = [np.cumsum(count) - (count - 1) / 2 for count in counts]
    pairs = len(a) * (len(a) - 1) / 2
    middle = (pairs + 1) / 2
    product = sum(
        float((ranks[0][first] - middle) @ (ranks[1][second] - middle)) for first, second in _levels(a, b, tops)
    )
    squares = [float(count @ (rank - middle) ** 2) for count, rank in zip(counts, ranks, strict=True)]
    return product / math.sqrt(squares[0] * squares[1]) if min(squares) > 0 else math.nan


def _top(space: Floats) -> float:
    """No two rows are farther apart."""
    return 2.0 * float(np.linalg.norm(space - space.mean(axis=0), axis=1).max())


def _levels(a: Floats, b: Floats, tops: list[float]) -> Any:
    """The levels of the distances of all pairs, in both spaces, block by block."""
    rows = max(1, BLOCK_BYTES // (8 * len(a)))
    for at in range(0, len(a), rows):
        later = np.arange(at, len(a))
        keep = np.arange(at, min(at + rows, len(a)))[:, None] < later
        yield [
            (np.sqrt(_block(space, at, rows)) * (BINS / top)).astype(np.int64)[keep]
            for space, top in ((a, tops[0]), (b, tops[1]))
        ]


def _block(space: Floats, at: int, rows: int) -> Floats:
    """The squared distances of some rows to themselves and all later ones."""
    centred = space[at:] - space.mean(axis=0)
    squares = (centred**2).sum(axis=1)
    found: Floats = squares[:rows, None] + squares - 2 * centred[:rows] @ centred.T
    return np.maximum(found, 0, out=found)


def shared_neighbours(A: ArrayLike, B: ArrayLike, *, k: int = NEIGHBOURS) -> float:
    """The Jaccard index of each row's k nearest in both spaces, mean over rows; ties go to the smaller row."""
    a, b = _paired(A, B)
    if not 1 <= k < len(a):
        raise InputError(f"k is {k}; expected 1 to {len(a) - 1}, as there are {len(a)} rows")
    total = 0.0
    rows = max(1, BLOCK_BYTES // (8 * len(a)))
    for at in range(0, len(a), rows):
        near_a, near_b = (_nearest(space, at, rows, k) for space in (a, b))
        shared = np.array([len(np.intersect1d(x, z)) for x, z in zip(near_a, near_b, strict=True)])
        total += float((shared / (2 * k - shared)).sum())
    return total / len(a)


def _nearest(space: Floats, at: int, rows: int, k: int) -> Integers:
    """(b, k) the nearest rows of some."""
    centred = space - space.mean(axis=0)
    part = centred[at : at + rows]
    block = (centred**2).sum(axis=1) - 2 * part @ centred.T
    block[np.arange(len(part)), np.arange(at, at + len(part))] = np.inf
    limit = np.partition(block, k - 1, axis=1)[:, k - 1 : k]
    sure = np.where(block < limit, -1.0, np.where(block == limit, 0.0, 1.0))
    return np.argsort(sure, axis=1, kind="stable")[:, :k]


def _paired(A: ArrayLike, B: ArrayLike) -> tuple[Floats, Floats]:
    a, b = as_points(A, "A"), as_points(B, "B")
    if len(a) != len(b):
        raise InputError(f"A has {len(a)} rows and B {len(b)}; expected the same rows in both")
    return a, b

"""Point similarity of two spaces with the same rows: linear CKA, Procrustes, RSA, shared neighbours."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from closerlook.errors import InputError
from closerlook.geometry.frame import Floats, Integers
from closerlook.geometry.pairs import Candidates, around_mean, nearest_rows, one_thread
from closerlook.geometry.ranks import rank_correlation
from closerlook.geometry.shape import in_range

NEIGHBOURS = 10

ROUNDING = 1e-13
"""A difference below this fraction of the squares it was computed from is rounding error."""


@dataclass(frozen=True)
class PointSimilarity:
    """Point similarity of two spaces with the same n rows; each measure is 1 for a rotated and scaled copy.

    cka: linear, debiased, so that unrelated spaces have expectation 0 (Nguyen et al. 2021). procrustes: the sum of the
    singular values of A'B, both centred and scaled to length 1. rsa: the rank correlation of the distances between all
    pairs of rows. neighbours: the Jaccard index of the k nearest rows, mean over rows.

    >>> A = np.random.default_rng(0).normal(size=(50, 3))
    >>> point_similarity = compare_points(A, 2 * A[:, ::-1] + 1)
    >>> {name: round(value, 6) for name, value in point_similarity.to_dict().items()}
    {'cka': 1.0, 'procrustes': 1.0, 'rsa': 1.0, 'neighbours': 1.0, 'n': 50, 'k': 10}
    """

    cka: float
    procrustes: float
    rsa: float
    neighbours: float
    n: int
    k: int

    def to_dict(self) -> dict[str, float]:
        """The fields by name."""
        return asdict(self)


def compare_points(A: ArrayLike, B: ArrayLike, *, k: int = NEIGHBOURS, threads: int | None = None) -> PointSimilarity:
    """All point similarities of two spaces with the same rows.

    >>> rng = np.random.default_rng(0)
    >>> A, noise = rng.normal(size=(200, 5)), rng.normal(size=(200, 5))
    >>> near, unrelated = compare_points(A, A + 0.1 * noise), compare_points(A, noise)
    >>> near.cka > 0.9 > 0.2 > unrelated.cka, near.neighbours > unrelated.neighbours
    (True, True)
    """
    a, b = _paired(A, B)
    n = len(a)
    _check_neighbours(k, n)
    cka, rotated, differ = linear_cka(a, b), procrustes(a, b), _differ(a, b)
    del a, b  # so that the passes over all pairs have this memory
    near_a, near_b = Candidates.none(n, k), Candidates.none(n, k)
    correlation = rank_correlation(A, B, threads, near_a, near_b)
    shared = math.nan
    if differ:
        every = np.arange(n)
        shared = _shared(
            *(near.nearest(in_range(space), every, threads)[0] for near, space in ((near_a, A), (near_b, B)))
        )
    return PointSimilarity(cka, rotated, correlation, shared, n, k)


def linear_cka(A: ArrayLike, B: ArrayLike) -> float:
    """Debiased linear CKA, computed from (d, d) products: no n × n matrix.

    NaN if n < 4, or if all rows of a space are identical or equally far from each other.

    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(100, 5))
    >>> round(linear_cka(A, 3 * A[:, ::-1] + 1), 9)
    1.0
    """
    a, b = _paired(A, B)
    a, b = around_mean(a), around_mean(b)
    if len(a) < 4:
        return math.nan
    own = [_hsic(space, space) for space in (a, b)]
    sizes = [float((space**2).sum()) / len(space) for space in (a, b)]
    if any(hsic <= ROUNDING * size**2 for hsic, size in zip(own, sizes, strict=True)):
        return math.nan
    return _hsic(a, b) / math.sqrt(own[0] * own[1])


def _hsic(a: Floats, b: Floats) -> float:
    """The unbiased estimate of HSIC by Song et al. (2012), for linear kernels without their diagonals."""
    n = len(a)
    own_a, own_b = (a**2).sum(axis=1), (b**2).sum(axis=1)
    rows_a, rows_b = a @ a.sum(axis=0) - own_a, b @ b.sum(axis=0) - own_b
    crossed = float(((a.T @ b) ** 2).sum() - own_a @ own_b)
    sums = float(rows_a.sum() * rows_b.sum()) / ((n - 1) * (n - 2))
    return (crossed + sums - 2 * float(rows_a @ rows_b) / (n - 2)) / (n * (n - 3))


def procrustes(A: ArrayLike, B: ArrayLike) -> float:
    """Procrustes similarity: 1 minus half the squared distance that remains after the best rotation.

    >>> round(procrustes([[0, 0], [1, 0], [0, 2]], [[0, 0], [0, 3], [-6, 0]]), 9)
    1.0
    """
    a, b = _paired(A, B)
    a, b = around_mean(a), around_mean(b)
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    if length == 0:
        return math.nan
    with one_thread():
        if max(a.shape[1], b.shape[1]) > len(a):  # fewer rows than dimensions: rotate first
            a, b = _rotated(a), _rotated(b)
        return float(np.linalg.svd(a.T @ b, compute_uv=False).sum()) / length


def _rotated(a: Floats) -> Floats:
    """The same points in at most as many dimensions as there are points."""
    left, singular, _ = np.linalg.svd(a, full_matrices=False)
    rotated: Floats = left * singular
    return rotated


def rsa(A: ArrayLike, B: ArrayLike, *, threads: int | None = None) -> float:
    """The Spearman correlation of the Euclidean distances between all pairs of rows, in bounded memory.

    Distances are ranked by level. A level is one part in 16,384 wide; levels with more than one pair in a thousand, as
    in a collapsed space, are divided to one part in 67 million. Distances at one level share their mean rank, as ties
    do, which moves the correlation by less than 1e-5. All distances below 6 · 10⁻⁸ of the largest are one level, as
    inner products there are only rounding error. The result does not depend on the number of threads, and on the size
    of strips only by the order in which products are summed.
    """
    _paired(A, B)
    return rank_correlation(A, B, threads)


def shared_neighbours(A: ArrayLike, B: ArrayLike, *, k: int = NEIGHBOURS, threads: int | None = None) -> float:
    """The Jaccard index of each row's k nearest rows in both spaces, mean over rows.

    The smaller row wins a tie. NaN if all rows of a space are identical.
    """
    a, b = _paired(A, B)
    _check_neighbours(k, len(a))
    return _shared(*(nearest_rows(space, k, threads)[0] for space in (a, b))) if _differ(a, b) else math.nan


def _shared(near_a: Integers, near_b: Integers) -> float:
    """The Jaccard index of the neighbours (n, k) in two spaces, mean over rows."""
    near, k = np.sort(np.hstack([near_a, near_b]), axis=1), near_a.shape[1]
    shared = (near[:, 1:] == near[:, :-1]).sum(axis=1)
    return float((shared / (2 * k - shared)).mean())


def _differ(*spaces: Floats) -> bool:
    """Whether each space has rows that are not identical."""
    return all((space != space[0]).any() for space in spaces)


def _check_neighbours(k: int, n: int) -> None:
    """Raise InputError unless each of n rows has k others."""
    if not 1 <= k < n:
        raise InputError(f"k is {k}; expected 1 to {n - 1}, as there are {n} rows")


def _paired(A: ArrayLike, B: ArrayLike) -> tuple[Floats, Floats]:
    """Check both spaces: the same number of rows."""
    a, b = in_range(A, "A"), in_range(B, "B")
    if len(a) != len(b):
        raise InputError(f"A has {len(a)} rows and B {len(b)}; expected the same rows in both")
    return a, b

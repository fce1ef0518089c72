"""The shape of one space: how far its labels have collapsed, how many dimensions it fills, how evenly it fills them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from closerlook.errors import InputError
from closerlook.geometry import kernels
from closerlook.geometry.frame import Floats, Frame, Integers, as_labels, as_points, blocks

BLOCK_BYTES = 1 << 25
"""What the distances of a strip of rows to all rows may take; several strips are under way at a time."""

TILE = 128
"""Rows whose distances are one matrix product. Strips begin at multiples of it."""

MOST_TASKS = 8
"""Under way at a time, however many threads there are: memory stays bounded."""

EMPTY = 1e-6
"""Directions with less than this part of the largest spread hold nothing but the rounding of 32-bit vectors."""

IN_RANGE = 100
"""Coordinates up to two to this power are taken as they come: their eighth power is a number still."""

OUTLYING = 3.0
"""Standard deviations from which on a dimension's mean stands out."""


@dataclass(frozen=True)
class Collapse:
    """Neural collapse (Papyan, Han & Donoho 2020): 0 is complete for all but nc4, which is then 1.

    nc1: trace of within-label over between-label covariance, divided by the number of labels. cdnv: within-label
    variance over squared distance of means, mean over pairs of labels (Galanti et al. 2022). nc2_norm, nc2_angle: how
    unequal the means are in length (deviation over mean) and in angle (deviation of the cosines). nc3: distance of the
    means from the rows of a linear classifier, both scaled to length 1. nc4: how often that classifier says what the
    nearest mean says.
    """

    nc1: float
    cdnv: float
    nc2_norm: float
    nc2_angle: float
    nc3: float
    nc4: float

    def to_dict(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


def collapse(X: ArrayLike, y: ArrayLike) -> Collapse:
    """How far a space has collapsed onto the means of its labels; the classifier is that of least squares.

    All are NaN where all rows are the same; where only the means are, nc1 and cdnv are infinite, nc2 and nc3 NaN.

    >>> corners = np.eye(3).repeat(4, axis=0)
    >>> found = collapse(corners, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    >>> round(found.nc1, 9), round(found.nc2_norm, 9), round(found.nc2_angle, 9), found.nc4
    (0.0, 0.0, 0.0, 1.0)
    """
    points, codes, m = labelled(X, y)
    centred = around_mean(points)
    if not centred.any():
        return Collapse(*[math.nan] * 6)
    with one_thread():
        means, counts = class_means(centred, codes, m)
        within = centred - means[codes]
        spread = np.bincount(codes, (within**2).sum(axis=1), m) / counts  # each label's variance
        arms = means - means.mean(axis=0)
        lengths = np.linalg.norm(arms, axis=1)
        i, j = np.triu_indices(m, 1)
        apart = np.concatenate([((means[at + 1 :] - means[at]) ** 2).sum(axis=1) for at in range(m)])
        cosines = _cosines(arms)[i, j]
        said, weights = _least_squares(centred, codes, m)
        near = nearest_mean(centred, means)
        return Collapse(
            nc1=_trace_ratio(within, arms) / m,
            cdnv=float(np.mean((spread[i] + spread[j]) / (2 * apart))) if (apart > 0).all() else math.inf,
            nc2_norm=float(lengths.std() / lengths.mean()) if lengths.mean() > 0 else math.nan,
            nc2_angle=float(cosines.std()) if lengths.all() else math.nan,
            nc3=float(np.linalg.norm(_unit(weights) - _unit(arms))),
            nc4=float(np.mean(said == near)),
        )


def _trace_ratio(within: Floats, arms: Floats) -> float:
    """tr(W B+), W the covariance within labels, B that of their means; in the space they span, infinite without one."""
    m = len(arms)
    _, singular, directions = np.linalg.svd(arms / math.sqrt(m), full_matrices=False)
    kept = singular > singular.max(initial=0) * 1e-10
    if not kept.any():
        return math.inf
    inside = (within @ directions[kept].T) / singular[kept]
    return float((inside**2).sum() / len(within))


def _least_squares(centred: Floats, codes: Integers, m: int) -> tuple[Integers, Floats]:
    """What the linear classifier of least squares says of each row, and its weights (m, d)."""
    target = np.full((len(codes), m), -1.0 / m)
    target[np.arange(len(codes)), codes] += 1.0
    values, axes = np.linalg.eigh(centred.T @ centred)
    kept = values > EMPTY**2 * values[-1]
    inside = axes[:, kept] / values[kept]
    weights = (inside @ (axes[:, kept].T @ (centred.T @ (target - target.mean(axis=0))))).T
    return (centred @ weights.T + target.mean(axis=0)).argmax(axis=1), weights


def nearest_mean(points: Floats, means: Floats) -> Integers:
    """(n,) the place of the nearest of some means, for each point."""
    nearest: Integers = ((means**2).sum(axis=1) - 2 * points @ means.T).argmin(axis=1)
    return nearest


def _unit(matrix: Floats) -> Floats:
    """Scaled to length 1; NaN where there is no length."""
    length = np.linalg.norm(matrix)
    return matrix / (length if length > 0 else math.nan)


def _cosines(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    found: Floats = unit @ unit.T
    return found


# ---- dimension ----


def participation_ratio(X: ArrayLike) -> float:
    """How many dimensions the variance is spread over: (sum of eigenvalues)² over the sum of their squares.

    >>> round(participation_ratio([[1, 0], [-1, 0], [0, 1], [0, -1]]), 9)
    2.0
    """
    values = _variances(in_range(X))
    total = (values**2).sum()
    return float(values.sum() ** 2 / total) if total > 0 else 0.0


def two_nn(X: ArrayLike, *, discard: float = 0.1, threads: int | None = None) -> float:
    """The intrinsic dimension by the distances to the two nearest neighbours (Facco et al. 2017).

    A row that is there several times counts once: its nearest neighbour is the nearest that lies elsewhere. discard:
    the share of the largest ratios left out of the fit, as in the paper. NaN with fewer than four places.
    """
    points = _places(in_range(X))
    if len(points) < 4:
        return math.nan
    squared = nearest_rows(points, 2, threads)[1]
    ratio = np.sort(np.sqrt(squared[:, 1] / squared[:, 0]))
    kept = ratio[: int(len(ratio) * (1 - discard))]
    logs = np.log(kept)
    share = -np.log(1 - np.arange(1, len(kept) + 1) / len(ratio)) if discard else _open_share(len(ratio))
    return float((logs @ share) / (logs @ logs)) if (logs > 0).any() else math.nan


def _open_share(n: int) -> Floats:
    """As the discarding fit has it, but finite for the last of all."""
    return -np.log(1 - np.arange(1, n + 1) / (n + 1))


def _places(points: Floats) -> Floats:
    """The rows that differ, each once, in an order that depends on nothing else."""
    rows = np.ascontiguousarray(points + 0.0)  # which makes 0 of -0
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    return rows[np.unique(whole, return_index=True)[1]]


# ---- isotropy ----


@dataclass(frozen=True)
class Isotropy:
    """iso_score: 1 where the variance is the same in all directions, 0 where all is in one (Rudman et al. 2022).

    mean_cosine: of two rows. outlier_dimensions: the share of dimensions whose mean lies more than OUTLYING standard
    deviations from the mean of all dimensions (Kovaleva et al. 2021).
    """

    iso_score: float
    mean_cosine: float
    outlier_dimensions: float

    def to_dict(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


def isotropy(X: ArrayLike) -> Isotropy:
    """How evenly a space fills its dimensions.

    >>> isotropy([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]).iso_score
    1.0
    """
    points = in_range(X)
    d = points.shape[1]
    lengths = np.linalg.norm(points, axis=1)
    unit = points[lengths > 0] / lengths[lengths > 0, None]
    k = len(unit)
    cosine = (float((unit.sum(axis=0) ** 2).sum()) - k) / (k * (k - 1)) if k > 1 else math.nan
    means = points.mean(axis=0)
    deviation = means.std()
    outlying = np.abs(means - means.mean()) > OUTLYING * deviation if deviation > 0 else np.zeros(d, bool)
    return Isotropy(_iso_score(_variances(points), d), cosine, float(outlying.mean()))


def _iso_score(variances: Floats, d: int) -> float:
    """From the variances along the principal axes."""
    length = float(np.linalg.norm(variances))
    if d == 1 or length == 0:
        return 1.0 if d == 1 else math.nan
    every = np.zeros(d)
    every[: len(variances)] = variances
    defect = np.linalg.norm(math.sqrt(d) * every / length - 1) / math.sqrt(2 * (d - math.sqrt(d)))
    share = (d - defect**2 * (d - math.sqrt(d))) ** 2 / d**2
    return float((d * share - 1) / (d - 1))


def _variances(points: Floats) -> Floats:
    """The variances along the principal axes, the largest first; no more than rows or columns."""
    centred = around_mean(points)
    n, d = centred.shape
    with one_thread():
        gram = centred.T @ centred if d <= n else centred @ centred.T
        values = np.linalg.eigvalsh(gram)[::-1]
    found: Floats = np.clip(values, 0, None) / max(1, n - 1)
    return found


# ---- shared ----


def in_range(X: ArrayLike, name: str = "X") -> Floats:
    """Checked points, by a power of two where they are so large or small that products of their squares would be lost.

    No measure here depends on the unit.
    """
    points = as_points(X, name)
    exponent = int(np.frexp(max(float(np.abs(block).max()) for block in blocks(points)))[1])
    return points if abs(exponent) <= IN_RANGE else np.ldexp(points, -exponent)


def labelled(X: ArrayLike, y: ArrayLike) -> tuple[Floats, Integers, int]:
    """Checked points, the place of each row's label, and how many labels there are: at least two."""
    points = in_range(X)
    labels, codes = as_labels(y, len(points))
    if len(labels) < 2:
        raise InputError(f"y has one label, {labels[0]!r}; expected at least two")
    return points, codes, len(labels)


def around_mean(points: Floats) -> Floats:
    """The points less their mean; exactly 0 where all are the same, which the rounding of the mean would hide."""
    return np.zeros_like(points) if (points == points[0]).all() else points - points.mean(axis=0)


def class_means(points: Floats, codes: Integers, m: int) -> tuple[Floats, Floats]:
    """(m, d) the mean of each label, and how many rows it has."""
    counts = np.bincount(codes, minlength=m).astype(np.float64)
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    return np.add.reduceat(points[order], starts, axis=0) / counts[:, None], counts


# ---- all pairs of rows ----

Task = TypeVar("Task")
Found = TypeVar("Found")


def each_strip(work: Callable[[int, int], Found], n: int, threads: int | None = None, item: int = 8) -> Iterator[Found]:
    """work(start, end) for strips of n rows; item: the bytes of one distance. Strips do not depend on threads."""
    rows = max(1, BLOCK_BYTES // (item * n * TILE)) * TILE
    strips = [(start, min(start + rows, n)) for start in range(0, n, rows)]
    return in_order(lambda strip: work(*strip), strips, threads)


def in_order(work: Callable[[Task], Found], tasks: Sequence[Task], threads: int | None = None) -> Iterator[Found]:
    """What comes of each task, in their order, whichever is done first.

    Linear algebra takes one thread for each task: tasks share the cores, and digits do not depend on their number.
    """
    workers = max(1, min(kernels.count_threads(threads), len(tasks), MOST_TASKS))
    with one_thread(), ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Found]] = deque()
        for task in tasks:
            if len(waiting) > workers:  # results that nobody has fetched yet take memory
                yield waiting.popleft().result()
            waiting.append(pool.submit(work, task))
        while waiting:
            yield waiting.popleft().result()


def one_thread() -> AbstractContextManager[Any]:
    """Linear algebra on one thread: the same digits everywhere; on a busy machine, threads that wait for each other
    take ten times as long over a small decomposition.
    """
    limited: AbstractContextManager[Any] = _linear_algebra().limit(limits=1, user_api="blas")
    return limited


@cache
def _linear_algebra() -> Any:
    """The libraries of this process, found once: looking for them takes milliseconds."""
    import scipy.linalg  # noqa: F401 - it brings a library of its own, which must be loaded to be found
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()


def later_distances(centred: Floats, squares: Floats, start: int, end: int) -> Floats:
    """(end - start, n - start) the distances from the rows of a strip to each other and to all later rows.

    centred, squares: as `centre` returns them. BLAS computes the last digits of an entry differently in products of
    different shapes. So the product that an entry comes from depends on n and TILE alone, not on the strip: TILE rows
    with all rows from the first of these on.
    """
    result: Floats = np.empty((end - start, len(centred) - start))
    for first in range(start, end, TILE):
        last = min(first + TILE, end)
        tile = result[first - start : last - start, first - start :]
        np.matmul(-2 * centred[first:last], centred[first:].T, out=tile)
        tile += squares[first:last, None]
        tile += squares[first:]
        np.maximum(tile, 0, out=tile)
        np.fill_diagonal(tile, 0.0)
        np.sqrt(tile, out=tile)
        result[first - start : last - start, : first - start] = result[: first - start, first - start : last - start].T
    return result


def centre(points: Floats) -> tuple[Floats, Floats]:
    """The points around their mean, and the squares of their lengths."""
    centred = around_mean(points)
    return centred, np.einsum("ij,ij->i", centred, centred)


def nearest_rows(points: Floats, k: int, threads: int | None = None) -> tuple[Integers, Floats]:
    """(n, k) the nearest other rows of each, and their squared distances in units of a power of two.

    Single precision makes a first choice, wide enough for its error; distances come from differences, so that rows that
    are identical or nearly so are told apart. Of equally near rows the smaller comes first.
    """
    frame = Frame.of(points)
    scaled, centred = np.ldexp(points, -frame.exponent), frame.place(points)
    squares = np.einsum("ij,ij->i", centred, centred)
    lengths, single, offsets = np.sqrt(squares), centred.astype(np.float32), squares.astype(np.float32)
    # Inner products of d terms and a sum, in any order: d + 1 roundings; the operands' own: 3; the rest is room.
    unit = 1.01 * (points.shape[1] + 8) * 2.0**-24

    def search(start: int, end: int) -> tuple[Integers, Floats]:
        about = (-2 * single[start:end]) @ single.T
        about += offsets
        return kernels.nearest_in_strip(scaled, lengths, about, first=start, k=k, unit=unit)

    found = list(each_strip(search, len(points), threads, item=4))
    return np.concatenate([rows for rows, _ in found]), np.concatenate([squared for _, squared in found])

"""What parts of a space foresee: the similarity of its halves or folds, and how well that predicts another number."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from closerlook.errors import InputError
from closerlook.geometry.clusters import cluster
from closerlook.geometry.distances import LabelDistances, Statistic, cluster_distances, label_distances
from closerlook.geometry.frame import Floats, Integers, Label, as_labels, as_points, plain
from closerlook.geometry.hulls import TAU
from closerlook.geometry.kernels import Progress
from closerlook.geometry.resampling import at_least, correlation, finite, rows_of
from closerlook.geometry.similarity import spatial_similarity


@dataclass(frozen=True)
class SplitSimilarity:
    """The spatial similarity of parts of one space: what train and test may show at best.

    values: one for each repeat of two halves, or one for each fold and repeat; NaN where fewer than 3 labels are in
    both parts. mean: over those that are not; low, high: the smallest and the largest, NaN with fewer than 3. few:
    labels of fewer rows than folds, which some parts lack.
    """

    values: tuple[float, ...]
    mean: float
    low: float
    high: float
    few: tuple[Label, ...]
    folds: int
    repeats: int

    def to_dict(self) -> dict[str, Any]:
        """By name, for JSON: NaN is None, tuples are lists."""
        return {key: plain(value) for key, value in asdict(self).items()}


def split_similarity(
    X: ArrayLike,
    y: ArrayLike,
    *,
    folds: int = 2,
    repeats: int = 1,
    seed: int = 0,
    tau: float = TAU,
    min_points: int = 1,
    statistic: Statistic = "mean",
    threads: int | None = None,
    progress: Progress | None = None,
) -> SplitSimilarity:
    """How alike parts of a space place the labels: one half with the other, or each fold with the rest.

    Each label's rows are shuffled and dealt out; every part is clustered on its own.

    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(80) % 4
    >>> found = split_similarity(rng.normal(size=(80, 2)) + 9 * np.array([[0, 0], [1, 0], [3, 0], [9, 0]])[y], y)
    >>> found.mean > 0.99, len(found.values), found.few
    (True, 1, ())
    """
    at_least("folds", folds, 2)
    at_least("repeats", repeats, 1)
    points = as_points(X)
    labels, codes = as_labels(y, len(points))
    names = np.array(labels)[codes]

    def distances(rows: NDArray[np.bool_]) -> LabelDistances:
        found = cluster(points[rows], names[rows], tau=tau, threads=threads)
        apart = cluster_distances(points[rows], found, min_points=min_points, threads=threads)
        return label_distances(apart, statistic=statistic)

    values = []
    for repeat in range(repeats):
        part = deal(codes, folds, np.random.default_rng([seed, 8, repeat]))
        for fold in range(folds if folds > 2 else 1):
            values.append(_similarity(distances(part == fold), distances(part != fold)))
            if progress:
                progress(len(values), repeats * (folds if folds > 2 else 1))
    known = finite(values)
    low, high = (float(known.min()), float(known.max())) if len(known) >= 3 else (math.nan, math.nan)
    few = tuple(label for label, count in zip(labels, np.bincount(codes), strict=True) if count < folds)
    return SplitSimilarity(
        tuple(values), float(known.mean()) if len(known) else math.nan, low, high, few, folds, repeats
    )


def deal(codes: Integers, folds: int, rng: np.random.Generator) -> Integers:
    """(n,) the part of each row: each label's rows, shuffled, go to the parts in turn.

    The next label goes on where the last one stopped, so that parts are of equal size, within one row.
    """
    part = np.empty(len(codes), np.int64)
    order = np.concatenate([rng.permutation(rows) for rows in rows_of(codes)])
    part[order] = np.arange(len(codes)) % folds
    return part


def _similarity(a: LabelDistances, b: LabelDistances) -> float:
    """The Pearson correlation of two tables; NaN with fewer than 3 labels in both."""
    known = [{label for label, other, _ in one.nearest() if other is not None} for one in (a, b)]
    if len(known[0] & known[1]) < 3:
        return math.nan
    return spatial_similarity(a, b, permutations=0, resamples=0).pearson


@dataclass(frozen=True)
class Prediction:
    """How well one number of each cell of a study foretells another.

    n: cells that have both. difference: the mean absolute difference. error: the root mean square error of a line
    through all cells but the one that it predicts; baseline: that of the mean of all but it. spearman_interval: over
    cells drawn again. What cannot be computed is NaN; with fewer than 3 cells, all but `difference`.
    """

    n: int
    pearson: float
    spearman: float
    spearman_interval: tuple[float, float]
    difference: float
    error: float
    baseline: float

    def to_dict(self) -> dict[str, Any]:
        """By name, for JSON: NaN is None, tuples are lists."""
        return {key: plain(value) for key, value in asdict(self).items()}


def predictiveness(foreseen: ArrayLike, actual: ArrayLike, *, resamples: int = 2000, seed: int = 0) -> Prediction:
    """How well `foreseen` (of split halves, say) predicts `actual` (of train and test) over the cells of a study.

    >>> found = predictiveness([0.1, 0.4, 0.6, 0.9], [0.2, 0.5, 0.7, 1.0])
    >>> round(found.pearson, 6), round(found.difference, 6), round(found.error, 6), found.n
    (1.0, 0.1, 0.0, 4)
    """
    x, y = np.asarray(foreseen, dtype=np.float64), np.asarray(actual, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise InputError(
            f"foreseen has shape {x.shape} and actual {y.shape}; expected one number of both for each cell"
        )
    x, y = x[~np.isnan(x + y)], y[~np.isnan(x + y)]
    n = len(x)
    difference = float(np.abs(x - y).mean()) if n else math.nan
    if n < 3:
        return Prediction(n, math.nan, math.nan, (math.nan, math.nan), difference, math.nan, math.nan)
    rng = np.random.default_rng([seed, 9])
    draws = rng.integers(n, size=(resamples, n))
    ranks = zip(rankdata(x[draws], axis=1), rankdata(y[draws], axis=1), strict=True)
    drawn = finite([correlation(one, other) for one, other in ranks])
    ends = np.quantile(drawn, [0.025, 0.975]).tolist() if len(drawn) > resamples / 2 else [math.nan] * 2
    return Prediction(
        n,
        correlation(x, y),
        correlation(rankdata(x), rankdata(y)),
        (ends[0], ends[1]),
        difference,
        _left_out_error(x, y),
        float(np.sqrt(np.mean((y - y.mean()) ** 2)) * n / (n - 1)),
    )


def _left_out_error(x: Floats, y: Floats) -> float:
    """The root mean square error of least-squares lines, each predicting the point that it was not fitted to."""
    dx = x - x.mean()
    square = float(dx @ dx)
    leverage = 1 / len(x) + dx**2 / square if square > 0 else np.ones(len(x))
    if leverage.max() > 1 - 1e-9:  # without this point the others have one x: no line
        return math.nan
    residual = y - y.mean() - dx * (dx @ y) / square
    return float(np.sqrt(np.mean((residual / (1 - leverage)) ** 2)))

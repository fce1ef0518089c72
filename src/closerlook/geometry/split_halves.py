"""Spatial similarity of halves or folds of one space, and how well it predicts another quantity."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry.clusters import cluster
from closerlook.geometry.distances import LabelDistances, Statistic, cluster_distances, label_distances
from closerlook.geometry.frame import Floats, Integers, Label, as_labels, as_points, at_least, plain, with_nuls
from closerlook.geometry.hulls import TAU
from closerlook.geometry.kernels import Progress
from closerlook.geometry.resampling import correlation, finite, rows_of
from closerlook.geometry.similarity import spatial_similarity
from closerlook.geometry.weighted import Ranked, weighted_correlations


@dataclass(frozen=True)
class SplitSimilarity:
    """Spatial similarity of parts of one space: an estimate of the highest similarity of train and test.

    values: one for each repeat of two halves, or one for each fold and repeat; NaN if fewer than 3 labels are in both
    parts. mean: without NaN. low, high: the smallest and the largest value; NaN with fewer than 3 values. few: labels
    with fewer rows than folds, which some parts lack.
    """

    values: tuple[float, ...]
    mean: float
    low: float
    high: float
    few: tuple[Label, ...]
    folds: int
    repeats: int

    def to_dict(self) -> dict[str, object]:
        """The fields for JSON: NaN becomes None, tuples become lists."""
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
    """Spatial similarity of parts of a space: one half and the other, or each fold and the rest.

    Each label's rows are shuffled and distributed over the parts; every part is clustered separately.

    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(80) % 4
    >>> result = split_similarity(rng.normal(size=(80, 2)) + 9 * np.array([[0, 0], [1, 0], [3, 0], [9, 0]])[y], y)
    >>> result.mean > 0.99, len(result.values), result.few
    (True, 1, ())
    """
    at_least("folds", folds, 2)
    at_least("repeats", repeats, 1)
    points = as_points(X)
    labels, codes = as_labels(y, len(points))
    if folds > len(points):
        raise InputError(f"folds is {folds}; expected at most {len(points)}, as there are {len(points)} rows")
    names = np.asarray(with_nuls(labels))[codes]

    def distances(rows: NDArray[np.bool_]) -> LabelDistances:
        clustering = cluster(points[rows], names[rows], tau=tau, threads=threads)
        hull_distances = cluster_distances(points[rows], clustering, min_points=min_points, threads=threads)
        return label_distances(hull_distances, statistic=statistic)

    values = []
    for repeat in range(repeats):
        part = assign_folds(codes, folds, seed=seed, repeat=repeat)
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


def assign_folds(codes: Integers, folds: int, *, seed: int, repeat: int = 0) -> Integers:
    """(n,) the part of each row: each label's rows, shuffled, are distributed over the parts in turn.

    Each label continues where the last one stopped, so the sizes of parts differ by at most one row.
    """
    rng = np.random.default_rng([seed, 8, repeat])
    part = np.empty(len(codes), np.int64)
    order = np.concatenate([rng.permutation(rows) for rows in rows_of(codes)])
    part[order] = np.arange(len(codes)) % folds
    return part


def _similarity(a: LabelDistances, b: LabelDistances) -> float:
    """The Pearson correlation of two tables; NaN with fewer than 3 common labels."""
    if len(a.measured() & b.measured()) < 3:
        return math.nan
    return spatial_similarity(a, b, permutations=0, resamples=0).pearson


@dataclass(frozen=True)
class Prediction:
    """How well one quantity predicts another over the cells of a study.

    n: cells that have both; groups: groups of related cells. difference: the mean absolute difference. error: the root
    mean square error of a line fitted to all other groups; baseline: that of their mean. spearman_interval: a 95%
    bootstrap interval over groups, and over splits if their number `splits` is not 0. single_split: the lowest and the
    highest Spearman correlation with one split instead of the mean over all. Values that cannot be computed are NaN;
    with fewer than 3 groups, all but `difference`.
    """

    n: int
    groups: int
    pearson: float
    spearman: float
    spearman_interval: tuple[float, float]
    difference: float
    error: float
    baseline: float
    splits: int = 0
    single_split: tuple[float, float] = (math.nan, math.nan)

    def to_dict(self) -> dict[str, object]:
        """The fields for JSON: NaN becomes None, tuples become lists."""
        return {key: plain(value) for key, value in asdict(self).items()}


def predictiveness(
    foreseen: ArrayLike,
    actual: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    splits: ArrayLike | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Prediction:
    """How well `foreseen` (such as the similarity of split halves) predicts `actual` (such as train and test).

    groups: names of groups of related cells, such as the seeds and layers of one encoder on one task; a group is drawn
    and held out as a whole. By default each cell is a group. splits: (n, k) the values in k random splits of which
    `foreseen` is the mean; then every bootstrap draw also draws k splits for each cell.

    >>> result = predictiveness([0.1, 0.4, 0.6, 0.9], [0.2, 0.5, 0.7, 1.0])
    >>> round(result.pearson, 6), round(result.difference, 6), round(result.error, 6), result.n
    (1.0, 0.1, 0.0, 4)
    """
    x, y = np.asarray(foreseen, dtype=np.float64), np.asarray(actual, dtype=np.float64)
    names = np.arange(len(x)) if groups is None else np.asarray(groups)
    if x.shape != y.shape or x.ndim != 1 or names.shape != x.shape:
        raise InputError(
            f"foreseen has shape {x.shape}, actual {y.shape} and groups {names.shape}; expected one of each per cell"
        )
    known = ~np.isnan(x + y)
    single = _splits_of(x, splits)[known]
    x, y, codes = x[known], y[known], np.unique(names[known], return_inverse=True)[1].reshape(-1)
    rows = rows_of(codes) if len(codes) else []
    difference = float(np.abs(x - y).mean()) if len(x) else math.nan
    if len(rows) < 3:
        unknown = (math.nan, math.nan)
        return Prediction(len(x), len(rows), math.nan, math.nan, unknown, difference, math.nan, math.nan)
    error, baseline = _held_out_errors(x, y, rows)
    rng = np.random.default_rng([seed, 9])
    by_split = finite([_spearman(column, y) for column in single.T])
    return Prediction(
        len(x),
        len(rows),
        correlation(x, y),
        _spearman(x, y),
        _bootstrap_interval(x, y, rows, resamples, rng, splits=single),
        difference,
        error,
        baseline,
        single.shape[1],
        (float(by_split.min()), float(by_split.max())) if len(by_split) else (math.nan, math.nan),
    )


def _splits_of(x: Floats, splits: ArrayLike | None) -> Floats:
    """(n, k) the values in single splits, with the mean where one is missing; (n, 0) without splits."""
    single = np.empty((len(x), 0)) if splits is None else np.asarray(splits, dtype=np.float64)
    if single.ndim != 2 or len(single) != len(x):
        raise InputError(f"splits has shape {single.shape}; expected ({len(x)}, k), the values of k splits per cell")
    return np.where(np.isnan(single), x[:, None], single)


def _spearman(x: Floats, y: Floats) -> float:
    from scipy.stats import rankdata

    return correlation(rankdata(x), rankdata(y))


def _bootstrap_interval(
    x: Floats,
    y: Floats,
    rows: list[Integers],
    resamples: int,
    rng: np.random.Generator,
    *,
    splits: Floats | None = None,
) -> tuple[float, float]:
    """The 95% bootstrap interval of the Spearman correlation over groups; NaN if half of the draws have none.

    splits: (n, k) the values in single splits; if there are any, a draw uses the mean of k splits drawn for each cell.
    """
    draws = rng.integers(len(rows), size=(resamples, len(rows)))
    times = np.zeros((resamples, len(x)))
    for group, members in enumerate(rows):
        times[:, members] = (draws == group).sum(axis=1, keepdims=True)
    if splits is None or not splits.shape[1]:
        drawn = finite(weighted_correlations(times, Ranked.of(x), Ranked.of(y))[1])
    else:
        chosen = (rng.integers(splits.shape[1], size=splits.shape) for _ in times)
        means = [np.take_along_axis(splits, columns, axis=1).mean(axis=1) for columns in chosen]
        pairs = zip(times, means, strict=True)
        drawn = finite([weighted_correlations(w[None], Ranked.of(mean), Ranked.of(y))[1][0] for w, mean in pairs])
    if len(drawn) <= resamples / 2:
        return math.nan, math.nan
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return low, high


def _held_out_errors(x: Floats, y: Floats, rows: list[Integers]) -> tuple[float, float]:
    """The root mean square errors of a line and of the mean, each predicting a group it was not fitted to.

    The error of the line is NaN if all other groups have the same x.
    """
    line, mean = np.empty(len(x)), np.empty(len(x))
    for group in rows:
        rest = np.ones(len(x), bool)
        rest[group] = False
        dx = x[rest] - x[rest].mean()
        square = float(dx @ dx)
        flat = square <= 1e-18 * float(x[rest] @ x[rest])
        slope = math.nan if flat else float(dx @ y[rest]) / square
        mean[group] = y[rest].mean()
        line[group] = mean[group] + slope * (x[group] - x[rest].mean())
    return float(np.sqrt(np.mean((y - line) ** 2))), float(np.sqrt(np.mean((y - mean) ** 2)))

"""How sure the distances are: halves of the examples, parts compared with one another, and p-values for many labels.

Distances of hulls are extremes: on Gaussian labels (2 to 50 dimensions, 8 to 200 rows a label) a bootstrap of the rows
finds 0.6 to 0.8 of their deviation, and its 95% intervals hold the expected value seven or eight times in ten. Halves
are drawn instead, two at a time: they share no row, so that half the squared difference of the two is, without bias,
the variance of samples of half the size; that of the whole is as a rule no larger. There these intervals hold the
expected value in 89 to 99%; in two spaces of encoders they were a quarter to a third wider than samples apart ask for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import false_discovery_control, rankdata
from scipy.stats import t as student

from closerlook.errors import InputError
from closerlook.geometry.clusters import Clustering, cluster
from closerlook.geometry.distances import (
    LabelDistances,
    PlacedClusters,
    Statistic,
    cluster_distances,
    label_distances,
)
from closerlook.geometry.frame import Floats, Integers, Label, as_labels, as_points
from closerlook.geometry.hulls import TAU
from closerlook.geometry.kernels import Progress
from closerlook.geometry.similarity import spatial_similarity

Method = Literal["holm", "fdr"]

GAP = 1e-3
"""The relative gap of a replicate's distances: far below what drawing the examples again changes."""


# --- Halves of the examples ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Resampled:
    """Label distances of B halves of a space: replicates 0 and 1 are the two halves of one split, 2 and 3 of the next.

    values: (B, m, m) as `LabelDistances.values`; NaN for a label of whose clusters of min_points rows none was drawn.
    seed: replicates of the same seed and label sizes draw the same rows.
    """

    labels: tuple[Label, ...]
    values: Floats
    statistic: Statistic
    min_points: int
    seed: int

    @property
    def resamples(self) -> int:
        """B, how many replicates there are."""
        return len(self.values)

    def minimum(self) -> Floats:
        """(B, m) the distance of each label to the nearest other one; NaN where it has none."""
        apart = np.where(np.eye(len(self.labels), dtype=bool) | np.isnan(self.values), np.inf, self.values)
        least = apart.min(axis=2, initial=np.inf)
        return np.where(np.isinf(least), np.nan, least)

    def mean_minimum(self) -> Floats:
        """(B,) the mean of these over the labels that have one; NaN where none has."""
        return _nan_mean(self.minimum(), axis=1)

    def to_dict(self) -> dict[str, Any]:
        """The labels, the options, and the minimum distances, for JSON: NaN is None; the tables stay in `values`."""
        return {
            "labels": list(self.labels),
            "statistic": self.statistic,
            "min_points": self.min_points,
            "seed": self.seed,
            "resamples": self.resamples,
            "minimum": _plain(self.minimum().tolist()),
            "mean_minimum": _plain(self.mean_minimum().tolist()),
        }


def resample_distances(
    X: ArrayLike,
    clustering: Clustering,
    *,
    resamples: int = 20,
    seed: int = 0,
    min_points: int = 1,
    statistic: Statistic = "mean",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Resampled:
    """The label distances of replicates: of half of each label's rows, and then of the other half, split after split.

    X: (n, d) the points that were clustered. Hulls of some rows of disjoint hulls are disjoint, so the clusters of the
    whole serve for every replicate, and those of fewer than min_points rows are left out of all. See `draw` for the
    rows, `interval` for what to do with the replicates.

    >>> X, y = [[0.0], [1.0], [3.0], [4.0], [9.0]], ["a", "a", "b", "b", "c"]
    >>> found = resample_distances(X, cluster(X, y), resamples=4)
    >>> found.values.shape, bool((found.minimum() >= [2.0, 2.0, 5.0]).all())
    ((4, 3, 3), True)
    """
    _at_least("resamples", resamples, 0)
    _at_least("min_points", min_points, 1)
    codes = clustering.cluster_codes[clustering.assignments]
    placed = PlacedClusters(X, clustering, min_points=min_points, threads=threads)
    values = np.empty((resamples, clustering.n_labels, clustering.n_labels))
    for at in range(resamples):
        drawn = placed.distances(draw(codes, seed=seed, replicate=at), gap=GAP)
        values[at] = label_distances(drawn, statistic=statistic).values
        if progress:
            progress(at + 1, resamples)
    return Resampled(clustering.labels, values, statistic, min_points, seed)


def draw(codes: Integers, *, seed: int, replicate: int) -> NDArray[np.bool_]:
    """(n,) which rows a replicate draws: a half of each label's, or for odd replicates the half that the last one left.

    codes: (n,) the label of each row. Chance decides which half has the larger part of an odd number; the only row of a
    label is in both. It depends on seed, replicate and label sizes alone, so that spaces of the same examples are drawn
    alike.
    """
    rng = np.random.default_rng([seed, 7, replicate // 2])
    drawn = np.zeros(len(codes), dtype=bool)
    for rows in _rows_of(codes):
        shuffled, middle = rng.permutation(rows), (len(rows) + int(rng.integers(2))) // 2
        drawn[shuffled[middle:] if replicate % 2 else shuffled[:middle]] = True
        if len(rows) == 1:
            drawn[rows] = True
    return drawn


def interval(
    value: float, replicates: ArrayLike, *, level: float = 0.95, within: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float]:
    """The interval of a value from its replicates, (B,): around the value, as wide as the halves of splits differ.

    The hull of some rows lies inside the hull of all, so that two hulls are never nearer in a replicate than they are,
    and percentiles of the replicates would lie above the value, often wholly. How much they differ is what is used, not
    where they lie: `bias` tells that. The deviation, from the two halves of each split (see the module), is taken times
    Student's t with as many degrees of freedom as there are splits. Splits with a NaN are left out; both ends are NaN
    with fewer than two. within: bounds to cut it to, as (-1, 1) for similarities and (0, inf) for distances.

    >>> low, high = interval(1.0, [2.0, 3.0, 3.0, 2.0, 2.0, 3.0])
    >>> round(low, 3), round(high, 3), interval(1.0, [2.0, 3.0, 3.0, 2.0], within=(0, np.inf))[0]
    (-1.25, 3.25, 0.0)
    """
    if not 0 < level < 1:
        raise InputError(f"level is {level}; expected a share between 0 and 1, as 0.95")
    (deviation,), (splits,) = _deviation(np.asarray(replicates, dtype=np.float64).reshape(-1, 1))
    if splits < 2 or not math.isfinite(value):
        return math.nan, math.nan
    reach = deviation * student.ppf((1 + level) / 2, splits)
    low, high = np.clip([value - reach, value + reach], *within).tolist()
    return low, high


def bias(value: float, replicates: ArrayLike) -> float:
    """How far the replicates lie above the value in the mean: what the other half of the rows takes off, or adds.

    Below it only where clusters without a row drawn drop out of the mean of their label.

    >>> bias(1.0, [2.0, 3.0, 4.0])
    2.0
    """
    found = _finite(replicates)
    return float(found.mean() - value) if len(found) else math.nan


def resample_similarity(a: Resampled, b: Resampled) -> Floats:
    """(B,) the spatial similarity of replicate i of a with replicate i of b: Pearson over the labels of both.

    Of the same examples with the same seed, both draw the same rows, and what they share cancels; of other examples
    (train and test) the draws have nothing to do with one another. Pairs of labels without a distance are left out; NaN
    with fewer than 3 labels. The interval: `interval(similarity, replicates, within=(-1, 1))`.
    """
    if a.resamples != b.resamples:
        raise InputError(f"a has {a.resamples} replicates and b has {b.resamples}; expected as many of both")
    common = [label for label in a.labels if label in b.labels]
    i, j = ([one.labels.index(label) for label in common] for one in (a, b))
    left, right = a.values[:, i][:, :, i], b.values[:, j][:, :, j]
    return np.array([_pearson_of_tables(x, y) for x, y in zip(left, right, strict=True)])


def change_p_values(before: Resampled, after: Resampled, change: ArrayLike) -> Floats:
    """(m,) for each label, the two-sided p-value of its minimum distance not having changed.

    change: (m,) what the whole samples show, after less before. Both must be drawn alike: the same examples and seed.
    A few tens of replicates say how large the error is, not how its tails look: the change is divided by the deviation
    of the replicates' changes, as `interval` has it, and compared with Student's t with as many degrees of freedom as
    there are splits. NaN where fewer than two splits have the label, or where all halves change by the same.
    """
    if before.labels != after.labels or before.values.shape != after.values.shape or before.seed != after.seed:
        raise InputError(
            f"before has {before.resamples} replicates of {len(before.labels)} labels (seed {before.seed}), after "
            f"{after.resamples} of {len(after.labels)} (seed {after.seed}); expected the same labels, drawn alike"
        )
    seen = np.asarray(change, dtype=np.float64)
    if seen.shape != (len(before.labels),):
        raise InputError(f"change has shape {seen.shape}; expected one for each of the {len(before.labels)} labels")
    deviation, splits = _deviation(after.minimum() - before.minimum())
    known = (splits >= 2) & (deviation > 0)
    ratio = np.abs(seen) / np.where(known, deviation, np.nan)
    return np.asarray(2 * student.sf(ratio, np.maximum(splits, 1)))


def adjust(p_values: ArrayLike, method: Method = "holm") -> Floats:
    """P-values adjusted for how many there are; NaN stays NaN and is not counted.

    holm: no false finding among all, but with probability p; step down. fdr: the share of false ones among the findings
    (Benjamini and Hochberg).

    >>> adjust([0.01, 0.04, float("nan"), 0.03]).round(6).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    if method not in ("holm", "fdr"):
        raise InputError(f"method is {method!r}; expected 'holm' or 'fdr'")
    given = np.asarray(p_values, dtype=np.float64)
    adjusted, there = np.full(given.shape, np.nan), ~np.isnan(given)
    p = given[there]
    if method == "fdr":
        adjusted[there] = false_discovery_control(p) if len(p) else p
        return adjusted
    order = np.argsort(p)
    steps = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    adjusted[there] = steps[np.argsort(order)]
    return adjusted


# --- Split halves ----------------------------------------------------------------------------------------------------


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
        return {key: _plain(value) for key, value in asdict(self).items()}


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
    _at_least("folds", folds, 2)
    _at_least("repeats", repeats, 1)
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
    known = _finite(values)
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
    order = np.concatenate([rng.permutation(rows) for rows in _rows_of(codes)])
    part[order] = np.arange(len(codes)) % folds
    return part


def _similarity(a: LabelDistances, b: LabelDistances) -> float:
    """The Pearson correlation of two tables; NaN with fewer than 3 labels in both."""
    known = [{label for label, other, _ in one.nearest() if other is not None} for one in (a, b)]
    if len(known[0] & known[1]) < 3:
        return math.nan
    return spatial_similarity(a, b, permutations=0, resamples=0).pearson


# --- Labels of few rows, and what split halves foresee ---------------------------------------------------------------


def few_points(labels: Sequence[Label], counts: ArrayLike, d: int, *, least: int = 5) -> dict[Label, str]:
    """The labels of fewer than `least` rows, each with the reason to doubt its distances; none is dropped.

    >>> few_points(["ADJ", "X"], [812, 3], 512)
    {'X': '3 points in 512 dimensions; fewer than 5'}
    """
    given = np.asarray(counts, dtype=np.int64).tolist()
    if len(given) != len(labels):
        raise InputError(f"counts has {len(given)} numbers; expected one for each of the {len(labels)} labels")
    return {
        label: f"{count} point{'s' * (count != 1)} in {d} dimension{'s' * (d != 1)}; fewer than {least}"
        for label, count in zip(labels, given, strict=True)
        if count < least
    }


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
        return {key: _plain(value) for key, value in asdict(self).items()}


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
    drawn = _finite([_correlation(one, other) for one, other in ranks])
    ends = np.quantile(drawn, [0.025, 0.975]).tolist() if len(drawn) > resamples / 2 else [math.nan] * 2
    return Prediction(
        n,
        _correlation(x, y),
        _correlation(rankdata(x), rankdata(y)),
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


# --- Small mathematics -----------------------------------------------------------------------------------------------


def _deviation(replicates: Floats) -> tuple[Floats, Integers]:
    """(m,) the standard deviation from the halves of each split, NaN without any, and of how many splits.

    replicates: (B, m). Of two independent samples, half the squared difference is the variance, in the mean.
    """
    whole = len(replicates) // 2 * 2
    squares = (replicates[0:whole:2] - replicates[1:whole:2]) ** 2 / 2
    return np.sqrt(_nan_mean(squares, axis=0)), (~np.isnan(squares)).sum(axis=0)


def _rows_of(codes: Integers) -> list[Integers]:
    """The rows of each label, ascending."""
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])


def _pearson_of_tables(a: Floats, b: Floats) -> float:
    """The correlation of the pairs i < j that both tables have; NaN with fewer than 3 labels."""
    i, j = np.triu_indices(len(a), 1)
    there = ~np.isnan(a[i, j] + b[i, j])
    if there.sum() < 3:  # fewer labels than 3 have fewer pairs
        return math.nan
    return _correlation(a[i, j][there], b[i, j][there])


def _correlation(x: Floats, y: Floats) -> float:
    """Pearson's; NaN where a side is constant, up to rounding."""
    dx, dy = x - x.mean(), y - y.mean()
    if min(np.ptp(x) / (np.abs(x).max() or 1.0), np.ptp(y) / (np.abs(y).max() or 1.0)) <= 1e-12:
        return math.nan
    dx, dy = dx / np.abs(dx).max(), dy / np.abs(dy).max()
    return float(np.clip(dx @ dy / (np.linalg.norm(dx) * np.linalg.norm(dy)), -1.0, 1.0))


def _nan_mean(values: Floats, axis: int) -> Floats:
    """The mean of what is not NaN, without numpy's warning where all is."""
    count = (~np.isnan(values)).sum(axis=axis)
    return np.asarray(np.nansum(values, axis=axis) / np.where(count > 0, count, np.nan))


def _finite(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64).ravel()
    return array[np.isfinite(array)]


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InputError(f"{name} is {value}; expected at least {least}")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value

"""How sure the distances are: halves of the examples, and p-values for many labels.

Distances of hulls are extremes: on Gaussian labels (2 to 50 dimensions, 8 to 200 rows a label) a bootstrap of the rows
finds 0.6 to 0.8 of their deviation, and its 95% intervals hold the expected value seven or eight times in ten. Halves
are drawn instead, two at a time: they share no row, so that half the squared difference of the two is, without bias,
the variance of samples of half the size; that of the whole is as a rule no larger. There these intervals hold the
expected value in 89 to 99%; in two spaces of encoders they were a quarter to a third wider than samples apart ask for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import false_discovery_control
from scipy.stats import t as student

from closerlook.errors import InputError
from closerlook.geometry.clusters import Clustering
from closerlook.geometry.distances import PlacedClusters, Statistic, label_distances
from closerlook.geometry.frame import Floats, Integers, Label, at_least, plain
from closerlook.geometry.kernels import Progress

Method = Literal["holm", "fdr"]

GAP = 1e-3
"""The relative gap of a replicate's distances: far below what drawing the examples again changes."""


# --- Halves of the examples ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ResampledDistances:
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
            "minimum": plain(self.minimum().tolist()),
            "mean_minimum": plain(self.mean_minimum().tolist()),
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
) -> ResampledDistances:
    """The label distances of replicates: of half of each label's rows, and then of the other half, split after split.

    X: (n, d) the points that were clustered. Hulls of some rows of disjoint hulls are disjoint, so the clusters of the
    whole serve for every replicate, and those of fewer than min_points rows are left out of all. See `draw` for the
    rows, `interval` for what to do with the replicates.

    >>> from closerlook.geometry.clusters import cluster
    >>> X, y = [[0.0], [1.0], [3.0], [4.0], [9.0]], ["a", "a", "b", "b", "c"]
    >>> found = resample_distances(X, cluster(X, y), resamples=4)
    >>> found.values.shape, bool((found.minimum() >= [2.0, 2.0, 5.0]).all())
    ((4, 3, 3), True)
    """
    at_least("resamples", resamples, 0)
    at_least("min_points", min_points, 1)
    codes = clustering.cluster_codes[clustering.assignments]
    placed = PlacedClusters(X, clustering, min_points=min_points, threads=threads)
    values = np.empty((resamples, clustering.n_labels, clustering.n_labels))
    for at in range(resamples):
        drawn = placed.distances(draw(codes, seed=seed, replicate=at), gap=GAP)
        values[at] = label_distances(drawn, statistic=statistic).values
        if progress:
            progress(at + 1, resamples)
    return ResampledDistances(clustering.labels, values, statistic, min_points, seed)


def draw(codes: Integers, *, seed: int, replicate: int) -> NDArray[np.bool_]:
    """(n,) which rows a replicate draws: a half of each label's, or for odd replicates the half that the last one left.

    codes: (n,) the label of each row. Chance decides which half has the larger part of an odd number; the only row of a
    label is in both. It depends on seed, replicate and label sizes alone, so that spaces of the same examples are drawn
    alike.
    """
    rng = np.random.default_rng([seed, 7, replicate // 2])
    drawn = np.zeros(len(codes), dtype=bool)
    for rows in rows_of(codes):
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
    found = finite(replicates)
    return float(found.mean() - value) if len(found) else math.nan


def resample_similarity(a: ResampledDistances, b: ResampledDistances) -> Floats:
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


def change_p_values(before: ResampledDistances, after: ResampledDistances, change: ArrayLike) -> Floats:
    """(m,) for each label, the two-sided p-value of its minimum distance not having changed.

    change: (m,) what the whole samples show, after less before. Both must be drawn alike: the same examples and seed.
    A few tens of replicates say how large the error is, not how its tails look: the change is divided by the deviation
    of the replicates' changes, as `interval` has it, and compared with Student's t with as many degrees of freedom as
    there are splits. Distances are computed within GAP, so that no deviation is taken to be below GAP of them. NaN
    where fewer than two splits have the label, or where all halves change by the same.
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
    floor = GAP * (_nan_mean(before.minimum(), axis=0) + _nan_mean(after.minimum(), axis=0))
    ratio = np.abs(seen) / np.where(known, np.hypot(deviation, floor), np.nan)
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
    if ((p < 0) | (p > 1)).any():
        raise InputError(f"p_values holds {p[(p < 0) | (p > 1)][0]:g}; expected probabilities, from 0 to 1")
    if method == "fdr":
        adjusted[there] = false_discovery_control(p) if len(p) else p
        return adjusted
    order = np.argsort(p)
    steps = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    adjusted[there] = steps[np.argsort(order)]
    return adjusted


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


# --- Small mathematics -----------------------------------------------------------------------------------------------


def _deviation(replicates: Floats) -> tuple[Floats, Integers]:
    """(m,) the standard deviation from the halves of each split, NaN without any, and of how many splits.

    replicates: (B, m). Of two independent samples, half the squared difference is the variance, in the mean.
    """
    whole = len(replicates) // 2 * 2
    squares = (replicates[0:whole:2] - replicates[1:whole:2]) ** 2 / 2
    return np.sqrt(_nan_mean(squares, axis=0)), (~np.isnan(squares)).sum(axis=0)


def rows_of(codes: Integers) -> list[Integers]:
    """The rows of each label, ascending."""
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])


def _pearson_of_tables(a: Floats, b: Floats) -> float:
    """The correlation of the pairs i < j that both tables have; NaN with fewer than 3 labels."""
    i, j = np.triu_indices(len(a), 1)
    there = ~np.isnan(a[i, j] + b[i, j])
    if there.sum() < 3:  # fewer labels than 3 have fewer pairs
        return math.nan
    return correlation(a[i, j][there], b[i, j][there])


def correlation(x: Floats, y: Floats) -> float:
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


def finite(values: ArrayLike) -> Floats:
    """Those that are numbers, in a row."""
    array = np.asarray(values, dtype=np.float64).ravel()
    return array[np.isfinite(array)]

"""What chance gives: shuffled labels beside the true ones, and Cover's count of the ways in which points separate."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from closerlook.errors import InputError
from closerlook.geometry import kernels
from closerlook.geometry.clusters import cluster
from closerlook.geometry.distances import cluster_distances, label_distances
from closerlook.geometry.frame import Floats, Frame, Integers, as_labels, as_points, longest
from closerlook.geometry.hulls import TAU
from closerlook.geometry.kernels import Progress


@dataclass(frozen=True)
class Null:
    """A measure beside the same under shuffled labels: the value, the mean and deviation of the shuffles, z, and p.

    p: the share of the shuffles, the true labelling among them, that lie at least as far on the side of `value`.
    """

    value: float
    mean: float
    deviation: float
    z: float
    p_value: float
    shuffles: int

    @classmethod
    def of(cls, value: float, shuffled: Floats, *, lower: bool = False) -> Null:
        """lower: smaller than chance is what is looked for."""
        n = len(shuffled)
        if n == 0 or not math.isfinite(value):
            return cls(value, math.nan, math.nan, math.nan, math.nan, n)
        mean, deviation = float(shuffled.mean()), float(shuffled.std(ddof=1)) if n > 1 else math.nan
        beyond = shuffled <= value if lower else shuffled >= value
        z = (value - mean) / deviation if deviation > 0 else math.nan
        return cls(value, mean, deviation, z, (1 + int(beyond.sum())) / (n + 1), n)

    def to_dict(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


@dataclass(frozen=True)
class Separability:
    """How many pairs of labels are linearly separable, beside shuffled labels and Cover's probability.

    ratio: n / 2d of the points of two labels, mean over pairs; at 1 chance separates half of all labellings. cover:
    the mean over pairs of the probability that points in general position separate, whatever their labels.
    """

    separable: Null
    is_linear: bool
    ratio: float
    cover: float

    def to_dict(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


def separability(
    X: ArrayLike,
    y: ArrayLike,
    *,
    shuffles: int = 20,
    seed: int = 0,
    tau: float = TAU,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Separability:
    """The share of pairs of labels whose hulls are apart, and what chance gives: is 'separable' information here?"""
    points = as_points(X)
    labels, codes = as_labels(y, len(points))
    if len(labels) < 2:
        raise InputError(f"y has one label, {labels[0]!r}; expected at least two")
    rng = np.random.default_rng([seed, 5])
    placed = _Placed(points, tau, kernels.count_threads(threads))
    shares = []
    for at in range(shuffles + 1):
        shares.append(placed.share_apart(codes if at == 0 else rng.permutation(codes)))
        if progress:
            progress(at + 1, shuffles + 1)
    counts = np.bincount(codes)
    i, j = np.triu_indices(len(labels), 1)
    sizes = counts[i] + counts[j]
    d = points.shape[1]
    cover = {int(n): cover_probability(int(n), d) for n in np.unique(sizes)}
    return Separability(
        Null.of(shares[0], np.array(shares[1:])),
        shares[0] == 1.0,
        float(np.mean(sizes / (2 * d))),
        float(np.mean([cover[int(n)] for n in sizes])),
    )


class _Placed:
    """Points in the engine's frame, asked again and again under other labels."""

    def __init__(self, points: Floats, tau: float, threads: int) -> None:
        frame = Frame.of(points)
        self.Z, self.threads = frame.place(points), threads
        self.tolerance, self.slack = tau * frame.radius, Frame.slack(longest(self.Z), points.shape[1])

    def share_apart(self, codes: Integers) -> float:
        """The share of the pairs of labels whose hulls are apart."""
        groups = [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]
        pairs = np.column_stack(np.triu_indices(len(groups), 1))
        found = kernels.solve_pairs(self.Z, groups, pairs, tau=self.tolerance, slack=self.slack, threads=self.threads)
        return float(np.mean(found.verdict == kernels.SEPARABLE))


def cover_probability(n: int, d: int) -> float:
    """The share of the 2^n labellings of n points in general position in d dimensions that a hyperplane separates.

    Cover (1965), for hyperplanes with an offset: 2 times the sum of C(n - 1, k) for k up to d.

    >>> round(cover_probability(4, 2), 9), cover_probability(3, 2)
    (0.875, 1.0)
    """
    return float(binom.cdf(d, n - 1, 0.5))


@dataclass(frozen=True)
class ClusterNulls:
    """Cluster count and mean minimum distance beside shuffled labels."""

    n_clusters: Null
    mean_minimum_distance: Null

    def to_dict(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


def cluster_nulls(
    X: ArrayLike,
    y: ArrayLike,
    *,
    shuffles: int = 5,
    seed: int = 0,
    tau: float = TAU,
    min_points: int = 1,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ClusterNulls:
    """DirectProbe's clusters and their distances under shuffled labels; each shuffle is clustered in full."""
    points = as_points(X)
    _, codes = as_labels(y, len(points))
    rng = np.random.default_rng([seed, 6])
    counts, distances = [], []
    for at in range(shuffles + 1):
        found = cluster(points, codes if at == 0 else rng.permutation(codes), tau=tau, threads=threads)
        apart = label_distances(cluster_distances(points, found, min_points=min_points, threads=threads))
        minimum = apart.minimum()
        counts.append(float(found.n_clusters))
        distances.append(float(np.nanmean(minimum)) if np.isfinite(minimum).any() else math.nan)
        if progress:
            progress(at + 1, shuffles + 1)
    return ClusterNulls(
        Null.of(counts[0], np.array(counts[1:]), lower=True), Null.of(distances[0], np.array(distances[1:]))
    )

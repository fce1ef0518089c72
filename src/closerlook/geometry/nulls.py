"""Null values: measures under shuffled labels, and Cover's probability that random labels are separable."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from closerlook.geometry.clusters import cluster
from closerlook.geometry.distances import cluster_distances, label_distances
from closerlook.geometry.frame import Floats, Integers, as_labels, as_points, at_least, check_two_labels
from closerlook.geometry.hulls import TAU
from closerlook.geometry.kernels import Progress
from closerlook.geometry.overlap import LabelHulls

POINTS = 2000
"""The maximum number of points that are clustered with shuffled labels; larger spaces are subsampled to this size."""


WHITEN_FROM = 5
"""Whitening the points takes as long as it saves in this many shuffles, or in fewer."""


@dataclass(frozen=True)
class Null:
    """A measure compared with its values under shuffled labels.

    value: for the true labels. mean, deviation: over the shuffles. z: (value - mean) / deviation. p_value: the share of
    labellings, the true one included, at least as extreme as `value`. shuffles: how many have a finite value.

    >>> Null.of(4.0, np.array([1.0, 2.0, 3.0]))
    Null(value=4.0, mean=2.0, deviation=1.0, z=2.0, p_value=0.25, shuffles=3)
    """

    value: float
    mean: float
    deviation: float
    z: float
    p_value: float
    shuffles: int

    @classmethod
    def of(cls, value: float, shuffled: Floats, *, lower: bool = False) -> Null:
        """Compare a value with those under shuffled labels. lower: smaller values are the extreme ones."""
        shuffled = shuffled[np.isfinite(shuffled)]
        n = len(shuffled)
        if n == 0 or not math.isfinite(value):
            return cls(value, math.nan, math.nan, math.nan, math.nan, n)
        mean, deviation = float(shuffled.mean()), float(shuffled.std(ddof=1)) if n > 1 else math.nan
        beyond = shuffled <= value if lower else shuffled >= value
        z = (value - mean) / deviation if deviation > 1e-12 * abs(mean) else math.nan
        return cls(value, mean, deviation, z, (1 + int(beyond.sum())) / (n + 1), n)

    def to_dict(self) -> dict[str, object]:
        """The fields by name."""
        return asdict(self)


@dataclass(frozen=True)
class Separability:
    """The share of linearly separable pairs of labels, compared with shuffled labels and Cover's probability.

    ratio: n / 2d for the points of two labels, mean over pairs; for a pair with ratio 1 and large d, a little more
    than half of all labellings are separable. cover: the probability that points in general position with random labels
    are separable, mean over pairs.

    >>> result = separability([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [*"aaabbb"])
    >>> result.is_separable, result.ratio, round(result.cover, 6), result.separable.shuffles
    (True, 3.0, 0.1875, 20)
    """

    separable: Null
    is_separable: bool
    ratio: float
    cover: float

    def to_dict(self) -> dict[str, object]:
        """The fields by name."""
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
    """The share of pairs of labels that are linearly separable, compared with shuffled labels.

    It shows whether 'linearly separable' says anything about the labels, or follows from few points in many dimensions.

    >>> in_order = separability([[at] for at in range(20)], [*"aaaaaaaaaabbbbbbbbbb"])
    >>> in_order.separable.value, in_order.separable.mean, in_order.separable.p_value < 0.05
    (1.0, 0.0, True)
    >>> many_dimensions = separability(np.eye(20), [*"aaaaaaaaaabbbbbbbbbb"])
    >>> many_dimensions.separable.value, many_dimensions.separable.mean, many_dimensions.separable.p_value
    (1.0, 1.0, 1.0)
    """
    at_least("shuffles", shuffles, 0)
    points = as_points(X)
    labels, codes = as_labels(y, len(points))
    check_two_labels(labels)
    rng = np.random.default_rng([seed, 5])
    hulls = LabelHulls(points, tau, threads, whiten=shuffles >= WHITEN_FROM)
    shares = []
    for at in range(shuffles + 1):
        shares.append(float(np.mean(hulls.separable(codes if at == 0 else rng.permutation(codes)))))
        if progress:
            progress(at + 1, shuffles + 1)
    cover, ratio = cover_of_pairs(codes, points.shape[1])
    return Separability(Null.of(shares[0], np.array(shares[1:])), shares[0] == 1.0, ratio, cover)


def cover_of_pairs(codes: Integers, d: int) -> tuple[float, float]:
    """Cover's probability and n / 2d for the points of two labels, mean over pairs of labels."""
    counts = np.bincount(codes)
    i, j = np.triu_indices(len(counts), 1)
    sizes = counts[i] + counts[j]
    cover = {int(n): cover_probability(int(n), d) for n in np.unique(sizes)}
    return float(np.mean([cover[int(n)] for n in sizes])), float(np.mean(sizes / (2 * d)))


def cover_probability(n: int, d: int) -> float:
    """The share of the 2^n labellings of n points in general position in d dimensions that are linearly separable.

    Cover (1965), for hyperplanes with an offset: 2 times the sum of C(n - 1, k) for k = 0 to d, divided by 2^n. It is
    one half at n = 2d + 2.

    >>> round(cover_probability(4, 2), 9), cover_probability(3, 2)
    (0.875, 1.0)
    """
    from scipy.special import bdtr

    return float(bdtr(min(d, n - 1), n - 1, 0.5))


@dataclass(frozen=True)
class ClusterNulls:
    """Cluster count and mean minimum distance compared with shuffled labels; n: the points clustered.

    >>> alternating = cluster_nulls([[at] for at in range(20)], [*"abababababababababab"], shuffles=10)
    >>> alternating.n, alternating.n_clusters.value, alternating.n_clusters.p_value
    (20, 20.0, 1.0)
    """

    n_clusters: Null
    mean_minimum_distance: Null
    n: int

    def to_dict(self) -> dict[str, object]:
        """The fields by name."""
        return asdict(self)


def cluster_nulls(
    X: ArrayLike,
    y: ArrayLike,
    *,
    shuffles: int = 20,
    seed: int = 0,
    tau: float = TAU,
    min_points: int = 1,
    points: int = POINTS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ClusterNulls:
    """DirectProbe's cluster count and label distances compared with shuffled labels; each shuffle is clustered.

    points: a larger space is subsampled to this size, with the same rows for the true and the shuffled labels. Shuffled
    labels give so many clusters that a large space would take hours.

    >>> in_order = cluster_nulls([[at] for at in range(20)], [*"aaaaaaaaaabbbbbbbbbb"], shuffles=10)
    >>> in_order.n_clusters.value, in_order.n_clusters.mean > 5, in_order.n_clusters.p_value < 0.1
    (2.0, True, True)
    """
    at_least("shuffles", shuffles, 0)
    at_least("points", points, 2)
    rng = np.random.default_rng([seed, 6])
    whole = as_points(X)
    _, codes = as_labels(y, len(whole))
    if len(whole) > points:
        kept = np.sort(rng.choice(len(whole), points, replace=False))
        whole, codes = whole[kept], np.unique(codes[kept], return_inverse=True)[1]
    counts, distances = [], []
    for at in range(shuffles + 1):
        clustering = cluster(whole, codes if at == 0 else rng.permutation(codes), tau=tau, threads=threads)
        label_table = label_distances(cluster_distances(whole, clustering, min_points=min_points, threads=threads))
        counts.append(float(clustering.n_clusters))
        distances.append(label_table.mean_minimum())
        if progress:
            progress(at + 1, shuffles + 1)
    return ClusterNulls(
        Null.of(counts[0], np.array(counts[1:]), lower=True), Null.of(distances[0], np.array(distances[1:])), len(whole)
    )

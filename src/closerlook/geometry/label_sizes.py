"""Similarity with the effect of label sizes removed, and the similarity of noise with the same label sizes.

The hull of many points reaches farther than the hull of few, so label distances depend on the number of points of each
label. Two spaces of pure noise with the same label sizes are therefore similar: with the sizes of a real task their
correlation is above 0.9, and it passes the permutation test of `spatial_similarity`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from closerlook.errors import InputError
from closerlook.geometry.clusters import cluster
from closerlook.geometry.distances import cluster_distances, label_distances
from closerlook.geometry.frame import Floats, Integers, Label, at_least, plain
from closerlook.geometry.p_values import FEWEST_SHUFFLES
from closerlook.geometry.similarity import Table, common_labels, random_orders, read_table, spatial_similarity

FEWEST_LABELS = 8
"""With fewer labels, too little is left after the effects are removed: 7 labels have 21 distances and 13 effects."""

FEWEST_PERMUTATIONS = FEWEST_SHUFFLES
"""With fewer permutations, p cannot be 0.05 or lower."""

LEAST_SCALE = 0.25
"""The smallest expected size of a residual, as a share of the mean size."""


@dataclass(frozen=True)
class SizeAdjusted:
    """The similarity of two spaces with the effect of label sizes removed.

    pearson: the partial correlation. p_value: the share of permutations, the true labelling included, with a partial
    correlation at least as high. null_mean, null_deviation: of the partial correlation over permutations. All are NaN
    with fewer than FEWEST_LABELS labels, or if nothing is left of the distances; the p-value also with fewer than
    FEWEST_PERMUTATIONS permutations.
    """

    pearson: float
    p_value: float
    null_mean: float
    null_deviation: float
    n_labels: int
    permutations: int

    def to_dict(self) -> dict[str, object]:
        """The fields for JSON, with NaN as None."""
        return {name: plain(value) for name, value in asdict(self).items()}


def size_adjusted_similarity(
    a: Table,
    b: Table,
    sizes_a: Mapping[Any, int],
    sizes_b: Mapping[Any, int],
    *,
    permutations: int = 999,
    seed: int = 0,
) -> SizeAdjusted:
    """The correlation of the label distances of two spaces with the effect of label sizes removed.

    a, b: as in `spatial_similarity`. sizes_a, sizes_b: the number of points of each label.

    From both lists of distances, a linear fit is subtracted. For the pair of labels i and j it has an effect of i, an
    effect of j, and three effects of the label sizes n of either space: √(1/n_i + 1/n_j), to which the distance of two
    hulls of noise is nearly proportional, 1/√(n_i n_j) and log n_i · log n_j. The effects of single labels contain all
    that size does to a label, whatever the form of that dependence. They also contain that some labels are far from all
    others for other reasons; this part of the similarity is lost. The residuals of small labels vary more, so each is
    divided by its expected size, which is fitted in the same way. The result is the correlation of these residuals.

    The p-value is that of the one-sided permutation test of Freedman and Lane (1983): the labels of the residuals of b
    are permuted, and the fit is subtracted again.

    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(8, 3))
    >>> D = np.linalg.norm(points[:, None] - points, axis=2)
    >>> names, sizes = list("abcdefgh"), {name: 9 for name in "abcdefgh"}
    >>> result = size_adjusted_similarity((names, D), (names, 2 * D), sizes, sizes)
    >>> round(result.pearson, 3), result.p_value <= 0.01
    (1.0, True)
    """
    left, right = read_table(a, "a"), read_table(b, "b")
    labels, _ = common_labels(left, right)
    m = len(labels)
    sizes = [_sizes_of(labels, given, side) for given, side in ((sizes_a, "a"), (sizes_b, "b"))]
    empty = SizeAdjusted(math.nan, math.nan, math.nan, math.nan, m, permutations)
    if m < FEWEST_LABELS:
        return empty
    i, j = np.triu_indices(m, 1)
    Q = _effects(i, j, sizes)
    x, y = (
        _scaled_residuals(table.values[np.ix_(rows, rows)][i, j], Q)
        for table in (left, right)
        for rows in [[table.labels.index(label) for label in labels]]
    )
    if x is None or y is None:
        return empty
    pearson = float(np.clip(x @ y, -1.0, 1.0))
    if permutations < FEWEST_PERMUTATIONS:
        return SizeAdjusted(pearson, math.nan, math.nan, math.nan, m, permutations)
    null = _permuted(x, y, Q, random_orders(m, permutations, np.random.default_rng(seed)))
    p_value = (1 + int(np.count_nonzero(null >= pearson - 1e-12))) / (1 + permutations)
    return SizeAdjusted(pearson, p_value, float(null.mean()), float(null.std(ddof=1)), m, permutations)


def _sizes_of(labels: Sequence[Label], sizes: Mapping[Any, int], side: str) -> Floats:
    """(m,) the number of points of each label."""
    for label in labels:
        if sizes.get(label, 0) < 1:
            raise InputError(f"sizes_{side} has no points for label {label!r}; expected the number of points of it")
    return np.array([sizes[label] for label in labels], dtype=np.float64)


def _effects(i: Integers, j: Integers, sizes: Sequence[Floats]) -> Floats:
    """(p, r) an orthonormal basis of all that is subtracted: effects of single labels, and of pairs of sizes."""
    labels = np.zeros((len(i), len(sizes[0])))
    labels[np.arange(len(i)), i] = labels[np.arange(len(i)), j] = 1.0
    pairs = [
        effect
        for n in sizes
        for effect in (np.sqrt(1 / n[i] + 1 / n[j]), 1 / np.sqrt(n[i] * n[j]), np.log(n[i]) * np.log(n[j]))
    ]
    U, s, _ = np.linalg.svd(np.column_stack([labels, *pairs]), full_matrices=False)
    return np.asarray(U[:, s > 1e-9 * s[0]])


def _scaled_residuals(distances: Floats, Q: Floats) -> Floats | None:
    """(p,) what the fit leaves of the distances, divided by its expected size, with length 1; None if it is 0."""
    residuals = distances - Q @ (Q.T @ distances)
    size = np.abs(residuals)
    if np.linalg.norm(residuals) <= 1e-9 * np.linalg.norm(distances):
        return None
    scaled = residuals / np.maximum(Q @ (Q.T @ size), LEAST_SCALE * size.mean())
    scaled -= Q @ (Q.T @ scaled)
    return np.asarray(scaled / np.linalg.norm(scaled))


def _permuted(x: Floats, y: Floats, Q: Floats, chunks: Iterator[Integers]) -> Floats:
    """The partial correlation of x with y for each order of the labels of y; chunks: (k, m) orders."""
    m = math.isqrt(2 * len(x)) + 1
    i, j = np.triu_indices(m, 1)
    matrix = np.zeros((m, m))
    matrix[i, j] = matrix[j, i] = y
    correlations = []
    for orders in chunks:
        permuted = matrix.take(orders[:, i] * m + orders[:, j])
        # x is orthogonal to Q, so subtracting the fit from the permuted residuals changes only their length.
        length = (permuted**2).sum(axis=1) - ((permuted @ Q) ** 2).sum(axis=1)
        correlations.append(permuted @ x / np.sqrt(np.maximum(length, 1e-300)))
    return np.concatenate(correlations)


# --- Noise with the same label sizes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoiseSimilarity:
    """The spatial similarity of two spaces of pure noise: mean and standard deviation over draws.

    points: the number of points of each space of noise; fewer than the real space has if it has more than allowed.
    """

    mean: float
    deviation: float
    draws: int
    points: int


def noise_similarity(
    sizes_a: Sequence[int],
    sizes_b: Sequence[int],
    dimension: int,
    *,
    draws: int = 3,
    points: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> NoiseSimilarity:
    """The spatial similarity of two spaces of normal noise with these label sizes.

    sizes_a, sizes_b: the number of points of each label, in the same order. dimension: the number of dimensions.
    points: if a space has more points, its label sizes are reduced in proportion; every label keeps at least one point.

    >>> result = noise_similarity([1, 2, 4, 8, 16], [1, 2, 4, 8, 16], 64)
    >>> result.mean > 0.8, result.draws
    (True, 3)
    """
    at_least("draws", draws, 1)
    at_least("points", points, 1)
    if len(sizes_a) != len(sizes_b) or min(*sizes_a, *sizes_b) < 1:
        raise InputError(
            f"{len(sizes_a)} and {len(sizes_b)} label sizes were given; expected the same number, each at least 1"
        )
    sides = [_reduced(np.asarray(sizes), points) for sizes in (sizes_a, sizes_b)]
    values = []
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        a, b = (_noise_distances(sizes, dimension, rng, threads) for sizes in sides)
        values.append(spatial_similarity(a, b, permutations=0, resamples=0).pearson)
    deviation = float(np.std(values, ddof=1)) if draws > 1 else math.nan
    return NoiseSimilarity(float(np.mean(values)), deviation, draws, int(max(sizes.sum() for sizes in sides)))


def _reduced(sizes: Integers, points: int) -> Integers:
    """Label sizes reduced in proportion to at most about `points` in all; at least 1 each."""
    return np.asarray(np.maximum(1, np.floor(sizes * min(1.0, points / sizes.sum()))), dtype=np.int64)


def _noise_distances(sizes: Integers, dimension: int, rng: np.random.Generator, threads: int | None) -> Table:
    """The label distances of normal noise with these label sizes."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.standard_normal((len(y), dimension))
    return label_distances(cluster_distances(X, cluster(X, y, threads=threads), threads=threads))

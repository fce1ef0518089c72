"""How well labels fit a space, in one number each: LogME, generalised discrimination value, silhouette."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from closerlook.geometry.frame import Floats, Integers
from closerlook.geometry.shape import class_means, labelled, squared_blocks

ROUNDS = 11
"""Steps of LogME's fixed point, as its authors take them."""


@dataclass(frozen=True)
class LabelFit:
    """logme: the evidence of a linear model, higher is better (You et al. 2021). gdv: -1 for labels that are points far
    apart, 0 for labels that say nothing (Schilling et al. 2021). silhouette: from -1 to 1 (Rousseeuw 1987).
    """

    logme: float
    gdv: float
    silhouette: float

    def to_dict(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


def label_fit(X: ArrayLike, y: ArrayLike) -> LabelFit:
    """All three."""
    return LabelFit(logme(X, y), gdv(X, y), silhouette(X, y))


def logme(X: ArrayLike, y: ArrayLike) -> float:
    """The logarithm of maximum evidence that the labels, one against the rest, are linear in X; mean over rows, labels.

    As in the authors' code, X is taken as it comes, without an intercept.
    """
    points, codes, m = labelled(X, y)
    n, d = points.shape
    left, singular, _ = np.linalg.svd(points, full_matrices=False)
    kept = singular > singular.max(initial=0) * 1e-12
    squares, left = singular[kept] ** 2, left[:, kept]
    found = []
    for code in range(m):
        target = (codes == code).astype(np.float64)
        along = (left.T @ target) ** 2
        rest = max(0.0, float(target @ target) - float(along.sum()))
        found.append(_evidence(squares, along, rest, n, d))
    return float(np.mean(found))


def _evidence(squares: Floats, along: Floats, rest: float, n: int, d: int) -> float:
    """The evidence for each row of one target, at the fixed point of the two precisions, alpha and beta."""
    alpha = beta = 1.0
    ratio = alpha / beta
    for _ in range(ROUNDS):
        gamma = float((squares / (squares + ratio)).sum())
        length = float((squares * along / (ratio + squares) ** 2).sum())
        missed = float((along / (1 + squares / ratio) ** 2).sum()) + rest
        alpha, beta = gamma / (length + 1e-5), (n - gamma) / (missed + 1e-5)
        before, ratio = ratio, alpha / beta
        if abs(ratio - before) / before <= 1e-3:
            break
    length = float((squares * along / (ratio + squares) ** 2).sum())
    missed = float((along / (1 + squares / ratio) ** 2).sum()) + rest
    flat = d - len(squares)
    volume = float(np.log(alpha + beta * squares).sum()) + flat * math.log(alpha)
    whole = d * math.log(alpha) + n * math.log(beta) - volume - beta * missed - alpha * length
    return (whole - n * math.log(2 * math.pi)) / (2 * n)


def gdv(X: ArrayLike, y: ArrayLike) -> float:
    """Mean distance within labels minus mean distance between them, of z-scores halved, over the root of d.

    >>> far = [[0.0], [0.0], [9.0], [9.0]]
    >>> round(gdv(far, ["a", "a", "b", "b"]), 9)
    -1.0
    """
    points, codes, m = labelled(X, y)
    deviation = points.std(axis=0)
    scores = 0.5 * (points - points.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    sums = _label_sums(scores, codes, m)
    counts = np.bincount(codes, minlength=m).astype(np.float64)
    between = np.zeros((m, m))
    np.add.at(between, codes, sums)
    pairs = np.outer(counts, counts) - np.diag(counts)
    several = counts > 1
    inside = np.divide(between.diagonal(), pairs.diagonal(), out=np.zeros(m), where=several)
    i, j = np.triu_indices(m, 1)
    apart = between[i, j] / pairs[i, j]
    return float((inside.mean() - apart.mean()) / math.sqrt(points.shape[1]))


def silhouette(X: ArrayLike, y: ArrayLike) -> float:
    """The mean over rows of (b - a) / max(a, b): a to the own label's other rows, b to the nearest other label's.

    >>> silhouette([[0.0], [0.0], [5.0], [5.0]], ["a", "a", "b", "b"])
    1.0
    """
    points, codes, m = labelled(X, y)
    counts = np.bincount(codes, minlength=m).astype(np.float64)
    sums = _label_sums(points, codes, m)
    rows = np.arange(len(codes))
    alone = counts[codes] == 1
    own = sums[rows, codes] / np.maximum(counts[codes] - 1, 1)
    means = sums / counts
    means[rows, codes] = np.inf
    other = means.min(axis=1)
    largest = np.maximum(own, other)
    values = np.divide(other - own, largest, out=np.zeros(len(codes)), where=(largest > 0) & ~alone)
    return float(values.mean())


def _label_sums(points: Floats, codes: Integers, m: int) -> Floats:
    """(n, m) the sum of each row's distances to the rows of each label; blockwise."""
    member = np.zeros((len(codes), m))
    member[np.arange(len(codes)), codes] = 1.0
    return np.concatenate([np.sqrt(block) @ member for block in squared_blocks(points, own=0.0)])


def nearest_mean_accuracy(X: ArrayLike, y: ArrayLike) -> float:
    """The share of rows whose label's mean is the nearest of all."""
    points, codes, m = labelled(X, y)
    means, _ = class_means(points, codes, m)
    near = ((means**2).sum(axis=1) - 2 * points @ means.T).argmin(axis=1)
    return float(np.mean(near == codes))

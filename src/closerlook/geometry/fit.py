"""How well labels fit a space, in one number each: LogME, generalised discrimination value, silhouette."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from closerlook.geometry.frame import Floats, Integers
from closerlook.geometry.shape import (
    around_mean,
    centre,
    class_means,
    each_strip,
    labelled,
    later_distances,
    nearest_mean,
    one_thread,
)

ROUNDS = 1000
"""Steps of LogME's fixed point at most. Its authors stop after 11, short of it where columns outnumber rows."""


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


def label_fit(X: ArrayLike, y: ArrayLike, *, threads: int | None = None) -> LabelFit:
    """All three."""
    return LabelFit(logme(X, y), gdv(X, y, threads=threads), silhouette(X, y, threads=threads))


def logme(X: ArrayLike, y: ArrayLike) -> float:
    """The logarithm of maximum evidence that the labels, one against the rest, are linear in X; mean over rows, labels.

    As in the authors' code, X is taken as it comes, without an intercept.
    """
    points, codes, m = labelled(X, y)
    n, d = points.shape
    # One triangle holds all: the singular values of X, the targets along its directions, and what lies outside them.
    with one_thread():
        triangle = np.asarray(np.linalg.qr(np.column_stack([points, _members(codes, m)]), mode="r"))
        left, singular, _ = np.linalg.svd(triangle[:d, :d], full_matrices=False)
    kept = singular > singular.max(initial=0) * 1e-12
    along = (left.T @ triangle[:d, d:]) ** 2
    rest = (triangle[d:, d:] ** 2).sum(axis=0) + along[~kept].sum(axis=0)
    found = [_evidence(singular[kept] ** 2, along[kept, code], float(rest[code]), n, d) for code in range(m)]
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
        if abs(ratio - before) / before <= 1e-6:
            break
    length = float((squares * along / (ratio + squares) ** 2).sum())
    missed = float((along / (1 + squares / ratio) ** 2).sum()) + rest
    flat = d - len(squares)
    volume = float(np.log(alpha + beta * squares).sum()) + flat * math.log(alpha)
    whole = d * math.log(alpha) + n * math.log(beta) - volume - beta * missed - alpha * length
    return (whole - n * math.log(2 * math.pi)) / (2 * n)


def gdv(X: ArrayLike, y: ArrayLike, *, threads: int | None = None) -> float:
    """Mean distance within labels minus mean distance between them, of z-scores halved, over the root of d.

    >>> far = [[0.0], [0.0], [9.0], [9.0]]
    >>> round(gdv(far, ["a", "a", "b", "b"]), 9)
    -1.0
    """
    points, codes, m = labelled(X, y)
    deviation = points.std(axis=0)
    scores = 0.5 * (points - points.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    sums = _label_sums(scores, codes, m, threads)
    counts = np.bincount(codes, minlength=m).astype(np.float64)
    between = np.zeros((m, m))
    np.add.at(between, codes, sums)
    pairs = np.outer(counts, counts) - np.diag(counts)
    several = counts > 1
    inside = np.divide(between.diagonal(), pairs.diagonal(), out=np.zeros(m), where=several)
    i, j = np.triu_indices(m, 1)
    apart = between[i, j] / pairs[i, j]
    return float((inside.mean() - apart.mean()) / math.sqrt(points.shape[1]))


def silhouette(X: ArrayLike, y: ArrayLike, *, threads: int | None = None) -> float:
    """The mean over rows of (b - a) / max(a, b): a to the own label's other rows, b to the nearest other label's.

    >>> silhouette([[0.0], [0.0], [5.0], [5.0]], ["a", "a", "b", "b"])
    1.0
    """
    points, codes, m = labelled(X, y)
    counts = np.bincount(codes, minlength=m).astype(np.float64)
    sums = _label_sums(points, codes, m, threads)
    rows = np.arange(len(codes))
    alone = counts[codes] == 1
    own = sums[rows, codes] / np.maximum(counts[codes] - 1, 1)
    means = sums / counts
    means[rows, codes] = np.inf
    other = means.min(axis=1)
    largest = np.maximum(own, other)
    values = np.divide(other - own, largest, out=np.zeros(len(codes)), where=(largest > 0) & ~alone)
    return float(values.mean())


def _label_sums(points: Floats, codes: Integers, m: int, threads: int | None) -> Floats:
    """(n, m) the sum of each row's distances to the rows of each label; every pair is measured once."""
    centred, squares = centre(points)
    member = _members(codes, m)

    def add(start: int, end: int) -> tuple[Floats, Floats]:
        distances = later_distances(centred, squares, start, end)
        return distances @ member[start:], distances[:, end - start :].T @ member[start:end]

    sums, start = np.zeros((len(codes), m)), 0
    for own, later in each_strip(add, len(codes), threads):
        sums[start : start + len(own)] += own
        start += len(own)
        sums[start:] += later
    return sums


def _members(codes: Integers, m: int) -> Floats:
    """(n, m) 1 where the row has the label."""
    member = np.zeros((len(codes), m))
    member[np.arange(len(codes)), codes] = 1.0
    return member


def nearest_mean_accuracy(X: ArrayLike, y: ArrayLike) -> float:
    """The share of rows whose label's mean is the nearest of all."""
    points, codes, m = labelled(X, y)
    centred = around_mean(points)
    means, _ = class_means(centred, codes, m)
    return float(np.mean(nearest_mean(centred, means) == codes))

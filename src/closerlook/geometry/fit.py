"""How well labels fit a space, as single numbers: LogME, generalised discrimination value (GDV), silhouette."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from closerlook.geometry.frame import Floats, Integers
from closerlook.geometry.pairs import Candidates, Centred, around_mean, each_strip, one_thread
from closerlook.geometry.shape import class_means, labelled, nearest_mean

MISSED = 1e-5
"""Added to the residual of each target, as in the code of LogME's authors: without it a perfect fit has no bound."""

RATIOS = np.arange(-28.0, 8.0, 0.25)
"""Exponents of ten of the ratios of precisions that are searched; 0 is the largest squared singular value."""


@dataclass(frozen=True)
class LabelFit:
    """How well the labels fit a space.

    logme: the evidence of a linear model, higher is better (You et al. 2021). gdv: -1 for labels that are distant
    single points, 0 for labels unrelated to the space (Schilling et al. 2021). silhouette: from -1 to 1 (Rousseeuw
    1987).

    >>> result = label_fit([[0.0], [0.0], [9.0], [9.0]], ["a", "a", "b", "b"])
    >>> round(result.gdv, 6), round(result.silhouette, 6)
    (-1.0, 1.0)
    """

    logme: float
    gdv: float
    silhouette: float

    def to_dict(self) -> dict[str, float]:
        """The fields by name."""
        return asdict(self)


def label_fit(
    X: ArrayLike, y: ArrayLike, *, threads: int | None = None, candidates: Candidates | None = None
) -> LabelFit:
    """LogME, GDV and silhouette of a labelled space. candidates: see `silhouette`.

    >>> X = [[0.0, 1.0], [1.0, 0.0], [8.0, 9.0], [9.0, 8.0]]
    >>> fits, mixed = label_fit(X, ["a", "a", "b", "b"]), label_fit(X, ["a", "b", "a", "b"])
    >>> fits.logme > mixed.logme, fits.gdv < mixed.gdv, fits.silhouette > mixed.silhouette
    (True, True, True)
    """
    fit = silhouette(X, y, threads=threads, candidates=candidates)
    return LabelFit(logme(X, y), gdv(X, y, threads=threads), fit)


def logme(X: ArrayLike, y: ArrayLike) -> float:
    """The log maximum evidence of linear models of one label against the rest, mean over rows and labels.

    As in the authors' code, X is not centred and there is no intercept. Their search stops after 11 steps, which is
    short of the maximum if there are more columns than rows, and a guard in it makes the value depend on the unit of X.
    Here the maximum is found. NaN if X is 0.
    """
    points, codes, m = labelled(X, y)
    n, d = points.shape
    # One QR gives the singular values of X, the targets along its directions, and their residuals.
    with one_thread():
        triangle = np.asarray(np.linalg.qr(np.column_stack([points, _members(codes, m)]), mode="r"))
        left, singular, _ = np.linalg.svd(triangle[:d, :d], full_matrices=False)
    if not singular.any():
        return math.nan
    kept = singular > singular.max() * 1e-12
    along = (left.T @ triangle[:d, d:]) ** 2
    rest = (triangle[d:, d:] ** 2).sum(axis=0) + along[~kept].sum(axis=0)
    evidence = [_evidence(singular[kept] ** 2, along[kept, code], float(rest[code]), n) for code in range(m)]
    return float(np.mean(evidence))


def _evidence(squares: Floats, along: Floats, rest: float, n: int) -> float:
    """The largest evidence per row of one target, over the precisions of the weights and of the noise.

    squares: squared singular values, in any unit. along: squares of the target along their directions. rest: its
    squared residual. For a given ratio of the precisions the best value of each is known, so the search is over one
    number. It starts with a grid, as there may be several peaks.
    """
    from scipy.optimize import minimize_scalar

    squares = squares / squares.max()

    def twice(exponents: Floats) -> Floats:
        kept = 1 / (1 + np.multiply.outer(10.0**-exponents, squares))  # the part of each direction that is missed
        missed = kept @ along + rest + MISSED
        evidence: Floats = np.log(kept).sum(axis=-1) - n * np.log(missed)
        return evidence

    values = twice(RATIOS)
    best = int(values.argmax())
    ends = RATIOS[max(best - 1, 0)], RATIOS[min(best + 1, len(RATIOS) - 1)]
    optimum = minimize_scalar(lambda exponent: -float(twice(np.array(exponent))), bounds=ends, method="bounded")
    highest = max(float(values[best]), -float(optimum.fun))
    return (highest + n * (math.log(n) - 1 - math.log(2 * math.pi))) / (2 * n)


def gdv(X: ArrayLike, y: ArrayLike, *, threads: int | None = None) -> float:
    """Mean distance within labels minus mean distance between labels, of z-scores times ½, divided by the root of d.

    Labels of one row have no distance within; NaN if every label has one row.

    >>> far = [[0.0], [0.0], [9.0], [9.0]]
    >>> round(gdv(far, ["a", "a", "b", "b"]), 9)
    -1.0
    """
    points, codes, m = labelled(X, y)
    deviation = points.std(axis=0)
    scores = points - points.mean(axis=0)
    scores *= 0.5
    scores /= np.where(deviation > 0, deviation, 1.0)
    sums = _label_sums(scores, codes, m, threads)
    counts = np.bincount(codes, minlength=m).astype(np.float64)
    sums_by_label = np.zeros((m, m))
    np.add.at(sums_by_label, codes, sums)
    pairs = np.outer(counts, counts) - np.diag(counts)
    several = counts > 1
    if not several.any():
        return math.nan
    within = sums_by_label.diagonal()[several] / pairs.diagonal()[several]
    i, j = np.triu_indices(m, 1)
    between_labels = sums_by_label[i, j] / pairs[i, j]
    return float((within.mean() - between_labels.mean()) / math.sqrt(points.shape[1]))


def silhouette(
    X: ArrayLike, y: ArrayLike, *, threads: int | None = None, candidates: Candidates | None = None
) -> float:
    """The mean over rows of (b - a) / max(a, b).

    a: the mean distance to the other rows of the same label; b: to the rows of the nearest other label. candidates: an
    empty list of nearest rows, which this pass over all pairs fills for `two_nn`.

    >>> silhouette([[0.0], [0.0], [5.0], [5.0]], ["a", "a", "b", "b"])
    1.0
    """
    points, codes, m = labelled(X, y)
    counts = np.bincount(codes, minlength=m).astype(np.float64)
    sums = _label_sums(points, codes, m, threads, candidates)
    rows = np.arange(len(codes))
    single = counts[codes] == 1
    own = sums[rows, codes] / np.maximum(counts[codes] - 1, 1)
    means = sums / counts
    means[rows, codes] = np.inf
    other = means.min(axis=1)
    largest = np.maximum(own, other)
    values = np.divide(other - own, largest, out=np.zeros(len(codes)), where=(largest > 0) & ~single)
    return float(values.mean())


def _label_sums(
    points: Floats, codes: Integers, m: int, threads: int | None, candidates: Candidates | None = None
) -> Floats:
    """(n, m) the sum of the distances from each row to the rows of each label; each pair is computed once.

    Rows are sorted by label, so that a block has few labels, and its sums are thin products.
    """
    order = np.argsort(codes, kind="stable")
    centred, codes = Centred.of(points, order), codes[order]
    member = _members(codes, m)

    def add(start: int, end: int) -> Floats:
        sums = np.zeros((len(codes) - start, m))  # of the rows from `start` on
        for block in centred.blocks(start, end):
            if candidates:
                candidates.offer(block)
            distances, last = block.distances(), max(block.last, block.column)
            own, other = _labels_at(codes, block.first, block.last), _labels_at(codes, block.column, block.end)
            sums[block.first - start : block.last - start, other] += distances @ member[block.column : block.end, other]
            later = distances[:, last - block.column :]
            sums[last - start : block.end - start, own] += later.T @ member[block.first : block.last, own]
        return sums

    total = np.zeros((len(codes), m))
    for sums in each_strip(add, len(codes), threads):
        total[len(total) - len(sums) :] += sums
    if candidates:
        candidates.renumber(order, centred.squares)
    unsorted = np.empty_like(total)
    unsorted[order] = total
    return unsorted


def _labels_at(codes: Integers, start: int, end: int) -> slice:
    """The labels of the sorted rows start to end."""
    return slice(int(codes[start]), int(codes[end - 1]) + 1)


def _members(codes: Integers, m: int) -> Floats:
    """(n, m) 1 where the row has the label, else 0."""
    member = np.zeros((len(codes), m))
    member[np.arange(len(codes)), codes] = 1.0
    return member


def nearest_mean_accuracy(X: ArrayLike, y: ArrayLike) -> float:
    """The share of rows whose nearest label mean is that of their own label."""
    points, codes, m = labelled(X, y)
    centred = around_mean(points)
    means, _ = class_means(centred, codes, m)
    return float(np.mean(nearest_mean(centred, means) == codes))

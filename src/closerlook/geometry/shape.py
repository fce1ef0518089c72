"""The shape of one space: neural collapse, dimension, isotropy."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from closerlook.errors import InputError
from closerlook.geometry.frame import Floats, Integers, as_labels, as_points, blocks, check_two_labels
from closerlook.geometry.pairs import Candidates, around_mean, nearest_rows, one_thread

EMPTY = 1e-6
"""Directions with less than this fraction of the largest spread are rounding errors of 32-bit vectors."""

IN_RANGE = 100
"""Coordinates up to 2 to this power are used unchanged: their eighth power does not overflow."""

OUTLYING = 3.0
"""Standard deviations above which the mean of a dimension is an outlier."""


@dataclass(frozen=True)
class Collapse:
    """Neural collapse (Papyan, Han & Donoho 2020). Complete collapse is 0, and 1 for nc4.

    nc1: trace of within-label over between-label covariance, divided by the number of labels. cdnv: within-label
    variance over squared distance between means, mean over pairs of labels (Galanti et al. 2022). nc2_norm: standard
    deviation over mean of the lengths of the label means. nc2_angle: standard deviation of their cosines. nc3: distance
    between the means and the weights of the least-squares linear classifier, both scaled to length 1. nc4: the share of
    rows for which that classifier agrees with the nearest mean.

    >>> result = collapse([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]], ["a", "a", "b", "b"])
    >>> {name: round(value, 6) for name, value in result.to_dict().items()}
    {'nc1': 0.0, 'cdnv': 0.0, 'nc2_norm': 0.0, 'nc2_angle': 0.0, 'nc3': 0.0, 'nc4': 1.0}
    """

    nc1: float
    cdnv: float
    nc2_norm: float
    nc2_angle: float
    nc3: float
    nc4: float

    def to_dict(self) -> dict[str, float]:
        """The fields by name."""
        return asdict(self)


def collapse(X: ArrayLike, y: ArrayLike) -> Collapse:
    """Neural collapse of a labelled space, with the least-squares linear classifier.

    All values are NaN if all rows are identical. If only the label means are identical, nc1 and cdnv are infinite, and
    nc2 and nc3 are NaN.

    >>> corners = np.eye(3).repeat(4, axis=0)
    >>> result = collapse(corners, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    >>> round(result.nc1, 9), round(result.nc2_norm, 9), round(result.nc2_angle, 9), result.nc4
    (0.0, 0.0, 0.0, 1.0)
    """
    points, codes, m = labelled(X, y)
    centred = around_mean(points)
    if not centred.any():
        return Collapse(*[math.nan] * 6)
    with one_thread():
        means, counts = class_means(centred, codes, m)
        within = centred - means[codes]
        spread = np.bincount(codes, (within**2).sum(axis=1), m) / counts  # each label's variance
        arms = means - means.mean(axis=0)
        lengths = np.linalg.norm(arms, axis=1)
        i, j = np.triu_indices(m, 1)
        squares = np.concatenate([((means[at + 1 :] - means[at]) ** 2).sum(axis=1) for at in range(m)])
        cosines = _cosines(arms)[i, j]
        predicted, weights = _least_squares(centred, codes, m)
        nearest = nearest_mean(centred, means)
        return Collapse(
            nc1=_trace_ratio(within, arms) / m,
            cdnv=float(np.mean((spread[i] + spread[j]) / (2 * squares))) if (squares > 0).all() else math.inf,
            nc2_norm=float(lengths.std() / lengths.mean()) if lengths.mean() > 0 else math.nan,
            nc2_angle=float(cosines.std()) if lengths.all() else math.nan,
            nc3=float(np.linalg.norm(_unit(weights) - _unit(arms))),
            nc4=float(np.mean(predicted == nearest)),
        )


def self_duality(X: ArrayLike, y: ArrayLike, weights: ArrayLike) -> float:
    """NC3 with a given linear classifier: the distance between its weights and the label means, 0 to 2.

    Both are centred over labels and scaled to length 1; 0: proportional. Weights are centred because adding one vector
    to the weights of all labels changes no prediction. weights: (m, d), one row for each label, in the order of
    `np.unique(y)`. NaN if all label means, or all weights, are identical.

    >>> X, y = np.array([[4.0, 0.0], [2.0, 0.0], [0.0, 3.0]]), ["a", "a", "b"]
    >>> round(self_duality(X, y, [[3.0, 0.0], [0.0, 3.0]]), 9), round(self_duality(X, y, [[0.0, 3.0], [3.0, 0.0]]), 9)
    (0.0, 2.0)
    """
    points, codes, m = labelled(X, y)
    head = np.asarray(weights, dtype=np.float64)
    if head.shape != (m, points.shape[1]):
        raise InputError(f"weights have shape {head.shape}; expected {(m, points.shape[1])}: a row for each label")
    if not np.isfinite(head).all():
        raise InputError("weights contain NaN or infinity; expected finite numbers")
    with one_thread():
        means, _ = class_means(around_mean(points), codes, m)
        return float(np.linalg.norm(_unit(around_mean(head)) - _unit(means - means.mean(axis=0))))


def _trace_ratio(within: Floats, arms: Floats) -> float:
    """tr(W B⁺), W the covariance within labels and B that of their means; infinite if the means are identical."""
    m = len(arms)
    _, singular, directions = np.linalg.svd(arms / math.sqrt(m), full_matrices=False)
    kept = singular > singular.max(initial=0) * 1e-10
    if not kept.any():
        return math.inf
    inside = (within @ directions[kept].T) / singular[kept]
    return float((inside**2).sum() / len(within))


def _least_squares(centred: Floats, codes: Integers, m: int) -> tuple[Integers, Floats]:
    """(n,) the predictions of the least-squares linear classifier, and its weights (m, d)."""
    target = np.full((len(codes), m), -1.0 / m)
    target[np.arange(len(codes)), codes] += 1.0
    values, axes = np.linalg.eigh(centred.T @ centred)
    kept = values > EMPTY**2 * values[-1]
    inside = axes[:, kept] / values[kept]
    weights = (inside @ (axes[:, kept].T @ (centred.T @ (target - target.mean(axis=0))))).T
    return (centred @ weights.T + target.mean(axis=0)).argmax(axis=1), weights


def nearest_mean(points: Floats, means: Floats) -> Integers:
    """(n,) the index of the nearest mean for each point."""
    nearest: Integers = ((means**2).sum(axis=1) - 2 * points @ means.T).argmin(axis=1)
    return nearest


def _unit(matrix: Floats) -> Floats:
    """The matrix scaled to length 1; NaN if it is 0."""
    length = np.linalg.norm(matrix)
    return matrix / (length if length > 0 else math.nan)


def _cosines(rows: Floats) -> Floats:
    """The cosines between all pairs of rows."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    cosines: Floats = unit @ unit.T
    return cosines


# ---- dimension ----


def participation_ratio(X: ArrayLike, *, variances: Floats | None = None) -> float:
    """The effective number of dimensions: (sum of variances)² over the sum of squared variances.

    variances: those along the principal axes, if known.

    >>> round(participation_ratio([[1, 0], [-1, 0], [0, 1], [0, -1]]), 9)
    2.0
    """
    values = principal_variances(in_range(X)) if variances is None else variances
    total = (values**2).sum()
    return float(values.sum() ** 2 / total) if total > 0 else 0.0


def two_nn(
    X: ArrayLike, *, discard: float = 0.1, threads: int | None = None, candidates: Candidates | None = None
) -> float:
    """The intrinsic dimension from the distances to the two nearest neighbours (Facco et al. 2017).

    Identical rows count once. discard: the share of the largest ratios excluded from the fit, as in the paper. NaN with
    fewer than four distinct rows. candidates: for the two nearest rows, from a pass over all pairs of another measure.

    >>> t = np.random.default_rng(0).uniform(size=(1000, 1))
    >>> round(two_nn(np.hstack([t, 2 * t, -t])))
    1
    """
    points = in_range(X)
    distinct = _distinct(points)
    if len(distinct) < 4:
        return math.nan
    if candidates:
        squared = candidates.nearest(points, distinct, threads)[1]
    else:
        squared = nearest_rows(points[distinct], 2, threads)[1]
    ratio = np.sort(np.sqrt(squared[:, 1] / squared[:, 0]))
    kept = ratio[: int(len(ratio) * (1 - discard))]
    logs = np.log(kept)
    share = -np.log(1 - np.arange(1, len(kept) + 1) / len(ratio)) if discard else _open_share(len(ratio))
    return float((logs @ share) / (logs @ logs)) if (logs > 0).any() else math.nan


def _open_share(n: int) -> Floats:
    """Plotting positions that stay finite for the largest ratio; used if no ratio is discarded."""
    return -np.log(1 - np.arange(1, n + 1) / (n + 1))


def _distinct(points: Floats) -> Integers:
    """The first of each set of identical rows, in ascending order."""
    rows = np.ascontiguousarray(points + 0.0)  # turns -0 into 0
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    first: Integers = np.sort(np.unique(whole, return_index=True)[1])
    return first


# ---- isotropy ----


@dataclass(frozen=True)
class Isotropy:
    """How evenly the variance is spread over directions.

    iso_score: 1 for equal variance in all directions, 0 for variance in one (Rudman et al. 2022).
    mean_cosine: the mean cosine of two rows. outlier_dimensions: the share of dimensions whose mean is more than
    OUTLYING standard deviations from the mean of all dimensions (Kovaleva et al. 2021).

    >>> result = isotropy([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> {name: round(value, 6) for name, value in result.to_dict().items()}
    {'iso_score': 1.0, 'mean_cosine': -0.333333, 'outlier_dimensions': 0.0}
    """

    iso_score: float
    mean_cosine: float
    outlier_dimensions: float

    def to_dict(self) -> dict[str, float]:
        """The fields by name."""
        return asdict(self)


def isotropy(X: ArrayLike, *, variances: Floats | None = None) -> Isotropy:
    """IsoScore, mean cosine and outlier dimensions of a space. variances: along the principal axes, if known.

    >>> isotropy([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]).iso_score
    1.0
    """
    points = in_range(X)
    d = points.shape[1]
    lengths = np.linalg.norm(points, axis=1)
    unit = points[lengths > 0] / lengths[lengths > 0, None]
    k = len(unit)
    cosine = (float((unit.sum(axis=0) ** 2).sum()) - k) / (k * (k - 1)) if k > 1 else math.nan
    means = points.mean(axis=0)
    deviation = means.std()
    outlying = np.abs(means - means.mean()) > OUTLYING * deviation if deviation > 0 else np.zeros(d, bool)
    values = principal_variances(points) if variances is None else variances
    return Isotropy(_iso_score(values, d), cosine, float(outlying.mean()))


def _iso_score(variances: Floats, d: int) -> float:
    """IsoScore from the variances along the principal axes."""
    length = float(np.linalg.norm(variances))
    if d == 1 or length == 0:
        return 1.0 if d == 1 else math.nan
    every = np.zeros(d)
    every[: len(variances)] = variances
    defect = np.linalg.norm(math.sqrt(d) * every / length - 1) / math.sqrt(2 * (d - math.sqrt(d)))
    share = (d - defect**2 * (d - math.sqrt(d))) ** 2 / d**2
    return float((d * share - 1) / (d - 1))


def principal_variances(points: Floats) -> Floats:
    """Variances along the principal axes, largest first; at most as many as rows or columns."""
    centred = around_mean(points)
    n, d = centred.shape
    with one_thread():
        gram = centred.T @ centred if d <= n else centred @ centred.T
        values = np.linalg.eigvalsh(gram)[::-1]
    variances: Floats = np.clip(values, 0, None) / max(1, n - 1)
    return variances


# ---- shared ----


def in_range(X: ArrayLike, name: str = "X") -> Floats:
    """Checked points, scaled by a power of two if products of their squares would overflow or underflow.

    No measure in this module depends on the unit.
    """
    points = as_points(X, name)
    exponent = int(np.frexp(max(float(np.abs(block).max()) for block in blocks(points)))[1])
    return points if abs(exponent) <= IN_RANGE else np.ldexp(points, -exponent)


def labelled(X: ArrayLike, y: ArrayLike) -> tuple[Floats, Integers, int]:
    """Checked points, the label index of each row, and the number of labels: at least two."""
    points = in_range(X)
    labels, codes = as_labels(y, len(points))
    check_two_labels(labels)
    return points, codes, len(labels)


def class_means(points: Floats, codes: Integers, m: int) -> tuple[Floats, Floats]:
    """(m, d) the mean of each label, and (m,) its number of rows."""
    counts = np.bincount(codes, minlength=m).astype(np.float64)
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    return np.add.reduceat(points[order], starts, axis=0) / counts[:, None], counts

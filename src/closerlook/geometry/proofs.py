"""Bounds of the distance between two hulls from a normal or from weights, in plain numpy, rounding included."""

from __future__ import annotations

import math

import numpy as np

from closerlook.geometry.frame import ROWS, UNIT, Floats, Frame, Integers, longest

Weighted = tuple[Floats, Integers, Floats]
"""The points of a hull, some of their rows, and the weights of these rows."""


def margin(frame: Frame, points_a: Floats, points_b: Floats, normal: Floats, *, exactly: bool = False) -> float:
    """A lower bound of the distance between two hulls, in the frame: the gap between projections on a vector.

    exactly: compute the projections of the points near the gap without rounding.
    """
    d = len(normal)
    largest = float(np.abs(normal).max())
    if not (np.isfinite(largest) and largest > 0):
        return -np.inf
    normal = np.ldexp(normal, -int(np.frexp(largest)[1]))  # exact, and its square does not underflow
    length = float(np.sqrt(normal @ normal)) * (1 + 2 * (d + 4) * UNIT)
    if exactly:
        gap = -_exact_top(frame, points_a, -normal) - _exact_top(frame, points_b, normal)
    else:
        gap = _extent(frame, points_a, normal)[0] - _extent(frame, points_b, normal)[1]
    gap /= length
    return gap * (1 - 4 * UNIT) if gap > 0 else gap * (1 + 4 * UNIT)


def offset(frame: Frame, points_a: Floats, points_b: Floats, normal: Floats) -> float:
    """The midpoint of the two projections, in the unit of the input."""
    middle = (_extent(frame, points_a, normal)[0] + _extent(frame, points_b, normal)[1]) / 2
    return float(frame.outside(middle + frame.centre @ normal))


def reach(frame: Frame, side_a: Weighted, side_b: Weighted, *, exactly: bool = False) -> float:
    """An upper bound of the distance between two hulls: that of the weighted points; infinite for bad weights.

    exactly: sum the weighted points without rounding.
    """
    for points, rows, weights in (side_a, side_b):
        if len(rows) == 0 or rows.min() < 0 or rows.max() >= len(points) or not (weights >= 0).all():
            return np.inf
    difference, error = (_exact_difference if exactly else _difference)(frame, side_a, side_b)
    d = len(difference)
    distance = (float(np.linalg.norm(difference)) * (1 + 2 * (d + 4) * UNIT) + error) * (1 + 4 * UNIT)
    return frame.above(distance) if distance > 0 else 0.0


# ---- float64 with error bounds ----


def _extent(frame: Frame, points: Floats, normal: Floats) -> tuple[float, float]:
    """The smallest and the largest projection of the points on a vector, in the frame, rounded outwards."""
    least, largest = np.inf, -np.inf
    for at in range(0, len(points), ROWS):
        values, error = _project(frame.place(points[at : at + ROWS]), normal)
        least = min(least, float((values - error).min()))
        largest = max(largest, float((values + error).max()))
    return least, largest


def _project(placed: Floats, normal: Floats) -> tuple[Floats, Floats]:
    """The projections of points in the frame on a vector, and bounds of their rounding errors.

    A sum of d products differs from the exact sum by at most d * UNIT / (1 - d * UNIT) of the sum of their absolute
    values, in any order. Subtracting the centre adds one rounding to each coordinate. The bound itself is computed in
    the same way.
    """
    d = len(normal)
    share = (d + 4) * UNIT / (1 - (d + 4) * UNIT)
    return placed @ normal, np.abs(placed) @ np.abs(normal) * share * (1 + 2 * share) + 1e-300


def _difference(frame: Frame, side_a: Weighted, side_b: Weighted) -> tuple[Floats, float]:
    """The difference of two weighted points, and a bound of the length of its rounding error."""
    difference, error = np.zeros(side_a[0].shape[1]), 0.0
    for sign, (points, rows, weights) in ((1.0, side_a), (-1.0, side_b)):
        placed = frame.place(points[rows])
        share = (len(rows) + 4) * UNIT
        difference += sign * (weights @ placed)
        error += 2 * share * float(np.linalg.norm(weights @ np.abs(placed)))
        missing = abs(float(weights.sum()) - 1) + share  # weights that sum to 1 exactly are this close
        error += missing * longest(placed) * 2
    return difference, error


# ---- exact sums ----


def _exact_top(frame: Frame, points: Floats, normal: Floats) -> float:
    """The largest projection of the points on a vector, in the frame: an exact sum, rounded up.

    Only points that float64 cannot tell from the largest are projected exactly.
    """
    values, errors = [], []
    for at in range(0, len(points), ROWS):
        value, error = _project(frame.place(points[at : at + ROWS]), normal)
        values.append(value)
        errors.append(error)
    value, error = np.concatenate(values), np.concatenate(errors)
    near = np.flatnonzero(value + error >= (value - error).max())
    top = max(math.fsum(row) for row in _terms(frame, points[near], normal))
    return top + abs(top) * 2 * UNIT + float(error[near].max()) * 2 * UNIT + 1e-290


def _exact_difference(frame: Frame, side_a: Weighted, side_b: Weighted) -> tuple[Floats, float]:
    """The difference of two weighted points, each coordinate an exact sum, and a bound of its remaining error."""
    columns, error = [], 0.0
    for sign, (points, rows, weights) in ((1.0, side_a), (-1.0, side_b)):
        used = points[rows]
        columns.append(sign * _terms(frame, used.T, weights, columns=True))
        missing = abs(math.fsum([*weights, -1.0])) * (1 + 2 * UNIT)  # one rounding, relative to what is missing
        error += (missing + 4 * UNIT**2) * longest(frame.place(used)) * 2
    difference = np.array([math.fsum(row) for row in np.concatenate(columns, axis=1)])
    return difference, error + 2 * UNIT * float(np.linalg.norm(difference)) + 1e-290


def _terms(frame: Frame, points: Floats, factors: Floats, *, columns: bool = False) -> Floats:
    """For each row of points, numbers whose exact sum is the inner product of the placed row with the factors.

    A placed coordinate is the sum of two floats (Knuth), and so is the product of two floats (Dekker). The product of
    the remainder of a coordinate is rounded: this error is below UNIT² of the terms. columns: the points are
    transposed.
    """
    with np.errstate(over="ignore"):
        scaled = np.ldexp(points, -frame.exponent)
    centre = frame.centre[:, None] if columns else frame.centre
    placed = scaled - centre
    back = placed + centre
    rest = (scaled - back) + ((back - placed) - centre)
    product = placed * factors
    (a, b), (c, d) = _halves(placed), _halves(factors)
    error = ((a * c - product) + a * d + b * c) + b * d
    return np.concatenate([product, error, rest * factors], axis=1)


def _halves(values: Floats) -> tuple[Floats, Floats]:
    """Two floats with half of the digits each, which sum to the value."""
    shifted = values * (2.0**27 + 1)
    upper = shifted - (shifted - values)
    return upper, values - upper

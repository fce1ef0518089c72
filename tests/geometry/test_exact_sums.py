"""The exact sums of the proofs agree with rational arithmetic, and float64 bounds contain them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.random import Generator

from closerlook.geometry.frame import UNIT, Floats, Frame
from closerlook.geometry.proofs import Weighted, margin, reach


def rational_margin(frame: Frame, points_a: Floats, points_b: Floats, normal: Floats) -> Fraction:
    """The gap between the projections times the length of the normal, without rounding: the plain twin of `margin`."""

    def project(point: Floats) -> Fraction:
        terms = zip(point.tolist(), normal.tolist(), strict=True)
        return sum((Fraction(x) * Fraction(w) for x, w in terms), Fraction(0)) / Fraction(2) ** frame.exponent

    return min(map(project, points_a)) - max(map(project, points_b))


def rational_square(frame: Frame, side_a: Weighted, side_b: Weighted) -> Fraction:
    """The squared distance of the weighted points, the weights divided by their sum: the plain twin of `reach`."""
    square = Fraction(0)
    for column in range(side_a[0].shape[1]):
        means = []
        for points, rows, weights in (side_a, side_b):
            exact = [Fraction(weight) for weight in weights.tolist()]
            terms = zip(exact, points[rows, column].tolist(), strict=True)
            means.append(sum((weight * Fraction(x) for weight, x in terms), Fraction(0)) / sum(exact))
        square += (means[0] - means[1]) ** 2
    return square


def weighted(rng: Generator, points: Floats) -> Weighted:
    weights = rng.random(len(points))
    return points, np.arange(len(points)), weights / weights.sum()


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
@pytest.mark.parametrize("d", [1, 3, 40])
def test_exact_bounds_are_those_of_rational_arithmetic(d: int, offset: float) -> None:
    rng = np.random.default_rng(d)
    for _ in range(20):
        A = rng.standard_normal((6, d)) + offset
        normal = rng.standard_normal(d)
        normal /= np.linalg.norm(normal)
        B = A[:5] - (np.ptp(A @ normal) + 1e-6) * normal  # below A, by a gap that mostly cancels
        frame = Frame.of(A, B)
        exact = float(rational_margin(frame, A, B, normal))
        length = float(np.linalg.norm(normal))
        bound = margin(frame, A, B, normal, exactly=True)
        assert bound * length <= exact
        assert bound * length == pytest.approx(exact, rel=1e-12, abs=1e-15)
        assert margin(frame, A, B, normal) <= bound + 4 * UNIT * abs(bound)
        sides = weighted(rng, A), weighted(rng, B)
        square = rational_square(frame, *sides)
        reached = reach(frame, *sides, exactly=True)
        assert Fraction(reached) ** 2 >= square
        assert reached == pytest.approx(float(square) ** 0.5, rel=1e-12, abs=1e-14 * frame.above(1.0))
        assert reached <= reach(frame, *sides) * (1 + 4 * UNIT)


def test_weights_whose_sum_is_one_only_after_rounding_are_not_exact() -> None:
    A, B = np.array([[-1.0], [1.0], [1.0]]), np.array([[-1.0], [1.0 - 2.0**-30]])
    sides = (A, np.array([1, 2]), np.array([0.5, 0.5 - 2.0**-54])), (B, np.array([1]), np.ones(1))
    frame = Frame.of(A, B)
    assert Fraction(reach(frame, *sides, exactly=True)) ** 2 >= rational_square(frame, *sides)

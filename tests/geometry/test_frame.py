"""The frame has the RMS radius of the points, and keeps their differences at any offset."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from closerlook.geometry.frame import Frame, longest
from tests.geometry.plain import rms_radius


def cloud(n: int = 200, d: int = 5, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng([n, d, seed]).standard_normal((n, d))


@pytest.mark.parametrize("scale", [1e-200, 7.0, 1e200])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (200, 5), (5000, 3), (9, 300)])
def test_the_radius_is_that_of_numpy(n: int, d: int, scale: float) -> None:
    X = cloud(n, d)
    frame = Frame.of(X * scale)
    assert frame.outside(frame.radius) == pytest.approx(rms_radius(X) * scale, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 7.0, 1e200])
def test_inside_the_frame_the_radius_is_near_one(scale: float) -> None:
    assert 0.5 <= Frame.of(cloud() * scale + scale).radius < 1


def test_inside_the_frame_the_mean_is_at_the_origin() -> None:
    X = cloud() + 1e3
    placed = Frame.of(X).place(X)
    assert np.abs(placed.mean(axis=0)).max() < 1e-12


def test_points_in_several_arrays_have_the_frame_of_all() -> None:
    X = cloud()
    whole, parts = Frame.of(X), Frame.of(X[:70], X[70:71], X[71:])
    assert parts.exponent == whole.exponent
    assert parts.radius == pytest.approx(whole.radius, rel=1e-14)
    assert parts.centre == pytest.approx(whole.centre, abs=1e-15)


@pytest.mark.parametrize("offset", [2.0**20, -(2.0**30), 2.0**40])
def test_a_huge_offset_leaves_differences_as_they_are(offset: float) -> None:
    X = np.round(cloud() * 1024) / 1024  # so that the offset costs no digits
    frame = Frame.of(X + offset)
    placed = frame.outside(frame.place(X + offset))
    assert (placed[1:] - placed[0]).tolist() == pytest.approx((X[1:] - X[0]), abs=1e-15)
    assert frame.outside(frame.radius) == pytest.approx(rms_radius(X), rel=1e-6)


def test_the_radius_far_from_the_origin_is_that_of_exact_arithmetic() -> None:
    X = 1e9 + 1e-3 * cloud(500, 2)
    columns = [[Fraction(value) for value in column] for column in X.T.tolist()]
    means = [sum(column) / len(X) for column in columns]
    square = sum((x - mean) ** 2 for column, mean in zip(columns, means, strict=True) for x in column) / len(X)
    frame = Frame.of(X)
    assert frame.outside(frame.radius) == pytest.approx(float(square) ** 0.5, rel=1e-5)


@pytest.mark.parametrize("point", [[0.0, 0.0], [0.1, 1e9], [5e-324, 0.0], [1e308, -1e308]])
def test_identical_points_have_no_radius_and_lie_at_the_origin(point: list[float]) -> None:
    X = np.tile(point, (1000, 1))
    frame = Frame.of(X)
    assert frame.radius == 0.0
    assert (frame.place(X) == 0).all()


def test_two_points_one_digit_apart_are_not_identical() -> None:
    X = np.array([[1.0], [1.0 + 2**-52]])
    frame = Frame.of(X)
    assert frame.outside(frame.radius) == pytest.approx(2**-53, rel=1e-12)
    assert frame.outside(np.ptp(frame.place(X))) == 2**-52


@pytest.mark.parametrize("power", [-1060, -1000, 900, 1020])
def test_a_power_of_two_changes_the_exponent_alone(power: int) -> None:
    X = np.array([[0.0, 3.0], [1.0, -2.0], [5.0, 6.0]])
    plain, scaled = Frame.of(X), Frame.of(np.ldexp(X, power))
    assert scaled.exponent == plain.exponent + power
    assert scaled.radius == plain.radius
    assert scaled.place(np.ldexp(X, power)).tolist() == plain.place(X).tolist()


def test_points_near_the_largest_number_have_a_finite_frame() -> None:
    X = np.array([[1.7e308], [0.0], [1.7e307]])
    frame = Frame.of(X)
    assert np.isfinite(frame.place(X)).all()
    assert frame.outside(frame.radius) == pytest.approx(rms_radius(X / 1e300) * 1e300, rel=1e-12)


SCALES = {
    "least denormals": np.r_[5e-324, np.zeros(99)][:, None],
    "denormals": np.ldexp([[0.0, 3.0], [1.0, -2.0]], -1070),
    "ones": cloud(),
    "largest numbers": np.array([[1.7e308], [-1.7e308], [1.6e308]]),
}
each_scale = pytest.mark.parametrize("X", SCALES.values(), ids=SCALES)


@each_scale
def test_lengths_are_finite_and_not_zero_inside_the_frame(X: NDArray[np.float64]) -> None:
    frame = Frame.of(X)
    length = frame.inside(float(np.abs(X).max()))
    assert 0.1 < length < 100
    assert 0 < np.ptp(frame.place(X)) < 100


@each_scale
def test_a_length_comes_back_from_the_frame_unchanged(X: NDArray[np.float64]) -> None:
    frame = Frame.of(X)
    for length in np.abs(X).max(), np.abs(X).max() / 2:
        assert frame.outside(frame.inside(float(length))) == length


@each_scale
def test_lengths_outside_are_rounded_down_and_up(X: NDArray[np.float64]) -> None:
    frame = Frame.of(X)
    for length in (frame.radius, frame.radius / 3, 0.1, 0.0):
        exact = Fraction(length) * Fraction(2) ** frame.exponent
        assert Fraction(frame.below(length)) <= exact <= Fraction(frame.above(length))
        assert frame.below(length) <= frame.outside(length) <= frame.above(length)
        assert frame.above(length) - frame.below(length) <= max(float(exact) * 2**-51, 1e-323)


def test_a_length_beyond_the_largest_number_has_a_finite_lower_bound() -> None:
    frame = Frame.of(SCALES["largest numbers"])
    assert np.isinf(frame.outside(2.0))
    assert np.isfinite(frame.below(2.0))


def test_lengths_outside_may_be_given_all_at_once() -> None:
    frame = Frame.of(cloud() * 1e-5)
    lengths = np.array([0.0, 0.25, 3.0])
    assert frame.outside(lengths).tolist() == [float(frame.outside(length)) for length in lengths]


def test_the_longest_row_is_rounded_up() -> None:
    X = cloud(5000, 3)
    exact = float(np.linalg.norm(X, axis=1).max())
    assert exact <= longest(X) <= exact * (1 + 1e-8)


@pytest.mark.parametrize("d", [1, 10, 1000])
def test_the_slack_covers_the_rounding_of_a_projection(d: int) -> None:
    rng = np.random.default_rng(d)
    X = rng.standard_normal((20, d))
    normal = rng.standard_normal(d)
    normal /= np.linalg.norm(normal)
    direction = [Fraction(value) for value in normal.tolist()]
    for row, result in zip(X.tolist(), (X @ normal).tolist(), strict=True):
        exact = sum(Fraction(x) * n for x, n in zip(row, direction, strict=True))
        assert abs(exact - Fraction(result)) <= Frame.slack(longest(X), d)
    assert Frame.slack(longest(X), d) < 1e-10

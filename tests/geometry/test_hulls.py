"""Two hulls get the right verdict and valid bounds of their distance, for numbers of any size and type."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from closerlook.geometry import Separation, point_to_hull, separate
from tests.geometry.plain import plain_distance, rms_radius
from tests.geometry.sets import overlapping_pair, separable_pair
from tests.geometry.test_twin import facing

Points = NDArray[np.float64]


# The interval


BOX = np.array(list(product([0.0, 1.0], repeat=3)))
X_AXIS, _, Z_AXIS = np.eye(3)
OCTAHEDRON = np.vstack([np.eye(3), -np.eye(3)])


def polygon(corners: int, turn: float = 0.0) -> Points:
    angles = 2 * np.pi * (np.arange(corners) + turn) / corners
    return np.column_stack([np.cos(angles), np.sin(angles)])


def star(d: int) -> Points:
    """The corners of the unit ball of the 1-norm."""
    return np.vstack([np.eye(d), -np.eye(d)])


BY_HAND: dict[str, tuple[Any, Any, float]] = {
    "two points": ([[0, 0]], [[3, 4]], 5.0),
    "two points on a line": ([[-1.5]], [[2.0]], 3.5),
    "a point next to a segment": ([[0, 1]], [[-1, 0], [1, 0]], 1.0),
    "a point beyond a segment": ([[2, 1]], [[-1, 0], [1, 0]], 2**0.5),
    "a point in a segment": ([[0.25, 0]], [[-1, 0], [1, 0]], 0.0),
    "segments that cross": ([[0, 0], [1, 1]], [[0, 1], [1, 0]], 0.0),
    "segments that touch at their ends": ([[0], [1]], [[1], [4]], 0.0),
    "parallel segments": ([[0, 0], [4, 0]], [[1, 3], [9, 3]], 3.0),
    "skew segments": ([[0, 0, 0], [1, 0, 0]], [[0.5, -1, 2], [0.5, 1, 2]], 2.0),
    "a corner before a triangle": ([[1, 1, 1]], [[0, 0, 0], *np.eye(3)], 2 / 3**0.5),
    "the origin and a simplex in 16 dimensions": (np.zeros((1, 16)), np.eye(16), 0.25),
    "opposite faces of simplices": (np.eye(4), -np.eye(4), 1.0),
    "boxes face to face": (BOX, BOX + 3 * X_AXIS, 2.0),
    "boxes edge to edge": (BOX, BOX + 3 * (1 - Z_AXIS), 8**0.5),
    "boxes corner to corner": (BOX, BOX + 2, 3**0.5),
    "boxes with a common corner": (BOX, BOX + 1, 0.0),
    "a box in a box": (BOX, 3 * BOX - 1, 0.0),
    "octahedra corner to corner": (OCTAHEDRON, OCTAHEDRON + 4 * X_AXIS, 2.0),
    "octahedra face to face": (OCTAHEDRON, OCTAHEDRON + 2, 2 * 3**0.5 - 2 / 3**0.5),
    "stars in ten dimensions": (star(10), star(10) + 1, 8 / 10**0.5),
    "polygons corner to corner": (polygon(12), polygon(12) + 3 * X_AXIS[:2], 1.0),
    "polygons side to side": (polygon(12, 0.5), polygon(12, 0.5) + 3 * X_AXIS[:2], 3 - 2 * np.cos(np.pi / 12)),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_the_interval_holds_the_distance_worked_out_by_hand(case: str) -> None:
    A, B, distance = BY_HAND[case]
    result = separate(A, B)
    assert result.verdict == ("separable" if distance else "overlapping")
    assert result.lower <= distance * (1 + 1e-15)
    assert result.upper >= distance * (1 - 1e-15)
    assert result.gap <= (2e-6 * distance if distance else 1e-12)
    assert result.distance == pytest.approx(distance, rel=1e-6, abs=0)
    assert result.verify(A, B)


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_holds_the_plain_distance_of_random_sets(seed: int) -> None:
    rng = np.random.default_rng([3, seed])
    for _ in range(12):
        d = int(rng.integers(1, 12))
        A = rng.standard_normal((rng.integers(1, 25), d))
        B = rng.standard_normal((rng.integers(1, 25), d)) + rng.choice([0.0, 1.0, 3.0, 30.0]) / d**0.5
        result, distance = separate(A, B), plain_distance(A, B)
        assert result.verdict == ("separable" if distance > 1e-6 * rms_radius(np.vstack([A, B])) else "overlapping")
        assert result.lower <= distance * (1 + 1e-6)
        assert result.upper >= distance * (1 - 1e-6)
        assert result.verify(A, B)


@pytest.mark.parametrize("gap", [0.3, 1e-3, 1e-6, 1e-9])
def test_the_bounds_are_as_narrow_as_requested(gap: float) -> None:
    rng = np.random.default_rng(5)
    A, B = rng.standard_normal((200, 30)), rng.standard_normal((150, 30)) + 1.0
    result = separate(A, B, gap=gap)
    assert result.is_separable
    assert result.gap <= gap * result.upper * (1 + 1e-6) + 1e-12


def test_without_a_gap_the_first_proof_is_enough() -> None:
    A, B = separable_pair()
    first = separate(A, B, gap=None)
    assert first.verdict == "separable"
    assert first.verify(A, B)
    assert first.lower <= separate(A, B).distance <= first.upper


def hyperplane_margin(result: Separation, A: Points, B: Points) -> tuple[Fraction, Fraction]:
    """The exact gap between the projections on the normal, and the exact square of the normal's length."""
    normal = [Fraction(float(value)) for value in result.normal]
    above, below = (
        [sum(n * Fraction(float(x)) for n, x in zip(normal, row, strict=True)) for row in side] for side in (A, B)
    )
    return Fraction(min(above) - max(below)), Fraction(sum(value * value for value in normal))


def squared_reach(result: Separation, A: Points, B: Points) -> Fraction:
    """The exact squared distance of the two weighted points, their weights made to sum to one exactly."""
    sides = ((A, result.rows_a, result.weights_a), (B, result.rows_b, result.weights_b))
    middles = []
    for points, rows, weights in sides:
        exact = [Fraction(float(weight)) for weight in weights]
        middles.append(
            [
                sum(w * Fraction(float(x)) for w, x in zip(exact, column, strict=True)) / sum(exact)
                for column in points[rows].T
            ]
        )
    return Fraction(sum((a - b) ** 2 for a, b in zip(*middles, strict=True)))


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
@pytest.mark.parametrize("gap", [0.0, 1e-6, 3e-6, 1e-3, 1.0])
def test_in_exact_arithmetic_no_bound_claims_too_much(gap: float, offset: float) -> None:
    for seed in range(12):
        rng = np.random.default_rng([7, seed])
        A, B = facing(rng, 1 + seed % 5, gap)
        A, B = A + offset, B + offset * rng.choice([1.0, 1.0 + 1e-12])
        result = separate(A, B)
        margin, length = hyperplane_margin(result, A, B)
        if result.lower > 0:
            assert margin > 0
            assert Fraction(result.lower) ** 2 * length <= margin**2
        assert squared_reach(result, A, B) <= Fraction(result.upper) ** 2
        assert result.verdict == "undecided" or result.is_separable == (result.lower > result.tolerance)
        assert result.verdict != "overlapping" or result.upper <= result.tolerance


def test_in_exact_arithmetic_the_bounds_of_single_points_hold() -> None:
    rng = np.random.default_rng(11)
    for _ in range(200):
        d = int(rng.integers(1, 9))
        A, B = rng.standard_normal((1, d)) * 10.0 ** rng.integers(-8, 9), rng.standard_normal((1, d))
        result = separate(A, B)
        margin, length = hyperplane_margin(result, A, B)
        assert Fraction(result.lower) ** 2 * length <= margin**2
        assert squared_reach(result, A, B) <= Fraction(result.upper) ** 2


# Shapes and numbers of every kind


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.int64, np.uint8, bool])
def test_numbers_of_any_real_kind_are_taken_at_their_value(kind: type) -> None:
    A, B = np.array([[0, 0], [1, 0]]).astype(kind), np.array([[0, 1], [1, 1]]).astype(kind)
    result = separate(A, B)
    assert result.distance == pytest.approx(1.0, rel=1e-6)
    assert result.verify(A, B)


def test_half_precision_at_an_offset_keeps_its_differences() -> None:
    A = np.array([[1000.0, 1000.5], [1001.0, 1000.0]], dtype=np.float16)
    assert separate(A, A + np.float16(1.5)).distance == pytest.approx(
        plain_distance(A.astype(float), A.astype(float) + 1.5), rel=1e-6
    )


def test_hulls_on_a_line_are_intervals() -> None:
    A, B = np.array([[3.0], [1.0], [2.0]]), np.array([[5.0], [3.5], [9.0]])
    result = separate(A, B)
    assert result.lower <= 0.5 <= result.upper
    assert result.normal.tolist() == [-1.0]
    assert separate(A, B - 0.5).verdict == "overlapping"


def test_fewer_points_than_dimensions_are_separable_whatever_their_order() -> None:
    X = np.random.default_rng(4).standard_normal((20, 64))
    result = separate(X[::2], X[1::2])
    assert result.is_separable
    assert result.distance == pytest.approx(plain_distance(X[::2], X[1::2]), rel=1e-5)


def test_identical_points_overlap_without_a_residual() -> None:
    for point in ([0.0, 0.0], [0.1, -3e9], [1e-310, 1e-310]):
        A, B = np.tile(point, (4, 1)), np.tile(point, (3, 1))
        result = separate(A, B)
        assert (result.verdict, result.residual, result.distance) == ("overlapping", 0.0, 0.0)
        assert result.verify(A, B)


def test_zeros_of_both_signs_are_one_point() -> None:
    assert separate([[0.0, -0.0]], [[-0.0, 0.0]]).verdict == "overlapping"


def test_constant_columns_change_nothing() -> None:
    A, B = separable_pair()
    wider_A, wider_B = (np.c_[np.full((len(side), 3), 1 / 3), side, np.full(len(side), 1e3)] for side in (A, B))
    plain, result = separate(A, B), separate(wider_A, wider_B)
    assert result.distance == pytest.approx(plain.distance, rel=2e-6)
    assert result.normal[[0, 1, 2, -1]] == pytest.approx(np.zeros(4), abs=1e-15)
    A, B = overlapping_pair()
    assert separate(np.c_[A, np.full(30, 0.1)], np.c_[B, np.full(25, 0.1)]).verdict == "overlapping"


def test_repeated_points_change_nothing() -> None:
    for A, B in (separable_pair(), overlapping_pair()):
        plain, result = separate(A, B), separate(np.repeat(A, 3, axis=0), np.tile(B, (4, 1)), scale=1.0)
        assert result.verdict == plain.verdict
        assert result.distance == pytest.approx(plain.distance, rel=2e-6, abs=1e-6)


@pytest.mark.parametrize("power", [-960, -500, -1, 1, 500, 996])  # further down digits are lost
def test_a_power_of_two_scales_the_answer_and_changes_nothing_else(power: int) -> None:
    for A, B in (separable_pair(), overlapping_pair()):
        plain, result = separate(A, B), separate(np.ldexp(A, power), np.ldexp(B, power))
        assert result.verdict == plain.verdict
        assert result.normal.tolist() == plain.normal.tolist()
        assert (result.lower, result.upper) == (np.ldexp(plain.lower, power), np.ldexp(plain.upper, power))
        assert result.verify(np.ldexp(A, power), np.ldexp(B, power))


def test_denormal_points_are_separated_and_measured() -> None:
    A, B = np.ldexp([[0.0, 0.0], [4.0, 0.0]], -1060), np.ldexp([[2.0, 3.0], [1.0, 9.0]], -1060)
    result = separate(A, B)
    assert result.is_separable
    assert result.distance == pytest.approx(np.ldexp(3.0, -1060), rel=1e-3)
    assert result.verify(A, B)


@pytest.mark.parametrize("n", [1, 100])
def test_the_least_denormal_is_in_the_interval(n: int) -> None:
    result = separate([[5e-324]], np.zeros((n, 1)))
    assert result.lower <= 5e-324 <= result.upper
    assert result.verdict != "overlapping"
    assert result.verify([[5e-324]], np.zeros((n, 1)))


def test_bounds_among_denormals_are_rounded_outwards() -> None:
    A, B = np.ldexp([[2.0, 2.0]], -1074), np.zeros((1, 2))
    result = separate(A, B)  # the distance is √8 of the least denormal
    assert result.lower <= np.ldexp(2.0, -1074)
    assert result.upper >= np.ldexp(3.0, -1074)


def test_points_near_the_largest_number_are_measured() -> None:
    result = separate([[1e308]], [[0.0]])
    assert result.lower <= 1e308 <= result.upper
    assert result.gap < 1e294


def test_rows_whose_sum_overflows_are_measured() -> None:
    result = separate([[1e308, 1e308]], [[1e308, 0.0]])
    assert result.lower <= 1e308 <= result.upper
    assert result.gap < 1e294


def test_the_middle_of_large_bounds_is_finite() -> None:
    assert separate([[1e308]], [[0.0]]).distance == pytest.approx(1e308)


def test_points_farther_apart_than_the_largest_number_are_separable() -> None:
    result = separate([[1.2e308]], [[-1.2e308]])
    assert result.verdict == "separable"
    assert result.verify([[1.2e308]], [[-1.2e308]])


@pytest.mark.parametrize("gap", [1.0, 1e3, 1e6])  # about 3e-9, 3e-6 and 3e-3 radii
def test_columns_of_very_different_scales_are_decided(gap: float) -> None:
    rng = np.random.default_rng(8)
    A, B = (rng.random((40, 2)) * [1e9, 1.0] for _ in range(2))
    A[:2], B[:2] = [[0, 1], [1e9, 1]], [[0, 0], [1e9, 0]]
    B[:, 1] += 1 + gap
    result = separate(A, B)
    assert result.verdict == ("separable" if gap > 1e-6 * rms_radius(np.vstack([A, B])) else "overlapping")
    assert result.lower <= gap * (1 + 1e-12)
    assert result.upper >= gap * (1 - 1e-12)
    assert result.verify(A, B)


@pytest.mark.parametrize(
    ("point", "distance"),
    [([0.5, 0.25], 0.0), ([0.0, 0.0], 0.0), ([0.5, 0.5], 0.0), ([1.0, 1.0], 0.5**0.5), ([-3, 4], 18**0.5)],
)
def test_a_point_is_in_a_hull_or_at_its_distance(point: list[float], distance: float) -> None:
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    result = point_to_hull(point, triangle)
    assert result.verdict == ("separable" if distance else "overlapping")
    assert result.distance == pytest.approx(distance, rel=1e-6)
    assert result.verify(triangle, [point])


# Any small sets of whole numbers


@st.composite
def whole_pairs(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any]]:
    d = draw(st.integers(1, 5))
    numbers = st.integers(-4, 4)
    sizes = st.integers(1, 8)
    return draw(arrays(np.int64, (draw(sizes), d), elements=numbers)), draw(
        arrays(np.int64, (draw(sizes), d), elements=numbers)
    )


@given(whole_pairs())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_order_of_two_sets_does_not_matter(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    A, B = pair
    there, back = separate(A, B), separate(B, A)
    assert there.verdict == back.verdict != "undecided"
    assert there.lower <= back.upper
    assert back.lower <= there.upper
    assert there.verify(A, B)
    assert back.verify(B, A)


@given(whole_pairs())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_whole_numbers_have_their_plain_distance(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    A, B = pair
    result = separate(A, B)
    distance = plain_distance(A, B) if len(np.unique(np.vstack(pair), axis=0)) > 1 else 0.0
    assert result.distance == pytest.approx(distance, rel=1e-5, abs=1e-6)

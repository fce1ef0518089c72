"""Two hulls: the verdict is right, its proof can be checked by anyone, and its interval holds the distance."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.svm import SVC

from closerlook.errors import InputError
from closerlook.geometry import Separation, kernels, point_to_hull, separate
from tests.geometry.plain import plain_distance, rms_radius
from tests.geometry.test_twin import facing, rotation

Points = NDArray[np.float64]
Pair = tuple[Points, Points]


def apart() -> Pair:
    rng = np.random.default_rng(1)
    return rng.standard_normal((30, 4)), rng.standard_normal((25, 4)) + 4


def meeting() -> Pair:
    rng = np.random.default_rng(2)
    return rng.standard_normal((30, 4)), rng.standard_normal((25, 4)) + 0.3


def left_open() -> tuple[Pair, Separation]:
    """An undecided verdict: what is certain of two hulls that are apart, under a tolerance inside the interval."""
    A, B = apart()
    found = separate(A, B, gap=0.01)
    return (A, B), replace(found, verdict="undecided", tolerance=(found.lower + found.upper) / 2)


# The proof


def test_the_proof_of_separable_hulls_holds() -> None:
    A, B = apart()
    found = separate(A, B)
    assert found.verdict == "separable"
    assert found.is_separable
    assert found.verify(A, B)


def test_the_proof_of_overlapping_hulls_holds() -> None:
    A, B = meeting()
    found = separate(A, B)
    assert found.verdict == "overlapping"
    assert not found.is_separable
    assert found.verify(A, B)


def test_the_bounds_of_undecided_hulls_hold() -> None:
    pair, found = left_open()
    assert found.verify(*pair)


def test_hulls_that_meet_without_a_tolerance_are_undecided_with_bounds_that_hold() -> None:
    A, B = meeting()
    found = separate(A, B, scale=0.0)
    assert found.verdict == "undecided"
    assert found.lower == 0.0
    assert 0 < found.gap < 1e-12
    assert found.verify(A, B)


def test_the_hyperplane_has_the_first_hull_above_it_and_the_second_below() -> None:
    A, B = apart()
    found = separate(A, B)
    assert (A @ found.normal > found.offset).all()
    assert (B @ found.normal < found.offset).all()


def test_the_weighted_points_of_separable_hulls_are_the_distance_apart() -> None:
    A, B = apart()
    found = separate(A, B)
    difference = found.weights_a @ A[found.rows_a] - found.weights_b @ B[found.rows_b]
    assert np.linalg.norm(difference) == pytest.approx(found.distance, rel=1e-6)
    assert difference / np.linalg.norm(difference) == pytest.approx(found.normal, abs=1e-4)


def test_a_proof_uses_few_points_with_convex_weights() -> None:
    for A, B in (apart(), meeting()):
        found = separate(A, B)
        for rows, weights in ((found.rows_a, found.weights_a), (found.rows_b, found.weights_b)):
            assert len(set(rows.tolist())) == len(rows) == len(weights)
            assert (weights >= 0).all()
            assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert len(found.rows_a) + len(found.rows_b) <= 4 + 2


def test_a_proof_is_checked_without_the_compiled_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    proofs = [(pair, separate(*pair)) for pair in (apart(), meeting())] + [left_open()]

    def refuse() -> None:
        raise AssertionError("the check called the solver")

    monkeypatch.setattr(kernels, "library", refuse)
    assert all(found.verify(*pair) for pair, found in proofs)


def test_a_turned_normal_proves_nothing() -> None:
    A, B = apart()
    found = separate(A, B)
    assert not replace(found, normal=found.normal[::-1] * [1, -1, 1, -1]).verify(A, B)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_normal_that_is_no_direction_proves_nothing(value: float) -> None:
    A, B = apart()
    assert not replace(separate(A, B), normal=np.full(4, value)).verify(A, B)


def test_a_normal_the_wrong_way_round_proves_nothing() -> None:
    A, B = apart()
    found = separate(A, B)
    assert not replace(found, normal=-found.normal).verify(A, B)
    assert not found.verify(B, A)


@pytest.mark.parametrize("factor", [1e-150, 1e-3, 7.0, 1e150])
def test_a_longer_or_shorter_normal_proves_no_more(factor: float) -> None:
    A, B = apart()
    found = separate(A, B)
    scaled = replace(found, normal=found.normal * factor)
    assert replace(scaled, lower=found.lower * (1 - 1e-9)).verify(A, B)
    assert not replace(scaled, lower=found.lower * 1.0001).verify(A, B)


@pytest.mark.xfail(
    strict=True, reason="margin(): normal @ normal underflows, so the length of a tiny normal is too small"
)
def test_a_normal_whose_square_is_lost_proves_no_more() -> None:
    A, B = [[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 2.0]]
    found = separate(A, B)
    assert not replace(found, normal=found.normal * 1e-161, lower=found.lower * 1.001).verify(A, B)


def test_a_lower_bound_that_is_too_high_is_refused() -> None:
    A, B = apart()
    found = separate(A, B)
    assert not replace(found, lower=found.upper * (1 + 1e-9)).verify(A, B)
    pair, undecided = left_open()
    assert not replace(undecided, lower=undecided.upper * (1 + 1e-9)).verify(*pair)


def test_an_upper_bound_that_is_too_low_is_refused_where_undecided() -> None:
    pair, found = left_open()
    assert not replace(found, upper=found.lower / 2).verify(*pair)


@pytest.mark.xfail(strict=True, reason="verify() never looks at `upper` of a separable verdict")
def test_an_upper_bound_that_is_too_low_is_refused_where_separable() -> None:
    A, B = apart()
    found = separate(A, B)
    assert not replace(found, upper=found.lower / 2).verify(A, B)


@pytest.mark.xfail(strict=True, reason="verify() never looks at `lower` or `upper` of an overlapping verdict")
@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_a_wrong_bound_is_refused_where_overlapping(bound: str) -> None:
    A, B = meeting()
    found = separate(A, B)
    wrong = found.tolerance / 2 if bound == "lower" else found.upper / 1e6
    assert not replace(found, **{bound: wrong}).verify(A, B)


@pytest.mark.xfail(strict=True, reason="verify() never looks at the weights of a separable verdict")
def test_wrong_weights_are_refused_where_separable() -> None:
    A, B = apart()
    found = separate(A, B)
    assert not replace(found, weights_a=found.weights_a * 3).verify(A, B)


def test_a_lower_bound_within_the_tolerance_does_not_prove_separable() -> None:
    A, B = apart()
    found = separate(A, B)
    assert not replace(found, tolerance=found.lower * 1.01).verify(A, B)


def test_weights_that_do_not_sum_to_one_are_refused() -> None:
    A, B = meeting()
    found = separate(A, B)
    doubled = replace(found, weights_a=2 * found.weights_a, weights_b=2 * found.weights_b)
    assert not doubled.verify(A, B)
    assert not replace(found, weights_b=found.weights_b * (1 + 1e-4)).verify(A, B)


def test_negative_weights_are_refused() -> None:
    A, B = np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]])
    found = separate(A, B)
    assert found.verify(A, B)
    outside = replace(found, rows_a=np.array([0, 1]), weights_a=np.array([-0.5, 1.5]), weights_b=np.array([1.0]))
    assert not replace(outside, rows_b=np.array([1])).verify(A, B)
    nearly = replace(outside, rows_b=np.array([0]), weights_a=np.array([-1e-12, 1 + 1e-12]))
    assert not nearly.verify(A, B)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_weights_that_are_no_numbers_are_refused() -> None:
    A, B = meeting()
    found = separate(A, B)
    assert not replace(found, weights_a=found.weights_a * np.nan).verify(A, B)


@pytest.mark.parametrize("side", ["a", "b"])
def test_weights_on_other_rows_are_refused(side: str) -> None:
    A, B = meeting()
    found = separate(A, B)
    rows = getattr(found, f"rows_{side}")
    for wrong in (rows[::-1], rows + 1000, rows - 1000, rows[:0]):
        weights = getattr(found, f"weights_{side}")[: len(wrong)]
        assert not replace(found, **{f"rows_{side}": wrong, f"weights_{side}": weights}).verify(A, B)


@pytest.mark.parametrize("pair", [apart(), meeting()], ids=["separable", "overlapping"])
def test_a_proof_does_not_hold_for_other_points(pair: Pair) -> None:
    A, B = pair
    found = separate(A, B)
    rng = np.random.default_rng(0)
    assert not found.verify(A + 10 * rng.standard_normal(A.shape), B)
    assert not found.verify(A, B - 9.0 if found.is_separable else B + 9.0)
    assert not found.verify(A[:, :3], B[:, :3])
    assert not found.verify(A, B[:, :3])


def test_one_point_across_the_hyperplane_undoes_the_proof() -> None:
    A, B = apart()
    found = separate(A, B)
    moved = A.copy()
    moved[17] -= found.normal * (moved[17] @ found.normal - found.offset + found.lower / 2 + 1e-6)
    assert not found.verify(moved, B)


# The interval


BOX = np.array(list(product([0.0, 1.0], repeat=3)))
X_AXIS, _, Z_AXIS = np.eye(3)
OCTAHEDRON = np.vstack([np.eye(3), -np.eye(3)])


def polygon(corners: int, turn: float = 0.0) -> Points:
    angles = 2 * np.pi * (np.arange(corners) + turn) / corners
    return np.column_stack([np.cos(angles), np.sin(angles)])


def star(d: int) -> Points:
    """The corners of the ball of radius one under the sum of sizes."""
    return np.vstack([np.eye(d), -np.eye(d)])


BY_HAND: dict[str, tuple[Any, Any, float]] = {
    "two points": ([[0, 0]], [[3, 4]], 5.0),
    "two points on a line": ([[-1.5]], [[2.0]], 3.5),
    "a point beside a segment": ([[0, 1]], [[-1, 0], [1, 0]], 1.0),
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
    found = separate(A, B)
    assert found.verdict == ("separable" if distance else "overlapping")
    assert found.lower <= distance * (1 + 1e-15)
    assert found.upper >= distance * (1 - 1e-15)
    assert found.gap <= (2e-6 * distance if distance else 1e-12)
    assert found.distance == pytest.approx(distance, rel=1e-6, abs=0)
    assert found.verify(A, B)


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_holds_the_plain_distance_of_random_sets(seed: int) -> None:
    rng = np.random.default_rng([3, seed])
    for _ in range(12):
        d = int(rng.integers(1, 12))
        A = rng.standard_normal((rng.integers(1, 25), d))
        B = rng.standard_normal((rng.integers(1, 25), d)) + rng.choice([0.0, 1.0, 3.0, 30.0]) / d**0.5
        found, distance = separate(A, B), plain_distance(A, B)
        assert found.verdict == ("separable" if distance > 1e-6 * rms_radius(np.vstack([A, B])) else "overlapping")
        assert found.lower <= distance * (1 + 1e-6)
        assert found.upper >= distance * (1 - 1e-6)
        assert found.verify(A, B)


@pytest.mark.parametrize("gap", [0.3, 1e-3, 1e-6, 1e-9])
def test_the_interval_is_as_narrow_as_asked_for(gap: float) -> None:
    rng = np.random.default_rng(5)
    A, B = rng.standard_normal((200, 30)), rng.standard_normal((150, 30)) + 1.0
    found = separate(A, B, gap=gap)
    assert found.is_separable
    assert found.gap <= gap * found.upper * (1 + 1e-6) + 1e-12


def test_without_a_gap_the_first_proof_is_enough() -> None:
    A, B = apart()
    first = separate(A, B, gap=None)
    assert first.verdict == "separable"
    assert first.verify(A, B)
    assert first.lower <= separate(A, B).distance <= first.upper


def hyperplane_margin(found: Separation, A: Points, B: Points) -> tuple[Fraction, Fraction]:
    """The exact gap between the projections on the normal, and the exact square of the normal's length."""
    normal = [Fraction(float(value)) for value in found.normal]
    above, below = (
        [sum(n * Fraction(float(x)) for n, x in zip(normal, row, strict=True)) for row in side] for side in (A, B)
    )
    return Fraction(min(above) - max(below)), Fraction(sum(value * value for value in normal))


def squared_reach(found: Separation, A: Points, B: Points) -> Fraction:
    """The exact squared distance of the two weighted points, their weights made to sum to one exactly."""
    sides = ((A, found.rows_a, found.weights_a), (B, found.rows_b, found.weights_b))
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
        found = separate(A, B)
        margin, length = hyperplane_margin(found, A, B)
        if found.lower > 0:
            assert margin > 0
            assert Fraction(found.lower) ** 2 * length <= margin**2
        assert squared_reach(found, A, B) <= Fraction(found.upper) ** 2
        assert found.verdict == "undecided" or found.is_separable == (found.lower > found.tolerance)
        assert found.verdict != "overlapping" or found.upper <= found.tolerance


def test_in_exact_arithmetic_the_bounds_of_single_points_hold() -> None:
    rng = np.random.default_rng(11)
    for _ in range(200):
        d = int(rng.integers(1, 9))
        A, B = rng.standard_normal((1, d)) * 10.0 ** rng.integers(-8, 9), rng.standard_normal((1, d))
        found = separate(A, B)
        margin, length = hyperplane_margin(found, A, B)
        assert Fraction(found.lower) ** 2 * length <= margin**2
        assert squared_reach(found, A, B) <= Fraction(found.upper) ** 2


# Shapes and numbers of every kind


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.int64, np.uint8, bool])
def test_numbers_of_any_real_kind_are_taken_at_their_value(kind: type) -> None:
    A, B = np.array([[0, 0], [1, 0]]).astype(kind), np.array([[0, 1], [1, 1]]).astype(kind)
    found = separate(A, B)
    assert found.distance == pytest.approx(1.0, rel=1e-6)
    assert found.verify(A, B)


def test_half_precision_at_an_offset_keeps_its_differences() -> None:
    A = np.array([[1000.0, 1000.5], [1001.0, 1000.0]], dtype=np.float16)
    assert separate(A, A + np.float16(1.5)).distance == pytest.approx(
        plain_distance(A.astype(float), A.astype(float) + 1.5), rel=1e-6
    )


def test_hulls_on_a_line_are_intervals() -> None:
    A, B = np.array([[3.0], [1.0], [2.0]]), np.array([[5.0], [3.5], [9.0]])
    found = separate(A, B)
    assert found.lower <= 0.5 <= found.upper
    assert found.normal.tolist() == [-1.0]
    assert separate(A, B - 0.5).verdict == "overlapping"


def test_fewer_points_than_dimensions_are_separable_whatever_their_order() -> None:
    X = np.random.default_rng(4).standard_normal((20, 64))
    found = separate(X[::2], X[1::2])
    assert found.is_separable
    assert found.distance == pytest.approx(plain_distance(X[::2], X[1::2]), rel=1e-5)


def test_identical_points_overlap_without_a_residual() -> None:
    for point in ([0.0, 0.0], [0.1, -3e9], [1e-310, 1e-310]):
        A, B = np.tile(point, (4, 1)), np.tile(point, (3, 1))
        found = separate(A, B)
        assert (found.verdict, found.residual, found.distance) == ("overlapping", 0.0, 0.0)
        assert found.verify(A, B)


def test_zeros_of_both_signs_are_one_point() -> None:
    assert separate([[0.0, -0.0]], [[-0.0, 0.0]]).verdict == "overlapping"


def test_constant_columns_change_nothing() -> None:
    A, B = apart()
    wider_A, wider_B = (np.c_[np.full((len(side), 3), 1 / 3), side, np.full(len(side), 1e3)] for side in (A, B))
    plain, found = separate(A, B), separate(wider_A, wider_B)
    assert found.distance == pytest.approx(plain.distance, rel=2e-6)
    assert found.normal[[0, 1, 2, -1]].tolist() == [0, 0, 0, 0]
    A, B = meeting()
    assert separate(np.c_[A, np.full(30, 0.1)], np.c_[B, np.full(25, 0.1)]).verdict == "overlapping"


def test_repeated_points_change_nothing() -> None:
    for A, B in (apart(), meeting()):
        plain, found = separate(A, B), separate(np.repeat(A, 3, axis=0), np.tile(B, (4, 1)), scale=1.0)
        assert found.verdict == plain.verdict
        assert found.distance == pytest.approx(plain.distance, rel=2e-6, abs=1e-6)


@pytest.mark.parametrize("power", [-996, -500, -1, 1, 500, 996])  # 2**996 is about 1e300
def test_a_power_of_two_scales_the_answer_and_changes_nothing_else(power: int) -> None:
    for A, B in (apart(), meeting()):
        plain, found = separate(A, B), separate(np.ldexp(A, power), np.ldexp(B, power))
        assert found.verdict == plain.verdict
        assert found.normal.tolist() == plain.normal.tolist()
        assert (found.lower, found.upper) == (np.ldexp(plain.lower, power), np.ldexp(plain.upper, power))
        assert found.verify(np.ldexp(A, power), np.ldexp(B, power))


def test_denormal_points_are_separated_and_measured() -> None:
    A, B = np.ldexp([[0.0, 0.0], [4.0, 0.0]], -1060), np.ldexp([[2.0, 3.0], [1.0, 9.0]], -1060)
    found = separate(A, B)
    assert found.is_separable
    assert found.distance == pytest.approx(np.ldexp(3.0, -1060), rel=1e-3)
    assert found.verify(A, B)


@pytest.mark.xfail(
    strict=True, reason="Frame.unit underflows to 0 when the radius is below the least denormal, so distances are lost"
)
def test_the_least_denormal_is_a_distance() -> None:
    found = separate([[5e-324]], np.zeros((100, 1)))
    assert found.verdict == "separable"


@pytest.mark.xfail(strict=True, reason="margin * unit rounds to nearest among denormals, so lower can be rounded up")
def test_bounds_among_denormals_are_rounded_outwards() -> None:
    A, B = np.ldexp([[2.0, 2.0]], -1074), np.zeros((1, 2))
    found = separate(A, B)  # the distance is √8 of the least denormal
    assert found.lower <= np.ldexp(2.0, -1074)
    assert found.upper >= np.ldexp(3.0, -1074)


def test_points_near_the_largest_number_are_measured() -> None:
    found = separate([[1e308]], [[0.0]])
    assert found.lower <= 1e308 <= found.upper
    assert found.gap < 1e294


@pytest.mark.xfail(strict=True, reason="as_points sums each row to look for NaN, which overflows with a RuntimeWarning")
def test_rows_whose_sum_overflows_are_measured() -> None:
    assert separate([[1e308, 1e308]], [[1e308, 0.0]]).distance == pytest.approx(1e308)


@pytest.mark.xfail(
    strict=True, reason="Frame.unit is 2**1024 for a radius above 2**1023: overflow with a RuntimeWarning"
)
def test_points_further_apart_than_the_largest_number_are_apart() -> None:
    assert separate([[1.2e308]], [[-1.2e308]]).verdict == "separable"


@pytest.mark.parametrize("gap", [1.0, 1e3, 1e6])  # about 3e-9, 3e-6 and 3e-3 radii
def test_columns_of_very_different_scales_are_decided(gap: float) -> None:
    rng = np.random.default_rng(8)
    A, B = (rng.random((40, 2)) * [1e9, 1.0] for _ in range(2))
    A[:2], B[:2] = [[0, 1], [1e9, 1]], [[0, 0], [1e9, 0]]
    B[:, 1] += 1 + gap
    found = separate(A, B)
    assert found.verdict == ("separable" if gap > 1e-6 * rms_radius(np.vstack([A, B])) else "overlapping")
    assert found.lower <= gap * (1 + 1e-12)
    assert found.upper >= gap * (1 - 1e-12)
    assert found.verify(A, B)


@pytest.mark.parametrize(
    ("point", "distance"),
    [([0.5, 0.25], 0.0), ([0.0, 0.0], 0.0), ([0.5, 0.5], 0.0), ([1.0, 1.0], 0.5**0.5), ([-3, 4], 18**0.5)],
)
def test_a_point_is_in_a_hull_or_at_its_distance(point: list[float], distance: float) -> None:
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = point_to_hull(point, triangle)
    assert found.verdict == ("separable" if distance else "overlapping")
    assert found.distance == pytest.approx(distance, rel=1e-6)
    assert found.verify(triangle, [point])


def test_tau_is_relative_to_the_scale() -> None:
    A, B = [[0.0, 0.0], [1.0, 0.0]], [[0.0, 1e-3], [1.0, 1e-3]]
    radius = rms_radius(np.array(A + B))
    assert separate(A, B, tau=0.9e-3 / radius).verdict == "separable"
    assert separate(A, B, tau=1.1e-3 / radius).verdict == "overlapping"
    assert separate(A, B, tau=1e-6, scale=0.9e3).verdict == "separable"
    assert separate(A, B, tau=1e-6, scale=1.1e3).verdict == "overlapping"


# What is refused


GOOD = [[0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("A", "B", "options", "text"),
    [
        (GOOD, [[1.0]], {}, "A has 2 coordinates and B has 1; expected the same number in both"),
        ([[0.0, 1.0], [2.0, np.nan]], GOOD, {}, "A holds nan at row 1, column 1, and in 1 of 2 rows in all"),
        (GOOD, [[-np.inf, np.nan]] * 3, {}, "B holds -inf at row 0, column 0, and in 3 of 3 rows in all"),
        ([[1j, 0.0]], GOOD, {}, "A holds complex numbers; expected real numbers, one row per point"),
        (GOOD, np.array([[1, None]], dtype=object), {}, "B holds values of type object; expected real numbers"),
        ([["a", "b"]], GOOD, {}, "A holds values of type <U1; expected real numbers"),
        (GOOD, [0.0, 1.0], {}, r"B has shape \(2,\); expected two dimensions: points, and their coordinates"),
        (np.zeros((2, 2, 2)), GOOD, {}, r"A has shape \(2, 2, 2\); expected two dimensions"),
        (np.zeros((0, 2)), GOOD, {}, r"A has shape \(0, 2\); expected at least one point with at least one coordinate"),
        (GOOD, np.zeros((3, 0)), {}, r"B has shape \(3, 0\); expected at least one point"),
        (GOOD, GOOD, {"tau": 0.0}, "tau is 0.0; expected a part of the RMS radius, above 0 and below 1"),
        (GOOD, GOOD, {"tau": 1.0}, "tau is 1.0; expected a part of the RMS radius"),
        (GOOD, GOOD, {"tau": -1e-6}, "tau is -1e-06; expected a part of the RMS radius"),
        (GOOD, GOOD, {"tau": np.nan}, "tau is nan; expected a part of the RMS radius"),
        (GOOD, GOOD, {"gap": 0.0}, "gap is 0.0; expected a relative gap between 0 and 1, or None to decide only"),
        (GOOD, GOOD, {"gap": 1.0}, "gap is 1.0; expected a relative gap"),
        (GOOD, GOOD, {"scale": -1.0}, "scale is -1.0; expected the RMS radius of the space, at least 0"),
        (GOOD, GOOD, {"scale": np.inf}, "scale is inf; expected the RMS radius of the space"),
    ],
)
def test_what_cannot_be_separated_is_refused(A: Any, B: Any, options: dict[str, float], text: str) -> None:
    with pytest.raises(InputError, match=text):
        separate(A, B, **options)


@pytest.mark.parametrize(
    ("point", "text"),
    [
        ([[1.0, 2.0]], r"point has shape \(1, 2\); expected one point: a list of its coordinates"),
        (3.0, r"point has shape \(\); expected one point"),
    ],
)
def test_what_is_not_one_point_is_refused(point: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        point_to_hull(point, GOOD)


@pytest.mark.xfail(strict=True, reason="the error calls the point B, a name that the caller never used")
@pytest.mark.parametrize("point", [[1.0, 2.0, 3.0], [np.nan, 0.0]])
def test_a_bad_point_is_called_a_point(point: list[float]) -> None:
    with pytest.raises(InputError, match="point"):
        point_to_hull(point, GOOD)


@pytest.mark.xfail(
    strict=True, raises=ValueError, reason="np.asarray raises its own ValueError for rows of different lengths"
)
def test_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="A"):
        separate([[0.0, 1.0], [2.0]], GOOD)


# Near the boundary


def slabs(rng: Generator, d: int, gap: float) -> Pair:
    """Two slabs of 250 points with a hundred of them on each of the faces that are `gap` apart."""
    A, B = (rng.standard_normal((250, d)) for _ in range(2))
    for side in (A, B):
        side[50:100] = -side[:50]  # the middle of the face is the origin, on both sides
        side[:, 0] = rng.random(250)
        side[:100, 0] = 0
    return unite(rng, A * np.r_[-1.0, np.ones(d - 1)], B, gap)


def balls(rng: Generator, d: int, gap: float) -> Pair:
    """Points of two unit spheres whose poles are `gap` apart, many of them close to the poles."""
    sides = []
    for _ in range(2):
        around = rng.standard_normal((300, d - 1))
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        angle = np.r_[0.0, np.pi * rng.random(149), 10.0 ** rng.uniform(-4, 0, 150)][:, None]
        sides.append(np.c_[2 * np.sin(angle / 2) ** 2, np.sin(angle) * around])  # 1 - cos, to the last digit
    return unite(rng, sides[0] * np.r_[-1.0, np.ones(d - 1)], sides[1], gap)


def unite(rng: Generator, A: Points, B: Points, gap: float) -> Pair:
    """Scale to radius one, push apart along the first axis, turn."""
    radius = rms_radius(np.vstack([A, B]))
    turn = rotation(rng, A.shape[1])
    return A / radius @ turn, (B / radius + gap * np.eye(A.shape[1])[0]) @ turn


@pytest.mark.parametrize("d", [2, 3, 8, 25, 60])
@pytest.mark.parametrize("gap", [0.0, 1e-8, 1e-7, 1e-5, 1e-4])
@pytest.mark.parametrize("make", [slabs, balls])
def test_hulls_that_nearly_touch_are_decided_rightly(make: Any, gap: float, d: int) -> None:
    for seed in range(2):
        A, B = make(np.random.default_rng([d, seed]), d, gap)
        found = separate(A, B, scale=1.0)
        assert found.verdict == ("separable" if gap > 1e-6 else "overlapping")
        assert found.lower <= gap + 1e-13
        assert found.upper >= gap - 1e-13
        assert found.verify(A, B)


def corners(rng: Generator, d: int, gap: float) -> Pair:
    """Two clouds with a corner of each at one place, pushed `gap` apart in any direction."""
    A, B = rng.standard_normal((d + 3, d)), rng.standard_normal((d + 3, d)) + 4 / d**0.5
    away = rng.standard_normal(d)
    B[0] = A[0] + gap * away / np.linalg.norm(away)
    return A, B


@pytest.mark.parametrize("d", [2, 5, 20])
@pytest.mark.parametrize("gap", [5e-7, 9e-7, 1.1e-6, 2e-6, 1e-5])
def test_corners_that_nearly_touch_are_decided(gap: float, d: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        A, B = corners(rng, d, gap)
        found = separate(A, B, scale=1.0)
        assert found.verdict != "undecided"
        assert found.verify(A, B)


@pytest.mark.xfail(strict=True, reason="below tau = 1e-6 the normal, a difference of two near points, lacks the digits")
@pytest.mark.parametrize("tau", [1e-7, 1e-8, 1e-9])
def test_corners_that_nearly_touch_are_decided_at_a_finer_tau(tau: float) -> None:
    rng = np.random.default_rng(0)
    assert all(separate(*corners(rng, 20, 2 * tau), tau=tau, scale=1.0).verdict != "undecided" for _ in range(100))


@pytest.mark.parametrize("make", [slabs, balls])
@pytest.mark.parametrize("gap", [1e-7, 1e-5])
def test_hulls_that_nearly_touch_are_decided_though_points_repeat(make: Any, gap: float) -> None:
    rng = np.random.default_rng(9)
    A, B = make(rng, 12, gap)
    A, B = A[rng.integers(0, len(A), 700)], np.repeat(B, 3, axis=0)
    A[:250] = make(np.random.default_rng(9), 12, gap)[0][:250]
    found = separate(A, B, scale=1.0)
    assert found.verdict == ("separable" if gap > 1e-6 else "overlapping")
    assert found.verify(A, B)


def test_a_pair_that_a_soft_margin_calls_overlapping_is_separable() -> None:
    rng = np.random.default_rng(6)
    A = np.c_[-1 - rng.random(200), rng.standard_normal((200, 3))]
    B = np.c_[rng.random(200), rng.standard_normal((200, 3))]
    B[:20, 0] = 0
    A[0] = [-1e-3, 0, 0, 0]  # alone before the face of B: cheaper to give up than a margin of a thousandth
    B[0] = 0
    y = np.repeat([0, 1], 200)
    X = np.vstack([A, B]) @ rotation(rng, 4)
    assert SVC(kernel="linear", C=1e4).fit(X, y).score(X, y) < 1
    found = separate(X[:200], X[200:])
    assert found.is_separable
    assert found.distance == pytest.approx(1e-3, rel=1e-5)


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
    found = separate(A, B)
    distance = plain_distance(A, B) if len(np.unique(np.vstack(pair), axis=0)) > 1 else 0.0
    assert found.distance == pytest.approx(distance, rel=1e-5, abs=1e-6)

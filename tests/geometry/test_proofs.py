"""The proof of a verdict holds for its two hulls, and fails for anything else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from closerlook.geometry import Separation, kernels, separate
from tests.geometry.sets import overlapping_pair, separable_pair

Points = NDArray[np.float64]
Pair = tuple[Points, Points]


def left_open() -> tuple[Pair, Separation]:
    """An undecided verdict on two separable hulls, from a tolerance between the bounds."""
    A, B = separable_pair()
    result = separate(A, B, gap=0.01)
    return (A, B), replace(result, verdict="undecided", tolerance=(result.lower + result.upper) / 2)


# What holds


def test_the_proof_of_separable_hulls_holds() -> None:
    A, B = separable_pair()
    result = separate(A, B)
    assert result.verdict == "separable"
    assert result.is_separable
    assert result.verify(A, B)


def test_the_proof_of_overlapping_hulls_holds() -> None:
    A, B = overlapping_pair()
    result = separate(A, B)
    assert result.verdict == "overlapping"
    assert not result.is_separable
    assert result.verify(A, B)


def test_the_bounds_of_undecided_hulls_hold() -> None:
    pair, result = left_open()
    assert result.verify(*pair)


def test_overlapping_hulls_with_tolerance_zero_are_undecided_with_valid_bounds() -> None:
    A, B = overlapping_pair()
    result = separate(A, B, scale=0.0)
    assert result.verdict == "undecided"
    assert result.lower == 0.0
    assert 0 < result.gap < 1e-12
    assert result.verify(A, B)


def test_the_hyperplane_has_the_first_hull_above_it_and_the_second_below() -> None:
    A, B = separable_pair()
    result = separate(A, B)
    assert (A @ result.normal > result.offset).all()
    assert (B @ result.normal < result.offset).all()


def test_the_weighted_points_of_separable_hulls_are_the_distance_apart() -> None:
    A, B = separable_pair()
    result = separate(A, B)
    difference = result.weights_a @ A[result.rows_a] - result.weights_b @ B[result.rows_b]
    assert np.linalg.norm(difference) == pytest.approx(result.distance, rel=1e-6)
    assert difference / np.linalg.norm(difference) == pytest.approx(result.normal, abs=1e-4)


def test_a_proof_uses_few_points_with_convex_weights() -> None:
    for A, B in (separable_pair(), overlapping_pair()):
        result = separate(A, B)
        for rows, weights in ((result.rows_a, result.weights_a), (result.rows_b, result.weights_b)):
            assert len(set(rows.tolist())) == len(rows) == len(weights)
            assert (weights >= 0).all()
            assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert len(result.rows_a) + len(result.rows_b) <= 4 + 2


def test_a_proof_is_checked_without_the_compiled_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    proofs = [(pair, separate(*pair)) for pair in (separable_pair(), overlapping_pair())] + [left_open()]

    def refuse() -> None:
        raise AssertionError("the check called the solver")

    monkeypatch.setattr(kernels, "library", refuse)
    assert all(result.verify(*pair) for pair, result in proofs)


# What does not


def test_a_turned_normal_proves_nothing() -> None:
    A, B = separable_pair()
    result = separate(A, B)
    assert not replace(result, normal=result.normal[::-1] * [1, -1, 1, -1]).verify(A, B)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_zero_or_infinite_normal_proves_nothing(value: float) -> None:
    A, B = separable_pair()
    assert not replace(separate(A, B), normal=np.full(4, value)).verify(A, B)


def test_a_normal_the_wrong_way_round_proves_nothing() -> None:
    A, B = separable_pair()
    result = separate(A, B)
    assert not replace(result, normal=-result.normal).verify(A, B)
    assert not result.verify(B, A)


@pytest.mark.parametrize("factor", [1e-150, 1e-3, 7.0, 1e150])
def test_a_longer_or_shorter_normal_proves_no_more(factor: float) -> None:
    A, B = separable_pair()
    result = separate(A, B)
    scaled = replace(result, normal=result.normal * factor)
    assert replace(scaled, lower=result.lower * (1 - 1e-9)).verify(A, B)
    assert not replace(scaled, lower=result.lower * 1.0001).verify(A, B)


def test_a_normal_whose_square_is_lost_proves_no_more() -> None:
    A, B = [[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 2.0]]
    result = separate(A, B)
    assert not replace(result, normal=result.normal * 1e-161, lower=result.lower * 1.001).verify(A, B)


def test_a_lower_bound_that_is_too_high_is_refused() -> None:
    A, B = separable_pair()
    result = separate(A, B)
    assert not replace(result, lower=result.upper * (1 + 1e-9)).verify(A, B)
    pair, undecided = left_open()
    assert not replace(undecided, lower=undecided.upper * (1 + 1e-9)).verify(*pair)


def test_an_upper_bound_that_is_too_low_is_refused_where_undecided() -> None:
    pair, result = left_open()
    assert not replace(result, upper=result.lower / 2).verify(*pair)


def test_an_upper_bound_that_is_too_low_is_refused_where_separable() -> None:
    A, B = separable_pair()
    result = separate(A, B)
    assert not replace(result, upper=result.lower / 2).verify(A, B)


@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_a_wrong_bound_is_refused_where_overlapping(bound: str) -> None:
    A, B = overlapping_pair()
    result = separate(A, B)
    wrong = result.tolerance / 2 if bound == "lower" else result.upper / 1e6
    assert not replace(result, **{bound: wrong}).verify(A, B)


def test_wrong_weights_are_refused_where_separable() -> None:
    A, B = separable_pair()
    result = separate(A, B)
    assert not replace(result, weights_a=result.weights_a * 3).verify(A, B)


def test_a_lower_bound_within_the_tolerance_does_not_prove_separable() -> None:
    A, B = separable_pair()
    result = separate(A, B)
    assert not replace(result, tolerance=result.lower * 1.01).verify(A, B)


def test_weights_that_do_not_sum_to_one_are_refused() -> None:
    A, B = overlapping_pair()
    result = separate(A, B)
    doubled = replace(result, weights_a=2 * result.weights_a, weights_b=2 * result.weights_b)
    assert not doubled.verify(A, B)
    assert not replace(result, weights_b=result.weights_b * (1 + 1e-4)).verify(A, B)


def test_negative_weights_are_refused() -> None:
    A, B = np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]])
    result = separate(A, B)
    assert result.verify(A, B)
    outside = replace(result, rows_a=np.array([0, 1]), weights_a=np.array([-0.5, 1.5]), weights_b=np.array([1.0]))
    assert not replace(outside, rows_b=np.array([1])).verify(A, B)
    nearly = replace(outside, rows_b=np.array([0]), weights_a=np.array([-1e-12, 1 + 1e-12]))
    assert not nearly.verify(A, B)


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_nan_weights_are_refused(side: str) -> None:
    A, B = overlapping_pair()
    result = separate(A, B)
    weights = getattr(result, f"weights_{side}") * np.nan
    assert not replace(result, **{f"weights_{side}": weights}).verify(A, B)


@pytest.mark.parametrize("bound", ["lower", "upper"])
@pytest.mark.parametrize("pair", [separable_pair(), overlapping_pair()], ids=["separable", "overlapping"])
def test_a_nan_bound_is_refused(pair: Pair, bound: str) -> None:
    assert not replace(separate(*pair), **{bound: np.nan}).verify(*pair)


@pytest.mark.parametrize("side", ["a", "b"])
def test_weights_on_other_rows_are_refused(side: str) -> None:
    A, B = overlapping_pair()
    result = separate(A, B)
    rows = getattr(result, f"rows_{side}")
    for wrong in (rows[::-1], rows + 1000, rows - 1000, rows[:0]):
        weights = getattr(result, f"weights_{side}")[: len(wrong)]
        assert not replace(result, **{f"rows_{side}": wrong, f"weights_{side}": weights}).verify(A, B)


@pytest.mark.parametrize("pair", [separable_pair(), overlapping_pair()], ids=["separable", "overlapping"])
def test_a_proof_does_not_hold_for_other_points(pair: Pair) -> None:
    A, B = pair
    result = separate(A, B)
    rng = np.random.default_rng(0)
    assert not result.verify(A + 10 * rng.standard_normal(A.shape), B)
    assert not result.verify(A, B - 9.0 if result.is_separable else B + 9.0)
    assert not result.verify(A[:, :3], B[:, :3])
    assert not result.verify(A, B[:, :3])


def test_one_point_across_the_hyperplane_undoes_the_proof() -> None:
    A, B = separable_pair()
    result = separate(A, B)
    moved = A.copy()
    moved[17] -= result.normal * (moved[17] @ result.normal - result.offset + result.lower / 2 + 1e-6)
    assert not result.verify(moved, B)

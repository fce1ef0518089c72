"""The proof of a verdict on two hulls: it holds for them, and for nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from closerlook.geometry import Separation, kernels, separate
from tests.geometry.sets import apart, meeting

Points = NDArray[np.float64]
Pair = tuple[Points, Points]


def left_open() -> tuple[Pair, Separation]:
    """An undecided verdict: what is certain of two hulls that are apart, under a tolerance inside the interval."""
    A, B = apart()
    found = separate(A, B, gap=0.01)
    return (A, B), replace(found, verdict="undecided", tolerance=(found.lower + found.upper) / 2)


# What holds


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


def test_overlapping_hulls_with_tolerance_zero_are_undecided_with_valid_bounds() -> None:
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


# What does not


def test_a_turned_normal_proves_nothing() -> None:
    A, B = apart()
    found = separate(A, B)
    assert not replace(found, normal=found.normal[::-1] * [1, -1, 1, -1]).verify(A, B)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_zero_or_infinite_normal_proves_nothing(value: float) -> None:
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


def test_an_upper_bound_that_is_too_low_is_refused_where_separable() -> None:
    A, B = apart()
    found = separate(A, B)
    assert not replace(found, upper=found.lower / 2).verify(A, B)


@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_a_wrong_bound_is_refused_where_overlapping(bound: str) -> None:
    A, B = meeting()
    found = separate(A, B)
    wrong = found.tolerance / 2 if bound == "lower" else found.upper / 1e6
    assert not replace(found, **{bound: wrong}).verify(A, B)


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


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_nan_weights_are_refused(side: str) -> None:
    A, B = meeting()
    found = separate(A, B)
    weights = getattr(found, f"weights_{side}") * np.nan
    assert not replace(found, **{f"weights_{side}": weights}).verify(A, B)


@pytest.mark.parametrize("bound", ["lower", "upper"])
@pytest.mark.parametrize("pair", [apart(), meeting()], ids=["separable", "overlapping"])
def test_a_nan_bound_is_refused(pair: Pair, bound: str) -> None:
    assert not replace(separate(*pair), **{bound: np.nan}).verify(*pair)


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

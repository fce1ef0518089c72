"""Spatial similarity correlates label distances, with a valid p-value and interval, and lists the excluded labels."""

import itertools
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from closerlook.geometry import similarity
from closerlook.geometry.similarity import spatial_similarity

Matrix = NDArray[np.float64]
Pair = tuple[list[str], Matrix]


@dataclass(frozen=True)
class Distances:
    """A minimal table of label distances."""

    labels: tuple[str, ...]
    values: Matrix
    separable: bool


def names(m: int) -> list[str]:
    return [f"L{i}" for i in range(m)]


def between_points(m: int, seed: int, noise: float = 0.0) -> Pair:
    """The distances of m random points; with `noise`, of the same points moved a little."""
    points = np.random.default_rng(seed).normal(size=(m, 4))
    points = points + noise * np.random.default_rng(seed + 1).normal(size=points.shape)
    return names(m), np.linalg.norm(points[:, None] - points[None], axis=2)


def ranked(m: int, seed: int) -> Pair:
    """Distances of few different values, so that many tie."""
    upper = np.triu(np.random.default_rng(seed).integers(1, 5, size=(m, m)), 1)
    return names(m), (upper + upper.T).astype(float)


def one_far(m: int, seed: int) -> Pair:
    """Labels at equal distances but for the last, so that draws without it are constant."""
    matrix = 0.1 * (1 - np.eye(m))
    matrix[-1, :-1] = matrix[:-1, -1] = np.random.default_rng(seed).random(m - 1) + 0.2
    return names(m), matrix


def upper(matrix: Matrix) -> Matrix:
    return matrix[np.triu_indices(len(matrix), 1)]


def reordered(table: Pair, order: list[int]) -> Pair:
    return [table[0][i] for i in order], table[1][np.ix_(order, order)]


def with_nan(table: Pair, label: int) -> Pair:
    matrix = table[1].copy()
    matrix[label, :] = matrix[:, label] = np.nan
    return table[0], matrix


def quick(a: Any, b: Any, **options: Any) -> similarity.Similarity:
    return spatial_similarity(a, b, **({"permutations": 0, "resamples": 0} | options))


# --- The two correlations --------------------------------------------------------------------------------------------


def test_identical_tables_have_similarity_1() -> None:
    result = spatial_similarity(between_points(8, 0), between_points(8, 0), permutations=99, resamples=50)
    assert result.pearson == pytest.approx(1, abs=1e-12)
    assert result.spearman == pytest.approx(1, abs=1e-12)
    assert result.pearson_interval == pytest.approx((1, 1), abs=1e-12)
    assert result.spearman_interval == pytest.approx((1, 1), abs=1e-12)


def test_opposite_tables_have_similarity_minus_1() -> None:
    labels, matrix = between_points(6, 0)
    mirrored = (matrix.max() + 1 - matrix) * (1 - np.eye(6))
    assert quick((labels, matrix), (labels, mirrored)).pearson == pytest.approx(-1, abs=1e-12)
    assert quick((labels, matrix), (labels, mirrored)).spearman == pytest.approx(-1, abs=1e-12)


def test_a_case_worked_by_hand() -> None:
    a = (["x", "y", "z"], [[0, 1, 2], [1, 0, 3], [2, 3, 0]])
    b = (["x", "y", "z"], [[0, 1, 3], [1, 0, 2], [3, 2, 0]])
    assert quick(a, b).pearson == pytest.approx(0.5)


def test_pearson_is_that_of_numpy() -> None:
    a, b = between_points(9, 0), between_points(9, 1)
    assert quick(a, b).pearson == pytest.approx(np.corrcoef(upper(a[1]), upper(b[1]))[0, 1], abs=1e-10)


@pytest.mark.parametrize("make", [between_points, ranked])
def test_spearman_is_that_of_scipy_with_and_without_ties(make: Any) -> None:
    a, b = make(9, 0), make(9, 1)
    assert quick(a, b).spearman == pytest.approx(scipy.stats.spearmanr(upper(a[1]), upper(b[1])).statistic, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 7.0, 1e300])
def test_the_scale_of_a_side_does_not_matter(scale: float) -> None:
    a, b = between_points(7, 0), between_points(7, 1)
    result, expected = quick(a, (b[0], scale * b[1])), quick(a, b)
    assert (result.pearson, result.spearman) == pytest.approx((expected.pearson, expected.spearman), abs=1e-10)


def test_a_shift_of_all_distances_of_a_side_does_not_matter() -> None:
    a, b = between_points(7, 0), between_points(7, 1)
    result, expected = quick(a, (b[0], b[1] + 3 * (1 - np.eye(7)))), quick(a, b)
    assert (result.pearson, result.spearman) == pytest.approx((expected.pearson, expected.spearman), abs=1e-10)


def test_the_order_of_labels_does_not_matter() -> None:
    a, b = between_points(6, 0), between_points(6, 1)
    order = [3, 0, 5, 1, 4, 2]
    for result in (quick(a, reordered(b, order)), quick(reordered(a, order), b)):
        assert result.pearson == pytest.approx(quick(a, b).pearson, abs=1e-12)
        assert result.spearman == pytest.approx(quick(a, b).spearman, abs=1e-12)


def test_labels_renamed_on_both_sides_give_the_same() -> None:
    a, b = between_points(6, 0), between_points(6, 1)
    assert quick((range(6), a[1]), (np.arange(6), b[1])).pearson == quick(a, b).pearson


def test_values_that_differ_by_rounding_are_ties() -> None:
    labels, matrix = ranked(8, 0)
    noisy = matrix * (1 + 1e-15 * np.triu(np.random.default_rng(0).normal(size=(8, 8)), 1))
    noisy = np.triu(noisy, 1) + np.triu(noisy, 1).T
    b = between_points(8, 1)
    assert quick((labels, noisy), b).spearman == quick((labels, matrix), b).spearman


symmetric = arrays(np.float64, (5, 5), elements=st.floats(0, 1e6)).map(lambda x: np.triu(x, 1) + np.triu(x, 1).T)


@settings(max_examples=100, deadline=None)
@given(symmetric, symmetric)
def test_similarity_is_symmetric(a: Matrix, b: Matrix) -> None:
    result, back = quick((names(5), a), (names(5), b)), quick((names(5), b), (names(5), a))
    np.testing.assert_equal((result.pearson, result.spearman), (back.pearson, back.spearman))


@settings(max_examples=100, deadline=None)
@given(symmetric, symmetric)
def test_similarity_lies_between_minus_1_and_1_or_is_nan(a: Matrix, b: Matrix) -> None:
    result = spatial_similarity((names(5), a), (names(5), b), permutations=120, resamples=20)
    for value in (result.pearson, result.spearman, *result.pearson_interval, *result.spearman_interval):
        assert math.isnan(value) or -1 <= value <= 1
    assert math.isnan(result.p_value) == math.isnan(result.pearson) == math.isnan(result.spearman)


# --- The labels ------------------------------------------------------------------------------------------------------


def test_labels_of_one_side_are_excluded_and_listed() -> None:
    a = reordered(between_points(8, 0), [6, 4, 3, 2, 1, 0])
    b = reordered(between_points(8, 1), [0, 1, 2, 3, 5, 7])
    result = quick(a, b)
    assert result.labels == ("L3", "L2", "L1", "L0")
    assert (result.excluded_a, result.excluded_b, result.undefined) == (("L6", "L4"), ("L5", "L7"), ())
    assert result.n_labels == 4
    both = [0, 1, 2, 3]
    assert result.pearson == pytest.approx(quick(reordered(a, [5, 4, 3, 2]), reordered(b, both)).pearson)


def test_labels_without_distances_on_either_side_are_excluded_and_listed() -> None:
    a, b = with_nan(between_points(7, 0), 5), with_nan(between_points(7, 1), 2)
    result = quick(a, b)
    rest = [0, 1, 3, 4, 6]
    assert (result.undefined, result.excluded_a, result.excluded_b) == (("L2", "L5"), (), ())
    assert result.labels == tuple(f"L{i}" for i in rest)
    assert result.pearson == pytest.approx(quick(reordered(a, rest), reordered(b, rest)).pearson)


def test_a_label_without_distances_may_keep_a_zero_on_the_diagonal() -> None:
    labels, matrix = with_nan(between_points(6, 0), 5)
    matrix[5, 5] = 0
    assert quick((labels, matrix), between_points(6, 1)).undefined == ("L5",)


def test_a_label_of_one_side_without_distances_is_listed_as_of_one_side() -> None:
    result = quick(with_nan(between_points(6, 0), 5), between_points(5, 1))
    assert (result.excluded_a, result.undefined) == (("L5",), ())


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [(True, True, True), (True, False, False), (False, True, False), (False, None, False), (None, True, None)],
)
def test_the_value_is_marked_unless_both_sides_are_separable(a: bool, b: bool, both: bool) -> None:
    def table(separable: bool | None) -> Any:
        labels, matrix = between_points(5, 0)
        return (labels, matrix) if separable is None else Distances(tuple(labels), matrix, separable)

    assert quick(table(a), table(b)).separable is both


# --- The Mantel test -------------------------------------------------------------------------------------------------


def mantel_by_loop(a: Matrix, b: Matrix, orders: Any) -> float:
    r = np.corrcoef(upper(a), upper(b))[0, 1]
    at_least = [np.corrcoef(upper(a), upper(b[np.ix_(order, order)]))[0, 1] >= r - 1e-12 for order in orders]
    return (1 + sum(at_least)) / (1 + len(at_least))


@pytest.mark.parametrize("m", [4, 5])
@pytest.mark.parametrize("make", [between_points, ranked])
def test_few_labels_are_permuted_in_every_way(m: int, make: Any) -> None:
    a, b = make(m, 0), make(m, 3)
    result = spatial_similarity(a, b, permutations=200, resamples=0)
    others = list(itertools.permutations(range(m)))[1:]
    assert result.exact
    assert result.permutations == len(others) == math.factorial(m) - 1
    assert result.p_value == pytest.approx(mantel_by_loop(a[1], b[1], others), abs=1e-15)


@pytest.mark.parametrize("chunk", [1, 50, 1 << 20])
def test_random_permutations_agree_with_a_loop_whatever_the_chunk(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "CHUNK", chunk)
    a, b = between_points(7, 0), between_points(7, 1, noise=1.0)
    result = spatial_similarity(a, b, permutations=150, resamples=0, seed=5)
    orders = np.random.default_rng(5).permuted(np.tile(np.arange(7), (150, 1)), axis=1)
    assert not result.exact
    assert result.permutations == 150
    assert result.p_value == mantel_by_loop(a[1], b[1], orders)


@pytest.mark.parametrize("chunk", [1, 100])
def test_every_order_is_tried_whatever_the_chunk(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = spatial_similarity(between_points(5, 0), between_points(5, 1), resamples=0).p_value
    monkeypatch.setattr(similarity, "CHUNK", chunk)
    assert spatial_similarity(between_points(5, 0), between_points(5, 1), resamples=0).p_value == expected


def test_permutations_are_enumerated_only_where_that_is_no_more_work() -> None:
    a, b = between_points(5, 0), between_points(5, 1)
    assert spatial_similarity(a, b, permutations=120, resamples=0).exact
    assert not spatial_similarity(a, b, permutations=119, resamples=0).exact


def test_identical_tables_have_the_smallest_p_value() -> None:
    table = between_points(10, 0)
    assert spatial_similarity(table, table, permutations=999, resamples=0).p_value == 1 / 1000


def test_a_relabelling_that_changes_nothing_counts_as_at_least_as_high() -> None:
    square = (names(4), np.array([[0, 1, 9, 1], [1, 0, 1, 9], [9, 1, 0, 1], [1, 9, 1, 0]]) / 7)
    assert spatial_similarity(square, square, resamples=0).p_value == 8 / 24  # the symmetries of the square


def test_p_values_of_unrelated_tables_are_spread_evenly() -> None:
    def p_value(seed: int) -> float:
        return quick(between_points(8, seed), between_points(8, seed + 1000), permutations=99).p_value

    p = [p_value(seed) for seed in range(200)]
    assert 0.4 < np.mean(p) < 0.6
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.01


def test_unlike_tables_have_a_p_value_near_1() -> None:
    labels, matrix = between_points(8, 0)
    mirrored = (matrix.max() + 1 - matrix) * (1 - np.eye(8))
    assert spatial_similarity((labels, matrix), (labels, mirrored), permutations=199, resamples=0).p_value == 1


# --- The bootstrap ---------------------------------------------------------------------------------------------------


def bootstrap_by_loop(a: Matrix, b: Matrix, draws: Any, confidence: float) -> tuple[list[float], list[float]]:
    result = []
    for draw in draws:
        pairs = [(draw[i], draw[j]) for i in range(len(draw)) for j in range(i) if draw[i] != draw[j]]
        x, y = [a[pair] for pair in pairs], [b[pair] for pair in pairs]
        if len(set(x)) > 1 and len(set(y)) > 1:
            result.append((np.corrcoef(x, y)[0, 1], scipy.stats.spearmanr(x, y).statistic))
    low, high = np.quantile(result, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return [low[0], high[0]], [low[1], high[1]]


@pytest.mark.parametrize("chunk", [1, 300, 1 << 20])
@pytest.mark.parametrize("make", [between_points, ranked, one_far])
def test_intervals_agree_with_a_loop_whatever_the_chunk(chunk: int, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "CHUNK", chunk)
    a, b = make(5, 0), make(5, 2)
    result = spatial_similarity(a, b, permutations=0, resamples=60, confidence=0.8, seed=3)
    draws = np.random.default_rng(3).integers(5, size=(60, 5))
    pearson, spearman = bootstrap_by_loop(a[1], b[1], draws, 0.8)
    assert result.pearson_interval == pytest.approx(pearson, abs=1e-10)
    assert result.spearman_interval == pytest.approx(spearman, abs=1e-10)


def test_draws_of_labels_at_equal_distances_on_either_side_are_skipped() -> None:
    even, b = one_far(15, 0), between_points(15, 1)  # enough pairs for rounding to hide that a draw is constant
    draws = np.random.default_rng(0).integers(15, size=(200, 15))
    for left, right in ((even, b), (b, even)):
        pearson, spearman = bootstrap_by_loop(left[1], right[1], draws, 0.95)
        result = quick(left, right, resamples=200)
        assert result.pearson_interval == pytest.approx(pearson, abs=1e-10)
        assert result.spearman_interval == pytest.approx(spearman, abs=1e-10)


def test_the_interval_of_a_noisy_copy_contains_its_similarity() -> None:
    result = spatial_similarity(between_points(15, 0), between_points(15, 0, noise=0.5), permutations=0)
    assert 0 < result.pearson_interval[0] < result.pearson < result.pearson_interval[1] < 1
    assert 0 < result.spearman_interval[0] < result.spearman < result.spearman_interval[1] < 1


def test_more_confidence_makes_a_wider_interval() -> None:
    a, b = between_points(10, 0), between_points(10, 1)
    wide = quick(a, b, resamples=300, confidence=0.99).pearson_interval
    narrow = quick(a, b, resamples=300, confidence=0.5).pearson_interval
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_the_interval_is_nan_where_fewer_than_half_of_the_draws_have_a_correlation() -> None:
    result = spatial_similarity(between_points(3, 0), between_points(3, 1))  # all three drawn: 6 times in 27
    assert np.isnan([*result.pearson_interval, *result.spearman_interval]).all()
    assert not math.isnan(result.pearson)


# --- What can go otherwise -------------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_result_again() -> None:
    a, b = between_points(9, 0), between_points(9, 1)
    first = spatial_similarity(a, b, permutations=99, resamples=99, seed=4)
    assert first == spatial_similarity(a, b, permutations=99, resamples=99, seed=4)
    assert first != spatial_similarity(a, b, permutations=99, resamples=99, seed=5)


def test_numpys_global_seed_is_left_alone() -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index]
    spatial_similarity(between_points(9, 0), between_points(9, 1), permutations=9, resamples=9)
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]


def test_the_tables_are_not_modified() -> None:
    a, b = between_points(5, 0), with_nan(between_points(5, 1), 0)
    copies = a[1].copy(), b[1].copy()
    spatial_similarity(a, b, permutations=9, resamples=9)
    np.testing.assert_array_equal(a[1], copies[0])
    np.testing.assert_array_equal(b[1], copies[1])


@pytest.mark.parametrize("distance", [0.0, 0.1, 1e300])
@pytest.mark.parametrize("m", [5, 12])
def test_equal_distances_on_a_side_have_no_similarity(distance: float, m: int) -> None:
    even = (names(m), distance * (1 - np.eye(m)))
    for result in (spatial_similarity(even, between_points(m, 0)), spatial_similarity(between_points(m, 0), even)):
        values = [result.pearson, result.spearman, result.p_value, *result.pearson_interval, *result.spearman_interval]
        assert np.isnan(values).all()


def test_equal_distances_up_to_rounding_have_no_similarity() -> None:
    even = 1 - np.eye(6)
    even[0, 1] = even[1, 0] = 1 + 1e-15
    assert math.isnan(quick((names(6), even), between_points(6, 0)).pearson)


def test_the_null_is_that_of_all_relabellings_but_the_true_one() -> None:
    (labels, left), (_, right) = between_points(4, 0), between_points(4, 1)
    i, j = np.triu_indices(4, 1)
    orders = [list(order) for order in itertools.permutations(range(4))][1:]
    expected = [np.corrcoef(left[i, j], right[np.ix_(order, order)][i, j])[0, 1] for order in orders]
    result = spatial_similarity((labels, left), (labels, right))
    assert result.null_mean == pytest.approx(np.mean(expected), abs=1e-12)
    assert result.null_deviation == pytest.approx(np.std(expected, ddof=1), abs=1e-12)


def test_zero_permutations_or_resamples_skips_them() -> None:
    result = spatial_similarity(between_points(5, 0), between_points(5, 1), permutations=0, resamples=0)
    assert np.isnan(
        [result.p_value, result.null_mean, result.null_deviation, *result.pearson_interval, *result.spearman_interval]
    ).all()
    assert (result.permutations, result.resamples, result.exact) == (0, 0, False)


def test_asymmetry_from_float32_is_averaged() -> None:
    labels, matrix = between_points(6, 0)
    skewed = matrix * (1 + 1e-7 * np.random.default_rng(0).random((6, 6)))
    backwards = reordered((labels, skewed), [5, 4, 3, 2, 1, 0])
    result, expected = quick((labels, skewed), between_points(6, 1)), quick(backwards, between_points(6, 1))
    assert result.pearson == pytest.approx(expected.pearson, abs=1e-12)


def test_to_dict_is_plain_json_with_nan_as_null() -> None:
    a, b = between_points(3, 0), between_points(4, 1)
    a, b = (np.arange(3), a[1]), (np.arange(4), b[1])  # type: ignore[assignment]
    result = spatial_similarity(a, b)
    written = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert written.pop("pearson") == result.pearson
    assert written.pop("spearman") == result.spearman
    assert written.pop("p_value") == result.p_value
    assert written.pop("null_mean") == result.null_mean
    assert written.pop("null_deviation") == result.null_deviation
    assert written == {
        "pearson_interval": [None, None],
        "spearman_interval": [None, None],
        "exact": True,
        "n_labels": 3,
        "labels": [0, 1, 2],
        "excluded_a": [],
        "excluded_b": [3],
        "undefined": [],
        "separable": None,
        "permutations": 5,
        "resamples": 2000,
        "confidence": 0.95,
    }

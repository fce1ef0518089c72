"""Collapse, dimension and isotropy of examples worked out by hand."""

import math

import numpy as np
import pytest

from closerlook.errors import InputError
from closerlook.geometry import pairs
from closerlook.geometry.shape import (
    collapse,
    isotropy,
    participation_ratio,
    self_duality,
    two_nn,
)


def simplex(m: int, d: int, seed: int = 0) -> np.ndarray:
    """(m, d) the corners of a randomly rotated simplex ETF."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    corners = np.zeros((m, d))
    corners[:, :m] = np.eye(m) - 1 / m
    return corners @ turn


# ---- collapse ----


def test_a_collapsed_space_has_no_spread_and_its_means_are_a_simplex() -> None:
    X, y = simplex(5, 9).repeat(6, axis=0) + 3.0, np.arange(5).repeat(6)
    result = collapse(X, y)
    assert result.nc1 == pytest.approx(0, abs=1e-12)
    assert result.cdnv == pytest.approx(0, abs=1e-12)
    assert result.nc2_norm == pytest.approx(0, abs=1e-9)
    assert result.nc2_angle == pytest.approx(0, abs=1e-9)
    assert result.nc3 == pytest.approx(0, abs=1e-6)
    assert result.nc4 == 1.0


def unbalanced(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of four labels of different sizes, their labels, and the mean of each label."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2, 3], [3, 5, 9, 4])
    X = rng.normal(size=(len(y), 6)) + 2.0 * rng.normal(size=(4, 6))[y] + 5.0
    return X, y, np.stack([X[y == label].mean(axis=0) for label in range(4)])


def test_a_head_whose_weights_are_the_label_means_has_nc3_0() -> None:
    X, y, means = unbalanced()
    assert self_duality(X, y, means) == pytest.approx(0, abs=1e-12)
    assert self_duality(X, y, 0.1 * (means - means.mean(axis=0))) == pytest.approx(0, abs=1e-12)


def test_a_vector_added_to_all_weights_changes_no_prediction_and_no_nc3() -> None:
    X, y, means = unbalanced()
    weights = np.random.default_rng(1).normal(size=means.shape)
    assert self_duality(X, y, weights + 7.0) == pytest.approx(self_duality(X, y, weights))


def test_nc3_of_a_head_follows_its_cosine_with_the_means() -> None:
    """Two matrices of length 1 with cosine c are √(2 - 2c) apart: opposite ones 2, and perpendicular ones √2."""
    X, y, means = unbalanced()
    arms = means - means.mean(axis=0)
    assert self_duality(X, y, -means) == pytest.approx(2)
    other = np.random.default_rng(2).normal(size=means.shape)
    other -= other.mean(axis=0)
    other -= arms * (other * arms).sum() / (arms**2).sum()
    assert self_duality(X, y, other) == pytest.approx(math.sqrt(2))


def test_nc3_of_the_least_squares_head_is_that_of_collapse() -> None:
    X, y, _ = unbalanced()
    target = np.eye(4)[y]
    weights = np.linalg.lstsq(X - X.mean(axis=0), target - target.mean(axis=0), rcond=None)[0].T
    assert self_duality(X, y, weights) == pytest.approx(collapse(X, y).nc3)


def test_nc3_of_a_head_without_differences_is_undefined() -> None:
    X, y, means = unbalanced()
    assert math.isnan(self_duality(X, y, np.ones_like(means)))
    assert math.isnan(self_duality(np.ones_like(X), y, means))


@pytest.mark.parametrize(
    ("weights", "message"),
    [(np.ones((3, 6)), r"weights have shape \(3, 6\); expected \(4, 6\)"), (np.full((4, 6), np.nan), "contain NaN")],
)
def test_weights_that_do_not_fit_are_refused(weights: np.ndarray, message: str) -> None:
    X, y, _ = unbalanced()
    with pytest.raises(InputError, match=message):
        self_duality(X, y, weights)


def test_spread_within_labels_is_measured_against_that_of_the_means() -> None:
    """Two labels at -1 and 1, each with points half a unit to either side: W = 1/4, B = 1, so W / B over 2 labels."""
    X = np.array([[-1.5], [-0.5], [0.5], [1.5]])
    result = collapse(X, [0, 0, 1, 1])
    assert result.nc1 == pytest.approx(0.25 / 2)
    assert result.cdnv == pytest.approx(0.25 / 4)


def test_collapse_does_not_change_by_turning_moving_and_scaling() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, 200)
    X = rng.normal(size=(200, 6)) + 2 * rng.normal(size=(4, 6))[y]
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    one, other = collapse(X, y).to_dict(), collapse(5 * X @ turn + 7, y).to_dict()
    for name, value in one.items():
        assert other[name] == pytest.approx(value, rel=1e-5), name


def test_means_of_unequal_length_and_angle_show() -> None:
    X = np.array([[4.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]]).repeat(3, axis=0)
    result = collapse(X, np.arange(3).repeat(3))
    assert result.nc2_norm > 0.2
    assert result.nc2_angle > 0.2


def test_labels_around_one_mean_have_not_collapsed() -> None:
    result = collapse([[1.0], [-1.0], [1.0], [-1.0]], list("aabb"))
    assert (result.nc1, result.cdnv) == (math.inf, math.inf)
    assert np.isnan([result.nc2_norm, result.nc2_angle, result.nc3]).all()


@pytest.mark.parametrize("unit", [1e-170, 1e100, 1e300])
def test_the_unit_of_the_coordinates_does_not_matter(unit: float) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 5)) + np.eye(3, 5)[y]
    for measure in (lambda Z: collapse(Z, y).to_dict(), lambda Z: isotropy(Z).to_dict(), participation_ratio, two_nn):
        assert measure(X * unit) == pytest.approx(measure(X), rel=1e-9)


def test_one_label_cannot_collapse() -> None:
    with pytest.raises(InputError, match="y has one label, 'a'; expected at least two"):
        collapse([[0.0], [1.0]], ["a", "a"])


@pytest.mark.parametrize("value", [1.0, 0.1])
def test_a_space_of_one_place_has_no_shape(value: float) -> None:
    """The mean of many 0.1 is not quite 0.1."""
    X, y = np.full((7, 3), value), [0, 1, 0, 1, 0, 1, 2]
    assert all(math.isnan(one) for one in collapse(X, y).to_dict().values())
    assert participation_ratio(X) == 0.0
    assert math.isnan(two_nn(X))
    assert math.isnan(isotropy(X).iso_score)


# ---- dimension ----


@pytest.mark.parametrize("d", [1, 3, 10])
def test_a_gaussian_fills_all_its_dimensions(d: int) -> None:
    X = np.random.default_rng(0).normal(size=(4000, d))
    assert participation_ratio(X) == pytest.approx(d, rel=0.03)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_two_nn_finds_the_dimension_of_a_manifold_in_a_larger_space(d: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, d)) @ np.linalg.qr(rng.normal(size=(20, d)))[0].T
    assert two_nn(X) == pytest.approx(d, rel=0.1)


def test_two_nn_counts_a_place_once() -> None:
    X = np.random.default_rng(0).uniform(size=(1000, 3))
    assert two_nn(np.concatenate([X, X, X[:100]])) == two_nn(X)


def test_two_nn_of_a_circle_is_one() -> None:
    angle = np.random.default_rng(0).uniform(0, 2 * math.pi, 2000)
    assert two_nn(np.column_stack([np.cos(angle), np.sin(angle)])) == pytest.approx(1, rel=0.1)


def test_dimension_of_too_few_places_is_not_a_number() -> None:
    assert math.isnan(two_nn([[0.0], [1.0], [1.0], [2.0]]))
    assert participation_ratio([[1.0, 2.0], [1.0, 2.0]]) == 0.0


def test_two_nn_distinguishes_rows_that_differ_in_the_last_digits() -> None:
    """Each point has a copy at distance 1e-9: the ratio of the two distances is large, but finite."""
    X = np.random.default_rng(0).uniform(size=(500, 3)) + 1000
    moved = X + np.array([1e-9, 0, 0])
    ratio = np.sort(np.sqrt(pairs.nearest_rows(np.concatenate([X, moved]), 2)[1]), axis=1)
    distance = np.linalg.norm(X - moved, axis=1).mean()
    assert ratio[:, 0].mean() / ratio[:, 1].mean() == pytest.approx(distance / 0.07, rel=0.3)
    assert 0 < two_nn(np.concatenate([X, moved])) < 1


def test_zeros_of_both_signs_are_one_place() -> None:
    X = np.random.default_rng(0).uniform(size=(200, 3))
    X[:, 0] = 0.0
    assert two_nn(np.concatenate([X, X * [-1.0, 1.0, 1.0]])) == two_nn(X)


def test_strips_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(300, 5))
    whole = two_nn(X)
    monkeypatch.setattr("closerlook.geometry.pairs.BLOCK_BYTES", 4 * 300 * 7)
    assert two_nn(X, threads=1) == two_nn(X, threads=3) == whole


# ---- isotropy ----


def test_iso_score_of_equal_variances_is_one_and_of_a_line_zero() -> None:
    assert isotropy(np.vstack([np.eye(8), -np.eye(8)])).iso_score == pytest.approx(1.0)
    line = np.outer(np.arange(5.0), [1.0, 2.0, 3.0])
    assert isotropy(line).iso_score == pytest.approx(0.0, abs=1e-9)


def test_half_of_the_dimensions_used_evenly() -> None:
    """Rudman et al.: k of n dimensions used evenly score (k - 1) / (n - 1)."""
    X = np.zeros((8, 8))
    X[:4, :4], X[4:, :4] = np.eye(4), -np.eye(4)
    assert isotropy(X).iso_score == pytest.approx(3 / 7)


def test_mean_cosine_is_that_of_all_pairs() -> None:
    X = np.random.default_rng(0).normal(size=(40, 6)) + 1
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(40, 1)]
    assert isotropy(X).mean_cosine == pytest.approx(cosines.mean())


def test_a_dimension_far_from_the_others_is_an_outlier() -> None:
    X = np.random.default_rng(0).normal(size=(500, 50))
    assert isotropy(X).outlier_dimensions == 0.0
    X[:, 7] += 30
    assert isotropy(X).outlier_dimensions == pytest.approx(1 / 50)

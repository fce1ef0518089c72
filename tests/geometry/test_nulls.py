"""Shuffled labels, Cover's probability, separability."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from closerlook.geometry.clusters import cluster
from closerlook.geometry.nulls import Null, cluster_nulls, cover_probability, separability
from closerlook.geometry.overlap import largest_cluster_shares, overlaps


def separable(X: np.ndarray, signs: np.ndarray) -> bool:
    """Whether a hyperplane separates the signs, by a linear program."""
    A = -signs[:, None] * np.column_stack([X, np.ones(len(X))])
    return bool(linprog(np.zeros(X.shape[1] + 1), A_ub=A, b_ub=-np.ones(len(X)), bounds=(None, None)).success)


@pytest.mark.parametrize(("n", "d"), [(4, 1), (5, 2), (6, 2), (6, 3)])
def test_cover_counts_the_labellings_that_separate(n: int, d: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, d))
    n_separable = sum(separable(X, np.array(signs)) for signs in product([-1, 1], repeat=n))
    assert cover_probability(n, d) == pytest.approx(n_separable / 2**n)


def test_cover_at_two_points_more_than_twice_the_dimensions_is_a_half_and_few_points_always_separate() -> None:
    assert cover_probability(2 * (50 + 1), 50) == pytest.approx(0.5)
    assert cover_probability(51, 50) == 1.0
    assert cover_probability(4000, 50) < 1e-100


def test_in_many_dimensions_any_labels_are_separable() -> None:
    rng = np.random.default_rng(0)
    result = separability(rng.normal(size=(40, 60)), np.arange(40) % 4, shuffles=5)
    assert result.is_separable
    assert (result.separable.value, result.separable.mean, result.separable.p_value) == (1.0, 1.0, 1.0)
    assert result.cover == 1.0


def test_in_few_dimensions_only_true_labels_are_separable() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    X = rng.normal(size=(200, 3)) + 30 * np.eye(4, 3)[y]
    result = separability(X, y, shuffles=19)
    assert (result.separable.value, result.separable.mean) == (1.0, 0.0)
    assert result.separable.p_value == 1 / 20
    assert result.cover < 1e-10
    assert result.ratio == pytest.approx(100 / 6)


def test_clusters_of_shuffled_labels_are_many_and_near() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 2)) + 20 * np.eye(3, 2)[y]
    result = cluster_nulls(X, y, shuffles=4)
    assert result.n_clusters.value == 3
    assert result.n_clusters.mean > 10
    assert result.n_clusters.z < -1
    assert result.mean_minimum_distance.value > result.mean_minimum_distance.mean


def test_a_null_by_hand() -> None:
    result = Null.of(5.0, np.array([1.0, 2.0, 3.0]))
    assert (result.mean, result.deviation, result.z, result.p_value) == (2.0, 1.0, 3.0, 0.25)
    assert Null.of(2.0, np.array([1.0, 2.0, 3.0]), lower=True).p_value == 0.75
    assert math.isnan(Null.of(math.nan, np.array([1.0])).p_value)


def test_shuffles_are_the_same_for_a_seed() -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    assert separability(X, y, shuffles=3, seed=1) == separability(X, y, shuffles=3, seed=1)


def test_the_share_of_the_largest_cluster() -> None:
    result = cluster([[0.0], [1.0], [2.0], [3.0], [9.0]], ["a", "a", "b", "a", "c"])
    assert largest_cluster_shares(result) == {"a": pytest.approx(2 / 3), "b": 1.0, "c": 1.0}


def test_overlaps_lists_the_overlapping_pairs_and_the_points_to_remove() -> None:
    rng = np.random.default_rng(0)
    y = np.array(["a"] * 40 + ["b"] * 40 + ["c"] * 40)
    X = rng.normal(size=(120, 2)) + np.repeat([[0.0, 0.0], [8.0, 0.0], [0.0, 90.0]], 40, axis=0)
    X[0] = [8.0, 0.0]  # one of a in the middle of b
    (result,) = overlaps(X, y)
    assert (result.first, result.second, result.removed) == ("a", "b", 1)
    assert result.share == 1 / 80
    assert result.slack >= 1
    rows = np.flatnonzero((y != "c") & (np.arange(120) != 0))
    assert separable(X[rows], np.where(y[rows] == "a", 1, -1))


def test_nothing_overlaps_in_a_separable_space() -> None:
    assert overlaps([[0.0], [1.0], [5.0]], ["a", "a", "b"]) == []

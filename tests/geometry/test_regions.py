"""Regions of a linear classifier: what they promise, and that no merge depends on them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from closerlook.geometry import cluster, regions, separate
from closerlook.geometry.regions import find_regions
from tests.geometry.test_merge_order import spaces


def test_points_of_two_regions_are_separable() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 50)
    means = 2 * rng.normal(size=(4, 5))
    Z = means[y] + rng.normal(size=(200, 5))
    found = find_regions(Z, np.arange(0, 201, 50), means, means, 1e-6)
    assert 0.9 <= np.mean(found == y) < 1
    for a, b in combinations(range(4), 2):
        assert separate(Z[found == a], Z[found == b]).verdict == "separable"


def test_a_point_close_to_another_region_has_no_region() -> None:
    """The regions of the means -1 and 1 meet at 0; a point must be farther from 0 than 0.25."""
    Z = np.r_[np.full(20, -1.0), -0.2, -0.3, np.full(20, 1.0), 0.2, 0.3, -0.5][:, None]
    means = np.array([[-1.0], [1.0]])
    found = find_regions(Z, np.array([0, 22, 45]), means, means, 0.25)
    assert found.tolist() == [0] * 20 + [-1, 0] + [1] * 20 + [-1, 1, 0]


def test_labels_with_equal_means_have_no_regions() -> None:
    Z = np.array([[-1.0], [1.0], [-1.5], [1.5]])
    assert find_regions(Z, np.array([0, 2, 4]), np.zeros((2, 1)), np.zeros((2, 1)), 0.1).tolist() == [-1] * 4


def test_regions_are_not_used_if_few_points_are_in_the_region_of_their_label() -> None:
    Z = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    means = np.array([[-1.0], [1.0]])
    assert find_regions(Z, np.array([0, 2, 4]), means, means, 0.1).tolist() == [-1] * 4


@pytest.mark.parametrize("attempts", [None, "released"])
@pytest.mark.parametrize("name", spaces())
def test_merges_do_not_depend_on_regions(name: str, attempts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = spaces()[name]
    monkeypatch.setattr(regions, "USEFUL", 2.0)
    without = cluster(X, y, attempts=attempts)
    monkeypatch.setattr(regions, "USEFUL", 0.0)
    result = cluster(X, y, attempts=attempts)
    assert result.merges.tolist() == without.merges.tolist()
    assert result.assignments.tolist() == without.assignments.tolist()
    assert (result.n_undecided, without.n_undecided) == (0, 0)


def test_regions_save_most_tests_of_mislabelled_points(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 3000)
    X = 3 * rng.normal(size=(4, 32))[y] + rng.normal(size=(3000, 32))
    y = np.where(rng.random(3000) < 0.05, rng.integers(0, 4, 3000), y)
    result = cluster(X, y)
    monkeypatch.setattr(regions, "USEFUL", 2.0)
    without = cluster(X, y)
    assert result.merges.tolist() == without.merges.tolist()
    assert result.effort["by_memory"] < 0.2 * without.effort["by_memory"]

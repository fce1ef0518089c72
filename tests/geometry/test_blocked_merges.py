"""Blocked merges: for each pair, the certificate is a point that its union shares with a cluster of another label."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.geometry import Clustering, cluster
from tests.geometry.test_twin import SETS

Points = NDArray[np.float64]

each_set = pytest.mark.parametrize("name", [name for name in SETS if name.endswith("-0")])


@cache
def of_set(name: str) -> Clustering:
    return cluster(*SETS[name])


def random_space(n: int = 300, d: int = 6, labels: int = 3, seed: int = 0) -> tuple[Points, NDArray[Any]]:
    rng = np.random.default_rng([n, d, labels, seed])
    y = rng.integers(0, labels, n)
    return rng.standard_normal((n, d)) + 0.5 * y[:, None], y


def check_witnesses(X: NDArray[Any], result: Clustering) -> None:
    """The union of every two clusters of one label shares a point with a cluster of another label, within tau."""
    Z = np.asarray(X, dtype=np.float64)
    Z = Z - Z.mean(axis=0)
    same = [
        (a, b)
        for a, b in combinations(range(result.n_clusters), 2)
        if result.cluster_codes[a] == result.cluster_codes[b]
    ]
    assert sorted(result.blocked_pairs()) == same
    for blocker in result.blocked_merges():
        assert blocker.decided
        assert result.cluster_codes[blocker.blocking] != result.cluster_codes[blocker.first]
        assert set(result.assignments[blocker.rows].tolist()) <= {blocker.first, blocker.second}
        assert set(result.assignments[blocker.blocking_rows].tolist()) == {blocker.blocking}
        for rows in (blocker.rows, blocker.blocking_rows):
            assert (np.diff(rows) > 0).all()
        for weights in (blocker.weights, blocker.blocking_weights):
            assert (weights >= 0).all()
            assert weights.sum() == pytest.approx(1, abs=1e-9)
        difference = blocker.weights @ Z[blocker.rows] - blocker.blocking_weights @ Z[blocker.blocking_rows]
        assert np.linalg.norm(difference) <= result.tau * result.radius * (1 + 1e-6) + 1e-15 * np.abs(Z).max()


@each_set
def test_every_blocked_pair_has_a_witness_in_another_label(name: str) -> None:
    check_witnesses(SETS[name][0], of_set(name))


@pytest.mark.parametrize(("n", "d", "labels"), [(300, 6, 3), (300, 2, 2), (250, 20, 5), (150, 1, 3)])
def test_every_blocked_pair_of_a_larger_space_has_a_witness(n: int, d: int, labels: int) -> None:
    X, y = random_space(n, d, labels)
    X[: n // 10] = X[n // 10 : 2 * (n // 10)]
    check_witnesses(X, cluster(X, y))


def test_the_blocking_cluster_overlaps_the_union() -> None:
    result = cluster([[0.0, 0.0], [4.0, 0.0], [1.0, 0.0], [1.0, 7.0]], list("aabb"))
    assert result.assignments.tolist() == [0, 1, 2, 2]
    blocker = result.blocked_merge(1, 0)
    assert (blocker.first, blocker.second, blocker.blocking) == (0, 1, 2)
    weights = dict(zip(blocker.rows.tolist(), blocker.weights.tolist(), strict=True))
    assert weights == pytest.approx({0: 0.75, 1: 0.25}, abs=1e-6)
    assert blocker.blocking_rows.tolist() == [2]


def test_a_row_in_conflict_is_blocked_by_the_identical_row() -> None:
    result = cluster([[0.0], [5.0], [0.0], [6.0]], list("aaba"))
    for pair in ((0, 1),):
        blocker = result.blocked_merge(*pair)
        assert (blocker.rows.tolist(), blocker.blocking_rows.tolist()) == ([0], [2])
        assert blocker.blocking == result.assignments[2]


@pytest.mark.parametrize("pair", [(0, 2), (1, 1), (-1, 0), (0, 9)])
def test_only_two_clusters_of_one_label_have_a_blocking_cluster(pair: tuple[int, int]) -> None:
    result = cluster([[0.0, 0.0], [2.0, 0.0], [1.0, 0.0]], list("aab"))
    first, second = sorted(pair)
    text = f"clusters {first} and {second}: expected the numbers \\(0 to 2\\) of two different clusters with"
    with pytest.raises(InputError, match=text):
        result.blocked_merge(*pair)


def test_a_pair_without_a_record_has_no_blocking_cluster() -> None:
    result = cluster([[0.0], [1.0], [2.0], [3.0]], list("abab"))
    kept = {pair: at for pair, at in result.refusals.index.items() if pair != (0, 2)}
    forgetful = replace(result, refusals=replace(result.refusals, index=kept))
    with pytest.raises(InputError, match="clusters 0 and 2: no blocked merge is recorded for them"):
        forgetful.blocked_merge(2, 0)
    assert forgetful.blocked_merge(1, 3).blocking == 2


def test_the_rows_of_a_blocked_merge_are_ascending() -> None:
    X, y = random_space(300, 6, 3)
    several = [blocker for blocker in cluster(X, y).blocked_merges() if len(blocker.rows) > 1]
    assert len(several) > 20
    for blocker in several:
        assert blocker.rows.tolist() == sorted(set(blocker.rows.tolist()))
        assert blocker.blocking_rows.tolist() == sorted(set(blocker.blocking_rows.tolist()))


def test_the_number_of_threads_does_not_change_the_blocked_merges() -> None:
    X, y = random_space(400, 2, 2)
    one, *others = (list(cluster(X, y, threads=threads).blocked_merges()) for threads in (1, 2, 4))
    for other in others:
        for a, b in zip(one, other, strict=True):
            assert (a.first, a.second, a.blocking) == (b.first, b.second, b.blocking)
            assert a.rows.tolist() == b.rows.tolist()
            assert a.weights.tolist() == b.weights.tolist()

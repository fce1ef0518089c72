"""The limit on attempts that the released DirectProbe code had until 2022."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from closerlook import InputError
from closerlook.geometry import Attempts, Clustering, audit, cluster
from tests.geometry.plain import PlainAttempts, plain_released, plain_two_phases
from tests.geometry.sets import small_sets

SETS = {name: (X, y) for name, X, y in small_sets()}
WITH_IDENTICAL_ROWS = [name for name in SETS if name.startswith(("grid", "repeated", "half_precision", "signed_zeros"))]
COMPARED = sorted({*WITH_IDENTICAL_ROWS, *(name for name in SETS if name.endswith("-0"))})
each_set = pytest.mark.parametrize("name", COMPARED)


@cache
def limited(name: str) -> Clustering:
    return cluster(*SETS[name], attempts="released")


@cache
def plain(name: str, *, limit: bool) -> PlainAttempts:
    return plain_released(*SETS[name], limited=limit)


def attempts_of(result: Clustering) -> Attempts:
    assert result.attempts is not None
    return result.attempts


@each_set
@pytest.mark.no_cover
def test_the_limited_loop_matches_the_plain_implementation(name: str) -> None:
    result, expected = limited(name), plain(name, limit=True)
    assert result.n_undecided == 0
    assert result.assignments.tolist() == expected.assignments.tolist()
    attempts = attempts_of(result)
    assert (attempts.merged, attempts.blocked) == (expected.merged, expected.blocked)
    assert attempts.limit == len(result.assignments) >= attempts.used


@each_set
@pytest.mark.no_cover
def test_the_repaired_loop_gives_the_clusters_without_a_limit(name: str) -> None:
    result = cluster(*SETS[name])
    assert result.attempts is None
    assert result.assignments.tolist() == plain(name, limit=False).assignments.tolist()


def powers() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A space of integers that is the same on every machine, and not separable: 120 points, 3 dimensions, 3 labels."""
    i = np.arange(1, 121)
    return np.stack([i**3 % 1009, i**5 % 1013, i**7 % 1019], axis=1), i**2 % 11 % 3


def test_the_counts_are_those_of_the_released_code_before_and_after_its_repair() -> None:
    """utahnlp/BERT-fine-tuning-analysis at df9fb27 and 16de31e, run on this space with Gurobi: 31 and 25 clusters.

    The same as utahnlp/DirectProbe at 1545ac1 and a3869ee.
    """
    before, after = cluster(*powers(), attempts="released"), cluster(*powers())
    assert (before.n_clusters, after.n_clusters) == (31, 25)
    assert np.sort(np.bincount(before.assignments))[-6:].tolist() == [7, 7, 7, 9, 10, 12]
    assert attempts_of(before) == Attempts("released", limit=120, merged=89, blocked=31)


@pytest.mark.parametrize("name", ["chequered-2d-0", "touching_blobs-1d-0", "far_away-5d-0"])
def test_two_phases_make_the_same_attempts_as_one(name: str) -> None:
    result, expected = limited(name), plain_two_phases(*SETS[name])
    assert expected.blocked > 0
    assert result.assignments.tolist() == expected.assignments.tolist()
    assert (attempts_of(result).merged, attempts_of(result).blocked) == (expected.merged, expected.blocked)


@each_set
def test_a_limited_clustering_passes_the_audit(name: str) -> None:
    result = limited(name)
    proof = audit(*SETS[name], result)
    assert proof.problems == ()
    assert proof.blocked == len(list(result.blocked_pairs())) == len(list(result.blocked_merges()))


def test_the_sets_use_up_the_limit_and_leave_pairs_that_could_be_merged() -> None:
    short = [name for name in COMPARED if attempts_of(limited(name)).ran_out]
    more = [name for name in short if limited(name).n_clusters > cluster(*SETS[name]).n_clusters]
    assert len(short) >= len(more) > 10
    assert any(len(limited(name).conflicts) for name in more)


def test_a_blocked_pair_is_tried_again_when_one_of_the_two_has_grown() -> None:
    """Attempts: rows 0 and 2 (blocked by row 1), rows 2 and 3 (merged), row 0 and the new cluster (blocked)."""
    result = cluster([[0.0], [1.0], [2.0], [5.0]], list("abaa"), attempts="released")
    assert result.attempts == Attempts("released", limit=4, merged=1, blocked=2)
    assert not result.attempts.ran_out
    assert result.assignments.tolist() == [0, 1, 2, 2]


def test_blocked_attempts_use_up_the_limit() -> None:
    """The nine pairs among the first seven rows are closer than 7, and blocked: no attempt is left for rows 7 and 8."""
    X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [50.0], [57.0]], list("ababababb")
    result = cluster(X, y, attempts="released")
    assert result.attempts == Attempts("released", limit=9, merged=0, blocked=9)
    assert result.attempts.ran_out
    assert (result.n_clusters, cluster(X, y).n_clusters) == (9, 8)


def test_identical_rows_of_one_label_are_attempts_that_merge() -> None:
    """Rows 4 and 5; rows 0 and 1; these and row 2; the two clusters of a, blocked by row 3."""
    result = cluster([[0.0], [1.0], [2.0], [3.0], [4.0], [4.0]], list("aaabaa"), attempts="released")
    assert result.attempts == Attempts("released", limit=6, merged=3, blocked=1)
    assert result.assignments.tolist() == [0, 0, 0, 1, 2, 2]


def test_a_row_in_conflict_is_tried_and_blocked() -> None:
    """Rows 0 and 1 are identical. Attempts: rows 0 and 2 (blocked), 2 and 3, 0 and the new cluster (blocked)."""
    result = cluster([[0.0], [0.0], [1.0], [2.0]], list("abaa"), attempts="released")
    assert result.attempts == Attempts("released", limit=4, merged=1, blocked=2)
    assert result.assignments.tolist() == [0, 1, 2, 2]


def test_a_separable_space_needs_no_attempt() -> None:
    X, y = SETS["blobs-3d-0"]
    result = cluster(X, y, attempts="released")
    assert result.attempts == Attempts("released", len(X), 0, 0)
    assert (result.assignments == cluster(X, y).assignments).all()
    assert result.is_separable


def test_a_label_that_is_separable_uses_attempts_too() -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(20, 2)) + 50])
    y = np.r_[rng.integers(0, 2, 30), np.full(20, 2)]
    result = cluster(X, y, attempts="released")
    assert cluster(X, y).whole == (2,)
    assert result.whole == ()
    assert attempts_of(result).merged == 50 - result.n_clusters


def test_a_pair_that_was_not_tried_has_no_blocked_merge() -> None:
    result = limited("random_labels-2d-0")
    blocked = set(result.blocked_pairs())
    first, second = next(
        (a, b)
        for a in range(result.n_clusters)
        for b in range(a + 1, result.n_clusters)
        if result.cluster_codes[a] == result.cluster_codes[b] and (a, b) not in blocked
    )
    message = f"clusters {first} and {second}: no blocked merge is recorded for them; the limit on attempts ended"
    with pytest.raises(InputError, match=re.escape(message)):
        result.blocked_merge(first, second)


def test_the_number_of_threads_changes_nothing() -> None:
    for name in ("crowded-0", "repeated-4d-0"):
        results = [cluster(*SETS[name], attempts="released", threads=threads) for threads in (1, 3)]
        assert results[0].assignments.tolist() == results[1].assignments.tolist()
        assert results[0].attempts == results[1].attempts


@pytest.mark.parametrize("attempts", ["all", 5, "Released"])
def test_other_limits_are_refused(attempts: object) -> None:
    with pytest.raises(
        InputError, match=re.escape(f"attempts is {attempts!r}; expected None (no limit) or 'released'")
    ):
        cluster([[0.0], [1.0]], ["a", "b"], attempts=attempts)  # type: ignore[arg-type]

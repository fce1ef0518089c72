"""The audit accepts the clusters of `cluster`, and reports every change to them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.geometry import Audit, Clustering, audit, cluster
from tests.geometry.test_twin import SETS

Integers = NDArray[np.int64]

TAMPERED = ["touching_blobs-2d-0", "random_labels-3d-0", "grid-2d-0", "repeated-2d-0", "crowded-0"]
each_tampered = pytest.mark.parametrize("name", TAMPERED)


@cache
def of_set(name: str) -> Clustering:
    return cluster(*SETS[name])


def rearranged(result: Clustering, assignments: Integers) -> Clustering:
    """The clustering with changed assignments; clusters are numbered by their smallest rows."""
    codes = result.cluster_codes[result.assignments]
    _, first, inverse = np.unique(assignments, return_index=True, return_inverse=True)
    number = np.argsort(np.argsort(first))
    return replace(result, assignments=number[inverse], cluster_codes=codes[np.sort(first)])


def merged(result: Clustering, first: int, second: int) -> Clustering:
    return rearranged(result, np.where(result.assignments == second, first, result.assignments))


def split(result: Clustering) -> Clustering:
    """The last row of the largest cluster on its own."""
    assignments = result.assignments.copy()
    assignments[result.members()[int(result.sizes.argmax())][-1]] = result.n_clusters
    return rearranged(result, assignments)


@pytest.mark.parametrize("name", [name for name in SETS if name.endswith("-0")])
def test_every_clustering_passes_the_audit(name: str) -> None:
    clustering = of_set(name)
    result = audit(*SETS[name], clustering)
    assert result.problems == ()
    assert result.clean
    assert result.blocked == len(list(clustering.blocked_pairs()))
    codes = clustering.cluster_codes
    assert result.separable + result.conflicting == np.count_nonzero(np.triu(codes[:, None] != codes))


@pytest.mark.parametrize("tau", [1e-9, 1e-2, 0.3])
def test_every_clustering_at_another_tau_passes_the_audit(tau: float) -> None:
    for name in ("touching_blobs-3d-0", "grid-2d-0", "rings-3d-0"):
        X, y = SETS[name]
        assert audit(X, y, cluster(X, y, tau=tau)).clean


def test_pairs_in_conflict_are_counted() -> None:
    X, y = [[0.0], [0.0], [0.0], [5.0]], list("abab")
    assert audit(X, y, cluster(X, y)) == Audit(separable=2, conflicting=2, blocked=2, problems=())


def test_rows_within_tau_of_each_other_are_counted_as_conflicting() -> None:
    X, y = SETS["nearly_identical-0"]
    result = of_set("nearly_identical-0")
    assert len(result.conflicts) == 0
    assert audit(X, y, result).conflicting == 4


def test_the_number_of_threads_changes_nothing() -> None:
    X, y = SETS["crowded-0"]
    assert audit(X, y, of_set("crowded-0"), threads=1) == audit(X, y, of_set("crowded-0"), threads=3)


def test_audit_reports_a_merge_across_another_label_next_to_a_blocked_pair() -> None:
    X, y = [[0.0], [1.0], [2.0], [3.0]], list("abab")
    result = merged(cluster(X, y), 0, 2)
    assert "clusters 0 and 1, of different labels, are overlapping" in audit(X, y, result).problems


def test_audit_reports_a_merge_across_another_label() -> None:
    X, y = [[0.0, 0.0], [2.0, 0.0], [1.0, 0.0]], list("aab")
    result = merged(cluster(X, y), 0, 1)
    assert audit(X, y, result) == Audit(0, 0, 0, ("clusters 0 and 1, of different labels, are overlapping",))


def test_audit_reports_a_cluster_split_in_two() -> None:
    X, y = [[0.0], [1.0], [5.0]], list("aab")
    problems = attempt(X, y, split(cluster(X, y)))
    assert problems == ("clusters 0 and 1: no blocked merge is recorded for them",)


@each_tampered
def test_audit_reports_a_split_cluster_of_every_set(name: str) -> None:
    assert attempt(*SETS[name], split(of_set(name)))


@each_tampered
def test_audit_reports_two_swapped_rows_of_different_labels(name: str) -> None:
    X, y = SETS[name]
    result = of_set(name)
    other = int(np.flatnonzero(y != y[0])[0])
    assignments = result.assignments.copy()
    assignments[[0, other]] = assignments[[other, 0]]
    problems = attempt(X, y, replace(result, assignments=assignments))
    assert f"row 0 is in cluster {result.assignments[other]}, which has another label" in problems
    assert f"row {other} is in cluster {result.assignments[0]}, which has another label" in problems


@pytest.mark.parametrize("name", ["random_labels-3d-0", "crowded-0", "touching_blobs-2d-0"])
def test_audit_reports_a_row_in_another_cluster_of_its_label(name: str) -> None:
    X, y = SETS[name]
    result = of_set(name)
    first, second = next(pair for pair in result.blocked_pairs() if result.sizes[list(pair)].min() > 1)
    assignments = result.assignments.copy()
    blocker = result.blocked_merge(first, second)
    rows = blocker.rows[result.assignments[blocker.rows] == second]
    assignments[rows] = first  # the witness now lies in one cluster
    assert attempt(X, y, replace(result, assignments=assignments))


def test_audit_reports_a_blocking_cluster_that_does_not_overlap() -> None:
    X, y = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.0]]), list("aab")
    clustering = cluster(X, y)
    moved = X.copy()
    moved[2, 1] = 1.0
    result = audit(moved, y, clustering)
    assert result.problems == ("clusters 0 and 1 could have been merged: their union and cluster 2 are separable",)


def test_audit_reports_a_blocking_cluster_of_the_same_label() -> None:
    X, y = [[0.0], [1.0], [2.0], [3.0]], list("abab")
    result = cluster(X, y)
    assert result.blocked_merge(0, 2).blocking == 1
    refusals = replace(result.refusals, blocking=np.where(result.refusals.blocking == 1, 0, result.refusals.blocking))
    problems = attempt(X, y, replace(result, refusals=refusals))
    assert "clusters 0 and 2 are blocked by 0, of their own label" in problems


def test_audit_refuses_a_clustering_of_different_rows() -> None:
    X, y = SETS["touching_blobs-2d-0"]
    result = of_set("touching_blobs-2d-0")
    with pytest.raises(
        InputError, match=r"X and y have 29 rows and 2 labels; expected the X and y that were clustered"
    ):
        audit(X[:-1], y[:-1], result)
    with pytest.raises(InputError, match=r"X and y have 30 rows and 2 labels; expected the X and y"):
        audit(X, y + 1, result)


def test_progress_never_exceeds_its_total() -> None:
    X, y = SETS["crowded-0"]
    seen: list[tuple[int, int]] = []
    audit(X, y, of_set("crowded-0"), progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert all(0 < done <= total for done, total in seen)
    assert seen[-1][0] == seen[-1][1]


def attempt(X: Any, y: Any, clustering: Clustering) -> tuple[str, ...]:
    result = audit(X, y, clustering)
    assert result.clean == (not result.problems)
    return result.problems

"""The engine agrees with a plain implementation and with worked examples, and has the invariances of geometry."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from closerlook.geometry import cluster, separate
from tests.geometry.plain import (
    PlainClustering,
    bounds_by_programme,
    hulls_meet,
    in_radii,
    plain_cluster,
    plain_distance,
    rms_radius,
)
from tests.geometry.sets import small_sets

pytestmark = pytest.mark.no_cover  # it takes a quarter more time under coverage; other tests run every line
Points = NDArray[np.float64]

SETS = {name: (X, y) for name, X, y in small_sets()}
SQUARE = [[0, 0], [2, 0], [2, 2], [0, 2]]
BY_HAND: dict[
    str, tuple[list[Any], str, list[int], list[int]]
] = {  # name: rows, labels, clusters of the rows, rows in conflict
    "one row": ([[7]], "a", [0], []),
    "labels alternate on a line": ([[0], [1], [2], [3]], "abab", [0, 1, 2, 3], []),
    "two runs on a line": ([[0], [1], [2], [3]], "aabb", [0, 0, 1, 1], []),
    "a run on each side of another": ([[0], [1], [5], [6], [9]], "aabba", [0, 0, 1, 1, 2], []),
    # The diagonals are equally long: the one with row 0 merges, and then stands in the way of the other.
    "the corners of XOR": ([[0, 0], [1, 1], [0, 1], [1, 0]], "aabb", [0, 0, 1, 2], []),
    "the corners of XOR, b first": ([[0, 1], [1, 1], [0, 0], [1, 0]], "baab", [0, 1, 2, 0], []),
    "a foe inside a segment": ([[0, 0], [2, 0], [1, 0]], "aab", [0, 1, 2], []),
    "another label next to a segment": ([[0, 0], [2, 0], [1, 0.01]], "aab", [0, 0, 1], []),
    "a foe on the end of a hull": ([[0, 0], [1, 0], [1, 0], [3, 0]], "aaba", [0, 1, 2, 3], [1, 2]),
    # Sides of 2 before sides of √5, so the third corner finds the foe inside the triangle.
    "a foe inside a triangle": ([[1, 2], [0, 0], [2, 0], [1, 1]], "aaab", [0, 1, 1, 2], []),
    # Four sides of 2: rows 0 and 1 first, then 2 and 3; the whole square has the foe inside.
    "a foe inside a square": ([*SQUARE, [1, 1]], "aaaab", [0, 0, 1, 1, 2], []),
    "a foe inside a square, rows turned": ([SQUARE[0], *SQUARE[:0:-1], [1, 1]], "aaaab", [0, 0, 1, 1, 2], []),
    "a square around nothing": ([*SQUARE, [3, 1]], "aaaab", [0, 0, 0, 0, 1], []),
    # Rows 0 and 1 are one place under two labels; the rest of a merges without them.
    "one place, two labels": ([[0], [0], [1], [2]], "abaa", [0, 1, 2, 2], [0, 1]),
    "a conflict blocks others": ([[-1], [0], [0], [1]], "aaba", [0, 1, 2, 3], [1, 2]),
    "one place, one label": ([[0], [5], [0], [0]], "abaa", [0, 1, 0, 0], []),
    "one place, all labels": ([[4, 4]] * 4, "abca", [0, 1, 2, 3], [0, 1, 2, 3]),
    "single points": ([[0], [1], [2]], "abc", [0, 1, 2], []),
}
GAPS = (0.0, 1e-9, 1e-8, 1e-7, 5e-7, 2e-6, 1e-5, 1e-4, 1e-2)  # those from 2e-6 on exceed τ

each_set = pytest.mark.parametrize("name", SETS)
each_case = pytest.mark.parametrize("case", BY_HAND)
each_seed = pytest.mark.parametrize("seed", range(6))


# The twin itself


@each_case
def test_the_plain_implementation_matches_worked_examples(case: str) -> None:
    rows, labels, expected, conflicts = BY_HAND[case]
    result = plain_cluster(rows, list(labels))
    assert result.assignments.tolist() == expected
    assert result.conflicts.tolist() == conflicts


@pytest.mark.parametrize("name", [name for name in SETS if name.endswith("-0")])
def test_a_refused_pair_never_merges_after_either_side_has_grown(name: str) -> None:
    result = twin_of(name)
    refused = [(set(a), set(b)) for a, b in result.refusals]
    for first, second in result.merges:
        assert not any(a <= set(first) and b <= set(second) for a, b in refused)
        assert not any(a <= set(second) and b <= set(first) for a, b in refused)


@pytest.mark.parametrize(
    ("A", "B", "distance"),
    [
        ([[0, 0]], [[3, 4]], 5.0),
        ([[0, 0]], [[0, 0]], 0.0),
        ([[0, 1]], [[-1, 0], [1, 0]], 1.0),
        ([[2, 1]], [[-1, 0], [1, 0]], 2**0.5),
        ([[0, 0], [1, 1]], [[0, 1], [1, 0]], 0.0),
        ([[0, 0], [1, 0], [0, 1]], [[1, 1], [2, 1], [1, 2]], 0.5**0.5),
        ([[0], [1]], [[1], [4]], 0.0),
        ([[0, 0, 0], [1, 0, 0]], [[0.5, -1, 2], [0.5, 1, 2]], 2.0),
        ([[1e6, 0]], [[1e6, -1], [1e6 + 1, 0]], 0.5**0.5),
    ],
)
def test_plain_distance_matches_worked_examples(A: list[list[float]], B: list[list[float]], distance: float) -> None:
    assert plain_distance(A, B) == pytest.approx(distance, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_plain_distance_measures_a_gap_however_narrow(d: int) -> None:
    rng = np.random.default_rng(d)
    for gap in GAPS:
        A, B = facing(rng, d, gap)
        assert plain_distance(A, B) == pytest.approx(gap, rel=1e-6, abs=1e-12)
        assert hulls_meet(A, B, 1e-6) == (gap <= 1e-6)


@each_seed
def test_plain_verdict_and_plain_distance_agree(seed: int) -> None:
    for pair in random_pairs(seed):
        A, B = np.split(in_radii(np.vstack(pair)), [len(pair[0])])
        distance = plain_distance(A, B)
        lower, upper = bounds_by_programme(A, B)
        assert lower - 1e-9 <= distance <= upper + 1e-9
        assert hulls_meet(A, B, 1e-6) == (distance <= 1e-6)


# The engine and the plain implementation


@each_case
def test_cluster_matches_worked_examples(case: str) -> None:
    rows, labels, expected, conflicts = BY_HAND[case]
    result = cluster(np.array(rows, dtype=np.float64), np.array(list(labels)))
    assert np.asarray(result.assignments).tolist() == expected
    assert np.asarray(result.conflicts).tolist() == conflicts


@each_set
def test_cluster_matches_the_plain_implementation(name: str) -> None:
    assert_same(cluster(*SETS[name]), twin_of(name))


@pytest.mark.parametrize("tau", [1e-9, 0.02, 0.3])
@pytest.mark.parametrize(
    "name", ["touching_blobs-2d-0", "random_labels-3d-0", "grid-2d-0", "far_away-2d-0", "rings-3d-0"]
)
def test_cluster_matches_the_plain_implementation_at_another_tau(name: str, tau: float) -> None:
    assert_same(cluster(*SETS[name], tau=tau), plain_cluster(*SETS[name], tau=tau))


@each_seed
def test_separate_agrees_with_the_plain_verdict_and_distance(seed: int) -> None:
    for A, B in random_pairs(seed):
        assert_separation(separate(A, B), plain_distance(A, B), rms_radius(np.vstack([A, B])))


@each_seed
def test_separate_gives_both_orders_the_same_answer(seed: int) -> None:
    for A, B in random_pairs(seed):
        there, back = separate(A, B), separate(B, A)
        assert there.verdict == back.verdict
        assert there.lower <= back.upper * (1 + 1e-9)
        assert back.lower <= there.upper * (1 + 1e-9)


@pytest.mark.parametrize("d", [1, 2, 5, 12, 40])
@pytest.mark.parametrize("gap", GAPS)
def test_separate_decides_hulls_that_nearly_touch(gap: float, d: int) -> None:
    for seed in range(5):
        A, B = facing(np.random.default_rng([d, seed]), d, gap)
        result = separate(A, B, tau=1e-6, scale=1.0)
        assert result.verdict == ("separable" if gap > 1e-6 else "overlapping")
        assert result.lower <= gap * (1 + 1e-6) + 1e-12
        assert result.upper >= gap * (1 - 1e-6) - 1e-12


# What geometry promises

Change = Callable[[Generator, Points], Points]
MOVES: dict[str, Change] = {
    "rotation": lambda rng, X: X @ rotation(rng, X.shape[1]),
    "reflection": lambda rng, X: X * rng.choice([-1.0, 1.0], X.shape[1]),
    "translation": lambda rng, X: X + 100 * rng.standard_normal(X.shape[1]),
    "shrinking": lambda rng, X: X * 1e-7,
    "stretching": lambda rng, X: X * 3e7,
    "embedding": lambda rng, X: np.c_[X, np.full((len(X), 9), 0.1)] @ rotation(rng, X.shape[1] + 9),
}
MOVED = [  # no point twice, since a rotation may round two copies of a point differently
    *("touching_blobs-2d-0", "touching_blobs-3d-0", "random_labels-2d-0", "random_labels-4d-0", "random_labels-6d-0"),
    *("distinct_grid-2d-0", "distinct_grid-3d-1", "rings-3d-0", "chequered-4d-0", "crowded-0", "midpoints-0"),
]
TIED = [
    *("grid-1d-0", "grid-2d-0", "grid-3d-1", "repeated-2d-0", "runs-0", "half_precision-1d-0"),
    *(name for name in SETS if name.startswith(("chequered", "squares"))),
]


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("name", MOVED)
def test_clusters_do_not_change_when_the_space_moves(name: str, move: str) -> None:
    X, y = SETS[name]
    moved = MOVES[move](np.random.default_rng(len(name)), X)
    assert clusters_of(moved, y) == clusters_of(X, y)


@pytest.mark.parametrize("name", [*MOVED[:5], "rings-3d-0", "crowded-0"])
def test_clusters_of_points_in_general_position_do_not_depend_on_the_order_of_rows(name: str) -> None:
    X, y = SETS[name]
    order = np.random.default_rng(len(name)).permutation(len(X))
    permuted = np.empty(len(X), dtype=int)
    permuted[order] = clusters_of(X[order], y[order])
    assert groups(permuted.tolist()) == groups(clusters_of(X, y))


@pytest.mark.parametrize("name", sorted({*MOVED, *TIED}))
def test_clusters_do_not_depend_on_the_names_of_labels(name: str) -> None:
    X, y = SETS[name]
    known = sorted(set(y.tolist()))
    renamed = {label: f"label {len(known) - place:03d}" for place, label in enumerate(known)}  # the last becomes first
    assert clusters_of(X, np.array([renamed[label] for label in y.tolist()])) == clusters_of(X, y)


@pytest.mark.parametrize("name", sorted({*MOVED, *TIED}))
def test_clusters_do_not_depend_on_the_number_of_threads(name: str) -> None:
    X, y = SETS[name]
    one, two, three = (np.asarray(cluster(X, y, threads=threads).assignments).tolist() for threads in (1, 2, 3))
    assert one == two == three


@each_seed
def test_a_growing_hull_never_increases_its_distance(seed: int) -> None:
    for A, B in random_pairs(seed):
        scale = rms_radius(np.vstack([A, B]))
        sizes = sorted({1, (len(A) + 1) // 2, len(A)})
        nested = [separate(A[:size], B, scale=scale) for size in sizes]
        for smaller, larger in pairwise(nested):
            assert smaller.verdict == "separable" or larger.verdict == "overlapping"
            assert larger.lower <= smaller.upper * (1 + 1e-9)


# Parts


@cache
def twin_of(name: str) -> PlainClustering:
    return plain_cluster(*SETS[name])


def assert_same(result: Any, twin: PlainClustering) -> None:
    assert result.n_undecided == 0
    assert np.asarray(result.assignments).tolist() == twin.assignments.tolist()
    assert list(result.cluster_labels) == twin.cluster_labels
    assert np.asarray(result.conflicts).tolist() == twin.conflicts.tolist()


def assert_separation(result: Any, distance: float, radius: float) -> None:
    assert result.verdict == ("separable" if distance > 1e-6 * radius else "overlapping")
    assert 0 <= result.lower <= result.upper
    if result.verdict == "separable":
        assert result.lower == pytest.approx(distance, rel=1e-5)
        assert result.upper == pytest.approx(distance, rel=1e-5)
    else:
        assert result.upper <= 1.001e-6 * radius


def clusters_of(X: NDArray[Any], y: NDArray[Any]) -> list[int]:
    result = cluster(X, y)
    assert result.n_undecided == 0
    return [int(number) for number in result.assignments]


def groups(assignments: list[int]) -> set[frozenset[int]]:
    """The partition without the numbers of its clusters."""
    members: dict[int, set[int]] = {}
    for row, number in enumerate(assignments):
        members.setdefault(number, set()).add(row)
    return {frozenset(rows) for rows in members.values()}


def random_pairs(seed: int) -> list[tuple[Points, Points]]:
    """Forty pairs of 1 to 30 points in 1 to 20 dimensions: apart, overlapping, on a grid, and in a common subspace."""
    rng = np.random.default_rng([40, seed])
    pairs = []
    for kind in range(40):
        d, m, k = int(rng.integers(1, 21)), int(rng.integers(1, 31)), int(rng.integers(1, 31))
        A = rng.standard_normal((m, d))
        B = rng.standard_normal((k, d)) + rng.choice([0.0, 0.5, 2.0, 5.0]) / d**0.5
        if kind % 4 == 1:
            A, B = np.round(A), np.round(B)
        if kind % 4 == 2:
            A[:, : d // 2], B[:, : d // 2] = 1 / 3, 1 / 3
        if kind % 4 == 3:
            A, B = A + 1e6, B + 1e6
        pairs.append((A, B))
    return pairs


def facing(rng: Generator, d: int, gap: float) -> tuple[Points, Points]:
    """Two hulls of radius about one with parallel facets opposite each other, at the distance `gap`."""
    A, B = (rng.standard_normal((2 * d + 6, d)) for _ in range(2))
    for side in (A, B):
        side[d : 2 * d] = -side[:d]  # so the middle of the facet is the origin, on both sides
        side[:, 0] = np.abs(side[:, 0])
        side[: 2 * d, 0] = 0
    A[:, 0] *= -1
    radius = rms_radius(np.vstack([A, B]))
    turn = rotation(rng, d)
    return A / radius @ turn, (B / radius + gap * np.eye(d)[0]) @ turn


def rotation(rng: Generator, d: int) -> Points:
    return np.linalg.qr(rng.standard_normal((d, d)))[0]

"""Distances between clusters and labels match brute force and scipy, and have the invariances of geometry."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from closerlook.errors import InputError
from closerlook.geometry import Clustering, cluster, cluster_distances, label_distances, within_cluster_distances
from tests.geometry.plain import plain_distance, rms_radius
from tests.geometry.test_twin import SETS, rotation

Points = NDArray[np.float64]

SOME = [
    *("blobs-3d-0", "touching_blobs-2d-0", "random_labels-3d-0", "random_labels-4d-0", "grid-2d-0", "repeated-2d-0"),
    *("collinear-5d-0", "rings-2d-0", "far_away-2d-0", "single_points-0", "nearly_identical-0", "half_precision-2d-0"),
]
each_set = pytest.mark.parametrize("name", SOME)


@cache
def of_set(name: str) -> Clustering:
    return cluster(*SETS[name])


@cache
def brute_force(name: str) -> Points:
    """(k, k) plain distances between clusters of different labels; NaN within a label."""
    X, result = SETS[name][0].astype(np.float64), of_set(name)
    members, codes = result.members(), result.cluster_codes
    table = np.full((result.n_clusters, result.n_clusters), np.nan)
    np.fill_diagonal(table, 0.0)
    for a, b in combinations(range(result.n_clusters), 2):
        if codes[a] != codes[b]:
            distinct = (X[members[a]][:, None] != X[members[b]]).any()
            table[a, b] = table[b, a] = plain_distance(X[members[a]], X[members[b]]) if distinct else 0.0
    return table


def brute_force_labels(name: str, statistic: str, min_points: int = 1) -> Points:
    table, result = brute_force(name), of_set(name)
    labels = np.zeros((result.n_labels, result.n_labels))
    kept = result.sizes >= min_points
    for i, j in np.argwhere(~np.eye(result.n_labels, dtype=bool)):
        part = table[np.ix_((result.cluster_codes == i) & kept, (result.cluster_codes == j) & kept)]
        reduce = np.mean if statistic == "mean" else np.min
        labels[i, j] = reduce(part) if part.size else np.nan
    for i in range(result.n_labels):
        if not kept[result.cluster_codes == i].any():
            labels[i, i] = np.nan
    return labels


# Clusters


@each_set
def test_cluster_distances_match_the_plain_implementation(name: str) -> None:
    X, _ = SETS[name]
    result = cluster_distances(X, of_set(name))
    expected = brute_force(name)
    close = {"rel": 1e-5, "abs": 1e-6 * result.radius, "nan_ok": True}
    assert result.matrix() == pytest.approx(expected, **close)
    for a, b in np.argwhere(~np.isnan(expected)):
        lower, upper = result.between(a, b)
        assert 0 <= lower <= upper
        assert lower <= expected[a, b] * (1 + 1e-6) + 1e-12 * result.radius
        assert upper >= expected[a, b] * (1 - 1e-6) - 1e-12 * result.radius


@pytest.mark.parametrize("gap", [0.2, 1e-3, 1e-6])
def test_bounds_are_as_narrow_as_requested(gap: float) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 300)
    X = rng.standard_normal((300, 20)) + 5 * rng.standard_normal((6, 20))[y]
    result = cluster_distances(X, cluster(X, y), gap=gap)
    known = ~np.isnan(result.upper)
    assert (result.upper - result.lower <= gap * result.upper * (1 + 1e-6) + 1e-12)[known].all()
    fine = cluster_distances(X, cluster(X, y), gap=1e-9)
    assert (result.lower <= fine.upper)[known].all()
    assert (result.upper >= fine.lower)[known].all()


def test_clusters_of_one_label_have_no_distance() -> None:
    X, y = [[0.0], [1.0], [2.0]], list("aba")
    matrix = cluster_distances(X, cluster(X, y)).matrix()
    assert matrix == pytest.approx(np.array([[0, 1, np.nan], [1, 0, 1], [np.nan, 1, 0]]), nan_ok=True)


def test_the_radius_is_that_of_the_space() -> None:
    X, y = SETS["touching_blobs-3d-0"]
    assert cluster_distances(X, cluster(X, y)).radius == pytest.approx(rms_radius(X))


def test_clusters_below_min_points_are_excluded_and_listed() -> None:
    X, _ = SETS["random_labels-3d-0"]
    clustering = of_set("random_labels-3d-0")
    result = cluster_distances(X, clustering, min_points=5)
    small = np.flatnonzero(clustering.sizes < 5)
    assert 0 < len(small) < clustering.n_clusters
    assert result.excluded.tolist() == small.tolist()
    assert result.min_points == 5
    assert all(np.isnan(result.between(int(number), 0)).all() for number in small)
    assert result.matrix() == pytest.approx(without(brute_force("random_labels-3d-0"), small), rel=1e-5, nan_ok=True)


def without(table: Points, clusters: NDArray[np.int64]) -> Points:
    table = table.copy()
    table[clusters], table[:, clusters] = np.nan, np.nan
    np.fill_diagonal(table, 0.0)
    return table


def test_two_rows_in_conflict_are_at_distance_zero() -> None:
    X, y = [[1.0, 1.0], [1.0, 1.0], [4.0, 5.0]], list("aba")
    result = cluster_distances(X, cluster(X, y))
    assert result.between(0, 1) == (0.0, 0.0)
    assert result.between(1, 2) == pytest.approx((5.0, 5.0))


def test_identical_points_have_distance_zero() -> None:
    X, y = np.full((4, 3), 0.1), list("abab")
    labels = label_distances(cluster_distances(X, cluster(X, y)))
    assert labels.values.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert labels.relative.tolist() == [[0.0, 0.0], [0.0, 0.0]]


# Labels


@each_set
@pytest.mark.parametrize("statistic", ["mean", "min"])
@pytest.mark.parametrize("min_points", [1, 4])
def test_distances_of_labels_are_those_over_their_clusters(name: str, statistic: Any, min_points: int) -> None:
    X, _ = SETS[name]
    result = label_distances(cluster_distances(X, of_set(name), min_points=min_points), statistic=statistic)
    expected = brute_force_labels(name, statistic, min_points)
    assert result.values == pytest.approx(expected, rel=1e-5, abs=1e-6 * result.radius, nan_ok=True)
    assert (result.labels, result.statistic, result.min_points) == (of_set(name).labels, statistic, min_points)
    known = ~np.isnan(expected)
    assert (result.lower <= result.values)[known].all()
    assert (result.values <= result.upper)[known].all()
    assert (np.isnan(result.lower) == np.isnan(expected)).all()


@each_set
def test_the_table_of_labels_is_symmetric_with_zeros_on_the_diagonal(name: str) -> None:
    X, _ = SETS[name]
    result = label_distances(cluster_distances(X, of_set(name)))
    assert result.values == pytest.approx(result.values.T, rel=1e-14)
    assert np.diag(result.values).tolist() == [0.0] * len(result.labels)
    assert result.separable == of_set(name).is_separable
    assert result.excluded == {}


def test_relative_distances_are_in_radii() -> None:
    X, _ = SETS["blobs-3d-0"]
    result = label_distances(cluster_distances(X, of_set("blobs-3d-0")))
    assert result.relative == pytest.approx(result.values / rms_radius(X))


def lonely() -> tuple[list[list[float]], list[str]]:
    """a has three points, b two at 10 and one at 3 between points of a, c one point."""
    return [[0.0], [1.0], [6.0], [10.0], [11.0], [3.0], [20.0]], list("aaabbbc")


def test_a_label_without_clusters_that_are_large_enough_has_no_distances() -> None:
    X, y = lonely()
    result = label_distances(cluster_distances(X, cluster(X, y), min_points=2))
    nan = np.nan
    assert result.values == pytest.approx(np.array([[0, 9, nan], [9, 0, nan], [nan, nan, nan]]), rel=1e-6, nan_ok=True)
    assert result.excluded == {"a": 1, "b": 1, "c": 1}
    assert result.nearest()[:2] == [("a", "b", pytest.approx(9)), ("b", "a", pytest.approx(9))]
    label, other, distance = result.nearest()[2]
    assert (label, other) == ("c", None)
    assert np.isnan(distance)
    assert result.minimum() == pytest.approx([9, 9, nan], nan_ok=True)


def test_mean_and_minimum_match_a_worked_example() -> None:
    X, y = lonely()
    distances = cluster_distances(X, cluster(X, y))  # a: 0 to 1, 6; b: 10 to 11, 3; c: 20
    mean, least = (label_distances(distances, statistic=statistic) for statistic in ("mean", "min"))
    assert mean.values == pytest.approx(np.array([[0, 4.5, 16.5], [4.5, 0, 13], [16.5, 13, 0]]), rel=1e-6)
    assert least.values == pytest.approx(np.array([[0, 2, 14], [2, 0, 9], [14, 9, 0]]), rel=1e-6)
    assert not mean.separable


def test_the_nearest_label_is_the_one_at_the_least_distance() -> None:
    X, y = [[0.0], [3.0], [7.0], [100.0]], list("dcba")
    result = label_distances(cluster_distances(X, cluster(X, y)))
    assert [(label, other) for label, other, _ in result.nearest()] == [("a", "b"), ("b", "c"), ("c", "d"), ("d", "c")]
    assert result.minimum() == pytest.approx([93, 4, 3, 3])


def test_one_label_has_no_nearest_one() -> None:
    X = [[0.0], [1.0]]
    result = label_distances(cluster_distances(X, cluster(X, ["a", "a"])))
    assert result.values.tolist() == [[0.0]]
    assert result.nearest()[0][:2] == ("a", None)
    assert np.isnan(result.minimum()).all()


def test_many_rows_in_conflict_count_each_in_the_mean() -> None:
    X, y = [[0.0], [0.0], [0.0], [0.0], [8.0]], list("aaabb")
    result = label_distances(cluster_distances(X, cluster(X, y)))  # a: three single rows; b: one there, one at 8
    assert result.values[0, 1] == pytest.approx(4.0, rel=1e-6)
    least = label_distances(cluster_distances(X, cluster(X, y)), statistic="min")
    assert least.values[0, 1] == 0.0


# Inside


@each_set
def test_within_cluster_distances_match_scipy(name: str) -> None:
    X, _ = SETS[name]
    result = within_cluster_distances(X, of_set(name))
    for number, rows in enumerate(of_set(name).members()):
        pairs = pdist(X[rows].astype(np.float64)) if len(rows) > 1 else np.zeros(1)
        assert result.mean[number] == pytest.approx(pairs.mean(), rel=1e-9, abs=1e-9 * result.radius)
        assert result.maximum[number] == pytest.approx(pairs.max(), rel=1e-9, abs=1e-9 * result.radius)
    assert result.radius == pytest.approx(rms_radius(X), rel=1e-9)


def test_within_cluster_distances_of_near_duplicates_far_from_the_origin_keep_their_digits() -> None:
    rng = np.random.default_rng(1)
    X = np.repeat(rng.standard_normal((3, 4)), 30, axis=0) + 2.0**-24 * rng.integers(-8, 9, (90, 4))
    X = np.round(X * 2**24) / 2**24  # so that the offset costs no digits
    result = within_cluster_distances(X + 2.0**20, cluster(X + 2.0**20, ["a"] * 90))
    assert result.mean == pytest.approx([pdist(X).mean()], rel=1e-9)
    X = X[:30]  # nothing but the near-duplicates
    result = within_cluster_distances(X + 2.0**20, cluster(X + 2.0**20, ["a"] * 30))
    assert result.mean == pytest.approx([pdist(X).mean()], rel=1e-9)
    assert result.maximum == pytest.approx([pdist(X).max()], rel=1e-9)


def test_within_cluster_distances_of_a_narrow_cluster_keep_their_digits() -> None:
    X = np.random.default_rng(3).standard_normal((60, 3))
    X[:30] = 5 + 1e-4 * X[:30]  # far from the mean of the space, too wide to count as duplicates
    result = within_cluster_distances(X, cluster(X, np.repeat(["a", "b"], 30)))
    assert result.mean[0] == pytest.approx(pdist(X[:30]).mean(), rel=1e-11)


def test_within_cluster_distances_of_a_large_cluster_match_scipy() -> None:
    X = np.random.default_rng(2).standard_normal((1500, 3))
    X[::7] = X[0]
    result = within_cluster_distances(X, cluster(X, np.zeros(1500, int)))
    assert result.mean == pytest.approx([pdist(X).mean()], rel=1e-12)
    assert result.maximum == pytest.approx([pdist(X).max()], rel=1e-12)


def test_a_single_row_has_no_extent() -> None:
    result = within_cluster_distances([[5.0, 5.0], [1.0, 2.0]], cluster([[5.0, 5.0], [1.0, 2.0]], ["a", "b"]))
    assert result.mean.tolist() == result.maximum.tolist() == [0.0, 0.0]


# What geometry promises


MOVES = {
    "rotation": (lambda X: X @ rotation(np.random.default_rng(5), X.shape[1]), 1.0),
    "translation": (lambda X: X + 100.0, 1.0),
    "shrinking": (lambda X: X * 1e-7, 1e-7),
    "stretching": (lambda X: X * 3e7, 3e7),
    "denormals": (lambda X: X * 1e-303, 1e-303),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("name", ["touching_blobs-3d-0", "random_labels-4d-0", "blobs-8d-0"])
def test_distances_move_with_the_space(name: str, move: str) -> None:
    X, y = SETS[name]
    change, factor = MOVES[move]
    moved = change(X)
    clustering, moved_clustering = of_set(name), cluster(moved, y)
    before = label_distances(cluster_distances(X, clustering))
    after = label_distances(cluster_distances(moved, moved_clustering))
    assert after.values == pytest.approx(before.values * factor, rel=1e-5, abs=0)
    assert after.relative == pytest.approx(before.relative, rel=1e-5, abs=0)
    inside, moved_inside = within_cluster_distances(X, clustering), within_cluster_distances(moved, moved_clustering)
    assert moved_inside.mean == pytest.approx(inside.mean * factor, rel=1e-9, abs=0)


def test_the_number_of_threads_changes_nothing() -> None:
    X, _ = SETS["crowded-0"]
    clustering = cluster(*SETS["crowded-0"])
    one, three = (cluster_distances(X, clustering, threads=threads) for threads in (1, 3))
    assert np.array_equal(one.lower, three.lower, equal_nan=True)
    assert np.array_equal(one.upper, three.upper, equal_nan=True)


# What is refused


@pytest.mark.parametrize(
    ("rows", "options", "text"),
    [
        (29, {}, "X has 29 rows; expected the 30 that were clustered"),
        (30, {"min_points": 0}, "min_points is 0; expected at least 1"),
        (30, {"gap": 0.0}, "gap is 0.0; expected a relative gap between 0 and 1"),
        (30, {"gap": 1.0}, "gap is 1.0; expected a relative gap between 0 and 1"),
        (30, {"threads": 0}, "threads is 0; expected at least 1"),
    ],
)
def test_cluster_distances_refuses_bad_input(rows: int, options: dict[str, Any], text: str) -> None:
    X, _ = SETS["touching_blobs-2d-0"]
    with pytest.raises(InputError, match=text):
        cluster_distances(X[:rows], of_set("touching_blobs-2d-0"), **options)


def test_an_unknown_statistic_is_refused() -> None:
    X, _ = SETS["touching_blobs-2d-0"]
    distances = cluster_distances(X, of_set("touching_blobs-2d-0"))
    with pytest.raises(InputError, match="statistic is 'median'; expected 'mean' or 'min'"):
        label_distances(distances, statistic="median")  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [2, 4])
def test_within_cluster_distances_of_different_rows_are_refused(rows: int) -> None:
    result = cluster([[0.0], [1.0], [2.0]], list("aab"))
    with pytest.raises(InputError, match=f"X has {rows} rows; expected the 3 that were clustered"):
        within_cluster_distances(np.zeros((rows, 1)), result)

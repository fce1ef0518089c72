"""Each query gets its nearest hull, at the distance of the plain implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from closerlook.geometry import cluster, hull_distances, nearest, nearest_hulls
from tests.geometry.plain import plain_distance
from tests.geometry.test_twin import SETS

Points = NDArray[np.float64]
Hulls = list[NDArray[np.int64]]

SQUARE = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
TRIANGLE = np.array([[5.0, 0.0], [7.0, 0.0], [5.0, 2.0]])


def shapes() -> tuple[Points, Hulls]:
    """A square, a triangle and the single point (1, 9)."""
    return np.vstack([SQUARE, TRIANGLE, [[1.0, 9.0]]]), [np.arange(4), np.arange(4, 7), np.array([7])]


def random_hulls(seed: int, d: int) -> tuple[Points, Hulls, Points]:
    rng = np.random.default_rng([seed, d])
    sizes = rng.integers(1, 15, 4)
    X = np.vstack([rng.standard_normal((size, d)) + 3 * rng.standard_normal(d) for size in sizes])
    members = np.split(rng.permutation(len(X)), np.cumsum(sizes)[:-1])
    return X, [np.sort(rows) for rows in members], 2 * rng.standard_normal((15, d))


def plain_distances(X: NDArray[Any], members: Hulls, queries: NDArray[Any]) -> Points:
    return np.array([[plain_distance(query[None], X[rows]) for rows in members] for query in queries])


@pytest.fixture(params=["inner products", "coordinates"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to compute a distance: from inner products, and from coordinates for large hulls."""
    if request.param == "coordinates":
        monkeypatch.setattr(nearest, "GRAM_BYTES", 0)
    return str(request.param)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("query", "hull", "distances"),
    [
        ([1.0, 1.0], 0, [0.0, 4.0, 8.0]),
        ([2.0, 2.0], 0, [0.0, 3.0, 50**0.5]),
        ([4.0, 1.0], 1, [2.0, 1.0, 73**0.5]),
        ([7.0, 2.0], 1, [5.0, 2**0.5, 85**0.5]),
        ([1.0, 9.0], 2, [7.0, 65**0.5, 0.0]),
        ([0.0, 8.0], 2, [6.0, 61**0.5, 2**0.5]),
    ],
)
def test_distances_match_worked_examples(query: list[float], hull: int, distances: list[float]) -> None:
    X, members = shapes()
    assert hull_distances(X, members, [query])[0] == pytest.approx(distances, rel=1e-6, abs=1e-9)
    winner, distance = nearest_hulls(X, members, [query])
    assert winner.tolist() == [hull]
    assert distance == pytest.approx([distances[hull]], rel=1e-6, abs=1e-9)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("d", [1, 2, 4, 9, 30])
@pytest.mark.parametrize("seed", range(3))
def test_distances_match_the_plain_implementation(seed: int, d: int) -> None:
    X, members, queries = random_hulls(seed, d)
    expected = plain_distances(X, members, queries)
    assert hull_distances(X, members, queries) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    winner, distance = nearest_hulls(X, members, queries)
    assert distance == pytest.approx(expected.min(axis=1), rel=1e-5, abs=1e-6)
    assert expected[np.arange(len(queries)), winner] == pytest.approx(expected.min(axis=1), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_path_for_large_hulls_gives_the_same(offset: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    X, members = rng.standard_normal((300, 6)) + offset, np.split(np.arange(300), [120, 130, 299])
    queries = 1.5 * rng.standard_normal((100, 6)) + offset
    some, all_distances = nearest_hulls(X, members, queries), hull_distances(X, members, queries)
    monkeypatch.setattr(nearest, "GRAM_BYTES", 0)
    others = nearest_hulls(X, members, queries)
    assert others[0].tolist() == some[0].tolist()
    assert others[1] == pytest.approx(some[1], rel=1e-6, abs=1e-6)
    assert hull_distances(X, members, queries) == pytest.approx(all_distances, rel=1e-6, abs=1e-6)


def test_hulls_that_fit_one_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, members, queries = random_hulls(1, 4)
    expected = nearest_hulls(X, members, queries)[0].tolist()
    monkeypatch.setattr(nearest, "GRAM_BYTES", 8 * max(map(len, members)) ** 2)
    assert nearest_hulls(X, members, queries)[0].tolist() == expected


@pytest.mark.usefixtures("path")
def test_inside_a_hull_the_distance_is_zero() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    weights = rng.dirichlet(np.ones(60), 40)
    winner, distance = nearest_hulls(X, [np.arange(60), np.array([0])], weights @ X)
    assert distance.max() < 1e-8
    assert winner.tolist() == [0] * 40


@pytest.mark.usefixtures("path")
def test_the_first_of_equally_near_hulls_wins() -> None:
    X = np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]])
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]):
        hulls = [np.array([row]) for row in order]
        winner, distance = nearest_hulls(X, hulls, [[0.0, 0.0], [5.0, 5.0]])
        assert winner.tolist() == [0, min(order.index(0), order.index(2))]
        assert distance == pytest.approx([1.0, 41**0.5])


@pytest.mark.usefixtures("path")
def test_the_first_of_equally_near_hulls_wins_even_if_the_second_has_the_nearer_corner() -> None:
    X = np.array([[-3.0, 1.0], [3.0, 1.0], [0.0, -1.0]])
    assert nearest_hulls(X, [np.array([0, 1]), np.array([2])], [[0.0, 0.0]])[0].tolist() == [0]


@pytest.mark.usefixtures("path")
def test_the_first_of_two_hulls_that_contain_a_point_wins() -> None:
    X = np.array([[0.0], [4.0], [1.0], [9.0]])
    for hulls in ([[0, 1], [2, 3]], [[2, 3], [0, 1]]):
        winner, distance = nearest_hulls(X, [np.array(rows) for rows in hulls], [[2.0], [3.0], [4.0]])
        assert winner.tolist() == [0, 0, 0]
        assert distance.max() < 1e-8


@pytest.mark.parametrize(
    "name",
    ["touching_blobs-2d-0", "random_labels-3d-0", "distinct_grid-2d-0", "rings-3d-0", "crowded-0", "far_away-2d-0"],
)
def test_training_points_get_a_cluster_of_their_label(name: str) -> None:
    X, y = SETS[name]
    result = cluster(X, y)
    winner, distance = nearest_hulls(X, result.members(), X)
    assert result.cluster_codes[winner].tolist() == result.cluster_codes[result.assignments].tolist()
    assert (winner <= result.assignments).all()  # clusters of one label may overlap: the first that holds the point
    assert distance.max() <= 1e-8 * result.radius + 1e-9


def test_a_row_in_conflict_gets_the_first_of_its_clusters() -> None:
    X, y = np.array([[0.0], [0.0], [9.0]]), list("bab")
    winner, distance = nearest_hulls(X, cluster(X, y).members(), X)
    assert winner.tolist() == [0, 0, 2]
    assert distance.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("far", [1e3, 1e15, 1e30])
def test_queries_far_outside_have_their_distance(far: float) -> None:
    X, members = shapes()
    queries = np.array([[far, 1.0], [1.0, far], [-far, 1.0]])
    result = hull_distances(X, members, queries)
    assert result[:, 0] == pytest.approx([far - 2, far - 2, far], rel=1e-6)
    assert nearest_hulls(X, members, queries)[1] == pytest.approx(result.min(axis=1), rel=1e-6)


@pytest.mark.usefixtures("path")
def test_queries_outside_find_the_hull_that_is_nearer_by_little() -> None:
    assert nearest_hulls(*shapes(), [[1e4, 1.0], [-1e4, 1.0], [1.0, 1e4]])[0].tolist() == [1, 0, 2]


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("far", [1e20, 1e29])
def test_queries_far_beyond_all_points_find_their_hull(far: float) -> None:
    winner, distance = nearest_hulls([[1.0], [2.0]], [np.array([0]), np.array([1])], [[-far]])
    assert winner.tolist() == [0]
    assert distance == pytest.approx([far])


@pytest.mark.usefixtures("path")
def test_single_points_are_hulls() -> None:
    rng = np.random.default_rng(2)
    X, queries = rng.standard_normal((20, 5)), rng.standard_normal((30, 5))
    expected = np.linalg.norm(queries[:, None] - X, axis=2)
    members = [np.array([row]) for row in range(20)]
    assert hull_distances(X, members, queries) == pytest.approx(expected, rel=1e-6)
    assert nearest_hulls(X, members, queries)[0].tolist() == expected.argmin(axis=1).tolist()


@pytest.mark.usefixtures("path")
def test_a_space_of_one_place_has_distances() -> None:
    winner, distance = nearest_hulls(np.full((4, 2), 3.0), [np.arange(4)], [[3.0, 3.0], [6.0, 7.0]])
    assert winner.tolist() == [0, 0]
    assert distance == pytest.approx([0.0, 5.0])


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("power", [-900, 900])
def test_distances_follow_the_scale(power: int) -> None:
    X, members, queries = random_hulls(0, 3)
    plain = hull_distances(X, members, queries)
    assert (
        hull_distances(np.ldexp(X, power), members, np.ldexp(queries, power)).tolist()
        == np.ldexp(plain, power).tolist()
    )


def test_the_number_of_threads_changes_nothing() -> None:
    X, members, queries = random_hulls(2, 6)
    one, three = (nearest_hulls(X, members, queries, threads=threads) for threads in (1, 3))
    assert one[0].tolist() == three[0].tolist()
    assert one[1].tolist() == three[1].tolist()


@pytest.mark.parametrize("call", [nearest_hulls, hull_distances])
def test_progress_grows_to_its_total(call: Any) -> None:
    X, members, queries = random_hulls(3, 2)
    seen: list[tuple[int, int]] = []
    call(X, members, queries, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len({total for _, total in seen}) == 1
    assert seen[-1][0] == seen[-1][1]


@pytest.mark.usefixtures("path")
def test_a_far_query_does_not_change_the_others() -> None:
    X, members, queries = random_hulls(0, 3)
    with_stranger = np.vstack([queries, np.full((1, 3), 1e14)])
    assert hull_distances(X, members, with_stranger)[:-1].tolist() == hull_distances(X, members, queries).tolist()

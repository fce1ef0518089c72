"""Clusters have one label and disjoint hulls, a history that can be replayed, and ignore irrelevant changes."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from closerlook.geometry import Clustering, audit, cluster, kernels, separate
from tests.geometry.plain import plain_cluster, rms_radius
from tests.geometry.test_blocked_merges import check_witnesses, of_set, random_space
from tests.geometry.test_twin import SETS, groups

Points = NDArray[np.float64]

each_set = pytest.mark.parametrize("name", [name for name in SETS if name.endswith("-0")])


def assignments(X: Any, y: Any, **options: Any) -> list[int]:
    result = cluster(X, y, **options)
    assert result.n_undecided == 0
    return [int(number) for number in result.assignments]


# What the result says


@each_set
def test_clusters_are_pure_and_numbered_by_their_smallest_row(name: str) -> None:
    _, y = SETS[name]
    result = of_set(name)
    assert result.labels == tuple(sorted(set(y.tolist())))
    assert [result.cluster_labels[number] for number in result.assignments] == y.tolist()
    firsts = [int(rows[0]) for rows in result.members()]
    assert firsts == sorted(firsts)
    assert [len(rows) for rows in result.members()] == result.sizes.tolist()
    assert sorted(np.concatenate(result.members()).tolist()) == list(range(len(y)))
    assert result.n_clusters == len(result.sizes) == len(result.cluster_codes)
    assert result.n_labels == len(result.labels)


@each_set
def test_a_space_is_linear_exactly_if_all_pairs_of_labels_are_separable(name: str) -> None:
    X, y = SETS[name]
    result = of_set(name)
    pairs = combinations(result.labels, 2)
    separable = all(separate(X[y == a], X[y == b], scale=result.radius, gap=None).is_separable for a, b in pairs)
    assert result.is_separable == (result.n_clusters == result.n_labels)
    if len(result.conflicts) == 0:
        assert result.is_separable == separable
    else:
        assert not separable


@each_set
def test_labels_that_are_whole_have_one_cluster_and_no_history(name: str) -> None:
    _, y = SETS[name]
    result = of_set(name)
    frozen = set(result.conflicts.tolist())
    for label in result.whole:
        rows = [row for row in np.flatnonzero(y == label).tolist() if row not in frozen]
        assert len(set(result.assignments[rows].tolist())) <= 1
        assert not np.isin(result.merges["first"], rows).any()


@each_set
def test_the_radius_is_the_root_mean_square_one(name: str) -> None:
    X, _ = SETS[name]
    assert of_set(name).radius == pytest.approx(rms_radius(X), rel=1e-9, abs=1e-14)


@each_set
def test_replaying_the_history_gives_the_clusters(name: str) -> None:
    replay(*SETS[name], of_set(name))


@pytest.mark.parametrize(("n", "d", "labels"), [(300, 6, 3), (400, 2, 2), (250, 20, 5), (400, 1, 3)])
def test_replaying_the_history_of_a_larger_space_gives_the_clusters(n: int, d: int, labels: int) -> None:
    X, y = random_space(n, d, labels)
    X[: n // 10] = X[n // 10 : 2 * (n // 10)]  # identical rows, of one label or in conflict
    replay(X, y, cluster(X, y))


def replay(X: NDArray[Any], y: NDArray[Any], result: Clustering) -> None:
    """Replay the history; check that each merge joins two clusters of one label at the stated distance."""
    Z = np.asarray(X, dtype=np.float64) - np.asarray(X, dtype=np.float64).mean(axis=0)
    rows = np.flatnonzero(~np.isin(y, np.array(result.whole, dtype=y.dtype)))
    present = {int(row): [int(row)] for row in rows}
    for first, second, distance in result.merges.tolist():
        assert first < second
        a, b = present[first], present.pop(second)
        assert y[first] == y[second]
        expected = np.linalg.norm(Z[a].mean(axis=0) - Z[b].mean(axis=0))
        assert distance == pytest.approx(expected, rel=1e-9, abs=1e-9 * result.radius)
        present[first] = a + b
    expected = {frozenset(members) for members in present.values()}
    kept = np.isin(np.arange(len(y)), rows)
    assert expected == {frozenset(group.tolist()) for group in result.members() if kept[group[0]]}


def test_the_history_takes_the_closest_means_first() -> None:
    X, y = [[0.0], [1.0], [3.0], [10.0], [5.0], [30.0]], list("aaaaba")
    assert cluster(X, y).merges.tolist() == [(0, 1, 1.0), (0, 2, 2.5), (3, 5, 20.0)]


def test_of_equally_close_means_those_with_the_smallest_rows_merge_first() -> None:
    X, y = [[6.0], [2.0], [7.0], [1.0], [4.0]], list("aaaab")
    assert cluster(X, y).merges.tolist() == [(0, 2, 1.0), (1, 3, 1.0)]


def test_distances_of_means_that_differ_by_rounding_are_ties() -> None:
    X, y = np.array([[0.2], [0.6], [0.1], [0.7], [0.4]]), list("aaaab")
    assert abs(X[0, 0] - X[2, 0]) > abs(X[1, 0] - X[3, 0])
    assert [merge[:2] for merge in cluster(X, y).merges.tolist()] == [(0, 2), (1, 3)]


def test_rows_that_coincide_merge_first_and_count_in_the_mean() -> None:
    X, y = [[0.0], [0.0], [0.0], [4.0], [100.0], [50.0]], list("aaaaab")
    result = cluster(X, y)
    assert result.merges.tolist() == [(0, 1, 0.0), (0, 2, 0.0), (0, 3, 4.0)]
    X[5] = [200.0]
    assert cluster(X, y).whole == ("a", "b")


# Identical points


def test_conflicts_stay_alone_and_still_block_others() -> None:
    result = cluster([[-1.0], [0.0], [0.0], [1.0], [0.0], [0.0]], list("aabaab"))
    assert result.assignments.tolist() == [0, 1, 2, 3, 4, 5]
    assert result.conflicts.tolist() == [1, 2, 4, 5]


def test_a_conflict_blocks_a_third_label() -> None:
    X, y = [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 5.0]], list("ccaba")
    result = cluster(X, y)
    assert result.assignments.tolist() == [0, 1, 2, 3, 4]
    assert result.blocked_merge(0, 1).blocking_rows.tolist() in ([2], [3])


def test_a_conflict_outside_a_hull_does_not_block_it() -> None:
    X, y = [[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], list("aaab")
    result = cluster(X, y)
    assert result.assignments.tolist() == [0, 0, 1, 2]


def test_an_overlap_at_the_start_does_not_end_in_one_cluster_for_each_label() -> None:
    X, y = [[0.0], [0.0], [10.0], [11.0], [20.0], [21.0], [30.0]], list("abaabba")
    result = cluster(X, y)
    assert result.assignments.tolist() == [0, 1, 2, 2, 3, 3, 4]


def test_where_all_points_are_identical_each_is_alone() -> None:
    X, y = np.full((9, 4), 0.1), np.repeat([1, 2, 3], 3)
    result = cluster(X, y)
    assert result.assignments.tolist() == list(range(9))
    assert result.conflicts.tolist() == list(range(9))
    assert (result.radius, result.n_undecided, result.is_separable) == (0.0, 0, False)
    assert len(list(result.blocked_merges())) == 9


def test_where_all_points_are_identical_one_label_is_one_cluster() -> None:
    result = cluster(np.full((9, 4), 0.1), np.ones(9, int))
    assert result.assignments.tolist() == [0] * 9
    assert result.is_separable
    assert len(result.conflicts) == 0


def test_identical_points_of_one_label_are_in_one_cluster() -> None:
    X, y = random_space(120, 3, 3)
    X[60:] = X[:60]
    y[60:] = y[:60]
    result = cluster(X, y)
    assert result.assignments[60:].tolist() == result.assignments[:60].tolist()


def test_zeros_of_both_signs_are_in_conflict() -> None:
    assert cluster([[0.0, 1.0], [-0.0, 1.0]], ["a", "b"]).conflicts.tolist() == [0, 1]


# The same answer always


@pytest.mark.parametrize(("n", "d", "labels"), [(300, 6, 3), (400, 2, 2), (200, 40, 5)])
def test_the_number_of_threads_changes_nothing(n: int, d: int, labels: int) -> None:
    X, y = random_space(n, d, labels)
    one, *others = (cluster(X, y, threads=threads) for threads in (1, 2, 4))
    for other in others:
        assert other.assignments.tolist() == one.assignments.tolist()
        assert other.merges.tolist() == one.merges.tolist()
        assert other.whole == one.whole
        assert other.conflicts.tolist() == one.conflicts.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_changes_nothing_for_points_in_general_position(seed: int) -> None:
    X, y = random_space(300, 5, 3, seed)
    order = np.random.default_rng(seed).permutation(len(X))
    back = np.empty(len(X), int)
    back[order] = assignments(X[order], y[order])
    assert groups(back.tolist()) == groups(assignments(X, y))


def test_a_second_run_gives_the_same() -> None:
    X, y = random_space()
    assert assignments(X, y) == assignments(X.copy(), y.copy())


def test_the_input_is_not_modified() -> None:
    X, y = random_space(60, 3)
    before = X.copy(), y.copy()
    cluster(X, y)
    assert X.tolist() == before[0].tolist()
    assert y.tolist() == before[1].tolist()


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_the_layout_in_memory_changes_nothing(order: str) -> None:
    X, y = random_space(100, 4)
    laid = np.repeat(X, 2, axis=1)[:, ::2] if order == "strided" else np.array(X, order=order)
    assert assignments(laid, y) == assignments(X, y)


# Shapes and numbers of every kind


def test_one_label_is_one_cluster() -> None:
    result = cluster(np.random.default_rng(0).standard_normal((50, 3)), ["only"] * 50)
    assert result.assignments.tolist() == [0] * 50
    assert (result.whole, result.is_separable, result.n_undecided) == (("only",), True, 0)
    assert list(result.blocked_merges()) == []


def test_one_point_is_one_cluster() -> None:
    result = cluster([[3.0, 4.0]], ["a"])
    assert (result.assignments.tolist(), result.n_clusters, result.radius) == ([0], 1, 0.0)


def test_labels_with_one_point_are_clusters_and_block_others() -> None:
    result = cluster([[0.0], [1.0], [2.0], [9.0]], ["a", "lone", "a", "other"])
    assert result.assignments.tolist() == [0, 1, 2, 3]
    assert result.blocked_merge(0, 2).blocking == 1


def test_fewer_points_than_dimensions_are_linear_whatever_the_labels() -> None:
    rng = np.random.default_rng(1)
    result = cluster(rng.standard_normal((100, 150)), rng.integers(0, 4, 100))
    assert result.is_separable
    assert result.n_undecided == 0


def test_on_a_line_the_clusters_are_the_runs() -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 200)
    runs = np.r_[0, np.cumsum(np.diff(y) != 0)]
    X = np.sort(rng.random(200))[:, None]
    assert groups(assignments(X, y)) == groups(runs.tolist())


def test_constant_columns_change_nothing() -> None:
    X, y = random_space(150, 3)
    wider = np.c_[np.full(len(X), 0.1), X, np.full(len(X), -1e3)]
    assert assignments(wider, y) == assignments(X, y)


@pytest.mark.parametrize("offset", [1e3, 2.0**20, -(2.0**30)])
def test_a_common_offset_changes_nothing(offset: float) -> None:
    X, y = random_space(150, 3)
    X = np.round(X * 2**20) / 2**20  # so that the offset costs no digits
    assert assignments(X + offset, y) == assignments(X, y)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int16])
def test_numbers_of_any_kind_are_taken_at_their_value(kind: type) -> None:
    X, y = random_space(80, 2)
    X = (X * 20).astype(kind)
    result = cluster(X, y)
    assert result.assignments.tolist() == cluster(X.astype(np.float64), y).assignments.tolist()
    assert result.n_undecided == 0


@pytest.mark.parametrize("power", [-1060, -996, 996])
def test_a_power_of_two_changes_nothing(power: int) -> None:
    X, y = SETS["midpoints-0"]  # halves of whole numbers: exact among denormals too
    assert assignments(np.ldexp(X, power), y) == assignments(X, y)


def test_columns_of_very_different_scales_are_clustered() -> None:
    X, y = random_space(26, 3, 2)
    result = cluster(X * [1e9, 1.0, 1.0], y)
    assert result.n_undecided == 0
    assert result.assignments.tolist() == plain_cluster(X * [1e9, 1.0, 1.0], y).assignments.tolist()


# Labels


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["Nomen", "動詞", "Nomen", "ünï"], ("Nomen", "ünï", "動詞")),
        ([True, False, True, True], (False, True)),
        ([2.0, -1.0, 2.0, 7.0], (-1, 2, 7)),
        (np.array([3, 1, 3, 2], dtype=np.uint8), (1, 2, 3)),
        (np.array(["b", "a", "b", "c"], dtype=object), ("a", "b", "c")),
        (np.array([3, 1, 3, 2], dtype=object), (1, 2, 3)),
        (["", " ", "", "a"], ("", " ", "a")),
    ],
)
def test_labels_keep_their_values_and_are_sorted(labels: Any, expected: tuple[object, ...]) -> None:
    result = cluster([[0.0], [5.0], [1.0], [9.0]], labels)
    assert result.labels == expected
    assert [type(label) for label in result.labels] == [type(label) for label in expected]
    assert [result.cluster_labels[number] for number in result.assignments] == list(labels)


@pytest.mark.parametrize("kind", [None, object])
def test_labels_of_bytes_are_read_as_text(kind: type | None) -> None:
    labels = np.array(["b", "ü", "b", "a"]).astype(object)
    result = cluster([[0.0], [5.0], [1.0], [9.0]], np.array([label.encode() for label in labels], dtype=kind))
    assert result.labels == ("a", "b", "ü")
    assert [result.cluster_labels[number] for number in result.assignments] == labels.tolist()


# Progress


class Hurried:
    """The compiled library, with its merging interrupted after every step."""

    def __init__(self) -> None:
        self.library = kernels.library()

    def __getattr__(self, name: str) -> Any:
        if name == "greedy_run":
            return lambda greedy, _, finished: self.library.greedy_run(greedy, 0.0, finished)
        return getattr(self.library, name)


def reports(monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[int, int]], Clustering, Clustering]:
    X, y = random_space(600, 4, 3)
    X[y == 2] += 50  # a label that never takes part in the greedy
    plain = cluster(X, y)
    hurried, seen = Hurried(), []
    monkeypatch.setattr(kernels, "library", lambda: hurried)
    return seen, plain, cluster(X, y, progress=lambda done, total: seen.append((done, total)))


def test_progress_is_reported_and_never_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, plain, watched = reports(monkeypatch)
    assert len(seen) > 3
    assert all(0 <= done <= total for done, total in seen)
    shares = [round(done / total, 2) for done, total in seen]
    assert shares == sorted(shares)
    assert watched.assignments.tolist() == plain.assignments.tolist()


def test_the_total_of_the_progress_stays_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, _, _ = reports(monkeypatch)
    assert len({total for _, total in seen}) == 1


# Any small sets of whole numbers


@st.composite
def whole_spaces(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any]]:
    n, d = draw(st.integers(1, 16)), draw(st.integers(1, 5))
    X = draw(arrays(np.int64, (n, d), elements=st.integers(-3, 3)))
    return X, draw(arrays(np.int64, n, elements=st.integers(0, 3)))


@given(whole_spaces())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_clusters_of_whole_numbers_pass_the_audit(space: tuple[NDArray[Any], NDArray[Any]]) -> None:
    X, y = space
    result = cluster(X, y)
    assert result.n_undecided == 0
    assert [result.cluster_labels[number] for number in result.assignments] == y.tolist()
    assert audit(X, y, result).problems == ()


@given(whole_spaces())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_clusters_of_whole_numbers_have_witnesses_and_a_history(space: tuple[NDArray[Any], NDArray[Any]]) -> None:
    X, y = space
    result = cluster(X, y)
    check_witnesses(X, result)
    replay(X, y, result)


def test_rows_at_one_place_do_not_merge_within_tau_of_another_label() -> None:
    rng = np.random.default_rng(0)
    crowd, rest = rng.normal(size=(60, 8)) * 1e-8, rng.normal(size=(40, 8))
    X, y = np.vstack([crowd, crowd[:30], rest]), list("a" * 59 + "b" + "a" * 30 + "c" * 20 + "d" * 20)
    result = cluster(X, y)
    assert result.sizes[result.assignments[:90]].tolist() == [1] * 90
    assert audit(X, y, result).clean


def test_two_labels_at_one_place_are_not_separable() -> None:
    for X, y in (([[0.0], [0.0]], "ab"), ([[0.0, 0.0], [1e-8, 0.0], [5.0, 5.0], [5.0, 6.0], [9.0, 1.0]], "abccc")):
        result = cluster(X, list(y))
        assert result.n_clusters == result.n_labels
        assert not result.is_separable

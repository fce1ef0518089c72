"""Each row of the table against numbers worked out by hand on spaces of a few points."""

import base64
import json
import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from closerlook.encoders.source import EncoderInfo
from closerlook.probes import ProbeTraining, probe_grid
from closerlook.representations.space import Provenance, Space
from closerlook.study.kinds import geometry, tune
from closerlook.study.kinds.centroids import follow_centroids
from closerlook.study.kinds.classifier import classifier_rows
from closerlook.study.kinds.comparison import compare_spaces
from closerlook.study.kinds.geometry import measure_space
from closerlook.study.rows import Row, row
from closerlook.tuning.settings import TuningSettings
from closerlook.tuning.tuned import Snapshot, TuningResult

SETTINGS: dict[str, Any] = {"tau": 1e-6, "min_points": 1, "statistic": "mean", "distances": True, "threads": 1}


def space(points: list[list[float]], labels: list[str], words: list[str] | None = None) -> Space:
    names = tuple(sorted(set(labels)))
    y = np.array([names.index(label) for label in labels], dtype=np.int32)
    named = None if words is None else np.array(words)
    return Space(np.array(points, dtype=np.float32), y, names, Provenance(), named)


def measured(one: Space, **changes: Any) -> tuple[list[Row], dict[str, Any]]:
    return measure_space(one, [f"sentence {i}" for i in range(one.n)], **(SETTINGS | changes))


def only(rows: list[Row], measure: str, **where: Any) -> Row:
    found = [one for one in rows if one["measure"] == measure and where.items() <= one.items()]
    assert len(found) == 1, (measure, where, found)
    return found[0]


def value(rows: list[Row], measure: str, **where: Any) -> Any:
    return only(rows, measure, **where)["value"]


# a and b are columns three apart, c is four to the right of a at the same height
THREE = space([[0, 0], [0, 1], [3, 0], [3, 1], [-4, 0], [-4, 1]], ["a", "a", "b", "b", "c", "c"])
# a stands on both sides of b
CROSSED = space([[0, 0], [2, 0], [1, 0]], ["a", "a", "b"], ["left", "right", "middle"])


# ---- one space ----


def test_counts_of_a_separable_space() -> None:
    rows, _ = measured(THREE)
    counts = {"n_points": 6, "n_dimensions": 2, "n_labels": 3, "n_clusters": 3, "is_separable": 1.0, "n_conflicts": 0}
    assert {name: value(rows, name) for name in counts} == counts
    assert value(rows, "n_undecided") == 0
    assert [only(rows, "label_clusters", label=label)["n"] for label in "abc"] == [2, 2, 2]
    assert [value(rows, "label_clusters", label=label) for label in "abc"] == [1, 1, 1]
    assert not [one for one in rows if one["measure"] == "blocked_merge"]


def test_the_radius_is_the_root_mean_square_distance_from_the_mean() -> None:
    rows, _ = measured(THREE)
    X = THREE.X.astype(np.float64)
    assert value(rows, "rms_radius") == pytest.approx(math.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()))


def test_distances_of_labels_and_to_the_nearest() -> None:
    rows, _ = measured(THREE)
    assert value(rows, "label_distance", label="a", other="b") == pytest.approx(3)
    assert value(rows, "label_distance", label="a", other="c") == pytest.approx(4)
    assert value(rows, "label_distance", label="b", other="c") == pytest.approx(7)
    nearest = [(label, other, d) for label, other, d in (("a", "b", 3), ("b", "a", 3), ("c", "a", 4))]
    radius = value(rows, "rms_radius")
    for label, other, distance in nearest:
        assert value(rows, "minimum_distance", label=label, other=other) == pytest.approx(distance)
        assert value(rows, "relative_minimum_distance", label=label) == pytest.approx(distance / radius)
    assert value(rows, "mean_minimum_distance") == pytest.approx(10 / 3)
    assert value(rows, "mean_relative_minimum_distance") == pytest.approx(10 / 3 / radius)


def test_a_label_in_two_clusters_makes_the_space_non_linear() -> None:
    rows, _ = measured(CROSSED)
    assert value(rows, "n_clusters") == 3
    assert value(rows, "is_separable") == 0.0
    assert value(rows, "label_clusters", label="a") == 2
    assert value(rows, "label_distance", label="a", other="b") == pytest.approx(1)


def test_a_point_with_two_labels_is_a_conflict() -> None:
    rows, _ = measured(space([[0, 0], [0, 0], [1, 0]], ["a", "b", "b"]))
    assert value(rows, "n_conflicts") == 2


def test_what_min_points_leaves_out_is_listed() -> None:
    rows, _ = measured(CROSSED, min_points=2)
    assert value(rows, "n_excluded_clusters", label="a") == 2
    assert value(rows, "n_excluded_clusters", label="b") == 1
    assert value(rows, "label_distance", label="a", other="b") is None
    assert not [one for one in rows if one["measure"] == "mean_minimum_distance"]


def test_the_minimum_over_pairs_of_clusters_is_an_option() -> None:
    one = space([[0, 0], [5, 0], [1, 0]], ["a", "a", "b"])
    assert value(measured(one)[0], "label_distance", label="a") == pytest.approx(2.5)
    assert value(measured(one, statistic="min")[0], "label_distance", label="a") == pytest.approx(1)


def test_distances_are_left_out_where_they_are_not_asked_for_or_there_is_one_label() -> None:
    for rows, payload in (measured(THREE, distances=False), measured(space([[0, 0], [1, 0]], ["a", "a"]))):
        assert not [one for one in rows if "distance" in one["measure"]]
        assert "distances" not in payload


def test_a_blocker_names_the_words_and_sentences_that_keep_clusters_apart() -> None:
    rows, _ = measured(CROSSED)
    told = only(rows, "blocked_merge")
    assert (told["label"], told["other"], told["n"], told["value"]) == ("a", "b", 2, None)
    text = json.loads(told["text"])
    assert {(one["word"], one["text"]) for one in text["points"]} == {
        ("left", "sentence 0"),
        ("right", "sentence 1"),
    }
    assert [one["weight"] for one in text["points"]] == [0.5, 0.5]
    (blocking,) = text["blocker_points"]
    assert (blocking["row"], blocking["word"], blocking["text"], blocking["weight"]) == (2, "middle", "sentence 2", 1.0)
    assert text["sizes"] == [1, 1]
    assert text["blocker_size"] == 1


def test_blockers_are_told_of_the_largest_clusters_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry, "MOST_BLOCKED_MERGES", 1)
    one = space([[0, 0], [0, 1], [2, 0], [2, 1], [4, 0], [1, 0], [1, 1], [3, 0], [3, 1]], list("aaaaabbbb"))
    rows, _ = measured(one)
    told = [json.loads(row["text"])["sizes"] for row in rows if row["measure"] == "blocked_merge"]
    assert told == [[2, 2]]


def test_thelargest_pairs_are_those_of_a_plain_sort() -> None:
    rng = np.random.default_rng(0)
    codes, sizes = rng.integers(0, 4, 60), rng.integers(1, 6, 60)

    def smaller_and_larger(pair: tuple[int, int]) -> tuple[int, int]:
        first, second = sorted(sizes[list(pair)].tolist())
        return first, second

    members = [np.flatnonzero(codes == code).tolist() for code in range(4)]
    pairs = [pair for clusters in members for pair in combinations(clusters, 2)]
    expected = sorted(pairs, key=smaller_and_larger, reverse=True)  # stable: ties stay in order
    assert geometry.largest_pairs(codes, sizes, 40) == expected[:40]
    assert geometry.largest_pairs(np.arange(3), np.ones(3, dtype=np.int64), 40) == []


def test_a_space_without_words_has_blockers_all_the_same() -> None:
    one = space([[0, 0], [2, 0], [1, 0]], ["a", "a", "b"])
    rows, _ = measure_space(one, [], **SETTINGS)
    text = json.loads(only(rows, "blocked_merge")["text"])
    assert {one["word"] for one in text["points"]} == {None}
    assert {one["text"] for one in text["points"]} == {None}


def test_what_is_kept_for_comparisons_is_centroids_and_distances() -> None:
    _, payload = measured(THREE)
    assert payload["labels"] == ["a", "b", "c"]
    assert np.frombuffer(base64.b64decode(payload["centroids"]), "<f4").tolist() == [0, 0.5, 3, 0.5, -4, 0.5]
    assert np.allclose(payload["distances"]["values"], [[0, 3, 4], [3, 0, 7], [4, 7, 0]])
    assert payload["distances"]["separable"] is True
    json.dumps(payload, allow_nan=False)


def test_labels_with_few_points_are_flagged_and_all_have_the_share_of_their_largest_cluster() -> None:
    one = space([[float(at), 0] for at in range(6)] + [[10, 0]], ["a", "a", "b", "a", "a", "a", "c"])
    rows, _ = measured(one)
    shares = {one["label"]: one["value"] for one in rows if one["measure"] == "largest_cluster_share"}
    assert shares == {"a": pytest.approx(3 / 5), "b": 1.0, "c": 1.0}
    assert value(rows, "mean_largest_cluster_share") == pytest.approx(13 / 15)
    few = {one["label"]: (one["value"], one["text"]) for one in rows if one["measure"] == "few_points"}
    reason = "only 1 point (fewer than 5): unreliable"
    assert few == {"b": (1, reason), "c": (1, reason)}


def test_resampled_examples_give_distances_intervals_and_are_kept_for_comparisons() -> None:
    rng = np.random.default_rng(0)
    centres = {"a": 0.0, "b": 9.0, "c": 30.0}
    points = [[centre + x, y] for centre in centres.values() for x, y in rng.normal(size=(20, 2)).tolist()]
    one = space(points, [label for label in centres for _ in range(20)])
    rows, payload = measured(one, resamples=20)
    for found in (only(rows, "minimum_distance", label="a"), only(rows, "mean_minimum_distance")):
        assert found["ci_low"] < found["value"] < found["ci_high"]
    assert value(rows, "mean_minimum_distance_bias") > 0  # hulls of halves lie farther apart
    assert len(payload["distances"]["replicates"]) == 20
    assert all(len(replicate) == 3 for replicate in payload["distances"]["replicates"])
    sure = compare_spaces(payload, payload, permutations=0, resamples=0)
    assert value(sure, "similarity_over_examples") == pytest.approx(1)
    assert "ci_low" not in only(measured(one)[0], "mean_minimum_distance")


def test_what_is_not_a_number_is_none_and_what_is_numpy_is_plain() -> None:
    one = row("m", float("nan"), n=np.int64(3), ci_low=np.float32("inf"), label="a", other=None)
    assert one == {"measure": "m", "value": None, "n": 3, "ci_low": None, "label": "a"}
    assert type(one["n"]) is int
    assert row("m", 2.0) == {"measure": "m", "value": 2.0}


# ---- two spaces ----


def kept(
    labels: str,
    values: list[list[float | None]],
    separable: bool = True,
    replicates: list[list[float | None]] | None = None,
) -> dict[str, Any]:
    """replicates: of each, the distances of the pairs of labels in order."""
    held = {"values": values, "separable": separable, "radius": 1.0, "replicates": replicates or []}
    return {"labels": list(labels), "distances": held}


def test_changes_are_counted_up_and_down_with_their_mean() -> None:
    before = kept("abcd", [[0, 1, 5, 9], [1, 0, 5, 9], [5, 5, 0, 2], [9, 9, 2, 0]])
    after = kept("abcd", [[0, 3, 5, 9], [3, 0, 4, 9], [5, 4, 0, 1.5], [9, 9, 1.5, 0]])
    rows = compare_spaces(before, after, permutations=0, resamples=0)
    # the nearest of a and b goes from 1 to 3, that of c and d from 2 to 1.5
    changes = {one["label"]: one["value"] for one in rows if one["measure"] == "minimum_distance_change"}
    assert changes == {"a": 2, "b": 2, "c": -0.5, "d": -0.5}
    assert (value(rows, "n_labels_increased"), value(rows, "n_labels_decreased")) == (2, 2)
    mean = only(rows, "mean_minimum_distance_change")
    assert (mean["value"], mean["n"]) == (pytest.approx(0.75), 4)


def test_a_space_beside_itself_changes_nothing_and_is_alike() -> None:
    _, one = measured(THREE)
    rows = compare_spaces(one, one, permutations=99, resamples=50)
    similar = only(rows, "similarity")
    assert similar["value"] == pytest.approx(1)
    assert similar["n"] == 3
    assert value(rows, "similarity_spearman") == pytest.approx(1)
    assert value(rows, "similarity_both_separable") == 1.0
    assert (value(rows, "n_labels_increased"), value(rows, "n_labels_decreased")) == (0, 0)
    assert value(rows, "mean_minimum_distance_change") == 0


def test_similarity_is_the_correlation_of_the_distances_with_its_interval_and_p_value() -> None:
    a = kept("abcd", [[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]])
    b = kept("abcd", [[0, 2, 1, 3], [2, 0, 4, 6], [1, 4, 0, 5], [3, 6, 5, 0]], separable=False)
    rows = compare_spaces(a, b, permutations=99, resamples=100)
    expected = np.corrcoef([1, 2, 3, 4, 5, 6], [2, 1, 3, 4, 6, 5])[0, 1]
    similar = only(rows, "similarity")
    assert similar["value"] == pytest.approx(expected)
    assert similar["ci_low"] <= similar["value"] <= similar["ci_high"]
    assert 0 < value(rows, "similarity_p_value") <= 1
    assert value(rows, "similarity_both_separable") == 0.0
    assert not [one for one in rows if one["measure"] == "similarity_excluded_labels"]


def test_labels_of_one_side_only_are_left_out_and_listed() -> None:
    a = kept("abcd", [[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]])
    b = kept("bcde", [[0, 4, 5, 1], [4, 0, 6, 1], [5, 6, 0, 1], [1, 1, 1, 0]])
    rows = compare_spaces(a, b, permutations=0, resamples=0)
    told = only(rows, "similarity_excluded_labels")
    assert told["value"] == 2
    assert json.loads(told["text"])["excluded"] == ["a", "e"]
    assert value(rows, "similarity") == pytest.approx(1)
    assert {one["label"] for one in rows if one["measure"] == "minimum_distance_change"} == {"b", "c", "d"}


def test_changes_are_tested_for_each_label_and_corrected_for_their_number() -> None:
    # pairs ab, ac, bc; the nearest of a and b is their distance: halves scatter it by 0.1 before and after
    wobble = [[1 + 0.1 * (-1) ** at, 9, 9 + 0.2 * (-1) ** at] for at in range(20)]
    far = [[5 + 0.1 * (-1) ** (at // 2), 9, 9] for at in range(20)]
    before = kept("abc", [[0, 1, 9], [1, 0, 9], [9, 9, 0]], replicates=wobble)  # type: ignore[arg-type]
    after = kept("abc", [[0, 5, 9], [5, 0, 9], [9, 9, 0]], replicates=far)  # type: ignore[arg-type]
    rows = compare_spaces(before, after, permutations=0, resamples=0)
    p = {one["label"]: one["value"] for one in rows if one["measure"] == "minimum_distance_change_p_value"}
    assert p["a"] < 1e-3
    assert p["b"] < 1e-3
    assert p.get("c", 1.0) == 1.0
    assert (value(rows, "n_labels_significantly_increased"), value(rows, "n_labels_significantly_decreased")) == (2, 0)
    assert (
        only(rows, "n_labels_significantly_increased")["n"]
        == only(rows, "n_labels_significantly_decreased")["n"]
        == len(p)
    )
    alone = compare_spaces(kept("abc", [[0, 1, 9], [1, 0, 9], [9, 9, 0]]), after, permutations=0, resamples=0)
    assert not [
        one for one in alone if one["measure"] in {"minimum_distance_change_p_value", "similarity_over_examples"}
    ]


def test_the_null_of_a_similarity_is_told_beside_it() -> None:
    a = kept("abcd", [[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]])
    rows = compare_spaces(a, a, permutations=99, resamples=0)
    assert value(rows, "similarity_null_mean") == pytest.approx(-1 / 23, abs=0.1)  # of all 23 other orders
    assert 0 < value(rows, "similarity_null_sd") < 1
    assert only(rows, "similarity_null_mean")["n"] == 23


def test_a_label_without_distances_has_no_change() -> None:
    a = kept("abc", [[0, 1, None], [1, 0, None], [None, None, 0]])
    b = kept("abc", [[0, 2, 3], [2, 0, 4], [3, 4, 0]])
    rows = compare_spaces(a, b, permutations=0, resamples=0)
    assert {one["label"]: one["value"] for one in rows if one["measure"] == "minimum_distance_change"} == {
        "a": 1,
        "b": 1,
    }


def test_two_labels_have_a_change_but_no_similarity() -> None:
    rows = compare_spaces(kept("ab", [[0, 1], [1, 0]]), kept("ab", [[0, 3], [3, 0]]), permutations=9, resamples=9)
    assert only(rows, "similarity") == {"measure": "similarity", "value": None, "n": 2}
    assert value(rows, "mean_minimum_distance_change") == 2


# ---- along a run ----


def along(paths: NDArray[np.float64]) -> list[dict[str, Any]]:
    """paths: (steps, labels, d)."""
    names = [f"L{i}" for i in range(paths.shape[1])]
    return [at_a_step(names, one) for one in paths]


def at_a_step(names: list[str], centroids: NDArray[np.float64]) -> dict[str, Any]:
    return {"labels": names, "centroids": base64.b64encode(centroids.astype("<f4").tobytes()).decode()}


def series(rows: list[Row], axis: str, label: str) -> list[float]:
    return [one["value"] for one in rows if one["measure"] == f"centroid_{axis}" and one["label"] == label]


def test_paths_lie_in_one_basis_that_of_the_principal_components_of_all_centroids() -> None:
    paths = np.random.default_rng(0).normal(size=(4, 5, 7)) * np.linspace(3, 0.1, 7)
    rows = follow_centroids(along(paths), [0, 1, 10, 100])
    flat = paths.reshape(-1, 7)
    pca = PCA(2, svd_solver="full").fit(flat)
    for at, axis in enumerate("xy"):
        assert value(rows, f"path_explained_variance_{axis}") == pytest.approx(pca.explained_variance_ratio_[at])
        expected = pca.transform(flat)[:, at].reshape(4, 5)
        found = np.array([series(rows, axis, f"L{i}") for i in range(5)]).T
        sign = np.sign((found * expected).sum())
        assert np.allclose(found, sign * expected, atol=1e-5)  # centroids are kept in 32 bits
    assert [one["step"] for one in rows if one["measure"] == "centroid_x" and one["label"] == "L0"] == [0, 1, 10, 100]


def test_the_basis_points_the_way_its_largest_entry_does() -> None:
    paths = np.array([[[0.0, 0], [0, 1]], [[10, 0], [10, 1]]])  # two labels go ten to the right
    rows = follow_centroids(along(paths), [0, 5])
    assert series(rows, "x", "L0") == pytest.approx([-5, 5])
    assert series(rows, "y", "L1") == pytest.approx([0.5, 0.5])


def test_shifts_are_the_last_centroid_minus_the_first_in_components_of_their_own() -> None:
    start = np.zeros((3, 2))
    end = np.array([[3.0, 0], [1, 0], [0, 2]])
    rows = follow_centroids(along(np.stack([start, start + 50, end])), [0, 1, 2])
    assert [value(rows, "shift_length", label=f"L{i}") for i in range(3)] == pytest.approx([3, 1, 2])
    assert [value(rows, "shift_x", label=f"L{i}") for i in range(3)] == pytest.approx([3, 1, 0])
    assert [value(rows, "shift_y", label=f"L{i}") for i in range(3)] == pytest.approx([0, 0, 2])
    assert value(rows, "shift_explained_variance_x") == pytest.approx(10 / 14)  # not centred: 3² + 1² of 3² + 1² + 2²
    assert value(rows, "shift_explained_variance_y") == pytest.approx(4 / 14)


def test_one_common_shift_is_one_direction() -> None:
    start = np.random.default_rng(1).normal(size=(4, 6))
    rows = follow_centroids(along(np.stack([start, start + np.arange(6)])), [0, 9])
    assert value(rows, "shift_explained_variance_x") == pytest.approx(1)
    assert value(rows, "shift_explained_variance_y") == pytest.approx(0)


def test_labels_that_are_not_there_at_every_step_have_no_path() -> None:
    first = at_a_step(["a", "b"], np.array([[0.0, 0], [1, 1]]))
    second = at_a_step(["b"], np.array([[2.0, 2]]))
    rows = follow_centroids([first, second], [0, 1])
    assert {one["label"] for one in rows if "label" in one} == {"b"}


def test_centroids_that_never_move_are_no_division_by_zero() -> None:
    rows = follow_centroids(along(np.ones((2, 1, 1))), [0, 1])
    assert value(rows, "path_explained_variance_x") == 0
    assert value(rows, "shift_length", label="L0") == 0
    json.dumps(rows, allow_nan=False)


# ---- probes and fine-tunings ----


def test_the_rows_of_a_grid_are_its_chosen_network_the_grid_and_the_labels() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    result = probe_grid(
        (X[:160], y[:160]), (X[160:], y[160:]), sizes=[(), (16, 16)], seeds=3, training=ProbeTraining(max_rounds=8)
    )
    rows = classifier_rows(result)
    best = only(rows, "accuracy")
    assert best["value"] == pytest.approx(result.mean)
    assert best["text"] == "16×16"
    assert best["n"] == 80
    spread = np.std(result.accuracy[result.chosen], ddof=1)
    assert value(rows, "accuracy_sd") == pytest.approx(spread)
    half = 4.302652729911275 * spread / math.sqrt(3)  # Student's t with two degrees of freedom
    assert (best["ci_low"], best["ci_high"]) == (
        pytest.approx(best["value"] - half),
        pytest.approx(best["value"] + half),
    )
    assert {one["text"] for one in rows if one["measure"] == "grid_accuracy"} == {"linear", "16×16"}
    by_label = {one["label"]: (one["value"], one["n"]) for one in rows if one["measure"] == "label_accuracy"}
    assert {label: n for label, (_, n) in by_label.items()} == {
        label: int((y[160:] == label).sum()) for label in by_label
    }
    assert sum(right * n for right, n in by_label.values()) / 80 == pytest.approx(result.mean)
    assert value(rows, "majority_accuracy") == pytest.approx(
        np.mean(y[160:] == max(sorted(set(y[:160])), key=list(y[:160]).count))
    )
    assert value(rows, "n_unseen_labels") == 0


def test_one_seed_has_no_interval() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "a", "b")
    rows = classifier_rows(
        probe_grid((X[:40], y[:40]), (X[40:], y[40:]), sizes=[()], seeds=1, training=ProbeTraining(max_rounds=2))
    )
    best = only(rows, "accuracy")
    assert "ci_low" not in best
    assert best["text"] == "linear"


@dataclass(frozen=True)
class Kept:
    step: int
    loss: float
    accuracy: float


def test_a_fine_tuning_tells_how_its_head_does_at_each_snapshot() -> None:
    found = [Kept(0, 2.0, 0.1), Kept(5, 1.0, 0.6)]
    settings = TuningSettings(epochs=1, splits=["train"], layers=[0])
    snapshots = tuple(
        Snapshot(one.step, one.step / 5, "w", {"test": one.loss}, {"test": one.accuracy}) for one in found
    )
    run = TuningResult("e", "b", EncoderInfo(1, 2, 3, True, 4), 4, "t", "h", settings, snapshots, 5, 0.0, "cpu", {})
    assert tune.tuning_rows(run) == [
        {"measure": "head_accuracy", "value": 0.1, "split": "test", "step": 0, "epoch": 0.0},
        {"measure": "head_loss", "value": 2.0, "split": "test", "step": 0, "epoch": 0.0},
        {"measure": "head_accuracy", "value": 0.6, "split": "test", "step": 5, "epoch": 1.0},
        {"measure": "head_loss", "value": 1.0, "split": "test", "step": 5, "epoch": 1.0},
    ]
    with_nc3 = replace(run, snapshots=(snapshots[0], replace(snapshots[1], nc3=0.8)))
    assert tune.tuning_rows(with_nc3) == [
        *tune.tuning_rows(run),
        {"measure": "nc3_head", "value": 0.8, "split": "train", "step": 5, "epoch": 1.0},
    ]

"""Panel, nulls, split halves and point similarity on spaces whose numbers are known."""

import numpy as np
import pytest

from closerlook.geometry import describe_space
from closerlook.geometry.split_halves import split_similarity
from closerlook.representations.space import Provenance, Space
from closerlook.study.kinds.nulls import null_rows
from closerlook.study.kinds.panel import panel_rows
from closerlook.study.kinds.point_similarity import point_similarity_rows
from closerlook.study.kinds.split_halves import split_rows
from closerlook.study.rows import Row

NULLS = {"cluster_shuffles": 2, "points": 60, "tau": 1e-6, "min_points": 1}


def blobs(n: int = 40, d: int = 3, seed: int = 0) -> Space:
    rng = np.random.default_rng(seed)
    y = np.arange(4 * n, dtype=np.int32) % 4
    centres = np.array([[0, 0], [9, 0], [0, 20], [40, 40]])
    X = rng.normal(size=(4 * n, d)) + np.pad(centres, ((0, 0), (0, d - 2)))[y]
    return Space(X.astype(np.float32), y, ("a", "b", "c", "d"), Provenance())


def one_label() -> Space:
    return Space(np.ones((5, 2), np.float32), np.zeros(5, np.int32), ("a",), Provenance())


def values(rows: list[Row]) -> dict[str, float]:
    return {one["measure"]: one["value"] for one in rows}


def test_the_panel_is_that_of_the_geometry() -> None:
    space = blobs()
    rows = panel_rows(space, tau=1e-6)
    found = describe_space(space.X, space.label_names).flat()
    assert values(rows) == pytest.approx({name: found[name] for name in found if name != "largest_cluster_share"})
    assert {one["n"] for one in rows} == {160}


def test_each_pair_of_labels_that_overlap_says_how_many_points_would_have_to_go() -> None:
    X = np.array([[0.0], [1], [2], [3], [10], [11], [2.5], [20]], dtype=np.float32)
    space = Space(X, np.array([0, 0, 0, 0, 1, 1, 1, 2], dtype=np.int32), ("a", "b", "c"), Provenance())
    (pair,) = [one for one in panel_rows(space, tau=1e-6) if one["measure"] == "label_overlap"]
    assert (pair["label"], pair["other"], pair["n"], pair["value"]) == ("a", "b", 1, pytest.approx(1 / 7))


def test_true_labels_stand_out_from_shuffled_ones() -> None:
    found = values(null_rows(blobs(), shuffles=19, **NULLS))
    assert found["separable_pairs"] == 1.0
    assert found["separable_pairs_null_mean"] < 0.2
    assert found["separable_pairs_p_value"] == pytest.approx(1 / 20)
    assert found["separable_pairs_n_over_2d"] == pytest.approx(80 / 6)
    assert found["separable_pairs_cover_probability"] < 1e-9
    assert found["subsampled_clusters"] == 4
    assert found["subsampled_clusters_null_mean"] > 10
    assert found["subsampled_mean_minimum_distance"] > found["subsampled_mean_minimum_distance_null_mean"]


def test_few_points_in_many_dimensions_separate_whatever_their_labels() -> None:
    rng = np.random.default_rng(1)
    space = Space(
        rng.normal(size=(30, 64)).astype(np.float32), np.arange(30, dtype=np.int32) % 3, tuple("abc"), Provenance()
    )
    found = values(null_rows(space, shuffles=5, **NULLS))
    assert (
        found["separable_pairs"]
        == found["separable_pairs_null_mean"]
        == found["separable_pairs_cover_probability"]
        == 1.0
    )
    assert found["subsampled_clusters"] == found["subsampled_clusters_null_mean"] == 3


def test_noise_with_unequal_label_sizes_is_similar() -> None:
    sizes = [1, 2, 3, 4, 6, 8, 10, 12]
    y = np.repeat(np.arange(len(sizes)), sizes)
    space = Space.from_arrays(np.random.default_rng(0).normal(size=(len(y), 40)), y)
    assert values(null_rows(space, shuffles=0, **NULLS))["noise_similarity"] > 0.8
    assert "noise_similarity" not in values(null_rows(blobs(), shuffles=0, **NULLS))


def test_a_p_value_that_cannot_be_small_is_not_stored() -> None:
    found = values(null_rows(blobs(), shuffles=18, **NULLS))
    assert not [name for name in found if name.endswith("_p_value")]
    assert "separable_pairs_z" in found


def test_clusters_under_shuffles_are_of_so_many_points_and_shuffles_may_be_none() -> None:
    rows = null_rows(blobs(), shuffles=0, **NULLS)
    assert {one["n"] for one in rows} == {60}
    assert not [one for one in rows if one["measure"].startswith("separable")]
    assert null_rows(blobs(), shuffles=0, **(NULLS | {"cluster_shuffles": 0})) == []


def test_parts_of_a_space_are_as_alike_as_the_geometry_says() -> None:
    space = blobs()
    how = {"tau": 1e-6, "min_points": 1, "statistic": "mean"}
    halves, *splits, folds = split_rows(space, repeats=3, folds=4, **how)
    assert [one["text"] for one in splits] == ["0", "1", "2"]
    assert np.mean([one["value"] for one in splits]) == pytest.approx(halves["value"])
    assert halves["value"] == pytest.approx(split_similarity(space.X, space.label_names, repeats=3).mean)
    assert halves["ci_low"] <= halves["value"] <= halves["ci_high"]
    assert (halves["n"], folds["n"]) == (3, 4)
    assert [one["measure"] for one in split_rows(space, repeats=1, folds=0, **how)] == [
        "similarity_halves",
        "similarity_halves_split",
    ]


def test_a_turned_copy_is_alike_and_other_points_are_not() -> None:
    space, other = blobs(), blobs(seed=9)
    turned = Space((space.X[:, ::-1] * 3 + 1).copy(), space.y, space.labels, Provenance())
    assert values(point_similarity_rows(space, turned, neighbours=5)) == pytest.approx(
        {"cka": 1.0, "procrustes": 1.0, "rsa": 1.0, "shared_neighbours": 1.0}, abs=1e-4
    )
    assert values(point_similarity_rows(space, other, neighbours=5))["shared_neighbours"] < 0.2


def test_more_neighbours_than_points_are_held_to_them() -> None:
    space = blobs(n=1)
    assert values(point_similarity_rows(space, space, neighbours=10))["shared_neighbours"] == 1.0


def test_a_single_label_has_no_panel_and_no_nulls() -> None:
    assert panel_rows(one_label(), tau=1e-6) == []
    assert null_rows(one_label(), shuffles=2, **NULLS) == []

"""Split halves of the examples, and p-values for many labels."""

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.geometry import Clustering, cluster, cluster_distances, label_distances, separate, spatial_similarity
from closerlook.geometry.distances import PlacedClusters, Statistic
from closerlook.geometry.resampling import (
    Method,
    ResampledDistances,
    adjust,
    bias,
    change_p_values,
    draw,
    few_points,
    interval,
    resample_distances,
    resample_similarity,
)
from tests.geometry.test_twin import SETS

Points = NDArray[np.float64]
CORNERS = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 10.0], [13.0, 13.0]])


def blobs(rng: np.random.Generator, rows: int = 20, labels: int = 4, d: int = 2) -> tuple[Points, NDArray[np.int64]]:
    """Labels of as many rows each, around the corners."""
    y = np.arange(rows * labels) % labels
    X = rng.normal(size=(len(y), d))
    X[:, :2] += CORNERS[y]
    return X, y


def of_values(values: Points, labels: str = "abcdefgh", seed: int = 0) -> ResampledDistances:
    return ResampledDistances(tuple(labels[: values.shape[1]]), values, "mean", 1, seed)


def tables(*rows: list[float]) -> Points:
    """Symmetric tables from their upper triangles."""
    m = round((1 + math.sqrt(1 + 8 * len(rows[0]))) / 2)
    result = np.zeros((len(rows), m, m))
    i, j = np.triu_indices(m, 1)
    result[:, i, j] = result[:, j, i] = np.array(rows)
    return result


# Drawing


def test_the_halves_of_a_split_share_no_row_and_leave_none() -> None:
    codes = np.repeat([0, 1, 2], [6, 7, 2])
    for split in range(5):
        first, second = (draw(codes, seed=3, replicate=2 * split + side) for side in (0, 1))
        assert (first ^ second).all()
        assert np.bincount(codes[first], minlength=3).tolist() in [[3, 3, 1], [3, 4, 1]]


def test_a_label_of_one_row_is_in_both_halves() -> None:
    codes = np.array([0, 1, 0, 0, 0])
    assert all(draw(codes, seed=0, replicate=at)[1] for at in range(6))


def test_other_splits_and_other_seeds_draw_other_rows() -> None:
    codes = np.zeros(40, np.int64)
    kept = {draw(codes, seed=seed, replicate=at).tobytes() for seed in range(3) for at in range(4)}
    assert len(kept) == 12


def test_each_row_is_drawn_about_half_of_the_time() -> None:
    codes = np.arange(60) % 4
    drawn = np.mean([draw(codes, seed=1, replicate=2 * at) for at in range(400)], axis=0)
    assert drawn == pytest.approx(np.full(60, 0.5), abs=0.12)


def test_two_spaces_of_the_same_examples_draw_the_same_rows() -> None:
    rng = np.random.default_rng(0)
    X, y = blobs(rng)
    one = resample_distances(X, cluster(X, y), resamples=6, seed=5)
    other = resample_distances(7 * X + 3, cluster(7 * X + 3, y), resamples=6, seed=5)
    assert other.values == pytest.approx(7 * one.values, rel=2e-3)
    independent = resample_distances(X, cluster(X, y), resamples=6, seed=6)
    assert not np.allclose(independent.values, one.values, rtol=2e-2)


# Distances of what is drawn


@pytest.mark.parametrize(
    "name", ["blobs-3d-0", "touching_blobs-2d-0", "random_labels-3d-0", "grid-2d-0", "repeated-2d-0", "single_points-0"]
)
@pytest.mark.parametrize("statistic", ["mean", "min"])
@pytest.mark.parametrize("min_points", [1, 3])
def test_a_replicate_has_the_distances_of_its_rows_under_the_clusters_of_the_whole(
    name: str, statistic: Statistic, min_points: int
) -> None:
    X, y = SETS[name]
    whole = cluster(X, y)
    codes = whole.cluster_codes[whole.assignments]
    result = resample_distances(X, whole, resamples=3, seed=2, min_points=min_points, statistic=statistic)
    for at in range(3):
        expected = plain_replicate(X, whole, draw(codes, seed=2, replicate=at), statistic, min_points)
        assert result.values[at] == pytest.approx(expected, rel=2e-3, abs=1e-6 * whole.radius, nan_ok=True)


def plain_replicate(X: Points, whole: Clustering, drawn: NDArray[np.bool_], statistic: str, least: int) -> Points:
    """The distances computed pair by pair with `separate`."""
    kept = [c for c in range(whole.n_clusters) if whole.sizes[c] >= least and drawn[whole.assignments == c].any()]
    labels = whole.cluster_codes[kept]
    table = np.full((whole.n_labels, whole.n_labels), np.nan)
    for i in range(whole.n_labels):
        for j in range(whole.n_labels):
            pairs = [(a, b) for a in np.array(kept)[labels == i] for b in np.array(kept)[labels == j]] if kept else []
            if i == j:
                table[i, j] = 0.0 if pairs else np.nan
            elif pairs:
                independent = [hull_distance(X, whole, drawn, a, b) for a, b in pairs]
                table[i, j] = np.mean(independent) if statistic == "mean" else np.min(independent)
    return table


def hull_distance(X: Points, whole: Clustering, drawn: NDArray[np.bool_], a: int, b: int) -> float:
    sides = [X[drawn & (whole.assignments == c)] for c in (a, b)]
    return separate(*sides).distance


def test_halves_are_never_nearer_than_the_whole() -> None:
    X, y = blobs(np.random.default_rng(1), d=5)
    whole = cluster(X, y)
    values = label_distances(cluster_distances(X, whole)).values
    result = resample_distances(X, whole, resamples=8)
    assert (result.values >= values - 1e-3 * values.max()).all()
    assert bias(float(values[0, 1]), result.values[:, 0, 1]) > 0


def test_all_rows_give_the_distances_of_the_whole() -> None:
    X, y = SETS["random_labels-4d-0"]
    whole = cluster(X, y)
    result = PlacedClusters(X, whole).distances(np.ones(len(X), dtype=bool))
    assert result.matrix() == pytest.approx(cluster_distances(X, whole).matrix(), rel=1e-6, nan_ok=True)
    assert len(result.excluded) == 0


def test_a_cluster_without_a_row_drops_out_and_the_others_stay() -> None:
    X, y = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]]), ["a", "a", "b", "a", "c"]
    result = PlacedClusters(X, cluster(X, y)).distances(np.array([True, False, True, False, True]))
    assert result.excluded.tolist() == [2]
    assert label_distances(result).values[0].round(6).tolist() == [0.0, 2.0, 9.0]


def test_minimum_and_its_mean_are_those_of_each_table() -> None:
    result = of_values(tables([1.0, 2.0, 3.0], [4.0, 3.0, 5.0], [math.nan, 2.0, math.nan]))
    assert result.minimum()[:2].tolist() == [[1.0, 1.0, 2.0], [3.0, 4.0, 3.0]]
    assert result.minimum()[2] == pytest.approx([2.0, math.nan, 2.0], nan_ok=True)
    assert result.mean_minimum() == pytest.approx([4 / 3, 10 / 3, 2.0])
    assert json.loads(json.dumps(result.to_dict()))["minimum"][2] == [2.0, None, 2.0]


def test_a_space_without_distances_has_no_minimum() -> None:
    X = np.array([[0.0], [1.0]])
    alone = resample_distances(X, cluster(X, ["a", "a"]), resamples=2)
    assert np.isnan(alone.minimum()).all()
    assert np.isnan(alone.mean_minimum()).all()
    none = resample_distances(X, cluster(X, ["a", "b"]), resamples=2, min_points=2)
    assert np.isnan(none.values).all()
    assert resample_distances(X, cluster(X, ["a", "b"]), resamples=0).minimum().shape == (0, 2)


def test_progress_counts_replicates_and_threads_change_nothing() -> None:
    X, y = blobs(np.random.default_rng(0))
    seen: list[tuple[int, int]] = []
    one = resample_distances(X, cluster(X, y), resamples=3, threads=1, progress=lambda *at: seen.append(at))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert (resample_distances(X, cluster(X, y), resamples=3, threads=2).values == one.values).all()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"resamples": -1}, r"resamples is -1; expected at least 0"),
        ({"min_points": 0}, r"min_points is 0; expected at"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, int], text: str) -> None:
    X, y = blobs(np.random.default_rng(0))
    with pytest.raises(InputError, match=text):
        resample_distances(X, cluster(X, y), **options)  # type: ignore[arg-type]


# Intervals


def test_an_interval_lies_around_the_value_though_all_replicates_lie_above_it() -> None:
    low, high = interval(1.0, [5.0, 5.2, 5.1, 4.9, 5.0, 5.3])
    assert low < 1.0 < high
    assert low + high == pytest.approx(2.0)
    assert bias(1.0, [5.0, 5.2, 5.1, 4.9, 5.0, 5.3]) == pytest.approx(5.0833333 - 1)


def test_an_interval_is_wider_at_a_higher_level() -> None:
    replicates = [5.0, 5.2, 5.1, 4.9, 5.0, 5.3]
    assert (
        interval(1.0, replicates, level=0.99)[1]
        > interval(1.0, replicates)[1]
        > interval(1.0, replicates, level=0.5)[1]
    )
    with pytest.raises(InputError, match=r"level is 95; expected a share between 0 and 1"):
        interval(1.0, replicates, level=95)


def test_an_interval_stays_within_its_bounds() -> None:
    assert interval(0.9, [0.2, 0.9, 0.8, 0.1], within=(-1, 1)) == (-1.0, 1.0)


@pytest.mark.parametrize("replicates", [[], [1.0], [1.0, 2.0], [1.0, 2.0, 3.0], [1.0, math.nan, 2.0, 3.0]])
def test_fewer_than_two_whole_splits_give_no_interval(replicates: list[float]) -> None:
    assert all(map(math.isnan, interval(1.0, replicates)))


def test_nan_takes_its_split_out_and_nothing_else() -> None:
    whole = [1.0, 2.0, 3.0, 5.0]
    assert interval(0.0, [*whole, math.nan, 9.0]) == interval(0.0, whole)
    assert bias(0.0, [1.0, math.nan, 3.0]) == 2.0
    assert math.isnan(bias(0.0, [math.nan]))
    assert all(map(math.isnan, interval(math.nan, whole)))


def mean_minimum(X: Points, y: NDArray[np.int64]) -> tuple[Clustering, float]:
    result = cluster(X, y, threads=1)
    return result, label_distances(cluster_distances(X, result, threads=1)).mean_minimum()


def test_intervals_hold_the_expected_value_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    expected = np.mean([mean_minimum(*blobs(rng, labels=3))[1] for _ in range(200)])
    held = []
    for trial in range(60):
        X, y = blobs(rng, labels=3)
        whole, value = mean_minimum(X, y)
        replicates = resample_distances(X, whole, resamples=20, seed=trial, threads=1).mean_minimum()
        low, high = interval(value, replicates, within=(0, np.inf))
        held.append(low <= expected <= high)
    assert 0.8 <= np.mean(held) <= 1.0


# Similarity


def test_similarity_of_replicates_is_the_spatial_similarity_of_their_tables() -> None:
    rng = np.random.default_rng(0)
    X, y = blobs(rng)
    Y = X + rng.normal(size=X.shape)
    a, b = (resample_distances(Z, cluster(Z, y), resamples=4) for Z in (X, Y))
    expected = [
        spatial_similarity((a.labels, one), (b.labels, other), permutations=0, resamples=0).pearson
        for one, other in zip(a.values, b.values, strict=True)
    ]
    assert resample_similarity(a, b) == pytest.approx(expected)
    assert resample_similarity(a, a) == pytest.approx(np.ones(4))


def test_similarity_uses_the_common_labels_in_any_order_and_excludes_nan() -> None:
    a = of_values(tables([1.0, 2.0, 4.0, 3.0, 5.0, 6.0]), "abcd")
    turned = ResampledDistances(("d", "c", "x", "a"), a.values[:, [3, 2, 1, 0]][:, :, [3, 2, 1, 0]], "mean", 1, 0)
    assert resample_similarity(a, turned) == pytest.approx([1.0])
    gone = a.values.copy()
    gone[:, 1], gone[:, :, 1] = np.nan, np.nan
    assert resample_similarity(a, of_values(gone, "abcd")) == pytest.approx([1.0])
    gone[:, 2], gone[:, :, 2] = np.nan, np.nan
    assert np.isnan(resample_similarity(a, of_values(gone, "abcd"))).all()


def test_similarity_of_a_constant_table_is_nan_and_other_counts_are_refused() -> None:
    a = of_values(tables([1.0, 2.0, 3.0]))
    assert np.isnan(resample_similarity(a, of_values(tables([2.0, 2.0, 2.0])))).all()
    with pytest.raises(InputError, match=r"a has 1 replicates and b has 2; expected the same number"):
        resample_similarity(a, of_values(tables([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])))


def test_replicates_of_the_same_rows_are_more_similar_than_independent_ones() -> None:
    rng = np.random.default_rng(0)
    X, y = blobs(rng, rows=8, d=6)
    turned = X @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    a, matched, independent = (
        resample_distances(Z, cluster(Z, y), resamples=10, seed=seed) for Z, seed in ((X, 0), (turned, 0), (turned, 1))
    )
    assert resample_similarity(a, matched).min() > 1 - 1e-4
    assert resample_similarity(a, independent).mean() < 1 - 1e-3


# Many p-values


def test_holm_is_as_worked_by_hand() -> None:
    assert adjust([0.01, 0.02, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.04, 0.04, 0.02])
    assert adjust([0.9, 0.8]).tolist() == [1.0, 1.0]


def test_fdr_is_as_worked_by_hand() -> None:
    assert adjust([0.01, 0.02, 0.03, 0.5], "fdr").tolist() == pytest.approx([0.04, 0.04, 0.04, 0.5])


@pytest.mark.parametrize("method", ["holm", "fdr"])
def test_nan_is_not_counted(method: Method) -> None:
    given = np.array([0.01, np.nan, 0.2])
    result = adjust(given, method)
    assert result == pytest.approx([*adjust(given[[0, 2]], method)[:1], np.nan, 0.2], nan_ok=True)
    assert len(adjust([], method)) == 0
    assert (result[[0, 2]] >= given[[0, 2]]).all()


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match=r"method is 'bonferroni'; expected 'holm' or 'fdr'"):
        adjust([0.1], "bonferroni")  # type: ignore[arg-type]


def moved(shift: float, noise: float, seed: int) -> tuple[Points, Points, NDArray[np.int64]]:
    """A space, and one of the same examples in which label 3 is farther out."""
    rng = np.random.default_rng(seed)
    X, y = blobs(rng)
    after = X + noise * rng.normal(size=X.shape)
    after[y == 3] += shift
    return X, after, y


def p_values(before: Points, after: Points, y: NDArray[np.int64]) -> Points:
    wholes = [cluster(X, y, threads=1) for X in (before, after)]
    full = [
        label_distances(cluster_distances(X, whole, threads=1)).minimum()
        for X, whole in zip((before, after), wholes, strict=True)
    ]
    drawn = [
        resample_distances(X, whole, threads=1, resamples=20) for X, whole in zip((before, after), wholes, strict=True)
    ]
    return change_p_values(drawn[0], drawn[1], full[1] - full[0])


def test_a_label_that_moves_has_a_small_p_value_and_the_others_have_not() -> None:
    result = p_values(*moved(6.0, 0.1, 0))
    assert result[3] < 0.01
    assert result[:3].min() > 0.05


def test_p_values_of_labels_that_do_not_move_are_valid() -> None:
    rng = np.random.default_rng(0)
    result = []
    for _ in range(30):
        X, y = blobs(rng)
        before, after = (X + 0.5 * rng.normal(size=X.shape) for _ in range(2))
        result.append(p_values(before, after, y))
    assert np.mean(np.array(result) < 0.05) <= 0.08


def test_p_values_do_not_depend_on_the_sign_and_fall_as_the_change_grows() -> None:
    before, after = (
        of_values(tables([1.0] * 3, [1.0] * 3, [1.0] * 3, [1.0] * 3)),
        of_values(tables([2.0, 2.5, 2.5], [2.2, 2.5, 2.5], [2.1, 2.5, 2.5], [2.4, 2.5, 2.5])),
    )
    small, large = (change_p_values(before, after, [size, -size, size]) for size in (0.2, 0.9))
    assert small[0] == small[1]
    assert (large[:2] < small[:2]).all()
    assert np.isnan(large[2])  # every half changes by the same: so the uncertainty is unknown


def test_change_p_values_need_the_same_labels_and_seed() -> None:
    one = of_values(tables([1.0] * 3, [2.0] * 3))
    with pytest.raises(InputError, match=r"before has 2 replicates of 3 labels \(seed 0\), after 2 of 3 \(seed 1\)"):
        change_p_values(one, of_values(one.values, seed=1), [0.0] * 3)
    with pytest.raises(InputError, match=r"change has shape \(2,\); expected one for each of the 3 labels"):
        change_p_values(one, one, [0.0] * 2)


# Few points, and prediction


def test_labels_of_few_points_are_flagged_with_the_reason() -> None:
    result = few_points(["a", "b", "c"], [4, 5, 1])
    assert result == {"a": "only 4 points (fewer than 5): unreliable", "c": "only 1 point (fewer than 5): unreliable"}
    assert few_points(["a"], [4], least=4) == {}
    with pytest.raises(InputError, match=r"counts has 1 numbers; expected one for each of the 2 labels"):
        few_points(["a", "b"], [1])

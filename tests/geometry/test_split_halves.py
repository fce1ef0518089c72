"""Similarity of the parts of a space, and how well it predicts other values."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from closerlook.errors import InputError
from closerlook.geometry import cluster, cluster_distances, label_distances, spatial_similarity
from closerlook.geometry.split_halves import (
    _bootstrap_interval,
    _spearman,
    assign_folds,
    predictiveness,
    split_similarity,
)
from tests.geometry.test_resampling import Points, blobs


def test_folds_have_equal_shares_of_each_label() -> None:
    codes = np.repeat([0, 1, 2], [9, 7, 2])
    part = assign_folds(codes, 3, seed=0)
    assert np.bincount(part).tolist() == [6, 6, 6]
    for label, (least, most) in enumerate([(3, 3), (2, 3), (0, 1)]):
        counts = np.bincount(part[codes == label], minlength=3)
        assert least <= counts.min() <= counts.max() <= most


def test_split_halves_of_a_space_are_similar_and_noise_is_not() -> None:
    rng = np.random.default_rng(0)
    X, y = blobs(rng, rows=30)
    result = split_similarity(X, y, repeats=3)
    assert result.low <= result.mean <= result.high
    assert result.low > 0.9
    assert (len(result.values), result.folds, result.repeats, result.few) == (3, 2, 3, ())
    noise = split_similarity(rng.normal(size=(120, 60)), y, repeats=3)
    assert noise.mean < 0.8


def test_a_split_value_is_the_spatial_similarity_of_its_parts() -> None:
    X, y = blobs(np.random.default_rng(0), d=4)
    result = split_similarity(X, y, folds=4, seed=2)
    part = assign_folds(y, 4, seed=2)
    sides = [label_distances(cluster_distances(X[rows], cluster(X[rows], y[rows]))) for rows in (part == 1, part != 1)]
    assert result.values[1] == spatial_similarity(*sides, permutations=0, resamples=0).pearson
    assert len(result.values) == 4
    assert result.mean == pytest.approx(np.mean(result.values))
    assert (result.low, result.high) == (min(result.values), max(result.values))


def test_labels_of_few_rows_are_listed_and_excluded_from_parts_without_them() -> None:
    X, _ = blobs(np.random.default_rng(0))
    result = split_similarity(np.vstack([X, [[99.0, 99.0]]]), [*"abcd" * 20, "rare"])
    assert result.few == ("rare",)
    assert result.values[0] > 0.9
    assert math.isnan(result.low)


def test_fewer_than_three_labels_have_no_split_similarity() -> None:
    X, y = blobs(np.random.default_rng(0), labels=2)
    seen: list[tuple[int, int]] = []
    result = split_similarity(X, y, repeats=2, progress=lambda *at: seen.append(at))
    assert np.isnan([*result.values, result.mean, result.low]).all()
    assert seen == [(1, 2), (2, 2)]
    assert result.to_dict()["values"] == [None, None]
    with pytest.raises(InputError, match=r"folds is 1; expected at least 2"):
        split_similarity(X, y, folds=1)


def left_out_error(x: Points, y: Points, predict: Callable[[Points, Points, float], float]) -> float:
    keep = ~np.eye(len(x), dtype=bool)
    return float(np.sqrt(np.mean([(predict(x[k], y[k], at) - it) ** 2 for k, at, it in zip(keep, x, y, strict=True)])))


def test_prediction_agrees_with_scipy_and_with_lines_fitted_one_by_one() -> None:
    rng = np.random.default_rng(0)
    x = rng.random(12)
    y = 0.5 * x + 0.2 * rng.random(12)
    result = predictiveness(x, y, resamples=200)
    assert result.pearson == pytest.approx(pearsonr(x, y)[0])
    assert result.spearman == pytest.approx(spearmanr(x, y)[0])
    assert result.difference == pytest.approx(np.abs(x - y).mean())
    assert result.error == pytest.approx(
        left_out_error(x, y, lambda a, b, at: float(np.polyval(np.polyfit(a, b, 1), at)))
    )
    assert result.baseline == pytest.approx(left_out_error(x, y, lambda a, b, at: float(b.mean())))
    low, high = result.spearman_interval
    assert -1 <= low < result.spearman <= high <= 1
    assert predictiveness(x, y, resamples=200) == result


def test_prediction_excludes_nan_and_needs_three_cells() -> None:
    nan = math.nan
    result = predictiveness([0.1, nan, 0.4, 0.6, 0.2], [0.2, 0.1, nan, 0.7, 0.3])
    assert (result.n, round(result.pearson, 9)) == (3, 1.0)
    few = predictiveness([0.1, 0.2], [0.2, 0.4])
    assert few.n == 2
    assert few.difference == pytest.approx(0.15)
    assert np.isnan([few.pearson, few.spearman, few.error, *few.spearman_interval]).all()
    assert few.to_dict()["spearman_interval"] == [None, None]
    assert predictiveness([], []).n == 0


def test_prediction_from_constant_values_is_nan() -> None:
    result = predictiveness([0.5, 0.5, 0.5, 0.5], [0.1, 0.2, 0.3, 0.5])
    assert np.isnan([result.pearson, result.spearman, result.error, *result.spearman_interval]).all()
    assert result.baseline > 0
    with pytest.raises(InputError, match=r"foreseen has shape \(2,\), actual \(3,\) and groups \(2,\); expected"):
        predictiveness([0.1, 0.2], [0.1, 0.2, 0.3])


def test_groups_are_drawn_and_held_out_as_a_whole() -> None:
    """Five seeds of six tasks with unrelated values are six independent observations, not thirty."""
    rng = np.random.default_rng(3)
    tasks = np.arange(6).repeat(5)
    x, y = rng.normal(size=(2, 6))[:, tasks] + rng.normal(size=(2, 30)) / 100
    alone, together = predictiveness(x, y, resamples=300), predictiveness(x, y, groups=tasks, resamples=300)
    assert (alone.groups, together.groups, together.n) == (30, 6, 30)
    assert together.spearman == alone.spearman
    assert np.diff(together.spearman_interval) > 1.5 * np.diff(alone.spearman_interval)
    assert together.error > together.baseline > alone.error
    folds = [np.poly1d(np.polyfit(x[tasks != t], y[tasks != t], 1))(x[tasks == t]) - y[tasks == t] for t in range(6)]
    assert together.error == pytest.approx(np.sqrt(np.mean(np.concatenate(folds) ** 2)))


def test_bootstrap_of_groups_is_spearman_of_the_drawn_cells() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 6, size=(2, 17)).astype(float)
    rows = [np.arange(0, 5), np.arange(5, 6), np.arange(6, 17)]
    draws = np.random.default_rng(1).integers(3, size=(400, 3))
    plain = [
        _spearman(x[part], y[part]) for part in (np.concatenate([rows[group] for group in draw]) for draw in draws)
    ]
    kept = [value for value in plain if not np.isnan(value)]
    assert len(kept) < len(plain)  # the single row drawn three times is constant
    interval = _bootstrap_interval(x, y, rows, 400, np.random.default_rng(1))
    assert interval == pytest.approx(np.quantile(kept, [0.025, 0.975]).tolist(), abs=1e-12)


def test_as_many_folds_as_rows_at_most() -> None:
    with pytest.raises(InputError, match="folds is 7; expected at most 6, as there are 6 rows"):
        split_similarity(np.arange(6.0)[:, None], list("abcabc"), folds=7)


def test_splits_that_disagree_widen_the_interval() -> None:
    rng = np.random.default_rng(5)
    x = np.linspace(0, 1, 20)
    y = x + 0.1 * rng.normal(size=20)
    noise = rng.normal(size=(20, 4))
    noise -= noise.mean(axis=1, keepdims=True)
    plain, agreeing, noisy = (
        predictiveness(x, y, splits=splits, resamples=300)
        for splits in (None, np.repeat(x[:, None], 4, axis=1), x[:, None] + 0.5 * noise)
    )
    assert (plain.splits, agreeing.splits, noisy.splits) == (0, 4, 4)
    assert agreeing.spearman == noisy.spearman == plain.spearman  # of the mean over splits
    assert agreeing.single_split == pytest.approx((plain.spearman, plain.spearman))
    assert noisy.single_split[1] < plain.spearman
    widths = [float(np.diff(one.spearman_interval)[0]) for one in (plain, agreeing, noisy)]
    assert widths[1] == pytest.approx(widths[0], rel=0.5)
    assert widths[2] > 2 * widths[0]


def test_splits_of_another_shape_are_refused() -> None:
    with pytest.raises(InputError, match=r"splits has shape \(2, 3\); expected \(4, k\)"):
        predictiveness([0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.5], splits=np.zeros((2, 3)))

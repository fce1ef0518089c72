"""How far labels are from linearly separable: the points on the wrong side of a soft margin."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from closerlook.geometry import overlap, point_to_hull, separate
from closerlook.geometry.overlap import LabelHulls, _soft_margin, overlaps
from tests.geometry.plain import rms_radius


def mixed(n: int = 200, d: int = 4, shift: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n).astype(bool)
    return rng.normal(size=(n, d)) * np.geomspace(0.1, 10, d) + shift * y[:, None], y


@pytest.mark.parametrize(("n", "d", "shift"), [(200, 4, 1.0), (500, 30, 0.5), (400, 3, 0.0), (30, 40, 0.1)])
def test_the_soft_margin_is_that_of_scikit_learn(n: int, d: int, shift: float) -> None:
    X, positive = mixed(n, d, shift)
    scaled = StandardScaler().fit_transform(X)
    model = LinearSVC(C=10.0, loss="squared_hinge", dual=False, tol=1e-9, max_iter=100_000).fit(scaled, positive)
    margins = np.where(positive, 1.0, -1.0) * model.decision_function(scaled)
    removed, slack = _soft_margin(X, positive)
    assert removed == min((margins <= 0).sum(), positive.sum(), (~positive).sum())
    assert slack == pytest.approx(np.maximum(0, 1 - margins).sum(), rel=1e-4)


@pytest.mark.parametrize("steps", [1, 2, 50])
def test_the_rest_is_separable_after_any_number_of_steps(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "STEPS", steps)
    X, y = mixed(150, 3, 0.05)
    scores = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))]) * np.where(y, 1, -1)[:, None]
    right = scores @ overlap._least_squared_hinge(scores) > 0
    (result,) = overlaps(X, y)
    assert result.removed == (~right).sum()
    assert overlaps(X[right], y[right]) == []


def test_identical_points_of_two_labels_are_separable_without_the_smaller_label() -> None:
    (result,) = overlaps(np.ones((9, 5)), ["a"] * 3 + ["b"] * 6)
    assert (result.removed, result.share) == (3, 3 / 9)
    (result,) = overlaps(np.ones((6, 2)), ["a", "b"] * 3)
    assert (result.removed, result.share) == (3, 0.5)


def test_the_worst_pair_comes_first_and_threads_change_nothing() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(240) % 4
    X = rng.normal(size=(240, 3)) + np.array([0.0, 0.3, 2.0, 3.0])[y, None]
    one, three = (overlaps(X, y, threads=threads) for threads in (1, 3))
    assert one == three
    assert len(one) >= 3
    assert [result.share for result in one] == sorted((result.share for result in one), reverse=True)


@pytest.mark.parametrize(("sizes", "d"), [((60, 40, 30, 3, 2), 3), ((300, 200, 100, 90, 20, 5, 1), 20)])
def test_labels_that_contain_the_mean_have_the_verdicts_of_single_pairs(sizes: tuple[int, ...], d: int) -> None:
    rng = np.random.default_rng(d)
    X, codes = rng.standard_normal((sum(sizes), d)), rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    groups = [np.flatnonzero(codes == code) for code in range(len(sizes))]
    radius, hulls = rms_radius(X), LabelHulls(X, 1e-6, 1)
    plain = [separate(X[a], X[b], scale=radius).is_separable for a, b in combinations(groups, 2)]
    assert hulls.separable(codes).tolist() == plain
    inside = [point_to_hull(X.mean(axis=0), X[group], scale=radius).verdict == "overlapping" for group in groups]
    tried = [len(group) > overlap.CENTRAL * d for group in groups]
    assert hulls._near_mean(groups).tolist() == [a and b for a, b in zip(inside, tried, strict=True)]
    assert sum(hulls._near_mean(groups)) > 2


def test_hulls_within_half_of_tau_of_the_mean_count_as_near_it_and_no_others() -> None:
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -2.0], [0.0, 2.0]]).repeat(3, axis=0)
    X = np.vstack([X, [[-1.0, 0.3], [1.0, 0.3], [-1.0, -0.3], [1.0, -0.3]] * 2])
    groups = [np.arange(0, 6), np.arange(6, 12), np.flatnonzero(X[:, 1] == 0.3), np.flatnonzero(X[:, 1] == -0.3)]
    radius = rms_radius(X)
    for tau, near in ((0.5, [True, True, False, False]), (0.7, [True, True, True, True])):
        assert LabelHulls(X, tau / radius, 1)._near_mean(groups).tolist() == near

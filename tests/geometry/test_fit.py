"""Label-fit scores against their plain formulas and known cases."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_score

from closerlook.geometry.fit import _evidence, _label_sums, gdv, label_fit, logme, nearest_mean_accuracy, silhouette


def blobs(distance: float, n: int = 150, d: int = 5, m: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(m), rng.integers(0, m, n - m)]
    return rng.normal(size=(n, d)) + distance * rng.normal(size=(m, d))[y], y


def test_silhouette_is_that_of_scikit_learn() -> None:
    X, y = blobs(2)
    assert silhouette(X, y) == pytest.approx(silhouette_score(X, y))


def test_a_label_of_one_row_has_silhouette_zero() -> None:
    X, y = blobs(2)
    y[0] = 99
    assert silhouette(X, y) == pytest.approx(silhouette_score(X, y))


def test_gdv_is_its_formula() -> None:
    X, y = blobs(1)
    z = 0.5 * (X - X.mean(0)) / X.std(0)
    groups = [z[y == code] for code in range(3)]
    inside = np.mean([cdist(g, g)[np.triu_indices(len(g), 1)].mean() for g in groups])
    between = np.mean([cdist(groups[i], groups[j]).mean() for i in range(3) for j in range(i + 1, 3)])
    assert gdv(X, y) == pytest.approx((inside - between) / math.sqrt(5))


def test_random_labels_have_gdv_zero() -> None:
    X, y = blobs(0, n=600)
    assert abs(gdv(X, y)) < 0.02


def test_logme_is_the_evidence_written_out() -> None:
    """At the fixed point, the evidence of each target from full (n, n) and (d, d) matrices."""
    X, y = blobs(1, n=80)
    n, d = X.shape
    result = []
    for code in range(3):
        target = (y == code).astype(float)
        alpha = beta = 1.0
        for _ in range(200):
            A = alpha * np.eye(d) + beta * X.T @ X
            m = beta * np.linalg.solve(A, X.T @ target)
            gamma = sum(beta * s / (alpha + beta * s) for s in np.linalg.eigvalsh(X.T @ X))
            alpha, beta = gamma / (m @ m), (n - gamma) / ((target - X @ m) ** 2).sum()
        A = alpha * np.eye(d) + beta * X.T @ X
        m = beta * np.linalg.solve(A, X.T @ target)
        whole = (
            n / 2 * math.log(beta)
            + d / 2 * math.log(alpha)
            - n / 2 * math.log(2 * math.pi)
            - beta / 2 * ((target - X @ m) ** 2).sum()
            - alpha / 2 * (m @ m)
            - np.linalg.slogdet(A)[1] / 2
        )
        result.append(whole / n)
    assert logme(X, y) == pytest.approx(np.mean(result), abs=1e-4)


@pytest.mark.parametrize("kind", ["more rows", "more columns", "columns that copy others", "nearly a copy"])
def test_logme_is_that_by_the_singular_vectors(kind: str) -> None:
    """As in the authors' code, from the singular value decomposition of X."""
    X, y = blobs(1, n=90, d=7)
    if kind == "more columns":
        X = np.random.default_rng(0).normal(size=(90, 140)) + np.pad(X, ((0, 0), (0, 133)))
    elif kind == "columns that copy others":
        X = np.hstack([X, X[:, :3] @ np.ones((3, 2))])
    elif kind == "nearly a copy":
        X = np.hstack([X, X[:, :1] + 1e-7 * (y[:, None] == 0)])
    left, singular, _ = np.linalg.svd(X, full_matrices=False)
    kept = singular > singular.max() * 1e-12
    targets = (y[:, None] == np.arange(3)).astype(float)
    along = (left[:, kept].T @ targets) ** 2
    expected = [
        _evidence(singular[kept] ** 2, along[:, code], max(0.0, targets[:, code].sum() - along[:, code].sum()), len(X))
        for code in range(3)
    ]
    assert logme(X, y) == pytest.approx(np.mean(expected), rel=1e-8)


@pytest.mark.parametrize("unit", [1e-170, 1e-3, 1e4, 1e300])
def test_the_unit_of_the_coordinates_does_not_matter(unit: float) -> None:
    X, y = blobs(1)
    assert label_fit(X * unit, y).to_dict() == pytest.approx(label_fit(X, y).to_dict(), rel=1e-9)


def test_a_space_of_zeros_has_no_evidence() -> None:
    assert math.isnan(logme(np.zeros((6, 2)), list("aabbcc")))


def test_labels_of_one_row_have_no_distance_within() -> None:
    X, y = blobs(0, n=600)
    several = gdv(X, y)
    y[:10] = np.arange(10, 20)
    assert gdv(X, y) == pytest.approx(several, abs=0.1)
    assert math.isnan(gdv(X[:3], [0, 1, 2]))


def test_scores_of_a_collapsed_space_keep_their_digits() -> None:
    """Labels whose radius is a millionth of their distance: single precision would lose the distances within."""
    X, y = blobs(1, n=300)
    means = np.array([X[y == code].mean(axis=0) for code in range(3)])
    X = means[y] + 1e-6 * (X - means[y])
    assert 1 - silhouette(X, y) == pytest.approx(1 - silhouette_score(X, y), rel=1e-3)


def test_strips_blocks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs(1)
    whole = label_fit(X, y)
    monkeypatch.setattr("closerlook.geometry.pairs.TILE", 7)
    monkeypatch.setattr("closerlook.geometry.pairs.WIDTH", 11)
    one, three = (label_fit(X, y, threads=threads) for threads in (1, 3))
    assert one == three
    assert one.to_dict() == pytest.approx(whole.to_dict(), rel=1e-12)
    monkeypatch.setattr("closerlook.geometry.pairs.STRIPS", 2)
    assert label_fit(X, y).to_dict() == pytest.approx(whole.to_dict(), rel=1e-12)


def test_sums_of_distances_by_label_are_those_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels in any order, of one row to many, in blocks that begin and end within a label."""
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat(np.arange(5), [1, 30, 2, 20, 47]))
    X = rng.normal(size=(100, 4))
    plain = np.linalg.norm(X[:, None] - X, axis=2) @ np.eye(5)[codes]
    for tile, width in ((7, 7), (7, 20), (16, 50), (256, 512)):
        monkeypatch.setattr("closerlook.geometry.pairs.TILE", tile)
        monkeypatch.setattr("closerlook.geometry.pairs.WIDTH", width)
        assert _label_sums(X, codes, 5, 2) == pytest.approx(plain, rel=1e-12)


def test_all_scores_rise_with_the_distance_between_labels() -> None:
    near, far = (label_fit(*blobs(distance)) for distance in (0.2, 4))
    assert far.logme > near.logme
    assert far.gdv < near.gdv
    assert far.silhouette > near.silhouette


def test_nearest_mean_accuracy_by_hand() -> None:
    assert nearest_mean_accuracy([[0.0], [1.0], [5.0], [0.4]], ["a", "a", "b", "b"]) == pytest.approx(0.75)

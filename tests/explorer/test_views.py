"""The positions of points in the views of the explorer."""

import sys

import numpy as np
import pytest
from sklearn.decomposition import PCA

from closerlook.errors import InputError
from closerlook.geometry import separate
from closerlook.scatter.views import closest_pairs, find_gap, joint_pca, joint_umap, main_directions, margin_plane


def clouds(seed: int = 0, distance: float = 9.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(40, 6))
    X[:20, 2] += distance
    return X, np.arange(20), np.arange(20, 40)


def test_joint_pca_is_the_pca_of_all_snapshots_together() -> None:
    random = np.random.default_rng(0)
    snapshots = [random.normal(size=(50, 7)) * np.arange(1, 8) + shift for shift in (0.0, 3.0)]
    plane = joint_pca(snapshots, [X[:10] for X in snapshots])
    expected = PCA(2).fit(np.concatenate(snapshots))
    for X, xy in zip(snapshots, plane.xy, strict=True):
        np.testing.assert_allclose(np.abs(xy), np.abs(expected.transform(X[:10])), atol=1e-8)
    assert plane.explained is not None
    np.testing.assert_allclose(plane.explained, expected.explained_variance_ratio_, atol=1e-8)


def test_the_basis_is_the_same_at_every_snapshot() -> None:
    X = np.random.default_rng(1).normal(size=(30, 4))
    plane = joint_pca([X, X + 5.0], [X, X + 5.0])
    moves = plane.xy[1] - plane.xy[0]
    np.testing.assert_allclose(moves, np.broadcast_to(moves[0], moves.shape), atol=1e-9)


@pytest.mark.parametrize("X", [np.zeros((5, 3)), np.arange(5.0)[:, None]], ids=["equal points", "one dimension"])
def test_directions_that_do_not_exist_are_flat(X: np.ndarray) -> None:
    mean, basis, shares = main_directions([X], 2)
    assert np.isfinite(basis).all()
    assert shares[1] == 0.0
    np.testing.assert_allclose(((X - mean) @ basis)[:, 1], 0.0, atol=1e-12)


def test_the_gap_that_is_seen_is_the_distance_of_the_hulls() -> None:
    X, first, second = clouds()
    gap = find_gap(X, first, second)
    (xy,) = margin_plane([X], [gap], [X]).xy
    seen = xy[first, 0].min() - xy[second, 0].max()
    distance = separate(X[first], X[second]).distance
    assert gap.verdict == "separable"
    assert seen == pytest.approx(distance, rel=1e-5)
    assert 2 * gap.edge == pytest.approx(distance, rel=1e-5)
    assert xy[first, 0].min() == pytest.approx(gap.edge, rel=1e-9)


def test_the_rows_of_a_gap_alone_show_the_whole_gap() -> None:
    X, first, second = clouds(3)
    gap = find_gap(X, first, second)
    along = X[gap.rows] @ gap.normal - gap.offset
    assert along[along > 0].min() == pytest.approx(gap.edge, rel=1e-5)
    assert along[along < 0].max() == pytest.approx(-gap.edge, rel=1e-5)


def test_overlapping_labels_have_no_gap_and_the_line_of_the_means() -> None:
    X, first, second = clouds(distance=0.5)
    X[second[0]] = X[first].mean(axis=0)
    gap = find_gap(X, first, second)
    assert (gap.verdict, gap.distance, gap.edge, len(gap.rows)) == ("overlapping", 0.0, 0.0, 0)
    between = X[first].mean(axis=0) - X[second].mean(axis=0)
    np.testing.assert_allclose(gap.normal, between / np.linalg.norm(between))


def test_the_vertical_axis_is_orthogonal_to_the_margin() -> None:
    X, first, second = clouds(2)
    gap = find_gap(X, first, second)
    moved = X + 7.0 * gap.normal
    (xy,), (shifted,) = (margin_plane([X], [gap], [Y]).xy for Y in (X, moved))
    np.testing.assert_allclose(shifted[:, 0] - xy[:, 0], 7.0)
    np.testing.assert_allclose(shifted[:, 1], xy[:, 1], atol=1e-9)


def test_every_label_has_its_nearest_label_among_the_pairs() -> None:
    X = np.array([[0.0], [1.0], [10.0], [12.0], [40.0]])
    assert closest_pairs(X, np.arange(5), 3) == [(0, 1), (2, 3), (3, 4)]
    assert closest_pairs(X[:1], np.array([0])) == []


def test_umap_without_umap_learn_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(InputError, match=r"needs umap-learn, which is not installed; pip install 'closerlook\[umap\]'"):
        joint_umap([np.zeros((9, 2))], 0)


def test_umap_places_all_snapshots_in_one_embedding() -> None:
    pytest.importorskip("umap")
    X = np.random.default_rng(0).normal(size=(30, 4))
    plane = joint_umap([X, X + 1.0], 0)
    assert plane.xy.shape == (2, 30, 2)
    assert np.isfinite(plane.xy).all()

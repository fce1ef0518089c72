"""Verdicts on whitened points are those on the points themselves."""

from itertools import combinations

import numpy as np
import pytest

from closerlook.geometry import kernels, separate, whitened
from closerlook.geometry.overlap import LabelHulls
from closerlook.geometry.whitened import Whitened
from tests.geometry.plain import plain_distance, rms_radius


def uneven(n: int, d: int, seed: int) -> np.ndarray:
    """Points whose variance differs between directions by a factor of 10,000, in coordinates that mix them."""
    rng = np.random.default_rng(seed)
    mixed = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return rng.standard_normal((n, d)) * np.geomspace(0.01, 1, d) @ mixed


@pytest.mark.parametrize(("sizes", "d"), [((60, 40, 30, 3, 2), 3), ((300, 200, 100, 90, 40, 20, 5, 1), 20)])
def test_shuffled_labels_have_the_verdicts_of_single_pairs(sizes: tuple[int, ...], d: int) -> None:
    X, rng = uneven(sum(sizes), d, seed=d), np.random.default_rng(0)
    hulls, radius, verdicts = LabelHulls(X, 1e-6, 1, whiten=True), rms_radius(X), set()
    for _ in range(3):
        codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
        groups = [np.flatnonzero(codes == code) for code in range(len(sizes))]
        plain = [separate(X[a], X[b], scale=radius).is_separable for a, b in combinations(groups, 2)]
        assert hulls.separable(codes).tolist() == plain
        verdicts |= set(plain)
    assert verdicts == {False, True}


@pytest.mark.parametrize("constant", [0, 1, 2])
def test_the_map_changes_distances_by_a_factor_between_one_and_its_stretch(constant: int) -> None:
    X = uneven(200, 8, seed=1)
    X[:, :constant] = 0.5
    hulls = LabelHulls(X, 1e-6, 1, whiten=True)
    assert hulls.whitened is not None
    Z, W, stretch = hulls.Z, hulls.whitened.rows.Z, hulls.whitened.stretch
    i, j = np.triu_indices(len(Z), 1)
    before, after = np.linalg.norm(Z[i] - Z[j], axis=1), np.linalg.norm(W[i] - W[j], axis=1)
    assert (after >= before - hulls.whitened.error).all()
    assert (after <= stretch * before + hulls.whitened.error).all()
    assert 10 < stretch < 1.001 / np.sqrt(whitened.FLATTEST)


@pytest.mark.parametrize("part", [0.5, 0.9, 1.1, 2.0, 1000.0])
@pytest.mark.parametrize("flat", [True, False])
def test_labels_near_tau_have_the_verdict_of_their_distance_before_the_map(part: float, *, flat: bool) -> None:
    rng = np.random.default_rng(0)
    base, tau = rng.standard_normal((400, 4)) * [1.0, 1.0, 1.0, 0.0], 1e-6
    base[:, 3] = rng.choice([-0.05, 0.05], 400)  # the other labels
    axis = 3 if flat else 0
    faces = np.zeros((8, 4))
    faces[:, [other for other in range(4) if other != axis]] = np.tile(np.vstack([np.eye(3), -np.ones((1, 3))]), (2, 1))
    faces[4:, axis] = part * tau * rms_radius(np.vstack([base, faces]))
    X, codes = np.vstack([base, faces]), np.r_[np.arange(400) % 3 + 2, np.repeat([0, 1], 4)]
    assert plain_distance(faces[:4], faces[4:]) == pytest.approx(faces[4, axis], rel=1e-5)
    assert LabelHulls(X, tau, 1, whiten=True).separable(codes)[0] == (part > 1)


def test_identical_points_are_not_whitened() -> None:
    assert Whitened.of(kernels.Rows.of(np.zeros((5, 3)))) is None
    assert not LabelHulls(np.ones((6, 3)), 1e-6, 1, whiten=True).separable(np.arange(6) % 2).any()

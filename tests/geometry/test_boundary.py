"""Hulls and labels that nearly touch get the right verdict, on either side of tau."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.svm import SVC

from closerlook.geometry import audit, cluster, hulls, proofs, separate
from closerlook.geometry.frame import UNIT
from closerlook.geometry.hulls import GAP, TAU
from tests.geometry.plain import rms_radius
from tests.geometry.test_blocked_merges import check_witnesses
from tests.geometry.test_twin import rotation

Points = NDArray[np.float64]
Pair = tuple[Points, Points]


# Two hulls


def slabs(rng: Generator, d: int, gap: float) -> Pair:
    """Two slabs of 250 points with a hundred of them on each of the faces that are `gap` apart."""
    A, B = (rng.standard_normal((250, d)) for _ in range(2))
    for side in (A, B):
        side[50:100] = -side[:50]  # the middle of the face is the origin, on both sides
        side[:, 0] = rng.random(250)
        side[:100, 0] = 0
    return unite(rng, A * np.r_[-1.0, np.ones(d - 1)], B, gap)


def balls(rng: Generator, d: int, gap: float) -> Pair:
    """Points of two unit spheres whose poles are `gap` apart, many of them close to the poles."""
    sides = []
    for _ in range(2):
        around = rng.standard_normal((300, d - 1))
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        angle = np.r_[0.0, np.pi * rng.random(149), 10.0 ** rng.uniform(-4, 0, 150)][:, None]
        sides.append(np.c_[2 * np.sin(angle / 2) ** 2, np.sin(angle) * around])  # 1 - cos, to the last digit
    return unite(rng, sides[0] * np.r_[-1.0, np.ones(d - 1)], sides[1], gap)


def unite(rng: Generator, A: Points, B: Points, gap: float) -> Pair:
    """Scale to radius 1, separate along the first axis, rotate."""
    radius = rms_radius(np.vstack([A, B]))
    turn = rotation(rng, A.shape[1])
    return A / radius @ turn, (B / radius + gap * np.eye(A.shape[1])[0]) @ turn


@pytest.mark.parametrize("d", [2, 8, 60])
@pytest.mark.parametrize("gap", [0.0, 1e-8, 1e-7, 1e-5, 1e-4])
@pytest.mark.parametrize("make", [slabs, balls])
def test_hulls_that_nearly_touch_get_the_right_verdict(make: Any, gap: float, d: int) -> None:
    for seed in range(2):
        A, B = make(np.random.default_rng([d, seed]), d, gap)
        result = separate(A, B, scale=1.0)
        assert result.verdict == ("separable" if gap > 1e-6 else "overlapping")
        assert result.lower <= gap + 1e-13
        assert result.upper >= gap - 1e-13
        assert result.verify(A, B)


CLOSEST = [1, 2, 3, 4, 5, 6]
"""Powers k: hulls at a distance of tau * (1 ± 10^-k)."""


def check_near_tau(A: Points, B: Points, beyond: bool) -> None:
    """The verdict is right and proved, and a distance has the promised gap."""
    result = separate(A, B, scale=1.0)
    assert result.verdict == ("separable" if beyond else "overlapping")
    assert result.verify(A, B)
    if beyond:
        assert result.gap <= GAP * result.upper


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize("power", CLOSEST)
@pytest.mark.parametrize("d", [2, 8, 60, 128])
@pytest.mark.parametrize("make", [slabs, balls])
def test_hulls_within_a_millionth_of_tau_are_decided(make: Any, d: int, power: int, beyond: bool) -> None:
    gap = TAU * (1 + (1 if beyond else -1) * 10.0**-power)
    check_near_tau(*make(np.random.default_rng([d, power, beyond]), d, gap), beyond)


@pytest.mark.parametrize("d", [2, 12, 40])
@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
def test_an_offset_widens_the_bounds_of_a_distance_no_more_than_documented(offset: float, d: int) -> None:
    for gap in (2e-6, 1e-4):
        A, B = (side + offset for side in slabs(np.random.default_rng(d), d, gap))
        result = separate(A, B, scale=1.0)
        assert result.verify(A, B)
        assert result.gap <= GAP * result.upper + 100 * UNIT * offset + 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize("power", CLOSEST)
@pytest.mark.parametrize("d", [3, 5, 16, 32, 256, 384, 512, 768])
@pytest.mark.parametrize("make", [slabs, balls])
def test_hulls_within_a_millionth_of_tau_are_decided_in_many_dimensions(
    make: Any, d: int, power: int, beyond: bool
) -> None:
    gap = TAU * (1 + (1 if beyond else -1) * 10.0**-power)
    for seed in range(3):
        check_near_tau(*make(np.random.default_rng([d, power, beyond, seed]), d, gap), beyond)


def test_pairs_that_float64_cannot_decide_are_decided_with_more_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred times closer to tau than promised: one pair in 150 stays undecided; which one depends on BLAS."""
    pairs = [slabs(np.random.default_rng(seed), 60, TAU * (1 + 1e-8)) for seed in range(10)]
    verdicts = [separate(A, B, scale=1.0).verdict for A, B in pairs]
    assert verdicts.count("separable") >= 8

    def margin_in_float64(*given: Any, exactly: bool) -> float:
        return proofs.margin(*given, exactly=False)

    monkeypatch.setattr(hulls, "margin", margin_in_float64)
    verdicts = [separate(A, B, scale=1.0).verdict for A, B in pairs]
    assert verdicts.count("undecided") >= 8


def thin(rng: Generator, d: int, shift: float) -> Pair:
    """Two clouds with little room in three directions, which alone tell them apart; `shift` moves one of them away.

    Vectors behind a layer normalisation are like this: they lie on a plane, and nearly on one or two more.
    """
    scale = np.r_[np.geomspace(1, 0.05, d)[:-3], 4.5e-5, 1.5e-5, 4e-11]
    A, B = (rng.standard_normal((n * d, d)) * scale for n in (8, 4))
    thinnest = np.arange(d) >= d - 3
    A += shift / 2 * rng.standard_normal(d) * scale * thinnest + 0.2 * shift * (np.arange(d) < 8)
    turn = rotation(rng, d)
    return A @ turn, B @ turn


@pytest.mark.parametrize("gap", [None, GAP])
@pytest.mark.parametrize("shift", [3.0, 3.5, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_clouds_that_are_thin_in_some_directions_are_decided(seed: int, shift: float, gap: float | None) -> None:
    A, B = thin(np.random.default_rng(seed), 64, shift)
    result = separate(A, B, gap=gap)
    assert result.verdict != "undecided"
    assert result.verify(A, B)
    if gap is not None and result.verdict == "separable":
        assert result.gap <= GAP * result.upper


@pytest.mark.slow
@pytest.mark.parametrize("d", [128, 192, 256, 384])
def test_thin_clouds_are_decided_in_many_dimensions(d: int) -> None:
    for shift in (4.0, 5.0, 6.0, 7.0):
        A, B = thin(np.random.default_rng(d), d, shift)
        result = separate(A, B, gap=None)
        assert result.verdict != "undecided"
        assert result.verify(A, B)


def corners(rng: Generator, d: int, gap: float) -> Pair:
    """Two clouds with a common corner, moved `gap` apart in a random direction."""
    A, B = rng.standard_normal((d + 3, d)), rng.standard_normal((d + 3, d)) + 4 / d**0.5
    away = rng.standard_normal(d)
    B[0] = A[0] + gap * away / np.linalg.norm(away)
    return A, B


@pytest.mark.parametrize("d", [2, 5, 20])
@pytest.mark.parametrize("gap", [5e-7, 9e-7, 1.1e-6, 2e-6, 1e-5])
def test_at_the_default_tau_corners_that_nearly_touch_are_decided(gap: float, d: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        A, B = corners(rng, d, gap)
        result = separate(A, B, scale=1.0)
        assert result.verdict != "undecided"
        assert result.verify(A, B)


@pytest.mark.parametrize("make", [slabs, balls])
@pytest.mark.parametrize("gap", [1e-7, 1e-5])
def test_hulls_that_nearly_touch_are_decided_though_points_repeat(make: Any, gap: float) -> None:
    rng = np.random.default_rng(9)
    A, B = make(rng, 12, gap)
    A, B = A[rng.integers(0, len(A), 700)], np.repeat(B, 3, axis=0)
    A[:250] = make(np.random.default_rng(9), 12, gap)[0][:250]
    result = separate(A, B, scale=1.0)
    assert result.verdict == ("separable" if gap > 1e-6 else "overlapping")
    assert result.verify(A, B)


def test_a_pair_that_a_soft_margin_calls_overlapping_is_separable() -> None:
    rng = np.random.default_rng(6)
    A = np.c_[-1 - rng.random(200), rng.standard_normal((200, 3))]
    B = np.c_[rng.random(200), rng.standard_normal((200, 3))]
    B[:20, 0] = 0
    A[0] = [-1e-3, 0, 0, 0]  # alone before the face of B: cheaper to give up than a margin of a thousandth
    B[0] = 0
    y = np.repeat([0, 1], 200)
    X = np.vstack([A, B]) @ rotation(rng, 4)
    assert SVC(kernel="linear", C=1e4).fit(X, y).score(X, y) < 1
    result = separate(X[:200], X[200:])
    assert result.is_separable
    assert result.distance == pytest.approx(1e-3, rel=1e-5)


def test_tau_is_relative_to_the_scale() -> None:
    A, B = [[0.0, 0.0], [1.0, 0.0]], [[0.0, 1e-3], [1.0, 1e-3]]
    radius = rms_radius(np.array(A + B))
    assert separate(A, B, tau=0.9e-3 / radius).verdict == "separable"
    assert separate(A, B, tau=1.1e-3 / radius).verdict == "overlapping"
    assert separate(A, B, tau=1e-6, scale=0.9e3).verdict == "separable"
    assert separate(A, B, tau=1e-6, scale=1.1e3).verdict == "overlapping"


# Labels


def close_pair(gap: float) -> tuple[Points, NDArray[Any], float]:
    """Two distant labels, and a row of b that is `gap` radii from a row of a, both far from all other rows."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 3)) + np.repeat([[0.0, 0, 0], [20, 0, 0]], 20, axis=0)
    y = np.repeat(["a", "b"], 20)
    X[[0, 20]] = [10.0, 30.0, 0.0]
    X[20, 0] += gap * rms_radius(X)
    return X, y, rms_radius(X)


def test_points_of_two_labels_within_tau_of_each_other_never_merge() -> None:
    X, y, _ = close_pair(5e-7)
    result = cluster(X, y)
    assert result.sizes[result.assignments[[0, 20]]].tolist() == [1, 1]
    assert result.n_clusters == 4
    assert result.conflicts.tolist() == []
    check_witnesses(X, result)


def test_points_of_two_labels_just_beyond_tau_merge_with_their_own() -> None:
    X, y, _ = close_pair(2e-6)
    assert cluster(X, y).is_separable


@pytest.mark.parametrize("tau", [1e-5, 1e-3, 0.4])
def test_tau_is_used_and_stored(tau: float) -> None:
    for factor, linear in ((0.5, False), (2.0, True)):
        X, y, radius = close_pair(factor * tau)
        result = cluster(X, y, tau=tau)
        assert result.tau == tau
        assert result.radius == pytest.approx(radius)
        assert result.is_separable == linear


def test_hulls_that_only_touch_overlap() -> None:
    X, y = [[0.0, 0.0], [2.0, 0.0], [1.0, 0.0], [1.0, 4.0]], list("aabb")
    assert cluster(X, y).assignments.tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize(("n", "d"), [(300, 8), (120, 2), (400, 40)])
def test_random_labels_are_never_undecided(n: int, d: int) -> None:
    rng = np.random.default_rng([n, d])
    X, y = rng.standard_normal((n, d)), rng.integers(0, 5, n)
    result = cluster(X, y)
    assert result.n_undecided == 0
    assert audit(X, y, result).clean


@pytest.mark.parametrize("d", [2, 6, 30])
@pytest.mark.parametrize("gap", [1e-8, 1e-7, 0.999e-6, 0.9999e-6, 1.0001e-6, 1.001e-6, 1e-5, 1e-4])
def test_labels_that_nearly_touch_are_linear_exactly_beyond_tau(gap: float, d: int) -> None:
    rng = np.random.default_rng(d)
    X = rng.standard_normal((400, d))
    y = np.repeat([0, 1], 200)
    X[100:200] = -X[:100]
    X[200:300] = -X[300:]  # both faces have their middle at the origin
    X[:, 0] = np.where(y, 1.0, -1.0) * np.where(np.arange(400) % 100 < 50, 0.0, rng.random(400))
    X /= rms_radius(X)
    X[y == 1, 0] += gap
    result = cluster(X @ rotation(rng, d), y)
    assert result.n_undecided == 0
    assert result.is_separable == (gap > 1e-6)

"""Distances where the digits of single precision, with which the solver starts, do not suffice."""

import numpy as np
import pytest

from closerlook.geometry import separate
from tests.geometry.plain import plain_distance


def faces(d: int, height: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points on two parallel planes at a known distance, the points of each around those of the other."""
    rng = np.random.default_rng(seed)
    A, B = (np.column_stack([rng.standard_normal((12 * d, d - 1)), np.full(12 * d, at)]) for at in (height, 0.0))
    turned = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return A @ turned, B @ turned


@pytest.mark.parametrize("height", [1.0, 1e-2, 1e-4, 3e-6])
@pytest.mark.parametrize("d", [3, 12, 40])
def test_the_distance_of_parallel_faces_is_that_of_their_planes(d: int, height: float) -> None:
    A, B = faces(d, height)
    result = separate(A, B, tau=1e-7)
    digits = 1e-15 * d / height  # of the turned coordinates
    assert result.verdict == "separable"
    assert result.lower <= height * (1 + digits)
    assert result.upper >= height * (1 - digits)
    assert result.gap <= 1e-6 * result.upper
    assert result.verify(A, B)


@pytest.mark.parametrize("d", [3, 12, 40])
def test_parallel_faces_within_tau_overlap(d: int) -> None:
    A, B = faces(d, 1e-9)
    for gap in (1e-6, None):
        result = separate(A, B, gap=gap)
        assert result.verdict == "overlapping"
        assert result.verify(A, B)


@pytest.mark.parametrize("apart", [1e-3, 1e-6, 1e-9, 0.0])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_near_duplicates_and_offsets_leave_the_distance_correct(apart: float, offset: float) -> None:
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((40, 30)), rng.standard_normal((50, 30)) + 0.6
    A, B = (np.vstack([part, part + apart * rng.standard_normal(part.shape)]) + offset for part in (A, B))
    result = separate(A, B)
    assert result.lower * (1 - 1e-5) <= plain_distance(A, B) <= result.upper * (1 + 1e-5)
    assert result.gap <= 1e-6 * result.upper + 1e-10
    assert result.verify(A, B)


def test_points_of_a_line_and_of_a_plane_are_measured() -> None:
    t = np.linspace(-1, 1, 60)
    line = np.column_stack([t, t, np.full(60, 2.0)])
    plane = np.array([(x, y, 0.0) for x in (-2.0, 0.0, 2.0) for y in (-2.0, 0.0, 2.0)])
    result = separate(line, plane)
    assert result.distance == pytest.approx(2.0, rel=1e-9)
    assert result.verify(line, plane)


@pytest.mark.parametrize("far", [1e15, 1e20, 1e25, 1e29])
def test_points_whose_squares_overflow_single_precision_are_separable(far: float) -> None:
    A, B = [[1.0, 0.0], [2.0, 0.0], [2.0, 1.0]], [[-far, 0.0], [-far, 1.0]]
    for gap in (1e-6, None):
        result = separate(A, B, scale=1.0, gap=gap)
        assert result.verdict == "separable"
        assert result.distance == pytest.approx(far, rel=1e-6 if gap else 1.0)


@pytest.mark.parametrize("near", [1e-12, 1e-20, 1e-25, 1e-40])
def test_points_whose_squares_vanish_in_single_precision_are_measured(near: float) -> None:
    hull = np.array([[0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]])
    result = separate(hull * near, [[near, near]], tau=1e-50, scale=1.0)
    assert result.distance == pytest.approx(np.sqrt(2) * near, rel=1e-6)

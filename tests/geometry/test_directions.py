"""The hyperplanes that the merging starts with, compared with one system of equations for each pair of labels."""

from itertools import pairwise

import numpy as np
import pytest

from closerlook.geometry.clusters import _directions
from closerlook.geometry.frame import Floats


def plain_normals(Z: Floats, starts: list[int]) -> list[Floats]:
    """For each pair of labels the discriminant direction, solved by itself, and the difference of the means."""
    means = [Z[a:b].mean(axis=0) for a, b in pairwise(starts)]
    within = Z.T @ Z / len(Z)
    for mean, a, b in zip(means, starts[:-1], starts[1:], strict=True):
        within -= (b - a) / len(Z) * np.outer(mean, mean)
    within += 1e-3 * np.trace(within) / Z.shape[1] * np.eye(Z.shape[1])
    normals = []
    for i in range(len(means)):
        for j in range(i + 1, len(means)):
            difference = means[i] - means[j]
            for normal in (np.linalg.solve(within, difference), difference):
                normals.append(normal / np.linalg.norm(normal))
    return normals


@pytest.mark.parametrize("d", [1, 5, 40])
def test_one_factorisation_gives_the_directions_of_each_pair_of_labels(d: int) -> None:
    rng = np.random.default_rng(d)
    Z = rng.standard_normal((120, d)) * np.geomspace(1, 100, d)
    Z -= Z.mean(axis=0)
    starts = [0, 20, 70, 90, 120]
    overlapping = [[other for other in range(4) if other != label] for label in range(4)]
    planes = _directions(Z, len(Z), np.array(starts), overlapping)[1]
    assert [(a, b) for a, b, _ in planes[::2]] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    np.testing.assert_allclose([normal for _, _, normal in planes], plain_normals(Z, starts), atol=1e-9)

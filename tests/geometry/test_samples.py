"""Large clusters are tested by a sample of their points first; what the sample leaves out still counts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from closerlook.geometry import audit, cluster


def on_circle(degrees: list[float], radius: float) -> NDArray[np.float64]:
    """(n, 2) points on a circle."""
    angles = np.deg2rad(degrees)
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


@pytest.mark.parametrize("threads", [1, 2])
def test_points_outside_the_sample_block_a_merge(threads: int) -> None:
    """Four spikes of a disc of 5,000 points keep four pairs of other points apart; a sample has one spike at most.

    The spikes are four consecutive rows, and a sample is every fourth row. Without its spike, the disc is separable
    from the union of two neighbouring pairs, whose hull comes within 1.4 of the centre.
    """
    rng = np.random.default_rng(0)
    disc = on_circle(rng.uniform(0, 360, 5000).tolist(), 1) * np.sqrt(rng.random((5000, 1)))
    disc[2000:2004] = on_circle([0, 90, 180, 270], 1.47)
    ring = on_circle([30, 60, 120, 150, 210, 240, 300, 330], 2.8)
    X, y = np.concatenate([disc, ring]), np.repeat([0, 1], [5000, 8])
    result = cluster(X, y, threads=threads)
    assert result.assignments[5000:].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert result.n_clusters == 5
    proofs = audit(X, y, result)
    assert (proofs.problems, proofs.blocked) == ((), 6)

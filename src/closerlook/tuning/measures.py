"""The geometry of one layer in a few numbers, as the callback logs them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closerlook.geometry import LabelDistances, cluster, cluster_distances, label_distances, spatial_similarity


@dataclass(frozen=True)
class LayerGeometry:
    """DirectProbe's clusters of one layer and how far its labels lie apart; NaN is what cannot be computed.

    conflicts: examples that coincide with one of another label. minimum_distance: of each label to the nearest other
    one, the mean over labels; relative: in RMS radii. similarity: the Pearson correlation of the label distances with
    those at the start.
    """

    n: int
    labels: int
    clusters: int
    separable: bool
    conflicts: int
    undecided: int
    minimum_distance: float
    relative_minimum_distance: float
    similarity: float


def measure_layer(
    X: NDArray[np.float32], y: NDArray[np.str_], start: LabelDistances | None, threads: int | None = None
) -> tuple[LayerGeometry, LabelDistances]:
    """The geometry of points (n, d) with labels (n,), and their label distances. start: those to be like."""
    found = cluster(X, y, threads=threads)
    distances = label_distances(cluster_distances(X, found, threads=threads))
    mean = distances.mean_minimum()
    geometry = LayerGeometry(
        n=len(y),
        labels=found.n_labels,
        clusters=found.n_clusters,
        separable=found.is_separable,
        conflicts=len(found.conflicts),
        undecided=found.n_undecided,
        minimum_distance=mean,
        relative_minimum_distance=mean / distances.radius if distances.radius > 0 else math.nan,
        similarity=_similarity(distances if start is None else start, distances),
    )
    return geometry, distances


def _similarity(start: LabelDistances, now: LabelDistances) -> float:
    if len(now.labels) < 3:
        return math.nan  # of two labels there is one distance, which correlates with nothing
    return spatial_similarity(start, now, permutations=0, resamples=0).pearson

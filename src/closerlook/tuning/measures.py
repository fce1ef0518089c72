"""The numbers that `GeometryCallback` logs for one layer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closerlook.geometry import LabelDistances, cluster, cluster_distances, label_distances, spatial_similarity


@dataclass(frozen=True)
class LayerGeometry:
    """DirectProbe's clusters and label distances of one layer; NaN for what cannot be computed.

    n: examples. conflicts: examples whose vector equals that of an example with a different label. undecided: merges
    that could neither be proved nor refuted. minimum_distance: the distance of a label to the nearest other label,
    averaged over labels; relative_minimum_distance: the same in RMS radii. similarity: spatial similarity to the start
    of the training, the Pearson correlation of the label distances.
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
    X: NDArray[np.float32], y: NDArray[Any], start: LabelDistances | None, threads: int | None = None
) -> tuple[LayerGeometry, LabelDistances]:
    """The geometry of points X (n, d) with labels y (n,), and their label distances.

    start: the label distances to compare with; None if these points are the start themselves.
    """
    clustering = cluster(X, y, threads=threads)
    distances = label_distances(cluster_distances(X, clustering, threads=threads))
    mean = distances.mean_minimum()
    geometry = LayerGeometry(
        n=len(y),
        labels=clustering.n_labels,
        clusters=clustering.n_clusters,
        separable=clustering.is_separable,
        conflicts=len(clustering.conflicts),
        undecided=clustering.n_undecided,
        minimum_distance=mean,
        relative_minimum_distance=mean / distances.radius if distances.radius > 0 else math.nan,
        similarity=_similarity(distances if start is None else start, distances),
    )
    return geometry, distances


def _similarity(start: LabelDistances, now: LabelDistances) -> float:
    if len(now.labels) < 3:
        return math.nan  # two labels have one distance, and a correlation needs more
    return spatial_similarity(start, now, permutations=0, resamples=0).pearson

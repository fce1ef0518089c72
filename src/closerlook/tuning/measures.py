"""The numbers that `GeometryCallback` logs for one layer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closerlook.geometry import LabelDistances, cluster, cluster_distances, label_distances, spatial_similarity
from closerlook.geometry.shape import class_means, nearest_mean


@dataclass(frozen=True)
class LayerGeometry:
    """DirectProbe's clusters and label distances of one layer, and a held-out score; NaN for what cannot be computed.

    n: examples. conflicts: examples whose vector equals that of an example with a different label. undecided: merges
    that could neither be proved nor refuted. minimum_distance: the distance of a label to the nearest other label,
    averaged over labels; relative_minimum_distance: the same in RMS radii. similarity: spatial similarity to the start
    of the training, the Pearson correlation of the label distances. held_out_n: held-out examples.
    held_out_accuracy: the share of them whose nearest label mean (of the n examples) is that of their own label.
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
    held_out_n: int
    held_out_accuracy: float


def measure_layer(
    X: NDArray[np.float32],
    y: NDArray[Any],
    start: LabelDistances | None,
    correct: NDArray[np.bool_],
    threads: int | None = None,
) -> tuple[LayerGeometry, LabelDistances]:
    """The geometry of points X (n, d) with labels y (n,), and their label distances.

    start: the label distances to compare with; None if these points are the start themselves. correct: for each
    held-out example, whether it is predicted correctly, see `predict_held_out`; empty without held-out examples.
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
        held_out_n=len(correct),
        held_out_accuracy=float(correct.mean()) if len(correct) else math.nan,
    )
    return geometry, distances


def predict_held_out(
    X: NDArray[np.float32], y: NDArray[np.integer[Any]], tests: NDArray[np.float32], truth: NDArray[np.integer[Any]]
) -> NDArray[np.bool_]:
    """(m,) whether the nearest label mean of points X (n, d) is that of the true label, for each of `tests` (m, d).

    y, truth: label numbers, the same numbers in both. A label that X lacks is never predicted.

    >>> X = np.array([[0.0], [1.0], [8.0]], np.float32)
    >>> predict_held_out(X, np.array([4, 4, 7]), np.array([[2.0], [5.0]], np.float32), np.array([4, 4])).tolist()
    [True, False]
    """
    labels, codes = np.unique(y, return_inverse=True)
    centre = X.mean(axis=0, dtype=np.float64)
    means, _ = class_means(X.astype(np.float64) - centre, codes.reshape(-1), len(labels))
    correct: NDArray[np.bool_] = labels[nearest_mean(tests.astype(np.float64) - centre, means)] == truth
    return correct


def _similarity(start: LabelDistances, now: LabelDistances) -> float:
    if len(now.labels) < 3:
        return math.nan  # two labels have one distance, and a correlation needs more
    return spatial_similarity(start, now, permutations=0, resamples=0).pearson

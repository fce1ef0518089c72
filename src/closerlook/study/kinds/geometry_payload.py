"""The payload of a measured space: what comparisons and centroid paths need of it, as JSON."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import NDArray

from closerlook.geometry import Clustering, LabelDistances
from closerlook.geometry.resampling import ResampledDistances
from closerlook.representations.space import Space
from closerlook.study.rows import Payload, plain

Floats = NDArray[np.float64]

SIGNIFICANT_DIGITS = 6
"""Resampled distances are stored with this many significant digits: they are many, and only their spread is used."""


def label_sizes(clustering: Clustering) -> list[int]:
    """The number of points of each label, in the order of the labels."""
    codes = clustering.cluster_codes[clustering.assignments]
    sizes: list[int] = np.bincount(codes, minlength=clustering.n_labels).tolist()
    return sizes


def decode_sizes(payload: Payload) -> dict[str | int, int]:
    """The number of points of each label; empty in a payload of an earlier version."""
    return dict(zip(payload["labels"], payload.get("sizes", []), strict=False))


def encode_centroids(space: Space, clustering: Clustering) -> str:
    """The means of the labels' points, an (m, d) float32 array, in base64: a third of the length of decimal text."""
    codes = clustering.cluster_codes[clustering.assignments]
    sums = np.zeros((clustering.n_labels, space.d))
    np.add.at(sums, codes, space.X.astype(np.float64))
    means = (sums / np.bincount(codes)[:, None]).astype("<f4")
    return base64.b64encode(means.tobytes()).decode()


def decode_centroids(payload: Payload) -> dict[str | int, Floats]:
    """The mean of each label's points, by label."""
    means = np.frombuffer(base64.b64decode(payload["centroids"]), "<f4").reshape(len(payload["labels"]), -1)
    return dict(zip(payload["labels"], means.astype(np.float64), strict=True))


def encode_replicates(resampled: ResampledDistances) -> list[list[object]]:
    """For each resample, the distances of the label pairs i < j as a flat list."""
    i, j = np.triu_indices(len(resampled.labels), 1)
    return [
        [plain(float(f"{value:.{SIGNIFICANT_DIGITS}g}")) for value in replicate]
        for replicate in resampled.values[:, i, j]
    ]


def decode_replicates(payload: Payload) -> ResampledDistances:
    """The resampled label distances of a space.

    The payload does not contain statistic, min_points and seed; the result has placeholders for them.
    """
    labels = tuple(payload["labels"])
    encoded = payload["distances"]["replicates"]
    values = np.zeros((len(encoded), len(labels), len(labels)))
    i, j = np.triu_indices(len(labels), 1)
    values[:, i, j] = values[:, j, i] = np.array(encoded, dtype=float).reshape(len(encoded), len(i))
    return ResampledDistances(labels, values, "mean", 1, 0)


def distances_payload(distances: LabelDistances) -> Payload:
    """The label distances, with None for NaN."""
    values = [[plain(float(value)) for value in line] for line in distances.values]
    return {"values": values, "separable": distances.separable, "radius": distances.radius}


class LabelTable:
    """The label distances in a payload, as `spatial_similarity` reads them."""

    def __init__(self, payload: Payload) -> None:
        distances = payload["distances"]
        self.labels: list[str | int] = list(payload["labels"])
        self.values = np.array(
            [[np.nan if value is None else value for value in line] for line in distances["values"]], dtype=float
        )
        self.separable = bool(distances["separable"])

"""Geometry of labelled points: hulls, DirectProbe's clusters, distances, spatial similarity. Arrays in, numbers out."""

from closerlook.geometry.audit import Audit, audit
from closerlook.geometry.clusters import Blocker, Clustering, cluster
from closerlook.geometry.distances import (
    ClusterDistances,
    Extents,
    LabelDistances,
    cluster_distances,
    inside_distances,
    label_distances,
)
from closerlook.geometry.hulls import Separation, point_to_hull, separate
from closerlook.geometry.nearest import hull_distances, nearest_hulls
from closerlook.geometry.similarity import Similarity, spatial_similarity

__all__ = [
    "Audit",
    "Blocker",
    "ClusterDistances",
    "Clustering",
    "Extents",
    "LabelDistances",
    "Separation",
    "Similarity",
    "audit",
    "cluster",
    "cluster_distances",
    "hull_distances",
    "inside_distances",
    "label_distances",
    "nearest_hulls",
    "point_to_hull",
    "separate",
    "spatial_similarity",
]

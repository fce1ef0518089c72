"""Geometry of labelled points: convex hulls, DirectProbe's clusters, distances, similarity, shape.

Functions take arrays and return values; they read no files and print nothing.
"""

from closerlook.geometry.attempts import Attempts
from closerlook.geometry.audit import Audit, audit
from closerlook.geometry.blocked import BlockedMerge
from closerlook.geometry.clusters import Clustering, cluster
from closerlook.geometry.distances import (
    ClusterDistances,
    ClusterExtents,
    LabelDistances,
    cluster_distances,
    label_distances,
    within_cluster_distances,
)
from closerlook.geometry.fit import LabelFit, label_fit
from closerlook.geometry.hulls import Separation, point_to_hull, separate
from closerlook.geometry.nearest import hull_distances, nearest_hulls
from closerlook.geometry.nulls import ClusterNulls, Null, Separability, cluster_nulls, cover_probability, separability
from closerlook.geometry.overlap import Overlap, largest_cluster_shares, overlaps
from closerlook.geometry.panel import Panel, describe_space
from closerlook.geometry.point_similarity import PointSimilarity, compare_points
from closerlook.geometry.sensitivity import SimilarityAt, clusters_by_tau, similarity_by_min_points
from closerlook.geometry.shape import Collapse, Isotropy, collapse, isotropy, participation_ratio, self_duality, two_nn
from closerlook.geometry.similarity import Similarity, spatial_similarity

__all__ = [
    "Attempts",
    "Audit",
    "BlockedMerge",
    "ClusterDistances",
    "ClusterExtents",
    "ClusterNulls",
    "Clustering",
    "Collapse",
    "Isotropy",
    "LabelDistances",
    "LabelFit",
    "Null",
    "Overlap",
    "Panel",
    "PointSimilarity",
    "Separability",
    "Separation",
    "Similarity",
    "SimilarityAt",
    "audit",
    "cluster",
    "cluster_distances",
    "cluster_nulls",
    "clusters_by_tau",
    "collapse",
    "compare_points",
    "cover_probability",
    "describe_space",
    "hull_distances",
    "isotropy",
    "label_distances",
    "label_fit",
    "largest_cluster_shares",
    "nearest_hulls",
    "overlaps",
    "participation_ratio",
    "point_to_hull",
    "self_duality",
    "separability",
    "separate",
    "similarity_by_min_points",
    "spatial_similarity",
    "two_nn",
    "within_cluster_distances",
]

"""Geometry of labelled points: hulls, DirectProbe's clusters, distances, similarity, shape. Arrays in, numbers out."""

from closerlook.geometry.alike import Alikeness, alikeness
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
from closerlook.geometry.fit import LabelFit, label_fit
from closerlook.geometry.graded import Overlap, largest_shares, overlaps
from closerlook.geometry.hulls import Separation, point_to_hull, separate
from closerlook.geometry.nearest import hull_distances, nearest_hulls
from closerlook.geometry.nulls import ClusterNulls, Null, Separability, cluster_nulls, cover_probability, separability
from closerlook.geometry.panel import Panel, describe_space
from closerlook.geometry.shape import Collapse, Isotropy, collapse, isotropy, participation_ratio, two_nn
from closerlook.geometry.similarity import Similarity, spatial_similarity

__all__ = [
    "Alikeness",
    "Audit",
    "Blocker",
    "ClusterDistances",
    "ClusterNulls",
    "Clustering",
    "Collapse",
    "Extents",
    "Isotropy",
    "LabelDistances",
    "LabelFit",
    "Null",
    "Overlap",
    "Panel",
    "Separability",
    "Separation",
    "Similarity",
    "alikeness",
    "audit",
    "cluster",
    "cluster_distances",
    "cluster_nulls",
    "collapse",
    "cover_probability",
    "describe_space",
    "hull_distances",
    "inside_distances",
    "isotropy",
    "label_distances",
    "label_fit",
    "largest_shares",
    "nearest_hulls",
    "overlaps",
    "participation_ratio",
    "point_to_hull",
    "separability",
    "separate",
    "spatial_similarity",
    "two_nn",
]

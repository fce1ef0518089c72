"""Clusters and distances of one space."""

from __future__ import annotations

from closerlook.study.measure import Measure

MEASURES = (
    Measure("n_points", "points", "number of examples in the space", digits=0),
    Measure("n_dimensions", "dimensions", "number of dimensions of the space", digits=0),
    Measure("n_labels", "labels", "number of labels that occur in the space", digits=0),
    Measure(
        "n_clusters",
        "clusters",
        "number of DirectProbe clusters; as many as labels: the space is linearly separable",
        digits=0,
        null="subsampled_clusters",
    ),
    Measure("is_separable", "linearly separable", "1 if there is exactly one cluster for each label, else 0", digits=0),
    Measure(
        "n_conflicts",
        "conflicts",
        "number of points with the same vector as a point of another label",
        digits=0,
    ),
    Measure(
        "n_undecided",
        "undecided pairs",
        "pairs of clusters for which the solver stalled before it proved them separable or overlapping",
        digits=0,
    ),
    Measure("rms_radius", "RMS radius", "root mean square distance of the points from their mean"),
    Measure(
        "label_clusters",
        "clusters of a label",
        "number of clusters of a label; n: its points",
        digits=0,
        rows="label",
        archive="ends of last layer",
    ),
    Measure(
        "largest_cluster_share",
        "largest cluster of a label",
        "share of a label's points that are in its largest cluster; 1: the label is one cluster",
        digits=3,
        rows="label",
        archive="none",
    ),
    Measure(
        "mean_largest_cluster_share",
        "largest cluster",
        "share of a label's points that are in its largest cluster, mean over labels; 1: one cluster for each label",
        digits=3,
        group="overlap",
    ),
    Measure(
        "few_points",
        "label with few points",
        "number of points of a label that has too few for reliable distances; text: the reason",
        digits=0,
        rows="label",
        archive="ends of last layer",
    ),
    Measure(
        "blocked_merge",
        "blocked merge",
        "two clusters of a label that cannot merge, and the cluster of another label that blocks them; text: points, "
        "words and sentences of both sides, as JSON",
        rows="merge",
        archive="ends of last layer",
    ),
    Measure(
        "label_distance",
        "label distance",
        "distance between the convex hulls of two labels: mean (or minimum) over pairs of their clusters",
        rows="label pair",
        archive="ends of last layer",
    ),
    Measure(
        "minimum_distance",
        "minimum distance",
        "distance of a label to the nearest other label",
        rows="label",
        archive="last layer",
    ),
    Measure(
        "relative_minimum_distance",
        "minimum distance in RMS radii",
        "minimum distance of a label divided by the RMS radius of the space",
        digits=3,
        rows="label",
        archive="last layer",
    ),
    Measure(
        "mean_minimum_distance",
        "mean minimum distance",
        "distance of a label to the nearest other label, mean over labels",
        null="subsampled_mean_minimum_distance",
    ),
    Measure(
        "mean_relative_minimum_distance",
        "mean minimum distance in RMS radii",
        "mean minimum distance divided by the RMS radius of the space",
        digits=3,
    ),
    Measure(
        "mean_minimum_distance_bias",
        "bias of the mean minimum distance",
        "mean minimum distance on halves of the examples minus that on all examples; n: number of halves",
    ),
    Measure(
        "n_excluded_clusters",
        "excluded clusters",
        "number of clusters of a label that are too small to count in its distances (setting min_points)",
        digits=0,
        rows="label",
    ),
)

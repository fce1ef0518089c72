"""Maps the former names of columns, measures and kinds of cells in older tables and manifests to the present names."""

from __future__ import annotations

import re

COLUMNS = {"last": "is_final"}

KINDS = {
    "alike": "point_similarity",
    "classify": "classifier",
    "compare": "comparison",
    "halves": "split_halves",
    "paths": "centroids",
}

MEASURES = {
    "blocker": "blocked_merge",
    "dimensions": "n_dimensions",
    "distance": "label_distance",
    "distance_change": "minimum_distance_change",
    "distance_change_p": "minimum_distance_change_p_value",
    "is_linear": "is_separable",
    "labels_decreased": "n_labels_decreased",
    "labels_increased": "n_labels_increased",
    "labels_surely_decreased": "n_labels_significantly_decreased",
    "labels_surely_increased": "n_labels_significantly_increased",
    "largest_share": "largest_cluster_share",
    "left_out_clusters": "n_excluded_clusters",
    "mean_distance_change": "mean_minimum_distance_change",
    "mean_largest_share": "mean_largest_cluster_share",
    "neighbours": "shared_neighbours",
    "overlap": "label_overlap",
    "overlapping_pairs": "n_overlapping_pairs",
    "paths_explained_x": "path_explained_variance_x",
    "paths_explained_y": "path_explained_variance_y",
    "radius": "rms_radius",
    "removed_share": "largest_overlap_share",
    "separable_cover": "separable_pairs_cover_probability",
    "separable_pairs_null": "separable_pairs_null_mean",
    "separable_pairs_p": "separable_pairs_p_value",
    "separable_ratio": "separable_pairs_n_over_2d",
    "shifts_explained_x": "shift_explained_variance_x",
    "shifts_explained_y": "shift_explained_variance_y",
    "similarity_examples": "similarity_over_examples",
    "similarity_left_out": "similarity_excluded_labels",
    "similarity_null": "similarity_null_mean",
    "similarity_p": "similarity_p_value",
    "similarity_separable": "similarity_both_separable",
    "thinned_clusters": "subsampled_clusters",
    "thinned_clusters_null": "subsampled_clusters_null_mean",
    "thinned_clusters_null_sd": "subsampled_clusters_null_sd",
    "thinned_clusters_p": "subsampled_clusters_p_value",
    "thinned_clusters_z": "subsampled_clusters_z",
    "thinned_mean_minimum_distance": "subsampled_mean_minimum_distance",
    "thinned_mean_minimum_distance_null": "subsampled_mean_minimum_distance_null_mean",
    "thinned_mean_minimum_distance_null_sd": "subsampled_mean_minimum_distance_null_sd",
    "thinned_mean_minimum_distance_p": "subsampled_mean_minimum_distance_p_value",
    "thinned_mean_minimum_distance_z": "subsampled_mean_minimum_distance_z",
    "unseen_labels": "n_unseen_labels",
}

COMPARED_WITH = re.compile(r"(?P<measure>\w+?)(?P<suffix>_(?:train_\w+|original|seed|random|encoder))?")
"""A measure's name, and what was compared: train with another split, or a train space with another one."""


def current_name(measure: str) -> str:
    """The present name of a measure.

    >>> current_name("similarity_p_train_test"), current_name("accuracy")
    ('similarity_p_value_train_test', 'accuracy')
    """
    match = COMPARED_WITH.fullmatch(measure)
    if match is None or match["measure"] not in MEASURES:
        return measure
    return MEASURES[match["measure"]] + (match["suffix"] or "")

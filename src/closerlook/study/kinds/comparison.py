"""Two measured spaces compared by their label distances: spatial similarity, and how minimum distances changed."""

from __future__ import annotations

from closerlook.study.measure import Measure

MEASURES = (
    Measure(
        "similarity",
        "spatial similarity",
        "Pearson correlation of the label distances of two spaces; interval: bootstrap over labels; n: common labels",
        compares=True,
    ),
    Measure(
        "similarity_spearman",
        "spatial similarity of ranks",
        "Spearman rank correlation of the label distances of two spaces",
        compares=True,
    ),
    Measure(
        "similarity_p_value",
        "p-value of the similarity",
        "share of permuted labellings whose similarity is at least as high (Mantel test); n: permutations",
        digits=4,
        compares=True,
    ),
    Measure(
        "similarity_null_mean",
        "similarity under permuted labels",
        "mean similarity when the labels of one space are permuted; n: permutations",
        compares=True,
    ),
    Measure(
        "similarity_null_sd",
        "standard deviation of the similarity under permuted labels",
        "standard deviation of the similarity when the labels of one space are permuted",
        compares=True,
    ),
    Measure(
        "similarity_both_separable",
        "both spaces linearly separable",
        "1 if both spaces are linearly separable, which the paper's definition of similarity assumes; else 0",
        digits=0,
        compares=True,
    ),
    Measure(
        "similarity_excluded_labels",
        "labels excluded from the similarity",
        "number of labels that occur in one of the two spaces only; text: their names, and labels without distances",
        digits=0,
        compares=True,
    ),
    Measure(
        "similarity_over_examples",
        "similarity with an interval over examples",
        "the similarity again; interval: over halves of the examples instead of over labels; n: number of halves",
        compares=True,
    ),
    Measure(
        "minimum_distance_change",
        "change of the minimum distance",
        "change of a label's minimum distance since before fine-tuning",
        rows="label",
        compares=True,
        training_only=True,
        archive="none",
    ),
    Measure(
        "minimum_distance_change_p_value",
        "p-value of the change (Holm)",
        "p-value of a label's change being zero, from halves of the same examples, Holm-corrected for all labels",
        digits=4,
        rows="label",
        compares=True,
        training_only=True,
        archive="last layer",
    ),
    Measure(
        "n_labels_increased",
        "labels farther",
        "number of labels whose minimum distance is larger than before fine-tuning",
        digits=0,
        compares=True,
        training_only=True,
    ),
    Measure(
        "n_labels_decreased",
        "labels closer",
        "number of labels whose minimum distance is smaller than before fine-tuning",
        digits=0,
        compares=True,
        training_only=True,
    ),
    Measure(
        "n_labels_significantly_increased",
        "labels significantly farther",
        "number of labels whose minimum distance increased with a Holm-corrected p ≤ 0.05; n: labels tested",
        digits=0,
        compares=True,
        training_only=True,
    ),
    Measure(
        "n_labels_significantly_decreased",
        "labels significantly closer",
        "number of labels whose minimum distance decreased with a Holm-corrected p ≤ 0.05; n: labels tested",
        digits=0,
        compares=True,
        training_only=True,
    ),
    Measure(
        "mean_minimum_distance_change",
        "mean change of the minimum distance",
        "change of the minimum distance since before fine-tuning, mean over labels; n: number of labels",
        compares=True,
        training_only=True,
    ),
)

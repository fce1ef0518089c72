"""What shuffled labels give: separable pairs, clusters and distances of one space under random labellings."""

from __future__ import annotations

from dataclasses import replace

from closerlook.study.measure import Measure


def _with_null(measure: Measure) -> tuple[Measure, ...]:
    """A measure with the true labels, and the four that compare it with shuffled labels."""
    plain = measure.title.removesuffix(", %")
    return (
        measure,
        replace(
            measure,
            name=f"{measure.name}_null_mean",
            title=f"{measure.title} (shuffled labels)",
            meaning=f"the same with shuffled labels, mean over shuffles: {measure.meaning}",
        ),
        replace(
            measure,
            name=f"{measure.name}_null_sd",
            title=f"standard deviation of {measure.title} (shuffled labels)",
            meaning=f"the same with shuffled labels, standard deviation over shuffles: {measure.meaning}",
        ),
        Measure(
            f"{measure.name}_z",
            f"z-score of {plain}",
            "true labels compared with shuffled ones, in standard deviations of the shuffled ones",
            digits=1,
        ),
        Measure(
            f"{measure.name}_p_value",
            f"p-value of {plain}",
            "share of labellings, the true one included, with a value at least as extreme as with the true labels",
            digits=3,
        ),
    )


MEASURES = (
    *_with_null(
        Measure(
            "separable_pairs",
            "separable pairs, %",
            "share of the pairs of labels that a hyperplane separates",
            digits=1,
            scale=100.0,
        )
    ),
    Measure(
        "separable_pairs_n_over_2d",
        "n / 2d",
        "points of two labels divided by twice the dimensions, mean over pairs; below 1, most labellings are separable",
    ),
    Measure(
        "separable_pairs_cover_probability",
        "separable with random labels, %",
        "probability that a random labelling of two labels' points is separable (Cover), mean over pairs",
        digits=1,
        scale=100.0,
    ),
    *_with_null(
        Measure(
            "subsampled_clusters",
            "clusters of subsampled points",
            "number of clusters on a subsample of the points; n: its size",
            digits=1,
        )
    ),
    *_with_null(
        Measure(
            "subsampled_mean_minimum_distance",
            "mean minimum distance of subsampled points",
            "mean minimum distance on a subsample of the points; n: its size",
        )
    ),
)

"""The panel: scalars of the shape of one space."""

from __future__ import annotations

from closerlook.study.measure import Measure

MEASURES = (
    Measure(
        "nc1",
        "NC1",
        "variance within labels relative to the variance between their means; 0: every label is one point",
        group="collapse",
    ),
    Measure(
        "cdnv",
        "CDNV",
        "variance within two labels divided by the squared distance of their means, mean over pairs; 0: collapsed",
        group="collapse",
    ),
    Measure(
        "nc2_norm",
        "NC2, lengths",
        "variation of the label means' distances from their centre; 0: all equally far",
        group="collapse",
    ),
    Measure(
        "nc2_angle",
        "NC2, angles",
        "variation of the cosines between label means, seen from their centre; 0: all angles equal",
        group="collapse",
    ),
    Measure(
        "nc3",
        "NC3",
        "difference between the label means and the weights of a linear classifier; 0: proportional",
        group="collapse",
    ),
    Measure(
        "nc4",
        "NC4",
        "share of points for which a linear classifier and the nearest label mean agree; 1: always",
        digits=3,
        group="collapse",
    ),
    Measure(
        "participation_ratio",
        "participation ratio",
        "effective number of dimensions over which the variance is spread",
        digits=1,
        group="dimension",
    ),
    Measure(
        "two_nn",
        "TwoNN",
        "intrinsic dimension, estimated from the distances of each point to its two nearest neighbours",
        digits=1,
        group="dimension",
    ),
    Measure("iso_score", "IsoScore", "1: equal variance in all directions; 0: all variance in one", group="isotropy"),
    Measure(
        "mean_cosine",
        "mean cosine",
        "cosine of two points, mean over all pairs; near 1: all points lie in one direction from the origin",
        group="isotropy",
    ),
    Measure(
        "outlier_dimensions",
        "outlier dimensions",
        "share of dimensions whose mean is more than three standard deviations from the average",
        digits=3,
        group="isotropy",
    ),
    Measure(
        "logme",
        "LogME",
        "log evidence of a linear model of the labels; higher: the labels fit better",
        group="label fit",
    ),
    Measure(
        "gdv",
        "GDV",
        "scaled distance within labels minus distance between labels; −1: well separated, 0: no label structure",
        group="label fit",
    ),
    Measure(
        "silhouette",
        "silhouette",
        "1: points are much nearer to their own label than to the next; 0: between labels; below 0: nearer to another",
        group="label fit",
    ),
    Measure(
        "n_overlapping_pairs",
        "overlapping pairs",
        "number of pairs of labels that no hyperplane separates",
        digits=0,
        group="overlap",
    ),
    Measure(
        "largest_overlap_share",
        "largest overlap",
        "share of two labels' points to remove until a hyperplane separates the rest (upper bound); the worst pair",
        digits=3,
        group="overlap",
    ),
    Measure(
        "n_over_2d",
        "n / 2d",
        "points of two labels divided by twice the dimensions, mean over pairs; below 1, most labellings are separable",
        group="overlap",
    ),
    Measure(
        "cover_probability",
        "Cover probability",
        "probability that a random labelling of two labels' points is separable; near 1: separability says nothing",
        group="overlap",
    ),
    Measure(
        "label_overlap",
        "overlap of two labels",
        "share of two labels' points to remove until a hyperplane separates the rest (upper bound); n: how many points",
        digits=3,
        rows="label pair",
        archive="none",
    ),
)

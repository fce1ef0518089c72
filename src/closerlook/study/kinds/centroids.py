"""The paths of the label centroids through a fine-tuning, projected to two dimensions."""

from __future__ import annotations

from closerlook.study.measure import Measure, Rows


def _plane(name: str, title: str, meaning: str, rows: Rows = "space") -> tuple[Measure, Measure]:
    """The same measure for both axes of a plane."""
    first, second = (
        Measure(f"{name}_{axis}", f"{title}, {axis}", meaning.format(component), rows=rows)
        for axis, component in (("x", "first"), ("y", "second"))
    )
    return first, second


MEASURES = (
    *_plane(
        "centroid",
        "centroid",
        "mean vector of a label at one step, on the {} principal component of all centroids at all steps",
        "label",
    ),
    *_plane(
        "path_explained_variance",
        "explained variance of centroids",
        "share of the variance of all centroids at all steps that the {} principal component explains",
    ),
    *_plane(
        "shift",
        "centroid shift",
        "last minus first centroid of a label, on the {} principal component of these differences (not centred)",
        "label",
    ),
    Measure(
        "shift_length",
        "length of the centroid shift",
        "Euclidean distance between the first and the last centroid of a label",
        rows="label",
    ),
    *_plane(
        "shift_explained_variance",
        "explained variance of shifts",
        "share of the squared length of all centroid shifts that the {} principal component explains",
    ),
)

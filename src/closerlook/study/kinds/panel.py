"""The study cell `panel`: statistics of the shape of one space. To add a statistic, add an entry to `SCALARS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from closerlook.geometry import Panel as SpacePanel
from closerlook.geometry import describe_space
from closerlook.geometry.point_similarity import NEIGHBOURS
from closerlook.representations.space import Space
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.entries import LayeredPart, Layers
from closerlook.study.inputs import load_space
from closerlook.study.kinds.kind import CellResult, Kind, TrainSpaceSettings
from closerlook.study.measure import Measure
from closerlook.study.rows import Row, row
from closerlook.study.sizes import Estimate, space_size

if TYPE_CHECKING:
    from closerlook.study.plan import Plan


@dataclass(frozen=True)
class DescribedSpace:
    """A labelled space, with the measures that `describe_space` computes together.

    X: (n, d) the vectors. y: (n,) the label names. values: the measures of `panel` by name.
    """

    X: ArrayLike
    y: ArrayLike
    panel: SpacePanel
    values: dict[str, float]


@dataclass(frozen=True)
class Scalar:
    """A measure of the panel, and the function that computes it."""

    measure: Measure
    compute: Callable[[DescribedSpace], float]


def _in_panel(name: str, title: str, meaning: str, digits: int = 2, *, group: str) -> Scalar:
    """A scalar that `describe_space` has computed already."""
    measure = Measure(name, title, meaning, digits=digits, group=group)
    return Scalar(measure, lambda described: described.values[name])


SCALARS: list[Scalar] = [
    _in_panel(
        "nc1",
        "NC1",
        "variance within labels relative to the variance between their means; 0: every label is one point",
        group="neural collapse",
    ),
    _in_panel(
        "cdnv",
        "CDNV",
        "variance within two labels divided by the squared distance of their means, mean over pairs; 0: collapsed",
        group="neural collapse",
    ),
    _in_panel(
        "nc2_norm",
        "NC2, lengths",
        "variation of the label means' distances from their centre; 0: all equally far",
        group="neural collapse",
    ),
    _in_panel(
        "nc2_angle",
        "NC2, angles",
        "variation of the cosines between label means, seen from their centre; 0: all angles equal",
        group="neural collapse",
    ),
    _in_panel(
        "nc3",
        "NC3, least-squares head",
        "difference between the label means and the weights of a linear classifier that is fitted to the space by "
        "least squares; 0: proportional",
        group="neural collapse",
    ),
    _in_panel(
        "nc4",
        "NC4",
        "share of points for which the same least-squares classifier and the nearest label mean agree; 1: always",
        digits=3,
        group="neural collapse",
    ),
    _in_panel(
        "participation_ratio",
        "participation ratio",
        "effective number of dimensions over which the variance is spread",
        digits=1,
        group="dimension",
    ),
    _in_panel(
        "two_nn",
        "TwoNN",
        "intrinsic dimension, estimated from the distances of each point to its two nearest neighbours",
        digits=1,
        group="dimension",
    ),
    _in_panel("iso_score", "IsoScore", "1: equal variance in all directions; 0: all variance in one", group="isotropy"),
    _in_panel(
        "mean_cosine",
        "mean cosine",
        "cosine of two points, mean over all pairs; near 1: all points lie in one direction from the origin",
        group="isotropy",
    ),
    _in_panel(
        "outlier_dimensions",
        "outlier dimensions",
        "share of dimensions whose mean is more than three standard deviations (over dimensions) away from the mean of "
        "all dimensions",
        digits=3,
        group="isotropy",
    ),
    _in_panel(
        "logme",
        "LogME",
        "log evidence of a linear model of the labels; higher: the labels fit better",
        group="label fit",
    ),
    _in_panel(
        "gdv",
        "GDV",
        "mean distance within labels minus mean distance between labels, with z-scores times ½ as coordinates, divided "
        "by √d (d: number of dimensions); −1: well separated, 0: no label structure",
        group="label fit",
    ),
    _in_panel(
        "silhouette",
        "silhouette",
        "mean silhouette coefficient with the labels as clusters, −1 to 1; near 1: points are much nearer to their own "
        "label than to any other; below 0: they are nearer to another label",
        group="label fit",
    ),
    _in_panel(
        "n_overlapping_pairs",
        "overlapping pairs",
        "number of pairs of labels that no hyperplane separates",
        digits=0,
        group="overlap",
    ),
    _in_panel(
        "largest_overlap_share",
        "largest overlap",
        "for the pair of labels that overlap most: share of their points that must be removed so that a hyperplane "
        "separates the rest (upper bound)",
        digits=3,
        group="overlap",
    ),
    _in_panel(
        "n_over_2d",
        "n / 2d",
        "number of points of two labels divided by twice the number of dimensions, mean over pairs of labels; "
        "for a pair below 1, most labellings are separable",
        group="overlap",
    ),
    _in_panel(
        "cover_probability",
        "Cover probability",
        "probability that a random labelling of the points of two labels is separable, 0 to 1, mean over pairs of "
        "labels; near 1: separability says nothing about the labels",
        group="overlap",
    ),
]

MEASURES = (
    *(scalar.measure for scalar in SCALARS),
    Measure(
        "label_overlap",
        "overlap of two labels",
        "share of the points of two labels that must be removed so that a hyperplane separates the rest (upper bound); "
        "n: the number of removed points",
        digits=3,
        rows="label pair",
        archive="none",
    ),
)


class Panel(LayeredPart):
    """The panel (statistics of the shape of a space), and the point similarity of each layer to the pretrained encoder.

    neighbours: the number of nearest neighbours of a point, for the share of them that two spaces have in common.
    """

    layers: Layers = "all"
    neighbours: int = Field(NEIGHBOURS, ge=1)


def content(plan: Plan) -> dict[str, Any]:
    """What goes into the key of the cell that describes a space, together with the space."""
    return {"tau": plan.geometry.tau, "scalars": [scalar.measure.name for scalar in SCALARS]}


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Describe the cell's space."""
    return panel_rows(load_space(cell, cell.content["space"]), tau=cell.content["tau"], threads=threads), {}


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: the distances between all pairs of points."""
    size = space_size(study, cell)
    return Estimate(0.1 + 1.5e-10 * size.n**2 * size.d, size.pairwise_bytes, 4_000)


KIND = Kind(
    "panel",
    4,
    "shape of",
    run,
    estimate,
    title="shape measures",
    requests=("panel",),
    measures=MEASURES,
    train_space=TrainSpaceSettings("panel", lambda plan: plan.panel, content),
)


def panel_rows(space: Space, *, tau: float, threads: int | None = None) -> list[Row]:
    """The scalars of a space and the overlap of each pair of overlapping labels; nothing for a single label."""
    if len(np.unique(space.y)) < 2:
        return []
    panel = describe_space(space.X, space.label_names, clusters=False, tau=tau, threads=threads)
    values = scalar_values(space.X, space.label_names, panel)
    rows = [row(name, value, n=space.n) for name, value in values.items()]
    return rows + [
        row("label_overlap", pair.share, label=pair.first, other=pair.second, n=pair.removed) for pair in panel.overlaps
    ]


def scalar_values(X: ArrayLike, y: ArrayLike, panel: SpacePanel) -> dict[str, float]:
    """All scalars of a space by name. panel: what `describe_space` returned for X and y."""
    described = DescribedSpace(X, y, panel, panel.flat())
    return {scalar.measure.name: scalar.compute(described) for scalar in SCALARS}

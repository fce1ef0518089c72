"""The study cell that compares two spaces of the same examples point by point (CKA, Procrustes, RSA, neighbours)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.geometry.point_similarity import compare_points
from closerlook.representations.space import Space
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.inputs import load_space
from closerlook.study.kinds.kind import CellResult, Kind
from closerlook.study.measure import Measure
from closerlook.study.rows import Row, row
from closerlook.study.sizes import Estimate, space_size

if TYPE_CHECKING:
    from closerlook.study.plan import Plan

MEASURES = (
    Measure(
        "cka",
        "CKA",
        "linear centred kernel alignment, debiased; 1: equal up to rotation and scale, about 0: unrelated",
        compares=True,
    ),
    Measure(
        "procrustes",
        "Procrustes",
        "how well a rotation and a scaling map one space onto the other; 1: exactly",
        compares=True,
    ),
    Measure("rsa", "RSA", "Spearman correlation of the distances between all pairs of points", compares=True),
    Measure(
        "shared_neighbours",
        "shared neighbours",
        "overlap of the nearest neighbours of a point in both spaces (Jaccard index), mean over points",
        compares=True,
    ),
)


def content(plan: Plan, a: str, b: str) -> dict[str, Any]:
    """What goes into the key of the cell that compares points. a, b: keys of the spaces."""
    return {"a": a, "b": b, "neighbours": plan.panel.neighbours}


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Compare the cell's two spaces."""
    a, b = (load_space(cell, cell.content[side]) for side in "ab")
    return point_similarity_rows(a, b, neighbours=cell.content["neighbours"], threads=threads), {}


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: the distances between all pairs of points."""
    size = space_size(study, cell)
    return Estimate(0.1 + 2e-10 * size.n**2 * size.d, size.pairwise_bytes, 4_000)


KIND = Kind(
    "point_similarity",
    4,
    "compare points of",
    run,
    estimate,
    title="point similarity",
    requests=("panel",),
    measures=MEASURES,
)


def point_similarity_rows(a: Space, b: Space, *, neighbours: int, threads: int | None = None) -> list[Row]:
    """The point similarity of two spaces of the same examples."""
    similarity = compare_points(a.X, b.X, k=min(neighbours, a.n - 1), threads=threads)
    values = {
        "cka": similarity.cka,
        "procrustes": similarity.procrustes,
        "rsa": similarity.rsa,
        "shared_neighbours": similarity.neighbours,
    }
    return [row(name, value, n=a.n) for name, value in values.items()]

"""The study cell that counts the clusters of a train space with the limit on attempts of the released code.

A cell of its own: a plan that requests this count adds cells, and leaves the keys of all other cells as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.geometry import cluster
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
        "clusters_released",
        "clusters (attempts: released)",
        "number of clusters if at most as many merges are tried as there are points, blocked ones included, as in the "
        "code of Zhou and Srikumar (2022) until September 2022; column n: merges tried",
        digits=0,
    ),
    Measure(
        "undecided_released",
        "undecided pairs (attempts: released)",
        "the same as n_undecided, for the merges of clusters_released",
        digits=0,
    ),
)


def content(plan: Plan, space: str) -> dict[str, Any]:
    """What goes into the key of the cell that counts the clusters of a space with the limit on attempts."""
    return {"space": space, "tau": plan.geometry.tau}


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Count the clusters of the cell's space with the limit on attempts."""
    return released_rows(load_space(cell, cell.content["space"]), tau=cell.content["tau"], threads=threads), {}


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: that of one clustering."""
    size = space_size(study, cell)
    return Estimate(0.02 + size.clustering_seconds, size.bytes, 2_000)


KIND = Kind(
    "released_clusters",
    1,
    "clusters (attempts: released) of",
    run,
    estimate,
    title="clusters (attempts: released)",
    measures=MEASURES,
)


def released_rows(space: Space, *, tau: float, threads: int | None = None) -> list[Row]:
    """The rows of a space: its clusters with the limit on attempts, and the merges that could not be decided."""
    limited = cluster(space.X, space.label_names, tau=tau, attempts="released", threads=threads)
    used = None if limited.attempts is None else limited.attempts.used
    return [
        row("clusters_released", limited.n_clusters, n=used),
        row("undecided_released", limited.n_undecided, n=used),
    ]

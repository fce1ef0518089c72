"""The study cell that measures one space with other settings: clusters for several tau, distances for min_points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from closerlook.encoders.pooling import WORD_POOLS, parse_sentence_pool
from closerlook.geometry import cluster
from closerlook.geometry.distances import Statistic
from closerlook.geometry.sensitivity import MIN_POINTS, TAUS, clusters_by_tau, distances_by_min_points
from closerlook.representations.space import Space
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.entries import LayeredPart, as_list
from closerlook.study.inputs import load_space
from closerlook.study.kinds.geometry_payload import distances_payload
from closerlook.study.kinds.kind import CellResult, Kind
from closerlook.study.measure import Measure
from closerlook.study.rows import Payload, row
from closerlook.study.sizes import Estimate, space_size

if TYPE_CHECKING:
    from closerlook.study.plan import Plan

MEASURES = (
    Measure(
        "clusters_at_tau",
        "clusters for one tolerance",
        "number of clusters with another tolerance τ; text: τ in RMS radii; n: number of undecided pairs",
        digits=0,
        rows="setting",
    ),
)


def _check_pool(value: str) -> str:
    if value not in WORD_POOLS and parse_sentence_pool(value) is None:
        raise ValueError(f"expected poolings such as first, last, cls or mean (got {value!r})")
    return value


class Sensitivity(LayeredPart):
    """Which other settings are tried, before and after fine-tuning.

    min_points: see `geometry.cluster_distances`; the similarities are computed for each value. tau: the tolerances, in
    RMS radii, for which clusters are counted. pools: poolings with which pretrained encoders are measured as well;
    "all": each that the unit of a task has.
    """

    min_points: Annotated[list[Annotated[int, Field(ge=1)]], BeforeValidator(as_list)] = Field(
        list(MIN_POINTS), min_length=1
    )
    tau: Annotated[list[Annotated[float, Field(gt=0, lt=1)]], BeforeValidator(as_list)] = Field(list(TAUS))
    pools: Literal["all"] | Annotated[list[Annotated[str, AfterValidator(_check_pool)]], BeforeValidator(as_list)] = (
        "all"
    )


def read_sensitivity(value: object) -> object:
    """The section `sensitivity` of a plan: true for its defaults, false for none, a list for the values of min_points.

    >>> read_sensitivity([1, 6])
    {'min_points': [1, 6]}
    """
    if isinstance(value, bool):
        return {} if value else None
    return {"min_points": value} if isinstance(value, list) else value


def content(plan: Plan, settings: Sensitivity, space: str, split: str) -> dict[str, Any]:
    """What goes into the key of the cell that measures a space; only train is clustered for each tolerance.

    The study's own values are among those tried, so that they can be compared.
    """
    tau = plan.geometry.tau
    return {
        "space": space,
        "tau": tau,
        "taus": sorted({tau, *settings.tau}) if split == "train" else [],
        "min_points": sorted({plan.geometry.min_points, *settings.min_points}),
        "statistic": plan.geometry.statistic,
    }


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Measure the cell's space with other settings."""
    settings = {name: value for name, value in cell.content.items() if name != "space"}
    return measure_settings(load_space(cell, cell.content["space"]), threads=threads, **settings)


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: one clustering for each tolerance, and the distances."""
    size = space_size(study, cell)
    clusterings = 1 + max(1, len(cell.content["taus"]))
    disk = 4_000 + 20 * len(cell.content["min_points"]) * size.m**2
    return Estimate(0.02 + clusterings * size.clustering_seconds, size.bytes, disk)


KIND = Kind(
    "sensitivity", 1, "try other settings on", run, estimate, title="sensitivity to settings", measures=MEASURES
)


def measure_settings(
    space: Space,
    *,
    tau: float,
    taus: list[float],
    min_points: list[int],
    statistic: Statistic,
    threads: int | None = None,
) -> CellResult:
    """The number of clusters for each of taus, and the label distances with tau for each value of min_points."""
    labels = space.label_names
    clusterings = clusters_by_tau(space.X, labels, taus=taus, threads=threads)
    rows = [
        row("clusters_at_tau", clustering.n_clusters, text=f"{value:g}", n=clustering.n_undecided)
        for value, clustering in clusterings.items()
    ]
    own = clusterings.get(tau) or cluster(space.X, labels, tau=tau, threads=threads)
    payload: Payload = {"labels": list(own.labels), "by_min_points": {}}
    if own.n_labels > 1:
        found = distances_by_min_points(space.X, own, min_points=min_points, statistic=statistic, threads=threads)
        payload["by_min_points"] = {str(least): distances_payload(distances) for least, distances in found.items()}
    return rows, payload

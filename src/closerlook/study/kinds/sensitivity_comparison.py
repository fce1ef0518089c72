"""The study cell that compares two spaces by label distances for several values of min_points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from closerlook.geometry.sensitivity import compare_by_min_points
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.files import read_payload
from closerlook.study.kinds.geometry_payload import LabelTable
from closerlook.study.kinds.kind import CellResult, Kind
from closerlook.study.measure import Measure
from closerlook.study.rows import Payload, Row, row
from closerlook.study.sizes import BASE_BYTES, Estimate

MEASURES = (
    Measure(
        "similarity_at_min_points",
        "similarity for one min_points",
        "spatial similarity of two spaces without clusters of fewer than min_points points; text: min_points; n: "
        "number of labels compared",
        rows="setting",
        compares=True,
    ),
)


def content(a: str, b: str) -> dict[str, Any]:
    """What goes into the key. a, b: the keys of the cells that measured two spaces with other settings."""
    return {"a": a, "b": b}


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Compare the label distances that two earlier cells measured."""
    return similarity_rows(*(read_payload(out, cell.content[side]) for side in "ab")), {}


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: a tenth of a second for any spaces."""
    return Estimate(0.1, BASE_BYTES, 2_000)


KIND = Kind(
    "sensitivity_comparison",
    1,
    "compare with other settings:",
    run,
    estimate,
    title="similarity with other settings",
    measures=MEASURES,
    from_results=True,
)


def similarity_rows(a: Payload, b: Payload) -> list[Row]:
    """One row for each value of min_points; its value is None if fewer than three labels can be compared."""
    tables = [
        {
            int(least): LabelTable({"labels": payload["labels"], "distances": distances})
            for least, distances in payload["by_min_points"].items()
        }
        for payload in (a, b)
    ]
    if not all(tables):
        return []
    return [
        row("similarity_at_min_points", at.similarity, text=str(at.min_points), n=at.n_labels)
        for at in compare_by_min_points(*tables)
    ]

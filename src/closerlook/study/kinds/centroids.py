"""The study cell that follows label centroids over the snapshots of a fine-tuning, projected to two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.files import read_payload
from closerlook.study.kinds.geometry_payload import decode_centroids
from closerlook.study.kinds.kind import CellResult, Kind
from closerlook.study.measure import Measure, Rows
from closerlook.study.rows import Payload, Row, row
from closerlook.study.sizes import BASE_BYTES, Estimate

Floats = NDArray[np.float64]


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
        "mean vector of a label at one step, projected on the {} principal component of all centroids at all steps",
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
        "last minus first centroid of a label, projected on the {} principal component of these shifts (not centred)",
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
        "explained squared length of shifts",
        "share of the squared length of all centroid shifts that the {} principal component explains",
    ),
)


def content(keys: Sequence[str], steps: Sequence[int]) -> dict[str, Any]:
    """What goes into the key of the cell. keys: the keys of the cells that cluster the snapshots."""
    return {"along": list(keys), "steps": list(steps)}


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Project the centroids that earlier cells computed."""
    payloads = [read_payload(out, key) for key in cell.content["along"]]
    return follow_centroids(payloads, cell.content["steps"]), {}


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: a tenth of a second for any spaces."""
    return Estimate(0.1, BASE_BYTES, 10_000)


KIND = Kind(
    "centroids",
    3,
    "follow centroids of",
    run,
    estimate,
    title="paths of centroids",
    requests=("centroids",),
    measures=MEASURES,
    from_results=True,
)


def follow_centroids(payloads: Sequence[Payload], steps: Sequence[int]) -> list[Row]:
    """The rows of a run: each label's centroid at each step, and its shift from the first step to the last.

    Centroids are projected to the first two principal components of all centroids at all steps. Shifts are projected
    to those of the shifts themselves, which are not centred, so that one common direction shows.
    """
    centroids = [decode_centroids(payload) for payload in payloads]
    labels = [label for label in centroids[0] if all(label in at_step for at_step in centroids)]
    paths = np.stack([[at_step[label] for label in labels] for at_step in centroids])
    flat = paths.reshape(-1, paths.shape[-1])
    centre = flat.mean(axis=0)
    basis, explained = _components(flat - centre)
    rows = [row(f"path_explained_variance_{axis}", explained[at]) for at, axis in enumerate("xy")]
    for step, points in zip(steps, (paths - centre) @ basis.T, strict=True):
        for label, point in zip(labels, points, strict=True):
            rows += [row(f"centroid_{axis}", point[at], label=label, step=step) for at, axis in enumerate("xy")]
    shifts = paths[-1] - paths[0]
    basis, explained = _components(shifts)
    rows += [row(f"shift_explained_variance_{axis}", explained[at]) for at, axis in enumerate("xy")]
    for label, shift in zip(labels, shifts, strict=True):
        rows += [row(f"shift_{axis}", shift @ basis[at], label=label) for at, axis in enumerate("xy")]
        rows.append(row("shift_length", float(np.linalg.norm(shift)), label=label))
    return rows


def _components(points: Floats) -> tuple[Floats, Floats]:
    """(2, d) the first two principal directions, each with its largest entry positive, and their shares of variance."""
    _, singular, directions = np.linalg.svd(points, full_matrices=False)
    two = np.zeros((2, points.shape[1]))
    two[: min(2, len(directions))] = directions[:2]
    largest = np.abs(two).argmax(axis=1)
    signs = np.sign(two[[0, 1], largest])
    squares = np.zeros(max(2, len(singular)))
    squares[: len(singular)] = singular**2
    total = squares.sum()
    return two * np.where(signs == 0, 1, signs)[:, None], squares[:2] / (total if total > 0 else 1)

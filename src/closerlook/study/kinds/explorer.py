"""The study cell that prepares points for the explorer on the page: which are shown, where, and in which clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from closerlook.escaping import parse_json
from closerlook.geometry.frame import Integers
from closerlook.representations.points import Points
from closerlook.representations.space import Space
from closerlook.scatter.data import scatter_data
from closerlook.scatter.layers import ViewSettings
from closerlook.scatter.packing import pack
from closerlook.scatter.points import MOST_POINTS
from closerlook.scatter.scatter import make_scatter
from closerlook.scatter.series import Series, sample_rows, snapshot_name, task_context
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.entries import LayeredPart
from closerlook.study.files import require_result
from closerlook.study.inputs import load_space, load_tasks
from closerlook.study.kinds.kind import CellResult, Kind
from closerlook.study.sizes import Estimate, SpaceSize, space_size
from closerlook.tasks.task import Task

if TYPE_CHECKING:
    from closerlook.study.plan import Plan

BYTES_PER_POINT = 25
"""Bytes of a shown point at one snapshot in a result, roughly."""


class Explorer(LayeredPart):
    """The points that the page shows, of each encoder and task: before, during and after fine-tuning, first seed.

    points: how many points are stored. The page shows fewer if they do not fit. pairs: how many pairs of labels have a
    margin view. umap: whether there is a UMAP view. max_examples: how many examples of each split are clustered; larger
    splits are sampled.
    """

    points: int = Field(MOST_POINTS, ge=1, le=MOST_POINTS)
    pairs: int = Field(8, ge=0)
    umap: bool = False
    max_examples: int = Field(10_000, ge=10)


def content(
    plan: Plan, spaces: dict[str, list[list[str]]], steps: Sequence[int], layers: Sequence[int], merges: Sequence[str]
) -> dict[str, Any]:
    """What goes into the key of the cell.

    spaces: by split, [layer][snapshot], the keys of the spaces. merges: the keys of the cells that cluster the whole
    train spaces; the points of the blocked merges that they found are shown.
    """
    settings = plan.explorer.model_dump(include={"points", "pairs", "umap", "max_examples"})
    return settings | {
        "spaces": spaces,
        "steps": list(steps),
        "layers": list(layers),
        "merges": list(merges),
        "tau": plan.geometry.tau,
    }


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Measure the points; there are no rows, since the page reads the points themselves."""
    settings = cell.content
    (task,) = load_tasks(cell, cell.resources["task"])
    proving = sorted({row for key in settings["merges"] for row in merge_rows(require_result(out, key)["rows"])})
    series, examples = _read_series(cell, task, proving)
    first = np.flatnonzero(np.isin(series.row_numbers[: series.n_train], proving)).tolist()
    view = ViewSettings(settings["points"], settings["pairs"], settings["umap"], tau=settings["tau"])
    scatter = make_scatter(series, view, first=first, threads=threads)
    facts = {"examples": examples, "measured": scatter.n_points, "shown": len(scatter.rows)}
    packed = pack(scatter_data(scatter) | {"examples": examples, "measured": scatter.n_points})
    return [], facts | {"layers": settings["layers"], "packed": packed}


def merge_rows(rows: Sequence[dict[str, Any]]) -> set[int]:
    """The train rows that the blocked merges among the rows of a result name."""
    texts = [parse_json(row["text"]) for row in rows if row["measure"] == "blocked_merge"]
    return {int(point["row"]) for text in texts for side in ("points", "blocker_points") for point in text[side]}


def _read_series(cell: Cell, task: Task, proving: Sequence[int]) -> tuple[Series, int]:
    """The series of the cell's spaces, sampled, and how many examples the whole splits have."""
    settings = cell.content
    splits = [task.split(name) for name in settings["spaces"]]
    kept = [
        sample_rows(np.asarray(split.y), settings["max_examples"], [0, at], () if at else proving)
        for at, split in enumerate(splits)
    ]
    words = [task.words(split) for split in splits]
    points = tuple(
        tuple(
            _join([_points(load_space(cell, key), rows, own) for key, rows, own in zip(keys, kept, words, strict=True)])
            for keys in zip(*(by_layer[at] for by_layer in settings["spaces"].values()), strict=True)
        )
        for at in range(len(settings["layers"]))
    )
    starts = np.cumsum([0, *(len(split) for split in splits)])
    rows = np.concatenate([own + start for own, start in zip(kept, starts, strict=False)])
    series = Series(
        cell.resources["title"],
        tuple(map(snapshot_name, settings["steps"])),
        tuple(settings["layers"]),
        points,
        task_context(task, splits).take(rows),
        sampled=np.concatenate(kept),
    )
    return series, int(starts[-1])


def _points(space: Space, rows: Integers, words: Sequence[str] | None) -> Points:
    """Some rows of a space. words: of all its rows."""
    X = np.asarray(space.X[rows], np.float64)
    own = None if words is None else tuple(words[row] for row in rows.tolist())
    return Points(X, space.label_names[rows], space.provenance.title(), words=own)


def _join(parts: Sequence[Points]) -> Points:
    """The points of train, with those of test if there is a second part."""
    return replace(parts[0], test=parts[1] if len(parts) > 1 else None)


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: one clustering of the sample for each layer and snapshot."""
    size, settings = space_size(study, cell), cell.content
    spaces = len(settings["layers"]) * len(settings["steps"])
    sample = SpaceSize(min(size.n, settings["max_examples"]), size.d, size.m)
    memory = size.bytes + 16 * spaces * sample.n * sample.d
    disk = 50_000 + BYTES_PER_POINT * spaces * min(settings["points"], 2 * sample.n)
    return Estimate(0.5 + 2 * spaces * sample.clustering_seconds, memory, disk)


KIND = Kind(
    "explorer",
    1,
    "show points of",
    run,
    estimate,
    title="points for the explorer",
    requests=("explorer",),
)

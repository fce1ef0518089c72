"""The study cell that extracts the spaces of a pretrained encoder, for all tasks."""

from __future__ import annotations

from pathlib import Path

from closerlook.study.cells import (
    Cell,
    ResolvedPlan,
    common_resources,
    input_content,
    layers_of,
    resolved_dtype,
    task_hashes,
)
from closerlook.study.inputs import encoder_path, load_tasks
from closerlook.study.kinds.kind import FIRST, CellResult, Kind
from closerlook.study.sizes import BASE_BYTES, FLOPS, Estimate, layer_parameters, token_count, vector_bytes


def extract_cell(study: ResolvedPlan, encoder: str) -> Cell:
    """The cell that extracts the spaces of an encoder; for random weights, only the spaces that are compared."""
    plan, (source, info) = study.plan, study.source_and_info(encoder)
    is_in_plan = encoder in study.encoders
    content = {
        "weights": source.fingerprint,
        "dtype": resolved_dtype(study, source),
        "window": info.window,
        "tasks": [task.content_hash for task in study.tasks.values()],
        "splits": plan.splits if is_in_plan else ["train"],
        "layers": layers_of(plan, source, info, ends=True) if is_in_plan else [info.layers],
        "pool": plan.pool,
    } | input_content(plan, info)
    resources = common_resources(study) | {"encoder": encoder, "tasks": task_hashes(study, study.tasks)}
    resources |= {"device_map": plan.device_map}
    return KIND.cell(content, resources, (), source.name)


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Write the spaces to the store; there are no rows."""
    from closerlook.representations.extract import extract

    resources, content = cell.resources, cell.content
    extract(
        encoder_path(cell),
        load_tasks(cell, resources["tasks"]),
        splits=content["splits"],
        layers=content["layers"],
        pool=content["pool"],
        store=resources["store"],
        device=resources["device"],
        dtype=content["dtype"],
        device_map=resources["device_map"],
        template=content.get("template"),
    )
    return [], {}


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: one forward pass over all texts, and the disk space of the vectors."""
    _, info = study.source_and_info(cell.resources["encoder"])
    splits, tasks = cell.content["splits"], study.tasks.values()
    tokens = sum(token_count(task, split) for task in tasks for split in splits)
    disk = sum(vector_bytes(task, splits, info.width, len(cell.content["layers"])) for task in tasks)
    return Estimate(2 + 2 * tokens * layer_parameters(info) / FLOPS, BASE_BYTES + 8 * info.parameters, disk)


KIND = Kind(
    "extract", 2, "extract", run, estimate, title="extract vectors", gpu=True, priority=FIRST, makes_spaces=True
)

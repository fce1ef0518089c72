"""The study cell that extracts the spaces of one checkpoint of an existing training, and scores its head."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from closerlook.encoders.pooling import choose_pool
from closerlook.encoders.source import Source
from closerlook.representations.space import Space
from closerlook.study.cells import (
    Cell,
    ResolvedPlan,
    common_resources,
    layers_of,
    resolved_dtype,
    task_hashes,
    task_name,
)
from closerlook.study.inputs import load_tasks
from closerlook.study.kinds.extract import estimate
from closerlook.study.kinds.kind import FIRST, CellResult, Kind
from closerlook.study.measure import Measure
from closerlook.study.rows import Row, row
from closerlook.tasks.task import Task
from closerlook.tuning.existing import Checkpoint

MEASURES = (
    Measure(
        "logged_loss",
        "logged training loss",
        "training loss that the Trainer logged last before the checkpoint",
        digits=3,
        archive="none",
    ),
    Measure(
        "logged_eval_loss",
        "logged evaluation loss",
        "loss on the Trainer's evaluation data that it logged last before the checkpoint",
        digits=3,
        archive="none",
    ),
)


def checkpoint_cell(study: ResolvedPlan, run: str, checkpoint: Checkpoint, *, is_end: bool) -> Cell:
    """The cell for one checkpoint of a run, or for its base. is_end: whether it is the first or the last of the run."""
    plan, info = study.plan, study.runs[run].info
    base = study.runs[run].base
    content = {
        "weights": checkpoint.source.fingerprint,
        "dtype": resolved_dtype(study, checkpoint.source),
        "window": info.window,
        "tasks": [task.content_hash for task in study.tasks.values()],
        "splits": plan.splits,
        "layers": layers_of(plan, base.source, info, ends=is_end),
        "pool": {task.unit: choose_pool(plan.pool, task.unit, info) for task in study.tasks.values()},
        "template": plan.template,
        "logged": checkpoint.logged,
    }
    resources = common_resources(study) | {
        "encoder": run,
        "checkpoint": checkpoint.name,
        "base": base.name,
        "tasks": task_hashes(study, study.tasks),
        "names": [task_name(study, task) for task in study.tasks],
    }
    return KIND.cell(content, resources, (), f"{run}, step {checkpoint.step}")


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Write the spaces to the store; rows are loss, accuracy and NC3 of the checkpoint's own head, if it has one."""
    from closerlook.encoders.encoder import Encoder
    from closerlook.encoders.source import resolve
    from closerlook.representations.extract import extract

    resources, content = cell.resources, cell.content
    source = resolve(resources["checkpoint"], tokenizer=resolve(resources["base"]).folder)
    tasks = load_tasks(cell, resources["tasks"])
    encoder = Encoder.load(source, device=resources["device"], dtype=content["dtype"], template=content["template"])
    trains: dict[str | None, Space] = {}  # of the last layer, by the hash of the task
    for unit, pool in content["pool"].items():
        spaces = extract(
            encoder,
            [task for task in tasks if task.unit == unit],
            splits=content["splits"],
            layers=content["layers"],
            pool=pool,
            store=resources["store"],
        )
        for space in spaces:
            if (space.provenance.split, space.provenance.layer) == ("train", encoder.info.layers):
                trains[space.provenance.task_hash] = space
    rows = [row(f"logged_{name}", value, split="train") for name, value in content["logged"].items()]
    for name, task in zip(resources["names"], tasks, strict=True):
        found = _head_rows(source, task, content["splits"], trains.get(task.content_hash), resources["device"])
        rows += [one | {"task": name} for one in found]
    return rows, {}


def _head_rows(source: Source, task: Task, splits: Sequence[str], train: Space | None, device: str) -> list[Row]:
    """Loss, accuracy and NC3 of a checkpoint's own head on a task. train: the train space of the last layer.

    The head that `closerlook tune` saves is not scored: such a run has its loss and accuracy in its own files.
    """
    from closerlook.tuning.heads import has_head, load_head, saved_head_nc3

    if not has_head(source, task):
        nc3 = None if train is None else saved_head_nc3(source, task, train)
        return [] if nc3 is None else [row("nc3_head", nc3, split="train")]
    head = load_head(source, task, device=device)
    rows = []
    for split, (loss, accuracy) in head.scores(splits).items():
        rows += [row("head_loss", loss, split=split), row("head_accuracy", accuracy, split=split)]
    nc3 = None if train is None else head.nc3(train)
    return rows if nc3 is None else [*rows, row("nc3_head", nc3, split="train")]


KIND = Kind(
    "checkpoint",
    1,
    "extract",
    run,
    estimate,
    title="extract vectors of checkpoints",
    measures=MEASURES,
    gpu=True,
    priority=FIRST,
    makes_spaces=True,
)

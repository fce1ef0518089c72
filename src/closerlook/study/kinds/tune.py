"""A fine-tuning, with the spaces of its snapshots."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from closerlook.study.cells import Cell, ResolvedPlan, how_of, layers_of, opened_as, task_name
from closerlook.study.inputs import encoder_path, load_tasks
from closerlook.study.kinds.kind import EARLY, CellResult, Kind
from closerlook.study.measure import Measure
from closerlook.study.rows import Row, row
from closerlook.study.sizes import BASE_BYTES, FLOPS, Estimate, layer_parameters, token_count, vector_bytes
from closerlook.tasks.task import Task
from closerlook.tuning.schedule import snapshot_steps
from closerlook.tuning.settings import TuningSettings
from closerlook.tuning.tuned import TuningResult

DEV = ("dev", "validation", "valid")
"""Splits that early stopping looks at; without one it holds out a tenth of train, see `tuning.training`."""

MEASURES = (
    Measure(
        "head_accuracy",
        "accuracy of the fine-tuned head, %",
        "accuracy of the linear head that was trained with the encoder",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "head_loss",
        "loss of the fine-tuned head",
        "cross-entropy of the linear head that was trained with the encoder",
        digits=3,
        on_test=True,
        archive="none",
    ),
)


def tune_cell(study: ResolvedPlan, encoder: str, task: str, seed: int) -> Cell:
    """A fine-tuning, with the spaces of its snapshots."""
    plan, (source, _) = study.plan, study.encoders[encoder]
    settings = replace(study.settings[encoder, task], seed=seed)
    content = {
        "weights": source.fingerprint,
        "task": study.tasks[task].content_hash,
        "settings": settings.to_dict() | {"probe": sorted(settings.probe.values())},
    }
    how = how_of(study) | {
        "encoder": encoder,
        "task": task,
        "probe": opened_as(study, plan.probed(task)),
        "settings": settings.to_dict(),
    }
    return KIND.cell(content, how, (), f"{source.name} on {task_name(study, task)}, seed {seed}")


def planned_steps(settings: TuningSettings, task: Task) -> list[int]:
    """The steps at which a fine-tuning on that task will be looked at, unless it stops early."""
    texts = len(set(task.split("train").sentence.tolist()))
    if settings.early_stopping is not None and not any(split.name in DEV for split in task.splits):
        texts -= max(1, round(0.1 * texts))
    batches = math.ceil(texts / settings.batch_size)
    accumulated = settings.trainer_arguments.get("gradient_accumulation_steps", 1)
    per_epoch = max(1, math.ceil(batches / (accumulated if isinstance(accumulated, int) and accumulated > 0 else 1)))
    return snapshot_steps(settings.snapshots, math.ceil(settings.epochs * per_epoch), per_epoch)


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Fine-tune, and write the spaces of the snapshots to the store."""
    from closerlook.tuning import tune

    how = cell.how
    asked, probes = how["settings"], load_tasks(cell, how["probe"])
    run = tune(
        encoder_path(cell),
        probes[0],  # the tuned task is the first of those that are probed
        out=out / "weights" / cell.key if asked["save_weights"] else None,
        probe=probes,
        store=how["store"],
        device=how["device"],
        layers=asked["layers"],
        between=asked["between"],
        splits=asked["splits"],
        **{name: asked[name] for name in TUNE_SETTINGS},
    )
    return tuning_rows(run), {"tuned": run.to_dict()}


TUNE_SETTINGS = (
    "seed",
    "epochs",
    "learning_rate",
    "batch_size",
    "warmup",
    "weight_decay",
    "pool",
    "snapshots",
    "save_weights",
    "early_stopping",
    "lora",
    "trainer_arguments",
)


def tuning_rows(run: TuningResult) -> list[Row]:
    """The rows of a fine-tuning: how its own head does at each snapshot."""
    return [
        row(f"head_{what}", value, split=split, step=one.step, epoch=one.epoch)
        for one in run.snapshots
        for what, by_split in (("accuracy", one.accuracy), ("loss", one.loss))
        for split, value in by_split.items()
    ]


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Forward and backward passes over train in every epoch, and a forward pass over all splits at every snapshot."""
    encoder, task, probes = cell.how["encoder"], study.tasks[cell.how["task"]], list(cell.how["probe"])
    source, info = study.encoders[encoder]
    settings = study.settings[encoder, cell.how["task"]]
    steps = len(planned_steps(settings, task))
    probed = sum(token_count(study.tasks[one], split) for one in probes for split in study.plan.splits)
    between = len(layers_of(study.plan, source, info, ends=False)) * (steps - 2) + 2 * len(settings.layers)
    disk = sum(vector_bytes(study.tasks[one], study.plan.splits, info.width, between) for one in probes)
    work = 6 * token_count(task, "train") * settings.epochs + 2 * probed * steps
    return Estimate(4 + work * layer_parameters(info) / FLOPS, BASE_BYTES + 24 * info.parameters + 200_000_000, disk)


KIND = Kind("tune", 2, "tune", run, estimate, measures=MEASURES, gpu=True, priority=EARLY, makes_spaces=True)

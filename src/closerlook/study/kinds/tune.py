"""The study cell that fine-tunes an encoder and stores the spaces of its snapshots."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from pydantic import BeforeValidator, Field, ValidationInfo, create_model, field_validator

from closerlook.study.cells import (
    Cell,
    ResolvedPlan,
    common_resources,
    encoder_name,
    input_content,
    run_layers,
    task_hashes,
    task_name,
)
from closerlook.study.entries import PlanPart, as_value_error
from closerlook.study.inputs import encoder_path, load_tasks
from closerlook.study.kinds.kind import EARLY, CellResult, Kind
from closerlook.study.measure import Measure
from closerlook.study.methods import read_method
from closerlook.study.rows import Row, row
from closerlook.study.sizes import BASE_BYTES, FLOPS, Estimate, layer_parameters, token_count, vector_bytes
from closerlook.tuning.existing import FULL
from closerlook.tuning.settings import TuningSettings, check_setting
from closerlook.tuning.steps import planned_steps
from closerlook.tuning.tuned import TuningResult

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
    Measure(
        "nc3_head",
        "NC3, fine-tuned head",
        "difference between the label means of train at the last layer and the weights of the linear head that was "
        "trained with the encoder; 0: proportional",
        group="neural collapse",
    ),
)


NOT_IN_TUNING = {
    "seed",
    "pool",
    "snapshots",
    "probe",
    "splits",
    "layers",
    "snapshot_layers",
    "window",
    "template",
    "dtype",
    "save_weights",
    "deterministic",
}
"""Fields of TuningSettings that are no entries of `tuning`: other parts of the plan set them, or they have defaults."""


def _tuning_entries() -> dict[str, Any]:
    """The entries of `tuning`, each with its type and default, taken from the fields of TuningSettings."""
    types = get_type_hints(TuningSettings)
    chosen = [field for field in fields(TuningSettings) if field.name not in NOT_IN_TUNING]
    return {
        field.name: (
            types[field.name],
            field.default if field.default_factory is MISSING else Field(default_factory=field.default_factory),
        )
        for field in chosen
    }


def _methods(value: Any) -> list[Any]:
    entries = value if isinstance(value, list) else [value]
    for entry in entries:
        as_value_error(read_method, entry)
    return entries


class Tuning(create_model("Tuning", __base__=PlanPart, **_tuning_entries())):  # type: ignore[misc]  # fields are generated
    """How encoders are fine-tuned: the fields of TuningSettings that describe the training, with their defaults.

    methods: the methods that are compared, see `study.methods`; settings of an entry replace those of the plan.
    """

    methods: Annotated[list[Any], BeforeValidator(_methods)] = Field([FULL], min_length=1)

    @field_validator("*")
    @classmethod
    def _check_setting(cls, value: object, info: ValidationInfo) -> object:
        if info.field_name == "methods":
            return value
        as_value_error(partial(check_setting, info.field_name or ""), value)
        return value


def tune_cell(study: ResolvedPlan, encoder: str, task: str, seed: int) -> Cell:
    """The cell that fine-tunes an encoder on a task with a seed."""
    plan, (source, info) = study.plan, study.source_and_info(encoder)
    settings = replace(study.settings[encoder, task], seed=seed)
    content = {
        "weights": source.fingerprint,
        "task": study.tasks[task].content_hash,
        "settings": settings.key_content(),
    } | input_content(plan, info)
    resources = common_resources(study) | {
        "encoder": study.variants[encoder].encoder,
        "variant": encoder,
        "task": task,
        "probe": task_hashes(study, plan.probed(task)),
        "settings": settings.to_dict(),
        "resume": study.resume,
    }
    return KIND.cell(content, resources, (), f"{encoder_name(study, encoder)} on {task_name(study, task)}, seed {seed}")


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Fine-tune, and write the spaces of the snapshots to the store."""
    from closerlook.tuning import tune

    resources = cell.resources
    settings, probes = TuningSettings.from_dict(resources["settings"]), load_tasks(cell, resources["probe"])
    result = tune(
        encoder_path(cell),
        probes[0],  # the fine-tuning task is the first measured task
        settings,
        probe=probes,
        out=out / "weights" / cell.key if settings.save_weights else None,
        store=resources["store"],
        device=resources["device"],
        resume=resources["resume"],
    )
    return tuning_rows(result), {"tuned": result.to_dict()}


def tuning_rows(run: TuningResult) -> list[Row]:
    """The rows of a fine-tuning: loss, accuracy and NC3 of its linear head at each snapshot."""
    scores = [
        row(f"head_{what}", value, split=split, step=snapshot.step, epoch=snapshot.epoch)
        for snapshot in run.snapshots
        for what, by_split in (("accuracy", snapshot.accuracy), ("loss", snapshot.loss))
        for split, value in by_split.items()
    ]
    return scores + [
        row("nc3_head", snapshot.nc3, split="train", step=snapshot.step, epoch=snapshot.epoch)
        for snapshot in run.snapshots
        if snapshot.nc3 is not None
    ]


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: training on train in every epoch, and a forward pass over all splits at every snapshot."""
    encoder, task, probes = (
        cell.resources["variant"],
        study.tasks[cell.resources["task"]],
        list(cell.resources["probe"]),
    )
    _, info = study.source_and_info(encoder)
    settings = study.settings[encoder, cell.resources["task"]]
    snapshots = len(planned_steps(settings, task))
    probed_tokens = sum(token_count(study.tasks[probe], split) for probe in probes for split in study.plan.splits)
    first_and_last, between = (
        len(run_layers(study, encoder, cell.resources["task"], ends=ends)) for ends in (True, False)
    )
    layers = between * (snapshots - 2) + 2 * first_and_last
    disk = sum(vector_bytes(study.tasks[probe], study.plan.splits, info.width, layers) for probe in probes)
    epochs, _ = settings.epochs_and_batch_size
    work = 6 * token_count(task, "train") * epochs + 2 * probed_tokens * snapshots
    return Estimate(4 + work * layer_parameters(info) / FLOPS, BASE_BYTES + 24 * info.parameters + 200_000_000, disk)


KIND = Kind(
    "tune",
    2,
    "fine-tune",
    run,
    estimate,
    title="fine-tune",
    measures=MEASURES,
    gpu=True,
    priority=EARLY,
    makes_spaces=True,
)

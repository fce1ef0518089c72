"""`Cell`, one unit of work of a study, and the positions of the table that its result fills."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from closerlook.encoders.source import EncoderInfo, Source
from closerlook.representations.extract import choose_layers
from closerlook.representations.store import content_key
from closerlook.study.methods import Method, variant_name
from closerlook.study.runs import UNKNOWN
from closerlook.tasks.catalogue import DATA
from closerlook.tasks.task import Task
from closerlook.tuning.existing import Checkpoint
from closerlook.tuning.settings import TuningSettings

if TYPE_CHECKING:
    from closerlook.study.entries import Layers
    from closerlook.study.plan import Plan

PRETRAINED = ""
"""The value of tuned_on for an encoder that was not fine-tuned."""

SHORT_KEY = 10
"""How many digits of a cell's key an archive keeps: enough to tell the cells of any study apart."""


@dataclass(frozen=True, eq=False)
class Cell:
    """One unit of work of a study.

    format: the format version of the results of this kind. content: everything that the result depends on; its hash is
    the key. resources: what it takes to compute the result, such as names of the encoder and the tasks, the store and
    the device; the result does not depend on them. inputs: keys of the cells whose results it needs. title: one line
    for progress and errors. gpu: whether a GPU makes it faster.
    """

    kind: str
    format: int
    content: dict[str, Any]
    resources: dict[str, Any]
    inputs: tuple[str, ...]
    title: str
    gpu: bool = False
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", content_key({"format": self.format, "kind": self.kind, **self.content}))


@dataclass(frozen=True)
class Position:
    """Where a measurement goes in the table: its encoder, training, layer, task and split.

    tuned_on: empty for a pretrained encoder. method: how it was fine-tuned, such as 'full'; empty for a pretrained one.
    pool: how subwords become one vector, with 'auto' resolved.
    """

    encoder: str
    tuned_on: str
    seed: int
    step: int
    epoch: float
    layer: int
    task: str
    split: str
    is_final: bool
    weights: str
    method: str = ""
    pool: str = ""


@dataclass(frozen=True)
class Placement:
    """A cell's result at one position of the table.

    comparison: what was compared, the suffix of the measures' names; empty for a measure of one space. other: the name
    of the second encoder or seed. snapshots: the positions of all snapshots, if the result has rows for each of them.
    renamed: a measure and another name for it; then only rows of this measure go into the table, under the other name.
    """

    key: str
    position: Position
    comparison: str = ""
    other: str = ""
    snapshots: tuple[Position, ...] = ()
    renamed: tuple[str, str] | None = None


@dataclass(frozen=True, eq=False)
class ResolvedRun:
    """An existing training of the plan.

    base: the encoder before the training. tuned_on: a task of the plan, or UNKNOWN. info: the facts about the base,
    which hold for all checkpoints. skipped: for each folder that is not used, one line that says why.
    """

    base: Checkpoint
    checkpoints: tuple[Checkpoint, ...]
    tuned_on: str
    method: str
    seed: int
    info: EncoderInfo
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variant:
    """An encoder of the plan that is fine-tuned by a method. encoder: as it is loaded; base: as the plan names it."""

    encoder: str
    base: str
    method: Method


@dataclass(frozen=True, eq=False)
class ResolvedPlan:
    """A plan with its encoders and tasks loaded and checked.

    runs: existing trainings, by name. variants: encoders with the method by which each is fine-tuned, by their name in
    the table ('bert-small (lora 4)'; just the encoder for the method full). randoms: encoders with random weights that
    others are compared with, by name. settings: the settings with which each variant is fine-tuned on each task, for
    the first seed. store: the absolute path of the store. here: the folder that relative paths in the plan start from.
    resume: whether fine-tunings save their state and continue from it.
    """

    plan: Plan
    encoders: dict[str, tuple[Source, EncoderInfo]]
    randoms: dict[str, tuple[Source, EncoderInfo]]
    tasks: dict[str, Task]
    settings: dict[tuple[str, str], TuningSettings]
    store: str
    here: str
    resume: bool = True
    runs: dict[str, ResolvedRun] = field(default_factory=dict)
    variants: dict[str, Variant] = field(default_factory=dict)

    def source_and_info(self, encoder: str) -> tuple[Source, EncoderInfo]:
        """The files and the facts of an encoder of the plan, of a run's base, or of an encoder with random weights."""
        if encoder in self.runs:
            return self.runs[encoder].base.source, self.runs[encoder].info
        name = self.variants[encoder].encoder if encoder in self.variants else encoder
        return self.encoders.get(name) or self.randoms[name]


def common_resources(study: ResolvedPlan) -> dict[str, Any]:
    """The resources that all cells of a study share: where files are, which device and how many threads to use."""
    plan = study.plan
    return {
        "store": study.store,
        "here": study.here,
        "data": plan.data or os.environ.get(DATA),  # a worker on another machine need not have the variable
        "test_share": plan.test_share,
        "device": plan.device,
        "threads": plan.threads,
    }


def task_hashes(study: ResolvedPlan, tasks: Iterable[str]) -> dict[str, str]:
    """The content hash of each task, by name; a worker that loads the task checks that it has this hash."""
    return {task: study.tasks[task].content_hash for task in tasks}


def dtype_of(plan: Plan) -> str:
    """The precision of pretrained encoders: that of the plan; 'auto' is that of their fine-tuning, if there is one."""
    return plan.dtype if plan.tuning is None else tuning_dtype(plan)


def tuning_dtype(plan: Plan) -> str:
    """The precision of the weights of encoders that are fine-tuned."""
    return "float32" if plan.dtype == "auto" else plan.dtype


def input_content(plan: Plan, info: EncoderInfo) -> dict[str, Any]:
    """What a cell's key says about the texts and the pooling beyond the plan's `pool`; empty by default.

    The pooling that an encoder's files state is part of the key only if the plan leaves the choice to the encoder.
    """
    content: dict[str, Any] = {} if plan.template is None else {"template": plan.template}
    if plan.pool == "auto" and info.sentence_pool is not None:
        content["sentence_pool"] = info.sentence_pool
    return content


def layers_of(
    plan: Plan, source: Source, info: EncoderInfo, *, ends: bool, snapshot_layers: Layers | None = None
) -> list[int]:
    """The layers of an encoder that are measured: before and after fine-tuning (ends), or at the snapshots between.

    snapshot_layers: those of one fine-tuning; by default those of the plan.
    """
    chosen = plan.snapshot_layers if snapshot_layers is None else snapshot_layers
    between = set(choose_layers(chosen, info.layers, source.name))
    if not ends:
        return sorted(between)
    return sorted(between | set(choose_layers(plan.layers, info.layers, source.name)))


def run_layers(study: ResolvedPlan, encoder: str, tuned_on: str, *, ends: bool, task: str | None = None) -> list[int]:
    """The layers that are measured in the fine-tuning of an encoder (with a method) on a task, see `layers_of`.

    task: the task that is measured; None: that of the fine-tuning. On a different one, `cross_layers` chooses.
    """
    plan, variant = study.plan, study.variants.get(encoder)
    source, info = study.source_and_info(encoder)
    between = None if variant is None else plan.snapshot_layers_for(variant.base, tuned_on)
    layers = layers_of(plan, source, info, ends=ends, snapshot_layers=between)
    if plan.cross_layers is None or task is None or tuned_on in (task, UNKNOWN):
        return layers
    return sorted(set(layers) & set(choose_layers(plan.cross_layers, info.layers, source.name)))


# ---- names ----


def encoder_name(study: ResolvedPlan, encoder: str) -> str:
    """The name of an encoder in the table: its short name, unless two encoders share it."""
    if encoder in study.runs:
        return encoder
    if encoder in study.variants and study.variants[encoder].base != encoder:
        variant = study.variants[encoder]
        return variant_name(encoder_name(study, variant.base), variant.method)
    names = [source.name for source, _ in study.encoders.values()]
    short = study.source_and_info(encoder)[0].name
    return encoder if names.count(short) > 1 else short


def task_name(study: ResolvedPlan, task: str) -> str:
    """The name of a task in the table: its own name, unless two tasks share it; then the path of its file."""
    if task == UNKNOWN:
        return task
    names = [loaded.name for loaded in study.tasks.values()]
    short = study.tasks[task].name
    return task if names.count(short) > 1 else short


def resolved_dtype(study: ResolvedPlan, source: Source) -> str:
    """The precision in which the spaces of a pretrained encoder are computed."""
    from closerlook.representations.requested import dtype_for

    return dtype_for(source, dtype_of(study.plan), study.plan.device)


def describe_position(position: Position) -> str:
    """A position in one line: 'bert-tiny · tuned on pos · seed 0 · step 12 · layer 2 · pos/train'."""
    tuned = [f"tuned on {position.tuned_on}", f"seed {position.seed}", f"step {position.step}"]
    return " · ".join(
        [
            position.encoder,
            *(tuned if position.tuned_on else []),
            f"layer {position.layer}",
            f"{position.task}/{position.split}",
        ]
    )

"""The cells of a study: what each does, what it needs, and the address that its inputs give it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from closerlook.encoders.source import EncoderInfo, Source
from closerlook.representations.store import content_key
from closerlook.study.layers import layers_of
from closerlook.study.plan import Plan
from closerlook.tasks.catalogue import DATA
from closerlook.tasks.task import Task
from closerlook.tuning.settings import TuningSettings

Kind = Literal["extract", "tune", "geometry", "classify", "compare", "paths", "panel", "nulls", "halves", "alike"]

FORMATS: dict[Kind, int] = {
    **dict.fromkeys(get_args(Kind), 2),
    **dict.fromkeys(("panel", "alike", "compare", "classify"), 3),
}
"""Go into the keys: raise that of a kind of cell when it would come out differently from the same inputs."""

PRETRAINED = ""
"""Stands for the task of an encoder that was not fine-tuned."""


@dataclass(frozen=True, eq=False)
class Cell:
    """One piece of work. content: all that its result depends on, hashed into the key. how: where and by what means.

    inputs: keys of the cells whose results it needs. title: for people. gpu: whether a GPU helps.
    """

    kind: Kind
    content: dict[str, Any]
    how: dict[str, Any]
    inputs: tuple[str, ...]
    title: str
    gpu: bool = False
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", content_key({"format": FORMATS[self.kind], "kind": self.kind, **self.content}))


@dataclass(frozen=True)
class Position:
    """Where in the study a measurement stands; tuned_on is empty for an encoder as it came."""

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


@dataclass(frozen=True)
class Placement:
    """A cell's result at one place of the study; what: of a comparison, with what. other: the second encoder's name.

    along: the places of the snapshots, where the result has rows for each of them.
    """

    key: str
    place: Position
    what: str = ""
    other: str = ""
    along: tuple[Position, ...] = ()


@dataclass(frozen=True, eq=False)
class ResolvedPlan:
    """A plan with everything it names found and checked. settings: by encoder and task, those of the first seed.

    randoms: the same encoders with random weights, where they are wanted, by name. store: absolute. here: the folder
    that relative paths in the plan start from.
    """

    plan: Plan
    encoders: dict[str, tuple[Source, EncoderInfo]]
    randoms: dict[str, tuple[Source, EncoderInfo]]
    tasks: dict[str, Task]
    settings: dict[tuple[str, str], TuningSettings]
    store: str
    here: str

    def found(self, encoder: str) -> tuple[Source, EncoderInfo]:
        """An encoder of the plan, or one of the random ones."""
        return self.encoders.get(encoder) or self.randoms[encoder]


# ---- cells that make spaces ----


def extract_cell(study: ResolvedPlan, encoder: str) -> Cell:
    """The spaces of an encoder as it came, for all tasks; of a random one those that others are compared with."""
    plan, (source, info) = study.plan, study.found(encoder)
    whole = encoder in study.encoders
    content = {
        "weights": source.fingerprint,
        "dtype": resolved_dtype(study, source),
        "window": info.window,
        "tasks": [task.content_hash for task in study.tasks.values()],
        "splits": plan.splits if whole else ["train"],
        "layers": layers_of(plan, source, info, ends=True) if whole else [info.layers],
        "pool": plan.pool,
    }
    how = how_of(study) | {"encoder": encoder, "tasks": opened_as(study, study.tasks)}
    return Cell("extract", content, how, (), f"extract {source.name}", gpu=True)


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
    return Cell("tune", content, how, (), f"tune {source.name} on {task_name(study, task)}, seed {seed}", gpu=True)


def how_of(study: ResolvedPlan) -> dict[str, Any]:
    """Where and by what means every cell of a study is worked on."""
    plan = study.plan
    return {
        "store": study.store,
        "here": study.here,
        "data": plan.data or os.environ.get(DATA),  # which a worker elsewhere need not have
        "device": plan.device,
        "threads": plan.threads,
    }


def opened_as(study: ResolvedPlan, tasks: Iterable[str]) -> dict[str, str]:
    """Tasks by name, and the content that whoever opens them must find."""
    return {task: study.tasks[task].content_hash for task in tasks}


def dtype_of(plan: Plan) -> str:
    """The precision of encoders as they came: that of their fine-tuning, where there is one."""
    return "auto" if plan.tuning is None else "float32"


# ---- names ----


def encoder_name(study: ResolvedPlan, encoder: str) -> str:
    """How an encoder is called in the table: by its short name, unless two share it."""
    names = [source.name for source, _ in study.encoders.values()]
    short = study.found(encoder)[0].name
    return encoder if names.count(short) > 1 else short


def task_name(study: ResolvedPlan, task: str) -> str:
    """How a task is called in the table: by its own name rather than its file's path, unless two share it."""
    names = [one.name for one in study.tasks.values()]
    short = study.tasks[task].name
    return task if names.count(short) > 1 else short


def resolved_dtype(study: ResolvedPlan, source: Source) -> str:
    """The precision that the spaces of an encoder as it came are made in."""
    from closerlook.representations.extract import dtype_for

    return dtype_for(source, dtype_of(study.plan), study.plan.device)


def titled(place: Position) -> str:
    """One line for people: 'bert-tiny · tuned on pos · seed 0 · step 12 · layer 2 · pos/train'."""
    tuned = [f"tuned on {place.tuned_on}", f"seed {place.seed}", f"step {place.step}"] if place.tuned_on else []
    return " · ".join([place.encoder, *tuned, f"layer {place.layer}", f"{place.task}/{place.split}"])

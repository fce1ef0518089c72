"""Adds to the graph of a study the cells that try other settings, and other poolings of pretrained encoders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from closerlook.encoders.pooling import SENTENCE_POOLS, WORD_POOLS, choose_pool
from closerlook.encoders.source import EncoderInfo
from closerlook.errors import InputError
from closerlook.study.cells import Placement, ResolvedPlan, describe_position
from closerlook.study.kinds import sensitivity, sensitivity_comparison

if TYPE_CHECKING:
    from closerlook.study.states import EncoderState, TrainSpace


def add_settings(state: EncoderState, task: str, layers: Sequence[int]) -> None:
    """Add the cells that measure train and test of an encoder state with other settings, if the plan requests it."""
    plan, settings = state.study.plan, state.study.plan.sensitivity
    if settings is None:
        return
    for layer in sorted(state.chosen(settings.layers) & set(layers)):
        keys = {
            split: state.add(
                sensitivity.KIND,
                sensitivity.content(plan, settings, state.space(task, split, layer), split),
                task,
                state.position(task, split, layer),
                split,
                has_rows=split == "train",
            )
            for split in ("train", *plan.test_splits)
        }
        for split in plan.test_splits:
            placement = Placement("", state.position(task, "train", layer), f"train_{split}")
            _add_comparison(state, keys["train"], keys[split], placement)


def compare_settings(start: TrainSpace, end: TrainSpace) -> None:
    """Compare a train space before and after fine-tuning for each value of min_points, if the plan requests it."""
    state, plan = end.state, end.state.study.plan
    settings = plan.sensitivity
    if settings is None or not state.is_not_cross_task(end.task):
        return
    if end.layer in state.chosen(settings.layers):
        contents = (sensitivity.content(plan, settings, space.space, "train") for space in (start, end))
        first, second = (sensitivity.KIND.cell(content, {}, (), "").key for content in contents)
        _add_comparison(state, first, second, Placement("", end.position, "original"))


def _add_comparison(state: EncoderState, a: str, b: str, placement: Placement) -> None:
    """Add the cell that compares two spaces. a, b: the keys of the cells that measured them."""
    subject = f"{describe_position(placement.position)} ({placement.comparison})"
    cell = sensitivity_comparison.KIND.cell(
        sensitivity_comparison.content(a, b), {}, tuple(dict.fromkeys([a, b])), subject
    )
    state.graph.placements.append(replace(placement, key=state.graph.add(cell)))


def pooled_studies(study: ResolvedPlan, encoder: str) -> Iterator[ResolvedPlan]:
    """The same study with each other pooling that its plan requests, and the tasks for which an encoder has it."""
    settings = study.plan.sensitivity
    if settings is None:
        return
    _, info = study.source_and_info(encoder)
    own = {task: choose_pool(study.plan.pool, study.tasks[task].unit, info) for task in study.tasks}
    for pool in dict.fromkeys((*SENTENCE_POOLS, *WORD_POOLS)) if settings.pools == "all" else settings.pools:
        tasks = {
            name: task
            for name, task in study.tasks.items()
            if own[name] != pool and _is_possible(pool, task.unit, info)
        }
        if tasks:
            geometry = study.plan.geometry
            only = {"min_points": [geometry.min_points], "tau": [geometry.tau]}
            changes = {
                "pool": pool,
                "layers": settings.layers,
                "snapshot_layers": settings.layers,
                "sensitivity": settings.model_copy(update=only),
            }
            yield replace(study, plan=study.plan.model_copy(update=changes), tasks=tasks)


def _is_possible(pool: str, unit: str, info: EncoderInfo) -> bool:
    """Whether examples of this unit can be pooled in this way."""
    try:
        choose_pool(pool, unit, info)
    except InputError:
        return False
    return True

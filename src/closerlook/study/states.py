"""Encoder states and their spaces: the cells that measure a single space, and the graph that they are added to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from closerlook.encoders.pooling import choose_pool
from closerlook.representations.extract import choose_layers, space_key
from closerlook.study.cells import (
    PRETRAINED,
    Cell,
    Placement,
    Position,
    ResolvedPlan,
    common_resources,
    describe_position,
    encoder_name,
    task_hashes,
    task_name,
)
from closerlook.study.entries import Layers
from closerlook.study.kinds import KINDS, classifier, geometry, released_clusters
from closerlook.study.kinds.control import control_cells
from closerlook.study.kinds.kind import Kind
from closerlook.study.runs import UNKNOWN, Run
from closerlook.tuning.tuned import Snapshot


@dataclass(frozen=True, eq=False)
class Graph:
    """The cells known so far, by key, and where their results go.

    waiting: the fine-tunings that have no result yet, by the key of their cell. The cells that measure their snapshots
    are added when the result is known.
    final_spaces: for each finished fine-tuning whose spaces are clustered or compared, the train space of its final
    snapshot at the last measured layer, on the task it was fine-tuned on.
    """

    cells: dict[str, Cell] = field(default_factory=dict)
    placements: list[Placement] = field(default_factory=list)
    waiting: dict[str, Run] = field(default_factory=dict)
    final_spaces: dict[Run, TrainSpace] = field(default_factory=dict)

    def add(self, cell: Cell) -> str:
        """Add a cell and return its key; a cell with the same key is the same cell."""
        self.cells.setdefault(cell.key, cell)
        return cell.key


@dataclass(frozen=True, eq=False)
class EncoderState:
    """A pretrained encoder, or one snapshot of a fine-tuning.

    encoder: the name of the encoder in the plan. fingerprint: a hash of the weights. dtype: the precision of the
    vectors. producer: the key of the cell that writes its spaces to the store. tuned_on: the name of the fine-tuning
    task; PRETRAINED before fine-tuning. seed: the seed of the fine-tuning; 0 for a pretrained encoder. snapshot: the
    step and epoch; step 0 for a pretrained encoder. is_final: whether it is the last snapshot of a fine-tuning.
    method: how it is fine-tuned; empty for a pretrained encoder.
    """

    study: ResolvedPlan
    graph: Graph
    encoder: str
    fingerprint: str
    dtype: str
    producer: str
    tuned_on: str
    seed: int
    snapshot: Snapshot
    is_final: bool
    method: str = ""

    def position(self, task: str, split: str, layer: int) -> Position:
        """Where measures of one of its spaces go in the table."""
        _, info = self.study.source_and_info(self.encoder)
        pool = choose_pool(self.study.plan.pool, self.study.tasks[task].unit, info) if task in self.study.tasks else ""
        return Position(
            encoder_name(self.study, self.encoder),
            self.tuned_on,
            self.seed,
            self.snapshot.step,
            self.snapshot.epoch,
            layer,
            task_name(self.study, task),
            split,
            self.is_final,
            self.fingerprint,
            self.method,
            pool,
        )

    def space(self, task: str, split: str, layer: int) -> str:
        """The key of one of its spaces in the store."""
        _, info = self.study.source_and_info(self.encoder)
        plan, opened = self.study.plan, self.study.tasks[task]
        return space_key(
            self.fingerprint, self.dtype, info, opened, split, pool=plan.pool, layer=layer, template=plan.template
        )

    def is_not_cross_task(self, task: str) -> bool:
        """Whether the encoder is pretrained or was fine-tuned on this task, not on one that is known to differ."""
        return self.tuned_on in {PRETRAINED, UNKNOWN, task_name(self.study, task)}

    def chosen(self, layers: Layers) -> set[int]:
        """The numbers of the layers that a plan entry names."""
        source, info = self.study.source_and_info(self.encoder)
        return set(choose_layers(layers, info.layers, source.name))

    def resources(self, task: str, split: str = "train") -> dict[str, Any]:
        """The run options of a cell: where its inputs are stored, and the device. They are not part of its key."""
        return common_resources(self.study) | {
            "encoder": self.encoder,
            "task": task_hashes(self.study, [task]),
            "split": split,
        }

    def add(
        self,
        kind: Kind,
        content: dict[str, Any],
        task: str,
        position: Position,
        split: str = "train",
        *inputs: str,
        has_rows: bool = True,
    ) -> str:
        """Add a cell that reads spaces of this encoder state, and return its key. inputs: other cells that it needs.

        has_rows: whether its result has rows for the table, not only data for other cells. An encoder with random
        weights that the plan does not list is only a baseline for comparisons: its own measures get no rows either.
        """
        resources, subject = self.resources(task, split), describe_position(position)
        key = self.graph.add(kind.cell(content, resources, (self.producer, *inputs), subject))
        if has_rows and self.encoder not in self.study.randoms:
            self.graph.placements.append(Placement(key, position))
        return key

    def add_geometry(self, task: str, split: str, layer: int, *, is_end: bool) -> str:
        """Add the cell that clusters a space, and return its key.

        is_end: whether this is the first state (before fine-tuning) or the last (after it), not one in between. Only
        then are confidence intervals computed (from resampled examples), if the plan requests uncertainty.
        """
        plan = self.study.plan
        intervals = is_end and "uncertainty" in plan.measures and layer in self.chosen(plan.uncertainty.layers)
        content = geometry.content(plan, self.space(task, split, layer), intervals=intervals)
        return self.add(geometry.KIND, content, task, self.position(task, split, layer), split)

    def add_released_clusters(self, task: str, layer: int) -> None:
        """Add the cell that counts the clusters of a train space with the limit on attempts of the released code."""
        content = released_clusters.content(self.study.plan, self.space(task, "train", layer))
        self.add(released_clusters.KIND, content, task, self.position(task, "train", layer))

    def add_classifier(self, task: str, split: str, layer: int) -> None:
        """Add the cell that trains classifier probes on the train split and evaluates them on `split`.

        If the plan requests controls of the probes, add their cells too.
        """
        train, test = self.space(task, "train", layer), self.space(task, split, layer)
        content = classifier.content(self.study.plan, train, test)
        key = self.add(classifier.KIND, content, task, self.position(task, split, layer))
        for kind, settings, measured, inputs in control_cells(self.study, task, split, content, key):
            self.add(kind, settings, task, self.position(task, measured, layer), measured, *inputs)

    def add_train_kinds(self, task: str, layers: Sequence[int]) -> None:
        """Add the cells of the other measures of a single train space, such as the panel (vector statistics)."""
        plan = self.study.plan
        for kind in KINDS:
            settings = kind.train_space
            if settings is None or settings.requested_as not in plan.measures or not settings.is_needed(plan):
                continue
            for layer in sorted(self.chosen(settings.part(plan).layers) & set(layers)):
                content = {"space": self.space(task, "train", layer)} | settings.content(plan)
                self.add(kind, content, task, self.position(task, "train", layer))


@dataclass(frozen=True, eq=False)
class TrainSpace:
    """A train space at one layer. clustering_key: the key of the cell that clusters it; empty if no cell does."""

    state: EncoderState
    task: str
    layer: int
    clustering_key: str

    @property
    def position(self) -> Position:
        """Where measures of the space go in the table."""
        return self.state.position(self.task, "train", self.layer)

    @property
    def space(self) -> str:
        """Its key in the store."""
        return self.state.space(self.task, "train", self.layer)

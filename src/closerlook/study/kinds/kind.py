"""`Kind`: everything that a study must know about one kind of cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.measure import Measure
from closerlook.study.rows import Payload, Row
from closerlook.study.sizes import Estimate

if TYPE_CHECKING:
    from closerlook.study.entries import LayeredPart
    from closerlook.study.plan import Plan

CellResult = tuple[list[Row], Payload]
"""The rows for the table, and the data that other cells need."""

FIRST, EARLY, LATER = 0, 1, 2
"""Priorities in the queue: extractions come first, since fine-tunings reuse their vectors; then fine-tunings."""


@dataclass(frozen=True)
class TrainSpaceSettings:
    """Settings of a kind of cell that measures single train spaces, before and after fine-tuning.

    requested_as: its name in the plan's `measures`. part: its section of a plan. content: the settings that its
    result depends on, which go into the key together with the space. is_needed: whether these settings leave anything
    to measure.
    """

    requested_as: str
    part: Callable[[Plan], LayeredPart]
    content: Callable[[Plan], dict[str, Any]]
    is_needed: Callable[[Plan], bool] = lambda plan: True


@dataclass(frozen=True)
class Kind:
    """One kind of cell.

    format: part of every key; raise it when the same inputs would give another result. verb: the first words of the
    title of a cell. title: what the report page calls this kind. run: does the work of a cell, given the study's
    folder and the number of threads. estimate: the expected cost. requests: the names in the plan's `measures` that
    request it. measures: the measures that its rows may have. gpu: whether a GPU makes it faster. priority: lower
    numbers run first. makes_spaces: whether it writes spaces to the store; it runs again if they are lost.
    from_results: whether it reads only results of other cells, no vectors. train_space: settings of a kind that
    measures single train spaces; None for other kinds.
    """

    name: str
    format: int
    verb: str
    run: Callable[[Cell, Path, int], CellResult]
    estimate: Callable[[ResolvedPlan, Cell], Estimate]
    requests: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = ()
    gpu: bool = False
    priority: int = LATER
    makes_spaces: bool = False
    from_results: bool = False
    title: str = field(kw_only=True)
    train_space: TrainSpaceSettings | None = None

    def cell(self, content: dict[str, Any], resources: dict[str, Any], inputs: tuple[str, ...], subject: str) -> Cell:
        """A cell of this kind; subject: what it works on, for its title."""
        return Cell(self.name, self.format, content, resources, inputs, f"{self.verb} {subject}", self.gpu)

"""The sizes of the inputs of cells, and `Estimate`, the expected cost of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from closerlook.encoders.source import EncoderInfo
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.tasks.task import VECTORS_PER_EXAMPLE, Task
from closerlook.texts import joined

BASE_BYTES = 400_000_000
"""Memory of a process that has loaded torch and the other libraries."""

FLOPS = 3e10
"""Floating-point operations per second on one core: a guess, which `RemainingTime` corrects as cells finish."""


@dataclass(frozen=True)
class Estimate:
    """The expected cost of a cell: seconds on one core, bytes of memory, bytes on disk."""

    seconds: float
    bytes: int
    disk: int


@dataclass(frozen=True)
class SpaceSize:
    """n points in d dimensions with m labels."""

    n: int
    d: int
    m: int

    @property
    def clustering_seconds(self) -> float:
        """Seconds to cluster the space, roughly."""
        return self.n * self.d * self.m / 6e7

    @property
    def bytes(self) -> int:
        """Memory of a process that clusters the space, roughly."""
        return BASE_BYTES + 40 * self.n * self.d

    @property
    def pairwise_bytes(self) -> int:
        """Memory of a process that works on blocks of distances between all pairs of points, roughly."""
        return self.bytes + 300_000_000


def space_size(study: ResolvedPlan, cell: Cell, split: str = "") -> SpaceSize:
    """The size of the space that a cell measures. split: by default that of the cell."""
    (task,) = (study.tasks[name] for name in cell.resources["task"])
    _, info = study.source_and_info(cell.resources["encoder"])
    return SpaceSize(
        len(task.split(split or cell.resources["split"])), info.width * VECTORS_PER_EXAMPLE[task.unit], len(task.labels)
    )


@cache
def token_count(task: Task, split: str) -> float:
    """The number of subwords in a split, roughly."""
    return sum(1.3 * len(joined(text).split()) + 2 for text in task.split(split).texts)


def vector_bytes(task: Task, splits: Sequence[str], width: int, layers: int) -> int:
    """Bytes on disk of the vectors of a task at that many layers."""
    rows = sum(len(task.split(split)) for split in splits)
    return 4 * rows * width * VECTORS_PER_EXAMPLE[task.unit] * layers


def layer_parameters(info: EncoderInfo) -> float:
    """The number of parameters that every token passes through: those of the layers, not of the embedding."""
    return 12.0 * info.layers * info.width**2 + 1e5

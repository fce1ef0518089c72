"""What cells will cost: seconds, memory and disk, guessed from their sizes and corrected by those that have run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from closerlook.encoders.source import EncoderInfo
from closerlook.representations.targets import VECTORS_PER_EXAMPLE
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.forecasting import planned_steps
from closerlook.study.layers import layers_of
from closerlook.tasks.task import Task

BASE_BYTES = 400_000_000
"""What a process with torch and the libraries holds before it does anything."""

FLOPS = 3e10
"""Useful operations a second on one core; a guess, corrected as cells finish."""


@dataclass(frozen=True)
class Estimate:
    """Seconds on one core, bytes of memory, bytes on disk."""

    seconds: float
    bytes: int
    disk: int


def estimate_cell(study: ResolvedPlan, cell: Cell) -> Estimate:
    """What one cell may cost."""
    if cell.kind == "extract":
        return _extract(study, cell)
    if cell.kind == "tune":
        return _tune(study, cell)
    if cell.kind in {"compare", "paths"}:
        return Estimate(0.1, BASE_BYTES, 10_000)
    return _of_a_space(cell.kind, cell.content, *_shape(study, cell))


def _of_a_space(kind: str, content: dict[str, Any], n: int, d: int, k: int) -> Estimate:
    """What a cell may cost that looks at n points in d dimensions with k labels."""
    clustered = n * d * k / 6e7
    pairs = BASE_BYTES + 40 * n * d + 300_000_000
    match kind:
        case "geometry":
            times = 1 + content["resamples"] / 5
            disk = 20_000 + 6 * k * (d + 3 * k) + 4 * content["resamples"] * k * k
            found = Estimate(0.02 + clustered * times, BASE_BYTES + 40 * n * d, disk)
        case "classify":
            networks = len(content["sizes"]) * content["seeds"]
            found = Estimate(0.1 + 3e-7 * networks * n * (d + 200), 2 * BASE_BYTES + 16 * n * d, 20_000)
        case "panel":
            found = Estimate(0.1 + 1.5e-10 * n * n * d, pairs, 4_000)
        case "alike":
            found = Estimate(0.1 + 2e-10 * n * n * d, pairs, 4_000)
        case "nulls":
            shuffled = (content["shuffles"] + 1) * clustered * 4
            thinned = (content["cluster_shuffles"] + 1) * min(n, content["points"]) * d * k / 1e7
            found = Estimate(0.1 + shuffled + thinned, BASE_BYTES + 60 * n * d, 4_000)
        case _:  # halves
            times = content["repeats"] + content["folds"]
            found = Estimate(0.1 + times * clustered, BASE_BYTES + 40 * n * d, 4_000)
    return found


def _shape(study: ResolvedPlan, cell: Cell) -> tuple[int, int, int]:
    """Rows, columns and labels of the space that a cell measures."""
    (task,) = (study.tasks[name] for name in cell.how["task"])
    _, info = study.found(cell.how["encoder"])
    return len(task.split(cell.how["split"])), info.width * VECTORS_PER_EXAMPLE[task.unit], len(task.labels)


@cache
def _tokens(task: Task, split: str) -> float:
    """Subwords to read, roughly."""
    return sum(1.3 * len(text.split() if isinstance(text, str) else text) + 2 for text in task.split(split).texts)


def _vector_bytes(opened: Task, splits: Sequence[str], width: int, layers: int) -> int:
    rows = sum(len(opened.split(split)) for split in splits)
    return 4 * rows * width * VECTORS_PER_EXAMPLE[opened.unit] * layers


def _extract(study: ResolvedPlan, cell: Cell) -> Estimate:
    _, info = study.found(cell.how["encoder"])
    splits = cell.content["splits"]
    tokens = sum(_tokens(task, split) for task in study.tasks.values() for split in splits)
    layers = len(cell.content["layers"])
    disk = sum(_vector_bytes(task, splits, info.width, layers) for task in study.tasks.values())
    return Estimate(2 + 2 * tokens * _inner(info) / FLOPS, BASE_BYTES + 8 * info.parameters, disk)


def _tune(study: ResolvedPlan, cell: Cell) -> Estimate:
    encoder, task, probes = cell.how["encoder"], study.tasks[cell.how["task"]], list(cell.how["probe"])
    source, info = study.encoders[encoder]
    settings = study.settings[encoder, cell.how["task"]]
    steps = len(planned_steps(settings, task))
    probed = sum(_tokens(study.tasks[one], split) for one in probes for split in study.plan.splits)
    between = len(layers_of(study.plan, source, info, ends=False)) * (steps - 2) + 2 * len(settings.layers)
    disk = sum(_vector_bytes(study.tasks[one], study.plan.splits, info.width, between) for one in probes)
    work = 6 * _tokens(task, "train") * settings.epochs + 2 * probed * steps
    return Estimate(4 + work * _inner(info) / FLOPS, BASE_BYTES + 24 * info.parameters + 200_000_000, disk)


def _inner(info: EncoderInfo) -> float:
    """Parameters that every token goes through: those of the layers, not of the embedding."""
    return 12.0 * info.layers * info.width**2 + 1e5


class Costs:
    """What is left to do, in seconds: guessed at first, then in the light of the cells of each kind that have run.

    Sums are kept by kind, so that asking costs the same however many cells there are.
    """

    def __init__(self, study: ResolvedPlan) -> None:
        self.study = study
        self._known: dict[str, Estimate] = {}
        self._open: dict[str, float] = {}
        self._coming: dict[str, dict[str, float]] = {}
        self._spent: dict[str, tuple[float, float]] = {}

    def estimate(self, cell: Cell) -> Estimate:
        """What a cell may cost, as it was first guessed."""
        if cell.key not in self._known:
            self._known[cell.key] = estimate_cell(self.study, cell)
        return self._known[cell.key]

    def seconds(self, cell: Cell) -> float:
        """What a cell may take on one worker, as far as is known by now."""
        return self.estimate(cell).seconds * self._rate(cell.kind)

    def _rate(self, kind: str) -> float:
        spent, guessed = self._spent.get(kind, (1.0, 1.0))
        return spent / guessed

    def restart(self) -> None:
        """Forget what there is to do, not what was learnt."""
        self._open.clear()
        self._coming.clear()

    def expect(self, cell: Cell) -> None:
        """One cell more to do."""
        self._open[cell.kind] = self._open.get(cell.kind, 0.0) + self.estimate(cell).seconds

    def drop(self, cell: Cell) -> None:
        """One cell fewer."""
        self._open[cell.kind] = self._open.get(cell.kind, 0.0) - self.estimate(cell).seconds

    def foresee(self, key: str, cells: Iterable[Cell]) -> None:
        """Cells that the fine-tuning with that key will bring."""
        by_kind: dict[str, float] = {}
        for cell in cells:  # not remembered one by one: these keys will never be asked for
            by_kind[cell.kind] = by_kind.get(cell.kind, 0.0) + estimate_cell(self.study, cell).seconds
        self._coming[key] = by_kind

    def came(self, key: str) -> None:
        """What that fine-tuning brought is known now."""
        self._coming.pop(key, None)

    def learn(self, cell: Cell, seconds: float) -> None:
        """Take in what a cell took."""
        spent, guessed = self._spent.get(cell.kind, (0.0, 0.0))
        self._spent[cell.kind] = (spent + seconds, guessed + self.estimate(cell).seconds)

    def left(self, workers: int) -> float:
        """Seconds until the end, if the workers share the work evenly."""
        parts = [self._open, *self._coming.values()]
        seconds = sum(guessed * self._rate(kind) for part in parts for kind, guessed in part.items())
        return max(0.0, seconds) / workers

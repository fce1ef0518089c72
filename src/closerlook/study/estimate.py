"""What cells will cost: seconds, memory and disk, guessed from their sizes and corrected by those that have run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from closerlook.encoders.source import Facts
from closerlook.representations.targets import VECTORS
from closerlook.study.cells import Cell, Opened, layers_of
from closerlook.study.foresight import planned_steps
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


def estimate_cell(study: Opened, cell: Cell) -> Estimate:
    """What one cell may cost."""
    match cell.kind:
        case "extract":
            return _extract(study, cell)
        case "tune":
            return _tune(study, cell)
        case "geometry":
            n, d, k = _shape(study, cell)
            return Estimate(0.02 + n * d * k / 6e7, BASE_BYTES + 40 * n * d, 20_000 + 12 * k * (d + k))
        case "classify":
            n, d, _ = _shape(study, cell)
            networks = len(cell.content["sizes"]) * cell.content["seeds"]
            return Estimate(0.1 + 3e-7 * networks * n * (d + 200), 2 * BASE_BYTES + 16 * n * d, 20_000)
        case "compare":
            return Estimate(0.1, BASE_BYTES, 4_000)
        case "paths":
            return Estimate(0.05, BASE_BYTES, 20_000)


def _shape(study: Opened, cell: Cell) -> tuple[int, int, int]:
    """Rows, columns and labels of the space that a cell measures."""
    (task,) = (study.tasks[name] for name in cell.how["task"])
    _, facts = study.encoders[cell.how["encoder"]]
    return len(task.split(cell.how["split"])), facts.width * VECTORS[task.unit], len(task.labels)


@cache
def _tokens(task: Task, split: str) -> float:
    """Subwords to read, roughly."""
    return sum(1.3 * len(text.split() if isinstance(text, str) else text) + 2 for text in task.split(split).texts)


def _vector_bytes(study: Opened, task: str, width: int, layers: int) -> int:
    opened = study.tasks[task]
    rows = sum(len(opened.split(split)) for split in study.plan.splits)
    return 4 * rows * width * VECTORS[opened.unit] * layers


def _extract(study: Opened, cell: Cell) -> Estimate:
    _, facts = study.encoders[cell.how["encoder"]]
    tokens = sum(_tokens(task, split) for task in study.tasks.values() for split in study.plan.splits)
    layers = len(cell.content["layers"])
    disk = sum(_vector_bytes(study, task, facts.width, layers) for task in study.tasks)
    return Estimate(2 + 2 * tokens * _inner(facts) / FLOPS, BASE_BYTES + 8 * facts.parameters, disk)


def _tune(study: Opened, cell: Cell) -> Estimate:
    encoder, task, probes = cell.how["encoder"], study.tasks[cell.how["task"]], list(cell.how["probe"])
    source, facts = study.encoders[encoder]
    settings = study.settings[encoder, cell.how["task"]]
    steps = len(planned_steps(settings, task))
    probed = sum(_tokens(study.tasks[one], split) for one in probes for split in study.plan.splits)
    between = len(layers_of(study.plan, source, facts, ends=False)) * (steps - 2) + 2 * len(settings.layers)
    disk = sum(_vector_bytes(study, one, facts.width, between) for one in probes)
    work = 6 * _tokens(task, "train") * settings.epochs + 2 * probed * steps
    return Estimate(4 + work * _inner(facts) / FLOPS, BASE_BYTES + 24 * facts.parameters + 200_000_000, disk)


def _inner(facts: Facts) -> float:
    """Parameters that every token goes through: those of the layers, not of the embedding."""
    return 12.0 * facts.layers * facts.width**2 + 1e5


class Costs:
    """What is left to do, in seconds: guessed at first, then in the light of the cells of each kind that have run.

    Sums are kept by kind, so that asking costs the same however many cells there are.
    """

    def __init__(self, study: Opened) -> None:
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

"""The time that a study still needs."""

from __future__ import annotations

from collections.abc import Iterable

from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.kinds import estimate_cell
from closerlook.study.sizes import Estimate


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

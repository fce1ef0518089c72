"""The time that a study still needs: estimates of its cells, corrected by the times of cells that have finished."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from closerlook.study.cells import Cell
from closerlook.study.sizes import Estimate

UNKNOWN_SHARE = 0.02
"""The largest share of the expected time in kinds of cells without a measured time with which a number is shown.

Estimates of a kind may be wrong by a factor of 30; then this share would still be less than the rest.
"""

OVERHEAD = 0.05
"""Seconds for sending a cell to a worker and back that count at most; more is waiting for a busy worker."""


@dataclass
class _Measured:
    """Seconds that cells of a kind took, and seconds that were estimated for them."""

    seconds: float = 0.0
    estimated: float = 0.0


class RemainingTime:
    """What a study still has to do, by cell, and what is known about the time it takes.

    estimate: the expected cost of a cell, before any is measured. workers: how many cells run at a time.
    """

    def __init__(
        self, estimate: Callable[[Cell], Estimate], workers: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.workers = workers
        self._estimate_cell, self._clock = estimate, clock
        self._estimates: dict[str, Estimate] = {}
        self._to_do: dict[str, Cell] = {}
        self._begun: dict[str, float] = {}
        self._coming: dict[str, dict[str, float]] = {}
        self._measured: defaultdict[str, _Measured] = defaultdict(_Measured)

    def estimate(self, cell: Cell) -> Estimate:
        """The expected cost of a cell, before any is measured."""
        if cell.key not in self._estimates:
            self._estimates[cell.key] = self._estimate_cell(cell)
        return self._estimates[cell.key]

    def is_measured(self, kind: str) -> bool:
        """Whether a cell of that kind has finished."""
        return kind in self._measured

    def expected_seconds(self, cell: Cell) -> float:
        """The time that a cell takes on one worker, as far as is known now."""
        return self.estimate(cell).seconds * self._ratio(cell.kind)

    def _ratio(self, kind: str) -> float:
        """Measured over estimated time of a kind; that of all measured kinds together for a kind without any."""
        parts = [self._measured[kind]] if kind in self._measured else list(self._measured.values())
        estimated = sum(part.estimated for part in parts)
        seconds = sum(part.seconds for part in parts)
        ratio = seconds / estimated if estimated else 1.0
        for cell, elapsed in self._running(kind):  # the shortest finish first: those that take longer count, too
            guess = self.estimate(cell).seconds
            if estimated and elapsed > ratio * guess:
                seconds, estimated = seconds + elapsed, estimated + guess
        return seconds / estimated if estimated else 1.0

    def _running(self, kind: str) -> list[tuple[Cell, float]]:
        """The running cells of a kind, and for how long they have run."""
        cells = ((self._to_do[key], begun) for key, begun in self._begun.items() if key in self._to_do)
        return [(cell, self._clock() - begun) for cell, begun in cells if cell.kind == kind]

    # ---- what happens ----

    def restart(self) -> None:
        """Forget the cells to do, not the measured times."""
        for part in (self._to_do, self._begun, self._coming):
            part.clear()

    def expect(self, cell: Cell) -> None:
        """Add a cell to do."""
        self._to_do[cell.key] = cell

    def expect_from(self, key: str, cells: Iterable[Cell]) -> None:
        """Add the cells that the fine-tuning with that key will bring."""
        by_kind: defaultdict[str, float] = defaultdict(float)
        for cell in cells:  # not kept: their keys contain placeholders for weights that are not known yet
            by_kind[cell.kind] += self._estimate_cell(cell).seconds
        self._coming[key] = dict(by_kind)

    def arrived(self, key: str) -> None:
        """The fine-tuning with that key has brought its cells, which are expected one by one now."""
        self._coming.pop(key, None)

    def begin(self, cell: Cell) -> None:
        """A cell begins."""
        self._begun[cell.key] = self._clock()

    def drop(self, cell: Cell) -> None:
        """A cell needs no more time: it has finished or failed."""
        self._to_do.pop(cell.key, None)
        self._begun.pop(cell.key, None)

    def finish(self, cell: Cell, seconds: float) -> None:
        """A cell has finished after that many seconds of work."""
        waited = self._clock() - self._begun.get(cell.key, self._clock())
        self.learn(cell, min(max(waited, seconds), seconds + OVERHEAD))
        self.drop(cell)

    def learn(self, cell: Cell, seconds: float) -> None:
        """Use the time that a cell took for the estimates of its kind."""
        measured = self._measured[cell.kind]
        measured.seconds += seconds
        measured.estimated += self.estimate(cell).seconds

    # ---- what is left ----

    def seconds(self) -> float | None:
        """Seconds until the study ends; None as long as too little is known.

        Workers share the work evenly, but no cell is shared: the study takes at least as long as its longest cell, and
        as a fine-tuning together with the cells that follow it.
        """
        by_kind: defaultdict[str, float] = defaultdict(float)
        longest = 0.0
        for cell in self._to_do.values():
            left = self._cell_left(cell)
            by_kind[cell.kind] += left
            following = sum(self._coming_left(cell.key).values())
            longest = max(longest, left + following / self.workers)
        for key in self._coming:
            for kind, left in self._coming_left(key).items():
                by_kind[kind] += left
        total = sum(by_kind.values())
        unknown = sum(left for kind, left in by_kind.items() if not self.is_measured(kind))
        if unknown > UNKNOWN_SHARE * total:
            return None
        return max(total / self.workers, longest)

    def _cell_left(self, cell: Cell) -> float:
        """The time that a cell still takes, less what it has run already."""
        expected = self.expected_seconds(cell)
        begun = self._begun.get(cell.key)
        return expected if begun is None else max(expected - (self._clock() - begun), 0.1 * expected)

    def _coming_left(self, key: str) -> dict[str, float]:
        """The time of the cells that a fine-tuning will bring, by kind."""
        return {kind: seconds * self._ratio(kind) for kind, seconds in self._coming.get(key, {}).items()}

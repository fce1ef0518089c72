"""The time that a study still needs: estimates of its cells, corrected by the times of cells that have finished.

The constants below were chosen with simulated studies whose estimates are wrong by up to 30 times, see the tests: with
60 seeds and 1, 2 and 4 workers, every number shown after a tenth of the work was right within a factor of two, and half
of the studies showed one for at least 87% of their time.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

from closerlook.study.cells import Cell
from closerlook.study.sizes import Estimate

UNKNOWN_SHARE = 0.03
"""The largest share of the expected time in kinds of cells without a measured time with which a number is shown.

Estimates of a kind may be wrong by a factor of 30; then this share would still be less than the rest.
"""

NEEDED_CELLS = 2
"""Measured cells that a kind needs if more than LARGE_SHARE of the time is left for it and the next cell ends soon.

A single one may be an exception, and is the shortest if several began together. The next one ends soon if another
worker runs it, or if more than MANY_CELLS are left.
"""

LARGE_SHARE, MANY_CELLS = 0.45, 10

SPREAD = 0.4
"""The standard deviation of the logarithm of a cell's time over its expected time."""

SURE_SHARE = 0.4
"""If one running cell may decide when the study ends, no number is shown once less than this share of it is left.

Towards the end of a cell, the usual spread of its time is more than the time left.
"""

NORMAL = NormalDist()
MOST_DEVIATIONS = 6.0
"""Standard deviations beyond which a running cell does not get any later: the probabilities would be rounded to 1."""

OVERHEAD = 0.05
"""Seconds for sending a cell to a worker and back that count at most; more is waiting for a busy worker."""


@dataclass
class _Measured:
    """The number of finished cells of a kind, seconds that they took, and seconds that were estimated for them."""

    n: int = 0
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

    def needs_pilot(self, kind: str, queued: int) -> bool:
        """Whether a cell of that kind must run early, with that many early ones queued already."""
        measured = self._measured.get(kind)
        return (0 if measured is None else measured.n) + queued < NEEDED_CELLS

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
        measured.n += 1
        measured.seconds += seconds
        measured.estimated += self.estimate(cell).seconds

    # ---- what is left ----

    def seconds(self) -> float | None:
        """Seconds until the study ends; None as long as too little is known.

        The study takes at least as long as its work shared evenly by all workers, as its cells given to one worker
        each, and as a fine-tuning together with the cells that follow it.
        """
        by_kind: defaultdict[str, float] = defaultdict(float)
        cells_left, longest, is_sure = [], 0.0, True
        for cell in self._to_do.values():
            left = self._cell_left(cell)
            cells_left.append(left)
            by_kind[cell.kind] += left
            following = sum(self._coming_left(cell.key).values())
            if left + following / self.workers > longest:
                longest = left + following / self.workers
                is_sure = cell.key not in self._begun or left > SURE_SHARE * self.expected_seconds(cell)
        for key in self._coming:
            for kind, left in self._coming_left(key).items():
                by_kind[kind] += left
        shared = max(sum(by_kind.values()) / self.workers, _longest_first(cells_left, self.workers))
        if not self._is_known(by_kind) or (longest > shared / 2 and not is_sure):
            return None
        return max(shared, longest)

    def _is_known(self, by_kind: Mapping[str, float]) -> bool:
        """Whether enough cells are measured for these seconds left of each kind."""
        total = sum(by_kind.values())
        unknown = sum(left for kind, left in by_kind.items() if not self.is_measured(kind))
        return unknown <= UNKNOWN_SHARE * total and not any(
            self._needs_cells(kind, left, total) for kind, left in by_kind.items()
        )

    def _needs_cells(self, kind: str, left: float, total: float) -> bool:
        """Whether more cells of a kind must be measured, of which `left` of all the `total` seconds are left."""
        measured = self._measured.get(kind)
        if measured is None or measured.n >= NEEDED_CELLS:
            return False
        soon = left > MANY_CELLS * measured.seconds / measured.n or (self.workers > 1 and bool(self._running(kind)))
        return soon and left > LARGE_SHARE * total

    def _cell_left(self, cell: Cell) -> float:
        """The time that a cell still takes. For a running cell: the median, given that it has not finished yet."""
        expected = self.expected_seconds(cell)
        begun = self._begun.get(cell.key)
        elapsed = 0.0 if begun is None else self._clock() - begun
        if not elapsed or not expected:
            return expected
        finished = NORMAL.cdf(min(math.log(elapsed / expected) / SPREAD, MOST_DEVIATIONS))
        return expected * math.exp(SPREAD * NORMAL.inv_cdf((1 + finished) / 2)) - elapsed

    def _coming_left(self, key: str) -> dict[str, float]:
        """The time of the cells that a fine-tuning will bring, by kind."""
        return {kind: seconds * self._ratio(kind) for kind, seconds in self._coming.get(key, {}).items()}


def _longest_first(cells: Iterable[float], workers: int) -> float:
    """Seconds until all cells have finished, if each idle worker takes the longest cell that is left."""
    busy_until = [0.0] * workers
    for seconds in sorted(cells, reverse=True):
        heapq.heapreplace(busy_until, busy_until[0] + seconds)
    return max(busy_until)

"""The time that a study still needs: estimates of its cells, corrected by the times of cells that have finished.

The constants below were chosen with simulated studies whose estimates are wrong by up to 30 times, see the tests: with
60 seeds and 1, 2 and 4 workers, every number shown after a tenth of the work was right within a factor of two, and half
of the studies showed a number for at least 87% of their time.
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
"""A remaining time is shown only if at most this share of it belongs to kinds of cells of which none has finished.

The estimate of a kind may be wrong by a factor of 30; even then this share would take less time than the rest.
"""

NEEDED_CELLS = 2
"""How many cells of a kind must have finished before a remaining time is shown.

This applies only to a kind that needs more than LARGE_SHARE of the remaining time and whose next cell will finish soon:
because another worker runs it, or because more than MANY_CELLS are left. The time of a single cell may be an exception,
and it is the shortest of those that began together.
"""

LARGE_SHARE, MANY_CELLS = 0.45, 10

SPREAD = 0.4
"""The standard deviation of the logarithm of a cell's time over its expected time."""

RELIABLE_SHARE = 0.4
"""If one running cell may decide when the study ends, a remaining time is shown only while at least this share of the
cell's expected time is left.

Towards the end of a cell, the time left is shorter than the usual spread of the times of such cells.
"""

NORMAL = NormalDist()
MOST_DEVIATIONS = 6.0
"""A running cell counts as at most this many standard deviations late; with more, probabilities would round to 1."""

OVERHEAD = 0.05
"""Maximum seconds that count as the cost of sending a cell to a worker; the rest is waiting for a busy worker."""


@dataclass
class _Measured:
    """The number n of finished cells of a kind, the seconds that they took, and the seconds estimated for them."""

    n: int = 0
    seconds: float = 0.0
    estimated: float = 0.0


class RemainingTime:
    """The unfinished cells of a study, and the times that finished cells of each kind took.

    estimate: returns the expected cost of a cell, without any measured times. workers: how many cells run at a time.
    clock: returns the present time in seconds. gpu_workers: how many cells use the GPU at a time; None: any number.
    """

    gpu_workers: int | None = None

    def __init__(
        self, estimate: Callable[[Cell], Estimate], workers: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.workers = workers
        self._estimate_cell, self._clock = estimate, clock
        self._estimates: dict[str, Estimate] = {}
        self._to_do: dict[str, Cell] = {}
        self._gpu_kinds: set[str] = set()
        self._begun: dict[str, float] = {}
        self._coming: dict[str, dict[str, float]] = {}
        self._measured: defaultdict[str, _Measured] = defaultdict(_Measured)

    def estimate(self, cell: Cell) -> Estimate:
        """The expected cost of a cell, without any measured times."""
        if cell.key not in self._estimates:
            self._estimates[cell.key] = self._estimate_cell(cell)
        return self._estimates[cell.key]

    def needs_pilot(self, kind: str, queued: int) -> bool:
        """Whether a cell of that kind should run early, to measure its time. queued: how many such cells are queued."""
        measured = self._measured.get(kind)
        return (0 if measured is None else measured.n) + queued < NEEDED_CELLS

    def is_measured(self, kind: str) -> bool:
        """Whether a cell of that kind has finished."""
        return kind in self._measured

    def expected_seconds(self, cell: Cell) -> float:
        """The expected time of a cell on one worker: its estimate, corrected by measured times."""
        return self.estimate(cell).seconds * self._ratio(cell.kind)

    def _ratio(self, kind: str) -> float:
        """Measured time divided by estimated time of a kind; of all measured kinds together if the kind has none."""
        parts = [self._measured[kind]] if kind in self._measured else list(self._measured.values())
        estimated = sum(part.estimated for part in parts)
        seconds = sum(part.seconds for part in parts)
        ratio = seconds / estimated if estimated else 1.0
        for cell, elapsed in self._running(kind):  # short cells finish first: cells that run longer count too
            guess = self.estimate(cell).seconds
            if estimated and elapsed > ratio * guess:
                seconds, estimated = seconds + elapsed, estimated + guess
        return seconds / estimated if estimated else 1.0

    def _running(self, kind: str) -> list[tuple[Cell, float]]:
        """The running cells of a kind, and for how long they have run."""
        cells = ((self._to_do[key], begun) for key, begun in self._begun.items() if key in self._to_do)
        return [(cell, self._clock() - begun) for cell, begun in cells if cell.kind == kind]

    # ---- events ----

    def restart(self) -> None:
        """Forget the unfinished cells, but not the measured times."""
        for part in (self._to_do, self._begun, self._coming):
            part.clear()

    def expect(self, cell: Cell) -> None:
        """Add an unfinished cell."""
        self._to_do[cell.key] = cell
        self._note_gpu(cell)

    def expect_from(self, key: str, cells: Iterable[Cell]) -> None:
        """Add the cells that will follow when the fine-tuning with that key has finished."""
        by_kind: defaultdict[str, float] = defaultdict(float)
        for cell in cells:  # not kept: their keys contain placeholders for weights that are not known yet
            by_kind[cell.kind] += self._estimate_cell(cell).seconds
            self._note_gpu(cell)
        self._coming[key] = dict(by_kind)

    def _note_gpu(self, cell: Cell) -> None:
        if cell.gpu:
            self._gpu_kinds.add(cell.kind)

    def arrived(self, key: str) -> None:
        """Forget what `expect_from` added for a fine-tuning: it has finished, and `expect` adds its cells now."""
        self._coming.pop(key, None)

    def begin(self, cell: Cell) -> None:
        """Record that a cell begins."""
        self._begun[cell.key] = self._clock()

    def drop(self, cell: Cell) -> None:
        """Forget a cell that has finished or failed."""
        self._to_do.pop(cell.key, None)
        self._begun.pop(cell.key, None)

    def finish(self, cell: Cell, seconds: float) -> None:
        """Record that a cell has finished after that many seconds of work."""
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

        This is the longest of these times: all work divided by the number of workers, and that on the GPU by the number
        of cells that use it at a time; the known cells, if each idle worker takes the longest cell left; and the
        longest cell together with the cells that will follow it.
        """
        by_kind: defaultdict[str, float] = defaultdict(float)
        cells_left, longest, is_reliable = [], 0.0, True
        for cell in self._to_do.values():
            left = self._cell_left(cell)
            cells_left.append(left)
            by_kind[cell.kind] += left
            following = sum(self._coming_left(cell.key).values())
            if left + following / self.workers > longest:
                longest = left + following / self.workers
                is_reliable = cell.key not in self._begun or left > RELIABLE_SHARE * self.expected_seconds(cell)
        for key in self._coming:
            for kind, left in self._coming_left(key).items():
                by_kind[kind] += left
        shared = max(sum(by_kind.values()) / self.workers, _longest_first(cells_left, self.workers))
        if self.gpu_workers is not None:
            on_gpu = sum(left for kind, left in by_kind.items() if kind in self._gpu_kinds)
            shared = max(shared, on_gpu / self.gpu_workers)
        if not self._is_known(by_kind) or (longest > shared / 2 and not is_reliable):
            return None
        return max(shared, longest)

    def _is_known(self, by_kind: Mapping[str, float]) -> bool:
        """Whether enough cells have finished to predict the time. by_kind: the seconds left for each kind of cell."""
        total = sum(by_kind.values())
        unknown = sum(left for kind, left in by_kind.items() if not self.is_measured(kind))
        return unknown <= UNKNOWN_SHARE * total and not any(
            self._needs_cells(kind, left, total) for kind, left in by_kind.items()
        )

    def _needs_cells(self, kind: str, left: float, total: float) -> bool:
        """Whether more cells of a kind must finish first. left: seconds left for this kind; total: for all kinds."""
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
        """The time of the cells that will follow a fine-tuning, by kind."""
        return {kind: seconds * self._ratio(kind) for kind, seconds in self._coming.get(key, {}).items()}


def _longest_first(cells: Iterable[float], workers: int) -> float:
    """Seconds until all cells have finished, if each idle worker takes the longest cell that is left."""
    busy_until = [0.0] * workers
    for seconds in sorted(cells, reverse=True):
        heapq.heapreplace(busy_until, busy_until[0] + seconds)
    return max(busy_until)

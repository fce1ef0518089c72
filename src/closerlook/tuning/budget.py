"""`Budget`: how much of the time of a training goes into measuring it."""

from __future__ import annotations

import time
from collections.abc import Callable


class Budget:
    """Decides whether another measurement would take too large a share of the time of a training.

    seconds: spent on measurements so far. expected: what one more will take, namely as long as the last one. skipped:
    the number of measurements that were left out.
    """

    def __init__(self, max_share: float | None, clock: Callable[[], float] = time.perf_counter) -> None:
        """max_share: the time of all measurements divided by that of the rest of the training; None: no limit."""
        self.max_share, self.clock = max_share, clock
        self.seconds, self.expected, self.skipped = 0.0, 0.0, 0
        self._begun = clock()

    @property
    def training_seconds(self) -> float:
        """The time since the beginning, without measurements."""
        return self.clock() - self._begun - self.seconds

    @property
    def share(self) -> float:
        """The time of measurements divided by that of the rest of the training so far; infinite before the first step.

        It is larger than `max_share` after the measurement of the start, which is always made.
        """
        training = self.training_seconds
        return self.seconds / training if training > 0 else float("inf")

    def add(self, seconds: float, *, once: float = 0.0) -> None:
        """Record a measurement. once: further seconds, for what is not measured again."""
        self.seconds += seconds + once
        self.expected = seconds

    def allows(self) -> bool:
        """Whether one more measurement stays within the share; if not, it counts as skipped."""
        if self.max_share is None or self.seconds + self.expected <= self.max_share * self.training_seconds:
            return True
        self.skipped += 1
        return False

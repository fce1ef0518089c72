"""Alarms of `GeometryCallback`: a task's accuracy or similarity fell by more than its noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closerlook.geometry.split_halves import split_similarity

LEVEL = 0.001
"""The p-value for an alarm about accuracy, divided by the number of tasks × layers.

It is small because a training is measured many times.
"""

HALVES = 3
"""Random halvings of the examples at the start; the lowest similarity of two halves is the noise of similarity."""


@dataclass(frozen=True)
class Alarm:
    """A measure of a task that fell by more than its noise, at one layer.

    measure: `held_out_accuracy` or `similarity` (to the start of the training). reference: of accuracy, its highest
    value so far; of similarity, the lowest similarity of two halves of the examples at the start. p_value: of accuracy,
    the one-sided exact McNemar test on the same held-out examples; NaN for similarity.

    >>> alarm = Alarm("toy-pos", 2, 90, "held_out_accuracy", value=0.81, reference=0.9, p_value=2e-5)
    >>> print(alarm)  # doctest: +ELLIPSIS
    step 90, task toy-pos, layer 2: held-out accuracy fell from 0.900, its highest value so far, to 0.810 (McNemar ...)
    """

    task: str
    layer: int
    step: int
    measure: str
    value: float
    reference: float
    p_value: float = math.nan

    def __str__(self) -> str:
        where = f"step {self.step}, task {self.task}, layer {self.layer}"
        if self.measure == "similarity":
            return (
                f"{where}: similarity to the start fell to {self.value:.3f}, below {self.reference:.3f}, the lowest "
                "similarity of two halves of the examples at the start"
            )
        return (
            f"{where}: held-out accuracy fell from {self.reference:.3f}, its highest value so far, to {self.value:.3f} "
            f"(McNemar test, p = {self.p_value:.1g})"
        )


class AlarmState:
    """Decides when one layer of one task raises an alarm: once for each fall, and again only after a recovery."""

    def __init__(self, task: str, layer: int, level: float) -> None:
        """level: the largest p-value of an alarm about accuracy."""
        self.task, self.layer, self.level = task, layer, level
        self.similarity_noise = math.nan
        self._best: NDArray[np.bool_] | None = None
        self._fallen: set[str] = set()

    def measure_noise(self, X: NDArray[np.float32], y: NDArray[Any], threads: int | None) -> None:
        """Measure the noise of similarity from halves of the points at the start, X (n, d) with labels y (n,)."""
        self.similarity_noise = split_similarity(X, y, repeats=HALVES, threads=threads).low

    def check(self, step: int, similarity: float, correct: NDArray[np.bool_]) -> list[Alarm]:
        """The alarms of one measurement. correct: for each held-out example, whether it is predicted correctly."""
        found = [self._check_accuracy(step, correct), self._check_similarity(step, similarity)]
        fallen = {alarm.measure for alarm in found if alarm is not None}
        new = [alarm for alarm in found if alarm is not None and alarm.measure not in self._fallen]
        self._fallen = fallen
        return new

    def _check_similarity(self, step: int, similarity: float) -> Alarm | None:
        if not similarity < self.similarity_noise:  # also if one of them is NaN
            return None
        return Alarm(self.task, self.layer, step, "similarity", similarity, self.similarity_noise)

    def _check_accuracy(self, step: int, correct: NDArray[np.bool_]) -> Alarm | None:
        from scipy.stats import binomtest

        best = self._best
        if best is None or correct.sum() >= best.sum():
            self._best = correct
            return None
        lost, gained = int((best & ~correct).sum()), int((~best & correct).sum())
        p_value = float(binomtest(lost, lost + gained, alternative="greater").pvalue)
        if p_value > self.level:
            return None
        return Alarm(
            self.task, self.layer, step, "held_out_accuracy", float(correct.mean()), float(best.mean()), p_value
        )

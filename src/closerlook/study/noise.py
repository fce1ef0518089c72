"""How large a change must be to count: the margin over examples and over seeds, and the test for no harm."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from closerlook.study.readings import Measurement

Direction = Literal["up", "down", "within noise"]

HARM = 0.02
"""The largest fall of accuracy that counts as no harm: 2 percentage points."""

LEVEL = 0.95
"""The confidence level of all margins and intervals."""


@dataclass(frozen=True)
class Effect:
    """A change and its margin: the half-width of its 95% interval, from examples or from seeds, whichever is larger."""

    value: float
    margin: float

    @property
    def direction(self) -> Direction:
        """Whether the change is beyond its margin, and in which direction."""
        if abs(self.value) <= self.margin:
            return "within noise"
        return "up" if self.value > 0 else "down"

    def scaled(self, factor: float) -> Effect:
        """The same effect in another unit."""
        return Effect(self.value * factor, self.margin * abs(factor))


def change(before: Measurement | None, after: Sequence[Measurement | None]) -> Effect | None:
    """The mean of a measure over seeds minus its value before fine-tuning; None without intervals over examples.

    after: one measurement for each seed, with its interval over examples. The margin over examples adds the squared
    half-widths before and after. This ignores that both are measured on the same examples, so it is rather too wide.

    >>> change(Measurement(1.0, 0.7, 1.3), [Measurement(2.0, 1.6, 2.4)])
    Effect(value=1.0, margin=0.5)
    """
    known = [measurement for measurement in after if measurement is not None]
    if before is None or not known:
        return None
    widths = [half_width(measurement) for measurement in (before, *known)]
    if None in widths:
        return None
    first, *rest = [width or 0.0 for width in widths]
    values = [measurement.value for measurement in known]
    examples = round(math.hypot(first, statistics.fmean(rest)), 12)
    return Effect(statistics.fmean(values) - before.value, max(examples, seed_margin(values)))


def half_width(measurement: Measurement) -> float | None:
    """Half the width of a confidence interval; if it was cut off at one end, the width of its other half."""
    if measurement.low is None or measurement.high is None:
        return None
    return max(measurement.value - measurement.low, measurement.high - measurement.value)


def seed_margin(values: Sequence[float]) -> float:
    """The half-width of the 95% interval of the mean over seeds (Student's t); 0 for a single seed."""
    if len(values) < 2:
        return 0.0
    from scipy.stats import t

    quantile = float(t.ppf((1 + LEVEL) / 2, len(values) - 1))
    return quantile * statistics.stdev(values) / math.sqrt(len(values))


def count_change(before: float, after: Sequence[float]) -> Effect:
    """The change of a number of clusters beyond the lowest possible number; after: one number for each seed.

    Such a number has no interval over examples. The margin takes it as a Poisson count, whose variance is its mean.

    >>> count_change(11, [0, 0]).direction, count_change(2, [0, 0]).direction
    ('down', 'within noise')
    """
    mean = statistics.fmean(after)
    poisson = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2) * math.sqrt(before + mean)
    return Effect(mean - before, max(poisson, seed_margin(after)))


@dataclass(frozen=True)
class NoHarm:
    """The equivalence test that accuracy does not fall by HARM or more.

    change: the change of accuracy. error: its standard error. is_shown: whether the test succeeds. power: the
    probability that it succeeds if accuracy does not change at all. is_harm: whether accuracy falls beyond its margin.
    """

    change: float
    error: float
    is_shown: bool
    power: float
    is_harm: bool


def no_harm(
    before: tuple[Measurement | None, Measurement | None],
    after: Sequence[tuple[Measurement | None, Measurement | None]],
) -> NoHarm | None:
    """The equivalence test for accuracy: one-sided, at the level of 5%; None if accuracy was not measured.

    before, after: accuracy (n: the number of test examples) and its standard deviation over probes (n: the number of
    probes), once before fine-tuning and for each seed after it. The standard error has three parts: the test examples
    (binomial), the probes, and the seeds of fine-tuning if there are several. It ignores that both accuracies are
    measured on the same examples, so it is rather too large.
    """
    ends = [(accuracy, sd) for accuracy, sd in after if accuracy is not None]
    start = before[0]
    if start is None or start.n is None or not ends:
        return None
    values = [accuracy.value for accuracy, _ in ends]
    mean = statistics.fmean(values)
    sampling = (start.value * (1 - start.value) + mean * (1 - mean)) / max(start.n, 1)
    spread = statistics.variance(values) if len(values) > 1 else _variance_of_mean(ends[0][1])
    error = math.sqrt(sampling + _variance_of_mean(before[1]) + spread / len(values))
    normal = statistics.NormalDist()
    one_sided, two_sided = normal.inv_cdf(LEVEL), normal.inv_cdf((1 + LEVEL) / 2)
    fall = start.value - mean
    return NoHarm(
        change=-fall,
        error=error,
        is_shown=fall + one_sided * error < HARM,
        power=normal.cdf(HARM / error - one_sided) if error else 1.0,
        is_harm=fall > two_sided * error,
    )


def _variance_of_mean(deviation: Measurement | None) -> float:
    """The variance of a mean over probes; 0 if the standard deviation is unknown."""
    return 0.0 if deviation is None else deviation.value**2 / max(deviation.n or 1, 1)

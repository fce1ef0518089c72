"""A measure before and after fine-tuning, averaged over seeds, with the value that null labels give."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from closerlook.study.readings import Measurement, Results, Run, null_names, subsampled_name

BeforeAfter = tuple[Measurement | None, Measurement | None]
"""A measurement before fine-tuning, and one after; None where there is none."""

STATES = ("before", "after")


def before_after(results: Results, measure: str, encoder: str, task: str, scale: float = 1.0) -> BeforeAfter:
    """A measure before and after fine-tuning on that task, averaged over seeds.

    A measure that has a standard deviation of its own in the table, such as accuracy, comes with it.
    """
    values = _by_state(results, measure, encoder, task)
    deviations = _by_state(results, f"{measure}_sd", encoder, task)
    before, after = (over_seeds(*state) for state in zip(values, deviations, strict=True))
    return before and before.scaled(scale), after and after.scaled(scale)


def _by_state(
    results: Results, measure: str, encoder: str, task: str
) -> tuple[list[Measurement | None], list[Measurement | None]]:
    """The measurements before (one) and after (one for each seed)."""
    runs = runs_of(results, encoder, task)
    return [results.before(measure, encoder, task)], [results.after(measure, run) for run in runs]


def runs_of(results: Results, encoder: str, task: str, tuned_on: str = "") -> list[Run]:
    """The fine-tuning runs of an encoder measured on a task, one for each seed; tuned_on: the same task if empty."""
    key = (encoder, task, tuned_on or task)
    return [run for run in results.all_runs if (run.encoder, run.task, run.tuned_on) == key]


def over_seeds(
    measurements: Sequence[Measurement | None], deviations: Sequence[Measurement | None] = ()
) -> Measurement | None:
    """The mean over fine-tuning runs with its standard deviation; of a single run, its own spread or interval.

    deviations: the standard deviation that each run was measured with, over probes with different seeds.
    """
    known = [measurement for measurement in measurements if measurement is not None]
    if not known:
        return None
    values = [measurement.value for measurement in known]
    if len(values) > 1:
        return Measurement(statistics.fmean(values), sd=statistics.stdev(values))
    sd = next((deviation.value for deviation in deviations if deviation is not None), None)
    return Measurement(values[0], known[0].low, known[0].high) if sd is None else Measurement(values[0], sd=sd)


def mean_of(measurements: Sequence[Measurement | None]) -> float | None:
    """The mean of the values that are known."""
    values = [measurement.value for measurement in measurements if measurement is not None]
    return statistics.fmean(values) if values else None


def difference(first: Measurement | None, second: Measurement | None) -> float | None:
    """The second value minus the first."""
    return None if first is None or second is None else second.value - first.value


def nulls_of(results: Results, measure: str, encoder: str, task: str, scale: float = 1.0) -> BeforeAfter:
    """A measure with null labels, before and after: mean and standard deviation, each averaged over seeds."""
    means, deviations = (_by_state(results, name, encoder, task) for name in null_names(measure))
    before, after = (null_of(*state) for state in zip(means, deviations, strict=True))
    return before and before.scaled(scale), after and after.scaled(scale)


def null_of(means: Sequence[Measurement | None], deviations: Sequence[Measurement | None]) -> Measurement | None:
    """The average of several nulls, each given by its mean and its standard deviation."""
    mean = mean_of(means)
    return None if mean is None else Measurement(mean, sd=mean_of(deviations))


def with_nulls(results: Results, measure: str, encoder: str, task: str, scale: float = 1.0) -> BeforeAfter:
    """A measure before and after, each with the value that null labels give.

    Where the null was computed on a subsample, the value with the true labels on that subsample comes along.
    """
    values, nulls = (of(results, measure, encoder, task, scale) for of in (before_after, nulls_of))
    subsample: BeforeAfter = (None, None)
    if is_subsampled(results, measure, encoder, task):
        subsample = before_after(results, subsampled_name(measure), encoder, task, scale)
    before, after = (
        value
        if value is None or null is None
        else replace(value, null_mean=null.value, null_sd=null.sd, subsampled=None if fewer is None else fewer.value)
        for value, null, fewer in zip(values, nulls, subsample, strict=True)
    )
    return before, after


def is_subsampled(results: Results, measure: str, encoder: str, task: str) -> bool:
    """Whether the null was computed on fewer points than the space has."""
    repeated = subsampled_name(measure)
    fewer = results.before(repeated, encoder, task) if repeated else None
    points = results.before("n_points", encoder, task)
    return fewer is not None and points is not None and fewer.n is not None and fewer.n < points.value


def highest_p(results: Results, measure: str, encoder: str, task: str) -> tuple[float | None, float | None]:
    """A p-value before and after fine-tuning; of several seeds the highest."""
    before, after = _by_state(results, measure, encoder, task)
    return _highest(before), _highest(after)


def _highest(measurements: Sequence[Measurement | None]) -> float | None:
    return max((measurement.value for measurement in measurements if measurement is not None), default=None)

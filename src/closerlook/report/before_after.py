"""A measure before and after fine-tuning, averaged over seeds, and its value on shuffled labels."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import replace

from closerlook.geometry.p_values import FEWEST_SHUFFLES
from closerlook.report.tables import Table
from closerlook.study.readings import Measurement, Results, Run, null_names, subsampled_name

BeforeAfter = tuple[Measurement | None, Measurement | None]
"""A measurement before fine-tuning and a measurement after it; None if it was not measured."""

STATES = ("before", "after")

AFTER_ARROW = ": the value of the pretrained encoder → the value after fine-tuning on that task (mean over seeds)"
"""What the arrow between two values means, for the notes of tables."""

PRETRAINED_STATE = "pretrained"
"""The state of an encoder in a study that fine-tunes nothing."""


def before_after(results: Results, measure: str, encoder: str, task: str, scale: float = 1.0) -> BeforeAfter:
    """A measure before and after fine-tuning on that task, averaged over seeds.

    With one seed, the standard deviation that is stored with the measure, such as the standard deviation of accuracy
    over probes, is returned with it. With several seeds, it is the standard deviation over seeds. scale: a factor for
    all values.
    """
    values = _by_state(results, measure, encoder, task)
    deviations = _by_state(results, f"{measure}_sd", encoder, task)
    before, after = (over_seeds(*state) for state in zip(values, deviations, strict=True))
    return before and before.scaled(scale), after and after.scaled(scale)


def _by_state(
    results: Results, measure: str, encoder: str, task: str
) -> tuple[list[Measurement | None], list[Measurement | None]]:
    """The measurement before fine-tuning, and the measurements after it, one for each seed."""
    runs = runs_of(results, encoder, task)
    return [results.before(measure, encoder, task)], [results.after(measure, run) for run in runs]


def runs_of(results: Results, encoder: str, task: str, tuned_on: str = "") -> list[Run]:
    """The fine-tuning runs of an encoder measured on a task, one for each seed.

    tuned_on: the default is `task`, or a training whose task is not known.
    """
    return [
        run
        for run in results.all_runs
        if (run.encoder, run.task) == (encoder, task) and (run.tuned_on == tuned_on if tuned_on else run.own)
    ]


def over_seeds(
    measurements: Sequence[Measurement | None], deviations: Sequence[Measurement | None] = ()
) -> Measurement | None:
    """The mean and the standard deviation of the values over fine-tuning runs.

    For a single run: its value, with the standard deviation over probes if it is known, and otherwise with its
    confidence interval. deviations: for each run, the standard deviation of the measure over probes that were trained
    with different probe seeds.
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
    """A measure on shuffled labels, before and after fine-tuning.

    Each is the mean and the standard deviation over shuffles, both averaged over fine-tuning seeds.
    """
    means, deviations = (_by_state(results, name, encoder, task) for name in null_names(measure))
    before, after = (null_of(*state) for state in zip(means, deviations, strict=True))
    return before and before.scaled(scale), after and after.scaled(scale)


def null_of(means: Sequence[Measurement | None], deviations: Sequence[Measurement | None]) -> Measurement | None:
    """The average of the means, with the average of the standard deviations, of several null distributions."""
    mean = mean_of(means)
    return None if mean is None else Measurement(mean, sd=mean_of(deviations))


def with_nulls(results: Results, measure: str, encoder: str, task: str, scale: float = 1.0) -> BeforeAfter:
    """A measure before and after fine-tuning, each with its value on shuffled labels.

    If shuffled labels were measured on a subsample of the points, `subsampled` is the value of the true labels there.
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


def without_states(table: Table) -> Table:
    """A table of a study without fine-tuning: columns 'before' have the name of their group, and 'state' is omitted."""
    kept = [
        at
        for at, column in enumerate(table.columns)
        if not (column.title == "state" and {row[at] for row in table.rows} <= {"before", PRETRAINED_STATE})
    ]
    columns = [table.columns[at] for at in kept]
    return replace(
        table,
        columns=tuple(
            replace(column, title=column.group, group="") if column.group and column.title == "before" else column
            for column in columns
        ),
        rows=tuple(tuple(row[at] for at in kept) for row in table.rows),
    )


def without_state(text: str) -> str:
    """A text of a study without fine-tuning, in which every value is of a pretrained encoder.

    >>> without_state("0.80 (2 pairs, before fine-tuning), or 0.60 before fine-tuning.")
    '0.80 (2 pairs), or 0.60.'
    """
    return re.sub(r",? before fine-tuning( only)?\b", "", text)


def highest_p(results: Results, measure: str, encoder: str, task: str) -> tuple[float | None, float | None]:
    """A p-value before and after fine-tuning; with several seeds, the highest p-value."""
    before, after = (known_p(measure, state) for state in _by_state(results, measure, encoder, task))
    return max(before, default=None), max(after, default=None)


def known_p(measure: str, measurements: Sequence[Measurement | None]) -> list[float]:
    """The p-values that can be small; for similarities, the table says how many permutations there were."""
    known = [one for one in measurements if one is not None]
    if measure.startswith("similarity"):
        known = [one for one in known if one.n is None or one.n >= FEWEST_SHUFFLES]
    return [one.value for one in known]

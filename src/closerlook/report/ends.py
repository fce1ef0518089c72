"""A measure before and after fine-tuning, over seeds, and what chance gives beside it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from closerlook.report.tables import Measured, over_seeds
from closerlook.study.readings import SUBSAMPLED, Reading, Results, Run, null_names

Ends = tuple[Measured | None, Measured | None]

STATES = ("before", "after")


def ends(results: Results, measure: str, encoder: str, task: str, scale: float = 1.0) -> Ends:
    """A measure before and after fine-tuning on that task, over seeds; accuracy with its own standard deviation."""
    before, after = _states(results, measure, encoder, task)
    spread = _states(results, f"{measure}_sd", encoder, task)
    found = over_seeds(before, spread[0]), over_seeds(after, spread[1])
    return found[0] and found[0].scaled(scale), found[1] and found[1].scaled(scale)


def _states(results: Results, measure: str, encoder: str, task: str) -> tuple[list[Reading | None], ...]:
    runs = tuned(results, encoder, task)
    return [results.before(measure, encoder, task)], [results.after(measure, run) for run in runs]


def tuned(results: Results, encoder: str, task: str, tuned_on: str = "") -> list[Run]:
    """The fine-tunings of an encoder looked at on a task, one for each seed."""
    on = tuned_on or task
    return [run for run in results.all_runs if (run.encoder, run.task, run.tuned_on) == (encoder, task, on)]


def chances(results: Results, measure: str, encoder: str, task: str, scale: float = 1.0) -> Ends:
    """The mean of a measure under permuted or shuffled labels and its deviation, before and after; over seeds, of both
    the mean.
    """
    means, deviations = (_states(results, name, encoder, task) for name in null_names(measure))
    found = [_chance(*both) for both in zip(means, deviations, strict=True)]
    return found[0] and found[0].scaled(scale), found[1] and found[1].scaled(scale)


def _chance(means: Sequence[Reading | None], deviations: Sequence[Reading | None]) -> Measured | None:
    mean = mean_of(means)
    return None if mean is None else Measured(mean, mean_of(deviations))


def mean_of(readings: Sequence[Reading | None]) -> float | None:
    """The mean of those that are there."""
    values = [one.value for one in readings if one is not None]
    return statistics.fmean(values) if values else None


def beside_chance(results: Results, measure: str, encoder: str, task: str, scale: float = 1.0) -> Ends:
    """Both ends, each with what chance gives; and against what, where that was tried on fewer points than there are."""
    found, nulls = (of(results, measure, encoder, task, scale) for of in (ends, chances))
    fewer = (
        ends(results, SUBSAMPLED[measure], encoder, task, scale) if _is_thinned(results, measure, encoder, task) else ()
    )
    same = [None if one is None else one.value for one in fewer or (None, None)]
    before, after = (
        one if one is None or null is None else replace(one, chance=null.value, chance_sd=null.sd, against=against)
        for one, null, against in zip(found, nulls, same, strict=True)
    )
    return before, after


def _is_thinned(results: Results, measure: str, encoder: str, task: str) -> bool:
    """Whether chance was tried on fewer points than there are."""
    some, all_ = results.before(SUBSAMPLED.get(measure, ""), encoder, task), results.before("n_points", encoder, task)
    return some is not None and all_ is not None and some.n is not None and some.n < all_.value


def highest_p(results: Results, measure: str, encoder: str, task: str) -> tuple[float | None, float | None]:
    """A p-value before and after; of several seeds the highest."""
    before, after = _states(results, measure, encoder, task)
    return _highest(before), _highest(after)


def _highest(readings: Sequence[Reading | None]) -> float | None:
    return max((one.value for one in readings if one is not None), default=None)

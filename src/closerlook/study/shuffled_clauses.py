"""Clauses of the sentences of findings: what shuffled labels give."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from closerlook.study.readings import Results, null_names
from closerlook.study.runs import Run
from closerlook.study.verdicts import Answer


def null_text(runs: Sequence[Run], results: Results, measure: str, template: str) -> str:
    """The mean of a measure on shuffled labels after the runs, as '0.02 ± 0.15' in the template; empty if unknown."""
    mean, sd = ([results.after(name, run) for run in runs] for name in null_names(measure))
    means, deviations = ([entry.value for entry in entries if entry is not None] for entries in (mean, sd))
    if not means:
        return ""
    spread = f" ± {statistics.fmean(deviations):.2f}" if deviations else ""
    return template.format(f"{show_similarity(statistics.fmean(means))}{spread}")


def show_similarity(value: float) -> str:
    """A similarity with two decimals and a typographic minus sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")  # adding zero turns a negative zero into zero


def null_clause(results: Results, answers: Sequence[Answer], measure: str) -> str:
    """The mean of a similarity on shuffled labels over all pairs with an answer, as a clause; empty if unknown."""
    pairs = {answer.pair for answer in answers}
    text = null_text([run for run in results.runs(own=True) if run.pair in pairs], results, measure, "{}")
    meaning = "mean ± standard deviation" if "±" in text else "mean"
    return f" (with shuffled labels, the similarity after fine-tuning is {text}, {meaning})" if text else ""


def show_count(value: float) -> str:
    """A number with one decimal if it is not whole."""
    return f"{value:,.1f}".removesuffix(".0")


def shuffled_clause(results: Results, runs: Sequence[Run], template: str = "; {}") -> str:
    """The number of clusters after the runs, with shuffled and with true labels on the same points, as a clause."""
    counts = [[results.after(f"subsampled_clusters{end}", run) for run in runs] for end in ("_null_mean", "")]
    shuffled, true = ([entry.value for entry in part if entry is not None] for part in counts)
    if not shuffled or not true:
        return ""
    points = max((entry.n or 0 for entry in counts[1] if entry is not None), default=0)
    sample = "a subsample of " if len(runs) == 1 else "subsamples of at most "
    size = f"on {sample}{points:,} points, " if points else ""
    ranges = _range(shuffled), _range(true)
    text = f"{size}shuffled labels give {ranges[0]} clusters on average and true labels {ranges[1]}"
    return template.format(text + (" (ranges are over runs)" if any(" to " in one for one in ranges) else ""))


def _range(values: Sequence[float]) -> str:
    """The range of some numbers, with one decimal where a number is not whole: '17' or '19.5 to 60'."""
    return " to ".join(dict.fromkeys(show_count(value) for value in (min(values), max(values))))

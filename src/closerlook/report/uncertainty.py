"""How uncertain the numbers are: over seeds of the same fine-tuning, and over the examples they were measured on."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from closerlook.report.before_after import runs_of
from closerlook.report.measures import title_of
from closerlook.report.tables import Column, Table, Value, text_columns
from closerlook.study.readings import Measurement, Results
from closerlook.study.registry import measure

TRAINED = (
    "accuracy",
    "head_accuracy",
    "n_clusters",
    "mean_minimum_distance",
    "mean_relative_minimum_distance",
    "similarity_train_test",
    "similarity_original",
)
"""Measures of a space that are shown over seeds."""


def student_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95% confidence interval of the mean by Student's t.

    >>> [round(bound, 3) for bound in student_interval([1.0, 2.0, 3.0])]
    [-0.484, 4.484]
    """
    from scipy.stats import t

    n, mean = len(values), statistics.fmean(values)
    half = float(t.ppf(0.975, n - 1)) * statistics.stdev(values) / math.sqrt(n)
    return mean - half, mean + half


def seeds_table(results: Results) -> Table:
    """Measures at the end of fine-tuning: mean, standard deviation and confidence interval over seeds."""
    rows: list[tuple[Value, ...]] = []
    names = [name.replace("train_test", results.train_test) for name in TRAINED]
    for encoder, task in results.pairs():
        runs = runs_of(results, encoder, task)
        for name in names:
            scale = measure(name).scale
            ends = [results.after(name, run) for run in runs]
            values = [end.value * scale for end in ends if end is not None]
            if len(values) > 1:
                mean, sd = statistics.fmean(values), statistics.stdev(values)
                rows.append((encoder, task, title_of(name), len(values), mean, sd, *student_interval(values)))
    columns = (
        *text_columns("encoder", "task", "measure"),
        *(Column("seeds"), Column("mean", digits=3), Column("sd", digits=3)),
        *(Column(title, "95% interval of the mean", 3) for title in ("low", "high")),
    )
    note = (
        "At the end of fine-tuning, last layer. sd: standard deviation over seeds. Interval: Student's t for the mean; "
        "it assumes a normal distribution, and with two or three seeds it can exceed the possible range."
    )
    return Table("seeds", "Variation over seeds", note, columns, tuple(rows))


def single_seed_text(results: Results) -> str:
    """A note that the variation between seeds is unknown; empty with several seeds, or without any intervals."""
    runs = results.runs(own=True)
    seeds = {(run.encoder, run.task): len(runs_of(results, run.encoder, run.task)) for run in runs}
    if not runs or max(seeds.values()) > 1 or not examples_table(results):
        return ""
    return (
        "Every fine-tuning was run with one seed, so the variation between seeds is unknown. To measure it, "
        "list several seeds in the plan, for example seeds: [0, 1, 2]."
    )


def examples_table(results: Results) -> Table:
    """Distances and similarities with confidence intervals from resampled examples, before and after, for each seed."""
    distances = ["mean_minimum_distance", "mean_minimum_distance_bias"]
    train_test = [f"{kind}_{results.train_test}" for kind in KINDS]
    original = [f"{kind}_original" for kind in KINDS]
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        runs = runs_of(results, encoder, task)
        states = {"before": [results.before(name, encoder, task) for name in distances + train_test] + [None, None]}
        for run in runs:
            state = "after" if len(runs) == 1 else f"after, seed {run.seed}"
            states[state] = [results.after(name, run) for name in distances + train_test + original]
        for state, (distance, bias, *similarities) in states.items():
            halves = next((entry for entry in (bias, similarities[1], similarities[3]) if entry is not None), None)
            if halves is not None:
                shown = _with_interval(distance), bias and bias.value, *map(_with_interval, similarities)
                rows.append((encoder, task, state, halves.n, *shown))
    test = f"train–{results.test_split} similarity"
    columns = (
        *(*text_columns("encoder", "task", "state"), Column("halves")),
        *(Column(OVER_EXAMPLES, "mean minimum distance", 3), Column("bias", "mean minimum distance", 3, signed=True)),
        *(Column(title, test) for title in (OVER_LABELS, OVER_EXAMPLES)),
        *(Column(title, "similarity to pretrained") for title in (OVER_LABELS, OVER_EXAMPLES)),
    )
    return Table(
        "examples", "Intervals over examples and over labels", EXAMPLES_NOTE, columns, tuple(rows)
    ).without_empty()


KINDS = ("similarity", "similarity_over_examples")
OVER_LABELS, OVER_EXAMPLES = "value [interval over labels]", "value [interval over examples]"
EXAMPLES_NOTE = (
    "Last layer; all intervals are 95% confidence intervals. Intervals over examples are computed from random halves "
    "of the examples (column halves: how many) and show how much the value would vary with another sample of examples. "
    "Intervals over labels are computed by a bootstrap over labels and show how much the value would vary with other "
    "labels. Bias: mean minimum distance on halves minus its value on all examples. It is usually positive: smaller "
    "samples have smaller convex hulls, which are farther from each other."
)


def _with_interval(measurement: Measurement | None) -> Measurement | None:
    return None if measurement is None else Measurement(measurement.value, measurement.low, measurement.high)

"""How sure the numbers are: over seeds of the same fine-tuning, and over the examples they were measured on."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from closerlook.report.ends import tuned
from closerlook.report.tables import Column, Measured, Table, Value
from closerlook.study.readings import Reading, Results

TRAINED = (
    ("accuracy", "accuracy of probes, %", 100.0),
    ("head_accuracy", "accuracy of its own head, %", 100.0),
    ("n_clusters", "clusters", 1.0),
    ("mean_minimum_distance", "mean minimum distance", 1.0),
    ("mean_relative_minimum_distance", "the same in RMS radii", 1.0),
    ("similarity", "train–test similarity", 1.0),
    ("similarity_original", "similarity to the original", 1.0),
)
"""What depends on the seed of a fine-tuning: measure, title, unit."""


def student_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95% interval of the mean by Student's t.

    >>> [round(bound, 3) for bound in student_interval([1.0, 2.0, 3.0])]
    [-0.484, 4.484]
    """
    from scipy.stats import t

    n, mean = len(values), statistics.fmean(values)
    half = float(t.ppf(0.975, n - 1)) * statistics.stdev(values) / math.sqrt(n)
    return mean - half, mean + half


def seeds_table(results: Results) -> Table:
    """Everything that is trained, at the end: mean, standard deviation and interval over seeds."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        runs = tuned(results, encoder, task)
        for measure, title, scale in TRAINED:
            name = f"similarity_train_{results.compared}" if measure == "similarity" else measure
            found = [results.after(name, run) for run in runs]
            values = [one.value * scale for one in found if one is not None]
            if len(values) > 1:
                mean, sd = statistics.fmean(values), statistics.stdev(values)
                rows.append((encoder, task, title, len(values), mean, sd, *student_interval(values)))
    columns = (
        *(Column(title, left=True) for title in ("encoder", "task", "measure")),
        *(Column("seeds"), Column("mean", digits=3), Column("sd", digits=3)),
        *(Column(title, "95% interval of the mean", 3) for title in ("low", "high")),
    )
    note = (
        "At the end of fine-tuning, last layer. sd: standard deviation over seeds. Interval: of the mean, by Student's "
        "t; it takes values to be normal, and with two or three seeds reaches beyond what is possible."
    )
    return Table("seeds", "Over seeds", note, columns, tuple(rows))


def seeds_words(results: Results) -> str:
    """What a study with one seed cannot tell; nothing for one with several, or without fine-tuning."""
    runs = results.runs(own=True)
    seeds = {(run.encoder, run.task): len(tuned(results, run.encoder, run.task)) for run in runs}
    if not runs or max(seeds.values()) > 1:
        return ""
    return (
        "Every fine-tuning was run with one seed: how much another would differ is not known. A plan with, say, "
        "seeds: [0, 1, 2] measures it."
    )


def examples_table(results: Results) -> Table:
    """Distances and similarities with their intervals over examples, before and after, for each seed."""
    distances = ["mean_minimum_distance", "mean_minimum_distance_bias"]
    alike = [f"{kind}_train_{results.compared}" for kind in KINDS]
    original = [f"{kind}_original" for kind in KINDS]
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        runs = tuned(results, encoder, task)
        states = {"before": [results.before(name, encoder, task) for name in distances + alike] + [None, None]}
        for run in runs:
            state = "after" if len(runs) == 1 else f"after, seed {run.seed}"
            states[state] = [results.after(name, run) for name in distances + alike + original]
        for state, found in states.items():
            distance, bias, *similar = found
            drawn = next((one for one in (bias, similar[1], similar[3]) if one is not None), None)
            if drawn is not None:
                above = None if bias is None else bias.value
                rows.append((encoder, task, state, drawn.n, _interval(distance), above, *map(_interval, similar)))
    columns = (
        *(Column(title, left=True) for title in ("encoder", "task", "state")),
        Column("draws"),
        *(Column("over examples", "mean minimum distance", 3), Column("bias", "mean minimum distance", 3, signed=True)),
        *(Column(title, "train–test similarity") for title in ("over labels", "over examples")),
        *(Column(title, "similarity to the original") for title in ("over labels", "over examples")),
    )
    return Table("examples", "Over examples", EXAMPLES_NOTE, columns, tuple(rows)).without_empty()


KINDS = ("similarity", "similarity_over_examples")
EXAMPLES_NOTE = (
    "Last layer, with 95% intervals. Over examples: from so many halves of the examples, drawn two by two, which say "
    "how much other examples would change the value. Bias: how much farther apart labels lie in halves, whose hulls "
    "are smaller; more examples would bring them closer still. Over labels: a bootstrap of the labels, which says how "
    "much other labels would."
)


def _interval(one: Reading | None) -> Measured | None:
    return None if one is None else Measured(one.value, None, one.low, one.high)

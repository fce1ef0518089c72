"""The tables of the write-up that the paper does not have, in Markdown."""

from __future__ import annotations

import statistics

from closerlook.report.tables import MISSING
from writeup.paper_tables import by_task, grid
from writeup.phrases import fixed, listed, short
from writeup.values import Study

SHAPE = {
    "nc1": "NC1: variance within labels relative to that between them",
    "nc2_norm": "NC2: variation of the lengths of label means",
    "nc2_angle": "NC2: variation of their angles",
    "participation_ratio": "participation ratio",
    "mean_cosine": "mean cosine",
}
"""The measures of the table of shapes, with what they are."""


def separability_table(study: Study) -> str:
    """The share of separable pairs of labels of pretrained encoders, in %: true labels (shuffled labels)."""

    def cell(encoder: str, task: str) -> str:
        found = [study.results.before(name, encoder, task) for name in ("separable_pairs", "separable_pairs_null_mean")]
        if None in found:
            return MISSING
        true, shuffled = (100 * one.value for one in found if one is not None)
        return f"{fixed(true, 1)} ({fixed(shuffled, 0)})"

    return by_task(study, cell)


def shape_table(study: Study) -> str:
    """Measures of shape: in how many runs each falls, and its median over tasks before → after for each encoder.

    An encoder that lacks a task has no median: it would be one of other tasks.
    """
    rows = []
    for name, title in SHAPE.items():
        runs = study.runs(name)
        cells = []
        for encoder in study.encoders:
            changes = study.pairs(name, [encoder])
            if len(changes) < len(study.tasks):
                cells.append(MISSING)
                continue
            ends = [statistics.median(getattr(one, state) for one in changes) for state in ("before", "after")]
            cells.append(" → ".join(fixed(end, 2 if max(ends) < 10 else 0) for end in ends))
        rows.append([title, f"{sum(run.falls for run in runs)} of {len(runs)}", *cells])
    return grid(["measure", "falls in", *map(short, study.encoders)], rows)


SIZES = {
    "accuracy, %": ("accuracy", 1, 100),
    "train–test similarity": ("similarity_train_test", 2, 1),
    "distance to the nearest label, RMS radii": ("mean_relative_minimum_distance", 3, 1),
    "NC1": ("nc1", 2, 1),
}
"""The measures of the table of sizes: name, decimals shown, factor."""


def size_table(study: Study) -> str:
    """The BERTs from the smallest to the largest: means over tasks of the main measures, before → after.

    An encoder that lacks a task has no mean: it would be one of other tasks.
    """
    rows, tasks = [], common_tasks(study)
    for title, (measure, digits, scale) in SIZES.items():
        cells = [
            " → ".join(fixed(scale * size_mean(study, measure, state, one), digits) for state in ("before", "after"))
            if len(study.pairs(measure, [one], tasks)) == len(tasks)
            else MISSING
            for one in study.berts
        ]
        rows.append([title, *cells])
    kept = [fixed(statistics.fmean(study.ends("similarity_original", [one], tasks))) for one in study.berts]
    rows.append(["similarity of the last layer to the pretrained one", *kept])
    measure = "separable_pairs_null_mean"
    starts = [study.starts(measure, [one], tasks) for one in study.berts]
    shuffled = [fixed(100 * statistics.fmean(found), 0) if found else MISSING for found in starts]
    rows.append(["pairs separable with shuffled labels, before, %", *shuffled])
    return grid([f"mean over {listed(tasks)}", *map(short, study.berts)], rows)


def common_tasks(study: Study) -> list[str]:
    """The tasks on which every BERT was fine-tuned."""
    tuned = {(run.encoder, run.task) for run in study.results.runs(own=True)}
    return [task for task in study.tasks if all((encoder, task) in tuned for encoder in study.berts)]


def size_mean(study: Study, measure: str, state: str, encoder: str) -> float:
    """The mean of a measure over the tasks that all BERTs have, before or after fine-tuning."""
    return statistics.fmean(getattr(change, state) for change in study.pairs(measure, [encoder], common_tasks(study)))


PARTS = {
    "comparisons with shuffled labels": "separable_pairs_null_mean",
    "measures of shape such as NC1": "nc1",
    "control tasks of the probes": "selectivity",
    "random weights": "similarity_random",
}
"""Parts of a study that may be missing under some encoders, each with a measure that only this part has."""


def lacking(study: Study) -> list[str]:
    """The parts of an unfinished study that some runs lack: how many, and how many of each encoder."""
    found = []
    for part, measure in PARTS.items():
        tasks = [task for task in study.tasks if study.ends(measure, tasks=[task])]  # not all tasks have every measure
        runs = {one: len(study.ends("n_clusters", [one], tasks)) for one in study.encoders}
        without = {one: runs[one] - len(study.ends(measure, [one], tasks)) for one in study.encoders}
        if tasks and any(without.values()):
            each = ", ".join(f"{short(one)} {n}" for one, n in without.items() if n)
            found.append(f"{part} ({sum(without.values())} of {sum(runs.values())} runs: {each})")
    return found

"""What the numbers rest on: how many labels a similarity compares, and whether distances rise all the way."""

from __future__ import annotations

import itertools
import statistics

from closerlook.report.before_after import runs_of
from closerlook.report.tables import Column, Table, Value, text_columns
from closerlook.study.readings import Results
from closerlook.study.runs import Run

DETOUR = 0.1
"""A label's distance falls on the way up if it falls by more than this share of its range between two snapshots."""


def compared_labels_table(results: Results) -> Table:
    """How many labels of a task each similarity compares, before and after fine-tuning."""
    rows: list[tuple[Value, ...]] = []
    names = {"train_test": f"similarity_{results.train_test}", "original": "similarity_original"}
    for encoder, task in results.pairs():
        labels = results.before("n_labels", encoder, task)
        runs = runs_of(results, encoder, task)
        before = results.before(names["train_test"], encoder, task)
        counts: list[Value] = [None if before is None else before.n]
        for name in names.values():
            ends = [end.n for run in runs if (end := results.after(name, run)) is not None and end.n is not None]
            counts.append(statistics.fmean(ends) if ends else None)
        if any(count is not None for count in counts):
            rows.append((encoder, task, None if labels is None else int(labels.value), *map(_whole, counts)))
    group = "labels compared"
    columns = (
        *(*text_columns("encoder", "task"), Column("labels of the task")),
        *(
            Column(f"train and {results.test_split}{', before' if results.all_runs else ''}", group, 1),
            Column("after", group, 1),
        ),
        Column("pretrained and fine-tuned", group, 1),
    )
    settings = results.manifest.get("plan", {}).get("geometry", {})
    least = f" In this study, min_points is {settings['min_points']}." if "min_points" in settings else ""
    note = (
        "A similarity compares the labels that have distances in both spaces, at the last layer. Labels that occur in "
        "one space only are excluded, and so are labels all of whose clusters have fewer than min_points points. With "
        f"several seeds: the mean.{least}"
    )
    return Table("compared-labels", "Labels that a similarity rests on", note, columns, tuple(rows)).without_empty()


def _whole(value: Value) -> Value:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def monotone_table(results: Results) -> Table:
    """How often a label's distance falls on the way up, for labels that end farther away."""
    rows: list[tuple[Value, ...]] = []
    for encoder in results.encoders:
        by_task = {task: detours(results, encoder, task) for task in results.tasks}
        known = {task: counts for task, counts in by_task.items() if counts[0]}
        if known:
            total = tuple(sum(column) for column in zip(*known.values(), strict=True))
            for task, (risen, fell) in [*known.items(), ("all tasks", (total[0], total[1]))]:
                rows.append((encoder, task, risen, fell, 100 * fell / risen))
    columns = (
        *text_columns("encoder", "task"),
        *(Column("labels that end farther away"), Column("that fall on the way"), Column("share, %", digits=0)),
    )
    note = (
        "Train, last layer, all seeds: labels whose distance to the nearest other label is larger after fine-tuning "
        f"than before, and how many of them fall between two snapshots by more than {DETOUR:.0%} of the range of their "
        "distances. The paper remarks that distances of some labels do not rise monotonically."
    )
    return Table("monotone", "Do distances rise all the way?", note, columns, tuple(rows))


def detours(results: Results, encoder: str, task: str) -> tuple[int, int]:
    """The number of labels, over all seeds, that end farther away, and of those that fall on the way."""
    risen = fell = 0
    for run in runs_of(results, encoder, task):
        for path in _paths(results, run):
            if len(path) > 2 and path[-1] > path[0]:
                risen += 1
                falls = (before - after for before, after in itertools.pairwise(path))
                fell += max(falls) > DETOUR * (max(path) - min(path))
    return risen, fell


def _paths(results: Results, run: Run) -> list[list[float]]:
    """The minimum distances of each label at all snapshots of a run."""
    rows = results.at("minimum_distance", run.encoder, run.task)
    rows = rows[(rows.tuned_on == run.tuned_on) & (rows.seed == run.seed) & rows.value.notna()].sort_values("step")
    return [values.tolist() for _, values in rows.groupby("label")["value"]]

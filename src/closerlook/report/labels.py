"""For each label: its minimum distance, whether the change is significant, and whether it has too few points."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from closerlook.geometry.p_values import SIGNIFICANCE
from closerlook.report.before_after import mean_of, over_seeds, runs_of
from closerlook.report.tables import Column, Table, Value, text_columns
from closerlook.study.cells import PRETRAINED
from closerlook.study.readings import Measurement, Results, Run, none_if_nan

if TYPE_CHECKING:
    from collections.abc import Sequence

FEW_POINTS = "†"
"""Marks a label with so few points that its distances are unreliable."""

SIGNIFICANT = "*"
"""Marks a label whose change is significant."""

NAMED = 6
"""Maximum number of labels with few points that a caption names; the table has all of them."""


@dataclass(frozen=True)
class LabelMarks:
    """The marks of the labels of one task, for one encoder and its fine-tuning runs.

    p: the Holm-corrected p-value of each label's change; with several seeds, the highest p-value. few_points: for each
    label with few points, a note why its distances are unreliable. inconsistent: labels that were not tested with every
    seed, or whose distance increases with some seeds and decreases with others.
    """

    p: dict[str, float]
    few_points: dict[str, str]
    inconsistent: frozenset[str] = frozenset()

    def is_significant(self, label: str) -> bool:
        """Whether the change of a label is significant with every seed, in the same direction."""
        return self.p.get(label, 1.0) <= SIGNIFICANCE and label not in self.inconsistent

    def of(self, label: str) -> str:
        """The marks of a label: '*', '†', both or none."""
        return SIGNIFICANT * self.is_significant(label) + FEW_POINTS * (label in self.few_points)

    def legend(self) -> str:
        """What the marks mean; empty if no label was tested and none has few points."""
        parts = []
        if self.p:
            significant = sum(map(self.is_significant, self.p))
            parts.append(
                f"{SIGNIFICANT} significant change ({significant} of {len(self.p)} labels): p ≤ {SIGNIFICANCE} after "
                "Holm correction."
            )
        if self.few_points:
            parts.append(f"{FEW_POINTS} few points: {self.labels_with_few_points()}.")
        return " ".join(parts)

    def labels_with_few_points(self) -> str:
        """The labels with few points and their numbers of points, for a caption; at most NAMED are listed."""
        named = [f"{label} ({_number_of_points(note)})" for label, note in list(self.few_points.items())[:NAMED]]
        more = len(self.few_points) - NAMED
        return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def _number_of_points(note: str) -> str:
    """The number of points in a note about few points.

    >>> _number_of_points("only 4 points (fewer than 5): unreliable")
    '4 points'
    >>> _number_of_points("4 points in 128 dimensions; fewer than 5")  # as studies wrote it earlier
    '4 points'
    """
    number = re.search(r"\d+ points?", note)
    return number[0] if number else note


def marks_of(results: Results, encoder: str, task: str, runs: Sequence[Run]) -> LabelMarks:
    """The marks of a task's labels at the last layer. runs: the fine-tuning runs, one for each seed."""
    tests = [by_label(results, "minimum_distance_change_p_value", encoder, task, run) for run in runs]
    start, *ends = (by_label(results, "minimum_distance", encoder, task, run) for run in (None, *runs))
    p: dict[str, float] = {}
    for test in tests:
        for label, measurement in test.items():
            p[label] = max(measurement.value, p.get(label, 0.0))
    inconsistent = {
        label for label in p if any(label not in test for test in tests) or _directions_differ(label, start, ends)
    }
    few = by_label(results, "few_points", encoder, task, None)
    return LabelMarks(p, {label: measurement.text for label, measurement in few.items()}, frozenset(inconsistent))


def _directions_differ(label: str, start: dict[str, Measurement], ends: Sequence[dict[str, Measurement]]) -> bool:
    """Whether the minimum distance of a label increases with some seeds and not with others."""
    if label not in start:
        return False
    return len({end[label].value > start[label].value for end in ends if label in end}) > 1


def by_label(results: Results, measure: str, encoder: str, task: str, run: Run | None) -> dict[str, Measurement]:
    """A measure of every label at the last layer, after a fine-tuning run. run: None: the pretrained encoder."""
    rows = results.at(measure, encoder, task)
    if run is None:
        pretrained = rows[rows.tuned_on == PRETRAINED]
        rows = pretrained if len(pretrained) else rows[rows.step == 0]
    else:
        rows = rows[(rows.tuned_on == run.tuned_on) & (rows.seed == run.seed) & rows["is_final"]]
    rows = rows[rows.value.notna() & (rows.label != "")].drop_duplicates("label")
    counts = rows["n"].to_numpy(float, na_value=float("nan"))
    columns = (rows.label, rows.value, rows.ci_low, rows.ci_high, counts, rows.text)
    return {
        str(label): Measurement(
            float(value), none_if_nan(low), none_if_nan(high), None if math.isnan(n) else int(n), str(text)
        )
        for label, value, low, high, n, text in zip(*columns, strict=True)
    }


def labels_table(results: Results) -> Table:
    """Each label of each task: points, minimum distance before and after, and the p-value of its change."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        rows += _label_rows(results, encoder, task)
    group = "distance to the nearest other label"
    columns = (
        *(*text_columns("encoder", "task", "label"), Column("points")),
        *(Column("before", group), Column("after", group), Column("change", group, signed=True)),
        *(Column("p (Holm)", digits=4, p_value=True), *text_columns("remark")),
    )
    note = (
        "Train, last layer. Sorted by increase within each task. In brackets: 95% interval over examples; ±: standard "
        "deviation over seeds."
    )
    if results.has("minimum_distance_change_p_value"):
        note += (
            " p: p-value of a two-sided t-test that the distance does not change; the standard deviation of the change "
            "is estimated from random halves of the examples. p is Holm-corrected for all labels of the task; with "
            f"several seeds, the highest p-value. {SIGNIFICANT}: p ≤ {SIGNIFICANCE}, in the same direction with every "
            f"seed. {FEW_POINTS}: few points; the distances are unreliable."
        )
    return Table("labels", "All labels", note, columns, tuple(rows)).without_empty()


def _label_rows(results: Results, encoder: str, task: str) -> list[tuple[Value, ...]]:
    runs = runs_of(results, encoder, task)
    marks = marks_of(results, encoder, task, runs)
    before = by_label(results, "minimum_distance", encoder, task, None)
    after = [by_label(results, "minimum_distance", encoder, task, run) for run in runs]
    points = by_label(results, "label_clusters", encoder, task, None)
    rows: list[tuple[float, tuple[Value, ...]]] = []
    for label in dict.fromkeys([*before, *(label for end in after for label in end)]):
        start, ends = before.get(label), [end.get(label) for end in after]
        mean = mean_of(ends)
        change = None if start is None or mean is None else mean - start.value
        n = points[label].n if label in points else None
        values: tuple[Value, ...] = (over_seeds([start]), over_seeds(ends), change, marks.p.get(label))
        name = f"{label} {FEW_POINTS}" if label in marks.few_points else label
        rows.append((-(change or 0.0), (encoder, task, name, n, *values, _remark(label, marks, change))))
    return [row for _, row in sorted(rows, key=lambda keyed: keyed[0])]


def _remark(label: str, marks: LabelMarks, change: float | None) -> str:
    parts = []
    if marks.is_significant(label) and change is not None:
        parts.append(f"{SIGNIFICANT} significantly {'farther' if change > 0 else 'closer'}")
    if label in marks.few_points:
        parts.append(f"{FEW_POINTS} {marks.few_points[label]}")
    return "; ".join(parts)

"""Label by label: the distance to the nearest other one, whose change is sure, and which labels have few points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from closerlook.report.ends import mean_of, tuned
from closerlook.report.tables import Column, Measured, Table, Value, over_seeds
from closerlook.study.findings import SIGNIFICANCE
from closerlook.study.readings import Reading, Results, Run, none_if_nan

if TYPE_CHECKING:
    from collections.abc import Sequence

FEW = "†"
"""Marks a label of so few points that its distances are to be doubted."""

SURE = "*"
"""Marks a label whose change is sure."""


@dataclass(frozen=True)
class Marks:
    """What is known of the labels of one space. p: of each label's change, after Holm's correction, the highest of
    several seeds. few: why a label's distances are to be doubted. unsettled: labels that not all seeds tested, or that
    they do not all move the same way.
    """

    p: dict[str, float]
    few: dict[str, str]
    unsettled: frozenset[str] = frozenset()

    def is_sure(self, label: str) -> bool:
        """Whether the change of a label is sure, in every seed and the same way."""
        return self.p.get(label, 1.0) <= SIGNIFICANCE and label not in self.unsettled

    def of(self, label: str) -> str:
        """The marks of a label: '*', '†', both or none."""
        return SURE * self.is_sure(label) + FEW * (label in self.few)

    def told(self) -> str:
        """What the marks mean; nothing where no label was tested and none has few points."""
        parts = []
        if self.p:
            sure = sum(map(self.is_sure, self.p))
            parts.append(
                f"{SURE} a change that is sure: p ≤ {SIGNIFICANCE} after Holm's correction for {len(self.p)} labels "
                f"({sure} of them)."
            )
        if self.few:
            parts.append(f"{FEW} few points: {_listed(self.few)}.")
        return " ".join(parts)


def _listed(few: dict[str, str]) -> str:
    shown = [f"{label} ({why.partition(' in ')[0]})" for label, why in list(few.items())[:MOST]]
    return ", ".join(shown) + (f" and {len(few) - MOST} more" if len(few) > MOST else "")


MOST = 6
"""Labels of few points that are named; the table has all."""


def marks_of(results: Results, encoder: str, task: str, runs: Sequence[Run]) -> Marks:
    """Those of the labels of a task at the last layer; runs: one for each seed."""
    found = [by_label(results, "minimum_distance_change_p_value", encoder, task, run) for run in runs]
    start, *ends = (by_label(results, "minimum_distance", encoder, task, run) for run in (None, *runs))
    p: dict[str, float] = {}
    for one in found:
        for label, reading in one.items():
            p[label] = max(reading.value, p.get(label, 0.0))
    unsettled = {label for label in p if any(label not in one for one in found) or _both_ways(label, start, ends)}
    few = by_label(results, "few_points", encoder, task, None)
    return Marks(p, {label: one.text for label, one in few.items()}, frozenset(unsettled))


def _both_ways(label: str, start: dict[str, Reading], ends: Sequence[dict[str, Reading]]) -> bool:
    """Whether a label ends farther from the others in one seed, and closer in another."""
    if label not in start:
        return False
    ways = {one[label].value > start[label].value for one in ends if label in one}
    return len(ways) > 1


def by_label(results: Results, measure: str, encoder: str, task: str, run: Run | None) -> dict[str, Reading]:
    """A measure of every label at the last layer: at the end of a fine-tuning, or of the encoder as it came."""
    rows = results.at(measure, encoder, task)
    if run is None:
        frozen = rows[rows.tuned_on == ""]
        rows = frozen if len(frozen) else rows[rows.step == 0]
    else:
        rows = rows[(rows.tuned_on == run.tuned_on) & (rows.seed == run.seed) & rows["is_final"]]
    rows = rows[rows.value.notna() & (rows.label != "")].drop_duplicates("label")
    found = zip(
        rows.label,
        rows.value,
        rows.ci_low,
        rows.ci_high,
        rows["n"].notna(),
        rows["n"].fillna(0),
        rows.text,
        strict=True,
    )
    return {
        str(label): Reading(float(value), none_if_nan(low), none_if_nan(high), int(n) if counted else None, str(text))
        for label, value, low, high, counted, n, text in found
    }


def labels_table(results: Results) -> Table:
    """Each label of each task: points, distance to the nearest other label before and after, how sure its change is."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        rows += _label_rows(results, encoder, task)
    columns = (
        *(Column(title, left=True) for title in ("encoder", "task", "label")),
        Column("points"),
        *(Column(title, "distance to the nearest other label") for title in ("before", "after")),
        Column("change", "distance to the nearest other label", signed=True),
        *(Column("p (Holm)", digits=4, level=True), Column("remark", left=True)),
    )
    tested = len(results.of("minimum_distance_change_p_value"))
    note = "Train, last layer; the labels that gain most first. [95% interval over examples], or ± over seeds."
    note += (
        " p: of no change, two-sided, over halves of the examples, adjusted by Holm's method for all labels of the "
        f"task (the highest of several seeds); {SURE} p ≤ {SIGNIFICANCE}, all seeds the same way. {FEW}: few points, "
        "shown all the same."
        if tested
        else ""
    )
    return Table("labels", "Every label", note, columns, tuple(rows)).without_empty()


def _label_rows(results: Results, encoder: str, task: str) -> list[tuple[Value, ...]]:
    runs = tuned(results, encoder, task)
    marks = marks_of(results, encoder, task, runs)
    before = by_label(results, "minimum_distance", encoder, task, None)
    after = [by_label(results, "minimum_distance", encoder, task, run) for run in runs]
    points = by_label(results, "label_clusters", encoder, task, None)
    names = dict.fromkeys([*before, *(label for one in after for label in one)])
    rows: list[tuple[float, tuple[Value, ...]]] = []
    for label in names:
        start, ends = before.get(label), [one.get(label) for one in after]
        end = mean_of(ends)
        change = None if start is None or end is None else end - start.value
        n = points[label].n if label in points else None
        values: tuple[Value, ...] = (_measured(start), over_seeds(ends), change, marks.p.get(label))
        name = f"{label} {FEW}" if label in marks.few else label
        rows.append((-(change or 0.0), (encoder, task, name, n, *values, _remark(label, marks, change))))
    return [row for _, row in sorted(rows, key=lambda one: one[0])]


def _measured(one: Reading | None) -> Measured | None:
    return None if one is None else Measured(one.value, None, one.low, one.high)


def _remark(label: str, marks: Marks, change: float | None) -> str:
    parts = []
    if marks.is_sure(label) and change is not None:
        parts.append(f"{SURE} surely {'farther' if change > 0 else 'closer'}")
    if label in marks.few:
        parts.append(f"{FEW} {marks.few[label]}")
    return "; ".join(parts)

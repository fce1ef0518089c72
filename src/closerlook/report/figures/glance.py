"""The picture at the top of the page: what changed for each encoder and task, next to its noise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from closerlook.report.before_after import before_after
from closerlook.report.brief import Change, accuracy_changes, distance_changes
from closerlook.report.figures.figure import Figure, Layout
from closerlook.report.figures.style import AFTER, GREY, OKABE_ITO, axis_width, charted, compact
from closerlook.report.figures.subjects import for_the_study
from closerlook.study.readings import Results

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.report.figures.style import ChartType

HEIGHT = 300
"""Pixels for all rows together; rows are between LEAST_ROW and MOST_ROW high."""

LEAST_ROW, MOST_ROW = 13, 30

LONGEST_NAME = 190
"""Pixels for the names of encoder and task."""

NOISE = {"beyond noise": AFTER, "within noise": GREY, "noise unknown": OKABE_ITO[3]}
"""Whether a change is larger than its margin, and the colour of each answer."""

RATIOS = [0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000]
"""The ticks of the logarithmic axis."""

COLUMNS = ["measure", "encoder", "task", "row", "value", "low", "high", "before", "after", "noise"]

ACCURACY, DISTANCE = "accuracy: change in points", "label distance: after ÷ before"
ACCURACY_LEVEL, DISTANCE_LEVEL = "accuracy, %", "label distance, RMS radii"
NEUTRAL = {ACCURACY: 0.0, DISTANCE: 1.0}
"""The panels about changes, and the value that means no change."""


@for_the_study
def at_a_glance(results: Results) -> Figure | None:
    """Accuracy and distances between labels of all encoders and tasks: their changes or, without any, their levels."""
    import altair as alt

    rows = _changes(results) if results.all_runs else _levels(results)
    if not rows:
        return None
    data = _with_names(rows)
    names = list(dict.fromkeys(data.row))
    answers = [answer for answer in NOISE if (data.noise == answer).any()]
    panels = [_panel(data[data.measure == name], name, names, answers) for name in dict.fromkeys(data.measure)]
    beyond = "; ".join(
        f"{name}: {(part.noise == 'beyond noise').sum()} of {len(part)} beyond noise"
        for name, part in data.groupby("measure", sort=False)
    )
    return Figure(
        title="What changed" if results.all_runs else "Accuracy and distances",
        caption=CAPTION if results.all_runs else LEVEL_CAPTION,
        alt=f"Dots with intervals, a row for each encoder and task. {beyond}."
        if results.all_runs
        else f"Dots, a row for each of {len(names)} pairs of encoder and task.",
        encoder="",
        task="",
        data=data,
        chart=panels[0] if len(panels) == 1 else alt.hconcat(*panels, spacing=24),
        layout=Layout(axis=axis_width(names, LONGEST_NAME), least=230, most=620, labelled_once=True),
    )


CAPTION = (
    "Last layer, mean over seeds. Accuracy: of a classifier probe on the test split, after minus before fine-tuning. "
    "Label distance: mean distance of a label to the nearest other label on train, after divided by before. Lines: 95% "
    "margin of the change."
)
LEVEL_CAPTION = (
    "Last layer. Accuracy: of a classifier probe on the test split, ± one standard deviation. Label distance: mean "
    "distance of a label to the nearest other label on train."
)

Row = tuple[str, str, str, float, float | None, float | None, float | None, float | None, str]


def _changes(results: Results) -> list[Row]:
    rows = [_row(ACCURACY, one, one.value, one.margin) for one in accuracy_changes(results)]
    for one in distance_changes(results):
        if one.before > 0 and one.after > 0:
            margin = None if one.margin is None else one.margin / one.before
            rows.append(_row(DISTANCE, one, one.after / one.before, margin))
    return rows


def _row(measure: str, one: Change, value: float, margin: float | None) -> Row:
    noise = "noise unknown" if margin is None else "within noise" if one.direction == "within noise" else "beyond noise"
    low, high = (None, None) if margin is None else (value - margin, value + margin)
    if measure == DISTANCE and low is not None:
        low = max(low, value / 10)  # the axis is logarithmic, and a margin may reach below 0
    return measure, one.pair.encoder, one.pair.task, value, low, high, one.before, one.after, noise


def _levels(results: Results) -> list[Row]:
    rows: list[Row] = []
    for title, name, scale in (
        (ACCURACY_LEVEL, "accuracy", 100.0),
        (DISTANCE_LEVEL, "mean_relative_minimum_distance", 1.0),
    ):
        for encoder, task in results.pairs():
            value, _ = before_after(results, name, encoder, task, scale)
            if value is not None:
                rows.append((title, encoder, task, value.value, *value.bounds, None, None, ""))
    return rows


def _with_names(rows: Iterable[Row]) -> pd.DataFrame:
    """The table of the rows; `row` names encoder and task, or only that of which there are several."""
    import pandas as pd

    frame = pd.DataFrame([(*row[:3], "", *row[3:]) for row in rows], columns=COLUMNS)
    shown = [name for name in ("encoder", "task") if frame[name].nunique() > 1] or ["task"]
    frame["row"] = frame[shown].agg(" · ".join, axis=1)
    return compact(frame.astype(dict.fromkeys(COLUMNS[4:9], "float64")), digits=4)


def _panel(data: pd.DataFrame, measure: str, names: list[str], answers: list[str]) -> ChartType:
    import altair as alt

    step = max(LEAST_ROW, min(MOST_ROW, HEIGHT // len(names)))
    y = alt.Y(
        "row:N",
        scale=alt.Scale(domain=names),
        title=None,
        axis=alt.Axis(
            ticks=False, domain=False, grid=True, gridDash=[1, 3], labelOverlap=True, labelLimit=LONGEST_NAME
        ),
    )
    is_ratio = measure == DISTANCE
    scale = alt.Scale(type="log", nice=False, padding=10) if is_ratio else alt.Scale(zero=False, padding=10)
    ticks = {"values": RATIOS, "labelExpr": "'×' + datum.label"} if is_ratio else {"tickCount": 5}
    axis = alt.Axis(title=measure, format="~f", labelOverlap=True, **ticks)
    x = alt.X("value:Q", scale=scale, axis=axis)
    base = charted().transform_filter(f"datum.measure == '{measure}'").encode(y=y)
    colour = (
        alt.Color(
            "noise:N",
            scale=alt.Scale(domain=answers, range=[NOISE[answer] for answer in answers]),
            legend=alt.Legend(title=None, orient="top", symbolOpacity=1),
        )
        if answers
        else alt.value(AFTER)
    )
    tooltip = [
        *(alt.Tooltip("encoder:N"), alt.Tooltip("task:N")),
        *(alt.Tooltip(f"{name}:Q", format=".3~g") for name in ("value", "low", "high", "before", "after")),
    ]
    bars = base.mark_rule(strokeWidth=2, opacity=0.55).encode(x=alt.X("low:Q", scale=scale), x2="high:Q", color=colour)
    dots = base.mark_point(size=54, filled=True, opacity=1).encode(x=x, color=colour, tooltip=tooltip)
    layers = [bars, dots] if data.low.notna().any() else [dots]
    if measure in NEUTRAL:
        once = charted().transform_aggregate(n="count()")
        layers.insert(0, once.mark_rule(color=GREY, strokeWidth=1.5).encode(x=alt.datum(NEUTRAL[measure])))
    return alt.layer(*layers).properties(width=260, height=step * len(names))

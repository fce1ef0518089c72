"""Figures of label distances.

They show the distance of each label to the nearest other label during fine-tuning (Figure 6 of Zhou and Srikumar 2022),
and the distances between all pairs of labels.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from closerlook.plots.distances import heat_map
from closerlook.report.before_after import runs_of
from closerlook.report.figures.figure import Figure, Layout, Toggle
from closerlook.report.figures.style import (
    GREY,
    HEIGHT,
    OKABE_ITO,
    ROWS,
    SHOWN,
    WIDTH,
    axis_width,
    charted,
    compact,
    shorten,
    shown_labels,
    step_axis,
    step_scale_text,
)
from closerlook.report.figures.subjects import for_each_cross_task, for_each_fine_tuning, for_each_pair
from closerlook.report.labels import LabelMarks, marks_of
from closerlook.study.cells import PRETRAINED
from closerlook.study.readings import Results, Run

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from closerlook.report.figures.style import ChartType

SHOWN_PER_SIDE = 3
"""At first, the chart shows this many labels with the highest change and this many with the lowest.

The change has a sign: the lowest change is the largest decrease, or the smallest increase if no label decreases.
"""

GROUPS = ("highest", "lowest", "other")
"""Groups of labels by their change. Vega expressions refer to these groups and never contain the names of labels, which
come from the user's data and could inject code (see docs/report.md)."""


@for_each_fine_tuning
def minimum_distances(results: Results, runs: list[Run]) -> Figure | None:
    """The distance of each label to the nearest other label during fine-tuning on the same task."""
    return _distances(results, runs)


@for_each_cross_task
def cross_task_distances(results: Results, runs: list[Run]) -> Figure | None:
    """The distance of each label to the nearest other label during fine-tuning on a different task."""
    return _distances(results, runs)


def _distances(results: Results, runs: list[Run]) -> Figure | None:
    data = distance_data(results, runs)
    if data.empty or data.step.nunique() < 2:
        return None
    run, labels = runs[0], labels_by_change(data)
    marks = marks_of(results, run.encoder, run.task, runs)
    chosen = {
        label: OKABE_ITO[at]
        for at, label in enumerate([*labels[:SHOWN_PER_SIDE], *labels[SHOWN_PER_SIDE:][-SHOWN_PER_SIDE:]])
    }
    steps = sorted(int(step) for step in data.step.unique())
    seeds = f", mean of {len(runs)} seeds" if len(runs) > 1 else ""
    encoder, task, tuned_on = (shorten(name) for name in (run.encoder, run.task, run.tuned_on))
    where = f"{encoder} on {task}" if run.own else f"{encoder}, fine-tuned on {tuned_on}, probed on {task}"
    split = "Train" if run.own else f"Fine-tuned on {tuned_on}, probed on {task}: train"
    return Figure(
        title=f"Distance to the nearest other label: {where}",
        caption=f"{split}, layer {results.last_layer(run.encoder)}, {len(labels)} labels{seeds}. "
        f"{_shown_text(labels)}{_spread_text(data, runs)}{step_scale_text(steps)}{marks.legend()}".rstrip(),
        alt=f"Line chart over {steps[-1]:,} training steps. Of {len(labels)} labels, {shorten(labels[0])} has the "
        f"{_direction(data, labels[0], ('largest increase', 'smallest decrease'))} and {shorten(labels[-1])} the "
        f"{_direction(data, labels[-1], ('smallest increase', 'largest decrease'))}.",
        encoder=run.encoder,
        task=run.task if run.own else f"{run.tuned_on} → {run.task}",
        tasks=() if run.own else (run.tuned_on, run.task),
        data=data,
        chart=_lines(data, labels, chosen, [marks.of(label) for label in chosen], len(runs) > 1),
        toggles=tuple(
            Toggle(
                *(label, chosen.get(label, GREY), label in chosen),
                f"{_change(data, label):+.2f} {marks.of(label)}".rstrip(),
                _tooltip(marks, label),
            )
            for label in [*chosen, *(label for label in labels if label not in chosen)]
        ),
    )


def _shown_text(labels: Sequence[str]) -> str:
    """Which labels the chart shows at first, if these are not all labels; and which labels have dashed lines."""
    if len(labels) <= SHOWN_PER_SIDE:
        return ""
    if len(labels) <= 2 * SHOWN_PER_SIDE:
        return "Dashed: the labels whose distance grows least or shrinks most. "
    return (
        f"Shown at first: the {SHOWN_PER_SIDE} labels whose distance grows most, and the {SHOWN_PER_SIDE} whose "
        "distance grows least or shrinks most (dashed). "
    )


def _spread_text(data: pd.DataFrame, runs: Sequence[Run]) -> str:
    """What the bands or error bars of the chart are; empty if it has none."""
    if len(runs) > 1:
        return "Bands: range over seeds. "
    return "Vertical bars (first and last snapshot): 95% interval over examples. " if data.low.notna().any() else ""


def _tooltip(marks: LabelMarks, label: str) -> str:
    """The p-value of a label's change from the first to the last step, and a note if the label has few points."""
    p = [f"p = {marks.p[label]:.3g} (Holm-corrected)"] if label in marks.p else []
    few = [marks.few_points[label]] if label in marks.few_points else []
    return "; ".join([*p, *few])


def distance_data(results: Results, runs: Sequence[Run]) -> pd.DataFrame:
    """One row for each label and step.

    distance: the distance to the nearest other label, mean over seeds. nearest_label: which label that is with the
    first seed; it may be a different one with other seeds. low, high: the range over seeds; with one seed, the
    confidence interval if it was computed. distance_in_rms_radii: the distance divided by the RMS radius of the space.
    change: the distance minus the distance at the first step.
    All rows of a label have the same p (the p-value of the change from the first to the last step), few_points (a note
    if the label has few points) and change_group (see GROUPS).
    """
    import pandas as pd

    run = runs[0]
    rows, relative = (
        _of_runs(results.at(name, run.encoder, run.task), runs)
        for name in ("minimum_distance", "relative_minimum_distance")
    )
    groups = rows.groupby(["label", "step"], sort=True)
    several = len(runs) > 1
    low, high = (("value", "min"), ("value", "max")) if several else (("ci_low", "first"), ("ci_high", "first"))
    data = groups.agg(nearest_label=("other", "first"), distance=("value", "mean"), low=low, high=high)
    data["distance_in_rms_radii"] = relative.groupby(["label", "step"]).value.mean()
    data = data.reset_index()
    start = data.sort_values("step").groupby("label").distance.first()
    data["change"] = data.distance - data.label.map(start)
    marks = marks_of(results, run.encoder, run.task, runs)
    data["p"] = [marks.p.get(label, float("nan")) for label in data.label]
    data["few_points"] = [marks.few_points.get(label, "") for label in data.label]
    labels = labels_by_change(data)
    group_of = dict.fromkeys(labels[:SHOWN_PER_SIDE], "highest")
    group_of |= dict.fromkeys(labels[SHOWN_PER_SIDE:][-SHOWN_PER_SIDE:], "lowest")
    data["change_group"] = [group_of.get(label, "other") for label in data.label]
    return compact(pd.DataFrame(data))


def _of_runs(rows: pd.DataFrame, runs: Sequence[Run]) -> pd.DataFrame:
    seeds = [run.seed for run in runs]
    return rows[(rows.tuned_on == runs[0].tuned_on) & rows.seed.isin(seeds) & rows.value.notna()]


def labels_by_change(data: pd.DataFrame) -> list[str]:
    """The labels, sorted by the change of their distance from the first to the last step, highest first."""
    last = data.sort_values("step").groupby("label", sort=True).change.last()
    return [str(label) for label in last.sort_values(ascending=False, kind="stable").index]


def _change(data: pd.DataFrame, label: str) -> float:
    return float(data[data.label == label].sort_values("step").change.iloc[-1])


def _direction(data: pd.DataFrame, label: str, names: tuple[str, str]) -> str:
    """The name of the direction in which a label's distance changes, with the change: 'largest increase (+0.50)'.

    names: the names of an increase and of a decrease.
    """
    change = _change(data, label)
    return f"{names[change < 0]} ({change:+.2f})"


def _lines(data: pd.DataFrame, labels: list[str], chosen: dict[str, str], marks: list[str], several: bool) -> ChartType:
    """The line chart.

    chosen: the colours of the labels that are shown at first, by label. marks: the marks of these labels, which follow
    their names in the legend. several: whether there are several seeds.
    """
    import altair as alt

    steps = sorted(int(step) for step in data.step.unique())
    scale = alt.Scale(domain=labels, range=[chosen.get(label, GREY) for label in labels])
    legend = alt.Legend(
        title=None,
        values=list(chosen),
        labelExpr=f"datum.label + {json.dumps([f' {mark}'.rstrip() for mark in marks])}[datum.index]",
        symbolType="stroke",
        symbolOpacity=1,
        symbolStrokeWidth=2,
    )
    base = (
        charted()
        .transform_filter(SHOWN)
        .encode(
            x=step_axis(steps),
            color=alt.Color("label:N", scale=scale, legend=legend),
        )
    )
    y = alt.Y(
        "distance:Q",
        title="distance to the nearest other label",
        scale=alt.Scale(zero=False),
        axis=alt.Axis(tickCount=6),
    )
    dash = alt.StrokeDash(
        "change_group:N", scale=alt.Scale(domain=list(GROUPS), range=[[1, 0], [5, 3], [1, 0]]), legend=None
    )
    tooltip = [
        alt.Tooltip("label:N"),
        alt.Tooltip("step:Q", title="training step", format=",d"),
        alt.Tooltip("distance:Q", format=".3f"),
        alt.Tooltip("distance_in_rms_radii:Q", title="distance in RMS radii", format=".3f"),
        alt.Tooltip("change:Q", title="change since the first step", format="+.3f"),
        alt.Tooltip("nearest_label:N", title="nearest other label"),
    ]
    if data.p.notna().any():
        tooltip.append(alt.Tooltip("p:Q", title="p of the total change (Holm-corrected)", format=".4f"))
    if (data.few_points != "").any():
        tooltip.append(alt.Tooltip("few_points:N", title="few points"))
    lines = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=dash)
    dots = base.mark_point(size=36, filled=True, opacity=1).encode(y=y, tooltip=tooltip)
    parts = [lines, dots]
    if several:
        parts.insert(0, base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q"), y2="high:Q"))
    elif data.low.notna().any():
        parts.insert(0, base.mark_rule(strokeWidth=1.5, opacity=0.55).encode(y=alt.Y("low:Q"), y2="high:Q"))
    return alt.layer(*parts).add_params(shown_labels(list(chosen))).properties(width=WIDTH, height=HEIGHT)


# ---- all pairs of labels ----


@for_each_pair
def label_distances(results: Results, pair: tuple[str, str]) -> Figure | None:
    """The distance between each pair of labels, before fine-tuning and after fine-tuning with the first seed."""
    encoder, task = pair
    runs = runs_of(results, encoder, task)
    data = label_distance_data(results, encoder, task, runs)
    if data.empty:
        return None
    states = [state for state in ("before", "after") if (data.state == state).any()]
    labels = sorted(set(data.label))
    closest = data[data.state == states[-1]].sort_values("distance").iloc[0]
    return Figure(
        title=f"Distances between labels: {shorten(encoder)} on {shorten(task)}",
        caption=f"Train, layer {results.last_layer(encoder)}, {len(labels)} labels, "
        + ("before and after fine-tuning" if len(states) == 2 else f"{states[0]} fine-tuning only")
        + (f", seed {runs[0].seed}" if runs else "")
        + "."
        + (" Both maps have the same colour scale." if len(states) == 2 else "")
        + _few_points_text(marks_of(results, encoder, task, ())),
        alt=f"Heat map of {len(labels)} by {len(labels)} labels. Closest {states[-1]} fine-tuning: "
        f"{shorten(closest.label)} and {shorten(closest.other)}, distance {closest.distance:.2f}.",
        encoder=encoder,
        task=task,
        data=data,
        chart=_heat(data, labels, states),
        layout=Layout(axis=min(90, axis_width(labels)), least=280, most=500, square=True),
    )


def _few_points_text(marks: LabelMarks) -> str:
    if not marks.few_points:
        return ""
    return f" Labels with few points, whose distances are unreliable: {marks.labels_with_few_points()}."


def label_distance_data(results: Results, encoder: str, task: str, runs: Sequence[Run]) -> pd.DataFrame:
    """One row for each state (before, after) and each ordered pair of labels: state, label, other, distance."""
    import pandas as pd

    rows = results.at("label_distance", encoder, task)
    pretrained = rows.tuned_on == PRETRAINED
    before = rows[pretrained] if pretrained.any() else rows[rows.step == 0]
    parts = [before.assign(state="before")]
    if runs:
        after = rows[(rows.tuned_on == runs[0].tuned_on) & (rows.seed == runs[0].seed) & rows["is_final"]]
        parts.append(after.assign(state="after"))
    data = pd.concat(parts)[["state", "label", "other", "value"]].rename(columns={"value": "distance"})
    data = data[data.distance.notna()]
    swapped = data.rename(columns={"label": "other", "other": "label"})[data.columns]
    data = pd.concat([data, swapped]).drop_duplicates(["state", "label", "other"])
    return compact(data.sort_values(["state", "label", "other"], ascending=[False, True, True], ignore_index=True))


def _heat(data: pd.DataFrame, labels: list[str], states: list[str]) -> ChartType:
    import altair as alt

    largest = float(data.distance.max())

    def panel(state: str) -> alt.Chart:
        chart = heat_map(alt.NamedData(ROWS), labels, largest, alt.Title(state, fontSize=12))
        return chart.transform_filter(f"datum.state == '{state}'")

    return alt.hconcat(*(panel(state) for state in states), spacing=24)

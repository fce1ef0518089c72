"""Distances of labels: minimum distances during fine-tuning (Figure 6 of the paper), and of all pairs of labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from closerlook.report.before_after import runs_of
from closerlook.report.figures.figure import Figure, Layout, Toggle
from closerlook.report.figures.style import (
    GREY,
    HEIGHT,
    OKABE_ITO,
    PANEL,
    SHOWN,
    WIDTH,
    axis_width,
    charted,
    compact,
    shorten,
    shown_labels,
    step_axis,
)
from closerlook.report.figures.subjects import for_each_cross_task, for_each_fine_tuning, for_each_pair
from closerlook.report.labels import LabelMarks, marks_of
from closerlook.study.cells import PRETRAINED
from closerlook.study.readings import Results, Run

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from closerlook.report.figures.style import ChartType

ENDS = 3
"""How many of the labels with the largest, and with the smallest change are shown at first."""

GROUPS = ("most", "least", "other")
"""Groups of labels by their change. Expressions of a chart use them, never the names of labels (see docs/report.md)."""


@for_each_fine_tuning
def minimum_distances(results: Results, runs: list[Run]) -> Figure | None:
    """Each label's minimum distance during fine-tuning on its own task."""
    return _distances(results, runs)


@for_each_cross_task
def cross_task_distances(results: Results, runs: list[Run]) -> Figure | None:
    """Each label's minimum distance during fine-tuning on another task."""
    return _distances(results, runs)


def _distances(results: Results, runs: list[Run]) -> Figure | None:
    data = distance_data(results, runs)
    if data.empty or data.step.nunique() < 2:
        return None
    run, gains = runs[0], gains_of(data)
    marks = marks_of(results, run.encoder, run.task, runs)
    chosen = {label: OKABE_ITO[at] for at, label in enumerate([*gains[:ENDS], *gains[ENDS:][-ENDS:]])}
    steps = sorted(int(step) for step in data.step.unique())
    seeds = f", mean of {len(runs)} seeds" if len(runs) > 1 else ""
    where = f"{shorten(run.encoder)} on {shorten(run.task)}" + (
        "" if run.own else f", fine-tuned on {shorten(run.tuned_on)}"
    )
    most, least = data[data.label == gains[0]].iloc[-1], data[data.label == gains[-1]].iloc[-1]
    return Figure(
        title=f"Distance to the nearest other label: {where}",
        caption=f"Train, layer {results.last_layer(run.encoder)}, {len(gains)} labels{seeds}. "
        f"Shown first: the {min(ENDS, len(gains))} labels with the largest and the {min(ENDS, len(gains[ENDS:]))} with "
        f"the smallest change. {_bars_text(data, runs)}{marks.legend()}".rstrip(),
        alt=f"Line chart over {steps[-1]:,} updates. Of {len(gains)} labels, {shorten(gains[0])} has the largest "
        f"change ({most.change:+.2f}) and {shorten(gains[-1])} the smallest ({least.change:+.2f}).",
        encoder=run.encoder,
        task=run.task if run.own else f"{run.tuned_on} → {run.task}",
        data=data,
        chart=_lines(data, gains, chosen, [marks.of(label) for label in chosen], len(runs) > 1),
        toggles=tuple(
            Toggle(
                *(label, chosen.get(label, GREY), label in chosen),
                f"{_change(data, label):+.2f} {marks.of(label)}".rstrip(),
                _tooltip(marks, label),
            )
            for label in [*chosen, *(label for label in gains if label not in chosen)]
        ),
    )


def _bars_text(data: pd.DataFrame, runs: Sequence[Run]) -> str:
    """What the bars are; empty if there are none."""
    return "Bars: 95% interval over examples. " if len(runs) == 1 and data.low.notna().any() else ""


def _tooltip(marks: LabelMarks, label: str) -> str:
    """The p-value of a label's change, and the number of its points if they are few."""
    p = [f"p = {marks.p[label]:.3g} (Holm)"] if label in marks.p else []
    few = [marks.few_points[label]] if label in marks.few_points else []
    return "; ".join([*p, *few])


def distance_data(results: Results, runs: Sequence[Run]) -> pd.DataFrame:
    """A row for each label and step: nearest, distance, low, high, relative, change since step 0, p, few, group.

    distance: mean over seeds. low, high: range over seeds; for one seed, the interval over examples if there is one.
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
    data = groups.agg(nearest=("other", "first"), distance=("value", "mean"), low=low, high=high)
    data["relative"] = relative.groupby(["label", "step"]).value.mean()
    data = data.reset_index()
    start = data.sort_values("step").groupby("label").distance.first()
    data["change"] = data.distance - data.label.map(start)
    marks = marks_of(results, run.encoder, run.task, runs)
    data["p"] = [marks.p.get(label, float("nan")) for label in data.label]
    data["few"] = [marks.few_points.get(label, "") for label in data.label]
    gains = gains_of(data)
    group_of = dict.fromkeys(gains[:ENDS], "most") | dict.fromkeys(gains[ENDS:][-ENDS:], "least")
    data["group"] = [group_of.get(label, "other") for label in data.label]
    return compact(pd.DataFrame(data))


def _of_runs(rows: pd.DataFrame, runs: Sequence[Run]) -> pd.DataFrame:
    seeds = [run.seed for run in runs]
    return rows[(rows.tuned_on == runs[0].tuned_on) & rows.seed.isin(seeds) & rows.value.notna()]


def gains_of(data: pd.DataFrame) -> list[str]:
    """The labels, sorted by the change of their distance from the first to the last step, largest first."""
    last = data.sort_values("step").groupby("label", sort=True).change.last()
    return [str(label) for label in last.sort_values(ascending=False, kind="stable").index]


def _change(data: pd.DataFrame, label: str) -> float:
    return float(data[data.label == label].sort_values("step").change.iloc[-1])


def _lines(data: pd.DataFrame, gains: list[str], chosen: dict[str, str], marks: list[str], several: bool) -> ChartType:
    """The line chart; marks: those of the chosen labels, shown after their names in the legend."""
    import altair as alt

    steps = sorted(int(step) for step in data.step.unique())
    scale = alt.Scale(domain=gains, range=[chosen.get(label, GREY) for label in gains])
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
    dash = alt.StrokeDash("group:N", scale=alt.Scale(domain=list(GROUPS), range=[[1, 0], [5, 3], [1, 0]]), legend=None)
    tooltip = [
        alt.Tooltip("label:N"),
        alt.Tooltip("step:Q", title="updates", format=",d"),
        alt.Tooltip("distance:Q", format=".3f"),
        alt.Tooltip("relative:Q", title="in RMS radii", format=".3f"),
        alt.Tooltip("change:Q", title="change", format="+.3f"),
        alt.Tooltip("nearest:N", title="nearest label"),
    ]
    if data.p.notna().any():
        tooltip.append(alt.Tooltip("p:Q", title="p (Holm)", format=".4f"))
    if (data.few != "").any():
        tooltip.append(alt.Tooltip("few:N", title="few points"))
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
    """The distance between every two labels, before and after fine-tuning (first seed)."""
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
        + ". Both maps have the same colour scale."
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
    return f" {marks.legend()}" if marks.few_points else ""


def label_distance_data(results: Results, encoder: str, task: str, runs: Sequence[Run]) -> pd.DataFrame:
    """A row for each state and pair of labels, in both orders: state, label, other, distance."""
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

    size = 10 if len(labels) <= 24 else 8
    side = max(PANEL, round(9.5 * len(labels)))
    legend = alt.Legend(title="distance", gradientLength=180, orient="bottom", direction="horizontal")
    colour = alt.Color(
        "distance:Q", scale=alt.Scale(scheme="viridis", domain=[0, float(data.distance.max())]), legend=legend
    )

    def axis() -> alt.Axis:
        return alt.Axis(
            labelFontSize=size, labelOverlap=True, ticks=False, domain=False, labelLimit=90, title=None, grid=False
        )

    def panel(state: str) -> alt.Chart:
        chart: alt.Chart = (
            charted()
            .transform_filter(f"datum.state == '{state}'")
            .mark_rect()
            .encode(
                x=alt.X("other:N", axis=axis(), scale=alt.Scale(domain=labels)),
                y=alt.Y("label:N", axis=axis(), scale=alt.Scale(domain=labels)),
                color=colour,
                tooltip=[alt.Tooltip("label:N"), alt.Tooltip("other:N"), alt.Tooltip("distance:Q", format=".3f")],
            )
            .properties(width=side, height=side, title=alt.Title(state, fontSize=12))
        )
        return chart

    return alt.hconcat(*(panel(state) for state in states), spacing=24)

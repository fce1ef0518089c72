"""Distances of labels: along the updates (Figure 6 of the paper), and label by label before and after."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
from closerlook.report.labels import Marks, marks_of
from closerlook.study.readings import Results, Run

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

ENDS = 3
"""Labels shown at first that gain most, and that gain least."""

GROUPS = ("most", "least", "other")
"""How labels are told apart by their gain; names of labels never stand in a chart's expressions, only in its data."""


def minimum_distances(results: Results, runs: Sequence[Run]) -> Figure | None:
    """Each label's distance to the nearest other one along the updates; runs: one for each seed."""
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
        kind="distances" if run.own else "cross-distances",
        title=f"Distance to the nearest other label: {where}",
        caption=f"Train, layer {results.last_layer(run.encoder)}, {len(gains)} labels{seeds}. "
        f"Shown first: the {min(ENDS, len(gains))} labels that gain most and the {min(ENDS, len(gains[ENDS:]))} that "
        f"gain least. {_whiskers(data, runs)}{marks.told()}".rstrip(),
        alt=f"Line chart over {steps[-1]:,} updates. Of {len(gains)} labels, {shorten(gains[0])} gains most "
        f"({most.change:+.2f}) and {shorten(gains[-1])} least ({least.change:+.2f}).",
        encoder=run.encoder,
        task=run.task if run.own else f"{run.tuned_on} → {run.task}",
        data=data,
        chart=_lines(data, gains, chosen, [marks.of(label) for label in chosen], len(runs) > 1),
        toggles=tuple(
            Toggle(
                *(label, chosen.get(label, GREY), label in chosen),
                f"{_change(data, label):+.2f} {marks.of(label)}".rstrip(),
                _told(marks, label),
            )
            for label in [*chosen, *(label for label in gains if label not in chosen)]
        ),
    )


def _whiskers(data: pd.DataFrame, runs: Sequence[Run]) -> str:
    """What the bars at the ends are, where there are any."""
    return "Bars: 95% interval over examples. " if len(runs) == 1 and data.low.notna().any() else ""


def _told(marks: Marks, label: str) -> str:
    """Why a label is marked."""
    sure = [f"p = {marks.p[label]:.3g} (Holm)"] if label in marks.p else []
    return "; ".join([*sure, *([marks.few[label]] if label in marks.few else [])])


def distance_data(results: Results, runs: Sequence[Run]) -> pd.DataFrame:
    """Tidy: label, step, nearest, distance, low, high, relative, change since step 0, p, few, group.

    distance: the mean over seeds. low, high: over seeds; of one seed the interval over examples, where there is one.
    """
    import pandas as pd

    run = runs[0]
    rows, relative = (
        _along(results.at(name, run.encoder, run.task), runs)
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
    data["few"] = [marks.few.get(label, "") for label in data.label]
    gains = gains_of(data)
    groups = dict.fromkeys(gains[:ENDS], "most") | dict.fromkeys(gains[ENDS:][-ENDS:], "least")
    data["group"] = [groups.get(label, "other") for label in data.label]
    return compact(pd.DataFrame(data))


def _along(rows: pd.DataFrame, runs: Sequence[Run]) -> pd.DataFrame:
    seeds = [run.seed for run in runs]
    return rows[(rows.tuned_on == runs[0].tuned_on) & rows.seed.isin(seeds) & rows.value.notna()]


def gains_of(data: pd.DataFrame) -> list[str]:
    """Labels by the change of their distance from the first to the last step, largest first."""
    last = data.sort_values("step").groupby("label", sort=True).change.last()
    return [str(label) for label in last.sort_values(ascending=False, kind="stable").index]


def _change(data: pd.DataFrame, label: str) -> float:
    return float(data[data.label == label].sort_values("step").change.iloc[-1])


def _lines(
    data: pd.DataFrame, gains: list[str], chosen: dict[str, str], marks: list[str], several: bool
) -> alt.TopLevelMixin:
    """marks: of the chosen labels, beside whose names they stand."""
    import altair as alt

    steps = sorted(int(step) for step in data.step.unique())
    scale = alt.Scale(domain=gains, range=[chosen.get(label, GREY) for label in gains])
    legend = alt.Legend(
        title=None,
        values=list(chosen),
        labelExpr=f"datum.label + {json.dumps([f' {one}'.rstrip() for one in marks])}[datum.index]",
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
    parts: list[Any] = [lines, dots]
    if several:
        parts.insert(0, base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q"), y2="high:Q"))
    elif data.low.notna().any():
        parts.insert(0, base.mark_rule(strokeWidth=1.5, opacity=0.55).encode(y=alt.Y("low:Q"), y2="high:Q"))
    return alt.layer(*parts).add_params(shown_labels(list(chosen))).properties(width=WIDTH, height=HEIGHT)


# ---- before and after, label by label ----


def heat_map(results: Results, encoder: str, task: str, runs: Sequence[Run]) -> Figure | None:
    """The distance of each two labels, before and after."""
    data = heat_data(results, encoder, task, runs)
    if data.empty:
        return None
    states = [state for state in ("before", "after") if (data.state == state).any()]
    labels = sorted(set(data.label))
    closest = data[data.state == states[-1]].sort_values("distance").iloc[0]
    return Figure(
        kind="heat",
        title=f"Distances of labels: {shorten(encoder)} on {shorten(task)}",
        caption=f"Train, layer {results.last_layer(encoder)}, {len(labels)} labels, "
        + ("before and after fine-tuning" if len(states) == 2 else f"{states[0]} fine-tuning only")
        + (f", seed {runs[0].seed}" if runs else "")
        + ". Both share one scale."
        + _few(marks_of(results, encoder, task, ())),
        alt=f"Heat map of {len(labels)} by {len(labels)} labels. Closest {states[-1]} fine-tuning: "
        f"{shorten(closest.label)} and {shorten(closest.other)}, {closest.distance:.2f} apart.",
        encoder=encoder,
        task=task,
        data=data,
        chart=_heat(data, labels, states),
        layout=Layout(axis=min(90, axis_width(labels)), least=280, most=500, square=True),
    )


def _few(marks: Marks) -> str:
    return f" {marks.told()}" if marks.few else ""


def heat_data(results: Results, encoder: str, task: str, runs: Sequence[Run]) -> pd.DataFrame:
    """Tidy: state, label, other, distance; each pair both ways."""
    import pandas as pd

    rows = results.at("label_distance", encoder, task)
    before = rows[rows.tuned_on == ""] if (rows.tuned_on == "").any() else rows[rows.step == 0]
    parts = [before.assign(state="before")]
    if runs:
        after = rows[(rows.tuned_on == runs[0].tuned_on) & (rows.seed == runs[0].seed) & rows["is_final"]]
        parts.append(after.assign(state="after"))
    data = pd.concat(parts)[["state", "label", "other", "value"]].rename(columns={"value": "distance"})
    data = data[data.distance.notna()]
    turned = data.rename(columns={"label": "other", "other": "label"})[data.columns]
    data = pd.concat([data, turned]).drop_duplicates(["state", "label", "other"])
    return compact(data.sort_values(["state", "label", "other"], ascending=[False, True, True], ignore_index=True))


def _heat(data: pd.DataFrame, labels: list[str], states: list[str]) -> alt.TopLevelMixin:
    import altair as alt

    axis = {"labelOverlap": True, "ticks": False, "domain": False, "labelLimit": 90, "title": None, "grid": False}
    size = 10 if len(labels) <= 24 else 8
    side = max(PANEL, round(9.5 * len(labels)))
    legend = alt.Legend(title="distance", gradientLength=180, orient="bottom", direction="horizontal")
    colour = alt.Color(
        "distance:Q", scale=alt.Scale(scheme="viridis", domain=[0, float(data.distance.max())]), legend=legend
    )

    def panel(state: str) -> alt.Chart:
        names = alt.Axis(labelFontSize=size, **axis)
        return (
            charted()
            .transform_filter(f"datum.state == '{state}'")
            .mark_rect()
            .encode(
                x=alt.X("other:N", axis=names.copy(), scale=alt.Scale(domain=labels)),
                y=alt.Y("label:N", axis=names, scale=alt.Scale(domain=labels)),
                color=colour,
                tooltip=[alt.Tooltip("label:N"), alt.Tooltip("other:N"), alt.Tooltip("distance:Q", format=".3f")],
            )
            .properties(width=side, height=side, title=alt.Title(state, fontSize=12))
        )

    return alt.hconcat(*(panel(state) for state in states), spacing=24)

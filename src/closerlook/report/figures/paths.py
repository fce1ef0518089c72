"""Centroids: where they go along the updates (Figure 3 of the paper), and their shifts by layer (Figure 5)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING

from closerlook.report.figures.figure import Figure, Layout, Toggle
from closerlook.report.figures.style import (
    AFTER,
    GREY,
    OKABE_ITO,
    PANEL,
    SHOWN,
    charted,
    compact,
    shorten,
    shown_labels,
)
from closerlook.study.readings import Results, Run

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

CLOSEST = 3
MARGIN = 1.25
"""The side of a plane, in the extent of what it shows."""

COLOURS = (OKABE_ITO[0], OKABE_ITO[3], OKABE_ITO[1])


def centroid_paths(results: Results, run: Run) -> Figure | None:
    """The paths of the centroids in the plane where they vary most, at the first and the last layer."""
    data = path_data(results, run)
    if data.empty:
        return None
    labels = sorted(set(data.label))
    closest = closest_labels(results, run, labels)
    layers = sorted(int(layer) for layer in data.layer.unique())
    explained = {layer: _explained(results, run, layer, "path") for layer in layers}
    shares = "; ".join(f"layer {layer}: {explained[layer]:.0%}" for layer in layers)
    return Figure(
        kind="paths",
        title=f"Paths of the centroids: {shorten(run.encoder)} on {shorten(run.task)}",
        caption=f"Train, seed {run.seed}. Rings: before; dots: after. A fixed basis for each layer, the first two "
        f"principal components of all centroids at all steps (share of variance: {shares}). Shown first: the three "
        "labels that lie closest before fine-tuning.",
        alt=f"Paths of {len(labels)} label centroids in a plane at layers {', '.join(map(str, layers))}; shown first: "
        f"{', '.join(shorten(label) for label in closest)}.",
        encoder=run.encoder,
        task=run.task,
        data=data,
        chart=_paths(data, labels, closest, layers),
        toggles=tuple(
            Toggle(label, dict(zip(closest, COLOURS, strict=False)).get(label, GREY), label in closest)
            for label in [*closest, *(label for label in labels if label not in closest)]
        ),
        layout=Layout(axis=60, least=270, most=500, square=True, planes=tuple((str(layer), layer) for layer in layers)),
    )


def path_data(results: Results, run: Run) -> pd.DataFrame:
    """Tidy: layer, label, step, x, y, end (start, on the way, end); of the first layer and the last."""
    import pandas as pd

    rows = pd.concat([_of(results, name, run) for name in ("centroid_x", "centroid_y")])
    if rows.empty:
        return pd.DataFrame(columns=["layer", "label", "step", "x", "y", "end"])
    there = sorted(int(layer) for layer in rows.layer.unique())
    above = [layer for layer in there if layer > 0] or there
    rows = rows[rows.layer.isin({above[0], above[-1]})]
    data = rows.pivot_table(index=["layer", "label", "step"], columns="measure", values="value").reset_index()
    data = data.rename(columns={"centroid_x": "x", "centroid_y": "y"}).rename_axis(columns=None)
    first, last = (data.groupby(["layer"]).step.transform(how) for how in ("min", "max"))
    data["end"] = "on the way"
    data.loc[data.step == first, "end"] = "start"
    data.loc[data.step == last, "end"] = "end"
    return compact(data)


def _of(results: Results, measure: str, run: Run) -> pd.DataFrame:
    rows = results.of(measure)
    mine = (rows.encoder == run.encoder) & (rows.task == run.task) & (rows.tuned_on == run.tuned_on)
    return rows[mine & (rows.seed == run.seed) & (rows.split == "train")]


def _explained(results: Results, run: Run, layer: int, what: str) -> float:
    found = [_of(results, f"{what}_explained_variance_{axis}", run) for axis in "xy"]
    return float(sum(rows[rows.layer == layer].value.sum() for rows in found))


def closest_labels(results: Results, run: Run, labels: list[str]) -> list[str]:
    """The three labels with the smallest sum of distances between them before fine-tuning, at the last layer."""
    rows = results.at("label_distance", run.encoder, run.task)
    before = rows[(rows.step == 0) & rows.value.notna()]
    apart = {frozenset(pair): float(value) for *pair, value in before[["label", "other", "value"]].to_numpy()}
    far = float("inf")

    def spread(three: Iterable[str]) -> float:
        return sum(apart.get(frozenset(pair), far) for pair in combinations(three, 2))

    near = {label for pair in sorted(apart, key=lambda pair: apart[pair])[:200] for label in pair}
    among = [label for label in labels if label in near] if len(near) >= CLOSEST else labels
    return list(min(combinations(among, min(CLOSEST, len(among))), key=spread, default=()))


def _paths(data: pd.DataFrame, labels: list[str], closest: list[str], layers: list[int]) -> alt.TopLevelMixin:
    import altair as alt

    colours = dict(zip(closest, COLOURS, strict=False))
    scale = alt.Scale(domain=labels, range=[colours.get(label, GREY) for label in labels])
    colour = alt.Color("label:N", scale=scale, legend=alt.Legend(title=None, values=closest, symbolType="circle"))
    tooltip = [
        alt.Tooltip("label:N"),
        alt.Tooltip("step:Q", title="updates", format=",d"),
        alt.Tooltip("x:Q", format=".3f"),
        alt.Tooltip("y:Q", format=".3f"),
    ]

    def panel(layer: int) -> alt.LayerChart:
        x, y = (_axis(name, f"{name}{layer}", f"reach{layer}") for name in "xy")
        base = (
            charted().transform_filter(f"datum.layer == {layer}").transform_filter(SHOWN).encode(x=x, y=y, color=colour)
        )
        line = base.mark_line(strokeWidth=1.6, opacity=0.75).encode(order="step:Q")
        between = (
            base.transform_filter("datum.end == 'on the way'").mark_point(size=14, filled=True).encode(tooltip=tooltip)
        )
        start = (
            base.transform_filter("datum.end == 'start'")
            .mark_point(size=60, filled=False, strokeWidth=2)
            .encode(tooltip=tooltip)
        )
        end = (
            base.transform_filter("datum.end == 'end'")
            .mark_point(size=70, filled=True, opacity=1)
            .encode(tooltip=tooltip)
        )
        title = alt.Title(f"layer {layer}", fontSize=12)
        return alt.layer(line, between, start, end, title=title).properties(width=PANEL, height=PANEL)

    frames = [param for layer in layers for param in _frame(data[data.layer == layer], closest, layer)]
    return alt.hconcat(*(panel(layer) for layer in layers), spacing=28).add_params(shown_labels(closest), *frames)


def _frame(data: pd.DataFrame, shown: list[str], layer: int) -> list[alt.Parameter]:
    """The centre and the reach of a square that holds the labels shown; the page sets them anew for others."""
    import altair as alt

    mine = data[data.label.isin(shown)]
    spans = [(float(mine[name].min()), float(mine[name].max())) for name in "xy"]
    reach = max(high - low for low, high in spans) * MARGIN / 2 or 1.0
    centres = [(low + high) / 2 for low, high in spans]
    names = (f"x{layer}", f"y{layer}", f"reach{layer}")
    return [alt.param(name=name, value=value) for name, value in zip(names, [*centres, reach], strict=True)]


def _axis(channel: str, centre: str, reach: str) -> alt.X | alt.Y:
    """An axis of a plane: both have the same length in the same unit, so that distances in it are true."""
    import altair as alt

    kind, number = (alt.X, 1) if channel == "x" else (alt.Y, 2)
    domain = [alt.ExprRef(f"{centre} - {reach}"), alt.ExprRef(f"{centre} + {reach}")]
    axis = alt.Axis(title=f"component {number}", tickCount=5)
    return kind(f"{channel}:Q", scale=alt.Scale(domain=domain, nice=False, zero=False), axis=axis)


# ---- shifts ----


def centroid_shifts(results: Results, run: Run) -> Figure | None:
    """The shift of each label's centroid from start to end, by layer, in the principal components of the shifts."""
    data = shift_data(results, run)
    if data.empty:
        return None
    layers = sorted(int(layer) for layer in data.layer.unique())
    mean = data.groupby("layer").length.mean()
    shares = {layer: _explained(results, run, layer, "shift") for layer in layers}
    return Figure(
        kind="shifts",
        title=f"Shifts of the centroids: {shorten(run.encoder)} on {shorten(run.task)}",
        caption=f"Train, seed {run.seed}, {data.label.nunique()} labels. Each line goes from the origin to end minus "
        "start of a label's centroid, in the first two principal components of the layer's shifts; one scale for all "
        "layers.",
        alt="Shifts of label centroids by layer; mean length "
        + ", ".join(f"{mean[layer]:.2f} at layer {layer}" for layer in layers)
        + ".",
        encoder=run.encoder,
        task=run.task,
        data=data,
        chart=_shifts(data, layers, shares),
        layout=Layout(axis=56, least=170, most=300, square=True),
    )


def shift_data(results: Results, run: Run) -> pd.DataFrame:
    """Tidy: layer, label, x, y, length."""
    import pandas as pd

    names = {"shift_x": "x", "shift_y": "y", "shift_length": "length"}
    rows = pd.concat([_of(results, name, run) for name in names])
    if rows.empty:
        return pd.DataFrame(columns=["layer", "label", *names.values()])
    data = rows.pivot_table(index=["layer", "label"], columns="measure", values="value").reset_index()
    data = data.rename(columns=names).rename_axis(columns=None)
    turned = data.groupby("layer").x.transform("mean") < 0  # the sign of a component is free: the mean shift goes right
    data.loc[turned, "x"] *= -1
    return compact(data[["layer", "label", "x", "y", "length"]])


def _shifts(data: pd.DataFrame, layers: list[int], shares: dict[int, float]) -> alt.TopLevelMixin:
    import altair as alt

    low, high = min(0.0, float(data.x.min())), max(0.0, float(data.x.max()))
    tall = float(data.y.abs().max())
    reach = max(high - low, 2 * tall) * MARGIN / 2 or 1.0
    domains = [[(low + high) / 2 - reach, (low + high) / 2 + reach], [-reach, reach]]

    def panel(layer: int) -> alt.LayerChart:
        axis = {"tickCount": 5, "grid": False}
        base = (
            charted()
            .transform_filter(f"datum.layer == {layer}")
            .encode(
                x=alt.X(
                    "x:Q", scale=alt.Scale(domain=domains[0], nice=False), axis=alt.Axis(title="component 1", **axis)
                ),
                y=alt.Y(
                    "y:Q", scale=alt.Scale(domain=domains[1], nice=False), axis=alt.Axis(title="component 2", **axis)
                ),
            )
        )
        rule = base.mark_rule(strokeWidth=1, opacity=0.45, color=AFTER).encode(x2=alt.X2Datum(0), y2=alt.Y2Datum(0))
        tooltip = [alt.Tooltip("label:N"), *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("x", "y", "length"))]
        dots = base.mark_point(size=30, filled=True, color=AFTER, opacity=0.85).encode(tooltip=tooltip)
        title = alt.Title(
            f"layer {layer}", subtitle=f"{shares[layer]:.0%} of variance", fontSize=12, subtitleFontSize=10
        )
        return alt.layer(rule, dots, title=title).properties(width=200, height=200)

    return alt.concat(*(panel(layer) for layer in layers), columns=4, spacing=24)

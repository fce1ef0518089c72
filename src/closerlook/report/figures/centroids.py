"""Figures of label centroids (the mean of each label's points), as Figures 3 and 5 of Zhou and Srikumar (2022).

They show the paths of the centroids during fine-tuning, and their shifts from before to after it, by layer.
"""

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
from closerlook.report.figures.subjects import for_each_fine_tuning
from closerlook.study.readings import Results, Run

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from closerlook.report.figures.style import ChartType

IN_THE_PAPER = ("ADJ", "VERB", "NOUN")
"""The labels of Figure 3 of the paper, shown at first if the task has them."""

CLOSEST = 3
"""Number of labels that are shown at first."""

CLOSEST_LABELS = "the three labels that are closest to each other before fine-tuning"

NEAREST_PAIRS = 200
"""The three closest labels are searched among the labels of this many nearest pairs."""

MARGIN = 1.25
"""The side of a plane relative to the extent of what it shows."""

COLOURS = (OKABE_ITO[0], OKABE_ITO[3], OKABE_ITO[1])


@for_each_fine_tuning
def centroid_paths(results: Results, runs: list[Run]) -> Figure | None:
    """The paths of the label centroids in the plane of their largest variance, at two layers (first seed).

    They are the first and the last measured layer above the embeddings.
    """
    run = runs[0]
    data = path_data(results, run)
    if data.empty:
        return None
    labels = sorted(set(data.label))
    is_as_in_paper = set(IN_THE_PAPER) <= set(labels)
    closest = list(IN_THE_PAPER) if is_as_in_paper else closest_labels(results, run, labels)
    chosen = "the labels of Figure 3 of the paper" if is_as_in_paper else CLOSEST_LABELS
    layers = sorted(int(layer) for layer in data.layer.unique())
    explained = {layer: _explained(results, run, layer, "path") for layer in layers}
    shares = " and ".join(f"{explained[layer]:.0%} (layer {layer})" for layer in layers)
    return Figure(
        title=f"Paths of the centroids: {shorten(run.encoder)} on {shorten(run.task)}",
        caption=f"Train, seed {run.seed}; {_layers_text(layers)}. Rings: before fine-tuning; small dots: snapshots in "
        "between; large dots: after fine-tuning. Axes: the first two principal components, computed for each layer "
        f"over the centroids of all labels at all steps. They explain {shares} of the variance. Shown at first: "
        f"{chosen}.",
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


def _layers_text(layers: list[int]) -> str:
    """The layers of the figure, as its caption names them."""
    if len(layers) == 1:
        return f"layer {layers[0]}"
    return f"the first and the last measured layer above the embeddings (layers {layers[0]} and {layers[-1]})"


def path_data(results: Results, run: Run) -> pd.DataFrame:
    """A row for each layer, label and step: x, y, end ('start', 'between' or 'end').

    Layers: the first measured layer above the embeddings (layer 0), and the last one.
    """
    import pandas as pd

    rows = pd.concat([_of(results, name, run) for name in ("centroid_x", "centroid_y")])
    if rows.empty:
        return pd.DataFrame(columns=["layer", "label", "step", "x", "y", "end"])
    layers = sorted(int(layer) for layer in rows.layer.unique())
    above = [layer for layer in layers if layer > 0] or layers
    rows = rows[rows.layer.isin({above[0], above[-1]})]
    data = rows.pivot_table(index=["layer", "label", "step"], columns="measure", values="value").reset_index()
    data = data.rename(columns={"centroid_x": "x", "centroid_y": "y"}).rename_axis(columns=None)
    first, last = (data.groupby(["layer"]).step.transform(how) for how in ("min", "max"))
    data["end"] = "between"
    data.loc[data.step == first, "end"] = "start"
    data.loc[data.step == last, "end"] = "end"
    return compact(data)


def _of(results: Results, measure: str, run: Run) -> pd.DataFrame:
    rows = results.of(measure)
    of_run = (rows.encoder == run.encoder) & (rows.task == run.task) & (rows.tuned_on == run.tuned_on)
    return rows[of_run & (rows.seed == run.seed) & (rows.split == "train")]


def _explained(results: Results, run: Run, layer: int, kind: str) -> float:
    """The share that both components explain; kind: 'path' (of the variance) or 'shift' (of the squared length)."""
    parts = [_of(results, f"{kind}_explained_variance_{axis}", run) for axis in "xy"]
    return float(sum(rows[rows.layer == layer].value.sum() for rows in parts))


def closest_labels(results: Results, run: Run, labels: list[str]) -> list[str]:
    """The three labels with the smallest sum of distances between them before fine-tuning, at the last layer."""
    rows = results.at("label_distance", run.encoder, run.task)
    before = rows[(rows.step == 0) & rows.value.notna()]
    distances = {frozenset(pair): float(value) for *pair, value in before[["label", "other", "value"]].to_numpy()}

    def spread(three: Iterable[str]) -> float:
        return sum(distances.get(frozenset(pair), float("inf")) for pair in combinations(three, 2))

    near = {label for pair in sorted(distances, key=lambda pair: distances[pair])[:NEAREST_PAIRS] for label in pair}
    candidates = [label for label in labels if label in near] if len(near) >= CLOSEST else labels
    return list(min(combinations(candidates, min(CLOSEST, len(candidates))), key=spread, default=()))


def _paths(data: pd.DataFrame, labels: list[str], closest: list[str], layers: list[int]) -> ChartType:
    import altair as alt

    colours = dict(zip(closest, COLOURS, strict=False))
    scale = alt.Scale(domain=labels, range=[colours.get(label, GREY) for label in labels])
    colour = alt.Color("label:N", scale=scale, legend=alt.Legend(title=None, values=closest, symbolType="circle"))
    tooltip = [
        alt.Tooltip("label:N"),
        alt.Tooltip("step:Q", title="training step", format=",d"),
        alt.Tooltip("x:Q", format=".3f"),
        alt.Tooltip("y:Q", format=".3f"),
    ]

    def panel(layer: int) -> ChartType:
        x_scale, y_scale = (_square(f"{name}{layer}", f"reach{layer}") for name in "xy")
        x = alt.X("x:Q", scale=x_scale, axis=alt.Axis(title="component 1", tickCount=5))
        y = alt.Y("y:Q", scale=y_scale, axis=alt.Axis(title="component 2", tickCount=5))
        base = (
            charted().transform_filter(f"datum.layer == {layer}").transform_filter(SHOWN).encode(x=x, y=y, color=colour)
        )
        line = base.mark_line(strokeWidth=1.6, opacity=0.75).encode(order="step:Q")
        between = (
            base.transform_filter("datum.end == 'between'").mark_point(size=14, filled=True).encode(tooltip=tooltip)
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
    """The centre and the half side of a square around the shown labels; the page updates them when others are shown."""
    import altair as alt

    visible = data[data.label.isin(shown)]
    spans = [(float(visible[name].min()), float(visible[name].max())) for name in "xy"]
    reach = max(high - low for low, high in spans) * MARGIN / 2 or 1.0
    centres = [(low + high) / 2 for low, high in spans]
    names = (f"x{layer}", f"y{layer}", f"reach{layer}")
    return [alt.param(name=name, value=value) for name, value in zip(names, [*centres, reach], strict=True)]


def _square(centre: str, reach: str) -> alt.Scale:
    """The scale of an axis; both axes have the same length in the same unit, so that distances are true to scale."""
    import altair as alt

    domain = [alt.ExprRef(f"{centre} - {reach}"), alt.ExprRef(f"{centre} + {reach}")]
    return alt.Scale(domain=domain, nice=False, zero=False)


# ---- shifts ----


@for_each_fine_tuning
def centroid_shifts(results: Results, runs: list[Run]) -> Figure | None:
    """The shift of each label's centroid, by layer, in the principal components of the shifts (first seed)."""
    run = runs[0]
    data = shift_data(results, run)
    if data.empty:
        return None
    layers = sorted(int(layer) for layer in data.layer.unique())
    mean = data.groupby("layer").length.mean()
    shares = {layer: _explained(results, run, layer, "shift") for layer in layers}
    return Figure(
        title=f"Shifts of the centroids: {shorten(run.encoder)} on {shorten(run.task)}",
        caption=f"Train, seed {run.seed}, {data.label.nunique()} labels. Each line goes from the origin to "
        "the shift of one label's centroid from before to after fine-tuning, projected on the first two principal "
        "components of all shifts in that layer (not centred). Percentages: the share of the squared length of the "
        "shifts that both components explain. All layers have the same scale.",
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
    """One row for each layer and label: x, y, length."""
    import pandas as pd

    names = {"shift_x": "x", "shift_y": "y", "shift_length": "length"}
    rows = pd.concat([_of(results, name, run) for name in names])
    if rows.empty:
        return pd.DataFrame(columns=["layer", "label", *names.values()])
    data = rows.pivot_table(index=["layer", "label"], columns="measure", values="value").reset_index()
    data = data.rename(columns=names).rename_axis(columns=None)
    negative = data.groupby("layer").x.transform("mean") < 0  # the sign of a component is arbitrary
    data.loc[negative, "x"] *= -1
    return compact(data[["layer", "label", "x", "y", "length"]])


def _shifts(data: pd.DataFrame, layers: list[int], shares: dict[int, float]) -> ChartType:
    import altair as alt

    low, high = min(0.0, float(data.x.min())), max(0.0, float(data.x.max()))
    tall = float(data.y.abs().max())
    reach = max(high - low, 2 * tall) * MARGIN / 2 or 1.0
    domains = [[(low + high) / 2 - reach, (low + high) / 2 + reach], [-reach, reach]]

    def panel(layer: int) -> ChartType:
        scales = [alt.Scale(domain=domain, nice=False) for domain in domains]
        axes = [alt.Axis(title=f"component {number}", tickCount=5, grid=False) for number in (1, 2)]
        x, y = alt.X("x:Q", scale=scales[0], axis=axes[0]), alt.Y("y:Q", scale=scales[1], axis=axes[1])
        base = charted().transform_filter(f"datum.layer == {layer}").encode(x=x, y=y)
        rule = base.mark_rule(strokeWidth=1, opacity=0.45, color=AFTER).encode(x2=alt.X2Datum(0), y2=alt.Y2Datum(0))
        tooltip = [alt.Tooltip("label:N"), *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("x", "y", "length"))]
        dots = base.mark_point(size=30, filled=True, color=AFTER, opacity=0.85).encode(tooltip=tooltip)
        title = alt.Title(
            f"layer {layer}", subtitle=f"{shares[layer]:.0%} of squared length", fontSize=12, subtitleFontSize=10
        )
        return alt.layer(rule, dots, title=title).properties(width=200, height=200)

    return alt.concat(*(panel(layer) for layer in layers), columns=4, spacing=24)

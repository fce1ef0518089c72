"""Spatial similarity to the pretrained encoder, by layer, during fine-tuning (Figure 4 of Zhou and Srikumar 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from closerlook.geometry.p_values import FEWEST_SHUFFLES
from closerlook.report.figures.figure import Figure, Toggle
from closerlook.report.figures.style import (
    HEIGHT,
    WIDTH,
    charted,
    compact,
    is_shown,
    shorten,
    step_axis,
    step_scale_text,
)
from closerlook.report.figures.subjects import for_each_fine_tuning
from closerlook.study.readings import Results, Run

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.report.figures.style import ChartType

VIRIDIS = ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#9fda3a", "#d0e11c")
DARKEST, LIGHTEST = 1.5, 5.0
"""The part of the scale that is visible on a light and on a dark page."""

BANDS = 4
"""Up to this number of layers, each layer has a band; with more layers, only the last one has."""


@for_each_fine_tuning
def similarity_to_pretrained(results: Results, runs: list[Run]) -> Figure | None:
    """The similarity of each layer to the pretrained encoder during fine-tuning."""
    data = similarity_data(results, runs)
    if data.empty:
        return None
    run = runs[0]
    layers = sorted(int(layer) for layer in data.layer.unique())
    steps = sorted(int(step) for step in data.step.unique())
    last = data[data.step == steps[-1]].set_index("layer").similarity
    colours = dict(zip(layers, layer_colours(len(layers)), strict=True))
    ends = ", ".join(f"{last[layer]:.2f} at layer {layer}" for layer in layers if layer in last.index)
    seeds = f", mean of {len(runs)} seeds" if len(runs) > 1 else ""
    bands = "all layers" if len(layers) <= BANDS else "the last layer only"
    band = f"Band ({bands}): {'range over seeds' if len(runs) > 1 else '95% bootstrap interval over labels'}."
    snapshots = data.groupby("layer").step.nunique()
    sparse = (
        " Some layers were measured only before and after fine-tuning." if snapshots.max() > snapshots.min() else ""
    )
    return Figure(
        title=f"Similarity to the pretrained encoder: {shorten(run.encoder)} on {shorten(run.task)}",
        caption=f"Spatial similarity of each layer to the same layer of the pretrained encoder, on train, "
        f"{int(data.n.max())} labels{seeds}; before fine-tuning it is 1 by definition. {band}{sparse} "
        f"{step_scale_text(steps)}".rstrip(),
        alt=f"Line chart over {steps[-1]:,} training steps, {len(layers)} layers. At the end: {ends}.",
        encoder=run.encoder,
        task=run.task,
        data=data,
        chart=_chart(data, colours, steps),
        toggles=tuple(Toggle(str(layer), colours[layer], True, "layer") for layer in layers),
    )


def layer_colours(n: int) -> list[str]:
    """A colour for each layer, from dark to light."""
    positions = [DARKEST + (LIGHTEST - DARKEST) * at / max(1, n - 1) for at in range(n)]
    return [_interpolate(position) for position in positions]


def _interpolate(position: float) -> str:
    low = min(int(position), len(VIRIDIS) - 2)
    first, second = (_rgb(VIRIDIS[at]) for at in (low, low + 1))
    part = position - low
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(first, second, strict=True))


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def similarity_data(results: Results, runs: Sequence[Run]) -> pd.DataFrame:
    """One row for each layer and step: similarity (mean over seeds), low, high, p, n."""
    rows, p = (_of_runs(results.of(name), runs) for name in ("similarity_original", "similarity_p_value_original"))
    several = len(runs) > 1
    groups = rows.groupby(["layer", "step"], sort=True)
    low, high = (("value", "min"), ("value", "max")) if several else (("ci_low", "first"), ("ci_high", "first"))
    data = groups.agg(similarity=("value", "mean"), low=low, high=high, n=("n", "max"))
    p = p[p.n.isna() | (p.n >= FEWEST_SHUFFLES)]  # with fewer permutations, p cannot be small
    data["p"] = p.groupby(["layer", "step"]).value.max()
    return compact(data.reset_index())


def _of_runs(rows: pd.DataFrame, runs: Sequence[Run]) -> pd.DataFrame:
    run = runs[0]
    same = (rows.encoder == run.encoder) & (rows.task == run.task) & (rows.tuned_on == run.tuned_on)
    return rows[same & rows.seed.isin([run.seed for run in runs]) & rows.value.notna()]


def _chart(data: pd.DataFrame, colours: dict[int, str], steps: list[int]) -> ChartType:
    import altair as alt

    layers = list(colours)
    scale = alt.Scale(domain=layers, range=list(colours.values()))
    low = min(0.0, float(data.similarity.min()))
    base = (
        charted()
        .transform_filter(is_shown("layer"))
        .encode(
            x=step_axis(steps),
            color=alt.Color(
                "layer:N",
                scale=scale,
                sort=None,
                legend=alt.Legend(title="layer", symbolType="stroke", symbolOpacity=1),
            ),
        )
    )
    y = alt.Y(
        "similarity:Q",
        title="similarity to the pretrained encoder",
        scale=alt.Scale(domain=[low, 1]),
        axis=alt.Axis(tickCount=6),
    )
    tooltip = [
        alt.Tooltip("layer:N"),
        alt.Tooltip("step:Q", title="training step", format=",d"),
        alt.Tooltip("similarity:Q", format=".3f"),
        alt.Tooltip("low:Q", format=".3f"),
        alt.Tooltip("high:Q", format=".3f"),
        alt.Tooltip("p:Q", title="p (permutation test)", format=".4f"),
    ]
    wide = base if len(layers) <= BANDS else base.transform_filter(f"datum.layer == {layers[-1]}")
    band = wide.mark_area(opacity=0.13).encode(
        y=alt.Y("low:Q", scale=alt.Scale(domain=[low, 1], clamp=True)), y2="high:Q"
    )
    line = base.mark_line(strokeWidth=2).encode(y=y)
    dots = base.mark_point(size=36, filled=True, opacity=1).encode(y=y, tooltip=tooltip)
    shown = alt.param(name="shown", value=[str(layer) for layer in layers])
    return alt.layer(band, line, dots).add_params(shown).properties(width=WIDTH, height=HEIGHT)

"""All encoders, or all methods of fine-tuning, on one task in one figure: by layer, and before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from closerlook.report.before_after import PRETRAINED_STATE, STATES, before_after
from closerlook.report.figures.figure import Figure, Layout, Toggle
from closerlook.report.figures.style import (
    GREY,
    OKABE_ITO,
    PANEL,
    axis_width,
    charted,
    compact,
    is_shown,
    shorten,
    shown_labels,
)
from closerlook.report.figures.subjects import for_each_task
from closerlook.report.layer_values import BEST, LayerValue, best_values, layer_values
from closerlook.report.measures import title_of
from closerlook.report.tables import count_of
from closerlook.study.readings import Results
from closerlook.study.registry import measure

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.report.figures.style import ChartType

SIDE, ROW = 220, 30
COLUMNS = ["measure", "encoder", "state", "layer", "value", "low", "high", "best"]


def encoder_colours(encoders: Sequence[str]) -> dict[str, str]:
    """A colour for each encoder; grey for those beyond the palette."""
    return {name: OKABE_ITO[at] if at < len(OKABE_ITO) else GREY for at, name in enumerate(encoders)}


@for_each_task
def by_layer(results: Results, task: str) -> Figure | None:
    """The main measures of all encoders on a task by layer; the best value of each measure is marked."""
    import altair as alt
    import pandas as pd

    values = layer_values(results, task)
    if len({one.layer for one in values}) < 2:
        return None
    best = best_values(values)
    rows = [_layer_row(one, best[one.measure]) for one in values]
    data = compact(pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(COLUMNS[4:7], "float64")))
    encoders = list(dict.fromkeys(data.encoder))
    colours = encoder_colours(encoders)
    states = [state for state in (PRETRAINED_STATE, *STATES) if (data.state == state).any()]
    panels = [_layer_panel(name, data[data.measure == name], colours, states) for name in dict.fromkeys(data.measure)]
    is_tuned = len(states) > 1
    lines = " Dashed lines: before fine-tuning; solid lines: after it." if is_tuned else ""
    seeds = "; with several seeds of fine-tuning, ± one standard deviation over seeds" if is_tuned else ""
    found = "; ".join(f"best {title_of(name)}: {shown_best(one)}" for name, one in best.items())
    return Figure(
        title=f"All encoders by layer: {shorten(task)}",
        caption=f"{found[0].upper()}{found[1:]}. {BEST}: the highest accuracy, the fewest clusters, the largest "
        f"distance.{lines} Vertical bars: ± one standard deviation of accuracy, 95% interval of other measures{seeds}.",
        alt=f"Line charts of {count_of(len(encoders), 'encoder')} by layer. {found}.",
        encoder="",
        task=task,
        data=data,
        chart=alt.concat(*panels, columns=3, spacing=24).add_params(shown_labels(encoders)),
        toggles=tuple(Toggle(name, colours[name], True) for name in encoders),
        layout=Layout(axis=56, least=230, most=520),
    )


def shown_best(one: LayerValue) -> str:
    """A value with its place, for captions."""
    return f"{one.measurement.value:.{measure(one.measure).digits}f} ({one.where})"


def _layer_row(one: LayerValue, best: LayerValue) -> tuple[object, ...]:
    low, high = one.measurement.bounds
    return one.measure, one.encoder, one.state, one.layer, one.measurement.value, low, high, one == best


def _layer_panel(name: str, data: pd.DataFrame, colours: dict[str, str], states: list[str]) -> ChartType:
    import altair as alt

    layers = sorted(int(layer) for layer in data.layer.unique())
    ticks = layers if len(layers) <= 9 else layers[:: -(-len(layers) // 9)]
    dashes = alt.Scale(domain=states, range=[[4, 3], [1, 0]] if len(states) == 2 else [[1, 0]])
    encoded = alt.Scale(domain=list(colours), range=list(colours.values()))
    legend = alt.Legend(title=None, symbolType="stroke", symbolOpacity=1, orient="bottom", columns=3)
    axis = alt.Axis(values=ticks, format="d", grid=False, title="layer")
    scale = alt.Scale(domain=[layers[0], max(layers[-1], layers[0] + 1)], nice=False, padding=8)
    base = (
        charted()
        .transform_filter(f"datum.measure == '{name}'")
        .transform_filter(is_shown("encoder"))
        .encode(
            x=alt.X("layer:Q", axis=axis, scale=scale),
            color=alt.Color("encoder:N", scale=encoded, sort=None, legend=legend),
        )
    )
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False, padding=16), axis=alt.Axis(tickCount=5))
    tooltip = [
        *(alt.Tooltip("encoder:N"), alt.Tooltip("state:N"), alt.Tooltip("layer:Q", format="d")),
        *(alt.Tooltip(f"{column}:Q", format=".3~f") for column in ("value", "low", "high")),
    ]
    dash = alt.StrokeDash("state:N", scale=dashes, legend=None)
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.4).encode(y=alt.Y("low:Q"), y2="high:Q")
    line = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=dash)
    dots = base.mark_point(size=36, filled=True, opacity=1).encode(y=y, tooltip=tooltip)
    star = base.transform_filter("datum.best").mark_text(text=BEST, size=18, dy=-11).encode(y=y)
    title = alt.Title(title_of(name), fontSize=12)
    parts = [bars, line, dots, star] if data.low.notna().any() else [line, dots, star]
    return alt.layer(*parts).properties(width=PANEL, height=SIDE, title=title)


@for_each_task
def side_by_side(results: Results, task: str) -> Figure | None:
    """All encoders, or all methods, that were fine-tuned on a task: the main measures before and after."""
    import altair as alt
    import pandas as pd

    similarity = f"similarity_{results.train_test}"
    rows: list[tuple[object, ...]] = []
    for name in ("accuracy", "n_clusters", "mean_relative_minimum_distance", similarity):
        for encoder in results.encoders:
            values = before_after(results, name, encoder, task, measure(name).scale)
            if all(value is not None for value in values):
                rows += [
                    (name, encoder, state, value.value)
                    for state, value in zip(STATES, values, strict=True)
                    if value is not None
                ]
    data = compact(pd.DataFrame(rows, columns=["measure", "encoder", "state", "value"]))
    encoders = list(dict.fromkeys(data.encoder))
    if len(encoders) < 2:
        return None
    measures = list(dict.fromkeys(data.measure))
    colours = encoder_colours(encoders)
    panels = [_row_panel(name, colours) for name in measures]
    ends = "; ".join(
        f"{shorten(encoder)}: {title_of(measures[0])} {' to '.join(f'{value:.1f}' for value in part.value)}"
        for encoder, part in data[data.measure == measures[0]].groupby("encoder", sort=False)
    )
    return Figure(
        title=f"All encoders and methods: {shorten(task)}",
        caption=f"{len(encoders)} encoders or methods of fine-tuning on one task; last layer, mean over seeds. Rings: "
        "before fine-tuning; dots: after.",
        alt=f"Values before and after fine-tuning, a row for each encoder. {ends}.",
        encoder="",
        task=task,
        data=data,
        chart=alt.concat(*panels, columns=2, spacing=28),
        layout=Layout(axis=axis_width(encoders), least=290, most=510),
    )


def _row_panel(name: str, colours: dict[str, str]) -> ChartType:
    import altair as alt

    order = list(colours)
    y = alt.Y(
        "encoder:N", scale=alt.Scale(domain=order), title=None, axis=alt.Axis(ticks=False, domain=False, grid=False)
    )
    colour = alt.Color("encoder:N", scale=alt.Scale(domain=order, range=list(colours.values())), legend=None)
    x = alt.X("value:Q", scale=alt.Scale(zero=False, padding=9), axis=alt.Axis(title=title_of(name), tickCount=5))
    base = charted().transform_filter(f"datum.measure == '{name}'").encode(y=y, color=colour)
    tooltip = [alt.Tooltip("encoder:N"), alt.Tooltip("state:N"), alt.Tooltip("value:Q", format=".3~f")]
    line = base.mark_line(strokeWidth=2, opacity=0.6).encode(x=x, detail="encoder:N")
    rings = base.transform_filter("datum.state == 'before'").mark_point(size=110, strokeWidth=2, opacity=1)
    dots = base.transform_filter("datum.state == 'after'").mark_point(size=60, filled=True, opacity=1)
    ends = (part.encode(x=x, tooltip=tooltip) for part in (rings, dots))
    return alt.layer(line, *ends).properties(width=PANEL, height=max(2, len(order)) * ROW)

"""The figure of point similarity (CKA, Procrustes, RSA, shared neighbours) of each layer to the pretrained encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from closerlook.report.figures.figure import Figure, Layout, Toggle
from closerlook.report.figures.style import GREY, OKABE_ITO, PANEL, charted, compact, is_shown, shorten, shown_labels
from closerlook.report.figures.subjects import for_each_encoder
from closerlook.report.shape import POINT_SIMILARITIES
from closerlook.report.tables import count_of
from closerlook.study.readings import Results, own_ends

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.report.figures.style import ChartType

SIDE = 190


@for_each_encoder
def similarity_by_layer(results: Results, encoder: str) -> Figure | None:
    """The point similarities of each layer to the pretrained encoder, with a line for each task."""
    import altair as alt

    data = similarity_data(results, encoder)
    if data.empty:
        return None
    tasks = [task for task in results.tasks if task in set(data.task)]
    colours = {task: OKABE_ITO[at] if at < len(OKABE_ITO) else GREY for at, task in enumerate(tasks)}
    measures = [measure for measure in POINT_SIMILARITIES if (data.measure == measure).any()]
    last = data[data.layer == data.layer.max()]
    at_last_layer = "; ".join(
        f"{POINT_SIMILARITIES[measure]} {part.value.min():.2f} to {part.value.max():.2f}"
        for measure in measures
        if len(part := last[last.measure == measure])
    )
    seeds = int(data.seeds.max())
    layers = sorted(int(layer) for layer in data.layer.unique())
    panels = [_panel(measure, colours, layers, min(0.0, float(data.value.min()))) for measure in measures]
    return Figure(
        title=f"Point similarity to the pretrained encoder{_by_layer(layers)}: {shorten(encoder)}",
        caption="Similarity of the vectors of the train examples after fine-tuning to their vectors in the pretrained "
        "encoder"
        + (f", mean of {seeds} seeds; vertical bars: range over seeds" if seeds > 1 else "")
        + ". Each measure is 1 if one space is a rotated and scaled copy of the other.",
        alt=f"{'Line charts' if len(layers) > 1 else 'Dot plots'} of {count_of(len(layers), 'layer')} and "
        f"{count_of(len(tasks), 'task')}. At the last layer: {at_last_layer}.",
        encoder=encoder,
        task="",
        data=data,
        chart=alt.concat(*panels, columns=4, spacing=24).add_params(shown_labels(tasks)),
        toggles=tuple(Toggle(task, colours[task], True) for task in tasks),
        layout=Layout(axis=44, least=210, most=420),
    )


def _by_layer(layers: list[int]) -> str:
    """The part of the title that says which layers the figure shows."""
    return ", by layer" if len(layers) > 1 else f" at layer {layers[0]}"


def similarity_data(results: Results, encoder: str) -> pd.DataFrame:
    """One row for each measure, task and layer: value (mean over seeds), low, high, number of seeds."""
    import pandas as pd

    parts = []
    for measure in POINT_SIMILARITIES:
        rows = results.of(f"{measure}_original")
        rows = rows[(rows.encoder == encoder) & own_ends(rows) & rows.value.notna()]
        parts.append(rows.assign(measure=measure))
    groups = pd.concat(parts).groupby(["measure", "task", "layer"], sort=False)
    data = groups.agg(
        value=("value", "mean"), low=("value", "min"), high=("value", "max"), seeds=("seed", "nunique")
    ).reset_index()
    order = {name: at for at, name in enumerate([*POINT_SIMILARITIES, *results.tasks])}
    data = data.sort_values(
        ["measure", "task", "layer"],
        key=lambda column: column if column.name == "layer" else column.map(order),
        ignore_index=True,
    )
    return compact(data)


def _panel(measure: str, colours: dict[str, str], layers: list[int], low: float) -> ChartType:
    import altair as alt

    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    legend = alt.Legend(title=None, symbolType="stroke", symbolOpacity=1, orient="bottom", columns=5)
    ticks = layers if len(layers) <= 9 else layers[:: -(-len(layers) // 9)]
    base = (
        charted()
        .transform_filter(f"datum.measure == '{measure}'")
        .transform_filter(is_shown("task"))
        .encode(
            x=alt.X(
                "layer:Q",
                axis=alt.Axis(values=ticks, format="d", grid=False, title="layer"),
                scale=alt.Scale(domain=[layers[0], max(layers[-1], layers[0] + 1)], nice=False, padding=8),
            ),
            color=alt.Color("task:N", scale=scale, sort=None, legend=legend),
        )
    )
    y = alt.Y("value:Q", title=None, scale=alt.Scale(domain=[low, 1], nice=False), axis=alt.Axis(tickCount=5))
    tooltip = [
        alt.Tooltip("task:N"),
        alt.Tooltip("layer:Q", format="d"),
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("value", "low", "high")),
    ]
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(y=alt.Y("low:Q"), y2="high:Q")
    line = base.mark_line(strokeWidth=2).encode(y=y)
    dots = base.mark_point(size=36, filled=True, opacity=1).encode(y=y, tooltip=tooltip)
    title = alt.Title(POINT_SIMILARITIES[measure], fontSize=12)
    return alt.layer(bars, line, dots).properties(width=PANEL, height=SIDE, title=title)

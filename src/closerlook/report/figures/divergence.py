"""The figure of two similarities over all spaces of a study: of two halves of train, and of train and test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from closerlook.report.before_after import PRETRAINED_STATE, STATES
from closerlook.report.divergence import split_half_data
from closerlook.report.figures.figure import Figure, Layout
from closerlook.report.figures.style import AFTER, BEFORE, GREY, WIDTH, charted, compact
from closerlook.report.figures.subjects import for_the_study
from closerlook.study.readings import Results

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from closerlook.report.figures.style import ChartType

HEIGHT = 380


@for_the_study
def halves_and_test(results: Results) -> Figure | None:
    """Each space as a dot. x: the similarity of two halves of train. y: the similarity of train and test."""
    data = split_half_data(results)
    if len(data) < 3:
        return None
    is_tuned = bool(results.all_runs)
    data = compact(data if is_tuned else data.assign(state=PRETRAINED_STATE))
    test = results.test_split
    below = int((data.similarity < data.halves).sum())
    return Figure(
        title=f"Train–{test} similarity against the similarity of two halves of train",
        caption=f"{len(data)} spaces, one for each measured encoder, task, layer and seed"
        f"{', before fine-tuning (rings) and after (dots)' if is_tuned else ''}. On the dashed line, train is as "
        f"similar to {test} as its halves are to each other; below it, train is less similar.",
        alt=f"Scatter plot of {len(data)} spaces; in {below} of them train is less similar to {test} than its halves "
        "are to each other.",
        encoder="",
        task="",
        data=data,
        chart=_scatter(data, test, STATES if is_tuned else (PRETRAINED_STATE,)),
        layout=Layout(most=620),
    )


def _scatter(data: pd.DataFrame, test_split: str, states: Sequence[str]) -> ChartType:
    import altair as alt

    least = min(float(data.halves.min()), float(data.similarity.min()))
    low = max(-1.0, math.floor(least * 5 - 0.25) / 5)  # a round number of fifths with some room
    scale = alt.Scale(domain=[low, 1], nice=False, clamp=True)
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1) if len(states) > 1 else None
    stroke, fill = (
        channel("state:N", scale=alt.Scale(domain=list(states), range=[before, AFTER][: len(states)]), legend=legend)
        for channel, before in ((alt.Stroke, BEFORE), (alt.Fill, "transparent"))
    )
    names = [alt.Tooltip(f"{name}:N") for name in ("encoder", "task", "state")]
    numbers = [alt.Tooltip(f"{name}:Q", format="d") for name in ("layer", "seed")]
    values = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("halves", "folds", "similarity")]
    dots = (
        charted()
        .mark_point(size=70, strokeWidth=2, opacity=0.9)
        .encode(
            x=alt.X("halves:Q", scale=scale, axis=_axis("similarity of two random halves of train")),
            y=alt.Y("similarity:Q", scale=scale, axis=_axis(f"similarity of train and {test_split}")),
            stroke=stroke,
            fill=fill,
            tooltip=[*names, *numbers, *values],
        )
    )
    single = charted().transform_aggregate(rows="count()")
    line = single.mark_rule(color=GREY, strokeDash=[4, 4], strokeWidth=1.2)
    ends = (alt.XDatum(low, scale=scale), alt.YDatum(low, scale=scale))
    equal = line.encode(x=ends[0], x2=alt.X2Datum(1), y=ends[1], y2=alt.Y2Datum(1))
    return alt.layer(equal, dots).properties(width=WIDTH, height=HEIGHT)


def _axis(title: str) -> alt.Axis:
    import altair as alt

    return alt.Axis(title=title, tickCount=6, format="~f", grid=True)

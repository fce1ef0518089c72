"""Figures of similarities with true and shuffled labels: between train and test, and between the train splits of two
encoder states."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from closerlook.report.before_after import STATES, before_after, highest_p, known_p, null_of, nulls_of, over_seeds
from closerlook.report.figures.figure import Figure, Layout
from closerlook.report.figures.style import AFTER, BEFORE, GREY, PANEL, axis_width, charted, compact, shorten
from closerlook.report.figures.subjects import for_each_encoder
from closerlook.report.nulls import COMPARED_WITH
from closerlook.report.tables import count_of
from closerlook.study.readings import Measurement, Results, null_names

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.report.figures.style import ChartType

ROW = 34
BAND = 2.0
"""Half the width of the band for shuffled labels, in standard deviations."""

TRAIN_TEST = "train and test"
COMPARISONS = (TRAIN_TEST, *COMPARED_WITH)
"""The values of column comparison: one panel of the figure each, in this order."""


class Row(TypedDict):
    """One similarity, and the similarity with shuffled labels (null)."""

    comparison: str
    task: str
    state: str
    value: float
    low: float | None
    high: float | None
    null_mean: float | None
    null_low: float | None
    null_high: float | None
    p: float | None


COLUMNS = list(Row.__annotations__)


@for_each_encoder
def similarity_and_null(results: Results, encoder: str) -> Figure | None:
    """The similarities of an encoder's spaces on every task, each with a band for shuffled labels."""
    import altair as alt

    data = null_data(results, encoder)
    if data.null_mean.isna().all():
        return None
    comparisons = [comparison for comparison in COMPARISONS if (data.comparison == comparison).any()]
    tasks = list(dict.fromkeys(data.task))
    low = max(-1.0, min(-0.5, float(data[["value", "low", "null_low"]].min().min())))
    titles = {comparison: _panel_title(comparison, results.test_split) for comparison in comparisons}
    panels = [_panel(data, comparison, title, tasks, low) for comparison, title in titles.items()]
    above = int((data.value > data.null_high).sum())
    known = int(data.null_mean.notna().sum())
    return Figure(
        title=f"Similarity with true and shuffled labels: {shorten(encoder)}",
        caption=f"Last layer, {count_of(len(tasks), 'task')}. "
        f"{'Rings: before fine-tuning; dots: after. ' if results.all_runs else ''}Grey: similarity with "
        f" shuffled labels, mean ± {BAND:g} standard deviations. Lines: 95% bootstrap interval over labels "
        "(with several seeds, ± one standard deviation)"
        + ("; other encoders: ± one standard deviation over them." if "encoder" in comparisons else "."),
        alt=f"Dot plots of the similarity by task: {'; '.join(titles.values())}. {above} of {known} similarities are "
        "above the band for shuffled labels.",
        encoder=encoder,
        task="",
        data=data,
        chart=panels[0] if len(panels) == 1 else alt.concat(*panels, columns=3, spacing=28),
        layout=Layout(axis=axis_width(tasks), least=290, most=510),
    )


def _panel_title(comparison: str, test_split: str) -> str:
    """Which two spaces a panel compares: 'train vs. test', 'train vs. random weights' …"""
    short = {TRAIN_TEST: test_split, "original": "pretrained"}
    return f"train vs. {short.get(comparison) or COMPARED_WITH[comparison]}"


def null_data(results: Results, encoder: str) -> pd.DataFrame:
    """One row for each similarity; null_low and null_high bound the band; p is the highest p-value over seeds."""
    import pandas as pd

    rows: list[Row] = []
    for task in results.tasks:
        name = f"similarity_{results.train_test}"
        values, nulls = before_after(results, name, encoder, task), nulls_of(results, name, encoder, task)
        p_values = highest_p(results, f"similarity_p_value_{results.train_test}", encoder, task)
        for state, value, null, p in zip(STATES, values, nulls, p_values, strict=True):
            if value is not None:
                rows.append(_row((TRAIN_TEST, task, state), value, null, p))
        for other in COMPARED_WITH:
            for state in STATES:
                row = _row_of_other(results, other, encoder, task, state)
                if row is not None:
                    rows.append(row)
    numbers = dict.fromkeys(COLUMNS[3:], "float64")
    data = pd.DataFrame(rows, columns=COLUMNS).astype(numbers)
    order = {comparison: at for at, comparison in enumerate(COMPARISONS)}
    return compact(
        data.sort_values("comparison", key=lambda column: column.map(order), kind="stable", ignore_index=True)
    )


def _row_of_other(results: Results, other: str, encoder: str, task: str, state: str) -> Row | None:
    """The similarity of a train space to another one (see COMPARED_WITH), with its null and its p-value."""
    names = (f"similarity_{other}", *null_names(f"similarity_{other}"), f"similarity_p_value_{other}")
    values, means, deviations, p = (
        results.compared_with(name, encoder, task, tuned=state == "after") for name in names
    )
    value = over_seeds(values)
    if value is None:
        return None
    highest = max(known_p(names[-1], p), default=None)
    return _row((other, task, state), value, null_of(means, deviations), highest)


def _row(place: tuple[str, str, str], value: Measurement, null: Measurement | None, p: float | None) -> Row:
    """A similarity with its null. place: comparison, task and state."""
    low, high = value.bounds
    middle = None if null is None else null.value
    reach = 0.0 if null is None else BAND * (null.sd or 0.0)
    return Row(
        comparison=place[0],
        task=place[1],
        state=place[2],
        value=value.value,
        low=low,
        high=high,
        null_mean=middle,
        null_low=None if middle is None else middle - reach,
        null_high=None if middle is None else middle + reach,
        p=p,
    )


def _panel(data: pd.DataFrame, comparison: str, title: str, tasks: list[str], low: float) -> ChartType:
    import altair as alt

    scale = alt.Scale(domain=[low, 1], clamp=True, nice=False)
    axis = alt.Axis(title="similarity", values=[tick for tick in (-1, -0.5, 0, 0.5, 1) if tick >= low], format="~f")
    y = alt.Y("task:N", scale=alt.Scale(domain=tasks), title=None, axis=alt.Axis(ticks=False, domain=False, grid=False))
    colours = alt.Scale(domain=list(STATES), range=[BEFORE, AFTER])
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1)
    fill = alt.Fill("state:N", scale=alt.Scale(domain=list(STATES), range=["transparent", AFTER]), legend=legend)
    tooltip = [alt.Tooltip("task:N"), alt.Tooltip("state:N")]
    tooltip += [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("value", "low", "high")]
    tooltip += [alt.Tooltip("null_mean:Q", title="shuffled labels", format=".3f"), alt.Tooltip("p:Q", format=".4f")]
    base = charted().transform_filter(f"datum.comparison == '{comparison}'").encode(y=y)
    states = data[data.comparison == comparison].state.nunique()
    offset = alt.YOffset("state:N", scale=alt.Scale(domain=list(STATES), paddingOuter=0.6))
    place = {"yOffset": offset} if states > 1 else {}
    x = alt.X("value:Q", scale=scale, axis=axis)
    band = base.mark_rule(color=GREY, strokeWidth=9, opacity=0.3).encode(
        x=alt.X("null_low:Q", scale=scale, axis=axis), x2="null_high:Q", **place
    )
    whisker = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(
        x=alt.X("low:Q", scale=scale), x2="high:Q", color=alt.Color("state:N", scale=colours, legend=legend), **place
    )
    dots = base.mark_point(strokeWidth=2, opacity=1, size=70).encode(
        x=x, stroke=alt.Stroke("state:N", scale=colours, legend=legend), fill=fill, tooltip=tooltip, **place
    )
    heading = alt.Title(title, fontSize=12)
    return alt.layer(band, whisker, dots).properties(width=PANEL, height=max(2, len(tasks)) * ROW, title=heading)

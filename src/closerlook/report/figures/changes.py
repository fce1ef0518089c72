"""Before and after fine-tuning: accuracy and train–test similarity and clusters (Tables 2, 3 and 7 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from closerlook.report.before_after import STATES, before_after
from closerlook.report.figures.figure import Figure, Layout
from closerlook.report.figures.style import AFTER, BEFORE, PANEL, axis_width, charted, compact, shorten
from closerlook.report.figures.subjects import for_each_encoder
from closerlook.report.tables import count_of
from closerlook.study.readings import Results

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.report.figures.style import ChartType

ROW = 34
SPREAD = (
    "Lines: ± one standard deviation of the accuracy; 95% bootstrap interval of the similarity (with several seeds, "
    "± one standard deviation)."
)
ENDS = {"low": "lower end of the line", "high": "upper end of the line"}
SEPARABLE = "A value of 1 means linearly separable. Logarithmic axis."


@for_each_encoder
def accuracy_change(results: Results, encoder: str) -> Figure | None:
    """Accuracy and train–test similarity of an encoder on every task, before and after."""
    similarity = f"similarity_{results.train_test}"
    data = change_data(results, encoder, {"accuracy": ("accuracy", 100.0), "similarity": (similarity, 1.0)})
    if data.empty or not results.all_runs:
        return None
    panels = []
    if (data.measure == "accuracy").any():
        panels.append(_dumbbells(data[data.measure == "accuracy"], "accuracy, %"))
    if (data.measure == "similarity").any():
        panels.append(_dumbbells(data[data.measure == "similarity"], "train–test similarity"))
    return _figure("Accuracy and train–test similarity", encoder, data, panels, SPREAD)


@for_each_encoder
def clusters_change(results: Results, encoder: str) -> Figure | None:
    """Clusters per label of an encoder on every task, before and after; the value is 1 if linearly separable."""
    data = change_data(results, encoder, {"clusters": ("n_clusters", 1.0)})
    labels = {task: results.before("n_labels", encoder, task) for task in results.tasks}
    counts = {task: count.value for task, count in labels.items() if count is not None}
    data = data[data.task.isin(counts)]
    if data.empty or not results.all_runs:
        return None
    data = data.assign(clusters=data.value, labels=data.task.map(counts))
    data = compact(data.assign(value=data.clusters / data.labels, low=float("nan"), high=float("nan")))
    panels = [_dumbbells(data, "clusters per label", log=True)]
    return _figure("Clusters per label", encoder, data, panels, SEPARABLE)


def change_data(results: Results, encoder: str, measures: dict[str, tuple[str, float]]) -> pd.DataFrame:
    """One row for each value: measure, task, state, value, low, high. measures: title -> (measure name, scale)."""
    import pandas as pd

    rows: list[tuple[str, str, str, float, float | None, float | None]] = []
    for name, (measure, scale) in measures.items():
        for task in results.tasks:
            values = before_after(results, measure, encoder, task, scale)
            rows += [
                (name, task, state, value.value, *value.bounds)
                for state, value in zip(STATES, values, strict=True)
                if value is not None
            ]
    columns = ["measure", "task", "state", "value", "low", "high"]
    return compact(pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[3:], "float64")))


def _figure(title: str, encoder: str, data: pd.DataFrame, panels: list[ChartType], explanation: str) -> Figure:
    import altair as alt

    tasks = list(dict.fromkeys(data.task))
    changes = []
    for (measure, task), part in data.groupby(["measure", "task"], sort=False):
        values = " to ".join(f"{value:.2f}" for value in part.value)
        shown = "clusters per label" if measure == "clusters" else measure
        changes.append(f"{shorten(str(task))}: {shown} {values}")
    tuned = (data.state == "after").any()
    return Figure(
        title=f"{title}: {shorten(encoder)}",
        caption=f"Last layer, {count_of(len(tasks), 'task')}. Rings: before fine-tuning"
        + (f"; dots: after. {explanation}" if tuned else f". {explanation}"),
        alt=f"{title} before and after fine-tuning. {'; '.join(changes)}.",
        encoder=encoder,
        task="",
        data=data,
        chart=panels[0] if len(panels) == 1 else alt.hconcat(*panels, spacing=28),
        layout=Layout(axis=axis_width(tasks), least=290, most=510),
    )


def _dumbbells(data: pd.DataFrame, title: str, *, log: bool = False) -> ChartType:
    import altair as alt

    tasks = list(dict.fromkeys(data.task))
    widest = max(2.0, float(data.value.max()) * 1.1)
    scale = alt.Scale(type="log", domain=[0.93, widest], nice=False) if log else alt.Scale(zero=False)
    axis = alt.Axis(title=title, tickCount=5, format="~g" if log else "~f")
    y = alt.Y("task:N", scale=alt.Scale(domain=tasks), title=None, axis=alt.Axis(ticks=False, domain=False, grid=False))
    states = [state for state in STATES if (data.state == state).any()]
    colours = alt.Scale(domain=states, range=[BEFORE, AFTER][: len(states)])
    offset = alt.YOffset("state:N", scale=alt.Scale(domain=list(STATES), paddingOuter=0.6))
    x = alt.X("value:Q", scale=scale, axis=axis)
    tooltip = [alt.Tooltip("task:N"), alt.Tooltip("state:N"), alt.Tooltip("value:Q", title=title, format=".3~f")]
    if data.low.notna().any():
        tooltip += [alt.Tooltip(f"{name}:Q", title=title, format=".3~f") for name, title in ENDS.items()]
    base = charted().transform_filter(f"datum.measure == '{data.measure.iloc[0]}'").encode(y=y)
    line = base.mark_line(color=BEFORE, strokeWidth=1.5, opacity=0.6).encode(x=x, detail="task:N")
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1)
    colour = alt.Color("state:N", scale=colours, legend=legend)
    fill = alt.Fill(
        "state:N", scale=alt.Scale(domain=states, range=["transparent", AFTER][: len(states)]), legend=legend
    )
    whisker = base.mark_rule(strokeWidth=1.5, opacity=0.5).encode(
        x=alt.X("low:Q", scale=scale), x2="high:Q", color=colour, yOffset=offset
    )
    dots = base.mark_point(strokeWidth=2, opacity=1).encode(
        x=x,
        stroke=alt.Stroke("state:N", scale=colours, legend=legend),
        fill=fill,
        size=alt.condition("datum.state == 'after'", alt.value(60), alt.value(130)),
        tooltip=tooltip,
    )
    parts = [whisker, dots.encode(yOffset=offset)] if data.low.notna().any() else [line, dots]
    return alt.layer(*parts).properties(width=PANEL, height=max(2, len(tasks)) * ROW)

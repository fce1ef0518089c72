"""Similarities beside what chance gives: of train and test, and to the original, other seeds, weights and encoders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from closerlook.report.chance import BESIDE
from closerlook.report.ends import STATES, chances, ends, highest_p, mean_of
from closerlook.report.figures.figure import Figure, Layout
from closerlook.report.figures.style import AFTER, BEFORE, GREY, PANEL, axis_width, charted, compact, shorten
from closerlook.report.tables import Measured, over_seeds
from closerlook.study.readings import Results, null_names

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

ROW = 34
BAND = 2.0
"""Standard deviations to each side of what chance gives."""

TRAIN_TEST = "train with test"
TITLES = {TRAIN_TEST: TRAIN_TEST} | {what: f"with {title}" for what, title in BESIDE.items()}
COLUMNS = ["comparison", "task", "state", "value", "low", "high", "chance", "chance_low", "chance_high", "p"]


def similarity_and_chance(results: Results, encoder: str) -> Figure | None:
    """The similarities of an encoder's spaces on every task, each over the band of its null."""
    import altair as alt

    data = chance_data(results, encoder)
    if data.chance.isna().all():
        return None
    kinds = [kind for kind in TITLES if (data.comparison == kind).any()]
    tasks = list(dict.fromkeys(data.task))
    low = max(-1.0, min(-0.5, float(data[["value", "low", "chance_low"]].min().min())))
    panels = [_panel(data, kind, tasks, low) for kind in kinds]
    above = int((data.value > data.chance_high).sum())
    known = int(data.chance.notna().sum())
    return Figure(
        kind="chance",
        title=f"Similarity beside chance: {shorten(encoder)}",
        caption=f"Last layer, {len(tasks)} task{'' if len(tasks) == 1 else 's'}. Rings: before fine-tuning; dots: "
        f"after. Grey: what labels paired at random give, the mean ± {BAND:g} standard deviations. Lines: 95% "
        "interval over labels, or standard deviation where several were compared.",
        alt=f"Dot plots of {', '.join(TITLES[kind] for kind in kinds)}, by task: {above} of {known} similarities lie "
        "above the band that chance gives.",
        encoder=encoder,
        task="",
        data=data,
        chart=panels[0] if len(panels) == 1 else alt.concat(*panels, columns=3, spacing=28),
        layout=Layout(axis=axis_width(tasks), least=290, most=510),
    )


def chance_data(results: Results, encoder: str) -> pd.DataFrame:
    """Tidy: comparison, task, state, value, low, high, chance with its band, p (of several the highest)."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for task in results.tasks:
        name = f"similarity_train_{results.compared}"
        alike, by_chance = ends(results, name, encoder, task), chances(results, name, encoder, task)
        levels = highest_p(results, f"similarity_p_value_train_{results.compared}", encoder, task)
        for state, one, null, p in zip(STATES, alike, by_chance, levels, strict=True):
            if one is not None:
                rows.append({"comparison": TRAIN_TEST, "task": task} | _row(state, one, null, p))
        for what in BESIDE:
            for state in STATES:
                found = _beside(results, what, encoder, task, tuned=state == "after")
                if found is not None:
                    rows.append({"comparison": what, "task": task} | _row(state, *found))
    numbers = dict.fromkeys(COLUMNS[3:], float)
    data = pd.DataFrame(rows, columns=COLUMNS).astype(numbers)
    order = {kind: at for at, kind in enumerate(TITLES)}
    return compact(data.sort_values("comparison", key=lambda one: one.map(order), kind="stable", ignore_index=True))


def _beside(
    results: Results, what: str, encoder: str, task: str, *, tuned: bool
) -> tuple[Measured, Measured | None, float | None] | None:
    """A similarity to something else, what chance gives, and p."""
    names = (f"similarity_{what}", *null_names(f"similarity_{what}"), f"similarity_p_value_{what}")
    value, mean, sd, p = (results.beside(name, encoder, task, tuned=tuned) for name in names)
    found = over_seeds(value)
    if found is None:
        return None
    middle = mean_of(mean)
    null = None if middle is None else Measured(middle, mean_of(sd))
    return found, null, max((one.value for one in p), default=None)


def _row(state: str, one: Measured, null: Measured | None, p: float | None) -> dict[str, Any]:
    low, high = one.bounds
    row: dict[str, Any] = {"state": state, "value": one.value, "low": low, "high": high, "p": p}
    if null is not None:
        reach = BAND * (null.sd or 0.0)
        row |= {"chance": null.value, "chance_low": null.value - reach, "chance_high": null.value + reach}
    return row


def _panel(data: pd.DataFrame, kind: str, tasks: list[str], low: float) -> alt.LayerChart:
    import altair as alt

    scale = alt.Scale(domain=[low, 1], clamp=True, nice=False)
    axis = alt.Axis(title="similarity", values=[one for one in (-1, -0.5, 0, 0.5, 1) if one >= low], format="~f")
    y = alt.Y("task:N", scale=alt.Scale(domain=tasks), title=None, axis=alt.Axis(ticks=False, domain=False, grid=False))
    colours = alt.Scale(domain=list(STATES), range=[BEFORE, AFTER])
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1)
    fill = alt.Fill("state:N", scale=alt.Scale(domain=list(STATES), range=["transparent", AFTER]), legend=legend)
    tooltip = [alt.Tooltip("task:N"), alt.Tooltip("state:N")]
    tooltip += [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("value", "low", "high")]
    tooltip += [alt.Tooltip("chance:Q", title="by chance", format=".3f"), alt.Tooltip("p:Q", format=".4f")]
    base = charted().transform_filter(f"datum.comparison == '{kind}'").encode(y=y)
    states = data[data.comparison == kind].state.nunique()
    place: dict[str, Any] = {}
    if states > 1:
        place["yOffset"] = alt.YOffset("state:N", scale=alt.Scale(domain=list(STATES), paddingOuter=0.6))
    x = alt.X("value:Q", scale=scale, axis=axis)
    band = base.mark_rule(color=GREY, strokeWidth=9, opacity=0.3).encode(
        x=alt.X("chance_low:Q", scale=scale, axis=axis), x2="chance_high:Q", **place
    )
    whisker = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(
        x=alt.X("low:Q", scale=scale), x2="high:Q", color=alt.Color("state:N", scale=colours, legend=legend), **place
    )
    dots = base.mark_point(strokeWidth=2, opacity=1, size=70).encode(
        x=x, stroke=alt.Stroke("state:N", scale=colours, legend=legend), fill=fill, tooltip=tooltip, **place
    )
    title = alt.Title(TITLES[kind], fontSize=12)
    return alt.layer(band, whisker, dots).properties(width=PANEL, height=max(2, len(tasks)) * ROW, title=title)

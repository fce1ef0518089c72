"""The style of the figures of a page: the style of all charts, and what only figures with buttons need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from closerlook.plots.style import (
    AFTER,
    BEFORE,
    GREY,
    HEIGHT,
    OKABE_ITO,
    PANEL,
    WIDTH,
    axis_width,
    compact,
    shorten,
)

if TYPE_CHECKING:
    import altair as alt

    from closerlook.plots.style import ChartType

__all__ = [
    "AFTER",
    "BEFORE",
    "GREY",
    "HEIGHT",
    "OKABE_ITO",
    "PANEL",
    "ROWS",
    "SHOWN",
    "WIDTH",
    "ChartType",
    "axis_width",
    "charted",
    "compact",
    "is_shown",
    "shorten",
    "shown_labels",
    "step_axis",
    "step_scale_text",
]


def step_axis(steps: list[int], title: str = "training step") -> alt.X:
    """The axis of training steps: logarithmic (with 0) if several are in the first twentieth, otherwise linear."""
    import altair as alt

    last, close = max(steps, default=0), _is_logarithmic(steps)
    scale = alt.Scale(type="symlog", constant=1, nice=False) if close else alt.Scale(nice=False)
    ticks = [0, *(10**power for power in range(7) if 10**power <= last), last] if close else None
    if ticks and len(ticks) > 2 and ticks[-2] > last / 3:
        del ticks[-2]
    axis = alt.Axis(title=title, grid=False, format=",d", **({"values": ticks} if ticks else {"tickCount": 6}))
    return alt.X("step:Q", scale=scale, axis=axis)


def _is_logarithmic(steps: list[int]) -> bool:
    """Whether the axis of training steps is logarithmic: several steps are in the first twentieth."""
    last = max(steps, default=0)
    return last > 20 and sum(0 < step <= last / 20 for step in steps) >= 2


def step_scale_text(steps: list[int]) -> str:
    """A sentence for a caption, if the axis of training steps is logarithmic; otherwise empty."""
    return "The axis of training steps is logarithmic. " if _is_logarithmic(steps) else ""


def shown_labels(labels: list[str]) -> alt.Parameter:
    """The parameter that says which labels are drawn; the buttons of the page set it."""
    import altair as alt

    return alt.param(name="shown", value=labels)


def charted() -> alt.Chart:
    """A chart of the rows of a figure, which are added at the end: altair would copy them in every step."""
    import altair as alt

    return alt.Chart(alt.NamedData(ROWS))


def is_shown(column: str) -> str:
    """The Vega expression that keeps the rows whose label, task or layer the reader has chosen. column: its column."""
    return f"indexof(shown, toString(datum.{column})) >= 0"


ROWS = "rows"
SHOWN = is_shown("label")

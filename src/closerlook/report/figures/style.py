"""The style that all figures share: fonts, axes, and colours that colour-blind readers can distinguish."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    ChartType = alt.Chart | alt.LayerChart | alt.FacetChart | alt.ConcatChart | alt.HConcatChart

OKABE_ITO = ("#0072B2", "#009E73", "#56B4E9", "#D55E00", "#E69F00", "#CC79A7")
"""The palette of Okabe and Ito without black and yellow, which are invisible on a dark or a light page."""

GREY = "#8A9099"
BEFORE, AFTER = "#8A9099", "#0072B2"
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
WIDTH, HEIGHT = 460, 300
PANEL = 280
LABEL_LIMIT = 130

CONFIG: dict[str, object] = {
    "font": FONT,
    "background": "white",
    "padding": 8,
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelColor": "#3c434d",
        "titleColor": "#1d232b",
        "gridColor": "#e7e9ec",
        "domainColor": "#aab0b8",
        "tickColor": "#aab0b8",
        "labelLimit": LABEL_LIMIT,
        "titlePadding": 8,
        "tickSize": 4,
    },
    "legend": {
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelColor": "#1d232b",
        "titleColor": "#3c434d",
        "labelLimit": LABEL_LIMIT,
        "symbolStrokeWidth": 2,
    },
    "title": {
        "anchor": "start",
        "fontSize": 13,
        "fontWeight": 600,
        "color": "#1d232b",
        "subtitleFontSize": 11,
        "subtitleColor": "#59616c",
        "offset": 12,
        "limit": 900,
    },
    "text": {"color": "#1d232b"},
}


def shorten(text: str, most: int = 60) -> str:
    """A name for a title, shortened in the middle if it is long."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]}…{text[-most // 4 :]}"


def compact(frame: pd.DataFrame, digits: int = 5) -> pd.DataFrame:
    """The table with numbers rounded to `digits` significant digits: more are invisible and make the page large."""
    import numpy as np

    frame = frame.copy()
    for name in frame.select_dtypes([np.floating]):
        values = frame[name].to_numpy()
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(np.where((values == 0) | np.isnan(values), 1, values)))))
        frame[name] = np.round(values * scale) / scale
    return frame


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


def axis_width(names: Iterable[str], limit: int = LABEL_LIMIT) -> int:
    """The approximate width in pixels of the longest name next to an axis. limit: where longer names are cut off."""
    return round(min(limit, 6.6 * max(map(len, names), default=0))) + 22


def charted() -> alt.Chart:
    """A chart of the rows of a figure, which are added at the end: altair would copy them in every step."""
    import altair as alt

    return alt.Chart(alt.NamedData(ROWS))


def is_shown(column: str) -> str:
    """The Vega expression that keeps the rows whose label, task or layer the reader has chosen. column: its column."""
    return f"indexof(shown, toString(datum.{column})) >= 0"


ROWS = "rows"
SHOWN = is_shown("label")

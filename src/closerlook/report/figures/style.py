"""How all figures look: fonts, colours that the colour-blind can tell apart, axes; and numbers short enough to send."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

OKABE_ITO = ("#0072B2", "#009E73", "#56B4E9", "#D55E00", "#E69F00", "#CC79A7")
"""The palette of Okabe and Ito, less black and yellow, which vanish on a dark or a light page."""

GREY = "#8A9099"
BEFORE, AFTER = "#8A9099", "#0072B2"
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
WIDTH, HEIGHT = 460, 300
PANEL = 280
LABEL_LIMIT = 130

CONFIG: dict[str, Any] = {
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
    """A name cut in the middle, for titles."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]}…{text[-most // 4 :]}"


def compact(frame: pd.DataFrame, digits: int = 5) -> pd.DataFrame:
    """The frame with its numbers cut to so many significant digits: more cannot be seen, and make the page large."""
    import numpy as np

    frame = frame.copy()
    for name in frame.select_dtypes("floating"):
        values = frame[name].to_numpy()
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(np.where((values == 0) | np.isnan(values), 1, values)))))
        frame[name] = np.round(values * scale) / scale
    return frame


def step_axis(steps: list[int], title: str = "updates") -> alt.X:
    """The axis of updates: linear, or logarithmic with room for 0 where the first steps lie close together."""
    import altair as alt

    last = max(steps, default=0)
    close = last > 20 and sum(0 < step <= last / 20 for step in steps) >= 2
    scale = alt.Scale(type="symlog", constant=1, nice=False) if close else alt.Scale(nice=False)
    ticks = [0, *(10**power for power in range(7) if 10**power <= last), last] if close else None
    if ticks and len(ticks) > 2 and ticks[-2] > last / 3:
        del ticks[-2]
    axis = alt.Axis(title=title, grid=False, format=",d", **({"values": ticks} if ticks else {"tickCount": 6}))
    return alt.X("step:Q", scale=scale, axis=axis)


def shown_labels(labels: list[str]) -> alt.Parameter:
    """Which labels are drawn: a parameter that the page's buttons set."""
    import altair as alt

    return alt.param(name="shown", value=labels)


def axis_width(names: Iterable[str]) -> int:
    """About how many pixels the longest of those names takes beside an axis."""
    return round(min(LABEL_LIMIT, 6.6 * max(map(len, names), default=0))) + 22


def charted() -> alt.Chart:
    """A chart of the figure's rows; they are added when all is drawn, since altair would copy them at every turn."""
    import altair as alt

    return alt.Chart(alt.NamedData(ROWS))


ROWS = "rows"
SHOWN = "indexof(shown, datum.label) >= 0"

"""The style that all charts share: fonts, axes, and colours that colour-blind readers can distinguish."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    ChartType = alt.Chart | alt.LayerChart | alt.FacetChart | alt.ConcatChart | alt.HConcatChart | alt.VConcatChart

OKABE_ITO = ("#0072B2", "#009E73", "#56B4E9", "#D55E00", "#E69F00", "#CC79A7")
"""The palette of Okabe and Ito without black and yellow, which are invisible on a dark or a light page."""

MANY = (
    *("#4c78a8", "#9ecae9", "#f58518", "#ffbf79", "#54a24b", "#88d27a", "#b79a20", "#f2cf5b", "#439894", "#83bcb6"),
    *("#e45756", "#ff9d98", "#79706e", "#bab0ac", "#d67195", "#fcbfd2", "#b279a2", "#d6a5c9", "#9e765f", "#d8b5a5"),
)
"""Vega's palette `tableau20`, for more labels than the palette above has colours; further labels repeat it."""

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


def theme() -> dict[str, Any]:
    """The style of the report page as an altair theme; charts have the style of your own theme until you enable it.

    >>> import altair
    >>> enabled = altair.theme.register("closerlook", enable=False)(theme)
    """
    return {"config": CONFIG}


def heading(text: str, subtitle: str = "") -> alt.Title:
    """The title of a chart, at its left."""
    import altair as alt

    return alt.Title(text, anchor="start", subtitle=subtitle or alt.Undefined)


def inline(frame: pd.DataFrame) -> alt.InlineData:
    """A table as data of a chart; altair refuses data frames of more than 5,000 rows."""
    import altair as alt

    return alt.InlineData(values=records(frame))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as JSON values."""
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records", double_precision=15))
    return rows


def label_colours(labels: Sequence[str]) -> alt.Scale:
    """The colour of each label: colours for colour-blind readers for up to six labels, then twenty that repeat."""
    import altair as alt

    palette = OKABE_ITO if len(labels) <= len(OKABE_ITO) else MANY
    return alt.Scale(domain=list(labels), range=[palette[at % len(palette)] for at in range(len(labels))])


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


def axis_width(names: Iterable[str], limit: int = LABEL_LIMIT) -> int:
    """The approximate width in pixels of the longest name next to an axis. limit: where longer names are cut off."""
    return round(min(limit, 6.6 * max(map(len, names), default=0))) + 22

"""A figure: its data, its chart, and the words that stand in for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from closerlook.report.figures.style import CONFIG, ROWS

if TYPE_CHECKING:
    import pandas as pd

LINE = 100
"""Characters in a line under a figure's title."""


@dataclass(frozen=True)
class Toggle:
    """Something of a figure that can be shown or hidden: its name, its colour, whether it is shown at first.

    remark: stands beside the name. told: what the pointer finds out.
    """

    name: str
    colour: str
    on: bool
    remark: str = ""
    told: str = ""


@dataclass(frozen=True)
class Layout:
    """What the page must know to fit a figure to its width.

    axis: pixels that labels and title of the vertical axis take. least: the width of a panel below which panels go
    under each other. most: the width over which it does not grow. square: whether its height follows its width.
    planes: for each panel drawn in a plane, its parameters (centre x, centre y, reach) and the layer it shows.
    """

    axis: int = 60
    least: int = 240
    most: int = 1040
    square: bool = False
    planes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, eq=False)
class Figure:
    """One drawing. kind: which figure; encoder, task: of what. alt: what it shows, in words.

    toggles: what the page lets its reader show and hide. data: everything drawn, one row for each mark.
    """

    kind: str
    title: str
    caption: str
    alt: str
    encoder: str
    task: str
    data: pd.DataFrame
    chart: Any
    toggles: tuple[Toggle, ...] = ()
    layout: Layout = Layout()

    def specification(self, *, titled: bool = False) -> dict[str, Any]:
        """The chart in Vega-Lite, with its data and the looks that all figures share; titled: for a file of its own."""
        spec: dict[str, Any] = self.chart.to_dict(validate=False)
        spec["datasets"] = {ROWS: json.loads(self.data.to_json(orient="records", double_precision=15))}
        spec["config"] = CONFIG
        spec["description"] = self.alt
        if titled:
            spec["title"] = {
                "text": self.title,
                "subtitle": wrap(self.caption.replace("Shown first: ", "Shown: "), LINE),
            }
        return spec

"""A figure: its data, its chart, and the text that describes it."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from closerlook.plots.style import CONFIG, records
from closerlook.report.figures.style import ROWS

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.report.figures.style import ChartType

LINE = 100
"""Characters in a line of the caption of a figure in a file."""

Specification = dict[str, Any]
"""A chart in Vega-Lite: JSON."""


@dataclass(frozen=True)
class Toggle:
    """A label, task or layer that the reader can show or hide: its name, its colour, and whether it is shown at first.

    remark: shown next to the name. tooltip: shown when the pointer is on the button.
    """

    name: str
    colour: str
    on: bool
    remark: str = ""
    tooltip: str = ""


@dataclass(frozen=True)
class Layout:
    """How the page fits a figure to its width.

    axis: pixels for the labels and the title of the vertical axis. least: the panel width below which panels are put
    below each other. most: the largest width of a panel. square: whether its height follows its width. planes: for each
    panel in a plane, the suffix of its parameters (centre x, centre y, reach) and the layer it shows. labelled_once:
    whether panels next to each other have the same rows, so that only the first shows their names.
    """

    axis: int = 60
    least: int = 240
    most: int = 1040
    square: bool = False
    planes: tuple[tuple[str, int], ...] = ()
    labelled_once: bool = False


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure of an encoder and a task (empty: of several). alt: a description for those who cannot see it.

    tasks: the tasks it is about, if `task` is not the name of one. data: everything that is drawn, one row for each
    mark; of columns `encoder` and `task`, the page draws the rows that the reader chooses. toggles: what the reader can
    show and hide. kind: the name of the figure in the outline of the page. reading: one sentence that says how to read
    it. The outline fills in both.
    """

    title: str
    caption: str
    alt: str
    encoder: str
    task: str
    data: pd.DataFrame
    chart: ChartType
    toggles: tuple[Toggle, ...] = ()
    layout: Layout = Layout()
    kind: str = ""
    reading: str = ""
    tasks: tuple[str, ...] = ()

    def specification(self, *, titled: bool = False) -> Specification:
        """The chart in Vega-Lite, with its data and the shared style; titled: with title and caption, for a file."""
        spec: Specification = self.chart.to_dict(validate=False)
        spec["datasets"] = {ROWS: records(self.data)}
        spec["config"] = CONFIG
        spec["description"] = self.alt
        if titled:
            spec["title"] = self.heading()
        return spec

    def heading(self) -> Specification:
        """The title and the caption as a title of Vega-Lite, for a chart that has no buttons."""
        caption = self.caption.replace("Shown at first: ", "Shown: ")
        return {"text": self.title, "subtitle": wrap(caption, LINE)}

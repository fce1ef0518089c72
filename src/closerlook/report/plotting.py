"""`plot_study`: a figure of the report page as an altair chart, for notebooks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.errors import InputError
from closerlook.plots.style import inline
from closerlook.report.figures import Figure
from closerlook.report.figures.style import ROWS
from closerlook.report.outline import draw_kind, figure_entries
from closerlook.report.writing import read_study, show_names
from closerlook.study.readings import Results, index_results
from closerlook.study.results import COLUMNS
from closerlook.study.study import CompletedStudy

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from closerlook.report.figures.style import ChartType

EXPRESSIONS = ("filter", "expr")
"""The entries of a Vega-Lite chart whose texts are expressions, in which parameters may occur."""


def plot_study(
    table: pd.DataFrame | CompletedStudy | str | Path,
    kind: str,
    *,
    encoder: str | None = None,
    task: str | None = None,
) -> ChartType:
    """A figure of a study's report page as an altair chart; several figures of that kind are put below each other.

    table: the table of results (`load_results`), the folder of a study, or what `run_study` returns. encoder, task: use
    only the rows of this encoder, and of this task. kind: 'accuracy', 'clusters', 'distances', 'paths', 'similarity',
    'label-distances' and so on; an unknown kind is an error that lists all of them, and so does the page about plots.
    What the buttons of the page show or hide is as it is when the page is opened.

    >>> from closerlook import run_study
    >>> plan = {"encoders": "bert-tiny", "tasks": "toy-question", "tuning": None, "layers": "last"}
    >>> study = run_study(plan | {"measures": ["clusters", "distances"]}, "my-study", workers=1)
    >>> chart = plot_study(study, "label-distances", task="toy-question")
    >>> chart.save("distances.svg")
    """
    import altair as alt

    kinds = {entry.kind: entry for entry in figure_entries()}
    if kind not in kinds:
        raise InputError(f"kind is {kind!r}; expected one of {', '.join(kinds)}")
    results = _selected(table, {"encoder": encoder, "task": task})
    figures = draw_kind(kinds[kind], results)
    if not figures:
        raise InputError(f"kind is {kind!r}; the table has no rows for such a figure{_of(encoder, task)}")
    charts = [to_chart(figure) for figure in figures]
    if len(charts) == 1:
        return charts[0]
    below: alt.VConcatChart = alt.vconcat(*charts).resolve_scale(
        color="independent", shape="independent", size="independent", opacity="independent"
    )
    return below


def _selected(table: pd.DataFrame | CompletedStudy | str | Path, chosen: Mapping[str, str | None]) -> Results:
    """The results of a study, only of the chosen encoder and task."""
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        missing = [name for name in COLUMNS if name not in table]
        if missing:
            raise InputError(f"the table has no column {missing[0]!r}; expected a table of results (load_results)")
        rows, manifest = show_names(table), None
    else:
        rows, manifest = read_study(table.out if isinstance(table, CompletedStudy) else table)
    for name, value in chosen.items():
        if value is not None:
            known = [str(other) for other in rows[name].dropna().unique() if other]
            if value not in known:
                raise InputError(f"{name} {value!r} requested; the table has {', '.join(known)}")
            rows = rows[rows[name] == value]
    return index_results(rows, manifest)


def _of(encoder: str | None, task: str | None) -> str:
    return (f" of {encoder}" if encoder else "") + (f" on {task}" if task else "")


def to_chart(figure: Figure) -> ChartType:
    """A figure as a chart with its own data and title, and without parameters, so that it can be composed."""
    import altair as alt

    spec = figure.chart.to_dict(validate=False)
    values = {param["name"]: json.dumps(param["value"]) for param in spec.pop("params", [])}
    chart: Any = alt.Chart.from_dict(_with_values(_without_data(spec), values) | {"data": {"name": ROWS}})
    chart.data = inline(figure.data)
    chart.title = alt.Title(anchor="start", **figure.heading())
    return chart  # type: ignore[no-any-return]


def _without_data(part: Any) -> Any:
    """A chart whose parts all take the data of the whole."""
    if isinstance(part, dict):
        return {name: _without_data(value) for name, value in part.items() if name not in ("data", "$schema", "config")}
    return [_without_data(value) for value in part] if isinstance(part, list) else part


def _with_values(part: Any, values: Mapping[str, str], name: str = "") -> Any:
    """A chart in which each parameter is replaced by its value: two charts with equal parameters cannot be composed."""
    if isinstance(part, dict):
        return {key: _with_values(value, values, key) for key, value in part.items()}
    if isinstance(part, list):
        return [_with_values(value, values, name) for value in part]
    if isinstance(part, str) and name in EXPRESSIONS and values:
        names = "|".join(map(re.escape, values))
        return re.sub(rf"(?<![\w.'\"])({names})(?!\w)", lambda found: values[found[1]], part)
    return part

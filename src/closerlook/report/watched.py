"""The page of a training that `GeometryCallback` measured: each task and layer over the steps."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.escaping import show_name
from closerlook.report.figures.figure import Figure, Layout
from closerlook.report.figures.style import OKABE_ITO, charted, compact, shorten, step_axis, step_scale_text
from closerlook.report.page import Group, chart_data, figure_panel, make_entry, render
from closerlook.report.tables import Column, Table, Value, text_columns
from closerlook.report.watched_file import Training, read_trainings
from closerlook.report.writing import write_figures
from closerlook.representations.atomic import atomic_write

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.report.figures.style import ChartType

log = logging.getLogger("closerlook.report")


@dataclass(frozen=True)
class Shown:
    """How a measure is shown. title: with its unit. scale: from the file to the page. digits: decimals in tables."""

    title: str
    scale: float = 1.0
    digits: int = 3


MEASURES = {
    "held_out_accuracy": Shown("held-out accuracy, %", 100.0, 1),
    "clusters": Shown("clusters", digits=0),
    "relative_minimum_distance": Shown("distance to nearest label, radii"),
    "similarity": Shown("spatial similarity to the start"),
}
"""The measures that are drawn over the steps and are in the tables, in this order."""

SETTINGS = (
    *("split", "held_out_split", "n", "held_out_n", "labels", "pool", "every", "max_points", "max_share", "seed"),
    *("encoder", "version"),
)
"""The fields of a line that describe what was measured and how."""


@dataclass(frozen=True, eq=False)
class TaskPart:
    """What the page shows about one task."""

    task: str
    anchor: str
    figures: Group
    tables: list[Table]


def write_watched(path: str | Path, *, figures: bool = True) -> tuple[Path, Training]:
    """Write the page of a results file of `GeometryCallback` next to it, and return the page's path and what it shows.

    figures: also write SVG, PNG, PDF and CSV files, to a folder named after the file.
    """
    file = Path(path).expanduser().absolute()
    trainings = read_trainings(file)
    training = trainings[-1]
    if len(trainings) > 1:
        log.warning("%s has %d trainings; the page shows the last one", file.name, len(trainings))
    drawn = [steps_figure(training.rows, task) for task in training.tasks]
    page = file.with_suffix(".html")
    with atomic_write(page) as stream:
        stream.write(make_page(file.name, training, len(trainings), drawn).encode())
    if figures:
        write_figures(drawn, figures_folder(page))
    return page, training


def figures_folder(page: Path) -> Path:
    """The folder for the figure files of a page."""
    return page.with_name(f"{page.stem}-figures")


def make_page(name: str, training: Training, trainings: int, figures: list[Figure]) -> str:
    """The page as HTML. name: of the file. trainings: how many the file has. figures: one for each task."""
    parts, specs = [], {}
    for number, (task, figure) in enumerate(zip(training.tasks, figures, strict=True)):
        spec = f"spec-{number}"
        panel, specs[spec] = figure_panel(figure, spec)
        entry = make_entry("", show_name(task), [panel])
        group = Group(f"steps-{number}", "Over the training", [""], [show_name(task)], [entry], READING)
        tables = [steps_table(training, task, number)]
        parts.append(TaskPart(show_name(task), f"task-{number}", group, tables))
    return render(
        "watched.html.j2",
        title=show_name(name),
        figure_folder=show_name(figures_folder(Path(name)).name),
        trainings=trainings,
        sentences=summary(training),
        overview=overview_table(training),
        alarms=alarms_table(training),
        parts=parts,
        settings=settings_table(training),
        subjects={"task": [part.task for part in parts]},
        data=chart_data(specs, [part.figures for part in parts]),
    )


READING = "Each line is one layer; read it from left to right, as the training goes on."
"""How to read the figure of a task."""


# ---- texts and tables ----


def summary(training: Training) -> list[str]:
    """What was measured and what it cost, in sentences."""
    rows = training.rows
    steps = sorted(rows.step.unique())
    last = rows.iloc[-1]
    cost = rows.drop_duplicates("step").seconds.sum()
    share = "" if isnan(last.share) else f", {100 * last.share:.1f} % of the time of the rest of the training"
    sentences = [
        f"{len(steps)} measurements, from step {steps[0]:,} to step {steps[-1]:,}; they took {cost:.1f} s{share}."
    ]
    if last.skipped:
        sentences.append(
            f"{int(last.skipped)} measurements were skipped, to stay within the allowed share of the time."
        )
    resumed = [step for step in sorted(rows.start_step.unique()) if step > 0]
    sentences += [
        f"The training was continued at step {step:,}: similarity is to this step from there on." for step in resumed
    ]
    return sentences


def overview_table(training: Training) -> Table:
    """One row for each task and layer: the measures at the first and the last step."""
    spaces: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in training.records():
        spaces.setdefault((row["task"], row["layer"]), []).append(row)
    rows: list[tuple[Value, ...]] = []
    for (task, layer), own in spaces.items():
        values = [_scaled(name, end[name]) for name in MEASURES for end in (own[0], own[-1])]
        rows.append((show_name(task), layer, *values))
    columns = [Column(state, shown.title, shown.digits) for shown in MEASURES.values() for state in ("start", "end")]
    note = "Held-out accuracy: of the nearest label mean. Distances: mean over labels, in RMS radii of the space."
    heads = (*text_columns("task"), Column("layer"), *columns)
    return Table("overview", "Start and end of the training", note, heads, tuple(rows)).without_empty()


def alarms_table(training: Training) -> Table:
    """The alarms, in the order of the training."""
    rows = tuple(
        (
            *(alarm["step"], show_name(alarm["task"]), alarm["layer"]),
            *(MEASURES[alarm["measure"]].title, _scaled(alarm["measure"], alarm["value"])),
        )
        for alarm in training.alarms()
    )
    note = (
        "Held-out accuracy: lower than its highest value so far (one-sided exact McNemar test on the same examples). "
        "Similarity: lower than that of two halves of the examples at the start."
    )
    columns = (Column("step"), *text_columns("task"), Column("layer"), *text_columns("measure"), Column("value"))
    return Table("alarms", "Alarms: a measure fell by more than its noise", note, columns, rows)


def steps_table(training: Training, task: str, number: int) -> Table:
    """All measurements of a task."""
    values = tuple(
        (
            *(row["step"], row["layer"]),
            *(_scaled(name, row[name]) for name in MEASURES),
            *(bool(row["separable"]), row["conflicts"], row["undecided"]),
        )
        for row in training.records(task)
    )
    columns = (
        Column("step"),
        Column("layer"),
        *(Column(shown.title, digits=shown.digits) for shown in MEASURES.values()),
        Column("linearly separable", left=True),
        Column("conflicts"),
        Column("undecided merges"),
    )
    note = "Conflicts: examples whose vector equals that of an example with a different label."
    return Table(f"steps-{number}", "All measurements", note, columns, values).without_empty()


def settings_table(training: Training) -> Table:
    """The settings of the callback for each task."""
    rows: list[tuple[Value, ...]] = []
    for task in training.tasks:
        last = training.records(task)[-1]
        rows += [(show_name(task), name, show_name(_setting(last[name]))) for name in SETTINGS if name in last]
    return Table(
        "settings",
        "Settings",
        "The settings of the callback for each task.",
        text_columns("task", "setting", "value"),
        tuple(rows),
    )


def _setting(value: Any) -> str:
    return "none" if value is None or (isinstance(value, float) and isnan(value)) else str(value)


def _scaled(name: str, value: float | None) -> float | int | None:
    """A value as the page shows it; None if it is unknown."""
    if value is None or isnan(value):
        return None
    shown = MEASURES[name]
    return round(value) if shown.digits == 0 else shown.scale * float(value)


# ---- the figure ----


def steps_figure(rows: pd.DataFrame, task: str) -> Figure:
    """The measures of a task over the steps, one line for each layer."""
    import altair as alt

    data = compact(_long(rows[rows.task == task]))
    steps = sorted(data.step.unique().tolist())
    charts = [
        _panel_chart(data, name, shown.title, steps) for name, shown in MEASURES.items() if (data.measure == name).any()
    ]
    return Figure(
        title=shorten(show_name(task)),
        caption=f"One line for each layer. {step_scale_text(steps)}{'Rings: an alarm.' if data.alarm.any() else ''}",
        alt=f"Measures of {show_name(task)} over the steps of the training, for each layer.",
        encoder="",
        task=show_name(task),
        data=data,
        chart=alt.hconcat(*charts, spacing=28),
        layout=Layout(axis=58, least=200, most=300),
        kind="steps",
    )


def _long(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each mark: measure, step, layer, value, and whether it raised an alarm."""
    import pandas as pd

    parts = [
        pd.DataFrame(
            {
                "measure": name,
                "step": rows.step,
                "layer": rows.layer,
                "value": shown.scale * rows[name].astype(float),
                "alarm": [name in alarms for alarms in rows.alarms],
            }
        )
        for name, shown in MEASURES.items()
    ]
    return pd.concat(parts, ignore_index=True).dropna(subset=["value"])


def _panel_chart(data: pd.DataFrame, measure: str, title: str, steps: list[int]) -> ChartType:
    import altair as alt

    own, layers = data[data.measure == measure], sorted(data.layer.unique().tolist())
    few = len(layers) <= len(OKABE_ITO)
    scale = alt.Scale(domain=layers, range=list(OKABE_ITO[: len(layers)])) if few else alt.Scale(scheme="viridis")
    kind = "O" if few else "Q"
    colour = alt.Color(f"layer:{kind}", scale=scale, legend=alt.Legend(title="layer", orient="top"))
    base = charted().transform_filter(f"datum.measure == '{measure}'")
    y = alt.Y("value:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=title, tickCount=5))
    tooltip = [alt.Tooltip(name) for name in ("step:Q", "layer:O")]
    tooltip += [alt.Tooltip("value:Q", title=title, format=".3~f")]
    x = step_axis(steps)
    line = base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=30)).encode(
        x=x, y=y, color=colour, detail="layer:N", tooltip=tooltip
    )
    if not own.alarm.any():
        plain: ChartType = line.properties(width=200, height=220)
        return plain
    ring = (
        base.transform_filter("datum.alarm")
        .mark_point(size=160, shape="circle", filled=False, strokeWidth=2, color="#D55E00")
        .encode(x=x, y=y, tooltip=tooltip)
    )
    layered: ChartType = alt.layer(line, ring).properties(width=200, height=220)
    return layered

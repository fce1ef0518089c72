"""The page of a comparison of two encoders: summary, layers, labels and examples of each task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from closerlook.differences.difference import Difference, records
from closerlook.escaping import show_all, show_name, show_text
from closerlook.report.figures.figure import Figure, Layout
from closerlook.report.figures.style import AFTER, BEFORE, charted, compact, shorten
from closerlook.report.page import Group, chart_data, figure_panel, make_entry, render
from closerlook.report.tables import Column, Table, Value, text_columns
from closerlook.representations.atomic import atomic_write

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.report.figures.style import ChartType

MOST_EXAMPLES = 20
"""Rows of each table of examples on the page; the Python object has all of them."""

LONGEST_TEXT = 300
"""Characters of an example's text on the page."""

PANELS = {
    "accuracy": "probe accuracy, %",
    "clusters": "clusters",
    "minimum_distance": "distance to nearest label, radii",
    "similarity": "spatial similarity to before",
}
"""The measures that are drawn over layers, and the titles of their axes."""


READING = "Where the blue line is away from the grey line, this layer has changed."
"""How to read the figure of a task."""


@dataclass(frozen=True, eq=False)
class TaskPart:
    """What the page shows about one task."""

    task: str
    anchor: str
    sentences: list[str]
    figures: Group
    tables: list[Table]


def write_page(difference: Difference, path: str | Path) -> Path:
    """Write the page to `path`, and return the absolute path."""
    out = Path(path).expanduser().absolute()
    with atomic_write(out) as stream:
        stream.write(make_page(difference).encode())
    return out


def make_page(difference: Difference) -> str:
    """The page as HTML."""
    difference = escaped(difference)
    parts, specs = [], {}
    for number, (task, sentences) in enumerate(difference.summary().items()):
        figure, name = layers_figure(difference, task), f"spec-{number}"
        panel, specs[name] = figure_panel(figure, name)
        entry = make_entry("", task, [panel])
        group = Group(f"layers-{number}", "Layer by layer", [""], [task], [entry], READING)
        tables = [make(difference, task, number) for make in (layers_table, labels_table)]
        tables += examples_tables(difference, task, number)
        parts.append(TaskPart(task, f"task-{number}", sentences, group, [table for table in tables if table]))
    settings = Table(
        "settings",
        "Settings",
        "What was compared, and with which settings.",
        text_columns("setting", "value"),
        tuple((name, _shown(value)) for name, value in difference.settings.items()),
    )
    return render(
        "difference.html.j2",
        title=f"{difference.before} → {difference.after}",
        difference=difference,
        overview=overview_table(difference),
        parts=parts,
        settings=settings,
        subjects={"task": [part.task for part in parts]},
        data=chart_data(specs, [part.figures for part in parts]),
    )


def escaped(difference: Difference) -> Difference:
    """The same comparison with names and texts as the page shows them: no control characters, long ones cut."""
    labels, examples = difference.labels.copy(), difference.examples.copy()
    for table in (labels, examples):
        for column in {"task", "label", "nearest_before", "nearest_after", "word"} & set(table):
            table[column] = [show_name(str(name)) for name in table[column]]
    examples["text"] = [show_example(str(row["text"]), str(row["word"])) for row in records(difference.examples)]
    return replace(
        difference,
        before=show_name(difference.before),
        after=show_name(difference.after),
        settings=show_all(difference.settings),
        layers=difference.layers.assign(task=[show_name(str(task)) for task in difference.layers.task]),
        labels=labels,
        examples=examples,
    )


def show_example(text: str, word: str) -> str:
    r"""A text in one line, its lines (or the two texts of a pair) separated by a slash; of a long text, a part.

    The part begins before the first occurrence of the word.

    >>> show_example("It rains.\nIt is wet.", ""), show_example("a\0", "")
    ('It rains. / It is wet.', 'a\\x00')
    """
    line = " / ".join(show_text(part) for part in text.split("\n"))
    if len(line) <= LONGEST_TEXT:
        return line
    start = max(line.find(word) - LONGEST_TEXT // 2, 0) if word else 0
    stop = start + LONGEST_TEXT
    return f"{'… ' if start else ''}{line[start:stop]}{' …' if stop < len(line) else ''}"


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {part}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


# ---- tables ----


def overview_table(difference: Difference) -> Table:
    """One row for each task: what was gained and lost at the last layer."""
    rows: list[tuple[Value, ...]] = []
    for task in difference.tasks:
        last = difference.changes(task)
        accuracy, clusters, distance = (last[name] for name in ("accuracy", "clusters", "minimum_distance"))
        verdict = "within noise" if not accuracy.p_value <= 0.05 else "gained" if accuracy.change > 0 else "lost"
        rows.append(
            (
                task,
                *(100 * value for value in (accuracy.before, accuracy.after, accuracy.change)),
                f"{100 * accuracy.low:+.1f} to {100 * accuracy.high:+.1f}".replace("-", "−"),
                verdict,
                *(int(value) for value in (clusters.before, clusters.after)),
                *(distance.before, distance.after),
            )
        )
    columns = (
        *text_columns("task"),
        *(Column(name, "accuracy, %", 1) for name in ("before", "after")),
        Column("change", "accuracy, %", 1, signed=True),
        Column("95% interval", "accuracy, %", left=True),
        Column("verdict", left=True),
        *(Column(name, "clusters") for name in ("before", "after")),
        *(Column(name, "distance to nearest label, radii", 3) for name in ("before", "after")),
    )
    note = (
        "Last layer. Accuracy of a probe on the test split; gained and lost: McNemar's exact test on the same "
        "examples, p ≤ 0.05."
    )
    return Table("overview", "What was gained and lost, by task", note, columns, tuple(rows))


def layers_table(difference: Difference, task: str, number: int) -> Table:
    """All measures of each layer, before and after. number: of the task on the page."""
    rows: list[tuple[Value, ...]] = []
    for row in records(difference.layers):
        if row["task"] == task and row["measure"] != "labels":
            name, scale = TITLES[row["measure"]]
            values = [None if row[state] is None else scale * row[state] for state in ("before", "after", "change")]
            rows.append((row["layer"], name, *values, row["p_value"]))
    columns = (
        Column("layer"),
        *text_columns("measure"),
        *(Column(state, digits=3) for state in ("before", "after")),
        Column("change", digits=3, signed=True),
        Column("p", digits=4, p_value=True),
    )
    note = "One row for each layer and measure; change: after minus before. p: of McNemar's exact test of accuracy."
    return Table(f"layers-{number}", "Every layer", note, columns, tuple(rows))


TITLES: dict[str, tuple[str, float]] = {
    "accuracy": ("probe accuracy, %", 100.0),
    "clusters": ("clusters", 1.0),
    "separable": ("linearly separable (1: yes)", 1.0),
    "minimum_distance": ("distance to the nearest label, mean, RMS radii", 1.0),
    "similarity": ("spatial similarity to before", 1.0),
    "cka": ("CKA with before", 1.0),
    "separable_pairs": ("separable pairs of labels, %", 100.0),
    "separable_pairs_shuffled": ("separable pairs with shuffled labels, %", 100.0),
    "head_accuracy": ("accuracy of the encoder's own head on test, %", 100.0),
}
"""For each measure in the table of layers: its title, and the factor from the table to the page."""


def labels_table(difference: Difference, task: str, number: int) -> Table:
    """The labels, those that changed most first. number: of the task on the page."""
    own = [row for row in records(difference.labels) if row["task"] == task]
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (
            row["label"],
            row["n"],
            *(row[name] for name in ("before", "after", "change", "p_value")),
            row["moved"] or "within noise",
            " → ".join(dict.fromkeys([row["nearest_before"], row["nearest_after"]])),
        )
        for row in sorted(own, key=lambda row: -abs(row["change"] or 0.0))
    )
    columns = (
        *text_columns("label"),
        Column("examples"),
        *(Column(state, "distance, radii", 3) for state in ("before", "after")),
        Column("change", "distance, radii", 3, signed=True),
        Column("p", digits=4, p_value=True),
        *text_columns("moved", "nearest label"),
    )
    note = (
        "Last layer, train: the distance of each label to the nearest other label, in RMS radii of its space. p: no "
        "change, from half samples, corrected for the number of labels (Holm)."
    )
    return Table(f"labels-{number}", "Labels that moved apart or together", note, columns, rows)


def examples_tables(difference: Difference, task: str, number: int) -> list[Table]:
    """The test examples that moved most, became right, and became wrong. number: of the task on the page."""
    own = [row for row in records(difference.examples) if row["task"] == task]
    own.sort(key=lambda row: -(row["moved"] or 0.0))
    chosen = {
        "moved": ("Examples that moved most", [row for row in own if row["moved"] is not None]),
        "right": ("Examples that became right", [row for row in own if row["became"] == "right"]),
        "wrong": ("Examples that became wrong", [row for row in own if row["became"] == "wrong"]),
    }
    tables = []
    for name, (title, rows) in chosen.items():
        count = f"The first {MOST_EXAMPLES} of {len(rows):,}. " if len(rows) > MOST_EXAMPLES and name != "moved" else ""
        note = (
            f"{count}Test split, last layer. By the label of the nearest cluster of train; moved: in RMS radii. A "
            "slash separates the texts of a pair."
        )
        shown = ("text", "word", "label", "nearest_before", "nearest_after", "moved")
        tables.append(
            Table(
                f"{name}-{number}",
                title,
                note,
                (*text_columns("text", "word", "label", "before", "after"), Column("moved")),
                tuple(tuple(row[column] for column in shown) for row in rows[:MOST_EXAMPLES]),
            ).without_empty()
        )
    return tables


# ---- the figure ----


def layers_figure(difference: Difference, task: str) -> Figure:
    """The main measures over the layers, before and after."""
    import altair as alt

    own = difference.layers[(difference.layers.task == task) & difference.layers.measure.isin(list(PANELS))]
    data = compact(_long(own))
    charts = [
        _panel_chart(data, measure, title) for measure, title in PANELS.items() if (data.measure == measure).any()
    ]
    return Figure(
        title=f"{shorten(task)}: {shorten(difference.before)} and {shorten(difference.after)}",
        caption="Every layer. Grey: before; blue: after. Vertical lines: 95% interval of the change in accuracy.",
        alt=f"Measures of {task} over the layers, before and after.",
        encoder="",
        task=task,
        data=data,
        chart=alt.hconcat(*charts, spacing=28),
        layout=Layout(axis=58, least=200, most=300),
    )


def _long(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each mark: measure, layer, state, value, low, high."""
    import pandas as pd

    scale = rows.measure.map({"accuracy": 100.0}).fillna(1.0)
    parts = []
    for state in ("before", "after"):
        part = pd.DataFrame(
            {"measure": rows.measure, "layer": rows.layer, "state": state, "value": scale * rows[state]}
        )
        is_after = state == "after"
        for end in ("low", "high"):
            part[end] = scale * (rows.before + rows[end]) if is_after else float("nan")
        parts.append(part)
    return pd.concat(parts, ignore_index=True).dropna(subset=["value"])


def _panel_chart(data: pd.DataFrame, measure: str, title: str) -> ChartType:
    import altair as alt

    own = data[data.measure == measure]
    states = [state for state in ("before", "after") if (own.state == state).any()]
    colour = alt.Color(
        "state:N",
        scale=alt.Scale(domain=states, range=[BEFORE if state == "before" else AFTER for state in states]),
        legend=alt.Legend(title=None, orient="top"),
    )
    base = charted().transform_filter(f"datum.measure == '{measure}'")
    x = alt.X("layer:O", axis=alt.Axis(title="layer", labelAngle=0, grid=False))
    is_log = measure == "clusters" and own.value.max() > 4 * own.value.min()
    scale = alt.Scale(type="log", nice=False) if is_log else alt.Scale(zero=False)
    y = alt.Y("value:Q", scale=scale, axis=alt.Axis(title=title, tickCount=5))
    tooltip = [alt.Tooltip("layer:O"), alt.Tooltip("state:N"), alt.Tooltip("value:Q", title=title, format=".3~f")]
    line = base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=50)).encode(
        x=x, y=y, color=colour, tooltip=tooltip
    )
    if not own.low.notna().any():
        plain: ChartType = line.properties(width=200, height=220)
        return plain
    whisker = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.5, opacity=0.5)
        .encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q", color=colour)
    )
    layered: ChartType = alt.layer(whisker, line).properties(width=200, height=220)
    return layered

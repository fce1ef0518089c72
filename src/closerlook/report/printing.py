"""The tables of a page as text: Markdown, LaTeX, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Literal

from closerlook.report import beyond, facts, probing, published
from closerlook.report.labels import labels_table
from closerlook.report.tables import Measured, Remark, Table, Term, Value
from closerlook.study.findings import judge_results
from closerlook.study.readings import Results

LONG = ("labels",)
"""Tables with so many rows that a terminal shows them only when asked."""

Format = Literal["text", "markdown", "latex", "csv"]


def all_tables(results: Results) -> list[Table]:
    """Every table of a study's page that has rows, in its order."""
    tables = [
        facts.encoders_table(results),
        facts.tasks_table(results),
        probing.findings_table(judge_results(results)),
        probing.summary_table(results),
        probing.accuracy_table(results),
        published.published_accuracy(results),
        probing.clusters_table(results),
        published.published_clusters(results),
        probing.distance_table(results),
        probing.cross_table(results),
        published.published_cross(results),
        probing.layers_table(results),
        *(table for part in beyond.parts(results) for table in part.tables),
        labels_table(results),
    ]
    return [table for table in tables if table]


def write_tables(tables: Sequence[Table], form: Literal["markdown", "latex", "csv"]) -> str:
    """Those tables, one after the other, in a format."""
    write = {"markdown": to_markdown, "latex": to_latex, "csv": to_csv}[form]
    return "\n".join(write(table) for table in tables)


def to_markdown(table: Table) -> str:
    """A table in Markdown, its title over it and its note under it."""
    lines = [f"**{_markdown(table.title)}**", ""]
    lines.append(_bars(table.titles()))
    lines.append("|" + "|".join(":--" if column.left else "--:" for column in table.columns) + "|")
    lines += [_bars(row) for row in table.shown()]
    return "\n".join([*lines, "", *([_markdown(table.note), ""] if table.note else [])])


def _bars(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_markdown(cell) for cell in cells) + " |"


def _markdown(text: str) -> str:
    for character in "\\|*_<>[]`":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "→": r"$\rightarrow$",
    "×": r"$\times$",
    "−": "$-$",
    "≤": r"$\leq$",
    "✓": r"$\checkmark$",
    "†": r"$\dagger$",
    "√": r"$\surd$",
    "²": r"$^2$",
    "–": "--",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
"""Characters that LaTeX takes for something else, or lacks."""


def to_latex(table: Table) -> str:
    """A table in LaTeX, with the rules of booktabs."""
    form = "".join("l" if column.left else "r" for column in table.columns)
    caption = f"{table.title}. {table.note}" if table.note else table.title
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_latex(caption)}}}", rf"\label{{tab:{table.name}}}"]
    lines += [rf"\begin{{tabular}}{{{form}}}", r"\toprule", _ampersands(table.titles()), r"\midrule"]
    lines += [_ampersands(row) for row in table.shown()]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(_latex(cell) for cell in cells) + r" \\"


def _latex(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in " ".join(text.split()))


def to_csv(table: Table) -> str:
    """A table as CSV with all digits; what belongs to a number (sd, low, high) has columns of its own."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    parts = [_parts(column) for column in zip(*table.rows, strict=True)]
    writer.writerow(
        [f"{title} {part}".strip() for title, mine in zip(table.titles(), parts, strict=True) for part in mine]
    )
    for row in table.rows:
        writer.writerow([_part(value, part) for value, mine in zip(row, parts, strict=True) for part in mine])
    return out.getvalue()


def _parts(values: Sequence[Value]) -> list[str]:
    """Which of sd, low, high, chance and so on any of those values has; '' is the value itself."""
    measured = [value for value in values if isinstance(value, Measured)]
    rest = ("sd", "low", "high", "chance", "chance_sd", "against")
    meaning = ["meaning"] if any(isinstance(value, Term) for value in values) else []
    return ["", *(name for name in rest if any(getattr(one, name) is not None for one in measured)), *meaning]


def _part(value: Value, part: str) -> object:
    if isinstance(value, Measured):
        return getattr(value, part or "value")
    if isinstance(value, Term):
        return getattr(value, part or "name")
    if isinstance(value, Remark):
        return value.text
    return None if part else value

"""The tables of a page as text: Markdown, LaTeX, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Literal

from closerlook.escaping import csv_text
from closerlook.report.outline import sections_of, tables_of
from closerlook.report.tables import Remark, Table, Term, Value
from closerlook.study.readings import Measurement, Results

Format = Literal["text", "markdown", "latex", "csv"]


def all_tables(results: Results) -> list[Table]:
    """Every table of a study that has rows, in the order of the page."""
    return [table for section in sections_of(results) for _, table in tables_of(section, results)]


def folded_tables(results: Results) -> list[str]:
    """The names of the tables that `closerlook show` prints only on request."""
    return [
        table.name for section in sections_of(results) for entry, table in tables_of(section, results) if entry.folded
    ]


def write_tables(tables: Sequence[Table], form: Literal["markdown", "latex", "csv"]) -> str:
    """The tables as one text in the given format."""
    write = {"markdown": to_markdown, "latex": to_latex, "csv": to_csv}[form]
    return "\n".join(write(table) for table in tables)


def to_markdown(table: Table) -> str:
    """A table in Markdown, with its title above and its note below."""
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
"""Characters that have a meaning in LaTeX, or that it lacks."""


def to_latex(table: Table) -> str:
    """A table in LaTeX, with booktabs rules."""
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
    """A table as CSV with all digits; spread and null of a number (sd, low, high, null_mean) have their own columns.

    A text that a spreadsheet might take for a formula has an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    parts = [_parts(column) for column in zip(*table.rows, strict=True)]
    headings = zip(table.titles(), parts, strict=True)
    writer.writerow([csv_text(f"{title} {part}".strip()) for title, of_column in headings for part in of_column])
    for row in table.rows:
        writer.writerow([_part(value, part) for value, of_column in zip(row, parts, strict=True) for part in of_column])
    return out.getvalue()


def _parts(values: Sequence[Value]) -> list[str]:
    """The CSV columns that a table column needs: '' (the value itself), and sd, low, high … if any value has them."""
    measured = [value for value in values if isinstance(value, Measurement)]
    rest = ("sd", "low", "high", "null_mean", "null_sd", "subsampled")
    meaning = ["meaning"] if any(isinstance(value, Term) for value in values) else []
    return ["", *(name for name in rest if any(getattr(value, name) is not None for value in measured)), *meaning]


def _part(value: Value, part: str) -> object:
    if isinstance(value, Measurement):
        return getattr(value, part or "value")
    if isinstance(value, Term):
        return csv_text(getattr(value, part or "name"))
    if isinstance(value, Remark):
        return csv_text(value.text)
    if isinstance(value, str) and not part:
        return csv_text(value)
    return None if part else value

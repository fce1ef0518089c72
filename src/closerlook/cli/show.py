"""`closerlook show`: print the tables of a study's page as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from closerlook.errors import InputError

EXAMPLE = "Example: closerlook show my-study --table accuracy --format latex"


def show(
    folder: Annotated[Path, Argument(help="The folder of a finished study, or its results.parquet.")] = Path("study"),
    form: Annotated[
        Literal["text", "markdown", "latex", "csv"], Option("--format", help="The output format.")
    ] = "text",
    table: Annotated[
        list[str] | None,
        Option(
            "--table",
            "-t",
            help="Print only this table, such as accuracy; may be repeated. An unknown name prints the list of names.",
        ),
    ] = None,
) -> None:
    """Print the tables of a study: verdicts, before and after, findings, comparisons, uncertainty, shape, labels."""
    from closerlook.cli.console import note, print_table
    from closerlook.report.export import all_tables, folded_tables, write_tables
    from closerlook.report.writing import load_study

    results = load_study(folder)
    tables = {entry.name: entry for entry in all_tables(results)}
    unknown = [name for name in table or () if name not in tables]
    if unknown:
        raise InputError(f"this study has no table {unknown[0]!r}; it has {', '.join(tables) or 'none'}")
    folded = folded_tables(results) if form == "text" and not table else []
    chosen = [tables[name] for name in table or tables if name not in folded]
    if form != "text":
        sys.stdout.write(write_tables(chosen, form))
        return
    for entry in chosen:
        numbers = [title for title, column in zip(entry.titles(), entry.columns, strict=True) if not column.left]
        print_table(entry.title, entry.titles(), entry.shown(), numbers)
    if folded:
        note(f"not shown: {', '.join(folded)} (print one with --table {folded[-1]})")

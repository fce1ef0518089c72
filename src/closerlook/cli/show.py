"""`closerlook show`: the tables of a study's page, in the terminal or for a paper."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from closerlook.errors import InputError

EXAMPLE = "Example: closerlook show my-study --table accuracy --format latex"


def show(
    folder: Annotated[Path, Argument(help="The folder of a study that has run, or its results.parquet.")] = Path(
        "study"
    ),
    form: Annotated[
        Literal["text", "markdown", "latex", "csv"], Option("--format", help="How the tables are written.")
    ] = "text",
    table: Annotated[
        list[str] | None, Option("--table", "-t", help="Only this table, such as accuracy; may be repeated.")
    ] = None,
) -> None:
    """Print the tables of a study: verdicts, before and after, each finding's own, chance, certainty, shape."""
    from closerlook.cli.console import note, print_table
    from closerlook.report.printing import LONG, all_tables, write_tables
    from closerlook.report.writing import load_study

    tables = {one.name: one for one in all_tables(load_study(folder))}
    unknown = [name for name in table or () if name not in tables]
    if unknown:
        raise InputError(f"this study has no table {unknown[0]!r}; it has {', '.join(tables) or 'none'}")
    chosen = [tables[name] for name in table or tables if table or form != "text" or name not in LONG]
    if form != "text":
        sys.stdout.write(write_tables(chosen, form))
        return
    for one in chosen:
        numbers = [title for title, column in zip(one.titles(), one.columns, strict=True) if not column.left]
        print_table(one.title, one.titles(), one.shown(), numbers)
    if not table and (long := [name for name in tables if name in LONG]):
        note(f"not shown, as they are long: {', '.join(long)} (--table {long[0]})")

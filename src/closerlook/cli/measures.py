"""`closerlook measures`: list the measures that a study can write into its table."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

EXAMPLE = "Example: closerlook measures; closerlook measures nc1"


def measures(
    name: Annotated[
        str | None, Argument(help="Show one measure, by its name in a table, such as nc1 or cka_original.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List all measures: their name in results.parquet, their title in the report, and what they mean."""
    from closerlook.cli.console import print_json, print_table
    from closerlook.study.registry import MEASURES, measure

    chosen = [measure(name)] if name else list(MEASURES.values())
    if as_json:
        print_json([vars(entry) for entry in chosen])
    else:
        rows = [[entry.name, entry.title, entry.meaning] for entry in chosen]
        print_table("", ["name", "title", "meaning"], rows)

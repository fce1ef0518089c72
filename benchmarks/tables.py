"""Prints the results of benchmarks as Markdown tables, which the documentation contains."""

from __future__ import annotations


def table(title: str, columns: list[str], rows: list[list[object]], digits: int = 3) -> None:
    """Print a table under a heading; digits: significant digits of floats."""
    print(f"\n## {title}\n")
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        shown = (f"{cell:.{digits}g}" if isinstance(cell, float) else str(cell) for cell in row)
        print("| " + " | ".join(shown) + " |", flush=True)

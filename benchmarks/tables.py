"""Tables as Markdown, which is how figures get into the documentation."""

from __future__ import annotations


def table(title: str, columns: list[str], rows: list[list[object]], digits: int = 3) -> None:
    print(f"\n## {title}\n")
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        shown = (f"{cell:.{digits}g}" if isinstance(cell, float) else str(cell) for cell in row)
        print("| " + " | ".join(shown) + " |", flush=True)

"""`closerlook compare-studies`: write one page that compares two studies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

EXAMPLE = "Example: closerlook compare-studies small large --out small-and-large.html"


def compare_studies(
    first: Annotated[Path, Argument(metavar="A", help="The folder of a finished study.")],
    second: Annotated[Path, Argument(metavar="B", help="The folder of another finished study.")],
    out: Annotated[Path, Option(help="The page to write.")] = Path("comparison.html"),
) -> None:
    """Write one page that compares two studies: verdicts, settings that differ, measures and figures."""
    from closerlook.report import write_comparison

    sys.stdout.write(f"{write_comparison(first, second, out)}\n")

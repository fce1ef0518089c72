"""`closerlook combine`: combine the results of a study that was run in pieces."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument

EXAMPLE = "Example: closerlook combine whole seed-0 seed-1"


def combine(
    out: Annotated[Path, Argument(metavar="OUT", help="The folder to write, which has no results yet.")],
    folders: Annotated[
        list[Path],
        Argument(metavar="FOLDER", help="The folders of at least two pieces: finished studies or archives."),
    ],
) -> None:
    """Combine the results of a study that was run in pieces, from their tables alone.

    What several pieces have measured is taken from the first. `closerlook report OUT` then writes the page.
    """
    from closerlook.cli.console import show_notes
    from closerlook.study.combining import combine_results

    show_notes()
    sys.stdout.write(f"{combine_results(folders, out)}\n")

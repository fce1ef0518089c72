"""`closerlook data`: download corpora from their official sources."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

from closerlook.cli.registration import add_command
from closerlook.errors import InputError

DESCRIPTION = "Download the corpora of predefined tasks from their official sources."
EXAMPLE = "Example: closerlook data get pos --data ./data"

app = Typer()


def get(
    name: Annotated[str, Argument(help="Name of a predefined task; `closerlook tasks` lists them.")],
    data: Annotated[
        Path | None, Option(help="Folder for the corpora.", envvar="CLOSERLOOK_DATA", show_envvar=True)
    ] = None,
    mirror: Annotated[
        str | None, Option(help="Base URL of a mirror that serves the same paths as the official hosts.")
    ] = None,
) -> None:
    """Download the corpus of one task, check it, and store it in the data folder."""
    from closerlook.cli.console import note, progress
    from closerlook.tasks import download
    from closerlook.tasks.catalogue import find_task, load_catalogue_task

    entry = find_task(name)
    if entry.corpus.embedded:
        note(f"task {name} is built in; there is nothing to download")
        return
    if data is None:
        raise InputError("no data folder given; pass --data DIR or set CLOSERLOOK_DATA")
    with progress("downloading bytes") as show:
        files = download.download_corpus(entry, data, mirror=mirror, progress=lambda _, done, total: show(done, total))
    load_catalogue_task(name, data)
    for file in files:
        note(f"{file} is in place")


add_command(
    app,
    "get",
    get,
    example="Example: closerlook data get trec-50 --data ./data",
    after_interrupt="complete files were kept; run the same command again to download the others",
)

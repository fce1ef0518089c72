"""`closerlook data`: corpora from their official sources."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer, echo

from closerlook.errors import InputError

app = Typer(
    help="Get the corpora of the named tasks from their official sources.",
    epilog="Example: closerlook data get pos --data ./data",
    invoke_without_command=True,
)


@app.callback()
def group(context: Context) -> None:
    """Get the corpora of the named tasks from their official sources."""
    if context.invoked_subcommand is None:
        echo(context.get_help())


@app.command(epilog="Example: closerlook data get trec-50 --data ./data")
def get(
    name: Annotated[str, Argument(help="Name of the task, see `closerlook tasks`.")],
    data: Annotated[
        Path | None, Option(help="Folder to put it in.", envvar="CLOSERLOOK_DATA", show_envvar=True)
    ] = None,
    mirror: Annotated[
        str | None, Option(help="Address that serves the official paths, instead of their hosts.")
    ] = None,
) -> None:
    """Fetch one task's corpus, check it, and put it where it is looked for."""
    from closerlook.cli.console import note, progress
    from closerlook.tasks import download
    from closerlook.tasks.catalogue import find_task, load_catalogue_task

    entry = find_task(name)
    if entry.corpus.embedded:
        note(f"task {name} is built in; there is nothing to fetch")
        return
    if data is None:
        raise InputError("no data folder given; pass --data DIR or set CLOSERLOOK_DATA")
    with progress("fetching bytes") as show:
        files = download.download_corpus(
            entry, data, mirror=mirror, progress=lambda _, done, total: show(done, total or done)
        )
    load_catalogue_task(name, data)
    for file in files:
        note(f"{file} is in place")

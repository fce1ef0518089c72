"""`closerlook store`: look into, check and tidy the store of vectors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from typer import Context, Option, Typer, echo

from closerlook.errors import WorkError

app = Typer(
    help="Look into, check and tidy the store of vectors.",
    epilog="Example: closerlook store ls",
    invoke_without_command=True,
)
Where = Annotated[
    Path | None, Option("--store", help="The store's folder.", envvar="CLOSERLOOK_STORE", show_envvar=True)
]


@app.callback()
def group(context: Context) -> None:
    """Look into, check and tidy the store of vectors."""
    if context.invoked_subcommand is None:
        echo(context.get_help())


@app.command(epilog="Example: closerlook store ls --json")
def ls(
    store: Where = None, as_json: Annotated[bool, Option("--json", help="Print JSON instead of a table.")] = False
) -> None:
    """List the spaces in the store."""
    from closerlook.cli.console import bytes_text, note, print_json, print_table
    from closerlook.representations.store import Store

    kept = Store(store)
    entries = list(kept.entries())
    if as_json:
        described = (
            {"key": e.key, "bytes": e.size, "used": e.used, "n": e.n, "d": e.d} | e.provenance.to_dict()
            for e in entries
        )
        print_json(list(described))
        return
    columns = ["encoder", "task", "split", "layer", "pool", "n", "d", "size", "days ago", "key"]
    rows = []
    for e in entries:
        made, days = e.provenance, (time.time() - e.used) / 86400
        rows.append(
            [
                made.encoder,
                made.task,
                made.split,
                made.layer,
                made.pool,
                e.n,
                e.d,
                bytes_text(e.size),
                f"{days:.1f}",
                e.key[:12],
            ]
        )
    print_table("", columns, rows, numbers=("layer", "n", "d", "size", "days ago"))
    note(f"{len(entries)} spaces, {bytes_text(sum(e.size for e in entries))} in {kept.root}")


@app.command(epilog="Example: closerlook store verify")
def verify(store: Where = None) -> None:
    """Read every file in the store whole and check it against its checksum."""
    from closerlook.cli.console import note
    from closerlook.representations.store import Store

    checked = list(Store(store).verify())
    damaged = [(path, problem) for path, problem in checked if problem]
    for path, problem in damaged:
        note(f"{path} {problem}")
    if damaged:
        raise WorkError(f"{len(damaged)} of {len(checked)} files are damaged; `closerlook store gc` removes them")
    note(f"{len(checked)} files are as they were written")


@app.command(epilog="Example: closerlook store gc --unused-days 30 --max-size 20")
def gc(
    store: Where = None,
    unused_days: Annotated[
        float | None, Option(min=0, help="Also remove what was not used for this many days.")
    ] = None,
    max_size: Annotated[
        float | None, Option(min=0, help="Also remove the longest unused until this many GB are left.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only say what would be removed.")] = False,
) -> None:
    """Remove damaged files and what interrupted runs left behind, and on request what is long unused."""
    from closerlook.cli.console import bytes_text, note
    from closerlook.representations.store import Store

    limit = None if max_size is None else int(max_size * 1e9)
    swept = Store(store).gc(unused_days=unused_days, max_bytes=limit, dry_run=dry_run)
    for item in swept:
        note(f"{item.path}: {item.reason}")
    verb = "would be removed" if dry_run else "removed"
    note(f"{len(swept)} files {verb}, {bytes_text(sum(item.size for item in swept))}")

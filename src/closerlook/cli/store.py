"""`closerlook store`: list, check and clean up the store of vectors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from typer import Option, Typer

from closerlook.cli.registration import NO_CHANGES, add_command
from closerlook.errors import WorkError

DESCRIPTION = "List, check and clean up the store of vectors."
EXAMPLE = "Example: closerlook store ls"

app = Typer()
Where = Annotated[
    Path | None,
    Option(
        "--store",
        help="Folder in which the vectors are cached. (default: user cache)",
        envvar="CLOSERLOOK_STORE",
        show_envvar=True,
    ),
]


def ls(
    store: Where = None, as_json: Annotated[bool, Option("--json", help="Print JSON instead of a table.")] = False
) -> None:
    """List the spaces in the store."""
    from closerlook.cli.console import bytes_text, note, print_json, print_table
    from closerlook.representations.store import Store

    vectors = Store(store)
    entries = list(vectors.entries())
    if as_json:
        described = (
            {"key": entry.key, "bytes": entry.size, "used": entry.used, "n": entry.n, "d": entry.d}
            | entry.provenance.to_dict()
            for entry in entries
        )
        print_json(list(described))
        return
    columns = ["encoder", "task", "split", "layer", "pool", "n", "d", "size", "days unused", "key"]
    rows = []
    for entry in entries:
        provenance, days = entry.provenance, (time.time() - entry.used) / 86400
        rows.append(
            [
                provenance.encoder,
                provenance.task,
                provenance.split,
                provenance.layer,
                provenance.pool,
                entry.n,
                entry.d,
                bytes_text(entry.size),
                f"{days:.1f}",
                entry.key[:12],
            ]
        )
    print_table("", columns, rows, numbers=("layer", "n", "d", "size", "days unused"))
    note(f"{len(entries)} spaces, {bytes_text(sum(entry.size for entry in entries))} in {vectors.root}")


def verify(store: Where = None) -> None:
    """Read every file in the store and compare it with its checksum."""
    from closerlook.cli.console import note
    from closerlook.representations.store import Store

    checked = list(Store(store).verify())
    damaged = [(path, problem) for path, problem in checked if problem]
    for path, problem in damaged:
        note(f"{path} {problem}")
    if damaged:
        raise WorkError(f"{len(damaged)} of {len(checked)} files are damaged; `closerlook store gc` removes them")
    note(f"{len(checked)} files match their checksums")


def gc(
    store: Where = None,
    unused_days: Annotated[
        float | None, Option(min=0, help="Also remove spaces that were not used for this many days.")
    ] = None,
    max_size: Annotated[
        float | None,
        Option(min=0, help="Also remove the least recently used spaces until the store is at most this many GB."),
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only list what would be removed.")] = False,
) -> None:
    """Remove damaged files and leftovers of interrupted runs; with options, also spaces that are not used."""
    from closerlook.cli.console import bytes_text, note
    from closerlook.representations.store import Store

    limit = None if max_size is None else int(max_size * 1e9)
    removed = Store(store).gc(unused_days=unused_days, max_bytes=limit, dry_run=dry_run)
    for item in removed:
        note(f"{item.path}: {item.reason}")
    verb = "would be removed" if dry_run else "were removed"
    note(f"{len(removed)} files {verb}, {bytes_text(sum(item.size for item in removed))}")


add_command(app, "ls", ls, example="Example: closerlook store ls --json", after_interrupt=NO_CHANGES)
add_command(app, "verify", verify, example="Example: closerlook store verify", after_interrupt=NO_CHANGES)
add_command(
    app,
    "gc",
    gc,
    example="Example: closerlook store gc --unused-days 30 --max-size 20",
    after_interrupt="files removed so far stay removed; run the same command again to continue",
)

"""`closerlook tasks`: list the predefined tasks, and whether their data is present."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

if TYPE_CHECKING:
    from closerlook.tasks.catalogue import Entry

EXAMPLE = "Example: closerlook tasks --data ./data; closerlook tasks pos"


def tasks(
    name: Annotated[
        str | None, Argument(help="Show all details of one task: expected files, licence, citation.")
    ] = None,
    data: Annotated[
        Path | None, Option(help="Folder with the downloaded corpora.", envvar="CLOSERLOOK_DATA", show_envvar=True)
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the predefined tasks and whether their data is present, and the tasks that are made from other tasks."""
    from closerlook.cli.console import note, print_json, print_table
    from closerlook.tasks.catalogue import find_task, list_tasks
    from closerlook.tasks.known_overlap import FAMILIES, NAME

    if name and (made := NAME.fullmatch(name)):
        note(f"{name} is made from {made['task']}; see `closerlook tasks` for what is changed")
        name = made["task"]
    entries = (find_task(name),) if name else list_tasks()
    details = [_details(entry, data) for entry in entries]
    if as_json:
        print_json(details)
    elif name:
        print_table("", ["", ""], [(key, _plain(value)) for key, value in details[0].items()])
    else:
        columns = ["name", "unit", "labels", "train", "test", "present", "title", "source", "licence"]
        rows = [[_plain(task[column]) for column in columns] for task in details]
        print_table("", columns, rows, numbers=("labels", "train", "test"))
        families = [(family.form, family.meaning, family.example) for family in FAMILIES]
        print_table("Made from any other task, also from a file of yours", ["name", "meaning", "example"], families)
        if not all(task["present"] for task in details):
            note("download missing data with `closerlook data get NAME --data DIR`, or pass its folder with --data")


def _details(entry: Entry, data: Path | None) -> dict[str, object]:
    from closerlook.tasks.catalogue import is_present

    return {
        "name": entry.name,
        "title": entry.title,
        "unit": entry.unit,
        "labels": entry.labels,
        "train": entry.train,
        "test": entry.test,
        "present": is_present(entry, data),
        "source": entry.corpus.name,
        "address": entry.corpus.url,
        "licence": entry.corpus.licence,
        "files": {split: list(files) for split, files in entry.corpus.files.items()},
        "citation": entry.corpus.citation,
    }


def _plain(value: object) -> object:
    """A value as a cell of the printed table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "\n".join(f"{split}: {' or '.join(files)}" for split, files in value.items())
    return value

"""Labelling tasks: texts with labelled examples, from the catalogue, your own files or the Hugging Face hub."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from closerlook.tasks.task import Task

HUB = "hf:"

log = logging.getLogger("closerlook.tasks")


@contextmanager
def without_notes() -> Iterator[None]:
    """Log no notes about tasks inside the block; for tasks that are read again, whose notes were logged before."""
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def load_task(task: str, data: str | Path | None = None, **options: Any) -> Task:
    """The task of that name: from the catalogue, a file, a folder, or a hub dataset `hf:ID[:CONFIG][@REVISION]`.

    `noisy-20:NAME` is the task with 20% of its labels replaced at random, `merged-4:NAME` with its labels merged into
    four, so that labels overlap by construction.

    data: the folder with the corpora of the catalogue; by default CLOSERLOOK_DATA.
    options: the options of `read_task` for files, or of `load_hub_task` for datasets. They may also be part of the
    name, as in `reviews.csv?text=review&label=stars`.

    >>> load_task("toy-pos").unit
    'token'
    """
    from closerlook.errors import InputError
    from closerlook.tasks.catalogue import CATALOGUE, find_task, load_catalogue_task
    from closerlook.tasks.known_overlap import load_with_overlap
    from closerlook.tasks.readers import FORMATS, read_task

    changed = load_with_overlap(task, lambda name: load_task(name, data, **options))
    if changed is not None:
        return changed
    task, in_name = split_options(task)
    given: dict[str, Any] = in_name | {key: value for key, value in options.items() if value not in {None, False}}
    if task in CATALOGUE:
        if given:
            raise InputError(f"{', '.join(given)} given with task {task}, whose options are fixed; give a file instead")
        if os.path.exists(task):
            log.warning(
                "task %s is the predefined task; for the file or folder of that name here, write ./%s", task, task
            )
        return load_catalogue_task(task, data)
    if task.startswith(HUB):
        return _load_hub(task, given)
    suffixes = {suffix for known in FORMATS.values() for suffix in known.suffixes}
    path = Path(task).expanduser()
    if os.path.exists(path) or path.suffix.lower() in suffixes or "/" in task:
        return read_task(path, **given)
    return load_catalogue_task(find_task(task).name, data)


OPTIONS = (
    *("name", "format", "label", "words", "text", "text_b", "unit", "split_column", "empty_nodes", "join", "bins"),
    *("keep", "has", "encoding", "test_share"),
)
"""The options that may follow a file's name after a question mark."""


def split_options(task: str) -> tuple[str, dict[str, str | bool]]:
    """The name of a task's file, and the options that follow it after a question mark.

    If a file with the whole name exists, question mark included, there are no options.

    >>> split_options("reviews.csv?text=review&label=stars")
    ('reviews.csv', {'text': 'review', 'label': 'stars'})
    """
    from urllib.parse import parse_qsl

    from closerlook.errors import InputError

    file, mark, written = task.rpartition("?")
    if not mark or os.path.exists(Path(task).expanduser()):
        return task, {}
    try:
        given: dict[str, str | bool] = dict(parse_qsl(written, strict_parsing=True))
    except ValueError:
        raise InputError(
            f"task {task!r}: {written!r} follows the question mark; expected text=COLUMN&label=COLUMN"
        ) from None
    unknown = [name for name in given if name not in OPTIONS]
    if unknown:
        raise InputError(f"task {task!r}: {', '.join(unknown)} is unknown; expected some of {', '.join(OPTIONS)}")
    if "empty_nodes" in given:
        given["empty_nodes"] = str(given["empty_nodes"]).lower() in {"1", "true", "yes"}
    return file, given


def _load_hub(name: str, options: dict[str, Any]) -> Task:
    from closerlook.errors import InputError
    from closerlook.tasks.readers.hub import load_hub_task

    known = ("words", "text", "text_b", "label", "bins", "has", "test_share")
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InputError(f"{', '.join(unknown)} given with {name}; the options of a hub dataset are {', '.join(known)}")
    rest, _, revision = name.removeprefix(HUB).partition("@")
    dataset, _, config = rest.partition(":")
    if not dataset:
        raise InputError(f"task {name!r} names no dataset; expected hf:ID or hf:FOLDER")
    return load_hub_task(dataset, config=config or None, revision=revision or None, **options)

"""Loads the inputs of a cell: encoders and tasks by name, spaces from the store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from closerlook.encoders.source import EMBEDDED
from closerlook.errors import InputError
from closerlook.representations.space import Space
from closerlook.representations.store import Store
from closerlook.study.cells import Cell
from closerlook.study.files import LostError
from closerlook.tasks import load_task, without_notes
from closerlook.tasks.catalogue import CATALOGUE
from closerlook.tasks.splitting import with_test_split
from closerlook.texts import joined

if TYPE_CHECKING:
    from closerlook.tasks.task import Task


def encoder_path(cell: Cell) -> str:
    """The name of the cell's encoder; a folder as an absolute path, since a worker may run in another directory."""
    name: str = cell.resources["encoder"]
    prefix = "random:" if name.startswith("random:") else ""
    if name in {EMBEDDED, f"random:{EMBEDDED}"}:
        return name
    return prefix + _absolute(cell, name.removeprefix(prefix))


def load_tasks(cell: Cell, hashes: dict[str, str]) -> list[Task]:
    """The tasks with the given names; an InputError is raised if the content of a task has changed."""
    data = cell.resources["data"]
    folder = None if data is None else str(Path(cell.resources["here"], data).expanduser())
    return [
        _load_task(
            name if name in CATALOGUE else _task_path(cell, name), folder, content_hash, cell.resources["test_share"]
        )
        for name, content_hash in hashes.items()
    ]


@cache
def _load_task(name: str, data: str | None, content_hash: str, test_share: float) -> Task:
    with without_notes():
        task = load_task(name, data)
    if task.content_hash != content_hash and "train" in {split.name for split in task.splits}:
        task = with_test_split(task, test_share)  # as the plan was resolved
    if task.content_hash != content_hash:
        raise InputError(f"task {name} has changed since the study began; run the same command again")
    return task


def _task_path(cell: Cell, name: str) -> str:
    """The file of a task as an absolute path; options may follow the file's name after a question mark."""
    path = _absolute(cell, name)
    file, mark, options = name.rpartition("?")
    return f"{_absolute(cell, file)}?{options}" if mark and path == name else path


def _absolute(cell: Cell, name: str) -> str:
    """The absolute path of a file or folder that the plan names; the name itself if there is no such file."""
    path = Path(cell.resources["here"], os.path.expanduser(name))
    return str(path) if os.path.exists(path) else name


@cache
def sentences(task: Task, split: str) -> Sequence[str]:
    """The sentence of each example."""
    part = task.split(split)
    texts = [joined(text) for text in part.texts]
    return [texts[number] for number in part.sentence.tolist()]


def load_space(cell: Cell, key: str) -> Space:
    """The space with the given key, from the cell's store."""
    store = cell.resources["store"]
    space = Store(store).get(key)
    if space is None:
        raise LostError(f"the space {key[:12]}… is not in the store {store}, although it was just computed")
    return space


def with_words(space: Space, task: Task, split: str) -> Space:
    """The space with the words of its examples."""
    return Space(space.X, np.asarray(space.y), space.labels, space.provenance, task.words(task.split(split)))

"""Hugging Face datasets to tasks: from the hub, a folder of data files, or a folder made by `save_to_disk`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from closerlook.errors import InputError, WorkError
from closerlook.tasks.readers.source import Options
from closerlook.tasks.readers.tables import Record, annotate, find_layout
from closerlook.tasks.task import Annotated, Task, Unit

IGNORED = -100
"""What PyTorch's losses leave out, hence what datasets hold where there is no label."""


def read_hub(
    name: str,
    *,
    config: str | None = None,
    revision: str | None = None,
    words: str | None = None,
    text: str | None = None,
    label: str | None = None,
) -> Task:
    """The task in a dataset: token classification (words and as many labels) or classification of texts.

    Columns are those named, else found by their usual names, as in tables. A label that is None, -100, or negative
    where the labels have names, is no example; splits without any example (hidden test labels) are left out.
    """
    options = Options(label=label, words=words, text=text)
    splits: dict[str, list[Annotated]] = {}
    units: set[Unit] = set()
    for split, dataset in _load(name, config, revision).items():
        try:
            unit, found = annotate(split, _records(dataset, options), split, options, cells=False)
        except InputError as error:
            raise InputError(f"dataset {name!r}, {error}") from None
        if unit is not None:
            splits |= found
            units.add(unit)
    if len(units) != 1:
        raise InputError(f"dataset {name!r}: examples of {len(units)} units found; expected examples of one unit")
    return Task.build(Path(name).name, units.pop(), splits)


def _load(name: str, config: str | None, revision: str | None) -> dict[str, Any]:
    """The datasets by split."""
    try:
        import datasets
    except ImportError:
        raise InputError("reading hub datasets needs `pip install closerlook[hub]`") from None
    saved = any(os.path.isfile(Path(name, file)) for file in ("dataset_dict.json", "state.json"))
    try:
        loaded = datasets.load_from_disk(name) if saved else datasets.load_dataset(name, config, revision=revision)
    except FileNotFoundError as error:
        raise InputError(f"dataset {name!r}: {_first_line(error)}; expected a hub id or a folder of data") from None
    except OSError as error:
        raise WorkError(f"dataset {name!r}: {_first_line(error)}; check the network, or give a folder") from None
    except (ValueError, LookupError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise InputError(f"dataset {name!r} cannot be loaded: {_first_line(error)}") from None
    if isinstance(loaded, datasets.DatasetDict):
        return dict(loaded)
    return {str(loaded.split or "train"): loaded}


def _records(dataset: Any, options: Options) -> Iterator[tuple[int, Record]]:
    """The numbered records, labels by name, without the columns that the task does not need."""
    if len(dataset) == 0:
        return
    dataset = dataset.with_format(None)
    layout = find_layout(dataset[0], options, cells=False)
    feature = dataset.features[layout.label]
    names = getattr(getattr(feature, "feature", feature), "names", None)
    for number, record in enumerate(dataset.select_columns([layout.text, layout.label]), start=1):
        yield number, {**record, layout.label: _named(record[layout.label], names)}


def _named(value: Any, names: list[str] | None) -> Any:
    """A label, or each of a list of them, by its name; None for no label."""
    if isinstance(value, list):
        return [_named(one, names) for one in value]
    if names is None or value is None:
        return None if value == IGNORED else value
    if value >= len(names):
        raise InputError(f"label {value} arrived; the dataset names labels 0 to {len(names) - 1}")
    return None if value < 0 else names[value]


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().split("\n")[0]

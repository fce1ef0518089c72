"""Load tasks from Hugging Face datasets: on the hub, in a folder of data files, or saved by `save_to_disk`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from closerlook.errors import InputError, WorkError
from closerlook.tasks.readers import add_test_split, assemble
from closerlook.tasks.readers.records import Record, annotate, find_layout
from closerlook.tasks.readers.source import Options, Reading
from closerlook.tasks.task import Task

if TYPE_CHECKING:
    from datasets import Dataset

IGNORED = -100
"""The label that PyTorch's losses ignore; datasets use it for words without a label."""


def load_hub_task(
    name: str,
    *,
    config: str | None = None,
    revision: str | None = None,
    words: str | None = None,
    text: str | None = None,
    text_b: str | None = None,
    label: str | None = None,
    bins: str | int | None = None,
    has: str | None = None,
    test_share: float | str | None = None,
) -> Task:
    """The task in a dataset: token classification (a label for each word) or classification of texts or text pairs.

    words, text, text_b, label: names of columns; by default the usual names, as for tables. bins, has, test_share: as
    for `read_task`. Texts and words with the label None
    or -100 are not examples. If the dataset names its labels, all negative labels are ignored. Splits without examples
    (hidden test labels) are excluded.
    """
    given = None if bins is None else str(bins)
    options = Options(label=label, words=words, text=text, text_b=text_b, bins=given, has=has)
    readings: dict[str, Reading] = {}
    for split, dataset in load_dataset(name, config, revision).items():
        try:
            reading = annotate(split, _records(dataset, options), split, options, from_csv=False, number_name="row")
        except InputError as error:
            raise InputError(f"dataset {name!r}, {error}") from None
        if reading is not None:
            readings[f"{name}, {split}"] = reading
    if not readings:
        raise InputError(f"dataset {name!r}: no labelled example found; name the columns with label=, text= or words=")
    task = assemble(Path(name).name, readings, options)
    return add_test_split(task, test_share)


def load_dataset(name: str, config: str | None, revision: str | None) -> dict[str, Dataset]:
    """The dataset of each split."""
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


def _records(dataset: Dataset, options: Options) -> Iterator[tuple[int, Record]]:
    """The records and their row numbers, with label names, and with only the columns that the task needs."""
    if len(dataset) == 0:
        return
    dataset = dataset.with_format(None)
    layout = find_layout(dataset[0], options, from_csv=False)
    feature = dataset.features[layout.label]
    names = getattr(getattr(feature, "feature", feature), "names", None)
    for number, record in enumerate(dataset.select_columns(layout.columns), start=1):
        yield number, {**record, layout.label: _label_names(record[layout.label], names)}


def _label_names(value: object, names: list[str] | None) -> object:
    """The name of a label, or of each label in a list; None for no label."""
    if isinstance(value, list):
        return [_label_names(item, names) for item in value]
    if names is None or value is None:
        return None if value == IGNORED else value
    if not isinstance(value, int) or value >= len(names):
        raise InputError(f"invalid label {value}; the dataset names labels 0 to {len(names) - 1}")
    return None if value < 0 else names[value]


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().split("\n")[0]

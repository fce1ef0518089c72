"""Read tasks from text files: CoNLL-U, STREUSLE .conllulex, CoNLL columns, TREC .label, JSON lines, CSV and TSV."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from closerlook.errors import InputError
from closerlook.tasks.readers import columns, conllu, streusle, tables, trec
from closerlook.tasks.readers.source import SPLITS, Options, Reading
from closerlook.tasks.task import Annotated, Task, Unit

__all__ = ["FORMATS", "Format", "Options", "read_files", "read_task"]


@dataclass(frozen=True)
class Format:
    """A file format: its suffixes, the options that it accepts, and the function that reads a file."""

    suffixes: tuple[str, ...]
    options: tuple[str, ...]
    read: Callable[[Path, str, Options], Reading]


_COLUMNS = ("label", "words", "text", "unit", "split_column")

FORMATS: dict[str, Format] = {
    "conllu": Format((".conllu",), ("label", "empty_nodes"), conllu.read),
    "conllulex": Format((".conllulex",), ("label",), streusle.read),
    "conll": Format((".conll", ".bio", ".iob", ".iob2"), ("label", "words"), columns.read),
    "trec": Format((".label",), ("label",), trec.read),
    "jsonl": Format((".jsonl", ".ndjson"), _COLUMNS, tables.read_jsonl),
    "csv": Format((".csv",), _COLUMNS, tables.read_csv),
    "tsv": Format((".tsv",), _COLUMNS, tables.read_tsv),
}
"""The file formats by name."""


def read_task(
    path: str | Path,
    *,
    name: str | None = None,
    format: str | None = None,
    label: str | None = None,
    words: str | None = None,
    text: str | None = None,
    unit: Unit | None = None,
    empty_nodes: bool = False,
    split_column: str | None = None,
) -> Task:
    """The task in a file, or in a folder with one file for each split (`en_ewt-ud-train.conllu` is 'train').

    name: the task's name; by default the name of the file or folder.
    format: one of `FORMATS`; by default chosen by the suffix.
    label: which annotation is the label, see below.
    words, text: the name of the column with words or with plain text (jsonl, csv, tsv); for conll, words is the number
    of the column with the words.
    unit: token or sentence, if a table could be read as both. The unit is what gets one vector.
    empty_nodes: keep the empty nodes of CoNLL-U (ids such as 7.1) as words.
    split_column: the name of the column with the split of each record, if a table contains several splits. By default
    it is the column `split`, if the table has one and the file's name contains no split.

    Values of label:
    conllu: upos (default), xpos, deprel, feats:KEY, misc:KEY, or comment:KEY for a label of the sentence;
    conllulex: role (default) or function;
    conll: the number of a column; the first is 0, the last is -1 (default);
    trec: fine (default) or coarse;
    jsonl, csv, tsv: the name of the column with labels, or the key of the label in each target.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "weather-test.jsonl"
    ...     _ = path.write_text('{"words": ["light", "rain"], "targets": ["ADJ", "NOUN"]}')
    ...     task = read_task(path)
    >>> task.name, task.unit, task.labels, len(task.split("test"))
    ('weather-test', 'token', ('ADJ', 'NOUN'), 2)
    """
    path = Path(path)
    options = Options(label, words, text, unit, empty_nodes, split_column)
    if not os.path.exists(path):  # unlike Path.exists, it raises no OSError if a name is too long or a folder forbidden
        raise InputError(f"{path}: no such file or folder")
    if not os.path.isdir(path):
        files = {_split_of(path) or "train": path}
        options = replace(options, find_splits=_split_of(path) is None)
    elif split_column is None:
        files = _splits_in(path, format)
    else:
        raise InputError(f"{path}: is a folder, but split_column needs a single file that contains all splits")
    return read_files(files, name=name or path.resolve().stem, format=format, options=options)


def read_files(files: Mapping[str, Path], *, name: str, format: str | None = None, options: Options) -> Task:
    """The task with these files as its splits; the files may have different formats."""
    units: dict[Unit, Path] = {}
    splits: dict[str, list[Annotated]] = {}
    for split, path in files.items():
        unit, texts = _format(path, format, options).read(path, split, options)
        units.setdefault(unit, path)
        splits |= texts
    if len(units) > 1:
        listed = ", ".join(f"{unit} in {path}" for unit, path in units.items())
        raise InputError(f"units differ ({listed}); expected one unit in all splits")
    return Task.build(name, next(iter(units)), splits)


def _format(path: Path, format: str | None, options: Options) -> Format:
    """The format of a file; raises an error if it does not accept the options given."""
    name = format or _format_by_suffix(path)
    if name is None:
        raise InputError(f"{path}: suffix {path.suffix!r} is unknown; expected {_known_formats()}, or give format=")
    if name not in FORMATS:
        raise InputError(f"format {name!r} is unknown; expected one of {_known_formats()}")
    for option in options.given():
        if option not in FORMATS[name].options:
            raise InputError(
                f"option {option} is unknown to format {name}; its options are {', '.join(FORMATS[name].options)}"
            )
    return FORMATS[name]


def _format_by_suffix(path: Path) -> str | None:
    return next((name for name, known in FORMATS.items() if path.suffix.lower() in known.suffixes), None)


def _known_formats() -> str:
    return ", ".join(f"{name} ({' '.join(known.suffixes)})" for name, known in FORMATS.items())


def _split_of(path: Path) -> str | None:
    """The split in a file's name: its last word that is one of `SPLITS`; None if there is none."""
    names = [word for word in re.split(r"[^a-z0-9]+", path.stem.lower()) if word in SPLITS]
    return names[-1] if names else None


def _splits_in(folder: Path, format: str | None) -> dict[str, Path]:
    """The file of each split in a folder, in the order of `SPLITS`."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror}); expected a folder of splits") from None
    files = [path for path in paths if _format_by_suffix(path) and format in {None, _format_by_suffix(path)}]
    splits: dict[str, Path] = {}
    for split in SPLITS:
        matches = [path for path in files if _split_of(path) == split]
        if len(matches) > 1:
            listed = ", ".join(path.name for path in matches)
            raise InputError(
                f"{folder}: {listed} are all {split!r}; expected one file: choose with format=, or name it"
            )
        if matches:
            splits[split] = matches[0]
    if not splits:
        raise InputError(
            f"{folder}: no split found; expected files such as train.conllu, test.conllu; formats: {_known_formats()}"
        )
    return splits

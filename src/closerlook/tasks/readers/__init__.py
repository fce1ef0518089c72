"""Read tasks from files and tables: CoNLL-U, STREUSLE, CoNLL columns, TREC, JSON, CSV, TSV, Parquet, DataFrames."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.errors import InputError
from closerlook.tasks.readers import columns, conllu, streusle, tables, trec
from closerlook.tasks.readers.labels import Splits, name_numbers, note_combinations, note_disagreements
from closerlook.tasks.readers.source import Options, Reading
from closerlook.tasks.splitting import with_test_split
from closerlook.tasks.task import SPLIT_NAMES, Task, Unit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMATS", "Format", "Options", "assemble", "read_files", "read_task"]

log = logging.getLogger("closerlook.tasks")


@dataclass(frozen=True)
class Format:
    """A file format: its suffixes, the options that it accepts, and the function that reads a file."""

    suffixes: tuple[str, ...]
    options: tuple[str, ...]
    read: Callable[[Path, str, Options], Reading]


_COLUMNS = ("label", "words", "text", "text_b", "unit", "split_column", "bins", "keep", "has")

FORMATS: dict[str, Format] = {
    "conllu": Format((".conllu",), ("label", "empty_nodes", "join"), conllu.read),
    "conllulex": Format((".conllulex",), ("label",), streusle.read),
    "conll": Format((".conll", ".bio", ".iob", ".iob2"), ("label", "words", "encoding"), columns.read),
    "trec": Format((".label",), ("label",), trec.read),
    "jsonl": Format((".jsonl", ".ndjson"), _COLUMNS, tables.read_jsonl),
    "json": Format((".json",), _COLUMNS, tables.read_json),
    "csv": Format((".csv",), (*_COLUMNS, "encoding"), tables.read_csv),
    "tsv": Format((".tsv", ".tab"), (*_COLUMNS, "encoding"), tables.read_tsv),
    "parquet": Format((".parquet", ".pq"), _COLUMNS, tables.read_parquet),
}
"""The file formats by name."""


def read_task(
    source: str | Path | pd.DataFrame | Iterable[Mapping[str, Any]],
    *,
    name: str | None = None,
    format: str | None = None,
    label: str | None = None,
    words: str | None = None,
    text: str | None = None,
    text_b: str | None = None,
    unit: Unit | None = None,
    empty_nodes: bool = False,
    split_column: str | None = None,
    join: str | None = None,
    bins: str | int | None = None,
    keep: str | None = None,
    has: str | None = None,
    encoding: str | None = None,
    test_share: float | str | None = None,
) -> Task:
    """The task in a file, a folder with one file for each split, a DataFrame, or a list of dicts.

    In a folder, `en_ewt-ud-train.conllu` is the file of the split train.

    name: the task's name; by default the name of the file or folder.
    format: one of `FORMATS`; by default chosen by the suffix.
    label: which annotation is the label, see below.
    words, text: the name of the column with words or with plain text (tables); for conll, words is the number of the
    column with the words.
    text_b: the name of the column with the second text, if an example is a pair of texts.
    unit: token or sentence, if a table could be read as both. The unit is what gets one vector.
    empty_nodes: keep the empty nodes of CoNLL-U (ids such as 7.1) as words.
    split_column: the name of the column with the split of each record, if a table contains several splits. By default
    it is the column `split`, if the table has one and the file's name contains no split.
    join: how words of CoNLL-U are joined: 'written' (default; follows SpaceAfter=No) or 'spaces' (always a space).
    bins: for labels that are scores: the number of bins, boundaries such as '1.5,3', or 'each' (every number a label).
    keep: labels of CSV and TSV that are not missing although they are written so, such as 'None' or 'NA,None'.
    has: if texts have several labels: the task is whether a text has this label.
    encoding: the encoding of a CSV, TSV or conll file, by its name in Python; by default it is detected.
    test_share: if the task has no test split, this share of the examples in train becomes one.

    Values of label:
    conllu: upos (default), xpos, deprel, feats:KEY, misc:KEY, or comment:KEY for a label of the sentence;
    conllulex: role (default) or function;
    conll: the number of a column; the first is 0, the last is -1 (default);
    trec: fine (default) or coarse;
    tables: the name of the column with labels, or the key of the label in each target.

    >>> task = read_task([{"words": ["light", "rain"], "targets": ["ADJ", "NOUN"]}], name="weather")
    >>> task.name, task.unit, task.labels, len(task.split("train"))
    ('weather', 'token', ('ADJ', 'NOUN'), 2)
    """
    options = Options(
        label=label,
        words=words,
        text=text,
        text_b=text_b,
        unit=unit,
        empty_nodes=empty_nodes,
        split_column=split_column,
        join=join,
        bins=None if bins is None else str(bins),
        keep=keep,
        has=has,
        encoding=encoding,
    )
    if isinstance(source, str | os.PathLike):
        task = _read_path(Path(source), name, format, options)
    else:
        task = _read_table(source, name or "table", options)
    return add_test_split(task, test_share)


def add_test_split(task: Task, test_share: float | str | None) -> Task:
    """The task with a test split, if a share is given and it has none; the log says so."""
    if test_share is None or "test" in {split.name for split in task.splits}:
        return task
    task = with_test_split(task, _share(test_share))
    log.warning("%s", task.notes[-1])
    return task


def _share(given: float | str) -> float:
    try:
        return float(given)
    except ValueError:
        raise InputError(f"test_share {given!r} is not a number; expected one between 0 and 1, such as 0.2") from None


def _read_path(path: Path, name: str | None, format: str | None, options: Options) -> Task:
    if not os.path.exists(path):  # unlike Path.exists, it raises no OSError if a name is too long or a folder forbidden
        raise InputError(f"{path}: no such file or folder")
    if not os.path.isdir(path):
        files = {_split_of(path) or "train": path}
        options = replace(options, find_splits=_split_of(path) is None)
    elif options.split_column is None:
        files = _splits_in(path, format)
    else:
        raise InputError(f"{path}: is a folder, but split_column needs a single file that contains all splits")
    return read_files(files, name=name or path.resolve().stem, format=format, options=options)


def _read_table(source: pd.DataFrame | Iterable[Mapping[str, Any]], name: str, options: Options) -> Task:
    if not hasattr(source, "columns") and (isinstance(source, Mapping) or not isinstance(source, Iterable)):
        raise InputError(
            f"{type(source).__name__} given as a task; expected a file, a folder, a DataFrame or a list of dicts"
        )
    _check_options("a table in memory", _COLUMNS, options)
    reading = tables.read_frame(name, source, "train", replace(options, find_splits=True))
    return assemble(name, {name: reading}, options)


def read_files(
    files: Mapping[str, Path], *, name: str, format: str | None = None, options: Options, level: int = logging.WARNING
) -> Task:
    """The task with these files as its splits; the files may have different formats. level: of notes in the log."""
    readings = {str(path): _format(path, format, options).read(path, split, options) for split, path in files.items()}
    return assemble(name, readings, options, level)


def assemble(name: str, readings: Mapping[str, Reading], options: Options, level: int = logging.WARNING) -> Task:
    """The task with the splits of all readings. readings: by their source. level: of notes in the log."""
    units: dict[Unit, str] = {}
    splits: Splits = {}
    lines: dict[str, list[int]] = {}
    notes: list[str] = []
    for where, reading in readings.items():
        units.setdefault(reading.unit, where)
        splits |= reading.splits
        lines |= reading.lines
        notes += reading.notes
    if len(units) > 1:
        listed = ", ".join(f"{unit} in {where}" for unit, where in units.items())
        raise InputError(f"units differ ({listed}); expected one unit in all splits")
    where = next(iter(readings)) if len(readings) == 1 else f"task {name}"
    try:
        splits, found = name_numbers(splits, options.bins) if _from_tables(readings) else (splits, [])
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    number_name = next(iter(readings.values())).number_name
    found += note_combinations(splits) if _from_tables(readings) else []
    found += note_disagreements(splits, lines, number_name)
    notes += [f"{where}: {note}" for note in found]
    for note in notes:
        log.log(level, "%s", note)
    return Task.build(name, next(iter(units)), splits, notes)


def _from_tables(readings: Mapping[str, Reading]) -> bool:
    """Whether labels come from tables, in which numbers are written as programs write them."""
    return any(reading.is_table for reading in readings.values())


def _format(path: Path, format: str | None, options: Options) -> Format:
    """The format of a file; raises an error if it does not accept the options given."""
    name = format or _format_by_suffix(path)
    if name is None:
        raise InputError(f"{path}: suffix {path.suffix!r} is unknown; expected {_known_formats()}, or give format=")
    if name not in FORMATS:
        raise InputError(f"format {name!r} is unknown; expected one of {_known_formats()}")
    _check_options(f"format {name}", FORMATS[name].options, options)
    return FORMATS[name]


def _check_options(what: str, known: Iterable[str], options: Options) -> None:
    """Raise InputError if an option is given that is not among the known ones."""
    for option in options.given():
        if option not in known:
            raise InputError(f"option {option} is unknown to {what}; its options are {', '.join(known)}")


def _format_by_suffix(path: Path) -> str | None:
    return next((name for name, known in FORMATS.items() if path.suffix.lower() in known.suffixes), None)


def _known_formats() -> str:
    return ", ".join(f"{name} ({' '.join(known.suffixes)})" for name, known in FORMATS.items())


def _split_of(path: Path) -> str | None:
    """The split in a file's name: its last word that is the name of a split; None if there is none."""
    names = [word for word in re.split(r"[^a-z0-9]+", path.stem.lower()) if word in SPLIT_NAMES]
    return SPLIT_NAMES[names[-1]] if names else None


def _splits_in(folder: Path, format: str | None) -> dict[str, Path]:
    """The file of each split in a folder: train, dev, test."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror}); expected a folder of splits") from None
    files = [path for path in paths if _format_by_suffix(path) and format in {None, _format_by_suffix(path)}]
    splits: dict[str, Path] = {}
    for split in dict.fromkeys(SPLIT_NAMES.values()):
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

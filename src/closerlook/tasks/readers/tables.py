"""JSON lines, CSV and TSV: one record per text, with a label of the text or of targets in it.

The form of a record determines the unit:

    {"text": "...", "label": "..."}                                            sentence
    {"words": [...], "targets": ["NOUN", null, ...]}                           token, one target per word
    {"words": [...], "targets": [{"token": 3, "label": "..."}]}                token
    {"words": [...], "targets": [{"start": 0, "stop": 2, "label": "..."}]}     span
    {"words": [...], "targets": [{"head": 3, "dependent": 1, "label": "..."}]} pair

In CSV and TSV, the cells of words and targets are JSON lists, or lists separated by spaces, with `_` for no label.
"""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from closerlook.errors import InputError
from closerlook.tasks.readers.source import SPLITS, Options, Reading, numbered_lines, read_text, short_repr
from closerlook.tasks.task import Annotated, Target, Text, Unit

WORDS = ("words", "tokens")
TEXT = ("text", "sentence", "question")
TARGETS = ("targets", "tags", "labels")
LABEL = ("label", "class")
SPLIT = "split"
TAB = "\t"
PLACES: dict[tuple[str, ...], Unit] = {("token",): "token", ("start", "stop"): "span", ("head", "dependent"): "pair"}
"""The keys that give the position of a target, and the unit that they imply."""

LOG = logging.getLogger(__name__)

Record = Mapping[str, Any]
Records = Iterable[tuple[int, Record]]
"""Records, each with the number of its line or row."""


@dataclass(frozen=True)
class Layout:
    """Which columns hold the text and its labels, and in which form."""

    text: str
    label: str
    key: str | None  # the key of the label in targets that are objects, if the option `label` gives it
    in_words: bool  # the text column holds a list of words
    targets: bool  # the label column holds targets in the text, not one label of the text
    cells: bool  # values are cells of CSV or TSV, so lists are strings


def read_jsonl(path: Path, split: str, options: Options) -> Reading:
    """The examples of a file with one JSON object per line."""
    return _reading(path, _objects(path), split, options, cells=False)


def read_csv(path: Path, split: str, options: Options) -> Reading:
    """The examples of a CSV file with a header."""
    return _reading(path, _rows(path, ","), split, options, cells=True)


def read_tsv(path: Path, split: str, options: Options) -> Reading:
    """The examples of a TSV file with a header."""
    return _reading(path, _rows(path, TAB), split, options, cells=True)


def _reading(path: Path, records: Records, split: str, options: Options, *, cells: bool) -> Reading:
    unit, splits = annotate(str(path), records, split, options, cells=cells)
    if unit is None:
        raise InputError(f"{path}: no labelled example found; expected at least one")
    if unit == "sentence":
        texts = [targets for annotated in splits.values() for _, targets in annotated]
        unlabelled = sum(not targets for targets in texts)
        if unlabelled:
            LOG.warning("%s: %d of %d texts have no label and are excluded", path, unlabelled, len(texts))
    return unit, splits


def annotate(
    where: str, records: Records, split: str, options: Options, *, cells: bool
) -> tuple[Unit | None, dict[str, list[Annotated]]]:
    """The unit of the examples in numbered records (None without examples), and the annotated texts of each split.

    The layout is that of the first record. where: the name of the source, for error messages.
    """
    layout: Layout | None = None
    column: str | None = None
    splits: dict[str, list[Annotated]] = {}
    units: set[Unit] = set()
    for number, record in records:
        try:
            if layout is None:
                layout, column = find_layout(record, options, cells=cells), _split_column(record, options)
            unit, annotated = _annotated(record, layout)
            split_name = split if column is None else _split_name(record, column)
            units |= {unit} if annotated[1] else set()
            if len(units) > 1:
                raise InputError(f"a {unit} target arrived after another unit's; expected one unit in all targets")
        except InputError as error:
            raise InputError(f"{where}, line {number}: {error}") from None
        splits.setdefault(split_name, []).append(annotated)
    return units.pop() if units else None, splits


def find_layout(record: Record, options: Options, *, cells: bool) -> Layout:
    """The layout of records like this one: the columns that the options name, else columns with the usual names."""
    if options.unit not in {None, "token", "sentence"}:
        raise InputError(
            f"unit {options.unit!r} requested; expected token or sentence (targets give span and pair by their keys)"
        )
    words = _column(record, options.words, WORDS, "words=")
    text = _column(record, options.text, TEXT, "text=")
    label, key = _label_column(record, options, sentence_first=options.unit == "sentence" or words is None)
    if options.unit is not None:
        targets = options.unit == "token"
    elif cells:
        targets = words is not None and options.text is None and label not in LABEL
    else:
        targets = isinstance(record[label], list)
    source = words if targets or options.words or text is None else text
    if source is None:
        usual, option = (WORDS, "words=") if targets else (TEXT + WORDS, "text= or words=")
        raise _no_column(record, f"the text ({'|'.join(usual)})", f"name one with {option}")
    return Layout(source, label, key, in_words=source == words, targets=targets, cells=cells)


def label_name(value: object) -> str | None:
    """The name of a label: numbers and booleans are written as in JSON; None means no label."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise InputError(f"label {short_repr(value)} arrived; expected a string, a number or true/false")


def _column(record: Record, name: str | None, usual: tuple[str, ...], option: str) -> str | None:
    if name is not None and name not in record:
        raise _no_column(record, short_repr(name), f"name one with {option}")
    return name or next((column for column in usual if column in record), None)


def _label_column(record: Record, options: Options, *, sentence_first: bool) -> tuple[str, str | None]:
    """The column of the label, and the key of the label in its targets if the option `label` is no column."""
    usual = LABEL + TARGETS if sentence_first else TARGETS + LABEL
    default = next((name for name in usual if name in record), None)
    if options.label is None and default is not None:
        return default, None
    if options.label is not None and options.label in record:
        return options.label, None
    if options.label is not None and default is not None and isinstance(record[default], list):
        return default, options.label
    missing = short_repr(options.label) if options.label else f"the label ({'|'.join(usual)})"
    raise _no_column(record, missing, "name one with label=")


def _no_column(record: Collection[str], missing: str, advice: str) -> InputError:
    columns = ", ".join(short_repr(name) for name in list(record)[:20]) or "none"
    return InputError(f"no column for {missing}; found {columns}: {advice}")


def _split_column(record: Record, options: Options) -> str | None:
    """The column that holds the split of each record, if there is one."""
    if options.split_column is not None:
        return _column(record, options.split_column, (), "split_column=")
    has_splits = options.find_splits and str(record.get(SPLIT, "")).strip() in SPLITS
    return SPLIT if has_splits else None


def _split_name(record: Record, column: str) -> str:
    value = record.get(column)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"split {short_repr(value)} arrived; expected a name in column {column!r}")
    return value.strip()


def _annotated(record: Record, layout: Layout) -> tuple[Unit, Annotated]:
    for column in (layout.text, layout.label):
        if column not in record:
            raise _no_column(record, short_repr(column), "expected the same in every record")
    text = _text(record[layout.text], layout)
    value = record[layout.label]
    if not layout.targets:
        label = _cell_label(value.strip()) if layout.cells else label_name(value)
        return "sentence", (text, [] if label is None else [((), label)])
    values = _list(value) if layout.cells else value
    if not isinstance(values, list):
        raise InputError(f"{layout.label} {short_repr(values)} arrived; expected a list of targets")
    if values and isinstance(values[0], dict):
        unit = _unit(values[0])
        return unit, (text, [target for value in values for target in _targets(value, unit, layout.key or "label")])
    if values and layout.key is not None:
        raise _no_column(record, short_repr(layout.key), "name one with label=")
    if len(values) != len(text) and (values or layout.cells):
        raise InputError(f"{len(text)} words but {len(values)} targets arrived; expected one target per word")
    labels = [_cell_label(value) if layout.cells else label_name(value) for value in values]
    return "token", (text, [((i,), label) for i, label in enumerate(labels) if label is not None])


def _text(value: object, layout: Layout) -> Text:
    if not layout.in_words:
        if isinstance(value, str):
            return value
        raise InputError(f"{layout.text} {short_repr(value)} arrived; expected a string")
    words = _list(value) if layout.cells and isinstance(value, str) else value
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return tuple(words)
    if layout.cells and isinstance(value, str):
        return tuple(value.split())  # words that look like a JSON list, such as [ 1 ]
    raise InputError(f"{layout.text} {short_repr(words)} arrived; expected a list of words")


def _unit(target: Record) -> Unit:
    for keys, unit in PLACES.items():
        if all(key in target for key in keys):
            return unit
    raise InputError(
        f"target {short_repr(target)} arrived; expected keys token, or start and stop, or head and dependent"
    )


def _targets(target: object, unit: Unit, key: str) -> list[Target]:
    """A list with the target that an object describes; empty if it has no label."""
    if not isinstance(target, dict) or _unit(target) != unit:
        raise InputError(f"target {short_repr(target)} arrived among targets of unit {unit}; expected one unit")
    if key not in target:
        raise _no_column(target, f"the label ({key})", "name one with label=")
    label = label_name(target[key])
    positions = [target[key] for keys, keys_unit in PLACES.items() if keys_unit == unit for key in keys]
    if not all(type(position) is int for position in positions):
        raise InputError(f"target {short_repr(target)} arrived; expected whole numbers as positions")
    return [] if label is None else [(positions, label)]


def _list(cell: str) -> list[object]:
    """The list in a cell: JSON, or items separated by spaces."""
    cell = cell.strip()
    if cell.startswith("[") and cell.endswith("]"):
        try:
            return list(_json(cell))
        except InputError:
            if cell[1] in "'\"":  # the repr of a Python list
                raise InputError(
                    f"{short_repr(cell)} is not a JSON list; write one, or words separated by spaces"
                ) from None
    return list(cell.split())


def _cell_label(value: object) -> str | None:
    """The label in a cell; None if the cell is empty or `_`."""
    return None if value in ("", "_") else label_name(value)


def _objects(path: Path) -> Iterator[tuple[int, Record]]:
    for number, line in numbered_lines(read_text(path)):
        if not line.strip():
            continue
        try:
            record = _json(line)
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
        if not isinstance(record, dict):
            raise InputError(f"{path}, line {number}: {short_repr(record)} arrived; expected a JSON object")
        yield number, record


def _json(text: str) -> Any:
    """The value of a JSON text; NaN and Infinity, which are not JSON, are refused."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise InputError(f"{short_repr(text)} is nested too deeply; expected JSON") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{error.msg} at column {error.colno}; expected JSON") from None
    except ValueError as error:  # NaN, or an integer with more digits than Python accepts
        raise InputError(f"{str(error).partition(';')[0]}; expected JSON") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, Record]]:
    """The rows of a table with a header, each with the number of its last line."""
    # strict: an unpaired quote, which would join the following cells to one, is an error
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    try:
        for row in reader:
            if header is None:
                header = [name.strip() for name in row]
                if len(set(header)) < len(header):
                    raise InputError(f"{path}, line 1: columns {short_repr(header)}; expected each name once")
            elif len(row) == len(header):
                yield reader.line_num, dict(zip(header, row, strict=True))
            elif row:
                raise InputError(
                    f"{path}, line {reader.line_num}: {len(row)} cells; the header has {len(header)}: expected cells "
                    f"separated by {'tabs' if delimiter == TAB else 'commas'}, and quoted where they hold one"
                )
    except csv.Error as error:
        problem = f"{path}, line {reader.line_num}: {error}"
        raise InputError(f"{problem}; expected cells that hold a quote to be quoted, with quotes doubled") from None

"""JSON lines, CSV and TSV: one record per text, with one label for the whole text or with labels for targets in it.

A target is a token, a span or a pair of tokens that has a label. The unit of a task says what gets one vector: a token,
a span, a pair or a sentence. The form of a record determines the unit:

    {"text": "...", "label": "..."}                                            sentence
    {"words": [...], "targets": ["NOUN", null, ...]}                           token, one label per word
    {"words": [...], "targets": [{"token": 3, "label": "..."}]}                token
    {"words": [...], "targets": [{"start": 0, "stop": 2, "label": "..."}]}     span
    {"words": [...], "targets": [{"head": 3, "dependent": 1, "label": "..."}]} pair

Word indices start at 0, `stop` is one past the last word, and null means no label. The keys may also have the other
names in WORDS, TEXT, TARGETS and LABEL. In CSV and TSV, a field with words or targets contains a JSON list, or items
separated by spaces, with `_` for no label.
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
"""Records, each with the number of its line or row, from 1."""


@dataclass(frozen=True)
class Layout:
    """Which columns hold the text and its labels, and in which form."""

    text: str
    label: str
    key: str | None  # if targets are objects: the key of their label, if the option `label` names it
    is_word_list: bool  # the text column contains a list of words
    has_targets: bool  # the label column contains targets, not one label of the text
    from_csv: bool  # values are fields of CSV or TSV, so lists are strings


def read_jsonl(path: Path, split: str, options: Options) -> Reading:
    """Read a file with one JSON object per line: the unit, and the annotated texts of each split."""
    return _reading(path, _objects(path), split, options, from_csv=False)


def read_csv(path: Path, split: str, options: Options) -> Reading:
    """Read a CSV file with a header: the unit, and the annotated texts of each split."""
    return _reading(path, _rows(path, ","), split, options, from_csv=True)


def read_tsv(path: Path, split: str, options: Options) -> Reading:
    """Read a TSV file with a header: the unit, and the annotated texts of each split."""
    return _reading(path, _rows(path, TAB), split, options, from_csv=True)


def _reading(path: Path, records: Records, split: str, options: Options, *, from_csv: bool) -> Reading:
    unit, splits = annotate(str(path), records, split, options, from_csv=from_csv)
    if unit is None:
        raise InputError(
            f"{path}: no labelled example found; check the options that name the columns: label=, text=, words="
        )
    if unit == "sentence":
        texts = [targets for annotated in splits.values() for _, targets in annotated]
        unlabelled = sum(not targets for targets in texts)
        if unlabelled:
            LOG.warning("%s: %d of %d texts have no label and are excluded", path, unlabelled, len(texts))
    return unit, splits


def annotate(
    where: str, records: Records, split: str, options: Options, *, from_csv: bool, number_name: str = "line"
) -> tuple[Unit | None, dict[str, list[Annotated]]]:
    """The unit (None if nothing is labelled), and the annotated texts of each split.

    The first record determines the layout of all records. where: the name of the source, for error messages. records:
    each with its number. number_name: what this number counts, for error messages: lines of a file, or rows.
    """
    layout: Layout | None = None
    column: str | None = None
    splits: dict[str, list[Annotated]] = {}
    units: set[Unit] = set()
    for number, record in records:
        try:
            if layout is None:
                layout, column = find_layout(record, options, from_csv=from_csv), _split_column(record, options)
            unit, annotated = _annotated(record, layout)
            split_name = split if column is None else _split_name(record, column)
            units |= {unit} if annotated[1] else set()
            if len(units) > 1:
                earlier = ", ".join(units - {unit})
                raise InputError(f"{unit} target after {earlier} targets; expected targets of one unit in all records")
        except InputError as error:
            raise InputError(f"{where}, {number_name} {number}: {error}") from None
        splits.setdefault(split_name, []).append(annotated)
    return units.pop() if units else None, splits


def find_layout(record: Record, options: Options, *, from_csv: bool) -> Layout:
    """The layout of records like this one: the columns that the options name, else columns with the usual names."""
    if options.unit not in {None, "token", "sentence"}:
        raise InputError(
            f"unit {options.unit!r} requested; expected token or sentence: spans and pairs are recognised by the keys "
            "of their targets (start and stop, head and dependent)"
        )
    words = _column(record, options.words, WORDS, "words=")
    text = _column(record, options.text, TEXT, "text=")
    label, key = _label_column(record, options, sentence_first=options.unit == "sentence" or words is None)
    if options.unit is not None:
        has_targets = options.unit == "token"
    elif from_csv:
        has_targets = words is not None and options.text is None and label not in LABEL
    else:
        has_targets = isinstance(record[label], list)
    source = words if has_targets or options.words or text is None else text
    if source is None:
        usual, option = (WORDS, "words=") if has_targets else (TEXT + WORDS, "text= or words=")
        raise _no_column(record, f"text column ({' or '.join(usual)})", f"name one with {option}")
    return Layout(source, label, key, is_word_list=source == words, has_targets=has_targets, from_csv=from_csv)


def label_name(value: object) -> str | None:
    """The name of a label; numbers and booleans are written as in JSON, and None means no label."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise InputError(f"invalid label {short_repr(value)}; expected a string, a number or true/false")


def _column(record: Record, name: str | None, usual: tuple[str, ...], option: str) -> str | None:
    if name is not None and name not in record:
        raise _no_column(record, f"column {short_repr(name)}", f"set {option} to one of them")
    return name or next((column for column in usual if column in record), None)


def _label_column(record: Record, options: Options, *, sentence_first: bool) -> tuple[str, str | None]:
    """The column of the label, and the key of the label in its targets if the option `label` does not name a column."""
    usual = LABEL + TARGETS if sentence_first else TARGETS + LABEL
    default = next((name for name in usual if name in record), None)
    if options.label is None and default is not None:
        return default, None
    if options.label is not None and options.label in record:
        return options.label, None
    if options.label is not None and default is not None and isinstance(record[default], list):
        return default, options.label
    if options.label is not None:
        raise _no_column(record, f"column {short_repr(options.label)}", "set label= to one of them")
    raise _no_column(record, f"label column ({' or '.join(usual)})", "name one with label=")


def _no_column(record: Collection[str], missing: str, advice: str) -> InputError:
    return InputError(f"no {missing}; the columns are {_listed(record)}: {advice}")


def _listed(names: Collection[str]) -> str:
    return ", ".join(short_repr(name) for name in list(names)[:20]) or "none"


def _split_column(record: Record, options: Options) -> str | None:
    """The name of the column with the split of each record; None if there is none."""
    if options.split_column is not None:
        return _column(record, options.split_column, (), "split_column=")
    has_splits = options.find_splits and str(record.get(SPLIT, "")).strip() in SPLITS
    return SPLIT if has_splits else None


def _split_name(record: Record, column: str) -> str:
    value = record.get(column)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"invalid split {short_repr(value)}; expected a name in column {column!r}")
    return value.strip()


def _annotated(record: Record, layout: Layout) -> tuple[Unit, Annotated]:
    for column in (layout.text, layout.label):
        if column not in record:
            raise _no_column(record, f"column {short_repr(column)}", "all records must have the same columns")
    text = _text(record[layout.text], layout)
    value = record[layout.label]
    if not layout.has_targets:
        label = _field_label(value.strip()) if layout.from_csv else label_name(value)
        return "sentence", (text, [] if label is None else [((), label)])
    values = _list(value) if layout.from_csv else value
    if not isinstance(values, list):
        raise InputError(f"invalid {layout.label} {short_repr(values)}; expected a list of targets")
    if values and isinstance(values[0], dict):
        unit = _unit(values[0])
        return unit, (text, [target for value in values for target in _targets(value, unit, layout.key or "label")])
    if values and layout.key is not None:
        raise InputError(
            f"label={layout.key} names neither a column ({_listed(record)}) nor a key of the targets, which are plain "
            "labels; omit it or name a column"
        )
    if len(values) != len(text) and (values or layout.from_csv):
        raise InputError(f"{len(text)} words but {len(values)} labels; expected one label per word")
    labels = [_field_label(value) if layout.from_csv else label_name(value) for value in values]
    return "token", (text, [((i,), label) for i, label in enumerate(labels) if label is not None])


def _text(value: object, layout: Layout) -> Text:
    if not layout.is_word_list:
        if isinstance(value, str):
            return value
        raise InputError(f"invalid {layout.text} {short_repr(value)}; expected a string")
    words = _list(value) if layout.from_csv and isinstance(value, str) else value
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return tuple(words)
    if layout.from_csv and isinstance(value, str):
        return tuple(value.split())  # words that look like a JSON list, such as [ 1 ]
    raise InputError(f"invalid {layout.text} {short_repr(words)}; expected a list of words")


def _unit(target: Record) -> Unit:
    for keys, unit in PLACES.items():
        if all(key in target for key in keys):
            return unit
    raise InputError(
        f"invalid target {short_repr(target)}; expected keys token, or start and stop, or head and dependent"
    )


def _targets(target: object, unit: Unit, key: str) -> list[Target]:
    """A list with the target that a JSON object describes; empty if the target has no label."""
    if not isinstance(target, dict) or _unit(target) != unit:
        raise InputError(
            f"invalid target {short_repr(target)}; expected a {unit} target, like the first target of this record"
        )
    if key not in target:
        raise InputError(f"a target has no key {key!r}; its keys are {_listed(target)}: name its label with label=")
    label = label_name(target[key])
    positions = [target[key] for keys, keys_unit in PLACES.items() if keys_unit == unit for key in keys]
    if not all(type(position) is int for position in positions):
        raise InputError(f"invalid target {short_repr(target)}; expected whole numbers as positions")
    return [] if label is None else [(positions, label)]


def _list(field: str) -> list[object]:
    """The list in a field of CSV or TSV: JSON, or items separated by spaces."""
    field = field.strip()
    if field.startswith("[") and field.endswith("]"):
        try:
            return list(_json(field))
        except InputError:
            if field[1] in "'\"":  # the repr of a Python list
                raise InputError(
                    f"{short_repr(field)} is not a JSON list; use double quotes, or items separated by spaces"
                ) from None
    return list(field.split())


def _field_label(value: object) -> str | None:
    """The label in a field of CSV or TSV; None if the field is empty or `_`."""
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
            raise InputError(f"{path}, line {number}: invalid record {short_repr(record)}; expected a JSON object")
        yield number, record


def _json(text: str) -> Any:
    """The value of a JSON text; NaN and Infinity, which are not JSON, are refused."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise InputError(f"{short_repr(text)} is nested too deeply; expected JSON") from None
    except json.JSONDecodeError as error:
        raise InputError(f"invalid JSON at character {error.colno}: {error.msg}") from None
    except ValueError as error:  # NaN, or an integer with more digits than Python accepts
        raise InputError(f"{str(error).partition(';')[0]}; expected JSON") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, Record]]:
    """The rows of a table with a header, each with the number of its last line."""
    # strict: an unpaired quote is an error; otherwise it would swallow the following fields
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    try:
        for row in reader:
            if header is None:
                header = [name.strip() for name in row]
                if len(set(header)) < len(header):
                    raise InputError(
                        f"{path}, line 1: duplicate names in the columns {short_repr(header)}; expected each name once"
                    )
            elif len(row) == len(header):
                yield reader.line_num, dict(zip(header, row, strict=True))
            elif row:
                raise InputError(
                    f"{path}, line {reader.line_num}: {len(row)} fields, but the header has {len(header)}; separate "
                    f"fields by {'tabs' if delimiter == TAB else 'commas'}, and quote a field that contains "
                    f"{'a tab' if delimiter == TAB else 'a comma'}"
                )
    except csv.Error as error:
        problem = f"{path}, line {reader.line_num}: {error}"
        raise InputError(
            f"{problem}; enclose a field that contains a quote in quotes, and double the inner quotes"
        ) from None

"""Records with a text and its labels, from any table: which columns to use, and the labelled examples in each record.

A target is a token, a span or a pair of tokens that has a label. The unit of a task says what gets one vector: a token,
a span, a pair or a sentence. The form of a record determines the unit:

    {"text": "...", "label": "..."}                                            sentence
    {"text_a": "...", "text_b": "...", "label": "..."}                         sentence (a pair of texts)
    {"text": "...", "spans": [{"start": 0, "end": 5, "label": "..."}]}         span, by characters
    {"words": [...], "targets": ["NOUN", null, ...]}                           token, one label per word
    {"words": [...], "targets": [{"token": 3, "label": "..."}]}                token
    {"words": [...], "targets": [{"start": 0, "stop": 2, "label": "..."}]}     span, by words
    {"words": [...], "targets": [{"head": 3, "dependent": 1, "label": "..."}]} pair

Indices start at 0, `stop` and `end` are one past the last word or character, and null means no label. The keys may also
have the other names in WORDS, TEXT, PAIRS, TARGETS, SPANS and LABEL. In CSV and TSV, a field with words or targets
contains a JSON list, or items separated by spaces, with `_` for no label.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from closerlook.errors import InputError
from closerlook.tasks.readers.source import SHOWN, Options, Reading, listed_lines, raise_problems, short_repr
from closerlook.tasks.readers.spans import find_spans
from closerlook.tasks.readers.values import MISSING, label_name, list_in_field, split_labels
from closerlook.tasks.task import SPLIT_NAMES, Annotated, Target, Unit, check_annotated, split_name
from closerlook.texts import RunningText, Text, TextPair, joined

WORDS = ("words", "tokens")
TEXT = ("text", "sentence", "question")
PAIRS = (
    ("text_a", "text_b"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("text1", "text2"),
)
TARGETS = ("targets", "tags", "labels")
SPANS = ("spans", "entities")
LABEL = ("label", "class")
SPLIT = "split"
PLACES: dict[tuple[str, ...], Unit] = {("token",): "token", ("start", "stop"): "span", ("head", "dependent"): "pair"}
"""The keys that give the position of a target, and the unit that they imply."""

Record = Mapping[str, Any]
Records = Iterable[tuple[int, Record | InputError]]
"""Records, each with the number of its line or row, from 1; an InputError says what is wrong with the line."""


@dataclass(frozen=True)
class Layout:
    """Which columns hold the text and its labels, and in which form."""

    text: str
    label: str
    second: str | None  # the second text of a pair
    key: str | None  # if targets are objects: the key of their label, if the option `label` names it
    is_word_list: bool  # the text column contains a list of words
    has_targets: bool  # the label column contains targets in words, not labels of the text
    from_csv: bool  # values are fields of CSV or TSV, so lists are strings
    has: str | None  # if texts have several labels: the label that is asked for
    missing: frozenset[str]  # fields that mean no label

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [column for column in (self.text, self.second, self.label) if column is not None]


@dataclass
class Found:
    """What was found while records were read, apart from their texts; numbers are those of lines or rows.

    spellings: how missing labels are written, and how often. renamed: names of splits. labels: those of texts that may
    have several. units: the units of targets. known: all labels, which have been checked.
    """

    problems: list[str] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    unlabelled: list[int] = field(default_factory=list)
    spellings: dict[str, int] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    labels: dict[str, None] = field(default_factory=dict)
    units: set[Unit] = field(default_factory=set)
    known: set[str] = field(default_factory=set)

    def notes(self, where: str, number_name: str, texts: int) -> list[str]:
        """A sentence for each kind of thing that was found; problems are not notes."""
        notes = []
        if self.renamed:
            listed = ", ".join(f"{given!r} as {name}" for given, name in self.renamed.items())
            notes.append(f"{where}: splits are read under their usual names: {listed}")
        if self.empty:
            lines = listed_lines(self.empty, number_name)
            skipped = "1 empty text is" if len(self.empty) == 1 else f"{len(self.empty)} empty texts are"
            notes.append(f"{where}: {skipped} skipped ({lines})")
        if self.unlabelled and self.units <= {"sentence"}:
            lines = listed_lines(self.unlabelled, number_name)
            found = ", ".join(f"{spelling}: {count}" for spelling, count in self.spellings.items())
            words = [spelling for spelling in self.spellings if spelling.strip("_")]
            keep = f"; if {words[0]} is a label, give keep={words[0]}" if words else ""
            spelled = f"{found}; " if words else ""
            notes.append(
                f"{where}: {len(self.unlabelled)} of {texts} texts have no label and are excluded "
                f"({spelled}{lines}){keep}"
            )
        return notes


def annotate(
    where: str, records: Records, split: str, options: Options, *, from_csv: bool, number_name: str = "line"
) -> Reading | None:
    """The annotated texts of each split, with notes about what was found; None if nothing is labelled.

    The first record determines the layout of all records. One InputError lists the problems of all records. where: the
    name of the source, for messages. records: each with its number. number_name: what this number counts, for messages:
    lines of a file, or rows.
    """
    layout: Layout | None = None
    column: str | None = None
    found = Found()
    reading = Reading("sentence", {}, {}, number_name=number_name, is_table=True)
    for number, record in records:
        at = f"{number_name} {number}"
        if isinstance(record, InputError):
            found.problems.append(f"{at}: {record}")
            continue
        try:
            if layout is None:
                layout, column = find_layout(record, options, from_csv=from_csv), _split_column(record, options)
        except InputError as error:
            raise_problems(where, [*found.problems, f"{at}: {error}"])
            continue
        try:
            annotated = _checked(record, number, layout, found)
            name = split if column is None else _split_name(record, column, found)
        except InputError as error:
            found.problems.append(f"{at}: {error}")
            continue
        if annotated is not None:
            reading.splits.setdefault(name, []).append(annotated)
            reading.lines.setdefault(name, []).append(number)
    _check_wanted(layout, found)
    raise_problems(where, found.problems)
    reading.notes = found.notes(where, number_name, sum(map(len, reading.splits.values())))
    if not found.units:
        return None
    reading.unit = found.units.pop()
    if reading.unit == "span":  # texts without spans
        reading.splits = {
            name: [(RunningText(text, ()) if isinstance(text, str) else text, targets) for text, targets in texts]
            for name, texts in reading.splits.items()
        }
    return reading


def _checked(record: Record, number: int, layout: Layout, found: Found) -> Annotated | None:
    """The annotated text of a record; None if its text is empty. Extends what was found so far."""
    for column in layout.columns:
        if column not in record:
            raise _no_column(record, f"column {short_repr(column)}", "all records must have the same columns")
    text = _text(record, layout)
    if text is None or not joined(text).strip():
        found.empty.append(number)
        return None
    unit, annotated = _annotated(record, text, layout, found)
    text, targets = annotated
    if targets and found.units - {unit}:
        earlier = ", ".join(found.units)
        raise InputError(f"{unit} target after {earlier} targets; expected targets of one unit in all records")
    found.units |= {unit} if targets else set()
    check_annotated(unit, text, targets, found.known)
    if unit == "sentence" and not targets:
        value = record[layout.label]
        spelling = value.strip() if isinstance(value, str) and value.strip() else "_"
        found.spellings[spelling] = found.spellings.get(spelling, 0) + 1
        found.unlabelled.append(number)
    return annotated


def _check_wanted(layout: Layout | None, found: Found) -> None:
    """Report if no text has the label that the option `has` asks for."""
    if layout is not None and layout.has is not None and layout.has not in found.known and not found.problems:
        listed = ", ".join(short_repr(label) for label in list(found.labels)[: 4 * SHOWN])
        raise InputError(f"has={layout.has} given, but no text has this label; the labels are {listed or 'none'}")


def find_layout(record: Record, options: Options, *, from_csv: bool) -> Layout:
    """The layout of records like this one: the columns that the options name, else columns with the usual names."""
    if options.unit not in {None, "token", "sentence"}:
        raise InputError(
            f"unit {options.unit!r} requested; expected token or sentence: spans and pairs are recognised by the keys "
            "of their targets (start and stop, head and dependent)"
        )
    words = _column(record, options.words, WORDS, "words=")
    first, second = _text_columns(record, options)
    label, key = _label_column(record, options, sentence_first=options.unit == "sentence" or words is None)
    if options.unit is not None:
        has_targets = options.unit == "token"
    elif label in SPANS and first is not None:
        has_targets = False
    elif from_csv:
        has_targets = words is not None and options.text is None and label not in LABEL
    else:
        has_targets = isinstance(record[label], list) and (words is not None or first is None)
    source = words if has_targets or options.words or first is None else first
    if source is None:
        usual, option = (WORDS, "words=") if has_targets else (TEXT + WORDS, "text= or words=")
        raise _no_column(record, f"text column ({' or '.join(usual)})", f"name one with {option}")
    keep = {spelling.strip() for spelling in (options.keep or "").split(",")} - {""}
    return Layout(
        text=source,
        label=label,
        second=second if source == first else None,
        key=key,
        is_word_list=source == words,
        has_targets=has_targets,
        from_csv=from_csv,
        has=options.has,
        missing=frozenset((MISSING if from_csv else {""}) - keep),
    )


def _text_columns(record: Record, options: Options) -> tuple[str | None, str | None]:
    """The column of the text, and that of the second text of a pair."""
    if options.text_b is not None:
        first = _column(record, options.text, (*TEXT, *(pair[0] for pair in PAIRS)), "text=")
        return first, _column(record, options.text_b, (), "text_b=")
    text = _column(record, options.text, TEXT, "text=")
    pair = next((pair for pair in PAIRS if pair[0] in record and pair[1] in record), None)
    return (text, None) if text is not None or pair is None else pair


def _column(record: Record, name: str | None, usual: tuple[str, ...], option: str) -> str | None:
    if name is not None and name not in record:
        raise _no_column(record, f"column {short_repr(name)}", f"set {option} to one of them")
    return name or next((column for column in usual if column in record), None)


def _label_column(record: Record, options: Options, *, sentence_first: bool) -> tuple[str, str | None]:
    """The column of the label, and the key of the label in its targets if the option `label` does not name a column."""
    usual = LABEL + TARGETS + SPANS if sentence_first else TARGETS + SPANS + LABEL
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
    has_splits = options.find_splits and str(record.get(SPLIT, "")).strip().lower() in SPLIT_NAMES
    return SPLIT if has_splits else None


def _split_name(record: Record, column: str, found: Found) -> str:
    value = record.get(column)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"invalid split {short_repr(value)}; expected a name in column {column!r}")
    name = split_name(value)
    if name != value.strip():
        found.renamed[value.strip()] = name
    return name


def _annotated(record: Record, text: Text, layout: Layout, found: Found) -> tuple[Unit, Annotated]:
    """The unit of a record, and its text with its targets."""
    value = record[layout.label]
    if not layout.has_targets:
        return _labelled_text(text, value, layout, found)
    values = list_in_field(value) if layout.from_csv and isinstance(value, str) else value
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
    if len(values) != len(text) and (values or layout.from_csv):  # type: ignore[arg-type]  # text: a tuple of words
        raise InputError(f"{len(text)} words but {len(values)} labels; expected one label per word")  # type: ignore[arg-type]
    none = ("", "_") if layout.from_csv else ("",)
    labels = [None if value in none else label_name(value) for value in values]
    return "token", (text, [((i,), label) for i, label in enumerate(labels) if label is not None])


def _labelled_text(text: Text, value: object, layout: Layout, found: Found) -> tuple[Unit, Annotated]:
    """A text with its one label, or with the labels of spans that are given by characters."""
    values = value
    if layout.from_csv and isinstance(value, str):
        field = value.strip()
        values = list_in_field(field) if field.startswith("[") and field.endswith("]") else field
    if isinstance(values, list) and any(isinstance(item, dict | list) for item in values):
        if not isinstance(text, str):
            raise InputError(f"{layout.label} has spans by characters; expected them in a column of plain text (text=)")
        return "span", find_spans(text, values, layout.key)
    several = isinstance(values, list) or layout.has is not None
    label = _one_label(values, layout, found) if several else _plain_label(values, layout)
    return "sentence", (text, [] if label is None else [((), label)])


def _plain_label(value: object, layout: Layout) -> str | None:
    return None if isinstance(value, str) and value in layout.missing else label_name(value)


def _one_label(values: object, layout: Layout, found: Found) -> str | None:
    """The label of a text that may have several: the only one, or whether the label of the option `has` is present."""
    if isinstance(values, list):
        labels = [name for item in values if (name := label_name(item)) is not None]
    else:
        label = _plain_label(values, layout)
        labels = [] if label is None else split_labels(label)
    found.labels |= dict.fromkeys(labels)
    if layout.has is not None:
        return layout.has if layout.has in labels else f"not {layout.has}"
    if len(labels) > 1:
        raise InputError(
            f"{len(labels)} labels {short_repr(labels)} of one text; expected one: make a task for each label, with "
            f"has={labels[0]} for texts that have it and texts that do not"
        )
    return labels[0] if labels else None


def _text(record: Record, layout: Layout) -> Text | None:
    """The text of a record; None if it is missing."""
    value = record[layout.text]
    if layout.second is not None:
        parts = [_plain_text(record[column], column) for column in (layout.text, layout.second)]
        return None if None in parts else TextPair(*(part or "" for part in parts))
    if not layout.is_word_list:
        return _plain_text(value, layout.text)
    if value is None:
        return None
    words = list_in_field(value) if layout.from_csv and isinstance(value, str) else value
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return tuple(words)
    if layout.from_csv and isinstance(value, str):
        return tuple(value.split())  # words that look like a JSON list, such as [ 1 ]
    raise InputError(f"invalid {layout.text} {short_repr(words)}; expected a list of words")


def _plain_text(value: object, column: str) -> str | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return value if value.strip() else None
    raise InputError(f"invalid {column} {short_repr(value)}; expected a string")


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

"""CoNLL-2003 columns: one word per line, followed by its tags, and an empty line between sentences."""

from __future__ import annotations

from pathlib import Path

from closerlook.errors import InputError
from closerlook.tasks.readers.source import Options, Reading, numbered_lines, read_any_text, short_repr
from closerlook.tasks.task import Annotated

DOCUMENT = "-DOCSTART-"
"""The first column of a line that begins a document; such a line is not part of a sentence."""

WORD, LABEL = "0", "-1"


def read(path: Path, split: str, options: Options) -> Reading:
    """Read the labelled words of a file: the unit, and the annotated sentences of the split.

    The options `words` and `label` are column numbers that start at 0; negative numbers count from the end. By default
    the word is in the first column and its label in the last. A word with the label `_` is not an example.
    """
    word_column, label_column = _number("words", options.words or WORD), _number("label", options.label or LABEL)
    sentences: list[Annotated] = []
    lines: list[int] = []
    words: list[str] = []
    labels: list[str] = []
    columns = 0
    text, notes = read_any_text(path, options.encoding)
    for number, line in numbered_lines(text + "\n"):
        fields = line.split("\t") if "\t" in line else line.split()
        if fields and fields[0] == DOCUMENT:
            continue
        if not line.strip():
            if words:
                targets = [((i,), label) for i, label in enumerate(labels) if label != "_"]
                sentences.append((tuple(words), targets))
                lines.append(number - len(words))
            words, labels = [], []
            continue
        columns = columns or len(fields)
        if len(fields) != columns or not all(-columns <= number < columns for number in (word_column, label_column)):
            raise InputError(
                f"{path}, line {number}: {short_repr(line)} has {len(fields)} columns; expected {columns}, with the "
                f"word in column {word_column} and its label in column {label_column} (words=, label=)"
            )
        words.append(fields[word_column].strip())
        labels.append(fields[label_column].strip())
    return Reading("token", {split: sentences}, {split: lines}, notes)


def _number(option: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InputError(f"invalid {option} {value!r}; expected the number of a column, such as 0 or -1") from None

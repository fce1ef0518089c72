"""Columns as in CoNLL-2003: a word a line with its tags behind it, and an empty line between sentences."""

from __future__ import annotations

from pathlib import Path

from closerlook.errors import InputError
from closerlook.tasks.readers.source import Options, Reading, numbered_lines, read_text, shown
from closerlook.tasks.task import Annotated

DOCUMENT = "-DOCSTART-"
"""The word of lines that begin a document, and are no sentence."""

WORD, LABEL = "0", "-1"


def read(path: Path, split: str, options: Options) -> Reading:
    """The words of a file; `words` and `label` are the numbers of columns, from 0, or from the end with a minus.

    The first and the last unless given. A label `_` is none.
    """
    at = _number("words", options.words or WORD), _number("label", options.label or LABEL)
    sentences: list[Annotated] = []
    words: list[str] = []
    labels: list[str] = []
    columns = 0
    for number, line in numbered_lines(read_text(path) + "\n"):
        cells = line.split("\t") if "\t" in line else line.split()
        if cells and cells[0] == DOCUMENT:
            continue
        if not line.strip():
            if words:
                targets = [((place,), label) for place, label in enumerate(labels) if label != "_"]
                sentences.append((tuple(words), targets))
            words, labels = [], []
            continue
        columns = columns or len(cells)
        if len(cells) != columns or not all(-columns <= one < columns for one in at):
            raise InputError(
                f"{path}, line {number}: {shown(line)} has {len(cells)} columns; expected {columns}, with the word in "
                f"column {at[0]} and its label in column {at[1]} (words=, label=)"
            )
        words.append(cells[at[0]].strip())
        labels.append(cells[at[1]].strip())
    return "token", {split: sentences}


def _number(option: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InputError(f"{option} {value!r} arrived; expected the number of a column, such as 0 or -1") from None

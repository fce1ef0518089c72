"""STREUSLE's .conllulex (https://github.com/nert-nlp/streusle): supersenses of prepositions and possessives."""

from __future__ import annotations

from pathlib import Path

from closerlook.errors import InputError
from closerlook.tasks.readers.conllu import read_sentences
from closerlook.tasks.readers.source import Options, Reading
from closerlook.tasks.task import Annotated, Target

COLUMNS = 19
STRONG_EXPRESSION = 10  # `_` for a word that is not part of a strong multiword expression
SUPERSENSE = {"role": 13, "function": 14}
ADPOSITIONAL = "p."  # supersenses of nouns begin with n., of verbs with v.; ?? and `$ mark unlabelled words


def read(path: Path, split: str, options: Options) -> Reading:
    """The single-word prepositions and possessives of a file, labelled with their scene role (default) or function."""
    label = options.label or "role"
    if label not in SUPERSENSE:
        raise InputError(f"label {label!r} is unknown in .conllulex; expected role or function")
    column = SUPERSENSE[label]
    sentences = list(read_sentences(path, COLUMNS, empty_nodes=False))
    texts: list[Annotated] = [(sentence.words, _supersenses(sentence.rows, column)) for sentence in sentences]
    return Reading("token", {split: texts}, {split: [sentence.numbers[0] for sentence in sentences]})


def _supersenses(rows: list[list[str]], column: int) -> list[Target]:
    return [
        ((i,), row[column].removeprefix(ADPOSITIONAL))
        for i, row in enumerate(rows)
        if row[STRONG_EXPRESSION] == "_" and row[column].startswith(ADPOSITIONAL)
    ]

"""CoNLL-U (https://universaldependencies.org/format.html): tags, features, relations and comments as labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from closerlook.errors import InputError
from closerlook.tasks.readers.source import Options, Reading, numbered_lines, read_text, short_repr
from closerlook.tasks.task import Target, Unit

COLUMNS = 10
ID, FORM, UPOS, XPOS, FEATS, HEAD, DEPREL, MISC = 0, 1, 3, 4, 5, 6, 7, 9
LABELS = "upos, xpos, deprel, feats:KEY, misc:KEY or comment:KEY"

MULTIWORD = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")

Row = list[str]


@dataclass(frozen=True)
class Sentence:
    """A sentence: the rows that are words (or empty nodes, if kept), the line number of each, and the comment lines."""

    path: Path
    rows: list[Row]
    numbers: list[int]
    comments: list[str]

    @property
    def words(self) -> tuple[str, ...]:
        """The forms of the words, in order."""
        return tuple([row[FORM] for row in self.rows])


Labelling = Callable[[Sentence], Sequence[Target]]


def read(path: Path, split: str, options: Options) -> Reading:
    """The examples of a CoNLL-U file, with the labels that `options.label` chooses (by default UPOS).

    HEAD is checked only for `deprel`, which needs it.
    """
    unit, labelling = _labelling(options.label or "upos")
    sentences = read_sentences(path, COLUMNS, empty_nodes=options.empty_nodes)
    return unit, {split: [(sentence.words, labelling(sentence)) for sentence in sentences]}


def read_sentences(path: Path, columns: int, *, empty_nodes: bool) -> Iterator[Sentence]:
    """All sentences of a file with that many columns; rows of multiword tokens are skipped, since their words follow.

    The id of a word or an empty node is compared with the only one possible in its row; only ids of multiword tokens
    are parsed.
    """
    rows: list[Row] = []
    numbers: list[int] = []
    comments: list[str] = []
    words = empty = 0  # the ids seen so far in this sentence: `words`, then `words.empty`
    for number, line in numbered_lines(read_text(path) + "\n"):
        if not line:
            if rows:
                yield Sentence(path, rows, numbers, comments)
            rows, numbers, comments, words, empty = [], [], [], 0, 0
            continue
        if line[0] == "#":
            comments.append(line)
            continue
        row = line.split("\t")
        if len(row) != columns:
            raise InputError(f"{path}, line {number}: {len(row)} columns; expected {columns}, separated by tabs")
        if row[ID] == str(words + 1):
            words, empty = words + 1, 0
        elif row[ID] == f"{words}.{empty + 1}":
            empty += 1
            if not empty_nodes:
                continue
        elif _is_multiword(row[ID], words + 1):
            continue
        else:
            raise InputError(
                f"{path}, line {number}: id {short_repr(row[ID])}; expected {words + 1}: ids count words from 1"
            )
        rows.append(row)
        numbers.append(number)


def _is_multiword(id_: str, start: int) -> bool:
    """Whether the id is the range of a multiword token that begins with word `start`."""
    match = MULTIWORD.fullmatch(id_)
    return match is not None and start == int(match[1]) <= int(match[2])


def _labelling(label: str) -> tuple[Unit, Labelling]:
    """The unit of a label option, and the function that returns the examples of a sentence."""
    field, _, key = label.partition(":")
    match field, bool(key):
        case "upos", False:
            return "token", lambda sentence: _tags(sentence, UPOS)
        case "xpos", False:
            return "token", lambda sentence: _tags(sentence, XPOS)
        case "deprel", False:
            return "pair", _relations
        case "feats", True:
            return "token", lambda sentence: _values(sentence, FEATS, key)
        case "misc", True:
            return "token", lambda sentence: _values(sentence, MISC, key)
        case "comment", True:
            return "sentence", lambda sentence: _comment(sentence, key)
    raise InputError(f"label {label!r} is unknown in CoNLL-U; expected {LABELS}")


def _tags(sentence: Sentence, column: int) -> list[Target]:
    return [((i,), row[column]) for i, row in enumerate(sentence.rows) if row[column] != "_"]


def _values(sentence: Sentence, column: int, key: str) -> list[Target]:
    """Each word's value of a key in a column like `Case=Nom|Number=Sing`."""
    start = f"{key}="
    cells = ((i, row[column]) for i, row in enumerate(sentence.rows) if start in row[column])
    pairs = ((i, next((pair for pair in cell.split("|") if pair.startswith(start)), "_")) for i, cell in cells)
    return [((i,), pair.removeprefix(start)) for i, pair in pairs if pair not in {"_", start + "_"}]


def _relations(sentence: Sentence) -> list[Target]:
    """(head, dependent) and relation in the basic tree; excludes `root`, which has no head, and empty nodes."""
    position = {row[ID]: i for i, row in enumerate(sentence.rows) if "." not in row[ID]}
    targets: list[Target] = []
    for i, row in enumerate(sentence.rows):
        head, relation = row[HEAD], row[DEPREL]
        if relation == "_" or row[ID] not in position:
            continue
        if head not in position and head != "0":
            where = f"{sentence.path}, line {sentence.numbers[i]}"
            raise InputError(f"{where}: HEAD {short_repr(head)}; expected 0 to {len(position)}, a word of the sentence")
        if relation != "root" and head != "0":
            targets.append(((position[head], i), relation))
    return targets


def _comment(sentence: Sentence, key: str) -> list[Target]:
    """The sentence's value of a comment `# key = value`."""
    for comment in sentence.comments:
        name, _, value = comment.removeprefix("#").partition("=")
        if name.strip() == key and value.strip() not in {"", "_"}:
            return [((), value.strip())]
    return []

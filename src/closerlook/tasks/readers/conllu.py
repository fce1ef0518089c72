"""CoNLL-U (https://universaldependencies.org/format.html): tags, features, relations and comments as labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from closerlook.errors import InputError
from closerlook.tasks.readers.source import Options, Reading, numbered_lines, read_text, short_repr
from closerlook.tasks.task import Target, Unit
from closerlook.texts import RunningText, Text

COLUMNS = 10
ID, FORM, UPOS, XPOS, FEATS, HEAD, DEPREL, MISC = 0, 1, 3, 4, 5, 6, 7, 9
LABELS = "upos, xpos, deprel, feats:KEY, misc:KEY or comment:KEY"

NO_SPACE = "SpaceAfter=No"
JOINS = ("written", "spaces")

MULTIWORD = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")

Row = list[str]


@dataclass(frozen=True)
class Sentence:
    """A sentence: the rows that are words (or empty nodes, if kept), the line number of each, and the comment lines.

    tokens: the row of each multiword token, such as `2-3 don't`, by the index of its first word in `rows`.
    """

    path: Path
    rows: list[Row]
    numbers: list[int]
    comments: list[str]
    tokens: dict[int, Row]

    @property
    def words(self) -> tuple[str, ...]:
        """The forms of the words, in order."""
        return tuple([row[FORM] for row in self.rows])

    def written(self) -> Text:
        """The words in the running text, without spaces where the file says so; only the words if each has a space.

        A sentence with empty nodes, which are not written, is only its words. A multiword token is written as its own
        form, and its words share its characters: each its own ones if the words joined are the token, otherwise parts
        in proportion to the lengths of the words.
        """
        as_words = not self.tokens and not any(NO_SPACE in row[MISC] for row in self.rows[:-1])
        if as_words or any("." in row[ID] for row in self.rows):
            return self.words
        text, spans = "", []
        i = 0
        while i < len(self.rows):
            token = self.tokens.get(i, self.rows[i])
            end = i + (_size(token[ID]) if i in self.tokens else 1)
            spans += [(len(text) + a, len(text) + b) for a, b in _shares(token[FORM], self.words[i:end])]
            text += token[FORM] + ("" if NO_SPACE in token[MISC].split("|") else " ")
            i = end
        running = RunningText(text.rstrip(" "), tuple(spans))
        return running if running.words == self.words else replace(running, forms=self.words)


Labelling = Callable[[Sentence], Sequence[Target]]


def read(path: Path, split: str, options: Options) -> Reading:
    """The examples of a CoNLL-U file, with the labels that `options.label` chooses (by default UPOS).

    HEAD is checked only for `deprel`, which needs it. `options.join`: 'written' (default) joins words as
    `SpaceAfter=No` and multiword tokens say, 'spaces' puts a space between all words.
    """
    unit, labelling = _labelling(options.label or "upos")
    join = options.join or JOINS[0]
    if join not in JOINS:
        raise InputError(f"join {join!r} is unknown; expected {' or '.join(JOINS)}")
    sentences = list(read_sentences(path, COLUMNS, empty_nodes=options.empty_nodes))
    texts = [
        (sentence.written() if join == "written" else sentence.words, labelling(sentence)) for sentence in sentences
    ]
    return Reading(unit, {split: texts}, {split: [sentence.numbers[0] for sentence in sentences]})


def read_sentences(path: Path, columns: int, *, empty_nodes: bool) -> Iterator[Sentence]:
    """All sentences of a file with that many columns; rows of multiword tokens are no words, since their words follow.

    The id of a word or an empty node is compared with the only one possible in its row; only ids of multiword tokens
    are parsed.
    """
    rows: list[Row] = []
    numbers: list[int] = []
    comments: list[str] = []
    tokens: dict[int, Row] = {}
    words = empty = 0  # the ids seen so far in this sentence: `words`, then `words.empty`
    for number, line in numbered_lines(read_text(path) + "\n"):
        if not line:
            if rows:
                yield Sentence(path, rows, numbers, comments, tokens)
            rows, numbers, comments, tokens, words, empty = [], [], [], {}, 0, 0
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
            tokens[len(rows)] = row
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


def _size(id_: str) -> int:
    """The number of words of a multiword token."""
    first, _, last = id_.partition("-")
    return int(last) - int(first) + 1


def _shares(form: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """The characters of a token that belong to each of its words; all of them if it has fewer characters than words.

    >>> _shares("don't", ["do", "n't"]), _shares("zum", ["zu", "dem"])
    ([(0, 2), (2, 5)], [(0, 1), (1, 3)])
    """
    if len(form) < len(words):
        return [(0, len(form))] * len(words)
    total = sum(map(len, words))
    ends = [round(sum(map(len, words[: i + 1])) * len(form) / total) for i in range(len(words))]
    for i in range(len(words)):  # at least one character for each word
        ends[i] = min(max(ends[i], (ends[i - 1] if i else 0) + 1), len(form) - (len(words) - 1 - i))
    return list(zip([0, *ends[:-1]], ends, strict=True))


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

"""Task: texts with labelled examples, in splits. An example is a word, a pair of words, a span or a sentence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.notebook import html
from closerlook.texts import Text, TextPair, joined, words_of

if TYPE_CHECKING:
    import pandas as pd

Unit = Literal["token", "pair", "span", "sentence"]

POSITIONS: dict[Unit, tuple[str, ...]] = {
    "token": ("word",),
    "pair": ("head", "dependent"),
    "span": ("start", "stop"),
    "sentence": (),
}
"""For each unit, the meaning of the columns of `Split.positions`; `stop` is one past the last word."""

VECTORS_PER_EXAMPLE: dict[Unit, int] = {"token": 1, "pair": 2, "span": 1, "sentence": 1}
"""How many pooled vectors make up one example; a pair is the vector of its head, then that of its dependent."""

DEV = "dev"
SPLIT_NAMES = {"train": "train", **dict.fromkeys((DEV, "valid", "validation", "val"), DEV), "test": "test"}
"""The names of splits that are recognised, in lower case, and the name of each in a task."""

Target = tuple[Sequence[int], str]
"""One example in a text: its positions (see `POSITIONS`) and its label."""

Annotated = tuple[Text, Sequence[Target]]
"""A text and its examples, in order; every reader returns these."""


def split_name(name: str) -> str:
    """The name of a split in a task: train, dev or test for every usual way to write them; others are unchanged.

    >>> split_name("Train"), split_name("validation"), split_name("Extra")
    ('train', 'dev', 'Extra')
    """
    return SPLIT_NAMES.get(name.strip().lower(), name.strip())


def split_order(name: str) -> tuple[int, str]:
    """Sort key for names of splits: train, then dev (any of its names), then test, then all others by name.

    >>> sorted(["extra", "test", "validation", "train"], key=split_order)
    ['train', 'validation', 'test', 'extra']
    """
    ranks = {"train": 0, DEV: 1, "test": 2}
    return ranks.get(split_name(name), 3), name


@dataclass(frozen=True, eq=False)
class Split:
    """The texts of one split of a task, and its n labelled examples.

    texts: in the order of the file, including texts without an example.
    sentence: (n,) for each example, the index of its text.
    positions: (n, p) for each example, its words in that text; `POSITIONS` has the columns of each unit.
    y: (n,) for each example, its label as an index into the task's `labels`.

    >>> task = Task.build("weather", "token", {"train": [(("light", "rain"), [((0,), "ADJ"), ((1,), "NOUN")])]})
    >>> split = task.split("train")
    >>> split
    Split('train', 1 texts, 2 examples)
    >>> split.sentence.tolist(), split.positions.tolist(), split.y.tolist()
    ([0, 0], [[0], [1]], [0, 1])
    """

    name: str
    texts: tuple[Text, ...]
    sentence: NDArray[np.int32]
    positions: NDArray[np.int32]
    y: NDArray[np.int32]

    def __post_init__(self) -> None:
        for array in (self.sentence, self.positions, self.y):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Split({self.name!r}, {len(self.texts)} texts, {len(self)} examples)"

    def __reduce__(self) -> tuple[type[Split], tuple[object, ...]]:
        return Split, (self.name, self.texts, self.sentence, self.positions, self.y)  # makes copies read-only too


@dataclass(frozen=True, eq=False)
class Task:
    """A labelling task. Two tasks are equal if their content hashes are equal, even if their names differ.

    splits: in the order of `split_order`. notes: what was found while the task was read, such as texts without a label.

    >>> task = Task.build("weather", "token", {"train": [(("light", "rain"), [((0,), "ADJ"), ((1,), "NOUN")])]})
    >>> task.labels, len(task.split("train"))
    (('ADJ', 'NOUN'), 2)
    """

    name: str
    unit: Unit
    labels: tuple[str, ...]
    splits: tuple[Split, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def build(cls, name: str, unit: Unit, splits: Mapping[str, Iterable[Annotated]], notes: Sequence[str] = ()) -> Task:
        """A Task from annotated texts, which are checked; its labels are the sorted labels of all splits."""
        if unit not in POSITIONS:
            raise InputError(f"task {name}: unit {unit!r} is unknown; expected one of {', '.join(POSITIONS)}")
        if not splits:
            raise InputError(f"task {name}: no split was given; expected at least one, such as 'train'")
        invalid = next(
            (split for split in splits if not split.strip() or set(split) & set("/\\\0") or split in {".", ".."}), None
        )
        if invalid is not None:
            raise InputError(f"task {name}: invalid split name {invalid!a}; expected a plain word, such as 'train'")
        names = {split_name(split): split for split in sorted(splits, key=split_order)}
        if len(names) < len(splits):
            raise InputError(f"task {name}: splits {', '.join(splits)} have the same name; expected each split once")
        checked = {
            split: list(_check_texts(f"task {name}, {split}", unit, splits[given])) for split, given in names.items()
        }
        labels = tuple(sorted({label for texts in checked.values() for _, targets in texts for _, label in targets}))
        built = tuple(_split(split, unit, texts, labels) for split, texts in checked.items())
        return cls(name, unit, labels, built, tuple(notes))

    def split(self, name: str) -> Split:
        """The split of that name; 'validation', 'valid' and 'val' are 'dev'."""
        for split in self.splits:
            if split.name in {name, split_name(name)}:
                return split
        available = ", ".join(split.name for split in self.splits)
        raise InputError(f"split {name!r} requested; task {self.name} has {available}")

    @cached_property
    def content_hash(self) -> str:
        """Hex digest of the content of all splits; the same on every machine, and independent of the task's name."""
        digest = hashlib.sha256()
        for split in self.splits:
            digest.update(f"{split.name}:{self.split_hash(split)}\n".encode())
        return digest.hexdigest()

    def split_hash(self, split: Split) -> str:
        """Hex digest of the content of one split: unit, label names, texts, positions and labels."""
        content = [self.unit, self.labels, split.texts]
        head = json.dumps(content, ensure_ascii=True, separators=(",", ":"), default=vars)
        digest = hashlib.sha256(head.encode())
        for array in (split.sentence, split.positions, split.y):
            digest.update(array.astype("<i4").tobytes())
        return digest.hexdigest()

    def words(self, split: Split) -> tuple[str, ...] | None:
        """(n,) the word of each example of a split, its span, or 'head dependent'; None for sentences.

        >>> task = Task.build("weather", "span", {"train": [(("light", "rain", "fell"), [((0, 2), "SUBJECT")])]})
        >>> task.words(task.split("train"))
        ('light rain',)
        """
        if self.unit == "sentence":
            return None
        if split not in self._words:
            ranges = split.positions.tolist()
            if self.unit == "span":
                ranges = [range(start, stop) for start, stop in ranges]
            texts = list(map(words_of, split.texts))
            self._words[split] = tuple(
                " ".join(texts[i][word] for word in words)
                for i, words in zip(split.sentence.tolist(), ranges, strict=True)
            )
        return self._words[split]

    @cached_property
    def _words(self) -> dict[Split, tuple[str, ...]]:
        """The results of `words`: every space of a split needs them, and a study has hundreds of spaces."""
        return {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash(self.content_hash)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{split.name} {len(split)}" for split in self.splits)
        return f"Task({self.name!r}, {self.unit}, {len(self.labels)} labels, {sizes})"

    def to_frame(self) -> pd.DataFrame:
        """One row for each example: split, number of its text, the text, its word or span (`example`), and its label.

        For sentences, `example` is the text itself.

        >>> task = Task.build("weather", "token", {"train": [(("light", "rain"), [((1,), "NOUN")])]})
        >>> task.to_frame().to_dict("records")
        [{'split': 'train', 'sentence': 0, 'text': 'light rain', 'example': 'rain', 'label': 'NOUN'}]
        """
        import pandas as pd

        parts = []
        for split in self.splits:
            texts = [joined(split.texts[at]) for at in split.sentence.tolist()]
            parts.append(
                pd.DataFrame(
                    {
                        "split": split.name,
                        "sentence": split.sentence,
                        "text": texts,
                        "example": self.words(split) or texts,
                        "label": [self.labels[code] for code in split.y.tolist()],
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)

    def _repr_html_(self) -> str:
        counts = self.to_frame().groupby(["label", "split"], sort=False).size().unstack(fill_value=0)
        counts = counts.reindex(columns=[split.name for split in self.splits], fill_value=0)
        return html(repr(self), list(self.notes), counts.sort_index().reset_index())


def _split(name: str, unit: Unit, texts: Sequence[Annotated], labels: tuple[str, ...]) -> Split:
    code = {label: i for i, label in enumerate(labels)}
    counts = [len(targets) for _, targets in texts]
    positions = (position for _, targets in texts for words, _ in targets for position in words)
    return Split(
        name=name,
        texts=tuple(text for text, _ in texts),
        sentence=np.repeat(np.arange(len(texts), dtype=np.int32), counts),
        positions=np.fromiter(positions, dtype=np.int32).reshape(sum(counts), len(POSITIONS[unit])),
        y=np.fromiter((code[label] for _, targets in texts for _, label in targets), dtype=np.int32),
    )


def _check_texts(where: str, unit: Unit, texts: Iterable[Annotated]) -> Iterable[Annotated]:
    """The annotated texts, unchanged; raises an error at the first one that cannot be used."""
    known: set[str] = set()
    examples = 0
    for number, (text, targets) in enumerate(texts, start=1):
        try:
            check_annotated(unit, text, targets, known)
        except InputError as error:
            raise InputError(f"{where}, sentence {number}: {error}") from None
        examples += len(targets)
        yield text, targets
    if examples == 0:
        raise InputError(f"{where}: no labelled example found; expected at least one")


def check_annotated(unit: Unit, text: Text, targets: Sequence[Target], known: set[str]) -> None:
    """Raise InputError if a text or its targets cannot be used. known: the labels checked before, which is extended."""
    _check_text(text, unit)
    words = len(words_of(text))
    for positions, label in targets:
        if label not in known:
            _check_label(label)
            known.add(label)
        _check_positions(positions, words, unit)


def _check_text(text: Text, unit: Unit) -> None:
    if isinstance(text, str | TextPair) and unit != "sentence":
        raise InputError(f"the text of a {unit} task is a plain string; expected a list of words")
    parts = (text.first, text.second) if isinstance(text, TextPair) else words_of(text) or (joined(text),)
    if not parts or not all(map(str.strip, parts)):
        raise InputError("empty word or text; expected at least one character")
    try:
        joined(text).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise InputError(
            f"invalid character {half!a}, which is half a surrogate pair; expected valid Unicode"
        ) from None


def _check_label(label: str) -> None:
    if not label:
        raise InputError("empty label; expected a name")
    try:
        label.encode()
    except UnicodeEncodeError:
        raise InputError(f"label {label!a} contains half a surrogate pair; expected valid Unicode") from None


def _check_positions(positions: Sequence[int], words: int, unit: Unit) -> None:
    columns = POSITIONS[unit]
    if len(positions) != len(columns):
        raise InputError(f"invalid positions {tuple(positions)}; expected ({', '.join(columns)}) for a {unit}")
    last = words if unit == "span" else words - 1
    if columns and (min(positions) < 0 or max(positions) > last):
        raise InputError(f"invalid positions {tuple(positions)}; the sentence has words 0 to {words - 1}")
    if unit == "span" and positions[0] >= positions[1]:
        raise InputError(f"invalid span {tuple(positions)}; expected start before stop")


def choose_test_split(task: Task) -> str:
    """The split on which a task is tested: test, or else the first split that is not train."""
    names = sorted((split.name for split in task.splits), key=split_order)
    if "train" not in names or len(names) < 2:
        raise InputError(
            f"task {task.name} has {', '.join(names)}; expected train and a split to test on, such as test"
        )
    return "test" if "test" in names else next(name for name in names if name != "train")


def sample_split(task: Task, split: str, most: int, seed: int) -> Split:
    """At most `most` examples of a split, as whole texts in a random order, without texts that have no example."""
    full = task.split(split)
    order = np.random.default_rng([seed, 11]).permutation(len(full.texts))
    rows = np.sort(np.argsort(order[full.sentence], kind="stable")[:most])
    used, sentence = np.unique(full.sentence[rows], return_inverse=True)
    texts = tuple(full.texts[at] for at in used)
    return Split(full.name, texts, sentence.astype(np.int32), full.positions[rows], full.y[rows])

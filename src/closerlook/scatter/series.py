"""`Series`: the same examples at several snapshots and layers, with the text around each example if it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.geometry.frame import Floats, Integers
from closerlook.representations.points import Points
from closerlook.representations.space import Space
from closerlook.scatter.points import choose_points
from closerlook.tasks.task import Split, Task
from closerlook.texts import TextPair, as_running, joined

Marks = tuple[tuple[int, int], ...]
"""The characters of an example in its text: the first and one past the last, for each of its words."""


@dataclass(frozen=True, eq=False)
class Context:
    """The texts of n examples. texts: each text once. text: (n,) the number of each example's text. marks: (n,)."""

    texts: tuple[str, ...]
    text: Integers
    marks: tuple[Marks, ...]

    def take(self, rows: Integers) -> Context:
        """The context of some of the examples, with only the texts that they need."""
        used, text = np.unique(self.text[rows], return_inverse=True)
        return Context(tuple(self.texts[at] for at in used), text, tuple(self.marks[row] for row in rows.tolist()))


@dataclass(frozen=True, eq=False)
class Series:
    """The same examples at several snapshots and layers.

    snapshots: their names, in order. layers: numbers, None if unknown. points: [layer][snapshot], the train points; the
    test points are `Points.test`. context: of all train examples, then all test examples; None if no texts are known.
    notes: what a reader must know about these points. sampled: (n,) if the examples are a sample, the row of each in
    its whole split.
    """

    title: str
    snapshots: tuple[str, ...]
    layers: tuple[int | None, ...]
    points: tuple[tuple[Points, ...], ...]
    context: Context | None = None
    notes: tuple[str, ...] = ()
    sampled: Integers | None = None

    def __post_init__(self) -> None:
        for snapshots in self.points:
            for points in snapshots[1:]:
                check_same_examples(snapshots[0], points)

    @property
    def first(self) -> Points:
        """The points of the first layer at the first snapshot: all others have the same labels and words."""
        return self.points[0][0]

    @property
    def n_train(self) -> int:
        """The number of train points."""
        return len(self.first.y)

    @property
    def names(self) -> NDArray[Any]:
        """(n,) the label of each example: train, then test."""
        return both(self.first.y, None if self.first.test is None else self.first.test.y)

    @property
    def row_numbers(self) -> Integers:
        """(n,) the row of each example in its split: train, then test."""
        if self.sampled is not None:
            return self.sampled
        return np.concatenate([np.arange(self.n_train), np.arange(len(self.names) - self.n_train)])

    @property
    def words(self) -> tuple[str, ...] | None:
        """(n,) the word of each example: train, then test; None if unknown."""
        train, test = self.first.words, self.first.test
        if train is None or (test is not None and test.words is None):
            return None
        return train + (test.words or () if test is not None else ())


def both(train: NDArray[Any], test: NDArray[Any] | None) -> NDArray[Any]:
    """The rows of train, followed by those of test if there are any."""
    return train if test is None else np.concatenate([train, test])


def vectors(points: Points) -> Floats:
    """(n, d) the vectors of train, followed by those of test if there are any."""
    return both(points.X, None if points.test is None else points.test.X)


def check_same_examples(first: Points, other: Points) -> None:
    """Raise InputError unless both have the same examples in the same order, and equally many dimensions."""
    for one, two, split in ((first, other, "train"), (first.test, other.test, "test")):
        if one is None or two is None:
            if one is not two:
                raise InputError(f"{first.title} and {other.title}: only one of them has test points; expected both")
            continue
        if len(one.y) != len(two.y) or (one.y != two.y).any() or (one.words and two.words and one.words != two.words):
            raise InputError(
                f"{first.title} and {other.title} have different {split} examples ({len(one.y)} and {len(two.y)} "
                "rows); expected the same examples in the same order, as snapshots of one training have them"
            )
        if one.X.shape[1] != two.X.shape[1]:
            raise InputError(
                f"{first.title} has {one.X.shape[1]} dimensions and {other.title} has {two.X.shape[1]}; expected the "
                "same number, so that movements mean something: explore them one by one"
            )


def from_spaces(train: Space, test: Space | None = None) -> Points:
    """The points of a train space and of the test space of the same encoder and layer."""
    points = [
        Points(np.asarray(space.X, np.float64), space.label_names, space.provenance.title(), words=space.words)
        for space in (train, test)
        if space is not None
    ]
    return replace(points[0], provenance=train.provenance, test=points[1] if len(points) > 1 else None)


def limit_rows(series: Series, most: int, seed: int) -> Series:
    """The series with at most `most` train examples and as many test examples, sampled by label."""
    test = series.first.test
    kept = sample_rows(series.first.y, most, [seed, 0])
    kept_test = None if test is None else sample_rows(test.y, most, [seed, 1])
    rows = both(kept, None if kept_test is None else kept_test + series.n_train)
    if len(rows) == len(series.names):
        return series
    points = tuple(tuple(_take(one, kept, kept_test) for one in snapshots) for snapshots in series.points)
    context = None if series.context is None else series.context.take(rows)
    notes = (*series.notes, sample_note(len(series.names), len(rows)))
    return replace(series, points=points, context=context, notes=notes, sampled=series.row_numbers[rows])


def sample_note(n: int, kept: int) -> str:
    """What a reader is told about a space of n points of which `kept` are measured."""
    return f"The space has {n:,} points; {kept:,} of them, sampled by label, are measured."


def sample_rows(labels: NDArray[Any], most: int, seed: Sequence[int], first: Sequence[int] = ()) -> Integers:
    """At most `most` rows, in order: a random sample in which every label keeps its share. first: rows to keep."""
    _, codes = np.unique(labels, return_inverse=True)
    rank = np.ones(len(codes), np.int64)
    rank[list(first)] = 0
    return choose_points(codes, rank, most, np.random.default_rng(seed))


def snapshot_name(step: int) -> str:
    """The name of a snapshot of a training."""
    return "pretrained" if step == 0 else f"step {step:,}"


def _take(points: Points, train: Integers, test: Integers | None) -> Points:
    words = None if points.words is None else tuple(points.words[row] for row in train.tolist())
    rest = None if points.test is None or test is None else _take(points.test, test, None)
    return replace(points, X=points.X[train], y=points.y[train], words=words, test=rest)


# ---- the texts of a task ----


def task_context(task: Task, splits: Sequence[Split]) -> Context:
    """The texts of all examples of some splits of a task, one split after the other."""
    texts: list[str] = []
    numbers: list[Integers] = []
    marks: list[Marks] = []
    for split in splits:
        numbers.append(split.sentence.astype(np.int64) + len(texts))
        texts += [joined(text) for text in split.texts]
        marks += [_marks(task, split, row) for row in range(len(split))]
    return Context(tuple(texts), np.concatenate(numbers), tuple(marks))


def _marks(task: Task, split: Split, row: int) -> Marks:
    """The characters of an example in its text; none for a whole text."""
    text, positions = split.texts[split.sentence[row]], split.positions[row].tolist()
    if task.unit == "sentence" or isinstance(text, TextPair):
        return ()
    spans = as_running(text).spans
    if task.unit == "span":
        start, stop = positions
        return ((spans[start][0], spans[stop - 1][1]),)
    return tuple(spans[word] for word in positions)

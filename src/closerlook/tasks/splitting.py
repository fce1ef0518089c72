"""A test split for a task that has none: stratified by label, and the same text is never in both splits."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace

import numpy as np

from closerlook.errors import InputError
from closerlook.tasks.task import Split, Task
from closerlook.texts import Text

log = logging.getLogger("closerlook.tasks")

TEST_SHARE = 0.2
"""The share of the examples that a test split gets."""

SEED = 0


def with_test_split(task: Task, share: float = TEST_SHARE, seed: int = SEED) -> Task:
    """The task with a test split that is taken from train; the task itself if it has a test split already.

    Each label gets about this share of its examples, and at least one if it occurs in two different texts; at least one
    text of each label stays in train. Equal texts stay together.

    >>> texts = [(f"text {i}", [((), "AB"[i % 2])]) for i in range(20)]
    >>> task = with_test_split(Task.build("t", "sentence", {"train": texts}), 0.2)
    >>> [(split.name, len(split)) for split in task.splits]
    [('train', 16), ('test', 4)]
    """
    names = [split.name for split in task.splits]
    if not 0 < share < 1:
        raise InputError(f"test share {share:g} requested; expected a number between 0 and 1, such as 0.2")
    if "test" in names:
        return task
    train = task.split("train")
    chosen = _choose(train, share, seed)
    in_test = np.array([text in chosen for text in train.texts])
    if not in_test.any():
        raise InputError(
            f"task {task.name} has no test split, and none can be made: no label occurs in two different texts; give a "
            "folder with a file for each split, or a column split"
        )
    parts = {"train": _part(train, "train", ~in_test), "test": _part(train, "test", in_test)}
    note = (
        f"task {task.name} has no test split: {len(parts['test'])} of its {len(train)} examples in train are its test "
        f"split (test share {share:g}, stratified by label, equal texts together, seed {seed})"
    )
    others = [split for split in task.splits if split.name not in {"train", "dev"}]
    middle = [split for split in task.splits if split.name == "dev"]
    splits = (parts["train"], *middle, parts["test"], *others)
    return replace(task, splits=splits, notes=(*task.notes, note))


def with_held_out_split(task: Task) -> Task:
    """The task itself; if train is its only split, with a test split that is taken from it. The log says so."""
    if [split.name for split in task.splits] != ["train"]:
        return task
    task = with_test_split(task)
    log.warning("%s", task.notes[-1])
    return task


def _choose(train: Split, share: float, seed: int) -> set[Text]:
    """The texts that go to test: label by label, the rarest first, in random order, until it has its share."""
    counts: dict[Text, Counter[int]] = {text: Counter() for text in train.texts}
    for number, label in zip(train.sentence.tolist(), train.y.tolist(), strict=True):
        counts[train.texts[number]][label] += 1
    distinct = list(counts)
    order = np.random.default_rng(seed).permutation(len(distinct))
    shuffled = [distinct[i] for i in order]
    total = Counter[int]()
    for found in counts.values():
        total.update(found)
    remaining = Counter(label for found in counts.values() for label in found)  # texts of each label in train
    texts_of: dict[int, list[Text]] = {label: [] for label in total}
    for text in shuffled:
        for label in counts[text]:
            texts_of[label].append(text)
    chosen: set[Text] = set()
    done = Counter[int]()

    def take(text: Text, label: int, most: int) -> None:
        """Choose a text if the label then has at most that many examples in test, and no label leaves train."""
        found = counts[text]
        if text in chosen or done[label] + found[label] > most or any(remaining[other] < 2 for other in found):
            return
        chosen.add(text)
        done.update(found)
        remaining.subtract(found.keys())

    for label in sorted(total, key=lambda label: (total[label], label)):
        for text in texts_of[label]:
            take(text, label, max(1, round(share * total[label])))
        for text in sorted(texts_of[label], key=lambda text: counts[text][label]):
            if not done[label]:  # all its texts have more examples than its share
                take(text, label, total[label])
    return chosen


def _part(split: Split, name: str, texts: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Split:
    """The texts of a split that are chosen, with their examples."""
    rows = texts[split.sentence]
    number = np.cumsum(texts) - 1
    return Split(
        name,
        tuple(text for text, is_chosen in zip(split.texts, texts, strict=True) if is_chosen),
        number[split.sentence[rows]].astype(np.int32),
        split.positions[rows].copy(),
        split.y[rows].copy(),
    )

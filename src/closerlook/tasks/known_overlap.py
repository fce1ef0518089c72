"""Tasks whose labels overlap by construction: any task with label noise, or with merged labels."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from closerlook.errors import InputError
from closerlook.tasks.task import Task

NAME = re.compile(r"(?P<change>noisy|merged)-(?P<number>\d+):(?P<task>.+)")
"""`noisy-20:toy-pos`: 20% of the labels are replaced. `merged-4:toy-pos`: the labels are merged into 4."""

MOST_NOISE = 90


@dataclass(frozen=True)
class Family:
    """Tasks that are made from any other task. form: how their names are written. meaning: what is changed."""

    form: str
    meaning: str
    example: str


FAMILIES = (
    Family(
        "noisy-PERCENT:TASK",
        f"TASK with PERCENT % of the labels of each split replaced by another label at random; 0 to {MOST_NOISE}",
        "noisy-20:toy-pos",
    ),
    Family(
        "merged-N:TASK",
        "TASK with its labels merged into N: the sorted labels are dealt out in turn; 2 to one fewer than it has",
        "merged-4:toy-pos",
    ),
)


def load_with_overlap(name: str, load: Callable[[str], Task]) -> Task | None:
    """The task of that name with label noise or merged labels; None if the name asks for neither.

    load: loads the task that is changed.
    """
    match = NAME.fullmatch(name)
    if match is None:
        return None
    change = with_label_noise if match["change"] == "noisy" else with_merged_labels
    return change(load(match["task"]), int(match["number"]))


def with_label_noise(task: Task, percent: int) -> Task:
    """The same task, with a share of the labels of each split replaced by another label, drawn at random.

    Each other label is equally probable, and the draw is the same every time. Nothing in the text explains the replaced
    labels, so an encoder can make such labels separable only by having many dimensions or by memorising the examples.

    >>> from closerlook.tasks import load_task
    >>> noisy = load_task("noisy-20:toy-pos").split("train")
    >>> bool(abs((noisy.y != load_task("toy-pos").split("train").y).mean() - 0.2) < 0.001)
    True
    """
    if percent > MOST_NOISE:
        raise InputError(f"task noisy-{percent}:{task.name} has {percent}% label noise; expected 0 to {MOST_NOISE}")
    if len(task.labels) < 2:
        raise InputError(f"task {task.name} has {len(task.labels)} label; expected at least 2 for label noise")
    splits = []
    for number, split in enumerate(task.splits):
        rng = np.random.default_rng([percent, number, len(split)])
        rows = rng.permutation(len(split))[: round(len(split) * percent / 100)]
        y = split.y.copy()
        y[rows] = (y[rows] + rng.integers(1, len(task.labels), size=len(rows))) % len(task.labels)
        splits.append(replace(split, y=y))
    return Task(f"noisy-{percent}:{task.name}", task.unit, task.labels, tuple(splits))


def with_merged_labels(task: Task, n: int) -> Task:
    """The same task with its labels merged into n: the sorted labels are dealt out in turn.

    Labels that have nothing in common become one, so a label consists of several parts with others between them.

    >>> from closerlook.tasks import load_task
    >>> load_task("merged-3:toy-pos").labels[0]
    'ADJ+AUX+INTJ+PART+PUNCT+VERB'
    """
    if not 2 <= n < len(task.labels):
        raise InputError(
            f"task merged-{n}:{task.name} merges {len(task.labels)} labels into {n}; expected 2 to "
            f"{len(task.labels) - 1}"
        )
    groups = ["+".join(task.labels[start::n]) for start in range(n)]
    order = sorted(range(n), key=groups.__getitem__)
    code = np.array([order.index(label % n) for label in range(len(task.labels))], dtype=np.int32)
    splits = tuple(replace(split, y=code[split.y]) for split in task.splits)
    return Task(f"merged-{n}:{task.name}", task.unit, tuple(groups[at] for at in order), splits)

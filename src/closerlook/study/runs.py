"""`Run`: one fine-tuning, measured on one task; `Pair`: all runs of an encoder and a task, which differ in the seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

UNKNOWN = "your training"
"""The value of tuned_on for an existing training whose task the plan does not name."""


@dataclass(frozen=True)
class Run:
    """A fine-tuning of an encoder on a task (tuned_on) with a seed, measured on `task`.

    The two tasks differ in a cross-task run. In the graph of cells, encoder and tasks have their names in the plan; in
    results that were read from the table, their names in the table.
    """

    encoder: str
    tuned_on: str
    seed: int
    task: str

    @property
    def own(self) -> bool:
        """Whether it is measured on the task it was fine-tuned on, or that task is not known."""
        return self.tuned_on in (self.task, UNKNOWN)

    @property
    def pair(self) -> Pair:
        """The encoder and the tasks of this run, without the seed."""
        return Pair(self.encoder, self.tuned_on, self.task)


@dataclass(frozen=True)
class Pair:
    """An encoder and a task: what was fine-tuned on `tuned_on` and measured on `task`, with any seed."""

    encoder: str
    tuned_on: str
    task: str

    @property
    def own(self) -> bool:
        """Whether it is measured on the task it was fine-tuned on, or that task is not known."""
        return self.tuned_on in (self.task, UNKNOWN)


def by_pair(runs: Iterable[Run]) -> dict[Pair, list[Run]]:
    """The runs of each pair, in the order of the runs."""
    pairs: dict[Pair, list[Run]] = {}
    for run in runs:
        pairs.setdefault(run.pair, []).append(run)
    return pairs

"""`Run`: one fine-tuning, measured on one task."""

from __future__ import annotations

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

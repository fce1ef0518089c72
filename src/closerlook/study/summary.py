"""A study at a glance: for each encoder and task what the last layer was, and what fine-tuning made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

Both = tuple[float | None, float | None]
"""Before and after fine-tuning, mean over seeds; None where it was not measured."""


@dataclass(frozen=True)
class Line:
    """One encoder on one task, at its last layer, on train; accuracy: on the test splits; similarity: train to test."""

    encoder: str
    task: str
    labels: int | None
    n_clusters: Both
    is_linear: Both
    mean_minimum_distance: Both
    accuracy: Both
    similarity: Both


def summarise(table: pd.DataFrame) -> list[Line]:
    """A line for each encoder and task that was measured, in the table's order."""
    deepest = table.groupby("encoder").layer.transform("max")
    own = table[(table.layer == deepest) & ((table.tuned_on == "") | (table.tuned_on == table.task))]
    lines = []
    for encoder, task in own[["encoder", "task"]].drop_duplicates().itertuples(index=False):
        mine = own[(own.encoder == encoder) & (own.task == task)]
        train = mine[mine.split == "train"]
        labels = _mean(train[train.measure == "n_labels"])
        lines.append(
            Line(
                encoder,
                task,
                None if labels is None else int(labels),
                both(train, "n_clusters"),
                both(train, "is_linear"),
                both(train, "mean_minimum_distance"),
                both(mine, "accuracy"),
                both(train, "similarity_train_test"),
            )
        )
    return lines


def both(part: pd.DataFrame, measure: str) -> Both:
    """A measure before and after fine-tuning."""
    found = part[part.measure == measure]
    return _mean(found[found.tuned_on == ""]), _mean(found[(found.tuned_on != "") & found["last"]])


def _mean(part: pd.DataFrame) -> float | None:
    values = part.value.dropna()
    return float(values.mean()) if len(values) else None

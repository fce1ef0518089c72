"""The summary of a study: the main measures of each encoder and task, before and after fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from closerlook.study.readings import Results, index_results

if TYPE_CHECKING:
    import pandas as pd

Both = tuple[float | None, float | None]
"""A value before and after fine-tuning, mean over seeds; None if it was not measured."""


@dataclass(frozen=True)
class Line:
    """Values for an encoder on a task, on train at the last layer. accuracy: on test. similarity: of train and test."""

    encoder: str
    task: str
    labels: int | None
    n_clusters: Both
    is_separable: Both
    mean_minimum_distance: Both
    accuracy: Both
    similarity: Both


def summarise(table: pd.DataFrame) -> list[Line]:
    """One line for each measured encoder and task, in the order of the plan."""
    results = index_results(table)
    lines = []
    for encoder, task in results.pairs():
        labels = results.before("n_labels", encoder, task)
        lines.append(
            Line(
                encoder,
                task,
                None if labels is None else int(labels.value),
                _both(results, "n_clusters", encoder, task),
                _both(results, "is_separable", encoder, task),
                _both(results, "mean_minimum_distance", encoder, task),
                _both(results, "accuracy", encoder, task),
                _both(results, f"similarity_{results.train_test}", encoder, task),
            )
        )
    return lines


def _both(results: Results, measure: str, encoder: str, task: str) -> Both:
    before = results.before(measure, encoder, task)
    runs = [run for run in results.runs(own=True) if (run.encoder, run.task) == (encoder, task)]
    ends = [end.value for run in runs if (end := results.after(measure, run)) is not None]
    return None if before is None else before.value, sum(ends) / len(ends) if ends else None

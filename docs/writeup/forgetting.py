"""The tables of forgetting, in Markdown: what fine-tuning on one task does to the accuracy on others."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from closerlook.report.before_after import mean_of, runs_of
from closerlook.report.tables import MISSING
from writeup.paper_tables import grid
from writeup.phrases import StaleTextError, short, signed
from writeup.values import Study


def forgetting_table(study: Study) -> str:
    """The change of accuracy on each task, in points, by fine-tuning on each task."""
    rows = []
    for encoder in study.encoders:
        for tuned_on in study.tasks:
            found = [accuracy_change(study, encoder, tuned_on, task) for task in study.tasks]
            if any(change is not None for change in found):
                cells = [MISSING if one is None else signed(one, 1) for one in found]
                own = study.tasks.index(tuned_on)
                cells[own] = cells[own] if found[own] is None else f"**{cells[own]}**"
                rows.append([short(encoder), tuned_on, *cells])
    return grid(["encoder", "fine-tuned on", *study.tasks], rows, left=2)


def forgotten(study: Study, encoder: str) -> dict[tuple[str, str], float]:
    """The change of accuracy by fine-tuning on one task and measuring another, in points."""
    return {
        (tuned_on, task): change
        for tuned_on in study.tasks
        for task in study.tasks
        if tuned_on != task and (change := accuracy_change(study, encoder, tuned_on, task)) is not None
    }


def accuracy_change(study: Study, encoder: str, tuned_on: str, task: str) -> float | None:
    """The change of accuracy on a task by fine-tuning on another, in points; the start is that of the base encoder."""
    start = study.results.before("accuracy", base_of(encoder), task) if base_of(encoder) in study.encoders else None
    end = mean_of([study.results.after("accuracy", run) for run in runs_of(study.results, encoder, task, tuned_on)])
    return None if start is None or end is None else 100 * (end - start.value)


def base_of(encoder: str) -> str:
    """The encoder of a method of fine-tuning.

    >>> base_of("bert-small (lora 4)"), base_of("bert-small")
    ('bert-small', 'bert-small')
    """
    return encoder.partition(" (")[0]


def forgetting_course_table(study: Study, steps: Sequence[int]) -> str:
    """The mean change of accuracy on the other tasks after some numbers of updates and at the end, in points."""
    rows = [
        [task, *(signed(forgetting_course(study, task, step), 1) for step in (*steps, None)), str(updates(study, task))]
        for task in study.tasks
    ]
    return grid(["fine-tuned on", *(f"update {step}" for step in steps), "end", "updates in all"], rows)


def updates(study: Study, tuned_on: str) -> int:
    """How many updates the trainings on a task have."""
    rows = study.results.of("accuracy")
    return int(rows[(rows["tuned_on"] == tuned_on) & rows["is_final"]]["step"].max())


def forgetting_course(study: Study, tuned_on: str, step: int | None) -> float:
    """The change of accuracy on the other tasks after a number of updates (None: at the end), in points.

    The mean over encoders, seeds and tasks.
    """
    rows = study.results.of("accuracy")
    other = rows[(rows["tuned_on"] == tuned_on) & (rows["task"] != tuned_on)]
    chosen = other[other["is_final"] if step is None else (other["step"] == step) & ~other["is_final"]]
    if chosen.empty:
        raise StaleTextError(f"the kept table has no accuracy of other tasks at step {step} of {tuned_on}")
    starts = {
        (encoder, task): study.before("accuracy", encoder, task)
        for encoder, task in set(zip(chosen["encoder"], chosen["task"], strict=True))
    }
    places = zip(chosen["encoder"], chosen["task"], chosen["value"], strict=True)
    return 100 * statistics.fmean(float(value) - starts[encoder, task] for encoder, task, value in places)

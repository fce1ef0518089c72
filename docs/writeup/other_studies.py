"""The tables of the studies next to the main one, in Markdown: methods of fine-tuning, forgetting, held-out data."""

from __future__ import annotations

import statistics
from typing import Any

from closerlook.report.before_after import mean_of, runs_of
from closerlook.report.tables import MISSING
from writeup.paper_tables import grid
from writeup.phrases import fixed, short, signed
from writeup.values import Study

ENDS = {
    "accuracy, %": ("accuracy", 1, 100),
    "similarity of the last layer to the pretrained one": ("similarity_original", 2, 1),
    "train–test similarity": ("similarity_train_test", 2, 1),
    "distance to the nearest label, RMS radii": ("mean_relative_minimum_distance", 3, 1),
}
"""The measures of the table of methods: name, decimals shown, factor."""


def base_of(encoder: str) -> str:
    """The encoder of a method of fine-tuning.

    >>> base_of("bert-small (lora 4)"), base_of("bert-small")
    ('bert-small', 'bert-small')
    """
    return encoder.partition(" (")[0]


def method_table(study: Study) -> str:
    """Each encoder and method after fine-tuning: means over tasks and seeds, and what it does to the other tasks."""
    rows = []
    for encoder in study.encoders:
        cells = [short(encoder)]
        for measure, digits, scale in ENDS.values():
            known = study.ends(measure, [encoder])
            cells.append(fixed(scale * statistics.fmean(known), digits) if known else MISSING)
        lost = [
            change
            for tuned_on in study.tasks
            for task in study.tasks
            if tuned_on != task and (change := accuracy_change(study, encoder, tuned_on, task)) is not None
        ]
        rows.append([*cells, signed(statistics.fmean(lost), 1) if lost else MISSING])
    return grid(["encoder and method", *ENDS, "accuracy on other tasks, points"], rows)


def forgetting_table(study: Study) -> str:
    """The change of accuracy on each task, in points, by fine-tuning on each task."""
    rows = []
    for encoder in study.encoders:
        for tuned_on in study.tasks:
            found = [accuracy_change(study, encoder, tuned_on, task) for task in study.tasks]
            if any(change is not None for change in found):
                rows.append([short(encoder), tuned_on, *(MISSING if one is None else signed(one, 1) for one in found)])
    return grid(["encoder", "fine-tuned on", *study.tasks], rows, left=2)


def accuracy_change(study: Study, encoder: str, tuned_on: str, task: str) -> float | None:
    """The change of accuracy on a task by fine-tuning on another, in points; the start is that of the base encoder."""
    start = study.results.before("accuracy", base_of(encoder), task) if base_of(encoder) in study.encoders else None
    end = mean_of([study.results.after("accuracy", run) for run in runs_of(study.results, encoder, task, tuned_on)])
    return None if start is None or end is None else 100 * (end - start.value)


def expectation_table(study: Study, expected: dict[int, dict[str, Any]]) -> str:
    """For each finding, the expected verdict, the verdict, and the encoders that answer otherwise than expected."""
    rows = []
    for finding in study.findings:
        entry = expected[finding.number]
        wanted = {encoder: support for support, names in entry.items() if support != "verdict" for encoder in names}
        answers = dict.fromkeys(wanted, "not run") | {one.pair.encoder: one.support for one in finding.answers}
        other = [
            f"{short(one)}: {answers[one]} (expected: {wanted[one]})" for one in wanted if answers[one] != wanted[one]
        ]
        same = f"{len(wanted) - len(other)} of {len(wanted)}" if wanted else MISSING
        rows.append([str(finding.number), entry["verdict"], finding.verdict, same, "; ".join(other)])
    return grid(["finding", "expected verdict", "verdict", "answers as expected", "other answers"], rows, left=5)

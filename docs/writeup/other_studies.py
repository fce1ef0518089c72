"""The tables of the studies next to the main one, in Markdown: methods of fine-tuning, forgetting, held-out data."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from closerlook.report.before_after import mean_of, runs_of
from closerlook.report.tables import MISSING
from writeup.paper_tables import grid
from writeup.phrases import fixed, short, signed
from writeup.values import Study

if TYPE_CHECKING:
    from closerlook.study.verdicts import Answer

Expected = dict[int, dict[str, Any]]
"""For each finding, the expected verdict, and the encoders with each expected answer."""

ENDS = {
    "accuracy, %": ("accuracy", 1, 100),
    "similarity of the last layer to the pretrained one": ("similarity_original", 2, 1),
    "train–test similarity": ("similarity_train_test", 2, 1),
    "distance to the nearest label, RMS radii": ("mean_relative_minimum_distance", 3, 1),
}
"""Measures after fine-tuning: name, decimals shown, factor."""


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


def expectation_table(study: Study, expected: Expected) -> str:
    """For each finding, the expected verdict, the verdict, and the encoders that answer otherwise than expected."""
    rows = []
    for finding in study.findings:
        number, wanted = finding.number, expected_answers(expected, finding.number)
        other = [
            f"{short(one.pair.encoder)}: {one.support} (expected: {wanted[one.pair.encoder]})"
            for one in unexpected(study, expected, number)
        ]
        answers = [number, expected[number]["verdict"], finding.verdict, as_expected(study, expected, [number])]
        rows.append([*map(str, answers), "; ".join(other) or MISSING])
    return grid(["finding", "expected verdict", "verdict", "answers as expected", "other answers"], rows, left=5)


def as_expected(study: Study, expected: Expected, findings: Iterable[int]) -> str:
    """How many answers of encoders to some findings are the expected ones: '3 of 4'."""
    n, of = 0, 0
    for number in findings:
        wanted = expected_answers(expected, number)
        known = [one for one in study.answers(number) if one.pair.encoder in wanted]
        n, of = n + len(known) - len(unexpected(study, expected, number)), of + len(known)
    return f"{n} of {of}" if of else MISSING


def expected_answers(expected: Expected, finding: int) -> dict[str, str]:
    """The expected answer of each encoder to a finding."""
    entry = expected[finding]
    return {encoder: support for support, names in entry.items() if support != "verdict" for encoder in names}


def unexpected(study: Study, expected: Expected, finding: int) -> list[Answer]:
    """The answers of encoders to a finding that are not the expected ones."""
    wanted = expected_answers(expected, finding)
    return [one for one in study.answers(finding) if one.support != wanted.get(one.pair.encoder, one.support)]


def ends_table(study: Study) -> str:
    """Clusters and the measures of ENDS before → after fine-tuning, for each encoder on each task."""
    rows = []
    for encoder in study.encoders:
        for task in study.tasks:
            cells = []
            for measure, digits, scale in (("n_clusters", 0, 1), *ENDS.values()):
                found = study.pairs(measure, [encoder], [task])
                end = study.ends(measure, [encoder], [task])
                if found:
                    cells.append("→".join(fixed(scale * one, digits) for one in (found[0].before, found[0].after)))
                else:
                    cells.append(fixed(scale * statistics.fmean(end), digits) if end else MISSING)
            rows.append([short(encoder), task, *cells])
    return grid(["encoder", "task", "clusters", *ENDS], rows, left=2)

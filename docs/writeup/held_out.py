"""The tables of the held-out check, in Markdown: what was expected, and what came out."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from closerlook.report.tables import MISSING
from closerlook.study.verdicts import Support
from writeup.paper_tables import grid
from writeup.phrases import fixed, short
from writeup.values import Study

if TYPE_CHECKING:
    from closerlook.study.verdicts import Answer

Expected = dict[int, dict[str, Any]]
"""For each finding, the expected verdict, and the encoders with each expected answer."""

SUPPORTS = get_args(Support)
"""What an encoder can say about a finding."""

ENDS = {
    "accuracy, %": ("accuracy", 1, 100),
    "similarity of the last layer to the pretrained one": ("similarity_original", 2, 1),
    "train–test similarity": ("similarity_train_test", 2, 1),
    "distance to the nearest label, RMS radii": ("mean_relative_minimum_distance", 3, 1),
}
"""Measures after fine-tuning: name, decimals shown, factor."""


def expectation_table(study: Study, expected: Expected) -> str:
    """For each finding, the expected verdict, the verdict, all answers, and those that are not the expected ones."""
    rows = []
    for finding in study.findings:
        number, wanted = finding.number, expected_answers(expected, finding.number)
        other = [
            f"{short(one.pair.encoder)}: {one.support} (expected: {wanted[one.pair.encoder]})"
            for one in unexpected(study, expected, number)
        ]
        verdicts = [str(number), expected[number]["verdict"], finding.verdict]
        counts = " : ".join(str(len(study.answers(number, support))) for support in SUPPORTS)
        answers = counts if study.answers(number) else MISSING
        expected_ones = as_expected(study, expected, [number])
        rows.append([*verdicts, answers, expected_ones, "; ".join(other) or MISSING])
    heads = ["finding", "expected verdict", "verdict", " : ".join(SUPPORTS), "as expected", "not as expected"]
    return grid(heads, rows, left=6)


@dataclass(frozen=True)
class Judged:
    """The verdict on a finding that some encoder has an answer to. is_expected: whether it is the expected one."""

    number: int
    is_expected: bool


def judged(study: Study, expected: Expected) -> list[Judged]:
    """The findings that some encoder has an answer to."""
    return [
        Judged(finding.number, finding.verdict == expected[finding.number]["verdict"])
        for finding in study.findings
        if study.answered(finding.number)
    ]


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

"""The verdicts by earlier versions of the rules, so that a page can show what changed when the rules changed.

Version 1 counted fine-tuning runs instead of pairs, and any change, however small, counted as a change. A finding held
if at least three quarters of the runs with an answer supported it, and failed if at most one quarter did; with fewer
than 3 such runs there was no verdict. Version 0 differs from version 1 in finding 2 only: it did not consider points
that have the same vector as a point of another label. It was changed after the results of the study in docs/results
had been seen.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from closerlook.geometry.p_values import SIGNIFICANCE
from closerlook.study.findings import relation, similarity_by_layer
from closerlook.study.readings import Results, Run
from closerlook.study.runs import UNKNOWN

LEAST_RUNS = 3
LEAST_SHARE = 0.75


@dataclass(frozen=True)
class EarlierVerdict:
    """The verdict of an earlier version of the rules: how many runs support a finding, contradict it, or do neither.

    rule: when a run supports the finding.
    """

    number: int
    version: int
    verdict: str
    n_for: int
    n_against: int
    n_no_answer: int
    rule: str


Holds = Callable[[Results, Run], bool | None]
"""Whether a run supports a finding; None if it has no answer."""


def earlier_verdicts(results: Results) -> list[EarlierVerdict]:
    """The verdicts on the five findings by earlier versions of the rules, by finding, newest version first."""
    return [
        _judge(results, number, version, holds, rule, own=number != 4) for number, version, holds, rule in EARLIER_RULES
    ]


def _judge(results: Results, number: int, version: int, holds: Holds, rule: str, *, own: bool) -> EarlierVerdict:
    runs = [run for run in results.runs(own=own) if number == 5 or run.tuned_on != UNKNOWN]
    answers = {run: holds(results, run) for run in runs}
    n_for, n_against = (sum(answer is side for answer in answers.values()) for side in (True, False))
    known = n_for + n_against
    share = n_for / known if known else 0.0
    verdict = "holds" if share >= LEAST_SHARE else "fails" if share <= 1 - LEAST_SHARE else "mixed"
    kinds = {relation(results, run.tuned_on, run.task) for run, answer in answers.items() if answer is not None}
    if known < LEAST_RUNS or (number == 4 and verdict == "holds" and len(kinds) < 2):
        verdict = "cannot tell"
    return EarlierVerdict(number, version, verdict, n_for, n_against, len(answers) - known, rule)


def _diverges(results: Results, run: Run) -> bool | None:
    name = f"similarity_{results.train_test}"
    before, after = results.before(name, run.encoder, run.task), results.after(name, run)
    if before is None or after is None:
        return None
    return after.value < before.value and not _loses_accuracy(results, run)


def _loses_accuracy(results: Results, run: Run) -> bool:
    names = ("accuracy", "accuracy_sd")
    entries = [results.before(name, run.encoder, run.task) for name in names]
    entries += [results.after(name, run) for name in names]
    before, sd_before, after, sd_after = (None if entry is None else entry.value for entry in entries)
    if before is None or after is None:
        return False
    return bool(before - after > ((sd_before or 0.0) ** 2 + (sd_after or 0.0) ** 2) ** 0.5)


def _forms_clusters(results: Results, run: Run, *, conflicts: bool = True) -> bool | None:
    before, after = results.before("n_clusters", run.encoder, run.task), results.after("n_clusters", run)
    labels = results.before("n_labels", run.encoder, run.task) or results.after("n_labels", run)
    if before is None or after is None or labels is None:
        return None
    counts = results.before("n_conflicts", run.encoder, run.task), results.after("n_conflicts", run)
    start, end = (0.0 if count is None or not conflicts else count.value for count in counts)
    if before.value <= labels.value + start and after.value <= labels.value + end:
        return None
    return after.value < before.value


def _forms_clusters_without_conflicts(results: Results, run: Run) -> bool | None:
    return _forms_clusters(results, run, conflicts=False)


def _moves(results: Results, run: Run) -> bool | None:
    counts = raw_moved_labels(results, run)
    return None if counts is None else counts[0] > counts[1] + counts[2]


def raw_moved_labels(results: Results, run: Run) -> tuple[int, int, int] | None:
    """The number of labels whose minimum distance increased, decreased, and stayed the same, by any amount."""
    up, down = results.after("n_labels_increased", run), results.after("n_labels_decreased", run)
    if up is None or down is None:
        return None
    change = results.after("mean_minimum_distance_change", run)
    total = int(up.value + down.value) if change is None or change.n is None else change.n
    return int(up.value), int(down.value), total - int(up.value + down.value)


def _transfers(results: Results, run: Run) -> bool | None:
    kind, counts = relation(results, run.tuned_on, run.task), raw_moved_labels(results, run)
    if counts is None or not kind:
        return None
    up, down, still = counts
    return up > down + still if kind == "related" else up < down + still


def _changes(results: Results, run: Run) -> bool | None:
    by_layer = similarity_by_layer(results, run)
    values = [similarity.value for _, similarity in sorted(by_layer.items())]
    half = len(values) // 2
    p = results.after("similarity_p_value_original", run, layer=max(by_layer)) if half else None
    if p is None or (p.n is not None and 1 / (p.n + 1) > SIGNIFICANCE):
        return None
    return statistics.fmean(values[-half:]) < statistics.fmean(values[:half]) and p.value <= SIGNIFICANCE


EARLIER_RULES: tuple[tuple[int, int, Holds, str], ...] = (
    (
        *(1, 1, _diverges),
        "train–test similarity is lower after fine-tuning, and accuracy does not fall by more than √(sd_before² + "
        "sd_after²), where sd is the standard deviation over probes",
    ),
    (2, 1, _forms_clusters, "fewer clusters after fine-tuning, unless their number was the lowest possible both times"),
    (
        *(2, 0, _forms_clusters_without_conflicts),
        "as version 1, but points with the same vector as a point of another label were not considered: the lowest "
        "possible number was one cluster for each label",
    ),
    (3, 1, _moves, "more than half of the labels are farther from the nearest other label"),
    (
        *(4, 1, _transfers),
        "related task: more than half of the labels are farther from the nearest other label; opposed task: fewer "
        "than half, so that labels that do not move count as closer",
    ),
    (
        *(5, 1, _changes),
        "the mean similarity to the pretrained encoder is lower in the upper half of the layers, and significant at "
        "the last layer (permutation test)",
    ),
)
"""(finding, version, whether a run supports it, the rule in words)."""

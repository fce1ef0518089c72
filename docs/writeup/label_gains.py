"""Which labels each method of fine-tuning moves away from their nearest label, in Markdown."""

from __future__ import annotations

import statistics

from closerlook.report.before_after import runs_of
from closerlook.study.runs import Pair
from writeup.facts import ranks
from writeup.forgetting import base_of
from writeup.methods import bases, by_method, with_method
from writeup.paper_tables import grid
from writeup.phrases import counted, listed
from writeup.values import Study

Gains = dict[str, float]
"""The change of each label's distance to its nearest label, in RMS radii."""

DISTANCE, SIGNIFICANT = "relative_minimum_distance", "n_labels_significantly_increased"


def moved_labels_table(study: Study) -> str:
    """For each method, how many labels of each task move significantly away from their nearest label, mean over seeds.

    Methods that leave the space as it is are left out.
    """
    rows = []
    for encoder in [one for base in bases(study) for one in by_method(study, base)]:
        ends = [study.ends(SIGNIFICANT, [encoder], [task]) for task in study.tasks]
        if any(count for counts in ends for count in counts):
            rows.append([with_method(encoder), *(counted(statistics.fmean(counts)) for counts in ends)])
    n_labels = [len(study.results.label_values(DISTANCE, Pair(study.encoders[0], task, task))) for task in study.tasks]
    return grid(
        ["encoder and method", *(f"{task}, of {n}" for task, n in zip(study.tasks, n_labels, strict=True))], rows
    )


def gain_correlations(study: Study, one: str, other: str) -> dict[str, float]:
    """For each task, the rank correlation of the gains of labels by two methods, mean over pairs of seeds.

    For the same method twice: of two seeds.
    """
    found = {}
    for task in study.tasks:
        gains = [label_gains(study, encoder, task) for encoder in (one, other)]
        pairs = [
            _rank_correlation(first, second)
            for seed, first in gains[0].items()
            for other_seed, second in gains[1].items()
            if one != other or seed < other_seed
        ]
        if pairs:
            found[task] = statistics.fmean(pairs)
    return found


def label_gains(study: Study, encoder: str, task: str) -> dict[int, Gains]:
    """The gain of each label by fine-tuning on the task, at the last layer, for each seed."""
    start = study.results.label_values(DISTANCE, Pair(base_of(encoder), task, task))
    ends = {
        run.seed: study.results.label_values(DISTANCE, run.pair, run.seed)
        for run in runs_of(study.results, encoder, task)
    }
    return {
        seed: {label: end[label].value - start[label].value for label in start if label in end}
        for seed, end in ends.items()
    }


def extreme_labels(study: Study, encoder: str, task: str, end: str, n: int = 3) -> str:
    """The labels with the largest (end: 'most') or the smallest gain ('least'), mean over seeds."""
    by_seed = list(label_gains(study, encoder, task).values())
    means = {label: statistics.fmean(gains[label] for gains in by_seed) for label in by_seed[0]}
    return listed(sorted(means, key=lambda label: means[label], reverse=end == "most")[:n])


def _rank_correlation(first: Gains, second: Gains) -> float:
    common = [label for label in first if label in second]
    return statistics.correlation(*(ranks([gains[label] for label in common]) for gains in (first, second)))

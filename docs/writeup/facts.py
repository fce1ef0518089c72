"""Single facts of the write-up, computed from a kept study; templates call them by name."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from scipy.stats import rankdata

from closerlook.report.published import paper_name, published_cross_rows
from closerlook.report.sensitivity import detours, own_pool
from closerlook.study.runs import Pair
from writeup.further_tables import size_mean
from writeup.paper_tables import first_and_last, larger_counts, released_count, shifts
from writeup.phrases import StaleTextError, capital, listed, out_of, percent, short, trend
from writeup.records import Change
from writeup.values import Study


def limit_factor(study: Study, recorded: dict[str, Any]) -> float:
    """The largest factor between a published cluster count and ours with the limit of the released code."""
    factors: list[float] = []
    for one in larger_counts(study):
        ours = released_count(study, recorded, one.encoder, one.task)
        if ours is not None:
            factors.append(max(one.paper / ours, ours / one.paper))
    if not factors:
        raise StaleTextError("neither the kept table nor recorded.yaml has clusters with the limit on attempts")
    return max(factors)


def published_points(tuned_on: str, task: str) -> float:
    """The change of accuracy in Table 5, in points."""
    rows = {row["fine_tuned_on"]: float(row["accuracy"]) for row in published_cross_rows() if row["probed_on"] == task}
    return rows[tuned_on] - rows[""]


def n_with_distance(study: Study, task: str) -> int:
    """The number of labels of a task that have a distance to the nearest label, on train."""
    return len(study.results.label_values("minimum_distance", Pair(study.encoders[0], task, task)))


@dataclass(frozen=True)
class ShiftEnds:
    """The centroid shifts of an encoder at the last layer, compared with the first: longer, and more spread."""

    encoder: str
    is_longer: bool
    is_more_spread: bool


def shift_ends(study: Study) -> list[ShiftEnds]:
    """For each encoder, whether shifts are longer and more spread at the last layer than at the first."""
    found = []
    for encoder in study.encoders:
        first, last = (shifts(study, encoder, layer) for layer in first_and_last(study, encoder))
        if first is not None and last is not None:
            found.append(ShiftEnds(encoder, last[0] > first[0], last[1] < first[1]))
    return found


def fit_correlation(study: Study, measure: str) -> float:
    """The rank correlation, over encoders and tasks, of the head's train accuracy with the change of a measure."""
    heads, changes = [], []
    for change in study.pairs(measure):
        heads.append(study.after("head_accuracy", change.encoder, change.task, split="train"))
        changes.append(change.change)
    return statistics.correlation(ranks(heads), ranks(changes))


def ranks(numbers: list[float]) -> list[float]:
    """The rank of each number; equal numbers share their mean rank."""
    return [float(rank) for rank in rankdata(numbers)]


def detour_shares(study: Study) -> list[str]:
    """For each encoder, the share of labels that end farther away but fall on the way: '5% (bert-small)'."""
    shown = []
    for encoder in study.encoders:
        counts = [detours(study.results, encoder, task) for task in study.tasks]
        risen, fell = (sum(column) for column in zip(*counts, strict=True))
        if risen:
            shown.append(f"{percent(fell / risen)} ({short(encoder)})")
    return shown


def size_trend(study: Study, measure: str, state: str) -> str:
    """How the mean of a measure over tasks goes from the smallest BERT to the largest, as a verb."""
    return trend([size_mean(study, measure, state, encoder) for encoder in study.berts])


def measured_in(study: Study, measure: str, state: str) -> str:
    """In how many pairs of encoder and task a measure is known, before or after fine-tuning: '19 of 30 pairs'."""
    pairs = [(encoder, task) for encoder in study.encoders for task in study.tasks]
    values = study.starts if state == "before" else study.ends
    return out_of([pair for pair in pairs if values(measure, pair[:1], pair[1:])], pairs, "pairs")


def in_which(study: Study, measure: str, subject: str) -> str:
    """For 'all 51 runs': which runs these are, if not all runs have a measure; otherwise an empty text."""
    n, of = len(study.runs(measure)), len(study.results.runs(own=True))
    return f" (of {of}) in which {subject} was measured" if n < of else ""


def not_run(study: Study) -> list[Pair]:
    """The encoders and tasks that were not fine-tuned."""
    tuned = {(run.encoder, run.task) for run in study.results.runs(own=True)}
    return [Pair(one, task, task) for one in study.encoders for task in study.tasks if (one, task) not in tuned]


def most_pieces(encoders: Iterable[str], recorded: dict[str, Any]) -> float:
    """The most word pieces that one of some encoders saw in pretraining."""
    return float(max(recorded["pretraining"][paper_name(encoder)]["tokens"] for encoder in encoders))


def least_gain(study: Study, measure: str) -> str:
    """The BERT for which the mean change of a measure over tasks is lowest."""
    return min(study.berts, key=lambda one: statistics.fmean(change.change for change in study.pairs(measure, [one])))


def closer_to_start(study: Study) -> list[Change]:
    """For each pair after fine-tuning, the similarity to random weights (before) and to the pretrained one (after)."""
    found = []
    for change in study.pairs("n_clusters"):
        pair = (change.encoder, change.task)
        random, original = (study.after(f"similarity_{other}", *pair) for other in ("random", "original"))
        found.append(Change(*pair, change.task, random, original))
    return found


def pools(study: Study, task: str) -> str:
    """How the vectors of a task were pooled, with the encoders: '`cls` (bert-tiny) and `mean` (MiniLM)'."""
    by_pool: dict[str, list[str]] = {}
    for encoder in study.encoders:
        by_pool.setdefault(own_pool(study.results, encoder, task), []).append(short(encoder))
    return "" if "" in by_pool else listed(f"`{pool}` ({', '.join(names)})" for pool, names in by_pool.items())


def seed_similarities(study: Study) -> list[float]:
    """The similarity of two seeds of the same fine-tuning, mean for each encoder and task with several seeds."""
    found = []
    for encoder, task in study.results.pairs():
        seeds = study.results.compared_with("similarity_seed", encoder, task, tuned=True)
        if seeds:
            found.append(statistics.fmean(one.value for one in seeds))
    return found


def verdict_sentence(study: Study) -> str:
    """Which findings have which verdict: 'Finding 3 holds; findings 4 and 5 are mixed'."""
    by_verdict: dict[str, list[str]] = {}
    for finding in study.findings:
        by_verdict.setdefault(finding.verdict, []).append(str(finding.number))
    parts = []
    for verdict in filter(by_verdict.__contains__, VERBS):
        several = len(by_verdict[verdict]) > 1
        parts.append(f"finding{'s' * several} {listed(by_verdict[verdict])} {VERBS[verdict][several]}")
    return capital("; ".join(parts))


VERBS = {
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "mixed": ("is mixed", "are mixed"),
    "within noise": ("is within noise", "are within noise"),
    "cannot tell": ("cannot be judged", "cannot be judged"),
}
"""Verdict -> what it says of one finding, and of several."""

"""What a study says, in three sentences for a reader with one minute: each with its main point first."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from closerlook.report.before_after import mean_of
from closerlook.report.extent import extent_of
from closerlook.report.layer_values import LayerValue, layer_values
from closerlook.report.tables import show_signed
from closerlook.study.findings import accuracy_test, change_by_layer, form_clusters
from closerlook.study.noise import Direction, change
from closerlook.study.readings import Measurement, Results
from closerlook.study.runs import Pair, by_pair
from closerlook.study.verdicts import SHARE, count, with_answer

MOST_SENTENCES = 3


@dataclass(frozen=True)
class Sentence:
    """A sentence for the top of the page; lead: its beginning, which says the main point."""

    lead: str
    rest: str


@dataclass(frozen=True)
class Change:
    """A measure of an encoder on a task before and after fine-tuning, mean over seeds.

    margin: the half-width of the 95% interval of the change; None if it is not known.
    """

    pair: Pair
    before: float
    after: float
    margin: float | None

    @property
    def value(self) -> float:
        """After minus before."""
        return self.after - self.before

    @property
    def direction(self) -> Direction:
        """Whether it rose or fell beyond its margin, or, if that is not known, at all."""
        if abs(self.value) <= (self.margin or 0.0):
            return "within noise"
        return "up" if self.value > 0 else "down"


def brief(results: Results) -> list[Sentence]:
    """The three sentences; fewer if less was measured."""
    if extent_of(results) == "none":
        makers: Sequence[Callable[[Results], Sentence | None]] = (_best_accuracy, _separable, _farthest)
    else:
        makers = (_accuracy, _distances, _layers, _clusters)
    sentences = [sentence for make in makers if (sentence := make(results)) is not None]
    return sentences[:MOST_SENTENCES]


# ---- changes of single measures ----


def accuracy_changes(results: Results) -> list[Change]:
    """Probe accuracy in %, of each encoder on each task that it was fine-tuned on."""
    changes = []
    for pair, runs in by_pair(results.runs(own=True)).items():
        before = results.before("accuracy", pair.encoder, pair.task)
        after = mean_of([results.after("accuracy", run) for run in runs])
        if before is not None and after is not None:
            test = accuracy_test(results, pair, runs)
            margin = None if test is None else 196 * test.error
            changes.append(Change(pair, 100 * before.value, 100 * after, margin))
    return changes


def distance_changes(results: Results, name: str = "mean_minimum_distance") -> list[Change]:
    """The mean distance of a label to the nearest other label, of each encoder on each task that it was tuned on."""
    changes = []
    for pair, runs in by_pair(results.runs(own=True)).items():
        before, after = results.before(name, pair.encoder, pair.task), [results.after(name, run) for run in runs]
        end = mean_of(after)
        if before is not None and end is not None:
            effect = change(before, after)
            changes.append(Change(pair, before.value, end, None if effect is None else effect.margin))
    return changes


# ---- sentences about fine-tuning ----


def _accuracy(results: Results) -> Sentence | None:
    changes = accuracy_changes(results)
    if not changes:
        return None
    lead = _lead("Probe accuracy", "rose", "fell", "stayed within noise", changes)
    if len(changes) == 1:
        one = changes[0]
        noise = "" if one.margin is None else f"; noise: ± {one.margin:.1f}"
        return Sentence(lead, f": {one.before:.1f} → {one.after:.1f} % ({show_signed(one.value, 1)} points{noise}).")
    median = show_signed(statistics.median(one.value for one in changes), 1)
    return Sentence(lead, f": it {_counts(results, changes, 'rose')} (median change: {median} points).")


def _distances(results: Results) -> Sentence | None:
    changes = distance_changes(results)
    if not changes:
        return None
    lead = _lead("Labels", "moved apart", "moved closer together", "kept their distances within noise", changes)
    what = "the mean distance of a label to the nearest other label"
    relative = distance_changes(results, "mean_relative_minimum_distance")
    grown = sum(one.value > 0 for one in relative)
    if len(changes) == 1:
        one = changes[0]
        noise = "" if one.margin is None else f" (noise: ± {one.margin:.2g})"
        also = f"; in RMS radii: {relative[0].before:.3f} → {relative[0].after:.3f}" if relative else ""
        return Sentence(lead, f": {what} is {one.before:.3g} → {one.after:.3g}{noise}{also}.")
    ratios = [one.after / one.before for one in changes if one.before > 0]
    median = f" (median: {statistics.median(ratios):.2g} times the distance before)" if ratios else ""
    also = f"; divided by the size of the space (RMS radius), it grew in {grown} of {len(relative)}" if relative else ""
    return Sentence(lead, f": {what} {_counts(results, changes, 'grew')}{median}{also}.")


def _layers(results: Results) -> Sentence | None:
    """Which layers changed, and how similar the last layer still is to the pretrained encoder."""
    kept = [
        value
        for runs in by_pair(results.runs(own=True)).values()
        if (value := mean_of([results.after("similarity_original", run) for run in runs])) is not None
    ]
    if not kept:
        return None
    median = f"{statistics.median(kept):.2f}{' (median)' if len(kept) > 1 else ''}"
    scale = "1 would mean that labels kept their arrangement"
    known = with_answer(change_by_layer(results).answers)
    if not known:
        return Sentence(f"The last layer has a similarity of {median}", f" to the pretrained encoder; {scale}.")
    higher = sum("higher" in answer.signs for answer in known)
    if higher == 0:
        lead = "Upper layers did not change more than lower ones, beyond noise"
    else:
        mostly, some = ("mostly ", "") if higher >= SHARE * len(known) else ("", " in some cases")
        lead = f"Upper layers {'' if higher == len(known) else mostly}changed more than lower ones{some}"
    many = f": beyond noise in {higher} of {_units(results, len(known))}" if len(known) > 1 else ", beyond noise"
    where = many if higher else ""
    return Sentence(lead, f"{where}; the similarity of the last layer to the pretrained encoder is {median}; {scale}.")


def _clusters(results: Results) -> Sentence | None:
    answers = form_clusters(results).answers
    known = with_answer(answers)
    minimal = sum("minimal" in answer.signs for answer in answers)
    if not known and not minimal:
        return None
    n = len(known) + minimal
    return Sentence(
        "Clusters",
        f": their number fell beyond noise in {count(known, 'for')} of {_units(results, n)}, rose in "
        f"{count(known, 'against')} and changed within noise in {count(known, 'within noise')}; in {minimal}, each "
        "label had a single cluster before and after.",
    )


def _lead(subject: str, rises: str, falls: str, stays: str, changes: Sequence[Change]) -> str:
    """The main point about several changes: 'Probe accuracy mostly rose', and whether their noise is known."""
    noise = "" if all(one.margin is not None for one in changes) else " (noise unknown)"
    n, words = len(changes), {"up": rises, "down": falls, "within noise": stays}
    counts = {direction: sum(one.direction == direction for one in changes) for direction in words}
    for direction, word in words.items():
        if counts[direction] == n:
            return f"{subject} {word}{noise}"
        if counts[direction] >= SHARE * n:
            return f"{subject} mostly {word}{noise}"
    some = [words[direction] for direction in ("up", "down") if counts[direction]]
    return f"{subject} {' in some cases and '.join(some)} in {'others' if len(some) > 1 else 'some cases'}{noise}"


def _counts(results: Results, changes: Sequence[Change], rises: str) -> str:
    """How often a measure rose, fell, and did neither: 'rose beyond noise in 3 of 5 pairs and fell in 2'."""
    words: dict[Direction, str] = {"up": rises, "down": "fell", "within noise": "stayed"}
    found = {way: n for way in words if (n := sum(one.direction == way for one in changes))}
    is_known = all(one.margin is not None for one in changes)
    parts = []
    for at, (way, n) in enumerate(found.items()):
        noise = "within noise " if way == "within noise" else "" if at or not is_known else "beyond noise "
        of = "" if at else f" of {_units(results, len(changes))}"
        parts.append(f"{words[way]} {noise if is_known else ''}in {n}{of}")
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _units(results: Results, n: int) -> str:
    """A number of pairs, and what they are pairs of: '5 pairs of encoder and task'."""
    if len(set(results.methods.values())) > 1:
        one, many, of = "combination", "combinations", "encoder, method and task"
    else:
        trainings = all(results.manifest_entry("runs", encoder) for encoder in results.encoders)
        one, many, of = "pair", "pairs", f"{'training' if trainings else 'encoder'} and task"
    return f"{n} {one if n == 1 else many} of {of}"


# ---- sentences without fine-tuning ----


def _best_accuracy(results: Results) -> Sentence | None:
    """The highest accuracy of each task."""
    best: dict[str, LayerValue] = {}
    for task in results.tasks:
        values = [one for one in layer_values(results, task) if one.measure == "accuracy"]
        if values:
            best[task] = max(values, key=lambda one: one.measurement.value)
    if not best:
        return None
    low, high = (end(best, key=lambda task: best[task].measurement.value) for end in (min, max))
    ends = [f"{best[task].measurement.value:.1f}" for task in (low, high)]
    if ends[0] == ends[1]:
        every = "" if len(best) == 1 else f", and the same on all {len(best)} tasks"
        return Sentence(f"The highest probe accuracy is {ends[0]} %", f" on {high} ({best[high].where}){every}.")
    return Sentence(
        f"The highest probe accuracy is {ends[0]} to {ends[1]} %, depending on the task",
        f": highest on {high} ({best[high].where}), lowest on {low} ({best[low].where}).",
    )


def _separable(results: Results) -> Sentence | None:
    found = _last_layer(results, "is_separable")
    if not found:
        return None
    separable = sum(one.value == 1 for one in found.values())
    many = {0: "No space is", len(found): "All spaces are"}.get(separable, f"{separable} of {len(found)} spaces are")
    return Sentence(
        f"{many if len(found) > 1 else 'The space is' if separable else 'The space is not'} linearly separable",
        f" by label at the last layer ({_units(results, len(found))}).",
    )


def _farthest(results: Results) -> Sentence | None:
    found = _last_layer(results, "mean_relative_minimum_distance")
    if not found:
        return None
    low, high = (end(found, key=lambda place: found[place].value) for end in (min, max))
    what = "the mean distance to the nearest other label is"
    ends = [f"{found[place].value:.3f} RMS radii of the space" for place in (low, high)]
    if ends[0] == ends[1]:
        return Sentence("Labels are equally far apart" if len(found) > 1 else "Distances", f": {what} {ends[0]}.")
    return Sentence(
        f"Labels are farthest apart in {high[0]} on {high[1]}",
        f": {what} {ends[1]}; it is lowest in {low[0]} on {low[1]}: {found[low].value:.3f}.",
    )


def _last_layer(results: Results, name: str) -> dict[tuple[str, str], Measurement]:
    """A measure of each encoder and task at the last layer."""
    values = ((place, results.before(name, *place)) for place in results.pairs())
    return {place: value for place, value in values if value is not None}

"""The five findings of Zhou & Srikumar (2022), judged from the table of a study by rules of version 2.

Each finding asks one question about each pair of encoder and task, averaged over the seeds of fine-tuning. A change
counts only beyond its own noise (`noise`), so a pair supports the finding, contradicts it, is within noise, or has no
answer. `verdicts` turns the answers into a verdict, by the same rule for all five. `earlier_rules` has the rules of
version 1.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from closerlook.geometry.similarity import FEWEST_LABELS
from closerlook.study.noise import HARM, Effect, NoHarm, change, count_change, half_width, no_harm, seed_margin
from closerlook.study.readings import Measurement, Results, index_results
from closerlook.study.rules import RULES, VERSION, rules_hash
from closerlook.study.runs import UNKNOWN, Pair, Run, by_pair
from closerlook.study.shuffled_clauses import null_clause, null_text, show_count, show_similarity, shuffled_clause
from closerlook.study.verdicts import (
    SHARE,
    Answer,
    Finding,
    Support,
    count,
    count_pairs,
    make_finding,
    with_answer,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RULES", "VERSION", "Answer", "Finding", "judge", "judge_results", "rules_hash"]

OVERLAP = 0.5
"""Two tasks are related if at least this fraction of all their label names occurs in both."""

OPPOSED = {("pos", "ps-role"), ("pos", "ps-fxn"), ("toy-pos", "toy-role"), ("toy-pos", "toy-fxn")}
"""Opposed tasks: part-of-speech tagging gives all prepositions one label, the other task distinguishes them."""


def judge(table: pd.DataFrame) -> list[Finding]:
    """The five findings with their verdicts, in order, from the table of a study.

    >>> from closerlook import run_study
    >>> plan = {"encoders": "bert-tiny", "tasks": "toy-question", "tuning": None, "measures": "clusters"}
    >>> findings = judge(run_study(plan, "my-study", workers=1).to_frame())
    >>> [finding.verdict for finding in findings]  # nothing was fine-tuned
    ['cannot tell', 'cannot tell', 'cannot tell', 'cannot tell', 'cannot tell']
    """
    return judge_results(index_results(table))


def judge_results(results: Results) -> list[Finding]:
    """The five findings with their verdicts, in order."""
    return [judge_one(results) for judge_one in (diverge, form_clusters, move_apart, transfer, change_by_layer)]


def _pairs(results: Results, *, own: bool) -> dict[Pair, list[Run]]:
    """The runs of each pair whose fine-tuning task is known."""
    return by_pair(run for run in results.runs(own=own) if run.tuned_on != UNKNOWN)


UNKNOWN_TASK = (
    "the task of this training is not known, and the rule needs it: name it in the plan (tuned_on), if it is this task"
)


def _of_unknown_task(results: Results) -> list[Answer]:
    """The answers of existing trainings whose task the plan does not name, by rules that need it."""
    pairs = by_pair(run for run in results.all_runs if run.tuned_on == UNKNOWN)
    return [Answer(pair, "no answer", UNKNOWN_TASK) for pair in pairs]


SUPPORTS: dict[str, tuple[Support, Support]] = {"up": ("for", "against"), "down": ("against", "for")}
"""Direction of a change -> the answer if the finding expects a rise, and if it expects a fall."""


def _support(effect: Effect, *, rise: bool) -> Support:
    """The answer of a change. rise: whether the finding expects a rise."""
    return SUPPORTS[effect.direction][0 if rise else 1] if effect.direction in SUPPORTS else "within noise"


def _beyond(effect: Effect) -> str:
    return "within noise" if effect.direction == "within noise" else "beyond noise"


NO_INTERVALS = "no intervals over examples, so the noise is unknown: add uncertainty to the plan's measures"


# ---- 1: train and test ----

NO_TRAIN_TEST = "no train–test similarity was measured before and after fine-tuning"


def diverge(results: Results) -> Finding:
    """Finding 1: fine-tuning makes train and test diverge, mostly without harm."""
    answers = [_diverges(results, pair, runs) for pair, runs in _pairs(results, own=True).items()]
    answers += _of_unknown_task(results)
    known = with_answer(answers)
    lower = sum("falls" in answer.signs for answer in known)
    return make_finding(
        1,
        "Fine-tuning makes train and test diverge, mostly without harm",
        answers,
        result=f"Train and test become less similar beyond noise in {lower} of {count_pairs(len(known))}"
        + null_clause(results, known, f"similarity_{results.train_test}")
        + _harm_clause(results, known),
        rule=RULES[1],
        unit="",
        no_answer=_reasons(answers) or NO_TRAIN_TEST,
    )


def _diverges(results: Results, pair: Pair, runs: Sequence[Run]) -> Answer:
    name = f"similarity_over_examples_{results.train_test}"
    before, after = results.before(name, pair.encoder, pair.task), [results.after(name, run) for run in runs]
    effect = change(before, after)
    if before is None or effect is None:
        known = results.after(f"similarity_{results.train_test}", runs[0]) is not None
        return _without_similarity(results, pair, runs, NO_INTERVALS if known else NO_TRAIN_TEST)
    harm = accuracy_test(results, pair, runs)
    support = "against" if harm is not None and harm.is_harm else _support(effect, rise=False)
    reason = (
        f"similarity {before.value:.2f} before, {before.value + effect.value:.2f} after, {_beyond(effect)} "
        f"(± {effect.margin:.2f})"
        + null_text(runs, results, f"similarity_{results.train_test}", "; shuffled labels: {}")
    )
    signs = frozenset({"falls"} if effect.direction == "down" else ())
    return Answer(pair, support, reason + _accuracy_clause(harm), effect, signs)


def accuracy_test(results: Results, pair: Pair, runs: Sequence[Run]) -> NoHarm | None:
    """The equivalence test of a pair's accuracy; None if accuracy was not measured before and after."""
    names = ("accuracy", "accuracy_sd")
    before = tuple(results.before(name, pair.encoder, pair.task) for name in names)
    after = [tuple(results.after(name, run) for name in names) for run in runs]
    return no_harm((before[0], before[1]), [(accuracy, sd) for accuracy, sd in after])


def _accuracy_clause(harm: NoHarm | None) -> str:
    if harm is None:
        return "; accuracy was not measured"
    result = "falls beyond its noise" if harm.is_harm else "does not fall beyond its noise"
    shown = "excluded" if harm.is_shown else f"not excluded (power {harm.power:.0%})"
    return f"; accuracy {result}, and a fall of {100 * HARM:.0f} points is {shown}"


def _harm_clause(results: Results, answers: Sequence[Answer]) -> str:
    """How often accuracy falls, and how often a fall can be excluded, as a clause."""
    runs = _pairs(results, own=True)
    tests = [test for answer in answers if (test := accuracy_test(results, answer.pair, runs[answer.pair])) is not None]
    if not tests:
        return "; accuracy was not measured, so harm is not judged"
    harmed, shown = sum(test.is_harm for test in tests), sum(test.is_shown for test in tests)
    power = statistics.median(test.power for test in tests)
    return (
        f"; accuracy falls beyond its noise in {harmed} of {len(tests)}; a fall of {100 * HARM:.0f} percentage points "
        f"or more is excluded in {shown} (equivalence test; its median power is {power:.0%})"
    )


def _without_similarity(results: Results, pair: Pair, runs: Sequence[Run], otherwise: str) -> Answer:
    """No answer: because there are too few labels, or for another reason."""
    labels = results.before("n_labels", pair.encoder, pair.task) or results.after("n_labels", runs[0])
    if labels is None or labels.value >= FEWEST_LABELS:
        return Answer(pair, "no answer", otherwise)
    few = f"spatial similarity needs {FEWEST_LABELS} labels, and there are {labels.value:.0f}"
    return Answer(pair, "no answer", few)


def _reasons(answers: Sequence[Answer]) -> str:
    """The different reasons why pairs have no answer; empty if all have one."""
    return "; ".join(dict.fromkeys(answer.reason for answer in answers if answer.support == "no answer"))


# ---- 2: clusters ----


def form_clusters(results: Results) -> Finding:
    """Finding 2: fine-tuning groups the points of a label into few clusters."""
    pairs = _pairs(results, own=True)
    answers = [_forms_clusters(results, pair, runs) for pair, runs in pairs.items()] + _of_unknown_task(results)
    known = with_answer(answers)
    minimal = sum("minimal" in answer.signs for answer in answers)
    lowest = f"{count_pairs(minimal)} had the lowest possible number of clusters before and after; " if minimal else ""
    return make_finding(
        2,
        "Fine-tuning groups the points of a label into few clusters",
        answers,
        result=f"{lowest}{'the' if minimal else 'The'} number of clusters falls beyond noise in "
        f"{count(answers, 'for')} of {'the other ' if minimal else ''}{count_pairs(len(known))}"
        + shuffled_clause(results, [run for runs in pairs.values() for run in runs]),
        rule=RULES[2],
        unit="clusters",
        no_answer="every space had the lowest possible number of clusters before and after fine-tuning"
        if minimal
        else _reasons(answers) or "no cluster counts were measured before and after fine-tuning",
    )


def _forms_clusters(results: Results, pair: Pair, runs: Sequence[Run]) -> Answer:
    start = results.before("n_clusters", pair.encoder, pair.task)
    ends = [(run, end) for run in runs if (end := results.after("n_clusters", run)) is not None]
    labels = results.before("n_labels", pair.encoder, pair.task) or results.after("n_labels", runs[0])
    if start is None or not ends or labels is None:
        return Answer(pair, "no answer", "no cluster counts were measured before and after fine-tuning")
    lowest = labels.value + _value(results.before("n_conflicts", pair.encoder, pair.task))
    before = max(0.0, start.value - lowest)
    after = [max(0.0, end.value - labels.value - _value(results.after("n_conflicts", run))) for run, end in ends]
    if before == 0 and not any(after):
        reason = (
            f"the lowest possible number before and after: {start.value:.0f} clusters for {labels.value:.0f} labels"
        )
        conflicts = lowest - labels.value
        reason += f" and {conflicts:.0f} points in conflict" if conflicts else ""
        return Answer(pair, "no answer", reason, signs=frozenset({"minimal"}))
    effect = count_change(before, after)
    mean = statistics.fmean(end.value for _, end in ends)
    reason = f"{start.value:.0f} clusters become {show_count(mean)}, {_beyond(effect)} (± {effect.margin:.1f})"
    return Answer(pair, _support(effect, rise=False), reason + shuffled_clause(results, runs, " ({})"), effect)


def _value(measurement: Measurement | None) -> float:
    return 0.0 if measurement is None else measurement.value


# ---- 3: distances ----


def move_apart(results: Results) -> Finding:
    """Finding 3: clusters of different labels move away from each other."""
    pairs = _pairs(results, own=True)
    answers = [_moves(results, pair, runs) for pair, runs in pairs.items()] + _of_unknown_task(results)
    relative = [
        shift for runs in pairs.values() for run in runs if (shift := relative_change(results, run)) is not None
    ]
    grown = sum(shift > 0 for shift in relative)
    also = f"; the mean distance divided by the RMS radius of the space grows in {grown} of {len(relative)} runs"
    labels = [counts for pair, runs in pairs.items() if (counts := moved_labels(results, pair, runs)) is not None]
    return make_finding(
        3,
        "Clusters of different labels move away from each other",
        answers,
        result="The mean distance of a label to the nearest other label grows beyond noise in "
        f"{count(answers, 'for')} of {count_pairs(len(with_answer(answers)))}{also if relative else ''}"
        + (f"; {_labels_clause(labels)}" if labels else ""),
        rule=f"{RULES[3]} Distances grow with the norm of the vectors, so the change relative to the RMS radius is "
        "reported as well; the verdict does not use it.",
        unit="%",
        no_answer=_reasons(answers) or "no label distances were measured before and after fine-tuning",
    )


def _moves(results: Results, pair: Pair, runs: Sequence[Run], *, rise: bool = True, prefix: str = "") -> Answer:
    """Whether the mean minimum distance changes. rise: whether the finding expects that it grows."""
    name = "mean_minimum_distance"
    before, after = results.before(name, pair.encoder, pair.task), [results.after(name, run) for run in runs]
    if before is None or not any(after):
        return Answer(pair, "no answer", "no label distances were measured before and after fine-tuning")
    effect = change(before, after)
    if effect is None:
        return Answer(pair, "no answer", NO_INTERVALS)
    share = effect.scaled(100 / before.value) if before.value else effect
    counts = moved_labels(results, pair, runs)
    support = _support(effect, rise=rise) if _labels_agree(effect, counts) else "within noise"
    reason = (
        f"{prefix}mean distance {before.value:.3g} before, {before.value + effect.value:.3g} after, {_beyond(effect)} "
        f"(± {effect.margin:.2g})" + (f"; {_labels_clause([counts])}" if counts else "")
    )
    return Answer(pair, support, reason, share)


def _labels_agree(effect: Effect, counts: tuple[int, int, int] | None) -> bool:
    """Whether more labels move in the direction of the mean than in the other; true if that is unknown."""
    if counts is None:
        return True
    farther, closer, _ = counts
    return farther > closer if effect.value > 0 else closer > farther


def _labels_clause(counts: Sequence[tuple[int, int, int]]) -> str:
    """How many labels moved, over some pairs, as a clause."""
    farther, closer, still = (sum(column) for column in zip(*counts, strict=True))
    return f"{farther} of {farther + closer + still} labels move farther away beyond noise, {closer} closer"


def moved_labels(results: Results, pair: Pair, runs: Sequence[Run]) -> tuple[int, int, int] | None:
    """The number of labels whose minimum distance grows beyond noise, falls beyond noise, and does neither.

    None if the minimum distances of labels have no intervals over examples.
    """
    before = results.label_values("minimum_distance", pair)
    after = [results.label_values("minimum_distance", pair, run.seed) for run in runs]
    effects = [change(start, [end.get(label) for end in after]) for label, start in before.items()]
    directions = [effect.direction for effect in effects if effect is not None]
    if not directions:
        return None
    return directions.count("up"), directions.count("down"), directions.count("within noise")


def relative_change(results: Results, run: Run) -> float | None:
    """The change of the mean minimum distance in RMS radii."""
    name = "mean_relative_minimum_distance"
    before, after = results.before(name, run.encoder, run.task), results.after(name, run)
    return None if before is None or after is None else after.value - before.value


# ---- 4: other tasks ----


def transfer(results: Results) -> Finding:
    """Finding 4: fine-tuning on a related task also moves labels apart; on an opposed task it brings them closer."""
    pairs = _pairs(results, own=False)
    kinds = {pair: relation(results, pair.tuned_on, pair.task) for pair in pairs}
    answers = [_transfers(results, pair, runs, kinds[pair]) for pair, runs in pairs.items()]
    answers += _of_unknown_task(results)
    by_kind = {kind: [one for one in answers if kinds.get(one.pair) == kind] for kind in ("related", "opposed")}
    parts = "; ".join(_kind_clause(part, kind) for kind, part in by_kind.items())
    finding = make_finding(
        4,
        "Fine-tuning on a related task also moves labels apart; on an opposed task it brings them closer",
        answers,
        result=parts.capitalize(),
        rule=RULES[4],
        unit="% in the expected direction",
        no_answer=_reasons(answers) or "no fine-tuning run was measured on a related or an opposed task",
    )
    shares = [count(part, "for") / len(known) if (known := with_answer(part)) else None for part in by_kind.values()]
    if finding.verdict == "holds" and None in shares:
        return replace(finding, verdict="cannot tell")
    if finding.verdict == "holds" and any(share is not None and share < SHARE for share in shares):
        return replace(finding, verdict="mixed")
    return finding


def relation(results: Results, tuned_on: str, task: str) -> str:
    """How two tasks are related: 'related', 'opposed' or ''; see the rule of finding 4."""
    if (tuned_on, task) in OPPOSED:
        return "opposed"
    first, second = (results.labels.get(name, set()) for name in (tuned_on, task))
    shared, all_ = len(first & second), len(first | second)
    return "related" if all_ and shared >= OVERLAP * all_ else ""


def _transfers(results: Results, pair: Pair, runs: Sequence[Run], kind: str) -> Answer:
    if not kind:
        return Answer(pair, "no answer", "the two tasks are neither related nor opposed")
    answer = _moves(results, pair, runs, rise=kind == "related", prefix=f"{kind} task; ")
    if answer.effect is None or kind == "related":
        return answer
    return replace(answer, effect=answer.effect.scaled(-1))


def _kind_clause(answers: Sequence[Answer], kind: str) -> str:
    """The result of the pairs of one relation: 'fine-tuning on an opposed task brings … in 1 of 2 pairs'."""
    known = with_answer(answers)
    if not known:
        return f"no {kind} task was measured"
    effect = "moves labels farther away" if kind == "related" else "brings labels closer"
    article = "a" if kind == "related" else "an"
    return (
        f"fine-tuning on {article} {kind} task {effect} beyond noise in {count(known, 'for')} of "
        f"{count_pairs(len(known))}, and does the opposite in {count(known, 'against')}"
    )


# ---- 5: layers ----

NO_LAYERS = "the similarity to the pretrained encoder was not measured at two or more layers"


def change_by_layer(results: Results) -> Finding:
    """Finding 5: higher layers change most, but not arbitrarily."""
    answers = [_changes(results, pair, runs) for pair, runs in by_pair(results.runs(own=True)).items()]
    known = with_answer(answers)
    changed, higher, kept = (sum(sign in answer.signs for answer in known) for sign in ("changed", "higher", "kept"))
    return make_finding(
        5,
        "Higher layers change most, but not arbitrarily",
        answers,
        result=f"In {changed} of {count_pairs(len(known))}, the last layer changes by more than seeds and samples "
        f"differ; upper layers change more than lower ones, beyond noise, in {higher}; the last layer is more similar "
        f"to the pretrained encoder than to random weights, beyond noise, in {kept}"
        + null_clause(results, known, "similarity_original"),
        rule=RULES[5],
        unit="",
        no_answer=_reasons(answers) or NO_LAYERS,
    )


def _changes(results: Results, pair: Pair, runs: Sequence[Run]) -> Answer:
    by_run = [halves for run in runs if (halves := _lower_minus_upper(results, run)) is not None]
    if not by_run:
        return _without_similarity(results, pair, runs, NO_LAYERS)
    last = [end for run in runs if (end := results.after("similarity_over_examples_original", run)) is not None]
    widths = [width for end in last if (width := half_width(end)) is not None]
    if not widths:
        return Answer(pair, "no answer", NO_INTERVALS)
    random = [end.value for run in runs if (end := results.after("similarity_random", run)) is not None]
    limits = noise_limits(results, pair)
    if not random or not limits:
        missing = "to random weights was not measured" if limits else "of seeds or of halves of train is unknown"
        return Answer(pair, "no answer", f"the similarity {missing}")
    examples, kept = statistics.fmean(widths), [end.value for end in last]
    effect = Effect(statistics.fmean(by_run), max(examples, seed_margin(by_run)))
    similarity = statistics.fmean(kept)
    above = Effect(similarity - statistics.fmean(random), max(examples, seed_margin(kept)))
    changed = similarity < min(limits.values())
    facts = {"changed": changed, "higher": effect.direction == "up", "kept": above.direction == "up"}
    support: Support = "for" if all(facts.values()) else "within noise"
    if changed and "down" in (effect.direction, above.direction):
        support = "against"
    listed = ", ".join(f"of {what} {show_similarity(limit)}" for what, limit in limits.items())
    reason = (
        f"similarity of the last layer to the pretrained encoder {show_similarity(similarity)} (± {examples:.2f}), to "
        f"random weights {show_similarity(statistics.fmean(random))}, {listed}; lower half of the layers minus upper "
        f"half {show_similarity(effect.value)}, {_beyond(effect)} (± {effect.margin:.2f})"
    )
    return Answer(pair, support, reason, effect, frozenset(name for name, is_so in facts.items() if is_so))


def noise_limits(results: Results, pair: Pair) -> dict[str, float]:
    """The similarity of two seeds, and of two halves of train in the pretrained encoder, where they were measured."""
    seeds = [entry.value for entry in results.compared_with("similarity_seed", pair.encoder, pair.task, tuned=True)]
    halves = results.before("similarity_halves", pair.encoder, pair.task)
    limits = {"two seeds": statistics.fmean(seeds)} if seeds else {}
    return limits | ({} if halves is None else {"two halves of train": halves.value})


def _lower_minus_upper(results: Results, run: Run) -> float | None:
    """The mean similarity to the pretrained encoder over the lower layers minus that over the upper layers."""
    values = [similarity.value for _, similarity in sorted(similarity_by_layer(results, run).items())]
    half = len(values) // 2
    return statistics.fmean(values[:half]) - statistics.fmean(values[-half:]) if half else None


def similarity_by_layer(results: Results, run: Run) -> dict[int, Measurement]:
    """The similarity of each layer to the pretrained encoder after fine-tuning, for layers where it is defined."""
    by_layer = {layer: results.after("similarity_original", run, layer=layer) for layer in results.layers[run.encoder]}
    return {layer: similarity for layer, similarity in by_layer.items() if similarity is not None}

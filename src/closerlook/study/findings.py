"""The five findings of Zhou & Srikumar (2022), judged from the table of a study.

Each finding puts one question to each fine-tuning; the answer is for, against, or nothing to say. The same rule makes
a verdict of the answers for all five: fewer than MINIMUM answers: cannot tell; at least three quarters for: holds; at
most one quarter for: fails; in between: mixed. The interval in each sentence is that of the share of answers for
(Clopper and Pearson, 95%): with few fine-tunings it is wide, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from closerlook.study.kinds.comparison import FEWEST_LABELS
from closerlook.study.readings import Reading, Results, Run, index_results, null_names

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["holds", "fails", "mixed", "cannot tell"]

MINIMUM = 3
"""Answers below which no verdict is given."""

SHARE = 0.75
"""Share of answers from which a finding holds; below one minus it, it fails."""

SIGNIFICANCE = 0.05
"""The p-value up to which two spaces are more alike than labels at random would make them."""

OVERLAP = 0.5
"""Two tasks are related where they share at least this part of their label names."""

OPPOSED = {("pos", "ps-role"), ("pos", "ps-fxn"), ("toy-pos", "toy-role"), ("toy-pos", "toy-fxn")}
"""Tuned and probed: part-of-speech tagging gives all prepositions one label, which the others must tell apart."""

COMMON = (
    f"Fewer than {MINIMUM} fine-tunings that can answer: cannot tell. At least three quarters for: holds. "
    "At most one quarter for: fails. Else: mixed."
)


@dataclass(frozen=True)
class Answer:
    """What one fine-tuning says of a finding: for (True), against (False) or nothing (None), why, and single signs."""

    run: Run
    holds: bool | None
    why: str
    signs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Finding:
    """A finding judged: how many fine-tunings speak for and against it, in one sentence, and the rule behind it."""

    number: int
    title: str
    verdict: Verdict
    speaks_for: int
    speaks_against: int
    silent: int
    sentence: str
    rule: str
    answers: tuple[Answer, ...] = ()


def judge(table: pd.DataFrame) -> list[Finding]:
    """The five findings of a study's table, in order."""
    return judge_results(index_results(table))


def judge_results(results: Results) -> list[Finding]:
    """The same, of a table arranged already."""
    return [judge_one(results) for judge_one in (diverge, gather, move_apart, transfer, change_by_layer)]


def weigh(answers: Sequence[Answer]) -> Verdict:
    """The verdict of the rule that all findings share.

    >>> run = Run("bert-tiny", "pos", 0, "pos")
    >>> weigh([Answer(run, True, "")] * 3 + [Answer(run, False, "")])
    'holds'
    """
    speaks_for, speaks_against = count_answers(answers)
    known = speaks_for + speaks_against
    if known < MINIMUM:
        return "cannot tell"
    share = speaks_for / known
    return "holds" if share >= SHARE else "fails" if share <= 1 - SHARE else "mixed"


def count_answers(answers: Sequence[Answer]) -> tuple[int, int]:
    """How many speak for, and how many against."""
    return sum(one.holds is True for one in answers), sum(one.holds is False for one in answers)


def share_interval(speaks_for: int, known: int) -> tuple[float, float]:
    """The 95% interval of Clopper and Pearson for a share.

    >>> [round(bound, 3) for bound in share_interval(3, 3)]
    [0.292, 1.0]
    """
    from scipy.stats import beta

    low = float(beta.ppf(0.025, speaks_for, known - speaks_for + 1)) if speaks_for else 0.0
    high = float(beta.ppf(0.975, speaks_for + 1, known - speaks_for)) if speaks_for < known else 1.0
    return low, high


# ---- 1: train and test ----


def diverge(results: Results) -> Finding:
    """Finding 1: fine-tuning makes train and test diverge, mostly without harm."""
    answers = [_diverges(results, run) for run in results.runs(own=True)]
    lower, harmed = (sum(sign in one.signs for one in answers) for sign in ("falls", "harmed"))
    known = sum(count_answers(answers))
    return _finding(
        1,
        "Fine-tuning makes train and test diverge, mostly without harm",
        answers,
        told=f"Train and test become less alike in {lower} of {_times(known)}, and accuracy is lost in {harmed}"
        + _by_chance(results, answers, f"similarity_train_{results.compared}"),
        rule="For: the spatial similarity of train and test at the last layer is lower at the end than at the start, "
        "and accuracy is not lost; accuracy counts as lost where it falls by more than the two standard deviations "
        "together, √(sd² + sd²). Where accuracy was not measured, similarity alone decides.",
        nothing=_too_few(answers) or "no train–test similarity before and after a fine-tuning was measured",
    )


def _diverges(results: Results, run: Run) -> Answer:
    similarity = f"similarity_train_{results.compared}"
    before, after = results.before(similarity, run.encoder, run.task), results.after(similarity, run)
    if before is None or after is None:
        return _without_similarity(results, run, "no similarity of train and test")
    falls, harmed = after.value < before.value, loses_accuracy(results, run)
    told = f"similarity {'falls' if falls else 'does not fall'} from {before.value:.2f} to {after.value:.2f}"
    told += chance_told([run], results, similarity, " (chance gives {})")
    signs = frozenset({"falls"} if falls else ()) | frozenset({"harmed"} if harmed else ())
    return Answer(run, falls and not harmed, told + (", and accuracy is lost" if harmed else ""), signs)


def _without_similarity(results: Results, run: Run, otherwise: str) -> Answer:
    """Nothing to say: for want of labels, or else for another reason."""
    labels = results.before("n_labels", run.encoder, run.task) or results.after("n_labels", run)
    if labels is None or labels.value >= FEWEST_LABELS:
        return Answer(run, None, otherwise)
    told = f"{labels.value:.0f} labels; their arrangement can be compared from {FEWEST_LABELS} on"
    return Answer(run, None, told, frozenset({"few labels"}))


def _too_few(answers: Sequence[Answer]) -> str:
    """That labels are wanting, where it is so for all."""
    return answers[0].why if answers and all("few labels" in one.signs for one in answers) else ""


def chance_told(runs: Sequence[Run], results: Results, measure: str, told: str) -> str:
    """What chance gives at the end of those fine-tunings, in the mean, as '0.02 ± 0.15' in `told`; else nothing."""
    mean, sd = ([results.after(name, run) for run in runs] for name in null_names(measure))
    means, deviations = ([one.value for one in part if one is not None] for part in (mean, sd))
    if not means:
        return ""
    spread = f" ± {sum(deviations) / len(deviations):.2f}" if deviations else ""
    return told.format(f"{sum(means) / len(means):.2f}{spread}".replace("-", "−"))


def _by_chance(results: Results, answers: Sequence[Answer], measure: str) -> str:
    """The same over all fine-tunings that can answer, as a part of a sentence."""
    return chance_told([one.run for one in answers if one.holds is not None], results, measure, "; chance gives {}")


def loses_accuracy(results: Results, run: Run) -> bool:
    """Whether accuracy falls by more than the standard deviations of both ends together."""
    found = [results.before(name, run.encoder, run.task) for name in ("accuracy", "accuracy_sd")]
    found += [results.after(name, run) for name in ("accuracy", "accuracy_sd")]
    before, sd_before, after, sd_after = (None if one is None else one.value for one in found)
    if before is None or after is None:
        return False
    return bool(before - after > ((sd_before or 0.0) ** 2 + (sd_after or 0.0) ** 2) ** 0.5)


# ---- 2: clusters ----


def gather(results: Results) -> Finding:
    """Finding 2: points of the same label gather in few clusters."""
    answers = [_gathers(results, run) for run in results.runs(own=True)]
    fewer, _ = count_answers(answers)
    known = sum(count_answers(answers))
    ready = sum("ready" in one.signs for one in answers)
    also = f"; {_spaces(ready)} the fewest clusters there can be from the start and kept them" if ready else ""
    return _finding(
        2,
        "Points of the same label gather in few clusters",
        answers,
        told=f"The number of clusters falls in {fewer} of {_times(known)} where it can{also}"
        + _shuffled(results, [one.run for one in answers]),
        rule="For: at the last layer, train has fewer clusters at the end than at the start. Against: it has as many "
        "or more. A space that at both ends has one cluster for each label, and one for each point at the place of a "
        "point of another label, which can never join its own, is as gathered as can be and says nothing.",
        nothing="every space had the fewest clusters there can be from the start, so there was nothing to gather"
        if ready
        else "no cluster counts before and after a fine-tuning were measured",
    )


def _gathers(results: Results, run: Run) -> Answer:
    before, after = results.before("n_clusters", run.encoder, run.task), results.after("n_clusters", run)
    labels = results.before("n_labels", run.encoder, run.task) or results.after("n_labels", run)
    if before is None or after is None or labels is None:
        return Answer(run, None, "no cluster counts")
    conflicts = results.before("n_conflicts", run.encoder, run.task), results.after("n_conflicts", run)
    alone = [0.0 if one is None else one.value for one in conflicts]
    if before.value <= labels.value + alone[0] and after.value <= labels.value + alone[1]:
        told = f"{before.value:.0f} clusters for {labels.value:.0f} labels"
        told += f" and {alone[0]:.0f} points at places of two labels" if alone[0] else ""
        return Answer(run, None, f"{told} from the start", frozenset({"ready"}))
    told = f"{before.value:.0f} clusters become {after.value:.0f}"
    return Answer(run, after.value < before.value, told + _shuffled(results, [run], " ({})"))


def _shuffled(results: Results, runs: Sequence[Run], told: str = "; {}") -> str:
    """Clusters at the end of those fine-tunings under shuffled labels and under true ones, of the same points."""
    found = [[results.after(f"subsampled_clusters{end}", run) for run in runs] for end in ("_null_mean", "")]
    shuffled, true = ([one.value for one in part if one is not None] for part in found)
    if not shuffled or not true:
        return ""
    points = max((one.n or 0 for one in found[1] if one is not None), default=0)
    most = f", of {'' if len(runs) == 1 else 'at most '}{points:,} points" if points else ""
    return told.format(f"under shuffled labels {_range(shuffled)} clusters, under the true ones {_range(true)}{most}")


def _range(values: Sequence[float]) -> str:
    """'17' or '17 to 60'."""
    return " to ".join(dict.fromkeys(f"{value:,.0f}" for value in (min(values), max(values))))


# ---- 3: distances ----


def move_apart(results: Results) -> Finding:
    """Finding 3: clusters of different labels move apart."""
    answers = [_moves(results, run) for run in results.runs(own=True)]
    more, known = count_answers(answers)[0], sum(count_answers(answers))
    relative = [change for run in results.runs(own=True) if (change := relative_change(results, run)) is not None]
    grown = sum(change > 0 for change in relative)
    also = f"; in units of the space's RMS radius the mean grows in {grown} of {len(relative)}" if relative else ""
    sure = [counts for run in results.runs(own=True) if (counts := surely_moved(results, run)) is not None]
    if sure:
        up, down, tested = (sum(counts[at] for counts in sure) for at in range(3))
        also += f"; {up} of {tested} labels surely gain distance and {down} lose it (Holm, p ≤ {SIGNIFICANCE})"
    return _finding(
        3,
        "Clusters of different labels move apart",
        answers,
        told=f"Most labels end farther from their nearest other label in {more} of {_times(known)}{also}",
        rule="For: at the last layer, on train, more than half of the labels end with a larger distance to the nearest "
        "other label than they began with. Against: half or fewer. Raw distances grow with the length of the vectors, "
        "so the same is told in RMS radii, but does not decide.",
        nothing="no label distances before and after a fine-tuning were measured",
    )


def _moves(results: Results, run: Run) -> Answer:
    counts = moved_labels(results, run)
    if counts is None:
        return Answer(run, None, "no label distances")
    up, down, still = counts
    sure = surely_moved(results, run)
    told = f"{up} of {up + down + still} labels gain distance"
    return Answer(run, up > down + still, told + (f", {sure[0]} of {sure[2]} surely (Holm)" if sure else ""))


def moved_labels(results: Results, run: Run) -> tuple[int, int, int] | None:
    """Labels whose distance to the nearest other one grew, shrank, and stayed."""
    up, down = results.after("n_labels_increased", run), results.after("n_labels_decreased", run)
    if up is None or down is None:
        return None
    change = results.after("mean_minimum_distance_change", run)
    total = int(up.value + down.value) if change is None or change.n is None else change.n
    return int(up.value), int(down.value), total - int(up.value + down.value)


def surely_moved(results: Results, run: Run) -> tuple[int, int, int] | None:
    """Labels whose distance grew surely, shrank surely, and how many were tested; after Holm's correction."""
    up, down = (
        results.after("n_labels_significantly_increased", run),
        results.after("n_labels_significantly_decreased", run),
    )
    if up is None or down is None:
        return None
    return int(up.value), int(down.value), up.n or 0


def relative_change(results: Results, run: Run) -> float | None:
    """The change of the mean distance to the nearest other label, in RMS radii."""
    name = "mean_relative_minimum_distance"
    before, after = results.before(name, run.encoder, run.task), results.after(name, run)
    return None if before is None or after is None else after.value - before.value


# ---- 4: other tasks ----


def transfer(results: Results) -> Finding:
    """Finding 4: a related task also moves clusters apart, an opposed one pulls them together."""
    runs = results.runs(own=False)
    kinds = {run: relation(results, run.tuned_on, run.task) for run in runs}
    answers = [_transfers(results, run, kinds[run]) for run in runs]
    finding = _finding(
        4,
        "A related task also moves clusters apart, an opposed one pulls them together",
        answers,
        told="; ".join(_half(answers, kinds, kind) for kind in ("related", "opposed")).capitalize(),
        rule="For: after fine-tuning on a related task more than half of the probed task's labels end farther from "
        "their nearest other label, or fewer than half after an opposed one. Related: the two tasks share at least "
        "half of their label names. Opposed: part-of-speech tagging, which gives all prepositions one label, for the "
        "tasks that tell prepositions apart. Other pairs are shown and not judged. To hold, both halves must be tried.",
        nothing="no fine-tuning was looked at on a related or an opposed task",
    )
    tried = {kinds[one.run] for one in answers if one.holds is not None}
    if finding.verdict == "holds" and len(tried) < 2:
        return Finding(**{**vars(finding), "verdict": "cannot tell"})
    return finding


def relation(results: Results, tuned_on: str, task: str) -> str:
    """'related', 'opposed' or '' for two tasks; see the rule of finding 4."""
    if (tuned_on, task) in OPPOSED:
        return "opposed"
    rows = results.of("label_clusters")
    first, second = (set(rows[rows.task == name].label) for name in (tuned_on, task))
    shared, all_ = len(first & second), len(first | second)
    return "related" if all_ and shared >= OVERLAP * all_ else ""


def _transfers(results: Results, run: Run, kind: str) -> Answer:
    counts = moved_labels(results, run)
    if counts is None or not kind:
        return Answer(run, None, "no label distances" if kind else "neither related nor opposed")
    up, down, still = counts
    most = up > down + still if kind == "related" else up < down + still
    return Answer(run, most, f"{kind}: {up} of {up + down + still} labels gain distance")


def _half(answers: Sequence[Answer], kinds: dict[Run, str], kind: str) -> str:
    mine = [one for one in answers if kinds[one.run] == kind and one.holds is not None]
    done = "moves most labels apart" if kind == "related" else "brings most labels closer"
    if not mine:
        return f"no {kind} task was tried"
    return (
        f"{'a' if kind == 'related' else 'an'} {kind} task {done} in {sum(bool(o.holds) for o in mine)} of {len(mine)}"
    )


# ---- 5: layers ----


def change_by_layer(results: Results) -> Finding:
    """Finding 5: higher layers change most, but not arbitrarily."""
    answers = [_changes(results, run) for run in results.runs(own=True)]
    known = sum(count_answers(answers))
    higher, kept = (sum(sign in one.signs for one in answers) for sign in ("higher", "kept"))
    return _finding(
        5,
        "Higher layers change most, but not arbitrarily",
        answers,
        told=f"The upper half of the layers changes more than the lower in {higher} of {_times(known)}, and the last "
        f"layer still resembles the original more than chance would make it in {kept}"
        + _by_chance(results, answers, "similarity_original")
        + _random_weights(results),
        rule="For: the mean spatial similarity to the original encoder is lower over the upper half of the layers than "
        f"over the lower half, and at the last layer the permutation test of that similarity gives p ≤ {SIGNIFICANCE}. "
        "Layers where the similarity is not defined are left out; the middle one of an odd number is in neither half.",
        nothing=_too_few(answers) or "similarity to the original was not measured at two layers or more",
    )


def _changes(results: Results, run: Run) -> Answer:
    found = similarity_by_layer(results, run)
    if len(found) < 2:
        return _without_similarity(results, run, "fewer than two layers")
    values = [one.value for _, one in sorted(found.items())]
    half = len(values) // 2
    more = sum(values[-half:]) < sum(values[:half])
    p = results.after("similarity_p_value_original", run, layer=max(found))
    if p is None or (p.n is not None and 1 / (p.n + 1) > SIGNIFICANCE):
        return Answer(run, None, "too few relabellings to tell an arrangement that is kept from one by chance")
    kept = p.value <= SIGNIFICANCE
    told = f"upper layers change {'more' if more else 'no more'}; the arrangement is {'kept' if kept else 'not kept'}"
    return Answer(run, more and kept, told, frozenset({"higher"} if more else ()) | frozenset({"kept"} if kept else ()))


def _random_weights(results: Results) -> str:
    """How alike the ends are to the same encoders with random weights, as a part of a sentence."""
    runs = results.runs(own=True)
    found = [one.value for run in runs if (one := results.after("similarity_random", run)) is not None]
    return f", random weights {sum(found) / len(found):.2f}".replace("-", "−") if found else ""


def similarity_by_layer(results: Results, run: Run) -> dict[int, Reading]:
    """How alike each layer is to the original at the end, where that is defined."""
    found = {layer: results.after("similarity_original", run, layer=layer) for layer in results.layers[run.encoder]}
    return {layer: one for layer, one in found.items() if one is not None}


# ---- words ----


def _finding(number: int, title: str, answers: Sequence[Answer], *, told: str, rule: str, nothing: str) -> Finding:
    speaks_for, speaks_against = count_answers(answers)
    known = speaks_for + speaks_against
    verdict = weigh(answers)
    if not known:
        sentence = f"Cannot tell: {nothing}."
    else:
        low, high = share_interval(speaks_for, known)
        few = f"; {MINIMUM} are needed for a verdict" if known < MINIMUM else ""
        sentence = (
            f"{told}; {speaks_for} speak{'s' if speaks_for == 1 else ''} for it and {speaks_against} against "
            f"(95% interval of the share for: {low:.0%} to {high:.0%}{few})."
        )
    return Finding(
        number,
        title,
        verdict,
        speaks_for,
        speaks_against,
        len(answers) - known,
        sentence,
        f"{rule} {COMMON}",
        tuple(answers),
    )


def _times(n: int) -> str:
    return f"{n} fine-tuning{'' if n == 1 else 's'}"


def _spaces(n: int) -> str:
    return "1 other had" if n == 1 else f"{n} others had"

"""The five findings of Zhou & Srikumar (2022), judged from the table of a study.

Each finding asks one question about each fine-tuning run; the run supports it, contradicts it, or has no answer.
`verdicts` turns the answers into a verdict, by the same rule for all five.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from closerlook.study.kinds.comparison import FEWEST_LABELS
from closerlook.study.readings import Measurement, Results, Run, index_results, null_names
from closerlook.study.verdicts import Answer, Finding, count_answers, count_runs, make_finding

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Answer", "Finding", "judge", "judge_results"]

SIGNIFICANCE = 0.05
"""The largest p-value that counts as significant."""

OVERLAP = 0.5
"""Two tasks are related if at least this fraction of all their label names occurs in both."""

OPPOSED = {("pos", "ps-role"), ("pos", "ps-fxn"), ("toy-pos", "toy-role"), ("toy-pos", "toy-fxn")}
"""Opposed tasks: part-of-speech tagging gives all prepositions one label, the other task distinguishes them."""


def judge(table: pd.DataFrame) -> list[Finding]:
    """The five findings with their verdicts, in order, from the table of a study."""
    return judge_results(index_results(table))


def judge_results(results: Results) -> list[Finding]:
    """The five findings with their verdicts, in order."""
    return [judge_one(results) for judge_one in (diverge, form_clusters, move_apart, transfer, change_by_layer)]


# ---- 1: train and test ----

NO_TRAIN_TEST = "no train–test similarity was measured before and after fine-tuning"


def diverge(results: Results) -> Finding:
    """Finding 1: fine-tuning makes train and test diverge, mostly without harm."""
    answers = [_diverges(results, run) for run in results.runs(own=True)]
    lower, harmed = (sum(sign in answer.signs for answer in answers) for sign in ("falls", "harmed"))
    known = sum(count_answers(answers))
    return make_finding(
        1,
        "Fine-tuning makes train and test diverge, mostly without harm",
        answers,
        result=f"Train and test become less similar in {lower} of {count_runs(known)}"
        + _null_clause(results, answers, f"similarity_{results.train_test}")
        + f", and accuracy falls by more than its standard deviation in {harmed}",
        rule="A run supports the finding if the spatial similarity of train and test at the last layer is lower after "
        "fine-tuning than before, and accuracy does not fall by more than its standard deviation; otherwise it "
        "contradicts the finding. This standard deviation is √(sd_before² + sd_after²), where sd is the standard "
        "deviation over the seeds of the probes. If accuracy was not measured, similarity alone decides. A run has no "
        "answer if the similarity was not measured.",
        no_answer=_reasons(answers) or NO_TRAIN_TEST,
    )


def _diverges(results: Results, run: Run) -> Answer:
    similarity = f"similarity_{results.train_test}"
    before, after = results.before(similarity, run.encoder, run.task), results.after(similarity, run)
    if before is None or after is None:
        return _without_similarity(results, run, NO_TRAIN_TEST)
    falls, harmed = after.value < before.value, loses_accuracy(results, run)
    reason = f"similarity {'falls' if falls else 'does not fall'}: {before.value:.2f} before, {after.value:.2f} after"
    reason += null_text([run], results, similarity, " (with shuffled labels: {})")
    signs = frozenset({"falls"} if falls else ()) | frozenset({"harmed"} if harmed else ())
    return Answer(run, falls and not harmed, reason + _accuracy_clause(results, run, harmed=harmed), signs)


def _accuracy_clause(results: Results, run: Run, *, harmed: bool) -> str:
    """Whether accuracy falls by more than its standard deviation, as a clause; empty if it was not measured."""
    is_known = results.before("accuracy", run.encoder, run.task) and results.after("accuracy", run)
    verb = "falls" if harmed else "does not fall"
    return f"; accuracy {verb} by more than its standard deviation" if is_known else ""


def _without_similarity(results: Results, run: Run, otherwise: str) -> Answer:
    """No answer: because there are too few labels, or for another reason."""
    labels = results.before("n_labels", run.encoder, run.task) or results.after("n_labels", run)
    if labels is None or labels.value >= FEWEST_LABELS:
        return Answer(run, None, otherwise)
    return Answer(run, None, f"spatial similarity needs {FEWEST_LABELS} labels, and there are {labels.value:.0f}")


def _reasons(answers: Sequence[Answer]) -> str:
    """The different reasons why runs have no answer; empty if all have one."""
    return "; ".join(dict.fromkeys(answer.reason for answer in answers if answer.holds is None))


def null_text(runs: Sequence[Run], results: Results, measure: str, template: str) -> str:
    """The mean of a measure on shuffled labels after the runs, as '0.02 ± 0.15' in the template; empty if unknown."""
    mean, sd = ([results.after(name, run) for run in runs] for name in null_names(measure))
    means, deviations = ([entry.value for entry in entries if entry is not None] for entries in (mean, sd))
    if not means:
        return ""
    spread = f" ± {sum(deviations) / len(deviations):.2f}" if deviations else ""
    mean_text = f"{round(sum(means) / len(means), 2) + 0.0:.2f}"  # adding zero turns a negative zero into zero
    return template.format(f"{mean_text}{spread}".replace("-", "−"))


def _null_clause(results: Results, answers: Sequence[Answer], measure: str) -> str:
    """The mean of a similarity on shuffled labels over all runs with an answer, as a clause; empty if unknown."""
    runs = [answer.run for answer in answers if answer.holds is not None]
    text = null_text(runs, results, measure, "{}")
    meaning = "mean ± standard deviation" if "±" in text else "mean"
    return f" (with shuffled labels, the similarity after fine-tuning is {text}, {meaning})" if text else ""


def loses_accuracy(results: Results, run: Run) -> bool:
    """Whether accuracy falls by more than the standard deviations before and after combined."""
    entries = [results.before(name, run.encoder, run.task) for name in ("accuracy", "accuracy_sd")]
    entries += [results.after(name, run) for name in ("accuracy", "accuracy_sd")]
    before, sd_before, after, sd_after = (None if entry is None else entry.value for entry in entries)
    if before is None or after is None:
        return False
    return bool(before - after > ((sd_before or 0.0) ** 2 + (sd_after or 0.0) ** 2) ** 0.5)


# ---- 2: clusters ----


def form_clusters(results: Results) -> Finding:
    """Finding 2: fine-tuning groups the points of a label into few clusters."""
    answers = [_forms_clusters(results, run) for run in results.runs(own=True)]
    fewer, known = count_answers(answers)[0], sum(count_answers(answers))
    minimal = sum("minimal" in answer.signs for answer in answers)
    return make_finding(
        2,
        "Fine-tuning groups the points of a label into few clusters",
        answers,
        result=_clusters_result(fewer, known, minimal) + _shuffled_clause(results, [answer.run for answer in answers]),
        rule="A run supports the finding if, at the last layer, train has fewer clusters after fine-tuning than "
        "before; it contradicts the finding if train has as many or more. It has no answer if the clusters were not "
        "counted both before and after, or if their number counts as the lowest possible both before and after, that "
        "is, if it is at most one for each label plus one for each point that has the same vector as a point of "
        "another label.",
        no_answer="every space had the lowest possible number of clusters before and after fine-tuning"
        if minimal
        else "no cluster counts were measured before and after fine-tuning",
    )


def _clusters_result(fewer: int, known: int, minimal: int) -> str:
    """In how many runs the number of clusters falls, and in how many it cannot fall."""
    if not minimal:
        return f"The number of clusters falls in {fewer} of {count_runs(known)}"
    effect = (
        f"in the other one, the number {'falls' if fewer else 'does not fall'}"
        if known == 1
        else f"the number falls in {fewer} of the other {known}"
    )
    minimum = f"{minimal} had the lowest possible number of clusters before and after"
    return f"Of {count_runs(known + minimal)}, {minimum}; {effect}"


def _forms_clusters(results: Results, run: Run) -> Answer:
    before, after = results.before("n_clusters", run.encoder, run.task), results.after("n_clusters", run)
    labels = results.before("n_labels", run.encoder, run.task) or results.after("n_labels", run)
    if before is None or after is None or labels is None:
        return Answer(run, None, "no cluster counts were measured before and after fine-tuning")
    conflicts = results.before("n_conflicts", run.encoder, run.task), results.after("n_conflicts", run)
    at_start, at_end = (0.0 if count is None else count.value for count in conflicts)
    if before.value <= labels.value + at_start and after.value <= labels.value + at_end:
        reason = (
            f"the lowest possible number before and after: {before.value:.0f} clusters for {labels.value:.0f} labels"
        )
        reason += f" and {at_start:.0f} points in conflict" if at_start else ""
        return Answer(run, None, reason, frozenset({"minimal"}))
    reason = f"{before.value:.0f} clusters become {after.value:.0f}"
    return Answer(run, after.value < before.value, reason + _shuffled_clause(results, [run], " ({})"))


def _shuffled_clause(results: Results, runs: Sequence[Run], template: str = "; {}") -> str:
    """The number of clusters after the runs, with shuffled and with true labels on the same points, as a clause."""
    counts = [[results.after(f"subsampled_clusters{end}", run) for run in runs] for end in ("_null_mean", "")]
    shuffled, true = ([count.value for count in part if count is not None] for part in counts)
    if not shuffled or not true:
        return ""
    points = max((count.n or 0 for count in counts[1] if count is not None), default=0)
    size = f"on {_subsamples(len(runs))}{points:,} points, " if points else ""
    text = f"{size}shuffled labels give {_range(shuffled)} clusters on average and true labels {_range(true)}"
    return template.format(text + (", depending on the run" if len(runs) > 1 else ""))


def _subsamples(n_runs: int) -> str:
    return "a subsample of " if n_runs == 1 else "subsamples of at most "


def _range(values: Sequence[float]) -> str:
    """The range of some numbers, with one decimal where a number is not whole: '17' or '19.5 to 60'."""
    return " to ".join(dict.fromkeys(f"{value:,.1f}".removesuffix(".0") for value in (min(values), max(values))))


# ---- 3: distances ----


def move_apart(results: Results) -> Finding:
    """Finding 3: clusters of different labels move away from each other."""
    answers = [_moves(results, run) for run in results.runs(own=True)]
    more, known = count_answers(answers)[0], sum(count_answers(answers))
    relative = [change for run in results.runs(own=True) if (change := relative_change(results, run)) is not None]
    grown = sum(change > 0 for change in relative)
    also = f"; the mean distance divided by the RMS radius of the space grows in {grown} of {len(relative)}"
    also = also if relative else ""
    tests = [counts for run in results.runs(own=True) if (counts := significantly_moved(results, run)) is not None]
    if tests:
        up, down, tested = (sum(column) for column in zip(*tests, strict=True))
        also += (
            f"; {up} of {tested} labels move significantly farther away and {down} significantly closer "
            f"(p ≤ {SIGNIFICANCE} after Holm correction)"
        )
    return make_finding(
        3,
        "Clusters of different labels move away from each other",
        answers,
        result=f"More than half of the labels move farther from the nearest other label in {more} of "
        f"{count_runs(known)}{also}",
        rule="A run supports the finding if, at the last layer, on train, more than half of the labels have a larger "
        "distance to the nearest other label after fine-tuning than before; it contradicts the finding if half or "
        "fewer have. It has no answer if label distances were not measured. Distances grow with the norm of the "
        "vectors, so the text above also reports the change relative to the RMS radius; the verdict does not use it.",
        no_answer="no label distances were measured before and after fine-tuning",
    )


def _moves(results: Results, run: Run) -> Answer:
    counts = moved_labels(results, run)
    if counts is None:
        return Answer(run, None, "no label distances")
    up, down, still = counts
    test = significantly_moved(results, run)
    reason = f"{up} of {up + down + still} labels move farther away"
    return Answer(
        run, up > down + still, reason + (f", {test[0]} of {test[2]} significantly (Holm-corrected)" if test else "")
    )


def moved_labels(results: Results, run: Run) -> tuple[int, int, int] | None:
    """The number of labels whose minimum distance increased, decreased, and stayed the same."""
    up, down = results.after("n_labels_increased", run), results.after("n_labels_decreased", run)
    if up is None or down is None:
        return None
    change = results.after("mean_minimum_distance_change", run)
    total = int(up.value + down.value) if change is None or change.n is None else change.n
    return int(up.value), int(down.value), total - int(up.value + down.value)


def significantly_moved(results: Results, run: Run) -> tuple[int, int, int] | None:
    """The number of labels whose minimum distance increased significantly, decreased significantly, and was tested."""
    up, down = (
        results.after("n_labels_significantly_increased", run),
        results.after("n_labels_significantly_decreased", run),
    )
    if up is None or down is None:
        return None
    return int(up.value), int(down.value), up.n or 0


def relative_change(results: Results, run: Run) -> float | None:
    """The change of the mean minimum distance in RMS radii."""
    name = "mean_relative_minimum_distance"
    before, after = results.before(name, run.encoder, run.task), results.after(name, run)
    return None if before is None or after is None else after.value - before.value


# ---- 4: other tasks ----


def transfer(results: Results) -> Finding:
    """Finding 4: fine-tuning on a related task also moves labels apart; on an opposed task it brings them closer."""
    runs = results.runs(own=False)
    kinds = {run: relation(results, run.tuned_on, run.task) for run in runs}
    answers = [_transfers(results, run, kinds[run]) for run in runs]
    parts = "; ".join(_kind_clause(answers, kinds, kind) for kind in ("related", "opposed"))
    finding = make_finding(
        4,
        "Fine-tuning on a related task also moves labels apart; on an opposed task it brings them closer",
        answers,
        result=parts.capitalize(),
        rule="A run that is probed on a task other than its own supports the finding if, after fine-tuning on a "
        "related task, more than half of the probed task's labels are farther from the nearest other label, or, after "
        "an opposed task, fewer than half; otherwise it contradicts the finding. Related: at least half of all label "
        "names of the two tasks occur in both. Opposed: fine-tuned on pos (or toy-pos), which gives all prepositions "
        "one label, and probed on ps-role or ps-fxn (toy-role, toy-fxn), which distinguish them. With other pairs of "
        "tasks, or if label distances were not measured, a run has no answer. The finding can hold only if both a "
        "related and an opposed task were measured.",
        no_answer="no fine-tuning run was measured on a related or an opposed task",
    )
    measured = {kinds[answer.run] for answer in answers if answer.holds is not None}
    if finding.verdict == "holds" and len(measured) < 2:
        return replace(finding, verdict="cannot tell")
    return finding


def relation(results: Results, tuned_on: str, task: str) -> str:
    """How two tasks are related: 'related', 'opposed' or ''; see the rule of finding 4."""
    if (tuned_on, task) in OPPOSED:
        return "opposed"
    rows = results.of("label_clusters")
    first, second = (set(rows[rows.task == name].label) for name in (tuned_on, task))
    shared, all_ = len(first & second), len(first | second)
    return "related" if all_ and shared >= OVERLAP * all_ else ""


def _transfers(results: Results, run: Run, kind: str) -> Answer:
    counts = moved_labels(results, run)
    if counts is None or not kind:
        return Answer(run, None, "no label distances" if kind else "the two tasks are neither related nor opposed")
    up, down, still = counts
    holds = up > down + still if kind == "related" else up < down + still
    return Answer(run, holds, f"{kind} task; {up} of {up + down + still} labels move farther away")


def _kind_clause(answers: Sequence[Answer], kinds: dict[Run, str], kind: str) -> str:
    """The result of the runs of one relation: 'fine-tuning on an opposed task brings … in 1 of 2 runs'."""
    known = [answer for answer in answers if kinds[answer.run] == kind and answer.holds is not None]
    if not known:
        return f"no {kind} task was measured"
    effect = "moves most labels farther away" if kind == "related" else "brings most labels closer"
    n_for, _ = count_answers(known)
    return f"fine-tuning on {'a' if kind == 'related' else 'an'} {kind} task {effect} in {n_for} of {_runs(len(known))}"


def _runs(n: int) -> str:
    return "1 run" if n == 1 else f"{n} runs"


# ---- 5: layers ----

NO_LAYERS = "the similarity to the pretrained encoder was not measured at two or more layers"


def change_by_layer(results: Results) -> Finding:
    """Finding 5: higher layers change most, but not arbitrarily."""
    answers = [_changes(results, run) for run in results.runs(own=True)]
    known = sum(count_answers(answers))
    higher, kept = (sum(sign in answer.signs for answer in answers) for sign in ("higher", "kept"))
    return make_finding(
        5,
        "Higher layers change most, but not arbitrarily",
        answers,
        result=f"The upper half of the layers changes more than the lower half in {higher} of {count_runs(known)}, and "
        f"the last layer is still significantly similar to the pretrained encoder in {kept}"
        + _null_clause(results, answers, "similarity_original")
        + _random_weights_clause(results),
        rule="A run supports the finding if the mean spatial similarity to the pretrained encoder is lower over the "
        "upper half of the layers than over the lower half, and the permutation test of that similarity at the last "
        f"layer gives p ≤ {SIGNIFICANCE}; otherwise it contradicts the finding. It has no answer if fewer than two "
        "layers have a similarity, or if the labels were permuted too few times for such a p-value. Every layer with "
        "a known similarity is used, including layer 0 (the embeddings); if the number of these layers is odd, the "
        "middle one belongs to neither half.",
        no_answer=_reasons(answers) or NO_LAYERS,
    )


def _changes(results: Results, run: Run) -> Answer:
    by_layer = similarity_by_layer(results, run)
    if len(by_layer) < 2:
        return _without_similarity(results, run, NO_LAYERS)
    values = [similarity.value for _, similarity in sorted(by_layer.items())]
    half = len(values) // 2
    more = sum(values[-half:]) < sum(values[:half])
    p = results.after("similarity_p_value_original", run, layer=max(by_layer))
    if p is None or (p.n is not None and 1 / (p.n + 1) > SIGNIFICANCE):
        return Answer(run, None, _without_test(results, run, p))
    kept = p.value <= SIGNIFICANCE
    reason = (
        f"upper layers {'change more' if more else 'do not change more'}; the similarity to the pretrained encoder is "
        f"{'significant' if kept else 'not significant'}"
    )
    signs = frozenset({"higher"} if more else ()) | frozenset({"kept"} if kept else ())
    return Answer(run, more and kept, reason, signs)


def _without_test(results: Results, run: Run, p: Measurement | None) -> str:
    """Why it cannot be known whether the similarity to the pretrained encoder is significant."""
    if p is None or p.n is None:
        return "no permutation test of the similarity to the pretrained encoder was made at the last layer"
    labels = results.after("n_labels", run) or results.before("n_labels", run.encoder, run.task)
    if labels is not None and math.factorial(int(labels.value)) == p.n + 1:  # all permutations were tried
        return f"a permutation test of {labels.value:.0f} labels cannot give p ≤ {SIGNIFICANCE}, at least 4 are needed"
    return (
        f"a permutation test with {p.n} permutations cannot give p ≤ {SIGNIFICANCE}, at least "
        f"{round(1 / SIGNIFICANCE) - 1} are needed (geometry.permutations in the plan)"
    )


def _random_weights_clause(results: Results) -> str:
    """The mean similarity to the pretrained encoder and to random weights, over runs that have both, as a clause."""
    ends = [
        (pretrained.value, random.value)
        for run in results.runs(own=True)
        if (pretrained := results.after("similarity_original", run)) is not None
        and (random := results.after("similarity_random", run)) is not None
    ]
    if not ends:
        return ""
    to_pretrained, to_random = (f"{sum(part) / len(part):.2f}".replace("-", "−") for part in zip(*ends, strict=True))
    return (
        f"; the mean similarity of the fine-tuned last layer to the pretrained encoder is {to_pretrained}, and to the "
        f"same encoder with random weights {to_random}"
    )


def similarity_by_layer(results: Results, run: Run) -> dict[int, Measurement]:
    """The similarity of each layer to the pretrained encoder after fine-tuning, for layers where it is defined."""
    by_layer = {layer: results.after("similarity_original", run, layer=layer) for layer in results.layers[run.encoder]}
    return {layer: similarity for layer, similarity in by_layer.items() if similarity is not None}

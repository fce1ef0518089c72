"""The tables of the studies next to the main one, in Markdown: methods of fine-tuning, forgetting, held-out data."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from closerlook.report.before_after import mean_of, runs_of
from closerlook.report.tables import MISSING
from closerlook.tuning.existing import FULL
from writeup.paper_tables import grid
from writeup.phrases import StaleTextError, fixed, short, signed
from writeup.values import Study

if TYPE_CHECKING:
    from closerlook.study.verdicts import Answer

Distances = dict[tuple[str, str], float]
"""The distance of each two labels of a space."""

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
    """Each encoder before and after fine-tuning by each method: means over tasks, and what it does to the other tasks."""
    rows = []
    for base in dict.fromkeys(map(base_of, study.encoders)):
        starts = [(study.starts(measure, [base]), digits, scale) for measure, digits, scale in METHOD_ENDS.values()]
        cells = [fixed(scale * statistics.fmean(known), digits) if known else MISSING for known, digits, scale in starts]
        rows.append([f"{short(base)}, pretrained", *cells, *[MISSING] * 4])
    for encoder in by_method(study):
        cells = [shown(task_mean(study, name, encoder), *form) for name, *form in METHOD_ENDS.values()]
        others = [
            task_mean(study, "similarity_original", encoder),
            None if base_of(encoder) == encoder else mean_or_none(method_similarities(study, base_of(encoder), encoder).values()),
            mean_or_none(method_similarities(study, encoder, encoder).values()),
        ]
        lost = mean_or_none(forgotten(study, encoder).values())
        cells += [shown(one, 2) for one in others] + [MISSING if lost is None else signed(lost, 1)]
        rows.append([with_method(encoder), *cells])
    head = ["similarity to the pretrained encoder", "to full fine-tuning", "of two seeds", "accuracy on other tasks, points"]
    return grid(["encoder and method", *METHOD_ENDS, *head], rows)


def with_method(encoder: str) -> str:
    """The name of an encoder with its method of fine-tuning.

    >>> with_method("bert-small (lora 4)"), with_method("bert-small")
    ('bert-small (lora 4)', 'bert-small (full)')
    """
    return short(encoder) if base_of(encoder) != encoder else f"{short(encoder)} ({FULL})"


def by_method(study: Study) -> list[str]:
    """The encoders, and the methods of each in the order of the plan."""
    methods = [FULL, *(str(method) for method in study.plan("tuning", "methods"))]
    bases = list(dict.fromkeys(map(base_of, study.encoders)))

    def place(encoder: str) -> tuple[int, int]:
        method = encoder.removeprefix(base_of(encoder)).strip(" ()") or FULL
        return bases.index(base_of(encoder)), methods.index(method)

    return sorted(study.encoders, key=place)


METHOD_ENDS = {
    "accuracy, %": ("accuracy", 1, 100),
    "distance to the nearest label, RMS radii": ("mean_relative_minimum_distance", 2, 1),
    "NC1": ("nc1", 2, 1),
}
"""Measures of a space that methods are compared by: name, decimals shown, factor."""


def shown(value: float | None, digits: int, scale: float = 1) -> str:
    """A value that may be missing."""
    return MISSING if value is None else fixed(scale * value, digits)


def mean_or_none(numbers: Iterable[float]) -> float | None:
    """The mean of some numbers; None if there are none."""
    known = list(numbers)
    return statistics.fmean(known) if known else None


def task_mean(study: Study, measure: str, encoder: str, layer: int | None = None) -> float | None:
    """A measure after fine-tuning: the mean over tasks of the means over seeds, so that all tasks count the same."""
    means = []
    for task in study.tasks:
        ends = [study.results.after(measure, run, layer=layer) for run in runs_of(study.results, encoder, task)]
        known = mean_of(ends)
        if known is not None:
            means.append(known)
    return mean_or_none(means)


def method_similarities(study: Study, one: str, other: str) -> dict[str, float]:
    """For each task, the similarity of the last layers after fine-tuning by two methods, mean over pairs of seeds.

    For the same method twice: of two seeds.
    """
    found = {}
    for task in study.tasks:
        spaces = [final_distances(study, encoder, task) for encoder in (one, other)]
        pairs = [
            correlate(first, second)
            for seed, first in spaces[0].items()
            for other_seed, second in spaces[1].items()
            if one != other or seed < other_seed
        ]
        if pairs:
            found[task] = statistics.fmean(pairs)
    return found


def final_distances(study: Study, encoder: str, task: str) -> dict[int, Distances]:
    """The distances between the labels of train at the last layer after fine-tuning, for each seed."""
    rows = study.results.of("label_distance")
    chosen = rows[
        (rows["encoder"] == encoder) & (rows["tuned_on"] == task) & (rows["task"] == task) & (rows["split"] == "train")
    ]
    final = chosen[chosen["is_final"] & chosen["value"].notna() & (chosen["layer"] == chosen["layer"].max())]
    return {
        int(seed): dict(zip(zip(part["label"], part["other"], strict=True), part["value"].astype(float), strict=True))
        for seed, part in final.groupby("seed")
    }


def correlate(first: Distances, second: Distances) -> float:
    """The correlation of the distances that two spaces share."""
    common = [pair for pair in first if pair in second]
    return statistics.correlation([first[pair] for pair in common], [second[pair] for pair in common])


def method_layers_table(study: Study) -> str:
    """The similarity to the pretrained encoder at each layer after fine-tuning by each method, mean over tasks."""
    layers = sorted(int(layer) for layer in study.results.of("similarity_original")["layer"].unique())
    rows = [
        [with_method(encoder), *(shown(task_mean(study, "similarity_original", encoder, layer), 2) for layer in layers)]
        for encoder in by_method(study)
    ]
    return grid(["encoder and method", *(f"layer {layer}" for layer in layers)], rows)


def forgotten(study: Study, encoder: str) -> dict[tuple[str, str], float]:
    """The change of accuracy by fine-tuning on one task and measuring another, in points."""
    return {
        (tuned_on, task): change
        for tuned_on in study.tasks
        for task in study.tasks
        if tuned_on != task and (change := accuracy_change(study, encoder, tuned_on, task)) is not None
    }


def forgotten_table(study: Study) -> str:
    """The change of accuracy on other tasks by each method, in points; a row for each two tasks."""
    known = {encoder: forgotten(study, encoder) for encoder in by_method(study)}
    pairs = dict.fromkeys(pair for found in known.values() for pair in found)
    rows = [
        [
            f"{tuned_on} → {task}",
            *(signed(found[tuned_on, task], 1) if (tuned_on, task) in found else MISSING for found in known.values()),
        ]
        for tuned_on, task in pairs
    ]
    return grid(["fine-tuned on → measured on", *map(with_method, known)], rows)


def forgetting_course(study: Study, tuned_on: str, step: int | None) -> float:
    """The change of accuracy on the other tasks after a number of updates (None: at the end), in points.

    The mean over encoders, seeds and tasks.
    """
    rows = study.results.of("accuracy")
    other = rows[(rows["tuned_on"] == tuned_on) & (rows["task"] != tuned_on)]
    chosen = other[other["is_final"] if step is None else (other["step"] == step) & ~other["is_final"]]
    if chosen.empty:
        raise StaleTextError(f"the kept table has no accuracy of other tasks at step {step} of {tuned_on}")
    starts = {
        (encoder, task): study.before("accuracy", encoder, task)
        for encoder, task in set(zip(chosen["encoder"], chosen["task"], strict=True))
    }
    places = zip(chosen["encoder"], chosen["task"], chosen["value"], strict=True)
    return 100 * statistics.fmean(float(value) - starts[encoder, task] for encoder, task, value in places)


def forgetting_course_table(study: Study, steps: Sequence[int]) -> str:
    """The mean change of accuracy on the other tasks after some numbers of updates and at the end, in points."""
    rows = [
        [task, *(signed(forgetting_course(study, task, step), 1) for step in (*steps, None))] for task in study.tasks
    ]
    return grid(["fine-tuned on", *(f"{step} updates" for step in steps), "end"], rows)


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

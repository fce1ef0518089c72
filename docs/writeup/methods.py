"""The tables of methods of fine-tuning side by side, in Markdown: what each does to the space, and where."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from closerlook.report.before_after import mean_of, runs_of
from closerlook.report.tables import MISSING
from closerlook.tuning.existing import FULL
from writeup.forgetting import base_of, forgotten
from writeup.paper_tables import grid
from writeup.phrases import fixed, in_words, short, signed
from writeup.values import Study

Distances = dict[tuple[str, str], float]
"""The distance of each two labels of a space."""


def method_table(study: Study) -> str:
    """Each encoder before fine-tuning, and after it by each method: means over tasks."""
    rows = []
    for base in bases(study):
        rows += [_pretrained_row(study, base), *(_method_row(study, one) for one in by_method(study, base))]
    compared = ("similarity to the pretrained encoder", "to full fine-tuning", "of two seeds")
    return grid(["encoder and method", *METHOD_ENDS, *compared, "change on other tasks, points"], rows)


def _pretrained_row(study: Study, base: str) -> list[str]:
    starts = [mean_or_none(study.starts(measure, [base])) for measure, _, _ in METHOD_ENDS.values()]
    cells = [shown(start, *form) for start, (_, *form) in zip(starts, METHOD_ENDS.values(), strict=True)]
    return [f"{short(base)}, pretrained", *cells, *[MISSING] * 4]


def _method_row(study: Study, encoder: str) -> list[str]:
    base = base_of(encoder)
    similarities = [
        task_mean(study, "similarity_original", encoder),
        mean_or_none([] if base == encoder else method_similarities(study, base, encoder).values()),
        mean_or_none(method_similarities(study, encoder, encoder).values()),
    ]
    lost = mean_or_none(forgotten(study, encoder).values())
    return [
        with_method(encoder),
        *(shown(task_mean(study, name, encoder), *form) for name, *form in METHOD_ENDS.values()),
        *(shown(one, 2) for one in similarities),
        MISSING if lost is None else signed(lost, 1),
    ]


METHOD_ENDS = {
    "accuracy, %": ("accuracy", 1, 100),
    "distance to the nearest label, RMS radii": ("mean_relative_minimum_distance", 2, 1),
    "NC1": ("nc1", 2, 1),
}
"""Measures of a space that methods are compared by: name, decimals shown, factor."""


def with_method(encoder: str) -> str:
    """The name of an encoder with its method of fine-tuning.

    >>> with_method("bert-small (lora 4)"), with_method("bert-small")
    ('bert-small (lora 4)', 'bert-small (full)')
    """
    return short(encoder) if base_of(encoder) != encoder else f"{short(encoder)} ({FULL})"


def bases(study: Study) -> list[str]:
    """The encoders that were fine-tuned by several methods."""
    return list(dict.fromkeys(map(base_of, study.encoders)))


def by_method(study: Study, base: str) -> list[str]:
    """The names of an encoder with each of its methods, in the order of the plan."""
    methods = [FULL, *(str(method) for method in study.plan("tuning", "methods"))]
    own = [encoder for encoder in study.encoders if base_of(encoder) == base]
    return sorted(own, key=lambda encoder: methods.index(encoder.removeprefix(base).strip(" ()") or FULL))


def method_layers_table(study: Study, base: str) -> str:
    """The similarity of an encoder to the pretrained one at each layer after each method, mean over tasks."""
    rows = study.results.of("similarity_original")
    layers = sorted(int(layer) for layer in rows[rows["encoder"] == base]["layer"].unique())
    table = [
        [with_method(one), *(shown(task_mean(study, "similarity_original", one, layer), 2) for layer in layers)]
        for one in by_method(study, base)
    ]
    return grid(["encoder and method", *(f"layer {layer}" for layer in layers)], table)


def forgotten_table(study: Study, base: str) -> str:
    """The change of accuracy on other tasks by each method, in points; a row for each two tasks."""
    known = {encoder: forgotten(study, encoder) for encoder in by_method(study, base)}
    pairs = dict.fromkeys(pair for found in known.values() for pair in found)
    rows = [
        [
            f"{tuned_on} → {task}",
            *(signed(found[tuned_on, task], 1) if (tuned_on, task) in found else MISSING for found in known.values()),
        ]
        for tuned_on, task in pairs
    ]
    return grid(["fine-tuned on → measured on", *map(with_method, known)], rows)


def task_mean(study: Study, measure: str, encoder: str, layer: int | None = None) -> float | None:
    """A measure after fine-tuning: the mean over tasks of the means over seeds, so that all tasks count the same.

    None if a task lacks it. At layer 0 a task can lack it, because all `[CLS]` are the same there.
    """
    means = [task_value(study, measure, encoder, task, layer) for task in study.tasks]
    known = [mean for mean in means if mean is not None]
    return mean_or_none(known) if layer == 0 or len(known) == len(means) else None


def task_value(
    study: Study, measure: str, encoder: str, task: str, layer: int | None = None, *, tuned_on: str = ""
) -> float | None:
    """A measure on a task after fine-tuning on it, or on another task (tuned_on), mean over seeds."""
    runs = runs_of(study.results, encoder, task, tuned_on)
    return mean_of([study.results.after(measure, run, layer=layer) for run in runs])


def others_mean(study: Study, measure: str, encoder: str) -> float | None:
    """A measure on a task after fine-tuning on another: the mean over all two tasks of the means over seeds."""
    pairs = [(task, tuned_on) for task in study.tasks for tuned_on in study.tasks if task != tuned_on]
    means = [task_value(study, measure, encoder, task, tuned_on=tuned_on) for task, tuned_on in pairs]
    known = [mean for mean in means if mean is not None]
    return mean_or_none(known) if len(known) == len(means) else None


def seed_means(study: Study, measure: str, encoder: str) -> list[float]:
    """A measure after fine-tuning, mean over tasks, for each seed that has all tasks."""
    by_seed = defaultdict(list)
    for task in study.tasks:
        for run in runs_of(study.results, encoder, task):
            if found := study.results.after(measure, run):
                by_seed[run.seed].append(found.value)
    return [statistics.fmean(values) for values in by_seed.values() if len(values) == len(study.tasks)]


def seeds_of(study: Study, encoders: Sequence[str]) -> str:
    """How many seeds each encoder has on each task: 'three', or 'two to three' if they differ."""
    counts = [len(study.ends("accuracy", [encoder], [task])) for encoder in encoders for task in study.tasks]
    low, high = in_words(min(counts)), in_words(max(counts))
    return low if low == high else f"{low} to {high}"


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


def shown(value: float | None, digits: int, scale: float = 1) -> str:
    """A value that may be missing."""
    return MISSING if value is None else fixed(scale * value, digits)


def mean_or_none(numbers: Iterable[float]) -> float | None:
    """The mean of some numbers; None if there are none."""
    known = list(numbers)
    return statistics.fmean(known) if known else None

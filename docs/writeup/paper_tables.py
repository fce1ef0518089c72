"""The tables of the write-up that compare with the paper, in Markdown; most have a row for each encoder."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from closerlook.report.before_after import runs_of
from closerlook.report.published import paper_name, published_cross_rows, published_row
from closerlook.report.tables import MISSING, Column, show_plain
from closerlook.study.runs import Pair
from closerlook.study.verdicts import count
from writeup.phrases import fixed, listed, percent, short, signed, span
from writeup.records import Change
from writeup.values import Study


def grid(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table in Markdown; left: how many columns hold text. Arrows have no spaces, so that tables are narrow."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * left + "--:|" * (len(head) - left)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |".replace(" → ", "→") for row in rows)])


def by_task(study: Study, cell: Callable[[str, str], str], encoders: Iterable[str] = ()) -> str:
    """A table with a row for each encoder and a column for each task."""
    rows = [[short(one), *(cell(one, task) for task in study.tasks)] for one in encoders or study.encoders]
    return grid(["encoder", *study.tasks], rows)


# ---- what was run ----


def encoders_table(study: Study, recorded: dict[str, Any]) -> str:
    """The encoders with their size, their pretraining and the number of fine-tuning seeds."""
    rows = []
    for encoder in study.encoders:
        facts, name = study.facts("encoders", encoder), paper_name(encoder)
        seen, published = recorded["pretraining"].get(name), recorded["paper_parameters"].get(name)
        rows.append(
            [
                *(short(encoder), f"{facts['layers']} × {facts['width']}", fixed(facts["parameters"] / 1e6, 1)),
                MISSING if published is None else fixed(published, 1),
                *((MISSING, MISSING) if seen is None else (fixed(seen["tokens"]), fixed(seen["loss"]))),
                listed(study.seeds_in_all(encoder), "or"),
            ]
        )
    head = [
        "encoder",
        "layers × width",
        "million parameters",
        "million parameters, paper",
        "word pieces seen, billions",
        "held-out loss",
    ]
    return grid([*head, "seeds"], rows)


def tasks_table(study: Study) -> str:
    """The tasks with their labels, examples and updates."""
    rows = []
    for task in study.tasks:
        facts, first = study.facts("tasks", task), study.encoders[0]
        distances = study.results.label_values("minimum_distance", Pair(first, task, task))
        spaces = study.results.of("n_clusters")
        ends = spaces[(spaces["tuned_on"] == task) & (spaces["task"] == task) & spaces["is_final"]]
        examples = [fixed(facts["examples"][split], 0) for split in ("train", study.results.test_split)]
        rows.append([task, str(len(facts["labels"])), str(len(distances)), *examples, span(ends["step"], 0)])
    return grid(["task", "labels", "of these with distances", "train examples", "test examples", "updates"], rows)


# ---- verdicts ----


def verdict_table(study: Study) -> str:
    """The verdict on each finding, and the pairs for, against and within noise: all, and of each encoder."""
    rows = []
    for finding in study.findings:
        cells = []
        for encoders in (study.encoders, study.berts, *([one] for one in study.encoders)):
            answers = study.answers(finding.number, encoders=encoders)
            known = [count(answers, support) for support in ("for", "against", "within noise")]
            cells.append(" : ".join(map(str, known)) if any(known) else MISSING)
        rows.append([str(finding.number), finding.verdict, *cells])
    return grid(["finding", "verdict", "all", "BERTs", *map(short, study.encoders)], rows, left=2)


def effect_table(study: Study) -> str:
    """The five findings with their verdict, the number of pairs, and the median change over pairs."""
    rows = []
    for finding in study.findings:
        known = finding.n_for + finding.n_against + finding.n_within_noise
        p = show_plain(finding.p_value, Column("", digits=4, p_value=True))
        counts = (finding.n_for, finding.n_against, finding.n_within_noise)
        shown = MISSING if finding.effect is None else str(finding.effect)
        rows.append(
            [f"{finding.number} {finding.title}", f"**{finding.verdict}**", *map(str, counts), str(known), shown, p]
        )
    head = ["finding", "verdict", "for", "against", "within noise", "pairs with an answer", "median change", "p"]
    return grid(head, rows, left=2)


# ---- before and after, with published values ----


def accuracy_table(study: Study) -> str:
    """Accuracy in % before → after fine-tuning; published values in brackets."""
    return by_task(
        study, lambda encoder, task: _with_paper(study, "accuracy", "accuracy", (encoder, task), digits=1, scale=100)
    )


def similarity_table(study: Study) -> str:
    """Train–test similarity before → after fine-tuning; published values in brackets; ° if not separable."""
    measure, column = f"similarity_{study.results.train_test}", "train_test_spatial_similarity"
    flags = f"similarity_both_separable_{study.results.train_test}"

    def cell(encoder: str, task: str) -> str:
        separable = study.pairs(flags, [encoder], [task])
        marks = (
            ["" if one == 1 else "°" for one in (separable[0].before, separable[0].after)] if separable else ["", ""]
        )
        return _with_paper(study, measure, column, (encoder, task), digits=2, marks=marks)

    return by_task(study, cell)


def _with_paper(
    study: Study,
    measure: str,
    column: str,
    pair: tuple[str, str],
    *,
    digits: int,
    scale: float = 1.0,
    marks: Sequence[str] = ("", ""),
) -> str:
    """One cell: '90.8 → 91.2 (90.8 → 91.7)', the second pair published."""
    changes = study.pairs(measure, pair[:1], pair[1:])
    if not changes:
        return MISSING
    ours = [
        fixed(scale * one, digits) + mark
        for one, mark in zip((changes[0].before, changes[0].after), marks, strict=True)
    ]
    rows = [published_row(*pair, state) for state in ("original", "fine-tuned")]
    paper = [fixed(float(row[column]), digits) if row and row[column] else MISSING for row in rows]
    return " → ".join(ours) + (f" ({' → '.join(paper)})" if set(paper) != {MISSING} else "")


def clusters_table(study: Study) -> str:
    """Clusters before → after fine-tuning; published counts in brackets; * if all spaces are linearly separable."""

    def cell(encoder: str, task: str) -> str:
        ours, separable = (study.pairs(name, [encoder], [task]) for name in ("n_clusters", "is_separable"))
        if not ours:
            return MISSING
        values = zip((ours[0].before, ours[0].after), (separable[0].before, separable[0].after), strict=True)
        shown = [
            fixed(value, 0 if value == round(value) else 1) + ("\\*" if flag == 1 else "") for value, flag in values
        ]
        rows = [published_row(encoder, task, state) for state in ("original", "fine-tuned")]
        paper = [
            f"{int(row['clusters']):,}" + ("\\*" if row["linearly_separable"] == "true" else "") for row in rows if row
        ]
        return " → ".join(shown) + (f" ({' → '.join(paper)})" if paper else "")

    return by_task(study, cell)


def released_table(study: Study, recorded: dict[str, Any]) -> str:
    """Pretrained spaces with a larger published cluster count: that count, ours, and ours with the limit."""
    rows = []
    for one in larger_counts(study):
        with_limit = released_count(study, recorded, one.encoder, one.task)
        points = study.before("n_points", one.encoder, one.task)
        numbers = [points, study.fewest_clusters(one.task), one.paper, one.ours]
        shown = MISSING if with_limit is None else fixed(with_limit, 0)
        rows.append([f"{short(one.encoder)} {one.task}", *(fixed(number, 0) for number in numbers), shown])
    heads = ("encoder and task", "points", "lowest possible", "paper", "here")
    return grid([*heads, "here, with the limit (`attempts: released`)"], rows)


def larger_counts(study: Study) -> list[Any]:
    """The pretrained spaces with more clusters in the paper than here."""
    return [one for one in study.compared("clusters", "n_clusters", "before") if one.paper > one.ours]


def released_count(study: Study, recorded: dict[str, Any], encoder: str, task: str) -> float | None:
    """The clusters of a pretrained space with the limit on attempts: from the table, otherwise as recorded."""
    found = study.results.before("clusters_released", encoder, task)
    return found.value if found is not None else recorded["released_counts"].get(paper_name(encoder), {}).get(task)


def released_code_table(recorded: dict[str, Any]) -> str:
    """Clusters by both versions of the paper's code and by both settings of this tool, on the same points."""
    rows = [
        [
            *(one["space"], f"{one['points']}, {one['dimensions']}, {one['labels']}"),
            *map(str, (one["limited"], one["limited"], one["repaired"], one["repaired"])),
        ]
        for one in recorded["released_code"]["spaces"]
    ]
    head = ["space", "points, dimensions, labels", "df9fb27 (with the limit)", '`attempts="released"`']
    return grid([*head, "16de31e (repaired)", "default"], rows, left=2)


def noise_table(recorded: dict[str, Any]) -> str:
    """Clusters of bert-tiny with noise on the points, by default and with the limit."""
    tasks = [task for task in recorded["noise"][0] if task != "noise"]
    head = [f"{task}: {setting}" for task in tasks for setting in ("default", "with the limit")]
    rows = [
        [
            f"{one['noise']:g}",
            *(MISSING if task not in one else f"{n:,}" for task in tasks for n in one.get(task, (0, 0))),
        ]
        for one in recorded["noise"]
    ]
    return grid(["noise in RMS radii", *head], rows, left=0)


# ---- other tasks ----


def cross_table(study: Study, task: str) -> str:
    """Table 5 for every encoder, a column for each fine-tuning task; the published rows first."""
    published = {row["fine_tuned_on"]: row for row in published_cross_rows() if row["probed_on"] == task}
    tuned = [one for one in published if one]
    rows = [["bert-base, paper", *(_published_cross(published, one) for one in tuned)]] if published else []
    rows += [[short(encoder), *(_cross_cell(study, encoder, one, task) for one in tuned)] for encoder in study.encoders]
    return grid(["encoder", *(f"fine-tuned on {one}" for one in tuned)], rows)


def _published_cross(published: dict[str, dict[str, str]], tuned_on: str) -> str:
    row = published[tuned_on]
    points = float(row["accuracy"]) - float(published[""]["accuracy"])
    change = signed(float(row["mean_min_distance_change"]))
    return f"{row['labels_increased']} : {row['labels_decreased']}, {change}, {signed(points, 1)}"


def _cross_cell(study: Study, encoder: str, tuned_on: str, task: str) -> str:
    """Labels that move farther : closer, mean change of distance, change of accuracy in points."""
    names = ("mean_minimum_distance", "accuracy")
    distance, accuracy = (study.crossed(name, tuned_on, task, [encoder]) for name in names)
    moved = study.moved(tuned_on, task, [encoder])
    if not (moved and distance and accuracy):
        return MISSING
    means = (statistics.fmean(getattr(one, name) for one in moved) for name in ("farther", "closer"))
    farther, closer = (fixed(n, 0 if n.is_integer() else 1) for n in means)
    return f"{farther} : {closer}, {signed(distance[0].change)}, {signed(accuracy[0].points, 1)}"


# ---- figures in numbers ----


def layer_table(study: Study) -> str:
    """The similarity to the pretrained encoder after fine-tuning: mean of the lower half of the layers → last layer."""
    changes = study.layer_changes()

    def cell(encoder: str, task: str) -> str:
        known = [one.before for one in changes if (one.encoder, one.task) == (encoder, task)]
        if not known:
            return MISSING
        return f"{fixed(statistics.fmean(known))} → {fixed(study.after('similarity_original', encoder, task))}"

    return by_task(study, cell)


def shift_table(study: Study) -> str:
    """The shifts of the centroids at the first and the last layer above the embeddings, means over tasks and seeds.

    Tasks of whole sentences are left out: at the first layers their vectors are nearly equal, and so is the RMS radius.
    """
    rows = []
    for encoder in study.encoders:
        layers = first_and_last(study, encoder)
        ends = [found for layer in layers if (found := shifts(study, encoder, layer)) is not None]
        if len(ends) < 2:
            continue
        length, share, side = zip(*ends, strict=True)
        rows.append(
            [
                *(short(encoder), f"{layers[0]}, {layers[1]}", ", ".join(map(fixed, length))),
                *(", ".join(map(fixed, share)), ", ".join(map(percent, side))),
            ]
        )
    head = ["encoder", "layers", "length in RMS radii", "share of two components", "labels on one side"]
    return grid(head, rows, left=2)


def first_and_last(study: Study, encoder: str) -> tuple[int, int]:
    """The first and the last measured layer above the embeddings."""
    layers = [layer for layer in study.results.layers[encoder] if layer > 0]
    return layers[0], layers[-1]


def shifts(study: Study, encoder: str, layer: int) -> tuple[float, float, float] | None:
    """Centroid shifts at a layer: length in RMS radii, share of two components, share of labels on one side.

    None if the encoder has no shifts there.
    """
    length, share, side = [], [], []
    for run in study.results.runs(own=True):
        if run.encoder != encoder or study.facts("tasks", run.task)["unit"] == "sentence":
            continue
        found = {name: _of_run(study, name, run, layer) for name in ("shift_length", "shift_x")}
        radius = study.results.before("rms_radius", encoder, run.task, layer=layer)
        if not found["shift_length"] or radius is None or not radius.value:
            continue
        length.append(statistics.fmean(found["shift_length"]) / radius.value)
        parts = [_of_run(study, f"shift_explained_variance_{axis}", run, layer) for axis in "xy"]
        share.append(sum(part[0] for part in parts))
        positive = sum(x > 0 for x in found["shift_x"])
        side.append(max(positive, len(found["shift_x"]) - positive) / len(found["shift_x"]))
    return (statistics.fmean(length), statistics.fmean(share), statistics.fmean(side)) if length else None


def _of_run(study: Study, measure: str, run: Any, layer: int) -> list[float]:
    rows = study.results.at(measure, run.encoder, run.task, layer=layer)
    chosen = (rows["tuned_on"].to_numpy() == run.tuned_on) & (rows["seed"].to_numpy() == run.seed)
    return [float(value) for value in rows["value"].to_numpy()[chosen] if not math.isnan(value)]


def distance_table(study: Study) -> str:
    """The mean distance of a label to the nearest other label, in RMS radii, before → after fine-tuning."""
    measure = "mean_relative_minimum_distance"
    return by_task(study, lambda encoder, task: arrow(study, measure, encoder, task, digits=3))


def arrow(study: Study, measure: str, encoder: str, task: str, *, digits: int, scale: float = 1.0) -> str:
    """A measure of an encoder on a task: '0.72 → 0.79', before and after fine-tuning."""
    changes = study.pairs(measure, [encoder], [task])
    if not changes:
        return MISSING
    return " → ".join(fixed(scale * one, digits) for one in (changes[0].before, changes[0].after))


def extreme_labels_table(study: Study, tasks: Sequence[str], encoders: Iterable[str] = (), n: int = 3) -> str:
    """The labels whose minimum distance rises most and least."""
    rows = []
    for encoder in encoders or study.encoders:
        for task in tasks:
            changes = label_changes(study, Pair(encoder, task, task))
            order = sorted(changes, key=lambda label: changes[label].change)
            if order:
                ends = (order[: -n - 1 : -1], order[:n])
                rows.append([short(encoder), task, *(_shown(changes, labels) for labels in ends)])
    return grid(["encoder", "task", "most", "least"], rows, left=4)


def _shown(changes: dict[str, Change], labels: Iterable[str]) -> str:
    return ", ".join(f"{label} {fixed(changes[label].before)} → {fixed(changes[label].after)}" for label in labels)


def label_changes(study: Study, pair: Pair) -> dict[str, Change]:
    """The distance of each label to the nearest other label, before and after fine-tuning (mean over seeds)."""
    start = study.results.label_values("minimum_distance", pair)
    runs = runs_of(study.results, pair.encoder, pair.task)
    ends = [study.results.label_values("minimum_distance", pair, run.seed) for run in runs]
    names = (pair.encoder, pair.task, pair.tuned_on)
    return {
        label: Change(*names, first.value, statistics.fmean(end[label].value for end in ends))
        for label, first in start.items()
        if ends and all(label in end for end in ends)
    }

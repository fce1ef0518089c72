"""The tables of a study: what it is at a glance, and what stands behind each finding."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from closerlook.report.ends import Ends, beside_chance, chances, ends, mean_of, tuned
from closerlook.report.tables import (
    MISSING,
    Column,
    Measured,
    Remark,
    Table,
    Value,
    difference,
    over_seeds,
    show_number,
)
from closerlook.study.findings import SIGNIFICANCE, Finding, loses_accuracy, moved_labels, relation, similarity_by_layer
from closerlook.study.readings import Results, Run


def findings_table(findings: list[Finding]) -> Table:
    """The five findings with their verdicts."""
    columns = (
        *(Column("", digits=0), Column("finding", left=True), Column("verdict", left=True)),
        *(Column("for"), Column("against"), Column("in words", left=True)),
    )
    rows = [(one.number, one.title, one.verdict, one.speaks_for, one.speaks_against, one.sentence) for one in findings]
    return Table("findings", "The five findings", "", columns, tuple(rows))


# ---- at a glance ----

GLANCE = (
    ("accuracy", "accuracy, %", 100.0, 1),
    ("similarity", "train–test similarity", 1.0, 2),
    ("n_clusters", "clusters", 1.0, 0),
    ("mean_minimum_distance", "mean minimum distance", 1.0, 2),
    ("mean_relative_minimum_distance", "minimum distance in RMS radii", 1.0, 3),
)


def summary_table(results: Results) -> Table:
    """Encoder × task, each measure before → after, at the last layer."""
    pairs = set(results.pairs())
    rows: list[tuple[Value, ...]] = []
    for encoder in results.encoders:
        for measure, title, scale, digits in GLANCE:
            cells = [
                _arrow(results, measure, encoder, task, scale=scale, digits=digits)
                if (encoder, task) in pairs
                else None
                for task in results.tasks
            ]
            if any(cells):
                rows.append((encoder, title, *cells))
            null = [_chance_arrow(results, measure, encoder, task, digits) for task in results.tasks]
            if any(null):
                rows.append((encoder, f"{title.removeprefix('mean ').removeprefix('train–test ')} by chance", *null))
    columns = (Column("encoder", left=True), Column("measure", left=True), *(Column(task) for task in results.tasks))
    by_chance = any("by chance" in str(row[1]) for row in rows)
    note = f"{SUMMARY_NOTE} {chance_note(results)}" if by_chance else SUMMARY_NOTE
    return Table("summary", "Before → after fine-tuning", note, columns, tuple(rows))


SUMMARY_NOTE = (
    "Each encoder on each task, at its last layer: as it came → at the end of fine-tuning on that task, the mean over "
    "seeds. Clusters with the number of labels in brackets; * marks a space that is linearly separable."
)


def _arrow(results: Results, measure: str, encoder: str, task: str, *, scale: float, digits: int) -> str | None:
    before, after = ends(results, named(results, measure), encoder, task, scale)
    if before is None and after is None:
        return None
    column = Column("", digits=digits)
    linear = ends(results, "is_separable", encoder, task) if measure == "n_clusters" else (None, None)
    stars = ["*" if one is not None and one.value == 1 else "" for one in linear]
    labels = results.before("n_labels", encoder, task) if measure == "n_clusters" else None
    shown = [_plain(one, column) + star for one, star in zip((before, after), stars, strict=True)]
    text = shown[0] if after is None else " → ".join(shown)
    return text + (f" ({labels.value:.0f})" if labels else "")


def _chance_arrow(results: Results, measure: str, encoder: str, task: str, digits: int) -> str | None:
    """What chance gives before → after."""
    before, after = chances(results, named(results, measure), encoder, task)
    if before is None and after is None:
        return None
    shown = [_plain(one, Column("", digits=digits)) for one in (before, after)]
    return shown[0] if after is None else " → ".join(shown)


def named(results: Results, measure: str) -> str:
    """What a measure at a glance is called in the table."""
    return f"similarity_train_{results.compared}" if measure == "similarity" else measure


def chance_note(results: Results, *, similarity: bool = True, shuffled: bool = True) -> str:
    """What 'chance' means in a table; nothing where neither was measured."""
    told = []
    if similarity and len(results.of(f"similarity_null_mean_train_{results.compared}")):
        told.append("similarity with the labels of one of the two spaces permuted")
    points = thinned_points(results)
    if shuffled and points:
        most = f"on at most {points:,} points"
        told.append(f"clusters and their distances with labels shuffled, {most}; against: true labels of these points")
    return f"By chance: {'; '.join(told)}." if told else ""


def thinned_points(results: Results) -> int:
    """The most points that shuffled labels were tried on; 0 where they were not."""
    points = results.of("subsampled_clusters")["n"].dropna()
    return int(points.max()) if len(points) else 0


def _plain(one: Measured | None, column: Column) -> str:
    return MISSING if one is None else show_number(one.value, column)


# ---- finding 1 ----


def accuracy_table(results: Results) -> Table:
    """Accuracy and train–test similarity, before and after (Tables 2 and 7 of the paper)."""
    similarity = f"similarity_train_{results.compared}"
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        accuracy = ends(results, "accuracy", encoder, task, 100)
        alike = beside_chance(results, similarity, encoder, task)
        if not any((*accuracy, *alike)):
            continue
        n = results.before("accuracy", encoder, task)
        remark = _remark(results, encoder, task, alike)
        rows.append(
            (
                encoder,
                task,
                None if n is None else n.n,
                *accuracy,
                difference(*accuracy),
                *alike,
                difference(*alike),
                remark,
            )
        )
    columns = (
        *(Column("encoder", left=True), Column("task", left=True), Column("n")),
        *(
            Column("before", "accuracy, %"),
            Column("after", "accuracy, %"),
            Column("change", "accuracy, %", signed=True),
        ),
        *(Column("before", "similarity"), Column("after", "similarity"), Column("change", "similarity", signed=True)),
        Column("remark", left=True),
    )
    note = (
        f"Classifier probes trained on train, tested on the n examples of {results.compared}; the sizes are chosen on "
        "a held-out part of train. ±: standard deviation over the probes' seeds, or over fine-tunings where there are "
        "several. Similarity: Pearson correlation of the label distances of train and "
        f"{results.compared}, with its 95% bootstrap interval over labels. {chance_note(results, shuffled=False)}"
    ).rstrip()
    return Table("accuracy", "Accuracy and train–test similarity", note, columns, tuple(rows)).without_empty()


def _remark(results: Results, encoder: str, task: str, alike: Ends) -> Remark:
    """What is special about an encoder on a task; an exception from finding 1 is marked."""
    remarks = []
    runs = tuned(results, encoder, task)
    harmed = sum(loses_accuracy(results, run) for run in runs)
    if harmed:
        remarks.append("exception: accuracy is lost" + (f" in {harmed} of {len(runs)}" if len(runs) > 1 else ""))
    change = difference(*alike)
    if change is not None and change >= 0:
        remarks.append("exception: similarity does not fall")
    is_exception = bool(remarks)
    apart = [results.before(f"similarity_both_separable_train_{results.compared}", encoder, task)]
    apart += [results.after(f"similarity_both_separable_train_{results.compared}", run) for run in runs]
    if any(one is not None and one.value == 0 for one in apart):
        remarks.append("a space is not linearly separable")
    if not runs:
        remarks.append("not fine-tuned")
    return Remark("; ".join(remarks), is_exception)


# ---- finding 2 ----


def clusters_table(results: Results) -> Table:
    """Cluster counts, linearity and the best probe, before and after (Tables 3 and 7 of the paper)."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        counts, linear = (
            beside_chance(results, "n_clusters", encoder, task),
            ends(results, "is_separable", encoder, task),
        )
        if not any(counts):
            continue
        labels, points = (results.before(name, encoder, task) for name in ("n_labels", "n_points"))
        rows.append(
            (
                *(encoder, task),
                *(None if one is None else int(one.value) for one in (points, labels)),
                *(whole(one) for one in counts),
                *(_share(one) for one in linear),
                *best_sizes(results, encoder, task),
                "; ".join(_doubts(results, encoder, task)),
            )
        )
    columns = (
        *(Column("encoder", left=True), Column("task", left=True), Column("points"), Column("labels")),
        *(Column(title, "clusters", digits=1) for title in ("before", "after")),
        *(Column(title, "linearly separable", left=True) for title in ("before", "after")),
        *(Column(title, "best probe", left=True) for title in ("before", "after")),
        Column("remark", left=True),
    )
    note = (
        "DirectProbe clusters of train at the last layer: as many clusters as labels means linearly separable. Best "
        "probe: the sizes of the hidden layers that did best on the held-out part of train. "
        + chance_note(results, similarity=False)
    ).rstrip()
    return Table("clusters", "Clusters, linearity and the best probe", note, columns, tuple(rows)).without_empty()


def whole(one: Measured | None) -> Value:
    """A mean over seeds, without digits after the point where it has none and nothing is known of its spread."""
    if one is None or one.value != int(one.value) or one.sd or one.low is not None:
        return one
    return int(one.value) if one.chance is None else replace(one, value=int(one.value), sd=None)


def _share(one: Measured | None) -> Value:
    if one is None:
        return None
    return one.value == 1 if one.value in (0, 1) else f"{one.value:.0%} of seeds"


def best_sizes(results: Results, encoder: str, task: str) -> tuple[str | None, str | None]:
    """The chosen probe before, and after: each size chosen for some seed."""
    before = results.before("accuracy", encoder, task)
    after = [one for run in tuned(results, encoder, task) if (one := results.after("accuracy", run)) is not None]
    return before.text if before else None, ", ".join(dict.fromkeys(one.text for one in after)) or None


def _doubts(results: Results, encoder: str, task: str) -> list[str]:
    """What stands behind a cluster count that one should know."""
    found = []
    for measure, what in (("n_conflicts", "conflicts"), ("n_undecided", "undecided")):
        before, after = ends(results, measure, encoder, task)
        if (before and before.value) or (after and after.value):
            found.append(f"{what}: " + " → ".join(f"{one.value:.0f}" for one in (before, after) if one is not None))
    return found


# ---- finding 3 ----


def distance_table(results: Results) -> Table:
    """The mean distance of a label to the nearest other one, before and after, and how many labels moved apart."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        raw = beside_chance(results, "mean_minimum_distance", encoder, task)
        relative = ends(results, "mean_relative_minimum_distance", encoder, task)
        if not any(raw):
            continue
        rows.append(
            (
                encoder,
                task,
                *raw,
                difference(*raw),
                *relative,
                difference(*relative),
                *moved(results, tuned(results, encoder, task)),
                *_surely(results, tuned(results, encoder, task)),
            )
        )
    columns = (
        *(Column("encoder", left=True), Column("task", left=True)),
        *(Column(title, "mean minimum distance", signed=title == "change") for title in ("before", "after", "change")),
        *(Column(title, "in RMS radii", 3, signed=title == "change") for title in ("before", "after", "change")),
        *(Column(title, "labels") for title in ("farther", "closer")),
        *(Column(title, "labels, surely") for title in ("farther", "closer")),
    )
    note = (
        "The distance of a label's clusters to the nearest other label, the mean over labels, on train at the last "
        "layer, with its 95% interval over examples where that was measured. Raw distances grow with the length of the "
        f"vectors; RMS radii do not. {SURELY if len(results.of('n_labels_significantly_increased')) else ''} "
        + chance_note(results, similarity=False)
    ).strip()
    return Table("distances", "How far labels lie apart", note, columns, tuple(rows)).without_empty()


def moved(results: Results, runs: list[Run]) -> tuple[Value, Value]:
    """Labels that moved away from, and closer to, their nearest one; the mean over seeds."""
    counts = [found for run in runs if (found := moved_labels(results, run)) is not None]
    if not counts:
        return None, None
    mean = [sum(one[at] for one in counts) / len(counts) for at in (0, 1)]
    return _count(mean[0]), _count(mean[1])


SURELY = f"Surely: the change of a label has p ≤ {SIGNIFICANCE} after Holm's correction for all labels of its space."


def _surely(results: Results, runs: list[Run]) -> tuple[Value, Value]:
    """Labels that moved surely; the mean over seeds."""
    names = ("n_labels_significantly_increased", "n_labels_significantly_decreased")
    up, down = (mean_of([results.after(name, run) for run in runs]) for name in names)
    return _count(up), _count(down)


def _count(mean: float | None) -> Value:
    return mean if mean is None or not mean.is_integer() else int(mean)


# ---- finding 4 ----


def cross_table(results: Results) -> Table:
    """Fine-tuned on one task, looked at on another (Table 5 of the paper); the own task stands beside."""
    cross = results.runs(own=False)
    probed = list(dict.fromkeys((run.encoder, run.task) for run in cross))
    rows: list[tuple[Value, ...]] = []
    for encoder, task in probed:
        accuracy = ends(results, "accuracy", encoder, task, 100)[0]
        rows.append((encoder, task, "not fine-tuned", "", None, None, None, None, accuracy))
        tunings = [task, *dict.fromkeys(run.tuned_on for run in cross if (run.encoder, run.task) == (encoder, task))]
        for on in tunings:
            runs = tuned(results, encoder, task, on)
            if runs:
                kind = "own" if on == task else relation(results, on, task) or "other"
                rows.append((encoder, task, on, kind, *moved(results, runs), *_changes(results, runs)))
    columns = (
        *(Column(title, left=True) for title in ("encoder", "probed on", "fine-tuned on", "relation")),
        *(Column(title, "labels") for title in ("farther", "closer")),
        Column("mean", "change of minimum distance", signed=True),
        Column("in RMS radii", "change of minimum distance", 3, signed=True),
        Column("accuracy, %"),
    )
    note = (
        "Labels of the probed task whose distance to the nearest other label grows and shrinks, the mean change, and "
        "the accuracy of a classifier probe, at the last layer."
    )
    return Table("cross", "Fine-tuned on one task, probed on another", note, columns, tuple(rows)).without_empty()


def _changes(results: Results, runs: list[Run]) -> tuple[Value, Value, Value]:
    change = over_seeds([results.after("mean_minimum_distance_change", run) for run in runs])
    name = "mean_relative_minimum_distance"
    first = results.before(name, runs[0].encoder, runs[0].task)
    after = over_seeds([results.after(name, run) for run in runs])
    relative = None if first is None or after is None else after.value - first.value
    spread = [results.after("accuracy_sd", run) for run in runs]
    accuracy = over_seeds([results.after("accuracy", run) for run in runs], spread)
    return change, relative, accuracy and accuracy.scaled(100)


# ---- finding 5 ----


def layers_table(results: Results) -> Table:
    """How alike each layer is to the original at the end of fine-tuning."""
    depth = max((layers[-1] for layers in results.layers.values()), default=0)
    rows: list[tuple[Value, ...]] = []
    for (encoder, task), runs in groupby(results.runs(own=True), key=lambda run: (run.encoder, run.task)):
        found = [similarity_by_layer(results, run) for run in runs]
        values = [over_seeds([one.get(layer) for one in found]) for layer in range(depth + 1)]
        if any(values):
            rows.append((encoder, task, *values))
    layers = (Column(str(layer), "layer") for layer in range(depth + 1))
    columns = (Column("encoder", left=True), Column("task", left=True), *layers)
    note = (
        "Spatial similarity of train at the end of fine-tuning to train under the original encoder, by layer, with its "
        "95% bootstrap interval (one seed) or standard deviation (several)."
    )
    return Table("layers", "Similarity to the original, by layer", note, columns, tuple(rows))

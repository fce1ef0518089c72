"""The tables of the paper's findings: one summary, and the measurements behind each finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from closerlook.geometry.p_values import SIGNIFICANCE
from closerlook.report.before_after import (
    AFTER_ARROW,
    STATES,
    BeforeAfter,
    before_after,
    difference,
    is_subsampled,
    mean_of,
    nulls_of,
    over_seeds,
    runs_of,
    with_nulls,
)
from closerlook.report.measures import column_of, title_of
from closerlook.report.tables import Column, Remark, Table, Value, show_before_after, show_plain, text_columns
from closerlook.study.earlier_rules import raw_moved_labels
from closerlook.study.findings import accuracy_test, relation, similarity_by_layer
from closerlook.study.layers import last_layer
from closerlook.study.readings import Measurement, Results, Run, subsampled_name
from closerlook.study.registry import measure

# ---- summary ----

SUMMARY = (
    "accuracy",
    "similarity_train_test",
    "n_clusters",
    "mean_minimum_distance",
    "mean_relative_minimum_distance",
)
"""The measures of the summary."""


def summary_measures(results: Results) -> list[str]:
    """The names of the summary's measures in a study's table."""
    return [name.replace("train_test", results.train_test) for name in SUMMARY]


def summary_table(results: Results) -> Table:
    """Encoder × task, each measure before → after fine-tuning, at the last layer."""
    pairs = set(results.pairs())
    rows: list[tuple[Value, ...]] = []
    has_nulls = False
    for encoder in results.encoders:
        for name in summary_measures(results):
            cells = [
                _summary_cell(results, name, encoder, task) if (encoder, task) in pairs else None
                for task in results.tasks
            ]
            if any(cells):
                rows.append((encoder, title_of(name), *cells))
            nulls = _summary_nulls(results, name, encoder)
            has_nulls = has_nulls or bool(nulls)
            rows += nulls
    columns = (*text_columns("encoder", "measure"), *(Column(task, of="task") for task in results.tasks))
    values, title = (AFTER_ARROW, "Before → after fine-tuning") if results.all_runs else ("", "Main measures")
    note = f"Each encoder on each task, at the last layer{values}. {CLUSTERS_NOTE}"
    return Table("summary", title, f"{note} {null_note(results)}" if has_nulls else note, columns, tuple(rows))


CLUSTERS_NOTE = "Clusters: the number of labels is in brackets; * marks a linearly separable space."


def _summary_nulls(results: Results, name: str, encoder: str) -> list[tuple[Value, ...]]:
    """One row: the measure with shuffled labels; empty if there are no values with shuffled labels.

    If it was computed on a subsample, two rows: first with the true labels on the same subsample, then with shuffled
    labels.
    """

    def row(title: str, values: Callable[..., BeforeAfter], measured: str) -> tuple[Value, ...]:
        scale = measure(name).scale
        cells = [show_before_after(*values(results, measured, encoder, task, scale), column) for task in results.tasks]
        return (encoder, title, *cells)

    subsampled = any(is_subsampled(results, name, encoder, task) for task in results.tasks)
    shown_as = subsampled_name(name) if subsampled else name
    title, column = title_of(shown_as), column_of(shown_as)
    null = row(f"{title} (shuffled labels)", nulls_of, name)
    if not any(null[2:]):
        return []
    return [row(f"{title} (true labels)", before_after, subsampled_name(name)), null] if subsampled else [null]


def _summary_cell(results: Results, name: str, encoder: str, task: str) -> str | None:
    values = before_after(results, name, encoder, task, measure(name).scale)
    if name != "n_clusters" or not any(values):
        return show_before_after(*values, column_of(name))
    separable = before_after(results, "is_separable", encoder, task)
    labels = results.before("n_labels", encoder, task)
    shown = [
        show_plain(value, column_of(name)) + ("*" if flag is not None and flag.value == 1 else "")
        for value, flag in zip(values, separable, strict=True)
    ]
    return " → ".join(shown[: 2 if values[1] else 1]) + (f" ({labels.value:.0f})" if labels else "")


def null_note(results: Results, *, similarity: bool = True, shuffled: str = "clusters and distances") -> str:
    """What shuffled labels are in a table; empty if no null was computed.

    similarity: whether the table shows similarities. shuffled: what it shows that is computed with shuffled labels.
    """
    sentences = []
    if similarity and results.has(f"similarity_null_mean_{results.train_test}"):
        sentences.append("Shuffled labels for similarity: the label names of one of the two spaces are permuted.")
    points = subsample_size(results)
    if shuffled and points:
        sentences.append(f"Shuffled labels for {shuffled}: the labels are shuffled among the points.")
        if any(is_subsampled(results, "n_clusters", *pair) for pair in results.pairs()):
            sentences.append(
                f"These values are computed on a subsample of at most {points:,} points, in which rare labels may be "
                "missing. Compare them only with the true labels on the same subsample, not with the value of all "
                "points."
            )
    return " ".join(sentences)


def subsample_size(results: Results) -> int:
    """The largest number of points that clusters with shuffled labels were computed on; 0 if they were not."""
    sizes = results.of("subsampled_clusters")["n"].dropna()
    return int(sizes.max()) if len(sizes) else 0


# ---- finding 1 ----

ACCURACY_SPREAD = (
    "±: standard deviation over the seeds of the probes, or, if a task was fine-tuned with several seeds, over those "
    "seeds."
)
"""What ± means after an accuracy."""


def accuracy_table(results: Results) -> Table:
    """Accuracy and train–test similarity, before and after (Tables 2 and 7 of the paper)."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        accuracy = before_after(results, "accuracy", encoder, task, 100)
        similarity = with_nulls(results, f"similarity_{results.train_test}", encoder, task)
        if not any((*accuracy, *similarity)):
            continue
        start = results.before("accuracy", encoder, task)
        changes = (*accuracy, difference(*accuracy), *similarity, difference(*similarity))
        remark = _remark(results, encoder, task, similarity)
        rows.append((encoder, task, None if start is None else start.n, *changes, remark))
    columns = (
        *(*text_columns("encoder", "task"), Column("n")),
        *(*_before_after_change("accuracy, %"), *_before_after_change("similarity"), *text_columns("remark")),
    )
    note = (
        "Accuracy: the accuracy of a classifier probe that is trained on train and tested on the n examples of "
        f"{results.test_split}; its hidden layer sizes are chosen on a held-out part of train. {ACCURACY_SPREAD} "
        f"Similarity: Pearson correlation of the label distances of train and {results.test_split}, with its 95% "
        f"bootstrap interval over labels. {null_note(results, shuffled='')}"
    ).rstrip()
    return Table("accuracy", "Accuracy and train–test similarity, values", note, columns, tuple(rows)).without_empty()


def _before_after_change(group: str, digits: int = 2) -> tuple[Column, ...]:
    return (
        Column("before", group, digits),
        Column("after", group, digits),
        Column("change", group, digits, signed=True),
    )


def _remark(results: Results, encoder: str, task: str, similarity: BeforeAfter) -> Remark:
    """What is special about an encoder on a task; an exception to finding 1 is marked."""
    parts = []
    runs = runs_of(results, encoder, task)
    test = accuracy_test(results, runs[0].pair, runs) if runs else None
    if test is not None and test.is_harm:
        parts.append("exception: accuracy falls beyond its noise")
    change = difference(*similarity)
    if change is not None and change >= 0:
        parts.append("exception: similarity does not fall")
    is_exception = bool(parts)
    name = f"similarity_both_separable_{results.train_test}"
    separable = [results.before(name, encoder, task), *(results.after(name, run) for run in runs)]
    inseparable = [flag is not None and flag.value == 0 for flag in separable]
    if any(inseparable):
        when = [state for state, is_so in zip(STATES, (inseparable[0], any(inseparable[1:])), strict=True) if is_so]
        states = f" {' and '.join(when)} fine-tuning" if results.all_runs else ""
        parts.append(f"train or {results.test_split} is not linearly separable{states}")
    if results.all_runs and not runs:
        parts.append("not fine-tuned")
    return Remark("; ".join(parts), is_exception)


# ---- finding 2 ----


def clusters_table(results: Results) -> Table:
    """Cluster counts, linear separability and the best probe, before and after (Tables 3 and 7 of the paper)."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        counts = with_nulls(results, "n_clusters", encoder, task)
        separable = before_after(results, "is_separable", encoder, task)
        if not any(counts):
            continue
        sizes = (results.before(name, encoder, task) for name in ("n_points", "n_labels"))
        rows.append(
            (
                *(encoder, task),
                *(None if size is None else int(size.value) for size in sizes),
                *(as_integer(count) for count in counts),
                *(_yes_no_share(flag) for flag in separable),
                *best_sizes(results, encoder, task),
                "; ".join(_caveats(results, encoder, task)),
            )
        )
    columns = (
        *(*text_columns("encoder", "task"), Column("points"), Column("labels")),
        *(Column(title, "clusters", digits=1) for title in ("before", "after")),
        *(Column(title, "linearly separable", left=True) for title in ("before", "after")),
        *(Column(title, "best probe", left=True) for title in ("before", "after")),
        *text_columns("remark"),
    )
    note = (
        "DirectProbe clusters of train at the last layer; as many clusters as labels means linearly separable. Best "
        "probe: the hidden layer sizes with the highest accuracy on the held-out part of train. "
        + null_note(results, similarity=False, shuffled="clusters")
    ).rstrip()
    title = "Clusters, linear separability and best probe"
    return Table("clusters", title, note, columns, tuple(rows)).without_empty()


def as_integer(measurement: Measurement | None) -> Value:
    """A mean over seeds without decimals, if it is a whole number and has no spread."""
    if (
        measurement is None
        or measurement.value != int(measurement.value)
        or measurement.sd
        or measurement.low is not None
    ):
        return measurement
    whole = int(measurement.value)
    return whole if measurement.null_mean is None else replace(measurement, value=whole, sd=None)


def _yes_no_share(flag: Measurement | None) -> Value:
    if flag is None:
        return None
    return flag.value == 1 if flag.value in (0, 1) else f"{flag.value:.0%} of seeds"


def best_sizes(results: Results, encoder: str, task: str) -> tuple[str | None, str | None]:
    """The chosen probe size before and after fine-tuning; after: every size that was chosen with some seed."""
    before = results.before("accuracy", encoder, task)
    after = [results.after("accuracy", run) for run in runs_of(results, encoder, task)]
    sizes = dict.fromkeys(end.text for end in after if end is not None)
    return before.text if before else None, ", ".join(sizes) or None


def _caveats(results: Results, encoder: str, task: str) -> list[str]:
    """What a reader of a cluster count should know: points in conflict, and undecided pairs of clusters."""
    caveats = []
    for name, noun in (("n_conflicts", "conflicts"), ("n_undecided", "undecided")):
        counts = [count for count in before_after(results, name, encoder, task) if count is not None]
        if any(count.value for count in counts):
            caveats.append(f"{noun}: " + " → ".join(f"{count.value:.0f}" for count in counts))
    return caveats


def shows_undecided(results: Results) -> bool:
    """Whether a remark of the table of clusters counts undecided merges."""
    return any(caveat.startswith("undecided") for pair in results.pairs() for caveat in _caveats(results, *pair))


# ---- finding 3 ----


def distance_table(results: Results) -> Table:
    """The mean minimum distance before and after, and how many labels moved farther away or closer."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        raw = with_nulls(results, "mean_minimum_distance", encoder, task)
        relative = before_after(results, "mean_relative_minimum_distance", encoder, task)
        if not any(raw):
            continue
        runs = runs_of(results, encoder, task)
        counts = (*mean_moved(results, runs), *mean_significantly_moved(results, runs))
        rows.append((encoder, task, *raw, difference(*raw), *relative, difference(*relative), *counts))
    columns = (
        *text_columns("encoder", "task"),
        *(*_before_after_change("mean minimum distance"), *_before_after_change("in RMS radii", 3)),
        *(Column(title, "labels that move") for title in ("farther away", "closer")),
        *(Column(title, "labels that move significantly") for title in ("farther away", "closer")),
    )
    note = (
        "Minimum distance: the distance of a label to the nearest other label. Shown: the mean over labels on train "
        "at the last layer, with its 95% interval over examples, if that was measured. Distances grow with the norm "
        "of the vectors; distances in RMS radii (divided by the RMS radius of the space) do not. "
        + (f"{SIGNIFICANTLY} " if results.has("n_labels_significantly_increased") else "")
        + null_note(results, similarity=False, shuffled="distances")
    ).strip()
    return Table("distances", "Distance to the nearest other label", note, columns, tuple(rows)).without_empty()


SIGNIFICANTLY = (
    f"Significantly: p ≤ {SIGNIFICANCE} for the change of a label's distance, Holm-corrected for all labels of the "
    "task."
)


def mean_moved(results: Results, runs: Sequence[Run]) -> tuple[Value, Value]:
    """The number of labels that moved farther from, and closer to, their nearest label; mean over seeds."""
    counts = [moved for run in runs if (moved := raw_moved_labels(results, run)) is not None]
    if not counts:
        return None, None
    farther, closer, _ = (sum(column) / len(counts) for column in zip(*counts, strict=True))
    return _as_count(farther), _as_count(closer)


def mean_significantly_moved(results: Results, runs: Sequence[Run]) -> tuple[Value, Value]:
    """The number of labels that moved significantly farther and closer; mean over seeds."""
    names = ("n_labels_significantly_increased", "n_labels_significantly_decreased")
    farther, closer = (mean_of([results.after(name, run) for run in runs]) for name in names)
    return _as_count(farther), _as_count(closer)


def _as_count(mean: float | None) -> Value:
    return mean if mean is None or not mean.is_integer() else int(mean)


# ---- finding 4 ----


def cross_table(results: Results) -> Table:
    """Fine-tuned on one task, probed on another (Table 5 of the paper); with the task itself for comparison."""
    cross = results.runs(own=False)
    rows: list[tuple[Value, ...]] = []
    for encoder, task in dict.fromkeys((run.encoder, run.task) for run in cross):
        accuracy = before_after(results, "accuracy", encoder, task, 100)[0]
        rows.append((encoder, task, "not fine-tuned", "", None, None, None, None, accuracy))
        others = dict.fromkeys(run.tuned_on for run in cross if (run.encoder, run.task) == (encoder, task))
        for tuned_on in (task, *others):
            runs = runs_of(results, encoder, task, tuned_on)
            if runs:
                kind = "same task" if tuned_on == task else relation(results, tuned_on, task) or "other"
                counts = mean_moved(results, runs)
                rows.append((encoder, task, tuned_on, kind, *counts, *_cross_changes(results, runs)))
    group = "change of minimum distance"
    columns = (
        *text_columns("encoder", "probed on", "fine-tuned on", "relation"),
        *(Column(title, "labels that move") for title in ("farther away", "closer")),
        *(Column("mean", group, signed=True), Column("in RMS radii", group, 3, signed=True)),
        Column("accuracy, %"),
    )
    note = (
        "Number of labels of the probed task that move farther from or closer to the nearest other label, the mean "
        "change of that distance, and the test accuracy of a classifier probe, all at the last layer. "
        f"{ACCURACY_SPREAD}"
    )
    return Table("cross", "Fine-tuned on one task, probed on another", note, columns, tuple(rows)).without_empty()


def _cross_changes(results: Results, runs: list[Run]) -> tuple[Value, Value, Value]:
    change = over_seeds([results.after("mean_minimum_distance_change", run) for run in runs])
    name = "mean_relative_minimum_distance"
    before = results.before(name, runs[0].encoder, runs[0].task)
    relative = difference(before, over_seeds([results.after(name, run) for run in runs]))
    deviations = [results.after("accuracy_sd", run) for run in runs]
    accuracy = over_seeds([results.after("accuracy", run) for run in runs], deviations)
    return change, relative, accuracy and accuracy.scaled(100)


# ---- finding 5 ----


def layers_table(results: Results) -> Table:
    """The similarity of each layer to the pretrained encoder at the end of fine-tuning."""
    depth = max((last_layer(layers) for layers in results.layers.values()), default=0)
    rows: list[tuple[Value, ...]] = []
    for (encoder, task), runs in groupby(results.runs(own=True), key=lambda run: (run.encoder, run.task)):
        by_run = [similarity_by_layer(results, run) for run in runs]
        values = [over_seeds([layers.get(layer) for layers in by_run]) for layer in range(depth + 1)]
        if any(values):
            rows.append((encoder, task, *values))
    columns = (*text_columns("encoder", "task"), *(Column(str(layer), "layer") for layer in range(depth + 1)))
    note = (
        "Spatial similarity of each layer after fine-tuning to the same layer of the pretrained encoder, on train, "
        "with its 95% bootstrap interval; with several seeds, ± standard deviation. –: not defined, for example at "
        "layer 0 with [CLS], where all vectors are equal."
    )
    return Table(
        "layers", "Similarity to the pretrained encoder after fine-tuning, by layer", note, columns, tuple(rows)
    )

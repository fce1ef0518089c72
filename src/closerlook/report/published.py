"""The published numbers (Zhou & Srikumar, 2022, Tables 5 and 7), compared with the numbers of a study."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

from closerlook.report.before_after import before_after, over_seeds, runs_of
from closerlook.report.finding_tables import best_sizes, mean_moved
from closerlook.report.study_facts import weights_of
from closerlook.report.tables import Column, Table, Value, text_columns
from closerlook.study.readings import Measurement, Results

ENCODERS = {
    "bert_uncased_l-2_h-128_a-2": "bert-tiny",
    "bert_uncased_l-4_h-256_a-4": "bert-mini",
    "bert_uncased_l-4_h-512_a-8": "bert-small",
    "bert_uncased_l-8_h-512_a-8": "bert-medium",
    "bert_uncased_l-12_h-768_a-12": "bert-base",
    "bert-base-uncased": "bert-base",
}
"""The paper's encoders: Hugging Face id without owner -> name in the paper."""

STATES = ("original", "fine-tuned")
CROSS_ENCODER = "bert-base"
"""The encoder of the paper's Table 5."""

CLUSTER_COUNTS = {"n_clusters": "", "clusters_released": " (attempts: released)"}
"""The measures that count clusters, and what follows the titles of their columns."""


def paper_name(encoder: str) -> str:
    """The paper's name of an encoder; a name that is not in the paper is returned unchanged.

    >>> paper_name("google/bert_uncased_L-2_H-128_A-2"), paper_name("random:bert-tiny")
    ('bert-tiny', 'random:bert-tiny')
    """
    name = encoder.partition("@")[0].rpartition("/")[2].lower()
    return encoder if encoder.startswith("random:") else ENCODERS.get(name, name)


@cache
def _published_rows(name: str) -> tuple[dict[str, str], ...]:
    text = resources.files("closerlook.report").joinpath("paper", name).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def published_row(encoder: str, task: str, state: str) -> dict[str, str] | None:
    """The row of Table 7 for an encoder, a task and a state; None if the paper has none."""
    key = (paper_name(encoder), task, state)
    rows = _published_rows("table7_probing.csv")
    return next((row for row in rows if (row["encoder"], row["task"], row["state"]) == key), None)


def published_cross_rows() -> tuple[dict[str, str], ...]:
    """The rows of Table 5; fine_tuned_on is empty for the pretrained encoder."""
    return _published_rows("table5_cross_task.csv")


def _number(text: str) -> float | None:
    return float(text) if text else None


def weights_label(results: Results, encoder: str) -> str:
    """Which weights a study used for an encoder: the revision, or the fingerprint of the files."""
    revision = results.manifest_entry("encoders", encoder).get("revision")
    fingerprint = weights_of(results, encoder)[:8] or "unknown"
    return f"{encoder} ({f'revision {revision}, ' if revision else ''}weights {fingerprint})"


def published_accuracy(results: Results) -> Table:
    """Accuracy and similarity compared with Table 7."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task, state, row in _in_both(results):
        at = STATES.index(state)
        ours = before_after(results, "accuracy", encoder, task, 100)[at]
        similarity = before_after(results, f"similarity_{results.train_test}", encoder, task)[at]
        accuracy, sd = _number(row["accuracy"]), _number(row["accuracy_std"])
        published = None if accuracy is None else Measurement(accuracy, sd=sd)
        published_similarity = _number(row["train_test_spatial_similarity"])
        rows.append(
            (
                *(encoder, task, state, ours, published, _minus(ours, accuracy)),
                *(similarity, published_similarity, _minus(similarity, published_similarity)),
                weights_label(results, encoder),
            )
        )
    columns = (*_STATE_COLUMNS, *_ours_and_paper("accuracy, %"), *_ours_and_paper("similarity"), *_WEIGHTS)
    title = "Compared with the paper: accuracy and similarity"
    return Table("published-accuracy", title, NOTE, columns, tuple(rows))


def published_clusters(results: Results) -> Table:
    """Clusters, linear separability and best probe compared with Table 7.

    If the study also counted clusters with the limit on attempts of the released code, both counts are there.
    """
    counted = {measure: title for measure, title in CLUSTER_COUNTS.items() if not title or results.has(measure)}
    rows: list[tuple[Value, ...]] = []
    for encoder, task, state, row in _in_both(results):
        at = STATES.index(state)
        ours = [before_after(results, measure, encoder, task)[at] for measure in counted]
        published = int(row["clusters"])
        separable = before_after(results, "is_separable", encoder, task)[at]
        rows.append(
            (
                *(encoder, task, state),
                *(None if count is None else round(count.value) for count in ours),
                published,
                *(None if count is None else round(count.value - published) for count in ours),
                *(None if separable is None else separable.value == 1, row["linearly_separable"] == "true"),
                *(best_sizes(results, encoder, task)[at], f"{row['best_hidden_1']}×{row['best_hidden_2']}"),
                weights_label(results, encoder),
            )
        )
    columns = (
        *_STATE_COLUMNS,
        *(Column(f"ours{title}", "clusters") for title in counted.values()),
        Column("paper", "clusters"),
        *(Column(f"difference{title}", "clusters", signed=True) for title in counted.values()),
        *(Column(title, "linearly separable", left=True) for title in ("ours", "paper")),
        *(Column(title, "best probe", left=True) for title in ("ours", "paper")),
        *_WEIGHTS,
    )
    title = "Compared with the paper: clusters and best probe"
    note = NOTE + RELEASED_NOTE * (len(counted) > 1)
    return Table("published-clusters", title, note, columns, tuple(rows))


def published_cross(results: Results) -> Table:
    """The cross-task table compared with Table 5."""
    rows: list[tuple[Value, ...]] = []
    for encoder in results.encoders:
        for row in published_cross_rows() if paper_name(encoder) == CROSS_ENCODER else ():
            tuned_on, task = row["fine_tuned_on"], row["probed_on"]
            runs = runs_of(results, encoder, task, tuned_on) if tuned_on else []
            if task not in results.tasks or (tuned_on and not runs):
                continue
            change = over_seeds([results.after("mean_minimum_distance_change", run) for run in runs])
            farther, _ = mean_moved(results, runs)
            ends = [results.after("accuracy", run) for run in runs]
            accuracy = over_seeds(ends or [results.before("accuracy", encoder, task)])
            ours, published = accuracy and accuracy.scaled(100), _number(row["accuracy"])
            published_change = _number(row["mean_min_distance_change"])
            rows.append(
                (
                    *(encoder, task, tuned_on or "not fine-tuned", farther),
                    int(row["labels_increased"]) if row["labels_increased"] else None,
                    *(change, published_change, _minus(change, published_change)),
                    *(ours, published, _minus(ours, published), weights_label(results, encoder)),
                )
            )
    columns = (
        *text_columns("encoder", "probed on", "fine-tuned on"),
        *(Column(title, "labels that move farther away") for title in ("ours", "paper")),
        *(*_ours_and_paper("mean change of distance"), *_ours_and_paper("accuracy, %"), *_WEIGHTS),
    )
    return Table("published-cross", "Compared with the paper: other tasks", NOTE, columns, tuple(rows))


_STATE_COLUMNS = text_columns("encoder", "task", "state")
_WEIGHTS = text_columns("our weights")
NOTE = (
    "Paper: Zhou and Srikumar (2022), Tables 5 and 7, with their own fine-tuning of encoders of the same name. Ours: "
    "this study, with the weights in the last column. Difference: ours minus the paper's."
)
RELEASED_NOTE = (
    " Attempts: released: at most as many merges are tried as there are points, blocked ones included, as in the code "
    "of the paper until September 2022."
)


def _ours_and_paper(group: str) -> tuple[Column, ...]:
    return (Column("ours", group), Column("paper", group), Column("difference", group, signed=True))


def _in_both(results: Results) -> list[tuple[str, str, str, dict[str, str]]]:
    """Each encoder, task and state that both the paper and this study measured, with the paper's row."""
    return [
        (encoder, task, state, row)
        for encoder, task in results.pairs()
        for state in STATES
        if (row := published_row(encoder, task, state)) is not None
        and (state == "original" or runs_of(results, encoder, task))
    ]


def _minus(ours: Measurement | None, published: float | None) -> float | None:
    return None if ours is None or published is None else ours.value - published

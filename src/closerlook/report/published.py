"""The published numbers (Zhou & Srikumar, 2022, Tables 5 and 7), beside those of a study that has encoder and task."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

from closerlook.report.ends import ends, tuned
from closerlook.report.facts import weights_of
from closerlook.report.probing import best_sizes, moved
from closerlook.report.tables import Column, Measured, Table, Value, over_seeds
from closerlook.study.readings import Results

ENCODERS = {
    "bert_uncased_l-2_h-128_a-2": "bert-tiny",
    "bert_uncased_l-4_h-256_a-4": "bert-mini",
    "bert_uncased_l-4_h-512_a-8": "bert-small",
    "bert_uncased_l-8_h-512_a-8": "bert-medium",
    "bert_uncased_l-12_h-768_a-12": "bert-base",
    "bert-base-uncased": "bert-base",
}
"""Hub ids, without owner, of the paper's encoders."""

STATES = ("original", "fine-tuned")
CROSS_ENCODER = "bert-base"
"""The encoder of the paper's Table 5."""


def paper_name(encoder: str) -> str:
    """The paper's name of an encoder; any other name stays as it is.

    >>> paper_name("google/bert_uncased_L-2_H-128_A-2"), paper_name("random:bert-tiny")
    ('bert-tiny', 'random:bert-tiny')
    """
    name = encoder.partition("@")[0].rpartition("/")[2].lower()
    return encoder if encoder.startswith("random:") else ENCODERS.get(name, name)


@cache
def _lines(name: str) -> tuple[dict[str, str], ...]:
    text = resources.files("closerlook.report").joinpath("paper", name).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def probing_line(encoder: str, task: str, state: str) -> dict[str, str] | None:
    """The line of Table 7 for an encoder, a task and a state."""
    wanted = (paper_name(encoder), task, state)
    return next(
        (one for one in _lines("table7_probing.csv") if (one["encoder"], one["task"], one["state"]) == wanted), None
    )


def _number(text: str) -> float | None:
    return float(text) if text else None


def named_weights(results: Results, encoder: str) -> str:
    """Which weights a study used under that name: the revision, or the fingerprint of the files."""
    revision = results.told("encoders", encoder).get("revision")
    mark = weights_of(results, encoder)[:8] or "unknown"
    return f"{encoder} ({f'revision {revision}, ' if revision else ''}weights {mark})"


def published_accuracy(results: Results) -> Table:
    """Accuracy and similarity beside Table 7."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task, state, line in _matches(results):
        at = STATES.index(state)
        ours = ends(results, "accuracy", encoder, task, 100)[at]
        alike = ends(results, f"similarity_train_{results.compared}", encoder, task)[at]
        theirs, sd = _number(line["accuracy"]), _number(line["accuracy_std"])
        published = None if theirs is None else Measured(theirs, sd)
        similar = _number(line["train_test_spatial_similarity"])
        rows.append(
            (
                *(encoder, task, state, ours, published, _minus(ours, theirs)),
                *(alike, similar, _minus(alike, similar), named_weights(results, encoder)),
            )
        )
    columns = (*_HEAD, *_three("accuracy, %"), *_three("similarity"), Column("our weights", left=True))
    return Table(
        "published-accuracy", "Beside the published values: accuracy and similarity", NOTE, columns, tuple(rows)
    )


def published_clusters(results: Results) -> Table:
    """Clusters, linearity and best probe beside Table 7."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task, state, line in _matches(results):
        at = STATES.index(state)
        ours, theirs = ends(results, "n_clusters", encoder, task)[at], int(line["clusters"])
        linear = ends(results, "is_separable", encoder, task)[at]
        rows.append(
            (
                *(encoder, task, state),
                *(
                    None if ours is None else round(ours.value),
                    theirs,
                    None if ours is None else round(ours.value - theirs),
                ),
                *(None if linear is None else linear.value == 1, line["linearly_separable"] == "true"),
                *(best_sizes(results, encoder, task)[at], f"{line['best_hidden_1']}×{line['best_hidden_2']}"),
                named_weights(results, encoder),
            )
        )
    two = ("ours", "paper")
    columns = (
        *_HEAD,
        *_three("clusters"),
        *(Column(title, "linearly separable", left=True) for title in two),
        *(Column(title, "best probe", left=True) for title in two),
        Column("our weights", left=True),
    )
    return Table(
        "published-clusters", "Beside the published values: clusters and best probe", NOTE, columns, tuple(rows)
    )


def published_cross(results: Results) -> Table:
    """The cross-task table beside Table 5."""
    rows: list[tuple[Value, ...]] = []
    for encoder in results.encoders:
        for line in _lines("table5_cross_task.csv") if paper_name(encoder) == CROSS_ENCODER else ():
            on, task = line["fine_tuned_on"], line["probed_on"]
            runs = tuned(results, encoder, task, on) if on else []
            if task not in results.tasks or (on and not runs):
                continue
            change = over_seeds([results.after("mean_minimum_distance_change", run) for run in runs])
            farther, _ = moved(results, runs)
            ends_there = [results.after("accuracy", run) for run in runs]
            accuracy = over_seeds(ends_there or [results.before("accuracy", encoder, task)])
            ours, theirs = accuracy and accuracy.scaled(100), _number(line["accuracy"])
            published = _number(line["mean_min_distance_change"])
            rows.append(
                (
                    *(encoder, task, on or "not fine-tuned", farther),
                    int(line["labels_increased"]) if line["labels_increased"] else None,
                    *(change, published, _minus(change, published), ours, theirs, _minus(ours, theirs)),
                    named_weights(results, encoder),
                )
            )
    columns = (
        *(Column(title, left=True) for title in ("encoder", "probed on", "fine-tuned on")),
        *(Column(title, "labels farther") for title in ("ours", "paper")),
        *(*_three("mean change of distance"), *_three("accuracy, %"), Column("our weights", left=True)),
    )
    return Table("published-cross", "Beside the published values: other tasks", NOTE, columns, tuple(rows))


_HEAD = (Column("encoder", left=True), Column("task", left=True), Column("state", left=True))
NOTE = (
    "Published: Zhou and Srikumar (2022), Tables 5 and 7, under their own fine-tuning of encoders of this name. Ours: "
    "this study, with the weights named. Difference: ours minus the paper's."
)


def _three(group: str) -> tuple[Column, ...]:
    return (Column("ours", group), Column("paper", group), Column("difference", group, signed=True))


def _matches(results: Results) -> list[tuple[str, str, str, dict[str, str]]]:
    """Each encoder, task and state that the paper has too, and that was measured here."""
    return [
        (encoder, task, state, line)
        for encoder, task in results.pairs()
        for state in STATES
        if (line := probing_line(encoder, task, state)) is not None
        and (state == "original" or tuned(results, encoder, task))
    ]


def _minus(ours: Measured | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else ours.value - theirs

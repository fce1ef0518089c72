"""What the numbers rest on: how many labels a similarity compares, and whether distances rise all the way."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from closerlook.report.before_after import STATES, before_after, mean_of, runs_of
from closerlook.report.tables import Column, Table, Value, count_of, text_columns
from closerlook.study.readings import Results
from closerlook.study.runs import Run

if TYPE_CHECKING:
    import pandas as pd

DETOUR = 0.1
"""A label's distance falls on the way up if it falls by more than this share of its range between two snapshots."""


AT_MIN_POINTS, AT_TAU = "similarity_at_min_points", "clusters_at_tau"

POOLING = "pooling"


def sensitivity_table(results: Results) -> Table:
    """Similarities and clusters for each value of a setting that was tried, and the labels that similarities compare.

    If no other values were tried, each encoder and task has one row: that of the study's own settings.
    """
    rows: list[tuple[Value, ...]] = []
    tried = tried_values(results)
    for encoder, task in results.pairs():
        labels = results.before("n_labels", encoder, task)
        pool = own_pool(results, encoder, task)
        for value, view in tried.items():
            if (value.pool == pool) != (value.setting == POOLING):
                cells = _cells(view, encoder, task)
                if any(cell is not None for cell in cells):
                    rows.append((encoder, task, None if labels is None else int(labels.value), value.title, *cells))
    splits = f"train and {results.test_split}"
    groups = [f"{splits}, before" if results.all_runs else splits, f"{splits}, after", "pretrained and fine-tuned"]
    columns = (
        *(*text_columns("encoder", "task"), Column("labels of the task"), Column("setting", left=True)),
        *(column for group in groups for column in (Column("similarity", group), Column("labels", group, 1))),
        *(Column(state, "clusters", 1) for state in STATES),
    )
    pools = results.all_runs and any(value.setting == POOLING for value in tried)
    note = SENSITIVITY_NOTE + (" Other poolings are measured before fine-tuning only." if pools else "")
    return Table("sensitivity", "Other settings", note, columns, tuple(rows)).without_empty()


SENSITIVITY_NOTE = (
    "Last layer; with several seeds, means. A similarity compares the labels that have distances in both spaces "
    "(column labels): labels that occur in one space only are excluded, and so are labels all of whose clusters have "
    "fewer than min_points points; – if fewer than three labels are left. τ: the tolerance in RMS radii; convex hulls "
    "that are no farther from each other count as overlapping. “own” marks the settings of the study itself."
)


@dataclass(frozen=True)
class Tried:
    """A value of a setting that a study tried. setting: min_points, τ or pooling. pool: the pooling of the vectors."""

    setting: str
    value: str
    pool: str
    is_own: bool = False

    @property
    def title(self) -> str:
        """How the table calls it: 'min_points 6 (own)'."""
        return f"{self.setting} {self.value}".strip() + (" (own)" if self.is_own else "")


def tried_values(results: Results) -> dict[Tried, Results]:
    """The values of settings that a study tried, each with its rows under the names of the study's own measures.

    A study that tried none has one value for each pooling: its own.
    """
    names = {f"similarity_{name}": f"{AT_MIN_POINTS}_{name}" for name in (results.train_test, "original")}
    names["n_clusters"] = AT_TAU
    parts = {own: results.of(name) for own, name in names.items()}
    own_settings = results.manifest.get("plan", {}).get("geometry", {})
    found: dict[Tried, Results] = {}
    for setting, own_name, measure in (("min_points", "min_points", "similarity"), ("τ", "tau", "n_clusters")):
        of_setting = {own: rows for own, rows in parts.items() if own.startswith(measure)}
        own_value = own_settings.get(own_name)
        for text, pool in _distinct(of_setting, ["text", "pool"]):
            is_own = own_value is not None and float(text) == float(own_value)
            chosen = {own: rows[(rows.text == text) & (rows.pool == pool)] for own, rows in of_setting.items()}
            found[Tried(setting, text, pool, is_own)] = replace(results, by_measure=chosen, by_place={})
    for (pool,) in _distinct(parts, ["pool"]):
        chosen = {own: _own_rows(rows[rows.pool == pool], own, own_settings) for own, rows in parts.items()}
        found[Tried(POOLING, pool, pool)] = replace(results, by_measure=chosen, by_place={})
    if found:
        return found
    pools = _distinct({"n_clusters": results.of("n_clusters")}, ["pool"])
    least = str(own_settings.get("min_points", ""))
    return {Tried("min_points" if least else "settings", least, pool, is_own=True): results for (pool,) in pools}


def _own_rows(rows: pd.DataFrame, measure: str, settings: dict[str, Any]) -> pd.DataFrame:
    """The rows with the study's own setting; all rows if it is not known."""
    own = settings.get("tau" if measure == "n_clusters" else "min_points")
    return rows if own is None else rows[rows.text.astype(float) == float(own)]


def _distinct(parts: dict[str, pd.DataFrame], columns: list[str]) -> list[tuple[str, ...]]:
    """The combinations of values of some columns; numbers in ascending order."""
    known = {tuple(map(str, line)) for rows in parts.values() for line in rows[columns].drop_duplicates().to_numpy()}
    return sorted(known, key=lambda line: (float(line[0]) if columns[0] == "text" else 0.0, line))


def own_pool(results: Results, encoder: str, task: str) -> str:
    """The pooling with which the study measured an encoder on a task; empty in tables of earlier versions."""
    rows = results.at("n_clusters", encoder, task)
    return str(rows["pool"].iloc[0]) if len(rows) else ""


def _cells(results: Results, encoder: str, task: str) -> list[Value]:
    """Three similarities, each followed by the number of labels that it compares, and the clusters before and after."""
    train_test, runs = f"similarity_{results.train_test}", runs_of(results, encoder, task)
    before = [results.before(train_test, encoder, task)]
    after, original = ([results.after(name, run) for run in runs] for name in (train_test, "similarity_original"))
    cells: list[Value] = []
    for found in (before, after, original):
        counts = [entry.n for entry in found if entry is not None and entry.n is not None]
        cells += [mean_of(found), _whole(statistics.fmean(counts)) if counts else None]
    clusters = before_after(results, "n_clusters", encoder, task)
    return [*cells, *(None if entry is None else _whole(entry.value) for entry in clusters)]


def _whole(value: float) -> Value:
    return int(value) if value.is_integer() else value


def sensitivity_text(results: Results) -> str:
    """How much similarities and clusters differ between the values of each setting; empty if none were tried."""
    tried = tried_values(results)
    sentences = []
    for setting in dict.fromkeys(value.setting for value in tried):
        values = {value: view for value, view in tried.items() if value.setting == setting}
        shown = f"{WITH[setting]} {', '.join(dict.fromkeys(value.value for value in values))}, "
        similarities = _ranges(results, values, f"similarity_{results.train_test}")
        parts = [
            f"by {statistics.median(widths):.2f} {state} fine-tuning (median over {count_of(len(widths), 'pair')} of "
            f"encoder and task; at most {max(widths):.2f})"
            for state, widths in zip(STATES, similarities, strict=True)
            if widths
        ]
        if parts:
            compared = f"the similarity of train and {results.test_split} differs "
            sentences.append(f"{shown}{compared}{' and '.join(parts)}.")
        clusters = [width for widths in _ranges(results, values, "n_clusters") for width in widths]
        if clusters:
            differ = sum(width > 0 for width in clusters)
            most = f", by at most {max(clusters):.0f}" if differ else ""
            states = ", before and after fine-tuning" if results.all_runs else ""
            spaces = f"{count_of(len(clusters), 'space')} (pairs of encoder and task{states})"
            sentences.append(f"{shown}the number of clusters differs in {differ} of {spaces}{most}.")
    return " ".join(sentences)


WITH = {"min_points": "For min_points", "τ": "For a tolerance τ of", POOLING: "With the poolings", "settings": ""}


def _ranges(results: Results, values: dict[Tried, Results], measure: str) -> tuple[list[float], list[float]]:
    """For each encoder and task, the range of a measure over the values of a setting, before and after fine-tuning."""
    ranges: tuple[list[float], list[float]] = ([], [])
    for encoder, task in results.pairs():
        pool = own_pool(results, encoder, task)
        views = [view for value, view in values.items() if value.setting == POOLING or value.pool == pool]
        found = [before_after(view, measure, encoder, task) for view in views]
        for widths, state in zip(ranges, zip(*found, strict=True), strict=False):
            known = [entry.value for entry in state if entry is not None]
            if len(known) > 1:
                widths.append(max(known) - min(known))
    return ranges


def monotone_table(results: Results) -> Table:
    """How often a label's distance falls on the way up, for labels that end farther away."""
    rows: list[tuple[Value, ...]] = []
    for encoder in results.encoders:
        by_task = {task: detours(results, encoder, task) for task in results.tasks}
        known = {task: counts for task, counts in by_task.items() if counts[0]}
        if known:
            total = tuple(sum(column) for column in zip(*known.values(), strict=True))
            for task, (risen, fell) in [*known.items(), ("all tasks", (total[0], total[1]))]:
                rows.append((encoder, task, risen, fell, 100 * fell / risen))
    columns = (
        *text_columns("encoder", "task"),
        *(Column("labels that end farther away"), Column("that fall on the way"), Column("share, %", digits=0)),
    )
    note = (
        "Train, last layer, all seeds: labels whose distance to the nearest other label is larger after fine-tuning "
        f"than before, and how many of them fall between two snapshots by more than {DETOUR:.0%} of the range of their "
        "distances. The paper remarks that distances of some labels do not rise monotonically."
    )
    return Table("monotone", "Do distances rise all the way?", note, columns, tuple(rows))


def detours(results: Results, encoder: str, task: str) -> tuple[int, int]:
    """The number of labels, over all seeds, that end farther away, and of those that fall on the way."""
    risen = fell = 0
    for run in runs_of(results, encoder, task):
        for path in _paths(results, run):
            if len(path) > 2 and path[-1] > path[0]:
                risen += 1
                falls = (before - after for before, after in itertools.pairwise(path))
                fell += max(falls) > DETOUR * (max(path) - min(path))
    return risen, fell


def _paths(results: Results, run: Run) -> list[list[float]]:
    """The minimum distances of each label at all snapshots of a run."""
    rows = results.at("minimum_distance", run.encoder, run.task)
    rows = rows[(rows.tuned_on == run.tuned_on) & (rows.seed == run.seed) & rows.value.notna()].sort_values("step")
    return [values.tolist() for _, values in rows.groupby("label")["value"]]

"""The tidy table, read: which fine-tunings there are, and what a measure was before and after each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from closerlook.study.cells import PRETRAINED
from closerlook.study.runs import Run

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

TEXTS = ("study", "encoder", "tuned_on", "task", "split", "measure", "label", "other", "text", "cell", "weights")


@dataclass(frozen=True)
class Reading:
    """A measure at one place: its value with an interval, how many it is of, and what was written beside it."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    text: str = ""


@dataclass(frozen=True, eq=False)
class Results:
    """The table split by measure, and the names in the study's own order.

    layers: of each encoder. all_runs: the fine-tunings that reached their end. compared: the split beside train.
    places: rows by measure, then by encoder, task, layer and split; filled in when first asked for.
    """

    parts: dict[str, pd.DataFrame]
    nothing: pd.DataFrame
    manifest: dict[str, Any]
    encoders: tuple[str, ...]
    tasks: tuple[str, ...]
    layers: dict[str, tuple[int, ...]]
    all_runs: tuple[Run, ...]
    compared: str
    measurements: int
    name: str
    places: dict[str, dict[tuple[str, str, int, str], pd.DataFrame]] = field(default_factory=dict)

    def of(self, measure: str) -> pd.DataFrame:
        """The rows of a measure; none where it was not measured."""
        return self.parts.get(measure, self.nothing)

    def last_layer(self, encoder: str) -> int:
        """The highest layer that was measured."""
        return self.layers[encoder][-1]

    def at(self, measure: str, encoder: str, task: str, *, layer: int | None = None, split: str = "") -> pd.DataFrame:
        """The rows of a measure for an encoder and a task, at a layer (the last) and a split (train, or the tests')."""
        if measure not in self.places:
            groups = self.of(measure).groupby(["encoder", "task", "layer", "split"], sort=False)
            self.places[measure] = dict(iter(groups))
        wanted = split or (self.compared if measure in ON_TEST else "train")
        depth = self.last_layer(encoder) if layer is None else layer
        return self.places[measure].get((encoder, task, depth, wanted), self.nothing)

    def before(self, measure: str, encoder: str, task: str, **place: Any) -> Reading | None:
        """A measure of the encoder as it came; where that cell is missing, of a fine-tuning's step 0."""
        rows = self.at(measure, encoder, task, **place)
        frozen = rows["tuned_on"].to_numpy() == PRETRAINED
        return _first(rows, frozen if frozen.any() else rows["step"].to_numpy() == 0)

    def after(self, measure: str, run: Run, **place: Any) -> Reading | None:
        """A measure at the end of a fine-tuning."""
        rows = self.at(measure, run.encoder, run.task, **place)
        tuned, seed, last = (rows[name].to_numpy() for name in ("tuned_on", "seed", "is_final"))
        return _first(rows, (tuned == run.tuned_on) & (seed == run.seed) & last)

    def beside(self, measure: str, encoder: str, task: str, *, tuned: bool) -> list[Reading]:
        """A measure of two spaces of train at the last layer, one for each that the encoder was compared with.

        tuned: at the ends of its fine-tunings on that task, else as it came. Two encoders stand under the first alone,
        and count for both.
        """
        rows = self.of(measure)
        mine = (rows.encoder == encoder) & (rows.layer == self.last_layer(encoder))
        if measure.endswith("_encoder"):
            mine |= rows.other == encoder
        state = (rows.tuned_on == task) & rows["is_final"] if tuned else rows.tuned_on == PRETRAINED
        there = rows[mine & state & (rows.task == task) & (rows.split == "train")]
        return [_reading(there, at) for at in range(len(there)) if not math.isnan(there["value"].iloc[at])]

    def runs(self, *, own: bool) -> list[Run]:
        """The fine-tunings that reached their end, on their own tasks, or on others."""
        return [run for run in self.all_runs if run.own == own]

    def told(self, what: str, name: str) -> dict[str, Any]:
        """What the manifest says of an encoder or a task; there it may stand under its path or its own name."""
        entries: dict[str, dict[str, Any]] = self.manifest.get(what, {})
        found = (one for key, one in entries.items() if name in {key, one.get("name"), PurePath(key).stem})
        return entries.get(name) or next(found, {})

    def pairs(self) -> list[tuple[str, str]]:
        """Each encoder and task with anything measured, in the study's order."""
        there: set[tuple[str, str]] = set()
        for measure in ("n_clusters", "accuracy"):
            rows = self.of(measure)
            there |= {(str(e), str(t)) for e, t in rows[["encoder", "task"]].drop_duplicates().to_numpy()}
        return [(encoder, task) for encoder in self.encoders for task in self.tasks if (encoder, task) in there]


ON_TEST = {
    *("accuracy", "accuracy_sd", "macro_f1", "majority_accuracy", "label_accuracy", "n_unseen_labels"),
    "head_accuracy",
}
"""Measures that stand at the split they were tested on."""

AT_LAYERS = [
    "n_clusters",
    "accuracy",
    "similarity_original",
    "participation_ratio",
    "separable_pairs_n_over_2d",
    "similarity_halves",
]
"""One of each kind of measure that says which layers of which encoders were looked at."""

SUBSAMPLED = {"n_clusters": "subsampled_clusters", "mean_minimum_distance": "subsampled_mean_minimum_distance"}
"""Measures that are taken again on fewer points, with true and with shuffled labels."""


def null_names(measure: str) -> tuple[str, str]:
    """Under which names the mean and the deviation of a measure by chance stand.

    >>> null_names("similarity_train_test"), null_names("n_clusters")[0]
    (('similarity_null_mean_train_test', 'similarity_null_sd_train_test'), 'subsampled_clusters_null_mean')
    """
    kind, _, what = measure.partition("_")
    if kind == "similarity":
        return f"similarity_null_mean_{what}", f"similarity_null_sd_{what}"
    name = SUBSAMPLED.get(measure, measure)
    return f"{name}_null_mean", f"{name}_null_sd"


def index_results(table: pd.DataFrame, manifest: dict[str, Any] | None = None) -> Results:
    """The table of a study, ready to be read."""
    import pandas as pd

    told = manifest or {}
    table = table.assign(**{name: table[name].astype(object).where(table[name].notna(), "") for name in TEXTS})
    parts: dict[str, pd.DataFrame] = {str(name): part for name, part in table.groupby("measure", sort=False)}
    measured = table[table.measure.isin(AT_LAYERS)]
    layers = measured_layers(table)
    splits = [str(split) for split in pd.unique(table.split) if split not in {"", "train"}]
    encoders = _ordered(table.encoder, _named(told.get("encoders", {})), layers)
    tasks = _ordered(pd.concat([table.task, table.tuned_on]), _named(told.get("tasks", {})))
    return Results(
        parts=parts,
        nothing=table.iloc[:0],
        manifest=told,
        encoders=encoders,
        tasks=tasks,
        layers=layers,
        all_runs=_runs(measured, encoders, tasks),
        compared="test" if "test" in splits or not splits else splits[0],
        measurements=len(table),
        name=str(told.get("study") or (table.study.iloc[0] if len(table) else "study")),
    )


def measured_layers(table: pd.DataFrame) -> dict[str, tuple[int, ...]]:
    """The layers of each encoder at which spaces were measured, in ascending order.

    Rows of a fine-tuning's own head do not count: they are at the encoder's full depth, whatever layers were measured.
    """
    measured = table[table.measure.isin(AT_LAYERS)]
    return {
        str(encoder): tuple(sorted(int(layer) for layer in part.layer.unique()))
        for encoder, part in measured.groupby("encoder", sort=False)
    }


def _runs(measured: pd.DataFrame, encoders: tuple[str, ...], tasks: tuple[str, ...]) -> tuple[Run, ...]:
    """Every fine-tuning with the task it was looked at on, in the study's order."""
    ended = measured[(measured.tuned_on != PRETRAINED) & measured["is_final"] & (measured.task != "")]
    columns = ["encoder", "tuned_on", "seed", "task"]
    found = [Run(e, t, int(s), k) for e, t, s, k in ended[columns].drop_duplicates().to_numpy()]
    task = tasks.index
    return tuple(sorted(found, key=lambda r: (encoders.index(r.encoder), task(r.tuned_on), task(r.task), r.seed)))


def _named(entries: dict[str, dict[str, Any]]) -> list[str]:
    """All names under which entries of the manifest may stand in the table, in the plan's order."""
    return [name for key, one in entries.items() for name in (key, one.get("name", ""), PurePath(key).stem)]


def _ordered(column: pd.Series, first: list[str], among: Any = None) -> tuple[str, ...]:
    """The names in a column, those of the plan first and in its order."""
    there = [str(name) for name in column.unique() if name and (among is None or name in among)]
    known = [name for name in dict.fromkeys(first) if name in there]
    return (*known, *(name for name in there if name not in known))


def _first(rows: pd.DataFrame, wanted: NDArray[np.bool_]) -> Reading | None:
    """The first of those rows that has a value; there are more where a run measured the same more than once."""
    found = np.flatnonzero(wanted & ~np.isnan(rows["value"].to_numpy()))
    return _reading(rows, int(found[0])) if len(found) else None


def _reading(rows: pd.DataFrame, at: int) -> Reading:
    value, low, high, text = (rows[name].to_numpy()[at] for name in ("value", "ci_low", "ci_high", "text"))
    counted = rows["n"].array
    return Reading(
        float(value), none_if_nan(low), none_if_nan(high), None if counted.isna()[at] else int(counted[at]), str(text)
    )


def none_if_nan(value: float) -> float | None:
    """The number, or None for NaN."""
    return None if math.isnan(value) else float(value)

"""Access to the table of a study: which fine-tuning runs it has, and what a measure was before and after each."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from closerlook.study.cells import PRETRAINED
from closerlook.study.layers import HEAD_MEASURES, last_layer, measured_layers
from closerlook.study.registry import MEASURES, find, split_name
from closerlook.study.runs import UNKNOWN, Pair, Run

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

TEXTS = ("study", "encoder", "tuned_on", "task", "split", "measure", "label", "other", "text", "cell", "weights")
SPLITS = ("train", "dev", "test")
__all__ = ["Manifest", "Measurement", "Results", "Run", "index_results", "none_if_nan", "null_names", "split_order"]
__all__ += ["own_ends", "subsampled_name"]

READ = ("tuned_on", "seed", "step", "is_final", "label", "value", "ci_low", "ci_high", "n", "text")
"""The columns that values are read from."""

Manifest = dict[str, Any]
"""The manifest of a study: JSON, as `study.results` writes it."""

Place = tuple[str, str, int, str]
"""An encoder, a task, a layer and a split."""

Columns = dict[str, Any]
"""Columns of some rows by name, each an array."""


@dataclass(frozen=True)
class Measurement:
    """A value of a measure, with its spread and with its value on shuffled labels (null), if these are known.

    low, high: the 95% confidence interval. n, text: as in the table; the registry says what they mean for each measure.
    sd: the standard deviation, over probes or over fine-tuning runs. null_mean, null_sd: the same measure with permuted
    or shuffled labels. subsampled: the value with the true labels on the points that the null was computed on, where
    these are fewer than all.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    text: str = ""
    sd: float | None = None
    null_mean: float | None = None
    null_sd: float | None = None
    subsampled: float | None = None

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The ends of an error bar: value ± standard deviation if it is known, otherwise the confidence interval."""
        return (self.low, self.high) if self.sd is None else (self.value - self.sd, self.value + self.sd)

    def scaled(self, factor: float) -> Measurement:
        """The same measurement in another unit."""

        def times(number: float | None) -> float | None:
            return None if number is None else number * factor

        return Measurement(
            self.value * factor,
            times(self.low),
            times(self.high),
            self.n,
            self.text,
            times(self.sd),
            times(self.null_mean),
            times(self.null_sd),
            times(self.subsampled),
        )


@dataclass(frozen=True, eq=False)
class Results:
    """The table of a study, split by measure, with encoders and tasks in the order of the plan.

    layers: the measured layers of each encoder. all_runs: the fine-tuning runs that finished. test_split: the split
    that train is compared with. by_place: rows by measure, then by encoder, task, layer and split; filled on first use.
    """

    by_measure: dict[str, pd.DataFrame]
    empty: pd.DataFrame
    manifest: Manifest
    encoders: tuple[str, ...]
    tasks: tuple[str, ...]
    layers: dict[str, tuple[int, ...]]
    all_runs: tuple[Run, ...]
    test_split: str
    n_rows: int
    name: str
    by_place: dict[str, dict[Place, pd.DataFrame]] = field(default_factory=dict)

    @property
    def train_test(self) -> str:
        """The suffix of measures that compare train with the test split: 'train_test'."""
        return f"train_{self.test_split}"

    @cached_property
    def methods(self) -> dict[str, str]:
        """The method by which each encoder was fine-tuned; the encoders of a table have one method each."""
        methods: dict[str, str] = {}
        for rows in self.by_measure.values():
            tuned = (rows["tuned_on"] != PRETRAINED) & rows["method"].notna()
            methods |= dict(zip(rows["encoder"][tuned].map(str), rows["method"][tuned].map(str), strict=True))
        return methods

    @cached_property
    def labels(self) -> dict[str, set[str]]:
        """The labels of each task that has clusters."""
        rows = self.of("label_clusters")[["task", "label"]].drop_duplicates()
        return {str(task): set(labels) for task, labels in rows.groupby("task", sort=False)["label"]}

    def of(self, measure: str) -> pd.DataFrame:
        """The rows of a measure; an empty table if it was not measured."""
        return self.by_measure.get(measure, self.empty)

    def has(self, measure: str) -> bool:
        """Whether a measure has any rows."""
        return measure in self.by_measure

    def last_layer(self, encoder: str) -> int:
        """The highest measured layer of an encoder."""
        return last_layer(self.layers[encoder])

    def at(self, measure: str, encoder: str, task: str, *, layer: int | None = None, split: str = "") -> pd.DataFrame:
        """The rows of a measure for an encoder and a task.

        layer: by default the last one. split: by default train, or the test split for measures that are defined on it.
        """
        if measure not in self.by_place:
            groups = self.of(measure).groupby(["encoder", "task", "layer", "split"], sort=False)
            self.by_place[measure] = {
                (str(e), str(t), int(depth), str(s)): rows  # type: ignore[call-overload, unused-ignore]
                for (e, t, depth, s), rows in groups
            }
        place = self._place(measure, encoder, task, layer, split)
        return self.by_place[measure].get(place, self.empty)

    def _place(self, measure: str, encoder: str, task: str, layer: int | None, split: str) -> Place:
        known = find(measure)
        at_split = split or (self.test_split if known is not None and known.on_test else "train")
        return encoder, task, self.last_layer(encoder) if layer is None else layer, at_split

    @cached_property
    def _columns(self) -> dict[tuple[str, Place], Columns]:
        return {}

    def _columns_at(self, measure: str, encoder: str, task: str, layer: int | None = None, split: str = "") -> Columns:
        """The columns of the rows that `at` returns; kept, since taking them takes longer than finding a value."""
        key = measure, self._place(measure, encoder, task, layer, split)
        if key not in self._columns:
            rows = self.at(measure, encoder, task, layer=layer, split=split)
            self._columns[key] = _columns_of(rows)
        return self._columns[key]

    def before(
        self, measure: str, encoder: str, task: str, *, layer: int | None = None, split: str = ""
    ) -> Measurement | None:
        """A measure of the pretrained encoder; if that cell is missing, of step 0 of a fine-tuning run."""
        columns = self._columns_at(measure, encoder, task, layer, split)
        return _first(columns, _before(columns))

    def after(self, measure: str, run: Run, *, layer: int | None = None, split: str = "") -> Measurement | None:
        """A measure at the end of a fine-tuning run."""
        columns = self._columns_at(measure, run.encoder, run.task, layer, split)
        return _first(columns, _after(columns, run.tuned_on, run.seed))

    def label_values(self, measure: str, pair: Pair, seed: int | None = None) -> dict[str, Measurement]:
        """A measure of each label at the last layer, on train, at the end of fine-tuning with a seed.

        seed: None for the pretrained encoder; if that cell is missing, for step 0 of a fine-tuning run.
        """
        columns = self._columns_at(measure, pair.encoder, pair.task)
        selected = _before(columns) if seed is None else _after(columns, pair.tuned_on, seed)
        selected = selected & ~np.isnan(columns["value"])
        chosen = (columns[name][selected].tolist() for name in ("label", "value", "ci_low", "ci_high"))
        return {
            str(label): Measurement(value, none_if_nan(low), none_if_nan(high))
            for label, value, low, high in zip(*chosen, strict=True)
        }

    def compared_with(self, measure: str, encoder: str, task: str, *, tuned: bool) -> list[Measurement]:
        """A measure that compares two train spaces at the last layer: its values for all comparisons with this encoder.

        tuned: whether to take the encoder after fine-tuning on that task (or a training whose task is not known), or
        else the pretrained encoder. A comparison of two encoders is stored with the first one only, and counts for
        both.
        """
        if split_name(measure)[1] == "encoder":
            rows = self.of(measure)
            own = (rows.encoder == encoder) & (rows.layer == self.last_layer(encoder))
            columns = _columns_of(rows[(own | (rows.other == encoder)) & (rows.task == task) & (rows.split == "train")])
        else:
            columns = self._columns_at(measure, encoder, task, split="train")
        tuned_on = columns["tuned_on"]
        own_end = ((tuned_on == task) | (tuned_on == UNKNOWN)) & columns["is_final"]
        state = own_end if tuned else tuned_on == PRETRAINED
        return [_measurement(columns, int(at)) for at in np.flatnonzero(state & ~np.isnan(columns["value"]))]

    def runs(self, *, own: bool) -> list[Run]:
        """The finished fine-tuning runs, measured on the fine-tuning task (own) or on other tasks."""
        return [run for run in self.all_runs if run.own == own]

    def manifest_entry(self, section: str, name: str) -> Manifest:
        """The manifest's entry for an encoder or a task, which it may list by path, by name or by file name."""
        entries: dict[str, Manifest] = self.manifest.get(section, {})
        matches = (entry for key, entry in entries.items() if name in {key, entry.get("name"), PurePath(key).stem})
        return entries.get(name) or next(matches, {})

    def pairs(self) -> list[tuple[str, str]]:
        """Each encoder and task with clusters or an accuracy, in the order of the plan."""
        measured: set[tuple[str, str]] = set()
        for measure in ("n_clusters", "accuracy"):
            rows = self.of(measure)
            measured |= {(str(e), str(t)) for e, t in rows[["encoder", "task"]].drop_duplicates().to_numpy()}
        return [(encoder, task) for encoder in self.encoders for task in self.tasks if (encoder, task) in measured]


def own_ends(rows: pd.DataFrame) -> pd.Series[bool]:
    """Which rows are from the end of a fine-tuning on the task they measure, or on a task that is not known."""
    return ((rows["tuned_on"] == rows["task"]) | (rows["tuned_on"] == UNKNOWN)) & rows["is_final"]


def split_order(split: str) -> tuple[int, str]:
    """The key by which splits are sorted: train, dev, test, then others by name."""
    return SPLITS.index(split) if split in SPLITS else len(SPLITS), split


def null_names(measure: str) -> tuple[str, str]:
    """The names of the measures with the mean and the standard deviation of a measure on shuffled labels.

    >>> null_names("similarity_train_test"), null_names("n_clusters")[0]
    (('similarity_null_mean_train_test', 'similarity_null_sd_train_test'), 'subsampled_clusters_null_mean')
    """
    name, comparison = split_name(measure)
    repeated = subsampled_name(name) or name
    suffix = f"_{comparison}" if comparison else ""
    return f"{repeated}_null_mean{suffix}", f"{repeated}_null_sd{suffix}"


def subsampled_name(measure: str) -> str:
    """The name of the same measure on a subsample of the points; empty if there is none."""
    return MEASURES[measure].null if measure in MEASURES else ""


def index_results(table: pd.DataFrame, manifest: Manifest | None = None) -> Results:
    """The results of a study, indexed for reading. manifest: determines the order of encoders and tasks."""
    import pandas as pd

    manifest = manifest or {}
    table = table.assign(**{name: _python_texts(table[name]) for name in TEXTS})
    layers = measured_layers(table)
    splits = sorted({str(split) for split in pd.unique(table["split"])} - {"", "train"}, key=split_order)
    encoders = _ordered(table["encoder"], _entry_names(manifest.get("encoders", {})), layers)
    named = pd.concat([table["task"], table["tuned_on"]])
    tasks = _ordered(named[named != UNKNOWN], _entry_names(manifest.get("tasks", {})))
    return Results(
        by_measure={str(name): rows for name, rows in table.groupby("measure", sort=False)},
        empty=table.iloc[:0],
        manifest=manifest,
        encoders=encoders,
        tasks=tasks,
        layers=layers,
        all_runs=_finished_runs(table, encoders, tasks),
        test_split="test" if "test" in splits or not splits else splits[0],
        n_rows=len(table),
        name=str(manifest.get("study") or (table["study"].iloc[0] if len(table) else "study")),
    )


def _python_texts(column: pd.Series[str]) -> pd.Series[str]:
    """The column as Python texts, empty where missing. Equal texts are one object: less memory, quicker to compare."""
    import pandas as pd

    codes, distinct = pd.factorize(column)  # the code of a missing text is -1, which selects the last text
    texts = np.array([*distinct, ""], dtype=object)
    return pd.Series(texts[codes], index=column.index, dtype=object)


def _finished_runs(table: pd.DataFrame, encoders: tuple[str, ...], tasks: tuple[str, ...]) -> tuple[Run, ...]:
    """Every finished fine-tuning run with each task that it was measured on, in the order of the plan."""
    is_final = (
        (table["tuned_on"] != PRETRAINED)
        & table["is_final"]
        & (table["task"] != "")
        & ~table["measure"].isin(HEAD_MEASURES)
    )
    final = table[["encoder", "tuned_on", "seed", "task"]][is_final]
    runs = [Run(e, t, int(s), k) for e, t, s, k in final.drop_duplicates().to_numpy()]
    task = (*tasks, UNKNOWN).index
    return tuple(sorted(runs, key=lambda r: (encoders.index(r.encoder), task(r.tuned_on), task(r.task), r.seed)))


def _entry_names(entries: dict[str, Manifest]) -> list[str]:
    """All names by which the table may call the entries of the manifest, in the order of the plan."""
    return [name for key, entry in entries.items() for name in (key, entry.get("name", ""), PurePath(key).stem)]


def _ordered(column: pd.Series[str], first: list[str], among: Container[str] | None = None) -> tuple[str, ...]:
    """The distinct names in a column. Names in `first` come first, in the order of `first`."""
    names = [str(name) for name in column.unique() if name and (among is None or name in among)]
    known = [name for name in dict.fromkeys(first) if name in names]
    return (*known, *(name for name in names if name not in known))


def _columns_of(rows: pd.DataFrame) -> Columns:
    """The columns that a measurement and its state are read from, as arrays."""
    columns: Columns = {name: rows[name].to_numpy() for name in READ}
    return columns | {"value": columns["value"].astype(float)}


def _before(columns: Columns) -> NDArray[np.bool_]:
    """Which rows are of the pretrained encoder; if none is, those of step 0 of a fine-tuning run."""
    pretrained: NDArray[np.bool_] = columns["tuned_on"] == PRETRAINED
    return pretrained if pretrained.any() else columns["step"] == 0


def _after(columns: Columns, tuned_on: str, seed: int) -> NDArray[np.bool_]:
    """Which rows are from the end of a fine-tuning run."""
    selected: NDArray[np.bool_] = (columns["tuned_on"] == tuned_on) & (columns["seed"] == seed) & columns["is_final"]
    return selected


def _first(columns: Columns, selected: NDArray[np.bool_]) -> Measurement | None:
    """The first selected row with a value. There are several rows if a run measured the same thing more than once."""
    positions = np.flatnonzero(selected & ~np.isnan(columns["value"]))
    return _measurement(columns, int(positions[0])) if len(positions) else None


def _measurement(columns: Columns, at: int) -> Measurement:
    import pandas as pd

    value, low, high, n, text = (columns[name][at] for name in ("value", "ci_low", "ci_high", "n", "text"))
    return Measurement(float(value), none_if_nan(low), none_if_nan(high), None if pd.isna(n) else int(n), str(text))


def none_if_nan(value: float) -> float | None:
    """The number, or None for NaN."""
    return None if math.isnan(value) else float(value)

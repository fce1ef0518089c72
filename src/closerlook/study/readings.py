"""Access to the table of a study: which fine-tuning runs it has, and what a measure was before and after each."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass, field
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

Manifest = dict[str, Any]
"""The manifest of a study: JSON, as `study.results` writes it."""


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
    by_place: dict[str, dict[tuple[str, str, int, str], pd.DataFrame]] = field(default_factory=dict)

    @property
    def train_test(self) -> str:
        """The suffix of measures that compare train with the test split: 'train_test'."""
        return f"train_{self.test_split}"

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
        known = find(measure)
        at_split = split or (self.test_split if known is not None and known.on_test else "train")
        at_layer = self.last_layer(encoder) if layer is None else layer
        return self.by_place[measure].get((encoder, task, at_layer, at_split), self.empty)

    def before(
        self, measure: str, encoder: str, task: str, *, layer: int | None = None, split: str = ""
    ) -> Measurement | None:
        """A measure of the pretrained encoder; if that cell is missing, of step 0 of a fine-tuning run."""
        rows = self.at(measure, encoder, task, layer=layer, split=split)
        pretrained = rows["tuned_on"].to_numpy() == PRETRAINED
        return _first(rows, pretrained if pretrained.any() else rows["step"].to_numpy() == 0)

    def after(self, measure: str, run: Run, *, layer: int | None = None, split: str = "") -> Measurement | None:
        """A measure at the end of a fine-tuning run."""
        rows = self.at(measure, run.encoder, run.task, layer=layer, split=split)
        tuned, seed, final = (rows[name].to_numpy() for name in ("tuned_on", "seed", "is_final"))
        return _first(rows, (tuned == run.tuned_on) & (seed == run.seed) & final)

    def label_values(self, measure: str, pair: Pair, seed: int | None = None) -> dict[str, Measurement]:
        """A measure of each label at the last layer, on train, at the end of fine-tuning with a seed.

        seed: None for the pretrained encoder; if that cell is missing, for step 0 of a fine-tuning run.
        """
        rows = self.at(measure, pair.encoder, pair.task)
        tuned_on = rows["tuned_on"].to_numpy()
        if seed is not None:
            selected = (tuned_on == pair.tuned_on) & (rows["seed"].to_numpy() == seed) & rows["is_final"].to_numpy()
        else:
            pretrained = tuned_on == PRETRAINED
            selected = pretrained if pretrained.any() else rows["step"].to_numpy() == 0
        selected &= ~np.isnan(rows["value"].to_numpy(float))
        columns = (rows[name].to_numpy()[selected].tolist() for name in ("label", "value", "ci_low", "ci_high"))
        return {
            str(label): Measurement(value, none_if_nan(low), none_if_nan(high))
            for label, value, low, high in zip(*columns, strict=True)
        }

    def compared_with(self, measure: str, encoder: str, task: str, *, tuned: bool) -> list[Measurement]:
        """A measure that compares two train spaces at the last layer: its values for all comparisons with this encoder.

        tuned: whether to take the encoder after fine-tuning on that task (or a training whose task is not known), or
        else the pretrained encoder. A comparison of two encoders is stored with the first one only, and counts for
        both.
        """
        rows = self.of(measure)
        selected = (rows.encoder == encoder) & (rows.layer == self.last_layer(encoder))
        if split_name(measure)[1] == "encoder":
            selected |= rows.other == encoder
        state = own_ends(rows) if tuned else rows.tuned_on == PRETRAINED
        rows = rows[selected & state & (rows.task == task) & (rows.split == "train")]
        return [_measurement(rows, int(at)) for at in np.flatnonzero(rows["value"].notna().to_numpy())]

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
    table = table.assign(**{name: table[name].astype(object).where(table[name].notna(), "") for name in TEXTS})
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


def _finished_runs(table: pd.DataFrame, encoders: tuple[str, ...], tasks: tuple[str, ...]) -> tuple[Run, ...]:
    """Every finished fine-tuning run with each task that it was measured on, in the order of the plan."""
    final = table[
        (table["tuned_on"] != PRETRAINED)
        & table["is_final"]
        & (table["task"] != "")
        & ~table["measure"].isin(HEAD_MEASURES)
    ]
    columns = ["encoder", "tuned_on", "seed", "task"]
    runs = [Run(e, t, int(s), k) for e, t, s, k in final[columns].drop_duplicates().to_numpy()]
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


def _first(rows: pd.DataFrame, selected: NDArray[np.bool_]) -> Measurement | None:
    """The first selected row with a value. There are several rows if a run measured the same thing more than once."""
    positions = np.flatnonzero(selected & ~np.isnan(rows["value"].to_numpy(float)))
    return _measurement(rows, int(positions[0])) if len(positions) else None


def _measurement(rows: pd.DataFrame, at: int) -> Measurement:
    value, low, high, text = (rows[name].to_numpy()[at] for name in ("value", "ci_low", "ci_high", "text"))
    n = rows["n"].array[at]
    return Measurement(
        float(value), none_if_nan(low), none_if_nan(high), None if rows["n"].isna().iloc[at] else int(n), str(text)
    )


def none_if_nan(value: float) -> float | None:
    """The number, or None for NaN."""
    return None if math.isnan(value) else float(value)

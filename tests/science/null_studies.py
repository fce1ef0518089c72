"""Null studies: studies in which nothing was fine-tuned, or hardly anything, measured as a study measures.

`python -m tests.science.null_studies` writes their tables, `tests/science/null_*.parquet`, with the measures that the
rules of the findings read.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from closerlook.encoders.encoder import Encoder
from closerlook.representations.extract import extract
from closerlook.representations.space import Space
from closerlook.study.kinds.comparison import compare_spaces
from closerlook.study.kinds.geometry import measure_space
from closerlook.study.kinds.split_halves import split_rows
from closerlook.study.registry import measure
from closerlook.study.rows import Payload, Row
from closerlook.tasks import load_task
from closerlook.tasks.task import Task
from closerlook.tuning.finetune import tune
from tests.report.studies import frame

FOLDER = Path(__file__).parent
ENCODERS = {"bert-tiny": ("bert-tiny", 0), "random-1": ("random:bert-tiny", 1), "random-2": ("random:bert-tiny", 2)}
"""The built-in encoder, and two of the same architecture with random weights; each name with its seed."""

TEXTS = {"toy-pos": 30, "toy-dep": 20, "toy-role": 120, "toy-fxn": 120, "toy-question": 150}
"""How many texts of each task are used, from the start of each split."""

CROSS = {"toy-fxn": ("toy-role",), "toy-role": ("toy-fxn",), "toy-pos": ("toy-role", "toy-fxn")}
"""On which other tasks an encoder is measured: two related and two opposed pairs of tasks."""

SEEDS = (0, 1)
LAST = 2
RANDOM_SEED = 99
READ = (
    *("n_labels", "n_clusters", "n_conflicts", "label_clusters", "mean_minimum_distance", "minimum_distance"),
    *("mean_relative_minimum_distance", "n_labels_increased", "n_labels_decreased", "mean_minimum_distance_change"),
    *("similarity_train_test", "similarity_over_examples_train_test", "similarity_original", "similarity_halves"),
    *("similarity_over_examples_original", "similarity_p_value_original", "similarity_random", "similarity_seed"),
)
"""The measures that the rules read."""

Measured = dict[tuple[str, str, int], tuple[list[Row], Payload]]
"""Task, split and layer -> the rows and the payload of a space."""


@dataclass(frozen=True)
class Change:
    """What replaces fine-tuning in a null study. apply: the encoder after it, from encoder, task, seed and name."""

    name: str
    apply: Callable[[Encoder, Task, int, str], Encoder]


def with_noise(share: float) -> Callable[[Encoder, Task, int, str], Encoder]:
    """Adds normal noise to every weight: `share` of the standard deviation of its tensor."""

    def apply(encoder: Encoder, task: Task, seed: int, name: str) -> Encoder:
        model = copy.deepcopy(encoder.model)
        generator = torch.Generator().manual_seed(1000 * seed + sum(map(ord, task.name + name)))
        with torch.no_grad():
            for weights in model.parameters():
                if weights.numel() > 1:
                    weights.add_(share * weights.std() * torch.randn(weights.shape, generator=generator))
        return Encoder.wrap(model, encoder.tokenizer, name=name)

    return apply


def unchanged(encoder: Encoder, task: Task, seed: int, name: str) -> Encoder:
    """The same encoder."""
    return encoder


def one_update(encoder: Encoder, task: Task, seed: int, name: str) -> Encoder:
    """The encoder after one update of an ordinary fine-tuning: a batch of 16 texts, no warm-up."""
    source, encoder_seed = ENCODERS[name]
    with tempfile.TemporaryDirectory() as folder:
        tune(
            source,
            cut(task.name, {"train": 16, "test": 4}),
            out=Path(folder) / "run",
            store=Path(folder) / "store",
            encoder_seed=encoder_seed,
            device="cpu",
            epochs=1,
            batch_size=16,
            warmup=0,
            snapshots=2,
            seed=seed,
            save_weights=True,
            layers="last",
        )
        return Encoder.load(str(Path(folder) / "run" / "step-1"), device="cpu")


CHANGES = (
    Change("copy", unchanged),
    Change("small_noise", with_noise(1e-3)),
    Change("one_update", one_update),
    Change("noise_5_percent", with_noise(0.05)),
)


def cut(name: str, texts: dict[str, int]) -> Task:
    """A built-in task with the first texts of each split."""
    task = load_task(name)
    splits = {}
    for split, n in texts.items():
        part = task.split(split)
        splits[split] = [
            (
                text,
                [
                    (part.positions[row].tolist(), task.labels[part.y[row]])
                    for row in (part.sentence == at).nonzero()[0]
                ],
            )
            for at, text in enumerate(part.texts[:n])
        ]
    return Task.build(name, task.unit, splits)


def small_tasks() -> dict[str, Task]:
    """The five built-in tasks with few texts."""
    return {name: cut(name, {"train": n, "test": n // 2}) for name, n in TEXTS.items()}


def null_study(change: Change, encoders: dict[str, tuple[str, int]], tasks: dict[str, Task]) -> pd.DataFrame:
    """The table of a study in which `change` replaces fine-tuning."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as store:
        for name, (source, seed) in encoders.items():
            encoder = Encoder.load(source, seed=seed, device="cpu")
            random = Encoder.load("random:bert-tiny", seed=RANDOM_SEED, device="cpu")
            before = _measure(encoder, tasks, Path(store))
            baseline = _measure(random, tasks, Path(store), layers=(LAST,))
            for task in tasks:
                rows += _single(before, task, {"encoder": name, "step": 0, "is_final": False})
            for tuned_on, task in tasks.items():
                ends: list[Measured] = []
                probed = {key: tasks[key] for key in (tuned_on, *CROSS.get(tuned_on, ())) if key in tasks}
                for at in SEEDS:
                    after = _measure(change.apply(encoder, task, at, name), probed, Path(store))
                    place = {"encoder": name, "tuned_on": tuned_on, "seed": at, "step": 1, "is_final": True}
                    for key in probed:
                        rows += _single(after, key, place)
                        rows += _compared(before, after, place | {"task": key}, "original")
                    own = place | {"task": tuned_on}
                    rows += _compared(baseline, after, own, "random", layers=(LAST,))
                    rows += [
                        row | {"other": str(other)}
                        for other, end in enumerate(ends)
                        for row in _compared(end, after, own, "seed", layers=(LAST,))
                    ]
                    ends.append(after)
    table = frame(rows)
    return table[table.measure.isin(READ)].reset_index(drop=True)


def _measure(encoder: Encoder, tasks: dict[str, Task], store: Path, layers: tuple[int, ...] = (0, 1, LAST)) -> Measured:
    """The measured spaces of all tasks; intervals over examples at the last layer only, as in a study."""
    spaces = extract(encoder, list(tasks.values()), splits=("train", "test"), layers=layers, store=store)
    return {
        (str(space.provenance.task), str(space.provenance.split), int(space.provenance.layer or 0)): _measure_one(space)
        for space in spaces
    }


def _measure_one(space: Space) -> tuple[list[Row], Payload]:
    is_last = space.provenance.layer == LAST
    resamples = 10 if is_last else 0
    rows, payload = measure_space(
        space, (), tau=1e-6, min_points=1, statistic="mean", distances=True, resamples=resamples, threads=1
    )
    if is_last and space.provenance.split == "train":
        rows += split_rows(space, repeats=1, folds=0, tau=1e-6, min_points=1, statistic="mean", threads=1)
    return rows, payload


def _single(measured: Measured, task: str, place: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of all layers of a task on train, and its train–test similarity at the last layer."""
    place = place | {"task": task}
    rows = [
        place | {"layer": layer} | row
        for (name, split, layer), (found, _) in measured.items()
        if (name, split) == (task, "train")
        for row in found
    ]
    train, test = (measured[task, split, LAST][1] for split in ("train", "test"))
    return rows + _named(
        compare_spaces(train, test, permutations=99, resamples=0), place | {"layer": LAST}, "train_test"
    )


def _compared(
    before: Measured, after: Measured, place: dict[str, Any], what: str, layers: tuple[int, ...] = (0, 1, LAST)
) -> list[dict[str, Any]]:
    """The rows that compare two encoders on train; place: where the rows go, with the task."""
    task = place["task"]
    rows: list[dict[str, Any]] = []
    for layer in layers:
        a, b = before[task, "train", layer][1], after[task, "train", layer][1]
        found = compare_spaces(a, b, permutations=99, resamples=0)
        rows += _named(found, place | {"layer": layer}, what)
    return rows


def _named(rows: list[Row], place: dict[str, Any], what: str) -> list[dict[str, Any]]:
    """The rows with the names that measures have in the table."""
    kept = [row for row in rows if what == "original" or not measure(str(row["measure"])).training_only]
    names = {row["measure"]: measure(str(row["measure"])) for row in kept}
    return [
        place | row | {"measure": row["measure"] if names[row["measure"]].training_only else f"{row['measure']}_{what}"}
        for row in kept
    ]


def path_of(change: Change) -> Path:
    """Where the table of a null study is kept."""
    return FOLDER / f"null_{change.name}.parquet"


if __name__ == "__main__":
    for one in CHANGES:
        null_study(one, ENCODERS, small_tasks()).to_parquet(path_of(one), index=False, compression="zstd")

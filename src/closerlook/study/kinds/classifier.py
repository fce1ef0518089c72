"""The study cell that trains a grid of classifier probes on the train split and tests them on another split."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from closerlook.probes.grid import GRID, SEEDS, ProbeResult, check_sizes, deviation
from closerlook.probes.training import ProbeTraining, Sizes
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.entries import LayeredPart, as_value_error
from closerlook.study.inputs import load_space
from closerlook.study.kinds.kind import CellResult, Kind
from closerlook.study.measure import Measure
from closerlook.study.rows import Row, row
from closerlook.study.sizes import BASE_BYTES, Estimate, space_size

if TYPE_CHECKING:
    from closerlook.study.plan import Plan

MEASURES = (
    Measure(
        "accuracy",
        "accuracy, %",
        "test accuracy of the probe size chosen on held-out training examples, mean over seeds; n: "
        "number of test examples; text: the chosen size",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "accuracy_sd",
        "standard deviation of the accuracy, %",
        "standard deviation of the test accuracy over seeds; n: number of seeds",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "macro_f1",
        "macro F1, %",
        "F1 score of the same probe on the test split, mean over labels and seeds",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "macro_f1_sd",
        "standard deviation of macro F1, %",
        "standard deviation of macro F1 over seeds; n: number of seeds",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "majority_accuracy",
        "majority accuracy, %",
        "test accuracy of always predicting the most frequent label of train",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "n_unseen_labels",
        "unseen labels",
        "number of labels of the test split that do not occur in train",
        digits=0,
        on_test=True,
    ),
    Measure(
        "grid_accuracy",
        "accuracy of one probe size, %",
        "test accuracy of each probe size in the grid, mean over seeds; text: the size",
        digits=1,
        scale=100.0,
        rows="probe size",
        on_test=True,
        archive="none",
    ),
    Measure(
        "grid_held_out_accuracy",
        "held-out accuracy of one probe size, %",
        "accuracy of each probe size on held-out training examples, by which the size is chosen; text: the size",
        digits=1,
        scale=100.0,
        rows="probe size",
        on_test=True,
        archive="none",
    ),
    Measure(
        "label_accuracy",
        "accuracy of a label, %",
        "share of a label's test examples that the chosen probe classifies correctly; n: its test examples",
        digits=1,
        scale=100.0,
        rows="label",
        on_test=True,
        archive="none",
    ),
)


def _check_sizes(value: object) -> object:
    return GRID if value == "grid" else as_value_error(check_sizes, value)


class Classifier(LayeredPart):
    """The grid of classifier probes.

    sizes: the widths of the hidden layers of each probe; "grid": those of the paper. seeds: the number of seeds of each
    probe. at: when probes are trained: before and after fine-tuning (ends), or at every snapshot (all). max_rounds,
    patience: see `ProbeTraining`.
    """

    sizes: Annotated[tuple[Sizes, ...], BeforeValidator(_check_sizes)] = GRID
    seeds: int = Field(SEEDS, ge=1)
    at: Literal["ends", "all"] = "ends"
    max_rounds: int = Field(ProbeTraining.max_rounds, ge=1)
    patience: int = Field(ProbeTraining.patience, ge=1)


def content(plan: Plan, train: str, test: str) -> dict[str, Any]:
    """What goes into the key of the cell. train, test: the keys of the spaces."""
    settings = plan.classifier
    return {
        "train": train,
        "test": test,
        "sizes": [list(sizes) for sizes in settings.sizes],
        "seeds": settings.seeds,
        "training": asdict(ProbeTraining(max_rounds=settings.max_rounds, patience=settings.patience)),
    }


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Train and test the grid of probes."""
    from closerlook.probes import probe_grid

    settings = cell.content
    result = probe_grid(
        load_space(cell, settings["train"]),
        load_space(cell, settings["test"]),
        sizes=[tuple(sizes) for sizes in settings["sizes"]],
        seeds=settings["seeds"],
        training=ProbeTraining(**settings["training"]),
        device=cell.resources["device"],
        threads=threads,
    )
    return classifier_rows(result), {"settings": result.to_dict()["training"], "device": result.device}


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: proportional to the number of networks and the size of the space."""
    size = space_size(study, cell)
    networks = len(cell.content["sizes"]) * cell.content["seeds"]
    return Estimate(0.1 + 3e-7 * networks * size.n * (size.d + 200), 2 * BASE_BYTES + 16 * size.n * size.d, 20_000)


KIND = Kind(
    "classifier",
    4,
    "train classifier probes on",
    run,
    estimate,
    title="classifier probes",
    requests=("classifier",),
    measures=MEASURES,
    gpu=True,
)


def classifier_rows(result: ProbeResult) -> list[Row]:
    """The rows of a grid of classifier probes. Confidence intervals: Student's t over probe seeds."""
    accuracy = result.accuracy[result.chosen]
    low, high = student_interval(accuracy)
    size = size_name(result.chosen_sizes)
    rows = [
        row("accuracy", result.mean, ci_low=low, ci_high=high, n=result.n_test, text=size),
        row("accuracy_sd", result.deviation, n=len(accuracy)),
        row("macro_f1", float(result.macro_f1.mean()), n=result.n_test),
        row("macro_f1_sd", deviation(result.macro_f1), n=len(accuracy)),
        row("majority_accuracy", result.majority, n=result.n_test),
        row("n_unseen_labels", len(result.unseen)),
    ]
    for line in result.table():
        rows.append(row("grid_accuracy", line["accuracy"], text=size_name(line["sizes"])))
        rows.append(row("grid_held_out_accuracy", line["held_out"], text=size_name(line["sizes"])))
    counts = result.confusion.sum(axis=1) // len(result.seeds)
    for label, correct, n in zip(result.test_labels, result.by_label, counts, strict=True):
        rows.append(row("label_accuracy", correct, label=label, n=n))
    return rows


def size_name(sizes: Sequence[int]) -> str:
    """The size of a probe in the table.

    >>> size_name((32, 64)), size_name(())
    ('32×64', 'linear')
    """
    return "×".join(map(str, sizes)) or "linear"


def student_interval(values: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """The 95% confidence interval of the mean of values over probe seeds, by Student's t; None for one seed."""
    from scipy.stats import t

    if len(values) < 2:
        return None, None
    half = float(t.ppf(0.975, len(values) - 1)) * deviation(values) / math.sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half

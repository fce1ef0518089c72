"""The study cell that compares the accuracy of the chosen classifier probe with its accuracy on control tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from closerlook.errors import InputError
from closerlook.probes.control import Selectivity
from closerlook.probes.grid import deviation
from closerlook.probes.training import ProbeTraining, Sizes
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.files import require_result
from closerlook.study.inputs import load_space, load_tasks
from closerlook.study.kinds import description_length
from closerlook.study.kinds.classifier import size_name, student_interval
from closerlook.study.kinds.kind import CellResult, Kind
from closerlook.study.measure import Measure
from closerlook.study.rows import Row, row
from closerlook.study.sizes import BASE_BYTES, Estimate, space_size

MEASURES = (
    Measure(
        "control_accuracy",
        "accuracy on control tasks, %",
        "test accuracy of the chosen probe size on random labels, one for each word, the same in train and test; mean "
        "over seeds, each with its own random labels; text: the size",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "control_accuracy_sd",
        "standard deviation of the accuracy on control tasks, %",
        "standard deviation of the accuracy on control tasks over seeds; n: number of seeds",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "selectivity",
        "selectivity, points",
        "accuracy of the chosen probe minus its accuracy on control tasks, in percentage points, mean over seeds; low: "
        "the probe could have memorised the words",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "selectivity_sd",
        "standard deviation of selectivity, points",
        "standard deviation of selectivity over seeds; n: number of seeds",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "known_words",
        "known words, %",
        "share of the test examples whose word also occurs in train; only their random labels can be memorised",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
)


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Train the chosen probe again on the task, and on control tasks.

    The classifier cell stores the accuracy of each size, but not that of each seed. Networks with the same seed, size
    and data are the same networks, so the accuracy on the task is that of the classifier cell.
    """
    from closerlook.probes import measure_selectivity, probe_grid

    settings, split = cell.content, cell.resources["split"]
    (task,) = load_tasks(cell, cell.resources["task"])
    train_words, test_words = (task.words(task.split(name)) for name in ("train", split))
    if train_words is None or test_words is None:
        raise InputError(f"the examples of task {task.name} are sentences; expected words, which control tasks need")
    train, test = (load_space(cell, settings[name]) for name in ("train", "test"))
    result = probe_grid(
        train,
        test,
        sizes=[_chosen_sizes(settings, out)],
        seeds=settings["seeds"],
        training=ProbeTraining(**settings["training"]),
        device=cell.resources["device"],
        threads=threads,
    )
    selectivity = measure_selectivity(train, test, (train_words, test_words), result=result, threads=threads)
    return control_rows(selectivity, result.n_test), {"device": result.device}


def _chosen_sizes(settings: dict[str, Any], out: Path) -> Sizes:
    """The probe size that the classifier cell has chosen."""
    rows = require_result(out, settings["classifier"])["rows"]
    name = next(one["text"] for one in rows if one["measure"] == "accuracy")
    return next(tuple(sizes) for sizes in settings["sizes"] if size_name(sizes) == name)


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: two networks for each seed."""
    size = space_size(study, cell, "train")
    seconds = cell.content["seeds"] * (0.3 + 1.1e-7 * size.n * (size.d + 200))
    return Estimate(0.1 + seconds, 2 * BASE_BYTES + 40 * size.n * size.d, 4_000)


KIND = Kind(
    "control",
    1,
    "train classifier probes on control tasks:",
    run,
    estimate,
    title="control tasks",
    measures=MEASURES,
    gpu=True,
)


def control_cells(
    study: ResolvedPlan, task: str, split: str, probes: dict[str, Any], key: str
) -> list[tuple[Kind, dict[str, Any], str, tuple[str, ...]]]:
    """The cells that control the classifier probes of a space: kind, content, split and further inputs of each.

    None without `control` in the plan. Control tasks need words, which sentences do not have. The description length is
    that of train, so it is measured once and not for each test split. probes, key: content and key of the cell that
    trains the grid of probes. split: the split on which it tests them.
    """
    if not study.plan.control:
        return []
    cells: list[tuple[Kind, dict[str, Any], str, tuple[str, ...]]] = []
    if study.tasks[task].unit != "sentence":
        cells.append((KIND, probes | {"classifier": key}, split, (key,)))
    if split == study.plan.test_splits[0]:
        content = description_length.content(study.plan, probes["train"])
        cells.append((description_length.KIND, content, "train", ()))
    return cells


def control_rows(selectivity: Selectivity, n: int) -> list[Row]:
    """The rows of a probe on control tasks. n: the number of test examples. Intervals: Student's t over probe seeds."""
    rows = []
    for name, values in (("control_accuracy", selectivity.control), ("selectivity", selectivity.selectivity)):
        low, high = student_interval(values)
        size = size_name(selectivity.sizes)
        rows.append(row(name, float(values.mean()), ci_low=low, ci_high=high, n=n, text=size))
        rows.append(row(f"{name}_sd", deviation(values), n=len(values)))
    return [*rows, row("known_words", selectivity.known, n=n)]

"""The study cell that measures how many bits the labels of train take, given the vectors (description length)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.probes.control import CODE_SIZES, CodeLength
from closerlook.probes.grid import deviation
from closerlook.probes.training import ProbeTraining
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.inputs import load_space
from closerlook.study.kinds.classifier import size_name, student_interval
from closerlook.study.kinds.kind import CellResult, Kind
from closerlook.study.measure import Measure
from closerlook.study.rows import Row, row
from closerlook.study.sizes import BASE_BYTES, Estimate, space_size

if TYPE_CHECKING:
    from closerlook.study.plan import Plan

MEASURES = (
    Measure(
        "description_length",
        "description length, bits",
        "number of bits needed to send the labels of train, given the vectors, by the online code of Voita & Titov "
        "(2020), mean over seeds; n: number of examples; text: the size of the probe",
        digits=0,
    ),
    Measure(
        "description_length_sd",
        "standard deviation of the description length, bits",
        "standard deviation of the description length over seeds; n: number of seeds",
        digits=0,
    ),
    Measure(
        "uniform_length",
        "uniform code, bits",
        "number of bits needed to send the labels of train without the vectors, if all labels are equally probable",
        digits=0,
    ),
    Measure(
        "compression",
        "compression",
        "bits of the uniform code divided by the description length, mean over seeds; higher: the labels are easier to "
        "predict from the vectors",
    ),
    Measure(
        "compression_sd",
        "standard deviation of the compression",
        "standard deviation of the compression over seeds; n: number of seeds",
    ),
)


def content(plan: Plan, space: str) -> dict[str, Any]:
    """What goes into the key of the cell. space: the key of the train space."""
    settings = plan.classifier
    training = ProbeTraining(max_rounds=settings.max_rounds, patience=settings.patience, criterion="loss")
    return {"space": space, "sizes": list(CODE_SIZES), "seeds": settings.seeds, "training": asdict(training)}


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Measure the description length of the labels of the cell's space."""
    from closerlook.probes import online_code

    settings = cell.content
    code = online_code(
        load_space(cell, settings["space"]),
        sizes=tuple(settings["sizes"]),
        seeds=settings["seeds"],
        training=ProbeTraining(**settings["training"]),
        device=cell.resources["device"],
        threads=threads,
    )
    return description_rows(code), {"ends": list(code.ends), "bits_by_block": code.by_block.mean(axis=0).tolist()}


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: for each seed a second, since even small blocks take many steps, and more for large spaces."""
    size = space_size(study, cell)
    seconds = cell.content["seeds"] * (1.1 + 9e-7 * size.n * (size.d + 200))
    return Estimate(0.1 + seconds, 2 * BASE_BYTES + 40 * size.n * size.d, 4_000)


KIND = Kind(
    "description_length",
    1,
    "description length of",
    run,
    estimate,
    title="description length",
    measures=MEASURES,
    gpu=True,
)


def description_rows(code: CodeLength) -> list[Row]:
    """The rows of an online code. Confidence intervals: Student's t over probe seeds."""
    n, rows = code.ends[-1], []
    for name, values in (("description_length", code.bits), ("compression", code.compression)):
        low, high = student_interval(values)
        rows.append(row(name, float(values.mean()), ci_low=low, ci_high=high, n=n, text=size_name(code.sizes)))
        rows.append(row(f"{name}_sd", deviation(values), n=len(values)))
    return [*rows, row("uniform_length", code.uniform, n=n)]

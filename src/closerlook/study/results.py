"""The table of a study, one row for each measurement, and the manifest, which says how it was made."""

from __future__ import annotations

import json
import platform
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.encoders.pooling import choose_pool
from closerlook.errors import InputError
from closerlook.representations.atomic import atomic_write
from closerlook.study import renamed
from closerlook.study.cells import Placement, ResolvedPlan
from closerlook.study.files import read_result
from closerlook.study.graph import Graph
from closerlook.study.registry import MEASURES
from closerlook.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.study.runner import StudyState

Record = dict[str, Any]
"""The result of a cell, a row of the table, or a part of the manifest: JSON."""

TABLE, CSV, MANIFEST = "results.parquet", "results.csv", "manifest.json"

COLUMNS: dict[str, str] = {
    "study": "string",
    "encoder": "string",
    "tuned_on": "string",
    "seed": "int64",
    "step": "int64",
    "epoch": "float64",
    "is_final": "bool",
    "layer": "int64",
    "task": "string",
    "split": "string",
    "measure": "string",
    "label": "string",
    "other": "string",
    "value": "float64",
    "ci_low": "float64",
    "ci_high": "float64",
    "n": "Int64",
    "text": "string",
    "cell": "string",
    "weights": "string",
    "version": "string",
}
"""The columns and their types. tuned_on: empty for a pretrained encoder. is_final: at the end of a fine-tuning run."""

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn", "accelerate", "pandas", "pyarrow")


def write_results(study: ResolvedPlan, out: Path, state: StudyState, seconds: float) -> Path:
    """Write the table as Parquet and CSV, and the manifest; return the path of the table."""
    table, cells = make_table(study, out, state.graph)
    with atomic_write(out / TABLE) as stream:
        table.to_parquet(stream, index=False)
    with atomic_write(out / CSV) as stream:
        table.to_csv(stream, index=False, encoding="utf-8")
    with atomic_write(out / MANIFEST) as stream:
        manifest = make_manifest(study, state, cells, seconds)
        stream.write(json.dumps(manifest, ensure_ascii=False, indent=1).encode() + b"\n")
    return out / TABLE


def make_table(study: ResolvedPlan, out: Path, graph: Graph) -> tuple[pd.DataFrame, list[Record]]:
    """The sorted rows of all finished cells, and the time and memory that each cell took."""
    import pandas as pd

    by_cell: dict[str, list[Placement]] = {key: [] for key in graph.cells}
    for placement in graph.placements:
        by_cell[placement.key].append(placement)
    cells: list[Record] = []
    rows: list[Record] = []
    parts = [_frame([])]
    for key, placements in by_cell.items():
        result = read_result(out, key)
        if result is None:
            continue
        cells.append({name: result[name] for name in CELL_FACTS})
        for placement in placements:
            rows += _placed(study, placement, result)
        if len(rows) >= ROWS_AT_A_TIME:
            parts.append(_frame(rows))
            rows = []
    table = pd.concat([*parts, _frame(rows)], ignore_index=True)
    order = [name for name in COLUMNS if name not in {"value", "ci_low", "ci_high", "n"}]
    return table.sort_values(order, kind="stable", ignore_index=True), cells


ROWS_AT_A_TIME = 50_000
"""Rows are converted to a table in batches of this size: as dictionaries they take twenty times the memory."""

CELL_FACTS = ("key", "kind", "title", "seconds", "cpu_seconds", "peak_bytes", "host", "threads")


def _frame(rows: list[Record]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _placed(study: ResolvedPlan, placement: Placement, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A cell's rows at one of its positions; a column that a row sets itself takes precedence."""
    by_step = {position.step: position for position in placement.snapshots}
    rest = {"study": study.plan.name, "cell": result["key"], "version": result["version"]}
    rest |= {"other": placement.other} if placement.other else {}
    for row in result["rows"]:
        measure = row["measure"]
        if placement.comparison:
            training_only = MEASURES[measure].training_only
            if training_only and placement.comparison != "original":
                continue
            measure = measure if training_only else f"{measure}_{placement.comparison}"
        yield vars(by_step.get(row.get("step"), placement.position)) | row | rest | {"measure": measure}


def make_manifest(study: ResolvedPlan, state: StudyState, cells: list[Record], seconds: float) -> Record:
    """The manifest: what was run, on which data and machine, with which versions, and what failed."""
    zero = {"cells": 0, "seconds": 0.0, "cpu_seconds": 0.0, "peak_bytes": 0}
    kinds: dict[str, dict[str, float]] = defaultdict(zero.copy)
    for cell in cells:
        kinds[cell["kind"]]["cells"] += 1
        kinds[cell["kind"]]["seconds"] += cell["seconds"]
        kinds[cell["kind"]]["cpu_seconds"] += cell["cpu_seconds"]
        kinds[cell["kind"]]["peak_bytes"] = max(kinds[cell["kind"]]["peak_bytes"], cell["peak_bytes"] or 0)
    return {
        "study": study.plan.name,
        "version": __version__,
        "plan": study.plan.to_dict(),
        "encoders": {
            name: {
                "name": source.name,
                "weights": source.fingerprint,
                "revision": source.revision,
                **vars(info),
                "pooling": {task.unit: choose_pool(study.plan.pool, task.unit, info) for task in study.tasks.values()},
            }
            for name, (source, info) in study.encoders.items()
        },
        "tasks": {
            name: {
                "hash": task.content_hash,
                "unit": task.unit,
                "labels": list(task.labels),
                "examples": {split.name: len(split) for split in task.splits},
            }
            for name, task in study.tasks.items()
        },
        "settings": {f"{e} on {t}": settings.to_dict() for (e, t), settings in study.settings.items()},
        "hardware": hardware(),
        "packages": {name: _version(name) for name in PACKAGES},
        "cells": {"done": len(state.done), "total": state.total, "computed": state.computed},
        "failed": [
            {"key": key, "title": state.graph.cells[key].title, "error": error}
            for key, error in state.failed.items()
            if key in state.graph.cells
        ],
        "blocked": state.blocked,
        "seconds": round(seconds, 1),
        "kinds": kinds,
        "slowest": sorted(cells, key=lambda cell: -cell["seconds"])[:20],
    }


def hardware() -> Record:
    """The properties of this machine that results and times depend on."""
    import psutil

    from closerlook.study.engines import cores

    return {
        "host": platform.node(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def study_in(folder: Path) -> str | None:
    """The name of the study in a folder, from its manifest; None if there is no readable manifest."""
    try:
        return str(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["study"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def load_results(folder: str | Path) -> pd.DataFrame:
    """The table of a study, from its folder or from its results.parquet or results.csv.

    Columns: study, encoder, tuned_on, seed, step, epoch, is_final, layer, task, split, measure, label, other, value,
    ci_low, ci_high, n, text, cell, weights, version.
    """
    import pandas as pd

    path = Path(folder).expanduser()
    file = path / TABLE if path.is_dir() else path
    if not file.exists():
        raise InputError(f"{file} does not exist; expected the folder of a finished study, or its results.parquet")
    try:
        table = _read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
        table = table.rename(columns=renamed.COLUMNS)
        missing = [name for name in COLUMNS if name not in table.columns]
        if missing:
            raise InputError(f"{file} lacks {', '.join(missing)}; expected the table of a study")
        table["measure"] = table["measure"].map(renamed.current_name)
        return table.astype(COLUMNS)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{file} cannot be read: {' '.join(str(error).split())}; expected a study's table") from None


def _read_csv(file: Path) -> pd.DataFrame:
    """The table from CSV, equal to the one from Parquet: names may be empty, and a label may be called NA."""
    import pandas as pd

    may_be_empty = {"study", "encoder", "tuned_on", "task", "split", "measure", "cell", "weights", "version"}
    return pd.read_csv(
        file,
        dtype={name: "string" for name, kind in COLUMNS.items() if kind == "string"},
        keep_default_na=False,
        na_values={name: [""] for name in COLUMNS if name not in may_be_empty},
    )

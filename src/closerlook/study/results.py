"""The table of a study, one row for each measurement, and the manifest, which says how it was made."""

from __future__ import annotations

import logging
import platform
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.encoders.pooling import choose_pool
from closerlook.encoders.source import EncoderInfo, Source
from closerlook.errors import DamagedFileError, InputError
from closerlook.representations.atomic import atomic_write, set_aside
from closerlook.representations.checked_json import read_checked, write_checked
from closerlook.study import renamed
from closerlook.study.cells import Placement, ResolvedPlan, ResolvedRun
from closerlook.study.explored import gather_explorers, write_explorers
from closerlook.study.files import require_result
from closerlook.study.parquet import read_parquet, write_parquet
from closerlook.study.registry import MEASURES
from closerlook.study.spreadsheet import read_texts, write_csv
from closerlook.study.states import Graph
from closerlook.tuning.existing import FULL
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
    "method": "string",
    "seed": "int64",
    "step": "int64",
    "epoch": "float64",
    "is_final": "bool",
    "layer": "int64",
    "task": "string",
    "split": "string",
    "pool": "string",
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
"""The columns and their types. is_final: at the end of a fine-tuning run.

tuned_on: the task of the fine-tuning; empty for a pretrained encoder, 'your training' for an existing run whose task is
not known. method: how it was fine-tuned, such as 'full' or 'lora 8'; empty for a pretrained encoder. pool: how subwords
became one vector; empty in tables of version 0.1 and for measures of several tasks.
"""

log = logging.getLogger("closerlook.study")

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn", "accelerate", "pandas", "pyarrow")


def write_results(study: ResolvedPlan, out: Path, state: StudyState, seconds: float) -> Path:
    """Write the table as Parquet and CSV, the manifest, and the points of explorers; return the path of the table."""
    table, cells = make_table(study, out, state.graph, state.done)
    for folder in [out / name for name in (TABLE, CSV, MANIFEST) if (out / name).is_dir()]:
        log.warning("%s is a folder; expected a file; it is kept as %s", folder, set_aside(folder).name)
    write_files(out, table, make_manifest(study, state, cells, seconds))
    write_explorers(out, gather_explorers(study, out, state.graph, state.done))
    return out / TABLE


def write_files(out: Path, table: pd.DataFrame, manifest: Record) -> None:
    """Write a table as Parquet and CSV to a folder, and the manifest with the checksums of both files."""
    import pyarrow as pa

    write_parquet(pa.Table.from_pandas(table, preserve_index=False), out / TABLE)
    with atomic_write(out / CSV) as stream:
        write_csv(table, stream)
    tables = {name: file_digest(out / name) for name in (TABLE, CSV)}
    write_checked(out / MANIFEST, manifest | {"tables": tables}, indent=1)


def make_table(
    study: ResolvedPlan, out: Path, graph: Graph, done: Collection[str]
) -> tuple[pd.DataFrame, list[Record]]:
    """The sorted rows of all finished cells, and the time and memory that each cell took. done: their keys."""
    import pandas as pd

    by_cell: dict[str, list[Placement]] = {key: [] for key in graph.cells}
    for placement in graph.placements:
        by_cell[placement.key].append(placement)
    cells: list[Record] = []
    rows: list[Record] = []
    parts = [_frame([])]
    for key, placements in by_cell.items():
        if key not in done:
            continue
        result = require_result(out, key)
        cells.append({name: result[name] for name in CELL_FACTS})
        for placement in placements:
            rows += _placed(study, placement, result)
        if len(rows) >= ROWS_AT_A_TIME:
            parts.append(_frame(rows))
            rows = []
    table = pd.concat([*parts, _frame(rows)], ignore_index=True)
    return sort_table(table), cells


def sort_table(table: pd.DataFrame) -> pd.DataFrame:
    """The table in the order in which it is written: by all columns except the numbers."""
    order = [name for name in COLUMNS if name not in {"value", "ci_low", "ci_high", "n"}]
    return table.sort_values(order, kind="stable", ignore_index=True)


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
        if placement.renamed is not None:
            if measure != placement.renamed[0]:
                continue
            measure = placement.renamed[1]
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
            for name, (source, info) in _all_encoders(study).items()
        },
        "runs": {name: _run_facts(run) for name, run in study.runs.items()},
        "tasks": {
            name: {
                "hash": task.content_hash,
                "unit": task.unit,
                "labels": list(task.labels),
                "examples": {split.name: len(split) for split in task.splits},
                "notes": list(task.notes),
            }
            for name, task in study.tasks.items()
        },
        "settings": {f"{e} on {t}": settings.to_dict() for (e, t), settings in study.settings.items()},
        "hardware": hardware(),
        "packages": {name: _version(name) for name in PACKAGES},
        "cells": {"done": len(state.done), "total": state.total, "computed": state.computed}
        | ({} if state.whole is None else {"whole": state.whole}),
        "failed": [
            {"key": key, "title": state.graph.cells[key].title, "error": error}
            for key, error in state.failed.items()
            if key in state.graph.cells
        ],
        "blocked": state.blocked,
        "damaged": state.damaged,
        "seconds": round(seconds, 1),
        "kinds": kinds,
        "slowest": sorted(cells, key=lambda cell: -cell["seconds"])[:20],
    }


def _all_encoders(study: ResolvedPlan) -> dict[str, tuple[Source, EncoderInfo]]:
    """The encoders of the plan, and the bases of existing runs under the names of the runs."""
    bases = {name: (replace(run.base.source, name=name), run.info) for name, run in study.runs.items()}
    return study.encoders | bases


def _run_facts(run: ResolvedRun) -> Record:
    """What the manifest says about an existing run."""
    return {
        "base": run.base.name,
        "tuned_on": run.tuned_on,
        "method": run.method,
        "seed": run.seed,
        "checkpoints": [
            {"name": one.name, "step": one.step, "weights": one.source.fingerprint} for one in run.checkpoints
        ],
        "skipped": list(run.skipped),
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


def file_digest(path: Path) -> str:
    """The checksum of a file's bytes."""
    import xxhash

    digest = xxhash.xxh3_128()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def read_manifest(folder: Path) -> Record:
    """The manifest in a folder; empty if there is none. A damaged one is an InputError.

    Manifests of earlier versions have no checksum; they are read all the same.
    """
    path = folder / MANIFEST
    try:
        return read_checked(path, required=False)
    except FileNotFoundError:
        return {}
    except (OSError, DamagedFileError) as error:
        reason = f"cannot be read: {error.strerror or error}" if isinstance(error, OSError) else ""
        problem = f"{path} {reason}" if reason else str(error)
        raise InputError(f"{problem}; expected the manifest that a study writes, or none") from None


def study_in(folder: Path) -> str | None:
    """The name of the study in a folder, from its manifest; None if there is no readable manifest."""
    try:
        name = read_manifest(folder).get("study")
    except InputError as error:
        log.warning("%s; the study writes it again at its end", error)
        return None
    return None if name is None else str(name)


def home_of(results: Path) -> Path:
    """The folder of results that may be given by their table."""
    return results.parent if results.is_file() else results


def load_results(folder: str | Path) -> pd.DataFrame:
    """The table of a study, from its folder or from its results.parquet or results.csv.

    Columns: study, encoder, tuned_on, method, seed, step, epoch, is_final, layer, task, split, pool, measure, label,
    other, value, ci_low, ci_high, n, text, cell, weights, version. A Parquet file that does not match its own checksum
    is an error. A CSV file that differs from the one that the study wrote, or a Parquet file that was saved by another
    program, is read with a warning.

    >>> from closerlook import run_study
    >>> plan = {"encoders": "bert-tiny", "tasks": "toy-question", "tuning": None, "measures": "clusters"}
    >>> study = run_study(plan, "my-study", workers=1)
    >>> table = load_results("my-study")
    >>> sorted(table.split.unique()), sorted(table.layer.unique().tolist())
    (['test', 'train'], [0, 1, 2])
    """
    import pyarrow as pa

    path = Path(folder).expanduser()
    file = path / TABLE if path.is_dir() else path
    if not file.exists():
        raise InputError(f"{file} does not exist; expected the folder of a finished study, or its results.parquet")
    try:
        table = _read_checked_csv(file) if file.suffix == ".csv" else _read_checked_parquet(file)
        table = table.rename(columns=renamed.COLUMNS)
        if "method" not in table.columns and "tuned_on" in table.columns:  # tables of version 0.1 have full runs only
            table["method"] = table["tuned_on"].map(lambda task: FULL if task else "")
        if "pool" not in table.columns:
            table["pool"] = ""
        missing = [name for name in COLUMNS if name not in table.columns]
        if missing:
            raise InputError(f"{file} lacks {', '.join(missing)}; expected the table of a study")
        present = {name: renamed.current_name(name) for name in table["measure"].unique()}
        if any(name != former for former, name in present.items()):
            table["measure"] = table["measure"].map(present)
        return table.astype(COLUMNS)
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; run the study again: it writes the table again from its cells") from None
    except (OSError, ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise InputError(f"{file} cannot be read: {' '.join(str(error).split())}; expected a study's table") from None


def _read_checked_parquet(file: Path) -> pd.DataFrame:
    """The table from Parquet; a warning if the study wrote one with a checksum, and this one has none."""
    table, has_checksum = read_parquet(file)
    if not has_checksum and _recorded_digest(file) is not None:
        log.warning("%s is not the table that the study wrote: it has no checksum; it is read as it is", file)
    return table


def _read_checked_csv(file: Path) -> pd.DataFrame:
    """The table from CSV; a warning if the file differs from the one that the study wrote."""
    recorded = _recorded_digest(file)
    if recorded is not None and recorded != file_digest(file):
        log.warning(
            "%s is not the table that the study wrote: it was damaged or edited; it is read as it is, and %s has the "
            "values of the study",
            file,
            TABLE,
        )
    return _read_csv(file)


def _recorded_digest(file: Path) -> str | None:
    """The checksum of a table that the manifest in its folder records; None if it records none."""
    try:
        tables = read_manifest(file.parent).get("tables")
    except InputError as error:
        log.warning("%s; %s cannot be checked", error, file)
        return None
    recorded = tables.get(file.name) if isinstance(tables, dict) else None
    return None if recorded is None else str(recorded)


def _read_csv(file: Path) -> pd.DataFrame:
    """The table from CSV, equal to the one from Parquet: names may be empty, and a label may be called NA."""
    import pandas as pd

    names = {"study", "encoder", "tuned_on", "method", "task", "split", "pool", "measure"}
    may_be_empty = names | {"cell", "weights", "version"}
    table = pd.read_csv(
        file,
        dtype={name: "string" for name, kind in COLUMNS.items() if kind == "string"},
        keep_default_na=False,
        na_values={name: [""] for name in COLUMNS if name not in may_be_empty},
    )
    return read_texts(table)

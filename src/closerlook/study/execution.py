"""The work of one cell, wherever it is done: inputs from the store and other cells, one result file, whole or not."""

from __future__ import annotations

import errno
import json
import os
import platform
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from closerlook.encoders.source import EMBEDDED
from closerlook.errors import CloserLookError, InputError, WorkError
from closerlook.representations.atomic import atomic_write
from closerlook.representations.space import Space
from closerlook.representations.store import Store
from closerlook.study import measures, wider
from closerlook.study.cells import Cell
from closerlook.tasks import load_task
from closerlook.tasks.catalogue import CATALOGUE
from closerlook.version import __version__

if TYPE_CHECKING:
    from closerlook.tasks.task import Task

CELLS = "cells"
JOURNAL = "journal"

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
"""Errors of the system after which no other cell can be kept either."""

_one_at_a_time = threading.Lock()
"""Cells of one process wait for each other: torch's threads and random numbers belong to the whole process."""


class LostError(WorkError):
    """What an earlier cell made is gone; making it again helps."""


@dataclass(frozen=True)
class Outcome:
    """How work on a cell ended, as plain values that any engine can carry.

    seconds: of work, if there was any to do. error: what went wrong, in one line; trace: and where. reason: lost if an
    input is gone, full if nothing more can be written.
    """

    seconds: float | None = None
    error: str = ""
    trace: str = ""
    reason: Literal["", "lost", "full"] = ""


def attempt(cell: Cell, out: str, threads: int) -> Outcome:
    """How work on a cell ended; only an interruption is raised."""
    with _one_at_a_time:
        try:
            return Outcome(seconds=run_cell(cell, out, threads))
        except Exception as error:  # recorded with the cell, the rest goes on
            told = str(error) if isinstance(error, CloserLookError) else f"{type(error).__name__}: {error}"
            trace = "".join(traceback.format_exception(error))
            return Outcome(error=" ".join(told.split()), trace=trace, reason=_reason(error))


def _reason(error: BaseException | None) -> Literal["", "lost", "full"]:
    """Of an error, or of the one that it came from."""
    while error is not None:
        if isinstance(error, LostError):
            return "lost"
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            return "full"
        error = error.__cause__ or error.__context__
    return ""


def result_path(out: Path, key: str) -> Path:
    """Where a cell's result lies."""
    return out / CELLS / key[:2] / f"{key}.json"


def read_result(out: Path, key: str) -> dict[str, Any] | None:
    """A cell's result, if it is there."""
    try:
        found: dict[str, Any] = json.loads(result_path(out, key).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        raise WorkError(
            f"{result_path(out, key)} is damaged; delete it, and the same command computes it again"
        ) from None
    return found


def is_finished(out: Path, key: str) -> bool:
    """Whether a cell's result is there, up to its last character; one cut short, as by a power failure, is not."""
    try:
        with result_path(out, key).open("rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) == b"}"
    except OSError:
        return False


def run_cell(cell: Cell, out: str, threads: int) -> float | None:
    """The seconds that a cell took, once its result is on disk; None, and nothing done, where it was there already.

    threads: what this process may use; torch keeps to the plan's number, so that results do not depend on it.
    """
    folder = Path(out)
    if is_finished(folder, cell.key):
        return None
    journal(folder, cell.key)
    start, cpu = time.perf_counter(), time.process_time()
    with _few_threads(cell):
        rows, payload = DO[cell.kind](cell, folder, threads)
    seconds = time.perf_counter() - start
    result = {
        "key": cell.key,
        "kind": cell.kind,
        "title": cell.title,
        "content": cell.content,
        "rows": rows,
        "payload": payload,
        "seconds": round(seconds, 4),
        "cpu_seconds": round(time.process_time() - cpu, 4),
        "peak_bytes": _peak(),
        "host": platform.node(),
        "threads": threads,
        "version": __version__,
    }
    with atomic_write(result_path(folder, cell.key)) as stream:
        stream.write(json.dumps(result, ensure_ascii=False, allow_nan=False).encode())
    return seconds


def journal(out: Path, key: str) -> None:
    """Note that work on a cell begins: a line in a file of this process's own."""
    path = out / JOURNAL / f"{platform.node()}-{os.getpid()}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        stream.write(f"{time.time():.3f} {key}\n")


def _peak() -> int | None:
    """The most memory this process has held, in bytes."""
    import resource
    import sys

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@contextmanager
def _few_threads(cell: Cell) -> Iterator[None]:
    """Libraries held to a number of threads that does not depend on the engine, since it may move the last digits.

    torch takes the plan's number, linear algebra in numpy and scipy one; our own kernels give the same for any number.
    """
    wanted = cell.how.get("threads") if cell.kind in {"extract", "tune"} else None
    with _linear_algebra().limit(limits=1, user_api="blas"):
        if not wanted:
            yield
            return
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(wanted)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@cache
def _linear_algebra() -> Any:
    """The libraries of this process, found once: looking for them takes milliseconds."""
    import scipy.linalg  # noqa: F401 - it brings a library of its own, which must be loaded to be found
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()


# ---- each kind ----

Found = tuple[list[measures.Row], dict[str, Any]]


def _extract(cell: Cell, out: Path, threads: int) -> Found:
    from closerlook.representations.extract import extract

    how, content = cell.how, cell.content
    extract(
        _encoder(how),
        _tasks(how, how["tasks"]),
        split=content["splits"],
        layers=content["layers"],
        pool=content["pool"],
        store=how["store"],
        device=how["device"],
        dtype=content["dtype"],
    )
    return [], {}


def _tune(cell: Cell, out: Path, threads: int) -> Found:
    from closerlook.tuning import tune

    how = cell.how
    asked, probes = how["settings"], _tasks(how, how["probe"])
    run = tune(
        _encoder(how),
        probes[0],  # the tuned task is the first of those that are probed
        out=out / "weights" / cell.key if asked["save_weights"] else None,
        probe=probes,
        store=how["store"],
        device=how["device"],
        layers=asked["layers"],
        between=asked["between"],
        splits=asked["splits"],
        **{name: asked[name] for name in TUNE_SETTINGS},
    )
    return measures.tuning_rows(run), {"tuned": run.to_dict()}


TUNE_SETTINGS = (
    "seed",
    "epochs",
    "learning_rate",
    "batch_size",
    "warmup",
    "weight_decay",
    "pool",
    "snapshots",
    "save_weights",
    "early_stopping",
    "lora",
    "trainer_arguments",
)


def _geometry(cell: Cell, out: Path, threads: int) -> Found:
    how, content = cell.how, cell.content
    (task,) = _tasks(how, how["task"])
    space = _named(_space(how["store"], content["space"]), task, how["split"])
    return measures.measure_space(
        space,
        _sentences(task, how["split"]),
        tau=content["tau"],
        min_points=content["min_points"],
        statistic=content["statistic"],
        distances=content["distances"],
        resamples=content["resamples"],
        threads=threads,
    )


def _classify(cell: Cell, out: Path, threads: int) -> Found:
    from closerlook.probes import ProbeTraining, probe_grid

    how, content = cell.how, cell.content
    result = probe_grid(
        _space(how["store"], content["train"]),
        _space(how["store"], content["test"]),
        sizes=[tuple(one) for one in content["sizes"]],
        seeds=content["seeds"],
        training=ProbeTraining(**content["training"]),
        device=how["device"],
        threads=threads,
    )
    return measures.classifier_rows(result), {"settings": result.to_dict()["training"], "device": result.device}


def _compare(cell: Cell, out: Path, threads: int) -> Found:
    a, b = (_payload(out, cell.content[side]) for side in "ab")
    if "distances" not in a or "distances" not in b:
        return [measures.row("similarity", None, n=0)], {}
    settings = {name: cell.content[name] for name in ("permutations", "resamples")}
    return measures.compare_spaces(a, b, **settings), {}


def _paths(cell: Cell, out: Path, threads: int) -> Found:
    kept = [_payload(out, key) for key in cell.content["along"]]
    return measures.follow_centroids(kept, cell.content["steps"]), {}


def _panel(cell: Cell, out: Path, threads: int) -> Found:
    return wider.panel_rows(threads=threads, **_space_and_rest(cell)), {}


def _nulls(cell: Cell, out: Path, threads: int) -> Found:
    return wider.null_rows(threads=threads, **_space_and_rest(cell)), {}


def _halves(cell: Cell, out: Path, threads: int) -> Found:
    return wider.halves_rows(threads=threads, **_space_and_rest(cell)), {}


def _alike(cell: Cell, out: Path, threads: int) -> Found:
    a, b = (_space(cell.how["store"], cell.content[side]) for side in "ab")
    return wider.alike_rows(a, b, neighbours=cell.content["neighbours"], threads=threads), {}


def _space_and_rest(cell: Cell) -> dict[str, Any]:
    """The content of a cell with the space itself in the place of its key."""
    return cell.content | {"space": _space(cell.how["store"], cell.content["space"])}


DO = {
    "extract": _extract,
    "tune": _tune,
    "geometry": _geometry,
    "classify": _classify,
    "compare": _compare,
    "paths": _paths,
    "panel": _panel,
    "nulls": _nulls,
    "halves": _halves,
    "alike": _alike,
}


# ---- inputs ----


def _encoder(how: dict[str, Any]) -> str:
    """The encoder's name, a folder with its whole path: a worker may have been started elsewhere."""
    name: str = how["encoder"]
    prefix = "random:" if name.startswith("random:") else ""
    return name if name in {EMBEDDED, f"random:{EMBEDDED}"} else prefix + _path(how, name.removeprefix(prefix))


def _tasks(how: dict[str, Any], names: dict[str, str]) -> list[Task]:
    """The tasks of those names and contents."""
    data = None if how["data"] is None else str(Path(how["here"], how["data"]).expanduser())
    return [
        _task(name if name in CATALOGUE else _task_path(how, name), data, content) for name, content in names.items()
    ]


def _task_path(how: dict[str, Any], name: str) -> str:
    """A task's file with its whole path; options may follow it after a question mark."""
    found = _path(how, name)
    file, mark, options = name.rpartition("?")
    return f"{_path(how, file)}?{options}" if mark and found == name else found


def _path(how: dict[str, Any], name: str) -> str:
    path = Path(how["here"], os.path.expanduser(name))
    return str(path) if os.path.exists(path) else name


@cache
def _task(name: str, data: str | None, content: str) -> Task:
    task = load_task(name, data)
    if task.content_hash != content:
        raise InputError(f"task {name} has changed since the study began; run the same command again")
    return task


@cache
def _sentences(task: Task, split: str) -> Sequence[str]:
    """The sentence of each example."""
    part = task.split(split)
    texts = [text if isinstance(text, str) else " ".join(text) for text in part.texts]
    return [texts[at] for at in part.sentence.tolist()]


def _space(store: str, key: str) -> Space:
    space = Store(store).get(key)
    if space is None:
        raise LostError(f"the space {key[:12]}… is gone from the store {store}, as soon as it was made")
    return space


def _named(space: Space, task: Task, split: str) -> Space:
    """The space with the words behind its rows; only the labels that occur."""
    return Space(space.X, np.asarray(space.y), space.labels, space.provenance, task.words(task.split(split)))


def _payload(out: Path, key: str) -> dict[str, Any]:
    found = read_result(out, key)
    if found is None:
        raise LostError(f"the result of cell {key[:12]}… is gone; run the same command again")
    payload: dict[str, Any] = found["payload"]
    return payload

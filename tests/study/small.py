"""A study small enough for a test: tasks cut out of the embedded ones and written as files, one epoch, few cells."""

import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from closerlook.study.cells import ResolvedPlan
from closerlook.study.kinds import KINDS
from closerlook.study.plan import Plan, make_plan
from closerlook.study.resolving import resolve_plan
from closerlook.tasks import load_task
from closerlook.tasks.task import Task

PROVENANCE = ("study", "version")


def write_tasks(folder: Path, *, texts: int = 24, tests: int = 10) -> Path:
    """Two token tasks (words, prepositions: folders of JSON lines) and one of sentences (questions: CSV files)."""
    for name, source, times in (("words", "toy-pos", 1), ("prepositions", "toy-role", 2)):
        task = load_task(source)
        (folder / name).mkdir(parents=True, exist_ok=True)
        for split, n in (("train", times * texts), ("test", times * tests)):
            lines = [json.dumps(record) for record in _records(task, split, n)]
            (folder / name / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    task = load_task("toy-question")
    (folder / "questions").mkdir(parents=True, exist_ok=True)
    for split, n in (("train", 2 * texts), ("test", 2 * tests)):
        part = task.split(split)
        labels = [task.labels[label].split(":")[0] for label in part.y[:n]]
        pd.DataFrame({"text": part.texts[:n], "label": labels}).to_csv(folder / "questions" / f"{split}.csv")
    return folder


def _records(task: Task, split: str, n: int) -> list[dict[str, Any]]:
    part = task.split(split)
    return [
        {
            "words": list(text),
            "targets": [
                {"token": int(part.positions[row][0]), "label": task.labels[part.y[row]]}
                for row in (part.sentence == number).nonzero()[0]
            ],
        }
        for number, text in enumerate(part.texts[:n])
    ]


def small_plan(folder: Path, **changes: Any) -> Plan:
    """One task, two epochs, four snapshots, the last layer but at the ends, a small classifier."""
    return make_plan(small_values(folder) | changes)


def full_plan(folder: Path) -> Plan:
    """The small plan with two tasks, one probed while tuned on the other, and with every kind of cell."""
    words, prepositions = str(folder / "words"), str(folder / "prepositions")
    geometry = small_values(folder)["geometry"] | {"attempts": "both"}
    cross = [{"tuned": words, "probed": prepositions}]
    return small_plan(folder, tasks=[words, prepositions], cross=cross, geometry=geometry, sensitivity=True)


def small_values(folder: Path) -> dict[str, Any]:
    return {
        "name": "small",
        "encoders": ["bert-tiny"],
        "tasks": [str(folder / "words")],
        "tuning": {"epochs": 2, "learning_rate": 1e-3, "batch_size": 12, "warmup": 0},
        "snapshots": 3,
        "layers": [0, 2],
        "snapshot_layers": "last",
        "classifier": {"sizes": [[16]], "seeds": 2, "max_rounds": 3},
        "geometry": {"permutations": 99, "resamples": 50},
        "nulls": {"shuffles": 2, "cluster_shuffles": 1, "points": 60},
        "uncertainty": {"resamples": 4},
        "halves": {"repeats": 1, "folds": 0},
    }


def write_plan(folder: Path, **changes: Any) -> Path:
    """The same plan as a file."""
    file = folder / "plan.yaml"
    file.write_text(yaml.safe_dump(small_values(folder) | changes))
    return file


def measures_of(kind: str) -> list[str]:
    """The names of all measures of a kind of cell."""
    return [measure.name for one in KINDS if one.name == kind for measure in one.measures]


def opened(plan: Plan, out: Path) -> ResolvedPlan:
    return resolve_plan(plan, out / "store")


def values(table: pd.DataFrame) -> pd.DataFrame:
    """What two runs of the same study must share, bit for bit."""
    return table.drop(columns=list(PROVENANCE))


def begun(out: Path) -> dict[str, list[float]]:
    """When each cell was begun, by the journals of all processes."""
    times: dict[str, list[float]] = defaultdict(list)
    for journal in (out / "journal").glob("*.log"):
        for line in journal.read_text().splitlines():
            when, key = line.split()
            times[key].append(float(when))
    return times


def finished(out: Path) -> dict[str, float]:
    """When each result was put in its place."""
    return {path.stem: path.stat().st_mtime for path in (out / "cells").glob("*/*.json")}


def computed_twice(out: Path) -> list[str]:
    """Cells that were begun again after their result was there."""
    ends = finished(out)
    return [key for key, times in begun(out).items() if key in ends and max(times) > ends[key] + 0.01]


def until(condition: Any, seconds: float = 60.0) -> None:
    """Wait for something to come true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)

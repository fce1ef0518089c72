"""The overhead of a study's runner for each cell, and the speed-up by a second worker.

    python benchmarks/study.py [--tasks 200] [--skip-speed]

Overhead: a study of many tiny tasks without fine-tuning has thousands of cells (clusters, label distances, comparisons)
of a few milliseconds each. The overhead of a cell is the wall time of all workers minus the time of the cells
themselves, divided by the number of cells: building the graph, the queue, sending the cell to a worker and its outcome
back, and writing the result to disk (with fsync). The time until the first cell, the extraction, has finished is
excluded: until then workers load libraries.

Speed-up: two studies without fine-tuning, one of geometry and one of classifiers, with one worker and with two, each on
one core.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from closerlook.study.engines import Engine, Here, Processes
from closerlook.study.files import read_result
from closerlook.study.plan import Plan, make_plan
from closerlook.study.resolving import resolve_plan
from closerlook.study.runner import StudyState, study_lock, work_through


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=200, help="number of tiny tasks; each has nine cells")
    parser.add_argument("--skip-speed", action="store_true")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        measure_overhead(folder, arguments.tasks)
        if not arguments.skip_speed:
            measure_speed_up(folder)


# ---- overhead ----


def measure_overhead(folder: Path, n_tasks: int) -> None:
    """Print the overhead of each cell, in this process and with two workers, and the time to find a finished study."""
    tasks = [write_tiny_task(folder / "tasks" / f"t{number}", number) for number in range(n_tasks)]
    plan = make_plan(
        {
            "encoders": "bert-tiny",
            "tasks": tasks,
            "tuning": None,
            "measures": ["clusters", "similarity"],
            "geometry": {"permutations": 0, "resamples": 0},
        }
    )
    for engine in (Here(), Processes(2)):
        out = folder / engine.name
        wall, first, state = run_timed(plan, out, engine)
        results = [result for result in (read_result(out, key) for key in state.done) if result]
        work = sum(result["seconds"] for result in results if result["kind"] != "extract")
        n = len(results) - 1
        overhead = ((wall - first) * engine.workers - work) / n
        print(
            f"{engine.name}, {engine.workers} workers: {n:,} cells in {wall - first:.1f} s, {first:.1f} s to start; "
            f"for each cell {1000 * work / n:.1f} ms of work and {1000 * overhead:.1f} ms of overhead"
        )
    wall, _, state = run_timed(plan, folder / "here", Here())
    print(f"the finished study again: {wall:.2f} s, {1000 * wall / len(state.done):.2f} ms for each cell")


def write_tiny_task(folder: Path, number: int) -> str:
    """Write a task of eight texts of three words with four labels, different for every number; returns its folder."""
    folder.mkdir(parents=True)
    rng = random.Random(number)  # noqa: S311 - words, not secrets
    for split in ("train", "test"):
        lines = [
            json.dumps({"words": [rng.choice(WORDS), str(number), rng.choice(WORDS)], "targets": [a, None, b]})
            for a, b in [("A", "B"), ("C", "D")] * 4
        ]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return str(folder)


WORDS = ["sun", "moon", "river", "stone", "bread", "glass", "horse", "music", "paper", "garden", "window", "winter"]


# ---- speed ----


STUDIES: dict[str, dict[str, Any]] = {
    "geometry": {
        "measures": ["clusters", "distances", "uncertainty", "nulls", "halves"],
        "nulls": {"layers": "all", "shuffles": 5, "cluster_shuffles": 2, "points": 1000, "random_encoder": False},
        "uncertainty": {"layers": "all"},
        "halves": {"layers": "all"},
    },
    "classifiers": {
        "measures": ["classifier"],
        "classifier": {"layers": "all", "sizes": [[64, 64], [128, 128], [256, 256]], "seeds": 6},
    },
}
"""The plan entries of studies of geometry, whose data stays in a core's cache, and of classifiers, whose does not."""


def measure_speed_up(folder: Path) -> None:
    """Print the times of each study with one worker and with two."""
    for name, entries in STUDIES.items():
        tasks = ["toy-pos", "toy-role", "toy-fxn", "toy-dep"]
        plan = make_plan({"encoders": "bert-tiny", "tasks": tasks, "tuning": None} | entries)
        seconds = {}
        for workers in (1, 2):
            engine = Processes(workers)
            engine.threads = 1
            out = folder / f"{name}{workers}"
            wall, first, state = run_timed(plan, out, engine)
            cpu = sum(result["cpu_seconds"] for result in (read_result(out, key) for key in state.done) if result)
            seconds[workers] = wall
            print(
                f"{name}, {workers} workers: {wall:.1f} s, {first:.1f} s of it until the first cell had finished; "
                f"{cpu:.1f} s of processor time"
            )
        print(f"{name}: two workers are {seconds[1] / seconds[2]:.2f} times faster than one")


def run_timed(plan: Plan, out: Path, engine: Engine) -> tuple[float, float, StudyState]:
    """Run a study; returns its wall time, the time until the first cell had finished, and its final state."""
    resolved = resolve_plan(plan, out / "store")
    first: list[float] = []
    start = time.perf_counter()

    def watch(state: StudyState) -> None:
        if state.computed and not first:
            first.append(time.perf_counter() - start)

    with study_lock(out):
        state = work_through(resolved, out, engine, watch)
        wall = time.perf_counter() - start
        engine.close()
    assert not state.failed, next(iter(state.failed.values()))
    return wall, first[0] if first else 0.0, state


if __name__ == "__main__":
    main()

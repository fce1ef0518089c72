"""What the runner of a study adds to its cells, and what a second worker saves.

    python benchmarks/study.py [--tasks 200] [--skip-speed]

Overhead: a plan of many tiny tasks, nothing tuned, so that there are thousands of cells (real ones: clusters, label
distances, comparisons) of a few milliseconds each. The wall time, less what the cells themselves took, by cell: the
graph, the queue, the way to a worker and back, and the result on disk, forced there (fsync). The time until the first
cell is done, the extraction, is left out: by then workers have loaded the libraries.

Speed: two studies of nothing but arithmetic, with one worker and with two, each on one core.
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
    parser.add_argument("--tasks", type=int, default=200, help="tiny tasks: nine cells each")
    parser.add_argument("--skip-speed", action="store_true")
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before anything")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        overhead(folder, given.tasks)
        if not given.skip_speed:
            speed(folder)


# ---- overhead ----


def overhead(folder: Path, n_tasks: int) -> None:
    tasks = [tiny_task(folder / "tasks" / f"t{number}", number) for number in range(n_tasks)]
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
        wall, first, state = timed(plan, out, engine)
        results = [result for result in (read_result(out, key) for key in state.done) if result]
        spent = sum(result["seconds"] for result in results if result["kind"] != "extract")
        n = len(results) - 1
        added = ((wall - first) * engine.workers - spent) / n
        print(
            f"{engine.name}, {engine.workers} workers: {n:,} cells in {wall - first:.1f} s, {first:.1f} s to start; "
            f"{1000 * spent / n:.1f} ms of work and {1000 * added:.1f} ms of everything else for each"
        )
    wall, _, state = timed(plan, folder / "here", Here())
    print(f"again, with everything there: {wall:.2f} s, {1000 * wall / len(state.done):.2f} ms a cell")


def tiny_task(folder: Path, number: int) -> str:
    """Eight texts of three words, four labels; no two tasks alike."""
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
"""Studies of nothing but arithmetic: hulls, whose numbers stay in a core's cache, and networks, whose do not."""


def speed(folder: Path) -> None:
    for name, asked in STUDIES.items():
        tasks = ["toy-pos", "toy-role", "toy-fxn", "toy-dep"]
        plan = make_plan({"encoders": "bert-tiny", "tasks": tasks, "tuning": None} | asked)
        took = {}
        for workers in (1, 2):
            engine = Processes(workers)
            engine.threads = 1
            out = folder / f"{name}{workers}"
            wall, first, state = timed(plan, out, engine)
            cpu = sum(result["cpu_seconds"] for result in (read_result(out, key) for key in state.done) if result)
            took[workers] = wall
            print(
                f"{name}, {workers} workers: {wall:.1f} s, {first:.1f} s of it until the first cell; "
                f"{cpu:.1f} s of processor time"
            )
        print(f"{name}: two workers are {took[1] / took[2]:.2f} times faster than one")


def timed(plan: Plan, out: Path, engine: Engine) -> tuple[float, float, StudyState]:
    """Seconds in all, seconds until the first cell was done, and the state at the end."""
    opened = resolve_plan(plan, out / "store")
    first: list[float] = []
    start = time.perf_counter()

    def watch(state: StudyState) -> None:
        if state.computed and not first:
            first.append(time.perf_counter() - start)

    with study_lock(out):
        state = work_through(opened, out, engine, watch)
        wall = time.perf_counter() - start
        engine.close()
    assert not state.failed, next(iter(state.failed.values()))
    return wall, first[0] if first else 0.0, state


if __name__ == "__main__":
    main()

"""One measurement of `peers.py` in a separate process, and what the parts of that comparison share."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CORES = len(os.sched_getaffinity(0))
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
}
"""Environment of each process: one thread of linear algebra, and encoders from folders only."""

VERSIONS = """
import sys
from importlib.metadata import distributions
installed = {package.name: package.version for package in distributions()}
shown = (sys.argv[1].replace("_", "-"), "numpy", "scipy", "torch", "transformers")
print(", ".join(f"{name} {installed[name]}" for name in shown if name in installed))
"""
Job = tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]
"""The call that is timed, and a function that describes its result."""


def measured(prepare: Callable[[dict[str, Any]], Job], job: dict[str, Any]) -> dict[str, Any]:
    with contextlib.redirect_stdout(sys.stderr):  # NeuroX prints every sentence
        call, describe = prepare(job)
        before, clock, work = peak(), time.perf_counter(), cpu_seconds()
        result = call()
        seconds, work, added = time.perf_counter() - clock, cpu_seconds() - work, peak() - before
        return {"seconds": seconds, "work": work, "memory": added, **describe(result)}


def cpu_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def peak() -> float:
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1000


def run(python: str, **job: object) -> dict[str, Any]:
    script = str(Path(__file__).with_name("peers.py"))
    command = [python, script, "-", "--job", json.dumps(job)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | SETTINGS)
    if ran.returncode:
        sys.exit(f"{job['job']} with {python} failed:\n{ran.stderr[-2000:]}")
    return json.loads(ran.stdout.splitlines()[-1])  # the line before may be Gurobi's, about its licence


def alternate(repeat: int, *jobs: tuple[str, dict[str, object]]) -> list[dict[str, Any]]:
    """For each (python, job): the smallest time, work and memory of several rounds, and its description."""
    rounds = [[run(python, **job) for python, job in jobs] for _ in range(repeat)]
    least = ("seconds", "work", "memory")
    return [
        results[-1] | {key: min(result[key] for result in results) for key in least}
        for results in zip(*rounds, strict=True)
    ]


def python_with(module: str, given: argparse.Namespace) -> str | None:
    for python in [*given.python, sys.executable]:
        if subprocess.run([python, "-c", f"import {module}"], check=False, capture_output=True).returncode == 0:
            shown = subprocess.run(
                [python, "-c", VERSIONS, module], check=True, capture_output=True, text=True
            ).stdout.strip()
            print(f"\n{shown}")
            return python
    print(f"\n{module}: skipped, no --python has it")
    return None


def in_single_precision(encoder: Path, copy: Path) -> None:
    """Copy the encoder in float32: its file is float16, which Closer Look converts and others compute in."""
    import torch  # noqa: PLC0415
    from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415

    AutoModel.from_pretrained(encoder, dtype=torch.float32).save_pretrained(copy)
    AutoTokenizer.from_pretrained(encoder).save_pretrained(copy)


def times_of(ours: dict[str, Any], theirs: dict[str, Any]) -> list[object]:
    return [ours["seconds"], theirs["seconds"], ours["work"], theirs["work"], theirs["work"] / ours["work"]]


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from closerlook.representations.space import Space  # noqa: PLC0415

    space = Space.load(path)
    return space.X, space.label_names

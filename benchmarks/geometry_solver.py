"""CPU time of the solver of convex hulls, compared with an older source tree and with scikit-learn in the same run.

    closerlook extract --encoder ENCODER --task dep --task ps-role --out FOLDER   (bert-tiny, bert-mini, ...)
    python benchmarks/geometry_solver.py FOLDER [--baseline OLD/src] [--only separability,distances,directions,near]

OLD/src is the source folder of another version, with its C library built. Each measurement is a process of its own on
one core, and counts CPU seconds, so that other work on the machine matters little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from tables import table

from closerlook.geometry import cluster, cluster_distances, separate
from closerlook.geometry.clusters import _directions
from closerlook.geometry.nulls import separability
from closerlook.representations.space import Space

ENCODERS = {"bert-tiny": 2, "bert-mini": 4, "bert-small": 4, "minilm": 6}
SHUFFLES = 20
LABELS, DIMENSIONS, POINTS = 46, 768, 4000
NEAR = 1e-6 * (1 + 1e-6)
"""A distance just above tau for a radius of 1."""


def main() -> None:
    """Print one table for each case, or, in a process of its own, the numbers of one case as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--baseline", type=Path, help="source folder of the version to compare with")
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        case, encoder = options.job.split(":")
        print(json.dumps(CASES[case](options.vectors, encoder)))
        return
    for case in options.only.split(","):
        rows = []
        for encoder in encoders(options.vectors, case):
            now = run(options.vectors, f"{case}:{encoder}", None)
            row: list[object] = [encoder, now["space"], now["seconds"]]
            if "svc" in now:
                row += [now["svc"], now["svc"] / now["seconds"]]
            if options.baseline:
                before = run(options.vectors, f"{case}:{encoder}", options.baseline)
                row += [before["seconds"], before["seconds"] / now["seconds"]]
            rows.append([*row, now["result"]])
        columns = ["encoder", "space", "CPU seconds"] + (["SVC", "SVC / now"] if case == "distances" else [])
        columns += (["baseline", "baseline / now"] if options.baseline else []) + ["result"]
        table(case, columns, rows)


def encoders(vectors: Path, case: str) -> list[str]:
    """The encoders with vectors for a case; one empty name for cases without vectors."""
    task = {"separability": "dep", "distances": "ps-role"}.get(case)
    if task is None:
        return [""]
    present = [name for name, layer in ENCODERS.items() if file(vectors, name, task, layer).exists()]
    return present[:2] if case == "separability" else present


def file(vectors: Path, encoder: str, task: str, layer: int) -> Path:
    return vectors / f"{encoder}-{task}-train-layer{layer}.npz"


def run(vectors: Path, job: str, source: Path | None) -> dict[str, float]:
    """The numbers of one job, measured in a process of its own on one core."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | ({"PYTHONPATH": str(source.resolve())} if source else {})
    command = [sys.executable, __file__, str(vectors), "--job", job]
    core = {min(os.sched_getaffinity(0))}
    process = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, core),
    )
    return dict(json.loads(process.stdout))


def cpu_seconds(call: Callable[[], object], times: int = 1) -> float:
    """The CPU time of a call: the least of several."""
    least = np.inf
    for _ in range(times):
        start = time.process_time()
        call()
        least = min(least, time.process_time() - start)
    return float(least)


def measure_separability(vectors: Path, encoder: str) -> dict[str, object]:
    """All pairs of labels of dep, for the true labels and SHUFFLES shuffles."""
    space = Space.load(file(vectors, encoder, "dep", ENCODERS[encoder]))
    results = []
    seconds = cpu_seconds(lambda: results.append(separability(space.X, space.y, shuffles=SHUFFLES, threads=1)))
    share = results[0].separable
    return {"space": shape(space.X), "seconds": seconds, "result": f"{share.value:.6f}, null {share.mean:.6f}"}


def measure_distances(vectors: Path, encoder: str) -> dict[str, object]:
    """All label distances of ps-role, and SVC on the same pairs."""
    space = Space.load(file(vectors, encoder, "ps-role", ENCODERS[encoder]))
    clustering = cluster(space.X, space.y, threads=1)
    seconds = cpu_seconds(lambda: cluster_distances(space.X, clustering, threads=1), 5)
    distances = cluster_distances(space.X, clustering, threads=1)
    X, members = space.X.astype(np.float64), clustering.members()
    svc = cpu_seconds(
        lambda: [svc_distance(X[members[a]], X[members[b]]) for a, b in combinations(range(len(members)), 2)]
    )
    gap = float(np.nanmax((distances.upper - distances.lower) / np.maximum(distances.upper, 1e-300)))
    return {"space": shape(X), "seconds": seconds, "svc": svc, "result": f"largest gap {gap:.2g}"}


def svc_distance(A: np.ndarray, B: np.ndarray) -> float:
    """Twice the margin of SVC."""
    y = np.r_[np.ones(len(A)), -np.ones(len(B))]
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return 2 / float(np.linalg.norm(SVC(kernel="linear", C=1e6).fit(np.vstack([A, B]), y).coef_))


def measure_directions(vectors: Path, encoder: str) -> dict[str, object]:
    """The hyperplanes between all pairs of 46 overlapping labels in 768 dimensions."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((POINTS, DIMENSIONS))
    starts = np.linspace(0, POINTS, LABELS + 1).astype(np.int64)
    overlapping = [[other for other in range(LABELS) if other != label] for label in range(LABELS)]
    planes = []
    seconds = cpu_seconds(lambda: planes.append(_directions(Z, POINTS, starts, overlapping)[1]))
    return {"space": shape(Z), "seconds": seconds, "result": f"{len(planes[0])} hyperplanes"}


def measure_near(vectors: Path, encoder: str) -> dict[str, object]:
    """Two faces of 100 points each in 256 dimensions, farther from each other than tau by a millionth of it."""
    rng = np.random.default_rng(0)
    sides = rng.standard_normal((2, 250, 256))
    sides[:, 50:100] = -sides[:, :50]
    sides[:, :, 0] = np.array([[-1.0], [1.0]]) * rng.random((2, 250))
    sides[:, :100, 0] = 0
    sides /= np.sqrt(((sides - sides.mean(axis=(0, 1))) ** 2).sum(axis=2).mean())
    sides[1, :, 0] += NEAR
    A, B = sides @ np.linalg.qr(rng.standard_normal((256, 256)))[0]
    results = []
    seconds = cpu_seconds(lambda: results.append(separate(A, B, scale=1.0)))
    gap = results[0].gap / results[0].upper
    return {"space": "2 × 250 × 256", "seconds": seconds, "result": f"{results[0].verdict}, gap {gap:.2g}"}


def shape(X: np.ndarray) -> str:
    return f"{X.shape[0]:,} × {X.shape[1]}"


CASES: dict[str, Callable[[Path, str], dict[str, object]]] = {
    "separability": measure_separability,
    "distances": measure_distances,
    "directions": measure_directions,
    "near": measure_near,
}

if __name__ == "__main__":
    main()

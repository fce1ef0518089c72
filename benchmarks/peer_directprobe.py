"""The part of `peers.py` that measures clusters and distances with the code of DirectProbe's authors."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from peer_process import CORES, Job, alternate, load, python_with, times_of
from tables import table


def clusters(given: argparse.Namespace, scratch: Path) -> None:
    if given.directprobe is None:
        print("\nDirectProbe: skipped, no --directprobe CHECKOUT")
        return
    X, labels = load(given.vectors / f"{given.space}.npz")
    file = str(scratch / "points.npz")
    np.savez(file, X=X, y=np.unique(labels, return_inverse=True)[1])
    folder = str(given.directprobe)
    pythons = {"SVC": sys.executable, "Gurobi": python_with("gurobipy", given)}
    rows: list[list[object]] = []
    for part in ("clusters", "distances"):
        job = {"file": file, "part": part, "folder": folder, "scratch": str(scratch)}
        (ours,) = alternate(given.repeat, (sys.executable, {"job": "our clusters", **job}))
        for solver, python in pythons.items():
            if python is None or (part == "distances" and solver == "Gurobi"):  # its distances always use SVC
                continue
            (theirs,) = alternate(1, (python, {"job": "directprobe", "solver": solver, **job}))
            shape = f"{len(X):,} × {X.shape[1]}"
            rows.append([part, solver, shape, ours["value"], theirs["value"], *times_of(ours, theirs)])
        if part == "clusters" and ours["value"] > len(np.unique(labels)):
            break
    columns = ["", "its solver", "points", "ours", "theirs", "seconds", "DirectProbe", "work", "its work"]
    table(f"DirectProbe's code, {CORES} workers: {given.space}", [*columns, "ratio of work"], rows, digits=4)


def our_clusters(job: dict[str, Any]) -> Job:
    from closerlook.geometry import cluster, cluster_distances  # noqa: PLC0415

    X, y = np.load(job["file"]).values()
    clustering = cluster(X, y)
    if job["part"] == "clusters":
        return lambda: cluster(X, y), lambda result: {"value": result.n_clusters}
    return lambda: cluster_distances(X, clustering), lambda result: {
        "value": mean_distance(clustering.cluster_labels, result.between)
    }


def mean_distance(labels: Any, between: Callable[[int, int], tuple[float, float]]) -> float:
    pairs = [(a, b) for a in range(len(labels)) for b in range(a) if labels[a] != labels[b]]
    return float(np.mean([between(a, b)[1] for a, b in pairs]))


def directprobe(job: dict[str, Any]) -> Job:
    if job["solver"] == "SVC":
        stub = "class GRB: pass\ndef Model(name): raise RuntimeError('no licence')\n"
        (Path(job["scratch"]) / "gurobipy.py").write_text(stub, encoding="utf-8")
        sys.path.insert(0, job["scratch"])
    sys.path.insert(0, job["folder"])
    import torch  # noqa: PLC0415
    from directprobe import analyzer, space  # noqa: PLC0415
    from directprobe.clusters import Cluster  # noqa: PLC0415
    from directprobe.distanceQ import DistanceQ  # noqa: PLC0415
    from directprobe.probing import Probe  # noqa: PLC0415
    from joblib import Parallel  # noqa: PLC0415
    from joblib.externals.loky import get_reusable_executor  # noqa: PLC0415

    space.Parallel = analyzer.Parallel = lambda n_jobs, **options: Parallel(n_jobs=min(n_jobs, CORES), **options)
    X, y = np.load(job["file"]).values()
    config = SimpleNamespace(device=torch.device("cpu"), rate=0.01)
    probe = Probe(config)
    solver = "Gurobi" if probe.space.solver is space.Space.lp else "SVC"
    if solver != job["solver"]:
        raise RuntimeError(f"DirectProbe uses {solver}; expected {job['solver']}")

    def cluster() -> Any:
        singles = [Cluster([at], [label]) for at, label in enumerate(y.tolist())]
        return probe.probing(DistanceQ(config, X, singles, int(y.max()) + 1))

    def distances() -> Any:
        members = [Cluster(np.flatnonzero(y == label).tolist(), y[y == label].tolist()) for label in np.unique(y)]
        return analyzer.Analyzer().convex2convex(DistanceQ(config, X, members, int(y.max()) + 1))[0]

    def call() -> Any:
        result = cluster() if job["part"] == "clusters" else distances()
        get_reusable_executor().shutdown(wait=True)  # CPU time is counted only for processes that have ended
        return result

    def describe(result: Any) -> dict[str, Any]:
        return {"value": len(result) if job["part"] == "clusters" else float(np.mean(result))}

    return call, describe

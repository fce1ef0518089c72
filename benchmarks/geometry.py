"""Speed and memory of the geometry engine, compared with the prototype and with a peer in the same run.

    closerlook extract --encoder ENCODER --task pos ... --splits all --out FOLDER   (bert-tiny, bert-mini, bert-small)
    python benchmarks/geometry.py FOLDER [--only clusters,distances,hardest,prediction,growth,random,cold]
    python benchmarks/geometry.py FOLDER --only speed --before CHECKOUT    an earlier version and this one in turns
    python benchmarks/geometry.py FOLDER --audit     every layer of every task: counts, undecided verdicts, audit

Each space is clustered in a separate process, whose peak memory is read when it ends. Peers: scikit-learn's
`SVC(kernel="linear", C=1e6)` for distances and separability, and DirectProbe with a linear program of scipy for each
test (tests/geometry/plain.py) for clusters, on few points.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from tables import table

from closerlook.geometry import (
    audit,
    cluster,
    cluster_distances,
    label_distances,
    nearest_hulls,
    separate,
)
from closerlook.representations.space import Space

TASKS = ("pos", "dep", "ps-fxn", "ps-role", "trec-50")
LAYERS = {"bert-tiny": 2, "bert-mini": 4, "bert-small": 4}
WORKERS = len(os.sched_getaffinity(0))
PROTOTYPE = {
    ("bert-tiny", "pos"): 27.0,
    ("bert-tiny", "dep"): 12.0,
    ("bert-tiny", "ps-fxn"): 2.8,
    ("bert-tiny", "ps-role"): 1.5,
    ("bert-tiny", "trec-50"): 2.3,
}
SVC_TIMEOUT = 15  # seconds for one pair; the limit of iterations does not always stop SVC
AUDITED = ["labels", "clusters", "conflicts", "undecided", "separable", "conflicting", "blocked", "problems", "seconds"]
AUDITED += ["audit_seconds", "memory"]
SHUFFLED = ("clusters", "undecided", "seconds", "memory")
SPEED: dict[str, dict[str, object]] = {
    "pos bert-tiny 2": {"encoder": "bert-tiny", "task": "pos", "layer": 2},
    "pos bert-small 0": {"encoder": "bert-small", "task": "pos", "layer": 0},
    "normal 4k": {"gaussian": True, "n": 4000, "d": 128, "labels": 10},
    "pos 4k": {"encoder": "bert-tiny", "task": "pos", "layer": 2, "n": 4000},
    "pos 64k": {"encoder": "bert-tiny", "task": "pos", "layer": 2, "n": 64000},
    "pos 128k": {"encoder": "bert-tiny", "task": "pos", "layer": 2, "n": 128000},
    "blobs 1M": {"blobs": True, "n": 1_000_000, "d": 64, "labels": 20, "mislabelled": 0.0},
    "blobs 100k mislabelled": {"blobs": True, "n": 100_000, "d": 64, "labels": 20, "mislabelled": 0.05},
    "blobs 200k mislabelled": {"blobs": True, "n": 200_000, "d": 64, "labels": 20, "mislabelled": 0.05},
    "blobs 1M mislabelled": {"blobs": True, "n": 1_000_000, "d": 64, "labels": 20, "mislabelled": 0.05},
}
"""Cases of `--only speed`; those from 100,000 points on take minutes. Mislabelled: 5 % of the points."""
TARGETS = {"ps-role": 2.0, "trec-50": 2.0, ("bert-tiny", "pos"): 20.0, ("bert-tiny", "dep"): 20.0, "pos": 30.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--only", default="clusters,distances,hardest,prediction,growth,random,cold")
    parser.add_argument("--audit", action="store_true")
    parser.add_argument("--before", type=Path, help="checkout of an earlier version, with its library compiled")
    parser.add_argument("--cases", default=",".join(SPEED), help="cases of --only speed (default: all)")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        print(json.dumps(job(given.vectors, json.loads(given.job))))
        return
    if given.audit:
        audit_all(given.vectors)
        return
    print(f"{WORKERS} cores; times in seconds, memory in MB (peak of the process)")
    parts: dict[str, Callable[[Path], None]] = {
        "clusters": clusters,
        "distances": distances,
        "hardest": hardest,
        "prediction": prediction,
        "growth": growth,
        "random": random_labels,
        "cold": cold,
    }
    for name in given.only.split(","):
        if name == "speed":
            speed(given.vectors, given.before, given.cases.split(","))
        else:
            parts[name](given.vectors)


def load(vectors: Path, encoder: str, task: str, layer: int, split: str = "train") -> tuple[np.ndarray, np.ndarray]:
    space = Space.load(vectors / f"{encoder}-{task}-{split}-layer{layer}.npz")
    return space.X, np.array(space.labels)[space.y]


# ---- one measurement in a separate process ----


def job(vectors: Path, request: dict[str, object]) -> dict[str, object]:
    X, y = points(vectors, request)
    start = time.perf_counter()
    if request.get("svc"):
        distance = svc_distance(tuple(X[y == label].astype(np.float64) for label in request["svc"]), 50_000)
        return {"distance": distance, "seconds": time.perf_counter() - start}
    cpu = time.process_time()
    clustering = cluster(X, y, threads=request.get("threads"))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    numbers: dict[str, object] = {
        "cpu": cpu,
        "digest": hashlib.sha256(clustering.assignments.tobytes()).hexdigest(),
        "n": len(X),
        "d": X.shape[1],
        "clusters": clustering.n_clusters,
        "labels": clustering.n_labels,
        "conflicts": len(clustering.conflicts),
        "undecided": clustering.n_undecided,
        "seconds": seconds,
        "memory": peak(),
    }
    if request.get("distances"):
        start = time.perf_counter()
        label_distances(cluster_distances(X, clustering))
        numbers |= {"distance_seconds": time.perf_counter() - start, "memory": peak()}
    if request.get("audit"):
        start = time.perf_counter()
        proofs = audit(X, y, clustering)
        numbers |= {
            "audit_seconds": time.perf_counter() - start,
            "separable": proofs.separable,
            "conflicting": proofs.conflicting,
            "blocked": proofs.blocked,
            "problems": len(proofs.problems),
        }
    return numbers


def points(vectors: Path, request: dict[str, object]) -> tuple[np.ndarray, np.ndarray]:
    """The space of a job: loaded, enlarged by jittered copies, or with random labels."""
    if request.get("gaussian"):
        rng = np.random.default_rng(0)
        return rng.normal(size=(request["n"], request["d"])), rng.integers(0, request["labels"], request["n"])
    if request.get("blobs"):
        return blobs(request)
    X, y = load(vectors, request["encoder"], request["task"], request["layer"])
    n = request.get("n") or len(X)
    rng = np.random.default_rng(0)
    if n < len(X):
        rows = rng.permutation(len(X))[:n]
        X, y = X[rows], y[rows]
    elif n > len(X):
        radius = np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean())
        rows = np.arange(n) % len(X)
        noise = rng.normal(scale=0.05 * radius / np.sqrt(X.shape[1]), size=(n, X.shape[1]))
        noise[: len(X)] = 0
        X, y = (X[rows] + noise).astype(np.float32), y[rows]
    return X, (rng.permutation(y) if request.get("shuffled") else y)


def blobs(request: dict[str, object]) -> tuple[np.ndarray, np.ndarray]:
    """One normal cloud for each label; a share of the points gets a random label."""
    rng = np.random.default_rng(0)
    n, labels = request["n"], request["labels"]
    means = 3 * rng.normal(size=(labels, request["d"]))
    y = rng.integers(0, labels, n)
    X = (means[y] + rng.normal(size=(n, request["d"]))).astype(np.float32)
    wrong = rng.random(n) < request["mislabelled"]
    y[wrong] = rng.integers(0, labels, wrong.sum())
    return X, y


def peak() -> float:
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1000


def run(vectors: Path, *, source: Path | None = None, **request: object) -> dict[str, object]:
    """The result of a job in a new process; source: the folder of the package, by default the installed one."""
    environment = os.environ | ({"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"} if source else {})
    command = [sys.executable, __file__, str(vectors), "--job", json.dumps(request)]
    timeout = SVC_TIMEOUT if request.get("svc") else None
    return json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout, env=environment).stdout
    )


# ---- the tables ----


def clusters(vectors: Path) -> None:
    rows: list[list[object]] = []
    for encoder, last in LAYERS.items():
        for task in TASKS:
            for layer in range(last + 1) if task == "pos" else [last]:
                result = run(vectors, encoder=encoder, task=task, layer=layer)
                final = layer == last
                target = (TARGETS.get((encoder, task)) if final else None) or TARGETS.get(task, "")
                before = PROTOTYPE.get((encoder, task), "") if final else ""
                shape = f"{result['n']:,} × {result['d']}"
                rows.append(
                    [f"{encoder} {task} layer {layer}", shape]
                    + [result[key] for key in ("clusters", "conflicts", "undecided", "seconds")]
                    + [before, target, result["memory"]]
                )
    columns = ["space", "points", "clusters", "in conflict", "undecided", "seconds", "prototype", "target", "memory"]
    table("Clusters", columns, rows)
    peer_of_clusters(vectors)


def peer_of_clusters(vectors: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.geometry.plain import plain_cluster  # noqa: PLC0415 (only now can it be found)

    X, y = load(vectors, "bert-tiny", "pos", 2)
    rows: list[list[object]] = []
    for n in (60, 120):
        chosen = np.random.default_rng(0).permutation(len(X))[:n]
        start = time.perf_counter()
        ours = cluster(X[chosen], y[chosen])
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        plain = plain_cluster(X[chosen], y[chosen])
        theirs = time.perf_counter() - start
        same = (ours.assignments == plain.assignments).all()
        rows.append([n, seconds, theirs, theirs / seconds, "yes" if same else "NO"])
    columns = ["points", "seconds", "linear programs", "ratio", "same clusters"]
    table("Clusters compared with DirectProbe using linear programs (bert-tiny pos)", columns, rows)


def svc_distance(pair: tuple[np.ndarray, np.ndarray], steps: int = -1) -> float:
    """Twice the margin of SVC; steps: its largest number of iterations, unlimited by default."""
    A, B = pair
    y = np.r_[np.ones(len(A)), -np.ones(len(B))]
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return 2 / float(np.linalg.norm(SVC(kernel="linear", C=1e6, max_iter=steps).fit(np.vstack(pair), y).coef_))


def distances(vectors: Path) -> None:
    rows: list[list[object]] = []
    for encoder, layer in LAYERS.items():
        X, y = load(vectors, encoder, "ps-role", layer)
        result = cluster(X, y)
        seconds = best(lambda X=X, result=result: cluster_distances(X, result))
        ours = cluster_distances(X, result)
        members = result.members()
        pairs = list(combinations(range(len(members)), 2))
        sets = [(X[members[a]].astype(np.float64), X[members[b]].astype(np.float64)) for a, b in pairs]
        with ProcessPoolExecutor(WORKERS) as pool:
            list(pool.map(svc_distance, sets[:4]))  # start the processes before timing
            start = time.perf_counter()
            peer = list(pool.map(svc_distance, sets, chunksize=16))
            svc = time.perf_counter() - start
        between = [ours.between(a, b) for a, b in pairs]
        wrong = sum(
            not low * (1 - 1e-3) <= d <= high * (1 + 1e-3) for d, (low, high) in zip(peer, between, strict=True)
        )
        gap = max((high - low) / high for low, high in between)
        rows.append([encoder, len(pairs), seconds, svc, svc / seconds, gap, wrong])
    columns = ["encoder", "pairs", "seconds", "SVC", "ratio", "largest relative gap", "SVC wrong by 0.1 %"]
    table(
        f"All label distances of ps-role, and SVC with {WORKERS} workers (prototype 2; target: ratio 10)", columns, rows
    )


def best(call: Callable[[], object], times: int = 3) -> float:
    result = np.inf
    for _ in range(times):
        start = time.perf_counter()
        call()
        result = min(result, time.perf_counter() - start)
    return result


def hardest(vectors: Path) -> None:
    rows: list[list[object]] = []
    for encoder, layer in LAYERS.items():
        X, y = load(vectors, encoder, "pos", layer)
        for first, second in (("VERB", "NOUN"), ("PROPN", "NOUN")):
            A, B = X[y == first].astype(np.float64), X[y == second].astype(np.float64)
            decide = best(lambda A=A, B=B: separate(A, B, gap=None))
            measure = best(lambda A=A, B=B: separate(A, B))
            result = separate(A, B)
            rows.append([f"{encoder} {first}/{second}", f"{len(A):,} × {len(B):,}", result.verdict, result.distance])
            rows[-1] += [decide, measure, "yes" if result.verify(A, B) else "NO"]
            try:
                peer = run(vectors, encoder=encoder, task="pos", layer=layer, svc=(first, second))
                rows[-1] += [peer["distance"], peer["seconds"]]
            except subprocess.TimeoutExpired:
                rows[-1] += ["", f"over {SVC_TIMEOUT}"]
    columns = ["pair", "points", "verdict", "distance", "decided", "measured", "verified", "SVC's distance", "SVC"]
    title = (
        "The hardest label pairs, certificate included (prototype 0.25; target: under 0.3), and SVC with at most "
        "50,000 iterations"
    )
    table(title, columns, rows)


def prediction(vectors: Path) -> None:
    rows: list[list[object]] = []
    for encoder, layer in LAYERS.items():
        for task in ("pos", "ps-role", "dep"):
            X, y = load(vectors, encoder, task, layer)
            queries, truth = load(vectors, encoder, task, layer, "test")
            result = cluster(X, y)
            members = result.members()
            seconds = best(lambda X=X, m=members, q=queries: nearest_hulls(X, m, q), 1 if task != "ps-role" else 3)
            nearest, _ = nearest_hulls(X, members, queries)
            accuracy = float((np.array(result.cluster_labels)[nearest] == truth).mean())
            target = {"pos": 10.0, "ps-role": 0.5}.get(task, "")
            before = {"pos": 13.0, "ps-role": 0.4, "dep": 16.0}[task]
            rows.append([f"{encoder} {task}", f"{len(queries):,}", len(members), accuracy, seconds, before, target])
    columns = ["space", "test points", "hulls", "accuracy", "seconds", "prototype (MiniLM)", "target"]
    table("Prediction of all test points, set-up included", columns, rows)


def growth(vectors: Path) -> None:
    rows: list[list[object]] = []
    for n in (2000, 4000, 8000, 16000, 64000, 128000):
        result = run(vectors, encoder="bert-tiny", task="pos", layer=2, n=n, distances=True)
        rows.append(
            [f"{n:,}", *(result[key] for key in ("clusters", "undecided", "seconds", "distance_seconds", "memory"))]
        )
    columns = ["points", "clusters", "undecided", "clustering", "distances", "memory (target: under 6,000)"]
    table("Growth: bert-tiny pos, a part of it or jittered by 5 % of the radius", columns, rows)


def speed(vectors: Path, before: Path | None, cases: list[str]) -> None:
    """CPU seconds of this version and of an earlier one, in turns, with one and with two threads; the same clusters."""
    here = Path(__file__).parents[1] / "src"
    rows: list[list[object]] = []
    for name in cases:
        times = 3 if SPEED[name].get("n", 0) <= 20_000 else 1
        new, old, two = [], [], []
        for _ in range(times):
            new.append(run(vectors, source=here, threads=1, **SPEED[name]))
            two.append(run(vectors, source=here, threads=2, **SPEED[name]))
            if before:
                old.append(run(vectors, source=before / "src", threads=1, **SPEED[name]))
        after = min(result["cpu"] for result in new)
        earlier = min((result["cpu"] for result in old), default=np.nan)
        gain = min(result["seconds"] for result in new) / min(result["seconds"] for result in two)
        same = len({result["digest"] for result in [*new, *two, *old]}) == 1
        rows.append([name, new[0]["clusters"], new[0]["undecided"], earlier, after, earlier / after, gain])
        rows[-1] += [old[0]["memory"] if old else "", new[0]["memory"], "yes" if same else "NO"]
    columns = ["case", "clusters", "undecided", "CPU before", "CPU now", "ratio", "wall time, 1 / 2 threads"]
    columns += ["memory before", "memory now", "same clusters"]
    table("Speed of the merging, compared with an earlier version in the same run", columns, rows)


def random_labels(vectors: Path) -> None:
    rows: list[list[object]] = []
    for labels in (2, 10, 20):
        result = run(vectors, gaussian=True, n=4000, d=128, labels=labels)
        rows.append([f"normal, {labels} labels", *(result[key] for key in SHUFFLED)])
    result = run(vectors, encoder="bert-tiny", task="pos", layer=2, n=4000, shuffled=True)
    rows.append(["bert-tiny pos, shuffled", *(result[key] for key in SHUFFLED)])
    columns = ["4,000 × 128", "clusters", "undecided", "seconds", "memory"]
    table("Random labels (prototype: over 100 s; target: within 60 s)", columns, rows)


def cold(vectors: Path) -> None:
    """Time a first call with empty caches, as on a new machine, and the next one."""
    file = vectors / "bert-tiny-ps-role-train-layer2.npz"
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as home:
        for call in ("first", "second"):
            command = [sys.executable, "-m", "closerlook", "probe", str(file), "--json"]
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=os.environ | {"HOME": home})
            rows.append([call, time.perf_counter() - start])
    table("A cold first call of `closerlook probe` (target: at most 10 s more)", ["call", "seconds"], rows)


def audit_all(vectors: Path) -> None:
    rows: list[list[object]] = []
    for encoder, last in LAYERS.items():
        for task in TASKS:
            for layer in range(last + 1):
                result = run(vectors, encoder=encoder, task=task, layer=layer, audit=True)
                rows.append(
                    [encoder, task, layer, f"{result['n']:,} × {result['d']}", *(result[key] for key in AUDITED)]
                )
                print(encoder, task, layer, result, file=sys.stderr, flush=True)
    columns = [
        "encoder",
        "task",
        "layer",
        "points",
        "labels",
        "clusters",
        "in conflict",
        "undecided",
    ]
    columns += ["proved separable", "pairs in conflict", "proved blocked", "problems", "seconds", "audit", "memory"]
    table("Every layer of every task", columns, rows)


if __name__ == "__main__":
    main()

"""Speed and memory of the panel of a space, each measure compared with a peer in the same run.

    python benchmarks/panel.py FILE.npz [OTHER.npz] [--role FILE.npz]
    python benchmarks/panel.py FILE.npz OTHER.npz --against CHECKOUT [--rows N]

FILE and OTHER: two spaces with the same rows (without OTHER, FILE reversed and with noise). --role: a space with many
labels, for the shuffles. Times are in seconds: wall-clock time, and CPU time of all cores, which a busy machine
distorts less. Peers that need n × n numbers get a subset of the rows, and so does the measure compared with them. Peak
memory is that of a separate process. scikit-dimension and rsatoolbox are skipped if they are not installed.

--against: only compare with the code in another checkout, whose kernels are compiled: CPU seconds, peak memory and
values of the panel without clusters and of point similarity, as in a study, with one thread. The two take turns three
times, and the best of each counts. --rows: a random subset of the rows.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.metrics import silhouette_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from tables import table

from closerlook.geometry import (
    cluster,
    cluster_distances,
    collapse,
    isotropy,
    label_distances,
    largest_cluster_shares,
    overlaps,
    participation_ratio,
    separability,
    spatial_similarity,
    two_nn,
)
from closerlook.geometry.fit import gdv, logme, silhouette
from closerlook.geometry.point_similarity import linear_cka, procrustes, rsa, shared_neighbours
from closerlook.representations.space import Space

PART = 4000
FEW = 1000
PAIRS = 40
MEMORY = """
import sys
from pathlib import Path
import numpy as np
from closerlook.geometry import collapse, compare_points, isotropy, label_fit, overlaps, two_nn
from closerlook.representations.space import Space
if sys.argv[1:]:
    space = Space.load(Path(sys.argv[1]))
    A, y = space.X.astype(np.float64), space.label_names
else:
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(20_000, 64)), rng.integers(0, 40, 20_000)
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1000
B = A[:, ::-1] + 1
before = peak()
compare_points(A, B), label_fit(A, y), two_nn(A), collapse(A, y), isotropy(A)
print(before, peak())
"""

CELLS = """
import json, sys, time
from pathlib import Path
import numpy as np
from closerlook.geometry import compare_points, describe_space
from closerlook.representations.space import Space
a, b = (Space.load(Path(file)) for file in sys.argv[1:3])
rows = np.sort(np.random.default_rng(0).permutation(a.n)[: int(sys.argv[3]) or a.n])
A, B, y = a.X[rows], b.X[rows], a.label_names[rows]
del a, b
describe_space(A[:300], y[:300], clusters=False, threads=1)  # imports
compare_points(A[:300], B[:300], threads=1)
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1000
def measured(call):
    Path("/proc/self/clear_refs").write_text("5")  # the peak is from here on
    before, start = peak(), time.process_time()
    values = call()
    return {"seconds": time.process_time() - start, "memory": peak() - before, "values": values}
print(json.dumps({
    "panel": measured(lambda: describe_space(A, y, clusters=False, threads=1).flat()),
    "point similarity": measured(lambda: compare_points(A, B, threads=1).to_dict()),
}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("other", type=Path, nargs="?")
    parser.add_argument("--role", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rows", type=int, default=0)
    given = parser.parse_args()
    if given.against:
        against(given.against, given.file, given.other or given.file, given.rows)
        return
    A, y = load(given.file)
    B = load(given.other)[0] if given.other else A[:, ::-1] + np.random.default_rng(0).normal(size=A.shape)
    busy = os.getloadavg()[0]
    print(f"{given.file.name}: {A.shape[0]:,} × {A.shape[1]}, {len(np.unique(y))} labels; ", end="")
    print(f"{len(os.sched_getaffinity(0))} cores, load {busy:.1f} at the start")
    whole(A, B, y)
    peers(A, B, y)
    if given.role:
        shuffles(*load(given.role), given.role.name)
    memory(given.file)


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    space = Space.load(path)
    return space.X.astype(np.float64), space.label_names


def timed(call: Callable[[], object]) -> tuple[object, float, float]:
    """The result, the wall-clock seconds, and the CPU seconds of all cores."""
    clock, work = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - clock, time.process_time() - work


# ---- another checkout ----


def against(checkout: Path, file: Path, other: Path, rows: int) -> None:
    trees = {"checkout": checkout, "here": Path(__file__).resolve().parents[1]}
    runs: dict[str, list[dict[str, dict[str, Any]]]] = {name: [] for name in trees}
    for _ in range(3):
        for name, tree in trees.items():
            environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
            command = [sys.executable, "-c", CELLS, str(file), str(other), str(rows)]
            ran = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
            runs[name].append(json.loads(ran.stdout))
    lines: list[list[object]] = []
    for cell in runs["here"][0]:
        before, after = (min(run[cell]["seconds"] for run in runs[name]) for name in trees)
        memory = [min(run[cell]["memory"] for run in runs[name]) for name in trees]
        old, new = (runs[name][0][cell]["values"] for name in trees)
        apart = max(abs(new[key] - old[key]) / (abs(old[key]) or 1) for key in old if old[key] == old[key])
        lines.append([cell, before, after, before / after, *memory, f"{apart:.1e}"])
    columns = ["cell", "checkout", "here", "ratio", "checkout: MB", "here: MB", "largest relative difference"]
    table("Compared with another checkout: CPU seconds with one thread, memory added", columns, lines)


# ---- the panel ----


def whole(A: np.ndarray, B: np.ndarray, y: np.ndarray) -> None:
    clusters, clock, work = timed(lambda: cluster(A, y))
    single: dict[str, Callable[[], object]] = {
        "collapse": lambda: collapse(A, y),
        "participation ratio": lambda: participation_ratio(A),
        "TwoNN": lambda: two_nn(A),
        "isotropy": lambda: isotropy(A),
        "LogME": lambda: logme(A, y),
        "GDV": lambda: gdv(A, y),
        "silhouette": lambda: silhouette(A, y),
        "largest shares": lambda: largest_cluster_shares(clusters),
        "overlaps": lambda: overlaps(A, y),
    }
    pair: dict[str, Callable[[], object]] = {
        "CKA": lambda: linear_cka(A, B),
        "Procrustes": lambda: procrustes(A, B),
        "RSA": lambda: rsa(A, B),
        "shared neighbours": lambda: shared_neighbours(A, B),
    }
    rows: list[list[object]] = []
    for name, parts in (("one space", single), ("a pair", pair)):
        times = [[part, *timed(call)[1:]] for part, call in parts.items()]
        rows += [*times, [f"**{name}**", sum(row[1] for row in times), sum(row[2] for row in times)]]
    total = [rows[len(single)][at] + rows[-1][at] for at in (1, 2)]
    rows.append(["**both (target: under 30 on two idle cores)**", *total])
    rows.append(["for comparison: the clusters", clock, work])
    table("The whole panel, without nulls", ["measure", "seconds", "CPU seconds of all cores"], rows)


# ---- peers ----


def peers(A: np.ndarray, B: np.ndarray, y: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    part, few = (np.sort(rng.permutation(len(A))[:n]) for n in (min(PART, len(A)), min(FEW, len(A))))
    a, b = A[part], B[part]
    rows = [
        compare("silhouette: scikit-learn", len(A), lambda: silhouette(A, y), lambda: silhouette_score(A, y)),
        compare("TwoNN: NearestNeighbors", len(A), lambda: two_nn(A), lambda: two_nn_by_search(A)),
        compare("shared neighbours: NearestNeighbors", len(A), lambda: shared_neighbours(A, B), lambda: shared(A, B)),
        compare("LogME: SVD of all rows", len(A), lambda: logme(A, y), lambda: np.linalg.svd(A, full_matrices=False)),
        compare("RSA: spearmanr of pdist", len(a), lambda: rsa(a, b), lambda: spearmanr(pdist(a), pdist(b)).statistic),
        compare("CKA: n × n kernels", len(a), lambda: linear_cka(a, b), lambda: kernel_cka(a, b)),
    ]
    if importlib.util.find_spec("skdim"):
        rows.append(compare("TwoNN: scikit-dimension", len(a), lambda: two_nn(a), lambda: skdim_two_nn(a)))
    if importlib.util.find_spec("rsatoolbox"):
        c, d = A[few], B[few]
        rows.append(compare("RSA: rsatoolbox", len(c), lambda: rsa(c, d), lambda: rsatoolbox_rsa(c, d)))
    columns = [
        "measure: peer",
        "rows",
        "ours",
        "theirs",
        "seconds",
        "peer",
        "ratio",
        "work",
        "peer's work",
        "ratio of work",
    ]
    table("Compared with peers", columns, rows, digits=4)


def compare(name: str, n: int, ours: Callable[[], object], theirs: Callable[[], object]) -> list[object]:
    value, clock, work = timed(ours)
    peer, their_clock, their_work = timed(theirs)
    shown = peer if isinstance(peer, float) else ""
    return [name, f"{n:,}", value, shown, clock, their_clock, their_clock / clock, work, their_work, their_work / work]


def two_nn_by_search(X: np.ndarray) -> float:
    near = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(X).kneighbors()[0]
    ratio = np.sort(near[:, 1] / np.maximum(near[:, 0], 1e-300))[: int(0.9 * len(X))]
    logs, share = np.log(ratio), -np.log(1 - np.arange(1, len(ratio) + 1) / len(X))
    return float(logs @ share / (logs @ logs))


def shared(A: np.ndarray, B: np.ndarray, k: int = 10) -> float:
    near = [NearestNeighbors(n_neighbors=k, algorithm="brute").fit(X).kneighbors(return_distance=False) for X in (A, B)]
    same = np.array([len(np.intersect1d(x, z)) for x, z in zip(*near, strict=True)])
    return float(np.mean(same / (2 * k - same)))


def kernel_cka(A: np.ndarray, B: np.ndarray) -> float:
    def hsic(K: np.ndarray, L: np.ndarray) -> float:
        n = len(K)
        sums = K.sum() * L.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * K.sum(axis=0) @ L.sum(axis=0)
        return float(((K * L).sum() + sums) / (n * (n - 3)))

    K, L = ((X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T for X in (A, B))
    np.fill_diagonal(K, 0)
    np.fill_diagonal(L, 0)
    return hsic(K, L) / math.sqrt(hsic(K, K) * hsic(L, L))


def skdim_two_nn(X: np.ndarray) -> float:
    import skdim  # noqa: PLC0415 (where it is installed)

    with warnings.catch_warnings(action="ignore"):
        return float(skdim.id.TwoNN().fit(X).dimension_)


def rsatoolbox_rsa(A: np.ndarray, B: np.ndarray) -> float:
    from rsatoolbox.data import Dataset  # noqa: PLC0415 (where it is installed)
    from rsatoolbox.rdm import calc_rdm, compare  # noqa: PLC0415

    with warnings.catch_warnings(action="ignore"):
        rdms = [calc_rdm(Dataset(X), method="euclidean") for X in (A, B)]
        return float(compare(*rdms, method="spearman")[0, 0])


# ---- shuffled labels ----


def shuffles(X: np.ndarray, y: np.ndarray, name: str) -> None:
    clustering = cluster(X, y)
    distances = label_distances(cluster_distances(X, clustering))
    rows: list[list[object]] = []
    _, clock, work = timed(lambda: spatial_similarity(distances, distances, permutations=200, resamples=0))
    rows.append([f"200 relabellings of {clustering.n_labels} labels", "1", clock, work])
    _, clock, work = timed(lambda: separability(X, y, shuffles=20))
    rows.append([f"separability, 20 shuffles of {len(X):,} × {X.shape[1]}", "60", clock, work])
    overlapping, clock, work = timed(lambda: overlaps(X, y))
    rows.append([f"{len(overlapping)} overlaps", "", clock, work])
    pairs = overlapping[:PAIRS]
    _, clock, work = timed(lambda: [soft_margin(X[np.isin(y, [pair.first, pair.second])], pair, y) for pair in pairs])
    rows.append([f"LinearSVC on the first {len(pairs)} of them", "", clock, work])
    table(f"Shuffled and permuted labels: {name}", ["", "target: under", "seconds", "CPU seconds of all cores"], rows)


def soft_margin(X: np.ndarray, pair: object, y: np.ndarray) -> None:
    positive = y[np.isin(y, [pair.first, pair.second])] == pair.first
    with warnings.catch_warnings(action="ignore"):
        LinearSVC(C=10.0, dual=False, tol=1e-6, max_iter=5000).fit(StandardScaler().fit_transform(X), positive)


def memory(file: Path) -> None:
    rows: list[list[object]] = []
    for name, arguments in (("20,000 × 64 and 40 labels", []), (file.name, [str(file)])):
        ran = subprocess.run([sys.executable, "-c", MEMORY, *arguments], check=True, capture_output=True, text=True)
        before, after = map(float, ran.stdout.split())
        rows.append([name, before, after, after - before])
    columns = ["space, with a reversed copy", "before", "peak", "added (target: under 1,000)"]
    table("Memory of the panel and of point similarity, in MB", columns, rows)


if __name__ == "__main__":
    main()

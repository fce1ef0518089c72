"""Closer Look compared with its peers: the same job on the same input, alternating, each in a separate process.

    python benchmarks/peers.py FOLDER [--python PYTHON]... [--directprobe CHECKOUT]
                               [--only extraction,probe,rsa,clusters] [--repeat 3] [--space NAME]

FOLDER: the folder that `closerlook extract --out` wrote. PYTHON: an interpreter that has a peer (NeuroX, rsatoolbox).
Each peer runs in the first interpreter that can import it; a peer that none can import is skipped with a message.
CHECKOUT: a checkout of github.com/utahnlp/DirectProbe; without Gurobi it uses scikit-learn's SVC, as it does without a
licence. NAME: the file to cluster, without its ending; distances are measured if its labels are separable.

Imports and a small first call are not timed. Seconds are wall-clock time. *Work* is CPU time of all cores and child
processes, which a busy machine distorts less; ratios are work of the peer over ours, each the smallest of several
rounds. All libraries use one thread of linear algebra, as small steps such as NeuroX's waste CPU time on several.
Memory is the increase of the peak memory of the process by the call.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from tables import table

ENCODER = Path(__file__).parents[1] / "src/closerlook/encoders/embedded/bert-tiny"
CORES = len(os.sched_getaffinity(0))
VERSIONS = """
import sys
from importlib.metadata import distributions
installed = {package.name: package.version for package in distributions()}
shown = (sys.argv[1], "numpy", "scipy", "torch", "transformers")
print(", ".join(f"{name} {installed[name]}" for name in shown if name in installed))
"""
ROWS = (500, 1000, 2000, 4000)
Job = tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]
"""The call that is timed, and a function that describes its result."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--directprobe", type=Path)
    parser.add_argument("--only", default="extraction,probe,rsa,clusters")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--space", default="bert-tiny-ps-role-train-layer2")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        print(json.dumps(measured(json.loads(given.job))))
        return
    print(f"{CORES} cores, load {os.getloadavg()[0]:.1f} at the start; Python {sys.version.split()[0]}")
    parts = {"extraction": extraction, "probe": probe, "rsa": rsa, "clusters": clusters}
    for name in given.only.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            parts[name](given, Path(scratch))


# ---- one measurement in a separate process ----


def measured(job: dict[str, Any]) -> dict[str, Any]:
    with contextlib.redirect_stdout(sys.stderr):  # NeuroX prints every sentence
        call, describe = JOBS[job["job"]](job)
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
    command = [python, __file__, "-", "--job", json.dumps(job)]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    ran = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | threads)
    if ran.returncode:
        sys.exit(f"{job['job']} with {python} failed:\n{ran.stderr[-2000:]}")
    return json.loads(ran.stdout)


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


# ---- extraction: NeuroX ----


def extraction(given: argparse.Namespace, scratch: Path) -> None:
    import closerlook  # noqa: PLC0415 (a peer's interpreter, which runs this file too, does not have it)

    python = python_with("neurox", given)
    if python is None:
        return
    in_single_precision(ENCODER, scratch / ENCODER.name)
    task = closerlook.load_task("toy-pos")
    for split in ("train", "test"):
        texts = "".join(" ".join(words) + "\n" for words in task.split(split).texts)
        (scratch / f"{split}.txt").write_text(texts, encoding="utf-8")
    ours, theirs = alternate(
        given.repeat,
        (sys.executable, {"job": "our extraction", "scratch": str(scratch)}),
        (python, {"job": "neurox extraction", "scratch": str(scratch)}),
    )
    train = task.split("train")
    first = np.cumsum([0, *map(len, train.texts)])
    rows = first[train.sentence] + train.positions[:, 0]
    gap = np.abs(np.load(scratch / "ours.npy") - np.load(scratch / "theirs.npy")[:, rows]).max()
    columns = ["sentences", "words", "layers", "seconds", "NeuroX", "work", "NeuroX's work", "ratio of work"]
    counts = [len(train.texts), f"{len(train):,}", ours["layers"]]
    table(
        "Extraction of toy-pos with bert-tiny, all layers",
        [*columns, "largest difference"],
        [[*counts, *times_of(ours, theirs), float(gap)]],
    )


def in_single_precision(encoder: Path, copy: Path) -> None:
    """Copy the encoder in float32: its file is float16, which Closer Look converts and NeuroX would compute in."""
    import torch  # noqa: PLC0415
    from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415

    AutoModel.from_pretrained(encoder, dtype=torch.float32).save_pretrained(copy)
    AutoTokenizer.from_pretrained(encoder).save_pretrained(copy)


def times_of(ours: dict[str, Any], theirs: dict[str, Any]) -> list[object]:
    return [ours["seconds"], theirs["seconds"], ours["work"], theirs["work"], theirs["work"] / ours["work"]]


def our_extraction(job: dict[str, Any]) -> Job:
    import closerlook  # noqa: PLC0415

    folder = Path(job["scratch"])

    def extract(split: str) -> list[Any]:
        return closerlook.extract(
            str(folder / ENCODER.name), "toy-pos", splits=split, store=tempfile.mkdtemp(dir=folder)
        )

    def describe(spaces: list[Any]) -> dict[str, Any]:
        np.save(folder / "ours.npy", np.stack([space.X for space in spaces]))
        return {"layers": len(spaces)}

    extract("test")
    return lambda: extract("train"), describe


def neurox_extraction(job: dict[str, Any]) -> Job:
    import h5py  # noqa: PLC0415
    from neurox.data.extraction.transformers_extractor import extract_representations  # noqa: PLC0415

    folder = Path(job["scratch"])

    def extract(split: str) -> Path:
        out = folder / f"{split}.hdf5"
        options = {"aggregation": "average", "output_type": "hdf5"}
        extract_representations(str(folder / ENCODER.name), str(folder / f"{split}.txt"), str(out), **options)
        return out

    def describe(out: Path) -> dict[str, Any]:
        with h5py.File(out) as file:
            np.save(folder / "theirs.npy", np.concatenate([file[str(at)] for at in range(len(file) - 1)], axis=1))
        return {}

    extract("test")
    return lambda: extract("train"), describe


# ---- a linear probe: NeuroX ----


def probe(given: argparse.Namespace, scratch: Path) -> None:
    python = python_with("neurox", given)
    if python is None:
        return
    rows: list[list[object]] = []
    for name, layer in (("bert-tiny-ps-role", 2), ("bert-small-pos", 4)):
        train, test = (load(given.vectors / f"{name}-{split}-layer{layer}.npz") for split in ("train", "test"))
        labels = list(np.unique(train[1]))
        known = {label: at for at, label in enumerate(labels)}
        y, y_test = (np.array([known.get(label, -1) for label in part[1]]) for part in (train, test))
        np.savez(scratch / "probe.npz", X=train[0], y=y, X_test=test[0], y_test=y_test)
        file = str(scratch / "probe.npz")
        ours, five, theirs = alternate(
            given.repeat,
            (sys.executable, {"job": "our probe", "file": file, "seeds": 1}),
            (sys.executable, {"job": "our probe", "file": file, "seeds": 5}),
            (python, {"job": "neurox probe", "file": file}),
        )
        shape = f"{len(y):,} × {train[0].shape[1]}, {len(labels)} labels"
        for seeds, own in (("1 and 1", ours), ("5 and 1", five)):
            rows.append(
                [f"{name} layer {layer}", shape, seeds, own["accuracy"], theirs["accuracy"], *times_of(own, theirs)]
            )
    columns = ["space", "train", "networks", "accuracy", "NeuroX's", "seconds", "NeuroX", "work", "NeuroX's work"]
    table("A linear probe, each with its own defaults", [*columns, "ratio of work"], rows)


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from closerlook.representations.space import Space  # noqa: PLC0415

    space = Space.load(path)
    return space.X, space.label_names


def our_probe(job: dict[str, Any]) -> Job:
    from closerlook.probes import probe_grid  # noqa: PLC0415

    data = dict(np.load(job["file"]))
    train, test = (data["X"], data["y"]), (data["X_test"], data["y_test"])
    probe_grid((data["X"][:500], data["y"][:500]), test, sizes=[()], seeds=1)
    return lambda: probe_grid(train, test, sizes=[()], seeds=job["seeds"]), lambda result: {"accuracy": result.mean}


def neurox_probe(job: dict[str, Any]) -> Job:
    import torch  # noqa: PLC0415
    from neurox.interpretation.linear_probe import evaluate_probe, train_logistic_regression_probe  # noqa: PLC0415

    data = dict(np.load(job["file"]))
    torch.manual_seed(0)

    def fit(X: np.ndarray, y: np.ndarray) -> float:
        trained = train_logistic_regression_probe(X, y)
        return float(evaluate_probe(trained, data["X_test"], data["y_test"])["__OVERALL__"])

    fit(data["X"][:500], np.arange(500) % 2)
    return lambda: fit(data["X"], data["y"]), lambda accuracy: {"accuracy": accuracy}


# ---- RSA: rsatoolbox ----


def rsa(given: argparse.Namespace, scratch: Path) -> None:
    A, B = (load(given.vectors / f"bert-small-pos-train-layer{layer}.npz")[0] for layer in (4, 3))
    python = python_with("rsatoolbox", given)
    order = np.random.default_rng(0).permutation(len(A))
    rows: list[list[object]] = []
    for n in (*ROWS, len(A)):
        file, chosen = str(scratch / "rsa.npz"), np.sort(order[:n])
        np.savez(file, A=A[chosen].astype(np.float64), B=B[chosen].astype(np.float64))
        own = (sys.executable, {"job": "our rsa", "file": file})
        if python is None or n == len(A):
            (ours,) = alternate(1, own)
            theirs_by_squares = f"{rows[-1][-1] * (n / ROWS[-1]) ** 2:,.0f} by n²" if python else ""
            blank = ["", ours["seconds"], "", ours["work"], "", ""]
            rows.append([f"{n:,}", ours["value"], *blank, ours["memory"], theirs_by_squares])
            continue
        ours, theirs = alternate(given.repeat, own, (python, {"job": "rsatoolbox rsa", "file": file}))
        rows.append(
            [f"{n:,}", ours["value"], theirs["value"], *times_of(ours, theirs), ours["memory"], theirs["memory"]]
        )
    columns = ["rows", "ours", "theirs", "seconds", "rsatoolbox", "work", "its work", "ratio of work", "MB", "its MB"]
    table(
        "RSA of bert-small pos, layers 4 and 3: Euclidean, Spearman",
        columns,
        rows,
        digits=4,
    )


def our_rsa(job: dict[str, Any]) -> Job:
    from closerlook.geometry.point_similarity import rsa as correlation  # noqa: PLC0415

    A, B = np.load(job["file"]).values()
    correlation(A[:100], B[:100])
    return lambda: correlation(A, B), lambda value: {"value": value}


def rsatoolbox_rsa(job: dict[str, Any]) -> Job:
    from rsatoolbox.data import Dataset  # noqa: PLC0415
    from rsatoolbox.rdm import calc_rdm, compare  # noqa: PLC0415

    A, B = np.load(job["file"]).values()

    def correlation(n: int | None) -> float:
        rdms = [calc_rdm(Dataset(X[:n]), method="euclidean") for X in (A, B)]
        return float(compare(*rdms, method="spearman")[0, 0])

    correlation(100)
    return lambda: correlation(None), lambda value: {"value": value}


# ---- clusters and distances: DirectProbe's own code ----


def clusters(given: argparse.Namespace, scratch: Path) -> None:
    if given.directprobe is None:
        print("\nDirectProbe: skipped, no --directprobe CHECKOUT")
        return
    X, labels = load(given.vectors / f"{given.space}.npz")
    file = str(scratch / "points.npz")
    np.savez(file, X=X, y=np.unique(labels, return_inverse=True)[1])
    folder = str(given.directprobe)
    rows: list[list[object]] = []
    for part in ("clusters", "distances"):
        job = {"file": file, "part": part, "folder": folder, "scratch": str(scratch)}
        (ours,) = alternate(given.repeat, (sys.executable, {"job": "our clusters", **job}))
        (theirs,) = alternate(1, (sys.executable, {"job": "directprobe", **job}))
        rows.append([part, f"{len(X):,} × {X.shape[1]}", ours["value"], theirs["value"], *times_of(ours, theirs)])
        if part == "clusters" and ours["value"] > len(np.unique(labels)):
            break
    columns = ["", "points", "ours", "theirs", "seconds", "DirectProbe", "work", "its work", "ratio of work"]
    table(f"DirectProbe's code, {theirs['solver']}, {CORES} workers: {given.space}", columns, rows, digits=4)


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
    if importlib.util.find_spec("gurobipy") is None:
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
    solver = "with Gurobi" if probe.space.solver is space.Space.lp else "without Gurobi (SVC)"

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
        return {"value": len(result) if job["part"] == "clusters" else float(np.mean(result)), "solver": solver}

    return call, describe


JOBS: dict[str, Callable[[dict[str, Any]], Job]] = {
    "our extraction": our_extraction,
    "neurox extraction": neurox_extraction,
    "our probe": our_probe,
    "neurox probe": neurox_probe,
    "our rsa": our_rsa,
    "rsatoolbox rsa": rsatoolbox_rsa,
    "our clusters": our_clusters,
    "directprobe": directprobe,
}


if __name__ == "__main__":
    main()

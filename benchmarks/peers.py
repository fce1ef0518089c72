"""Closer Look compared with its peers: the same job on the same input, alternating, each in a separate process.

    python benchmarks/peers.py FOLDER [--python PYTHON]... [--directprobe CHECKOUT] [--encoder ENCODER]... [--data DATA]
                               [--only extraction,probe,rsa,ranking,clusters] [--repeat 3] [--space NAME]

FOLDER: the folder that `closerlook extract --out` wrote. PYTHON: an interpreter that has a peer (NeuroX, rsatoolbox,
TransformerRanker). Each peer runs in the first interpreter that can import it; a peer that none can import is skipped
with a message. ENCODER: the folder of an encoder to rank (default: the built-in one). DATA: the folder with the corpus
of trec-50, the task of the ranking (without it: toy-question). CHECKOUT: a checkout of github.com/utahnlp/DirectProbe,
measured with scikit-learn's SVC, which it uses without Gurobi, and with Gurobi if a PYTHON has gurobipy. NAME: the file
to cluster, without its ending; distances are measured if its labels are separable.

Imports and a small first call are not timed. Seconds are wall-clock time. *Work* is CPU time of all cores and child
processes, which a busy machine distorts less; ratios are work of the peer over ours, each the smallest of several
rounds. All libraries use one thread of linear algebra, as small steps such as NeuroX's waste CPU time on several.
Memory is the increase of the peak memory of the process by the call.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from peer_directprobe import clusters, directprobe, our_clusters
from peer_process import CORES, Job, alternate, in_single_precision, load, measured, python_with, times_of
from peer_ranking import our_logme, our_logme_ranking, our_rank, ranker_logme, ranker_ranking, ranking
from tables import table

ENCODER = Path(__file__).parents[1] / "src/closerlook/encoders/embedded/bert-tiny"
ROWS = (500, 1000, 2000, 4000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--directprobe", type=Path)
    parser.add_argument("--encoder", action="append", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default="extraction,probe,rsa,ranking,clusters")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--space", default="bert-tiny-ps-role-train-layer2")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        job = json.loads(given.job)
        print(json.dumps(measured(JOBS[job["job"]], job)))
        return
    given.encoder = given.encoder or [ENCODER]
    print(f"{CORES} cores, load {os.getloadavg()[0]:.1f} at the start; Python {sys.version.split()[0]}")
    parts = {"extraction": extraction, "probe": probe, "rsa": rsa, "ranking": ranking, "clusters": clusters}
    for name in given.only.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            parts[name](given, Path(scratch))


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


JOBS: dict[str, Callable[[dict[str, Any]], Job]] = {
    "our extraction": our_extraction,
    "neurox extraction": neurox_extraction,
    "our probe": our_probe,
    "neurox probe": neurox_probe,
    "our rsa": our_rsa,
    "rsatoolbox rsa": rsatoolbox_rsa,
    "our logme": our_logme,
    "ranker logme": ranker_logme,
    "our logme ranking": our_logme_ranking,
    "our rank": our_rank,
    "ranker ranking": ranker_ranking,
    "our clusters": our_clusters,
    "directprobe": directprobe,
}


if __name__ == "__main__":
    main()

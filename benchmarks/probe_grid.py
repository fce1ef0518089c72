"""Time of the grid of classifier probes, compared with scikit-learn's MLPClassifier on the same grid, and its memory.

    closerlook extract --encoder ENCODER --task ps-role --task pos ... --splits all --out FOLDER
    python benchmarks/probe_grid.py TRAIN.npz TEST.npz              both over 16 sizes x 5 seeds, on all cores
    python benchmarks/probe_grid.py TRAIN.npz TEST.npz --memory     ours alone: seconds, peak memory of the process
    python benchmarks/probe_grid.py --folder FOLDER --encoder bert-small --device cuda
                                                                    all layers of five tasks, each task as one batch

scikit-learn runs with its default settings and standardised inputs. Eight of its 80 fits (or --fits) are timed, with
each width equally often in either layer. One fit runs on each core at a time, and the total is scaled to 80 fits.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import tables

show = partial(tables.table, digits=4)
TASKS = ("pos", "dep", "ps-role", "ps-fxn", "trec-50")
SAMPLE = ((32, 32), (32, 128), (64, 64), (64, 256), (128, 32), (128, 128), (256, 64), (256, 256))
WORKERS = len(os.sched_getaffinity(0))
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path, nargs="?")
    parser.add_argument("test", type=Path, nargs="?")
    parser.add_argument(
        "--fits",
        type=int,
        default=len(SAMPLE),
        help="number of fits of scikit-learn to time",
    )
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--encoder", default="bert-small")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--job", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        print(json.dumps(whole_grid(given.train, given.test, given.device)))
    elif given.folder:
        whole_encoder(given.folder, given.encoder, given.device)
    elif given.train is None or given.test is None:
        parser.error("TRAIN.npz and TEST.npz, or --folder FOLDER, are needed")
    elif given.memory:
        ours = run(given.train, given.test, given.device)
        columns = ["train", "seconds", "accuracy of the chosen sizes", "peak memory, MB (target: under 2,000)"]
        show("The whole grid", columns, [[ours["shape"], ours["seconds"], ours["chosen"], ours["memory"]]])
    else:
        compare_with_scikit_learn(given.train, given.test, given.device, given.fits)


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path) as arrays:
        y = arrays["y"]
        return arrays["X"], arrays["labels"][y] if "labels" in arrays.files else y


# ---- ours, in a separate process ----


def whole_grid(train: Path, test: Path, device: str) -> dict[str, object]:
    from closerlook.probes import probe_grid  # noqa: PLC0415 (the peer's processes need no torch)

    points, held_out = load(train), load(test)
    start = time.perf_counter()
    result = probe_grid(points, held_out, device=device)
    seconds = time.perf_counter() - start
    sizes = {str(sizes): result.accuracy[at].tolist() for at, sizes in enumerate(result.sizes)}
    shape = f"{result.n_train:,} × {result.d}, {len(result.labels)} labels"
    return {"seconds": seconds, "memory": peak(), "accuracy": sizes, "chosen": result.mean, "shape": shape}


def peak() -> float:
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1000


def run(train: Path, test: Path, device: str) -> dict[str, object]:
    command = [sys.executable, __file__, str(train), str(test), "--device", device, "--job"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


# ---- the peer ----


def compare_with_scikit_learn(train: Path, test: Path, device: str, fits: int) -> None:
    ours = run(train, test, device)
    os.environ.update(ONE_THREAD)
    jobs = [(train, test, SAMPLE[at % len(SAMPLE)], (at + at // len(SAMPLE)) % 5) for at in range(fits)]
    with ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(warm_up, range(2 * WORKERS)))  # start the processes before timing
        start = time.perf_counter()
        peer = list(pool.map(fit, jobs, chunksize=1))
        wall = time.perf_counter() - start
    scaled = wall * 80 / len(jobs)
    rows: list[list[object]] = []
    for (_, _, sizes, seed), (accuracy, seconds) in zip(jobs, peer, strict=True):
        rows.append(
            [" × ".join(map(str, sizes)), seed, seconds, accuracy, float(np.mean(ours["accuracy"][str(sizes)]))]
        )
    show(f"{fits} fits of scikit-learn", ["sizes", "seed", "seconds", "accuracy", "ours, mean of 5 seeds"], rows)
    theirs, same = (float(np.mean([row[column] for row in rows])) for column in (3, 4))
    columns = ["train", "ours, seconds", "scikit-learn, seconds", "ratio (target: 10)", "our accuracy", "theirs"]
    columns += ["difference in points (target: over -0.5)", "our peak memory, MB"]
    row = [ours["shape"], ours["seconds"], scaled, scaled / ours["seconds"], same, theirs, 100 * (same - theirs)]
    show(f"16 sizes × 5 seeds on {WORKERS} cores", columns, [[*row, ours["memory"]]])


def warm_up(_: int) -> None:
    import sklearn.neural_network  # noqa: F401, PLC0415

    time.sleep(0.5)


def fit(job: tuple[Path, Path, tuple[int, int], int]) -> tuple[float, float]:
    """The test accuracy of one fit, and its seconds."""
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    train, test, sizes, seed = job
    (X, y), (X_test, y_test) = load(train), load(test)
    start = time.perf_counter()
    scaler = StandardScaler().fit(X)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        network = MLPClassifier(sizes, random_state=seed).fit(scaler.transform(X), y)
    accuracy = float(network.score(scaler.transform(X_test), y_test))
    return accuracy, time.perf_counter() - start


# ---- all layers of an encoder ----


def whole_encoder(folder: Path, encoder: str, device: str) -> None:
    import torch  # noqa: PLC0415

    from closerlook.probes import probe_grids  # noqa: PLC0415

    rows: list[list[object]] = []
    for task in TASKS:
        files = sorted(folder.glob(f"{encoder}-{task}-train-layer*.npz"), key=layer)
        pairs = [(load(file), load(Path(str(file).replace("-train-", "-test-")))) for file in files]
        if not pairs:
            continue
        start = time.perf_counter()
        result = probe_grids(pairs, device=device)
        seconds = time.perf_counter() - start
        accuracy = " ".join(f"{grid.mean:.3f}" for grid in result)
        rows.append([task, f"{result[0].n_train:,} × {result[0].d}", len(pairs), 80 * len(pairs), seconds, accuracy])
    total = float(sum(row[4] for row in rows))
    rows.append(["all", "", sum(row[2] for row in rows), sum(row[3] for row in rows), total, ""])
    name = torch.cuda.get_device_name() if device.startswith("cuda") else device
    columns = ["task", "points", "layers", "networks", "seconds", "accuracy of the chosen sizes by layer"]
    show(f"All layers of {encoder}, {name} (target: under 120 s in all)", columns, rows)


def layer(file: Path) -> int:
    return int(re.findall(r"layer(\d+)", file.name)[-1])


if __name__ == "__main__":
    main()

"""Count the undecided verdicts, and the distances with too wide an interval, in folders of vectors.

    closerlook extract --encoder ENCODER --task pos ... --out FOLDER
    python benchmarks/undecided.py FOLDER ...                          the vectors as they are
    python benchmarks/undecided.py FOLDER ... --noise 1e-5 --seeds 20  with relative noise added to every number

Every `.npz` and `.safetensors` file in the folders is clustered. `--distances` also computes the distances between
clusters and counts those whose bounds are farther from each other than the promised gap. `--audit` proves each
clustering again. The command exits with status 1 if anything is undecided, too wide or not proved.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
from tables import table

from closerlook.geometry import audit, cluster, cluster_distances
from closerlook.geometry.clusters import Clustering
from closerlook.geometry.hulls import GAP
from closerlook.representations.space import Space

SUFFIXES = (".npz", ".safetensors")
COLUMNS = ["space", "seed", "points", "clusters", "in conflict", "undecided", "too wide", "not proved", "CPU seconds"]


def main() -> int:
    """Print one row for each space with a defect, and the totals; 1 if there is a defect, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--match", default="*", help="only files whose name without suffix matches, e.g. '*-pos-*'")
    parser.add_argument("--noise", type=float, default=0.0, help="relative noise on each number (default: none)")
    parser.add_argument("--seeds", type=int, default=1, help="copies with different noise of each space (default: 1)")
    parser.add_argument("--distances", action="store_true", help="also check the bounds of all cluster distances")
    parser.add_argument("--audit", action="store_true", help="also prove each clustering again")
    parser.add_argument("--all", action="store_true", help="print a row for every space, not only for defects")
    options = parser.parse_args()
    rows = []
    for file in sorted(spaces(options.folders, options.match)):
        space = Space.load(file)
        labels = np.array(space.labels)[space.y]
        for seed in range(options.seeds if options.noise else 1):
            X = noisy(space.X, options.noise, seed)
            rows.append([file.stem, seed, f"{X.shape[0]:,} × {X.shape[1]}", *measure(X, labels, options)])
            print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
    defects = [row for row in rows if any(row[5:8])]
    title = f"{len(rows)} spaces" + (f" with relative noise {options.noise:g}" if options.noise else "")
    table(title, COLUMNS, rows if options.all else defects)
    undecided, wide, unproved = (sum(int(row[at]) for row in rows) for at in (5, 6, 7))
    print(
        f"\n{len(rows)} spaces, {len(defects)} with a defect: {undecided} verdicts undecided, {wide} distances too "
        f"wide, {unproved} pairs not proved"
    )
    return 1 if defects else 0


def spaces(folders: list[Path], pattern: str) -> Iterator[Path]:
    """The files of vectors in the folders whose names match."""
    for folder in folders:
        files = [file for file in folder.iterdir() if file.suffix in SUFFIXES and fnmatch(file.stem, pattern)]
        if not files:
            raise SystemExit(f"{folder} has no .npz or .safetensors file that matches {pattern!r}")
        yield from files


def noisy(X: np.ndarray, noise: float, seed: int) -> np.ndarray:
    """The points with normal noise on every number, in proportion to its size; float32, as encoders compute."""
    if noise == 0:
        return X
    rng = np.random.default_rng(seed)
    return (X * (1 + noise * rng.standard_normal(X.shape))).astype(np.float32)


def measure(X: np.ndarray, y: np.ndarray, options: argparse.Namespace) -> list[object]:
    """Clusters, conflicts, undecided verdicts, intervals that are too wide, pairs not proved, and CPU seconds."""
    start = time.process_time()
    clustering = cluster(X, y)
    seconds = time.process_time() - start
    unproved = len(audit(X, y, clustering).problems) if options.audit else 0
    return [
        clustering.n_clusters,
        len(clustering.conflicts),
        clustering.n_undecided,
        count_wide(X, clustering) if options.distances else 0,
        unproved,
        seconds,
    ]


def count_wide(X: np.ndarray, clustering: Clustering) -> int:
    """The number of pairs of clusters whose distance has bounds with a relative gap above the promised one.

    Conflicting rows are identical: their distance is 0, and the width of its interval is rounding alone.
    """
    distances = cluster_distances(X, clustering)
    lower, upper = (np.triu(bounds, 1) for bounds in (distances.lower, distances.upper))
    apart = upper > clustering.tau * clustering.radius
    return int(((upper - lower > GAP * upper) & apart).sum())


if __name__ == "__main__":
    sys.exit(main())

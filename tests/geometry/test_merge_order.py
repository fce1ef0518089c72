"""The order of merges is that of a plain distance matrix, for large clusters too and whatever the engine's limits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import hatch_build
import numpy as np
import pytest
from numpy.typing import NDArray

from closerlook.geometry import cluster, kernels
from closerlook.geometry.binding import LIBRARY
from closerlook.geometry.frame import Frame, longest
from tests.geometry.plain import TIE, in_radii

ROOT = Path(__file__).parents[2]
Points = NDArray[np.float64]
Labels = NDArray[np.int64]


def spaces() -> dict[str, tuple[Points, Labels]]:
    """Sets whose largest clusters have far more than 48 points: the engine calls these giants."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 260)
    blobs = rng.normal(size=(260, 6)) + 2 * rng.normal(size=(3, 6))[y]
    mislabelled = np.where(rng.random(260) < 0.05, rng.integers(0, 3, 260), y)
    few = np.where(rng.random(260) < 0.06, rng.integers(0, 3, 260), y)
    grid = np.array([(i, j) for i in range(15) for j in range(15)], dtype=np.float64)
    halves = (grid.sum(axis=1) > 13) ^ (rng.random(225) < 0.03)
    radii, every_30th = np.linspace(0.1, 3, 240)[:, None], np.arange(240) % 30 == 7
    return {
        "mislabelled blobs": (blobs, mislabelled),
        "few mislabelled points in 9 dimensions": (rng.normal(size=(260, 9)) + 3 * rng.normal(size=(3, 9))[y], few),
        "random labels": (rng.normal(size=(200, 20)), rng.integers(0, 2, 200)),
        "a grid, where most distances are equal": (grid, halves.astype(np.int64)),
        "nearly equal distances": (grid + 1e-12 * rng.normal(size=grid.shape), halves.astype(np.int64)),
        "one long line": (np.sort(rng.normal(size=(200, 1)), axis=0), np.repeat([0, 1, 0, 1], [90, 10, 60, 40])),
        "shells": (rng.normal(size=(240, 3)) * radii, every_30th.astype(np.int64)),
        "random labels in 70 dimensions": (rng.normal(size=(200, 70)), rng.integers(0, 2, 200)),
    }


def plain_merges(X: Points, y: Labels, limit: int | None = None) -> list[tuple[int, int]]:
    """The merges in order, each as the smallest rows of its two clusters, from a matrix of all distances.

    Every union is tested against every cluster of the other labels, all with a new call of the solver. limit: the
    number of attempts, blocked ones included; with it, a blocked pair is tried again when one of the two has grown.
    """
    points = in_radii(X)
    members = {row: [row] for row in range(len(points))}
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    distance[(y[:, None] != y) | np.tri(len(y), dtype=bool)] = np.inf  # only pairs (i, j) with i < j
    merges: list[tuple[int, int]] = []
    attempts = 0
    while np.isfinite(smallest := distance.min()) and attempts != limit:
        attempts += 1
        first, second = (int(row) for row in np.argwhere(distance - smallest < TIE)[0])
        union = members[first] + members[second]
        if not is_separable(points, union, [rows for row, rows in members.items() if y[row] != y[first]]):
            distance[first, second] = np.inf
            continue
        merges.append((first, second))
        members[first] = union
        del members[second]
        blocked = between(distance, first) | between(distance, second)
        distance[second], distance[:, second] = np.inf, np.inf
        for other in members:
            if y[other] == y[first] and other != first:
                gap = np.linalg.norm(points[union].mean(axis=0) - points[members[other]].mean(axis=0))
                distance[min(first, other), max(first, other)] = np.inf if blocked[other] and limit is None else gap
    return merges


def between(distance: Points, row: int) -> NDArray[np.bool_]:
    """Which clusters may not merge with the one of this row: those of other labels, and those it was blocked with."""
    return np.isinf(np.minimum(distance[row], distance[:, row]))


def is_separable(points: Points, union: list[int], others: list[list[int]]) -> bool:
    groups = [np.array(rows) for rows in [union, *others]]
    pairs = np.array([(0, number) for number in range(1, len(groups))])
    slack = Frame.slack(longest(points), points.shape[1])
    verdicts = kernels.solve_pairs(points, groups, pairs, tau=1e-6, slack=slack)
    return bool((verdicts.verdict == kernels.SEPARABLE).all())


@pytest.mark.parametrize("name", spaces())
def test_merges_come_in_the_order_of_a_distance_matrix(name: str) -> None:
    X, y = spaces()[name]
    result = cluster(X, y)
    assert result.n_undecided == 0
    expected = plain_merges(X, y)
    mixed = [merge for merge in expected if result.labels[y[merge[0]]] not in result.whole]
    assert len(mixed) > 50
    assert list(zip(result.merges["first"].tolist(), result.merges["second"].tolist(), strict=True)) == mixed


@pytest.mark.parametrize("name", spaces())
def test_limited_merges_come_in_the_order_of_a_distance_matrix(name: str) -> None:
    X, y = spaces()[name]
    result = cluster(X, y, attempts="released")
    assert result.n_undecided == 0
    expected = plain_merges(X, y, limit=len(X))
    assert list(zip(result.merges["first"].tolist(), result.merges["second"].tolist(), strict=True)) == expected
    assert result.attempts is not None
    assert result.attempts.merged == len(expected) > 50


CLUSTER_ALL = """
import json, sys
from pathlib import Path
from closerlook.geometry import cluster, kernels
kernels.LIBRARY = Path(sys.argv[1])
from closerlook.geometry import regions
regions.USEFUL = float(sys.argv[2])
from tests.geometry.sets import small_sets
from tests.geometry.test_merge_order import spaces
sets = {name: (X, y) for name, X, y in small_sets()} | spaces()
results = {f"{name}, {attempts}": cluster(X, y, attempts=attempts, threads=2)
           for name, (X, y) in sets.items() for attempts in (None, "released")}
print(json.dumps({name: [c.assignments.tolist(), c.merges["first"].tolist(), c.merges["second"].tolist()]
                  for name, c in results.items()}))
"""
LIMITS = {
    "NEAREST",
    "GIANTS",
    "GIANT",
    "PLANES",
    "FEWEST",
    "LARGE",
    "STATEFUL",
    "FEW",
    "BLOCK",
    "CROWD",
    "EXTENT_BYTES",
    "TRIALS",
    "LARGE_CLUSTER",
    "TILE",
}
"""Limits of the merging that only affect its speed; the small ones make every branch run on small sets."""


def clusters_with(library: Path, useful: float) -> dict[str, list[list[int]]]:
    """The clusters and merges of all sets; useful: see `closerlook.geometry.regions`."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-c", CLUSTER_ALL, str(library), str(useful)]
    process = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, cwd=ROOT)
    results: dict[str, list[list[int]]] = json.loads(process.stdout)
    return results


@pytest.mark.slow
def test_clusters_do_not_depend_on_the_limits_of_the_engine(tmp_path: Path) -> None:
    sources = sorted(hatch_build.NATIVE.glob("*.c"))
    texts = [file.read_text(encoding="utf-8") for file in hatch_build.NATIVE.glob("*.[ch]")]
    assert {name for text in texts for name in re.findall(r"\b(\w+) = SIZE\(", text)} >= LIMITS
    small = tmp_path / "small.so"
    compiler = [*hatch_build.find_compiler(), *hatch_build.FLAGS, "-DSMALL_SIZES"]
    hatch_build.run_compiler([*compiler, "-o", str(small), *map(str, sources), *hatch_build.LIBRARIES])
    results, expected = clusters_with(small, useful=0), clusters_with(LIBRARY, useful=2)
    assert results == expected
    assert len(results) > 100

"""Over a hundred small labelled sets, on which the engine and the plain implementation must agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

X_and_y = tuple[NDArray[Any], NDArray[Any]]


def small_sets() -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    """The sets, each as (name, X, y): some families by dimension and seed, then the special ones."""
    for family, dimensions, seeds in FAMILIES:
        for d in dimensions:
            for seed in range(seeds):
                rng = np.random.default_rng([crc32(family.__name__.encode()), d, seed])
                yield f"{family.__name__}-{d}d-{seed}", *family(rng, d)
    for make in SPECIAL:
        for seed in range(2):
            rng = np.random.default_rng([crc32(make.__name__.encode()), seed])
            yield f"{make.__name__}-{seed}", *make(rng)


def blobs(rng: Generator, d: int) -> X_and_y:
    """Three labels far apart: the labels are the clusters."""
    y = rng.permutation(np.repeat(["north", "south", "west"], 15))
    centres = dict(zip(["north", "south", "west"], 12 * np.eye(3, d) + 12 * np.eye(3, d, -1), strict=True))
    return rng.standard_normal((45, d)) + np.array([centres[label] for label in y]), y


def touching_blobs(rng: Generator, d: int) -> X_and_y:
    """Two labels of two blobs each, which overlap at the rims."""
    y = rng.integers(0, 2, 30)
    centres = rng.standard_normal((4, d)) * 1.5 / d**0.25
    return rng.standard_normal((30, d)) + centres[y + 2 * rng.integers(0, 2, 30)], y


def random_labels(rng: Generator, d: int) -> X_and_y:
    """One blob with random labels."""
    n = 36
    return rng.standard_normal((n, d)), rng.integers(0, 2 + d % 3, n)


def fewer_points_than_dimensions(rng: Generator, d: int) -> X_and_y:
    """Any labels of n < d points in general position are separable."""
    n = max(6, 2 * d // 3)
    return rng.standard_normal((n, d)), rng.choice(["a", "b", "c"], n)


def grid(rng: Generator, d: int) -> X_and_y:
    """Integer points: ties, touching hulls, identical points of the same and of different labels."""
    side = {1: 30, 2: 5, 3: 3}.get(d, 2)
    n = 22 if d > 1 else 30
    return rng.integers(0, side, (n, d)), rng.integers(0, 2, n)


def distinct_grid(rng: Generator, d: int) -> X_and_y:
    """Distinct integer points, labelled by a half-space, with a few exceptions."""
    side = {1: 24, 2: 5}.get(d, 3)
    X = np.stack(np.meshgrid(*[np.arange(side)] * d), axis=-1).reshape(-1, d)
    X = X[rng.permutation(len(X))[:24]].astype(np.float64)
    y = X.sum(axis=1) > np.median(X.sum(axis=1))
    y[:2] = ~y[:2]
    return X, np.where(y, "high", "low")


def chequered(rng: Generator, d: int) -> X_and_y:
    """Distinct integer points with random labels: the order of ties decides the clusters."""
    side = {2: 5, 3: 3}.get(d, 2)
    X = np.stack(np.meshgrid(*[np.arange(side)] * d), axis=-1).reshape(-1, d)
    X = X[rng.permutation(len(X))[:27]]
    return X * 0.1, rng.choice(["b", "a"], len(X))


def repeated(rng: Generator, d: int) -> X_and_y:
    """Every point several times under its own label, a few under another label as well."""
    X, y = touching_blobs(rng, d)
    rows = np.concatenate([np.arange(14), rng.integers(0, 14, 14)])
    y = y[rows]
    y[-3:] = 1 - y[-3:]
    order = rng.permutation(len(rows))
    return X[rows][order], y[order]


def collinear(rng: Generator, d: int) -> X_and_y:
    """Points of one line in d dimensions, runs of labels along it."""
    t = np.sort(rng.standard_normal(30))
    y = np.repeat(rng.integers(0, 3, 10), 3)
    order = rng.permutation(30)
    return np.outer(t, rng.standard_normal(d))[order] + rng.standard_normal(d), y[order]


def flat(rng: Generator, d: int) -> X_and_y:
    """A plane in d dimensions: constant columns, and columns that copy others."""
    X, y = touching_blobs(rng, 2)
    X = X[:, rng.integers(0, 2, d)]
    X[:, 0] = 3.25
    return X, y


def rings(rng: Generator, d: int) -> X_and_y:
    """A ball inside a shell."""
    X = rng.standard_normal((26, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.permutation(np.repeat([0, 1], 13))
    return X * np.where(y, 3.0, 1.0)[:, None], y


def xor(rng: Generator, d: int) -> X_and_y:
    """Blobs at the corners of a square, one label on each diagonal."""
    corner = rng.integers(0, 2, (32, 2))
    X = rng.standard_normal((32, d)) * 0.15
    X[:, :2] += corner
    return X, corner[:, 0] ^ corner[:, 1]


def far_away(rng: Generator, d: int) -> X_and_y:
    """A spread of about one at an offset of a million."""
    X, y = touching_blobs(rng, d)
    return X + 1e6, y


def far_away_grid(rng: Generator, d: int) -> X_and_y:
    """Eighths at an offset of a million: ties that hold only after centring."""
    X, y = distinct_grid(rng, d)
    return X * 0.125 + 1e6, y


def half_precision(rng: Generator, d: int) -> X_and_y:
    """float16 at an offset of a thousand, where it is a grid of halves, so points coincide."""
    X, y = touching_blobs(rng, d)
    return (X + 1000).astype(np.float16), y


def single_precision(rng: Generator, d: int) -> X_and_y:
    """float32 at an offset of a million, where it is a grid of sixteenths."""
    X, y = touching_blobs(rng, d)
    return (X + 1e6).astype(np.float32), y


def interleaved(rng: Generator) -> X_and_y:
    """Labels that alternate along a line."""
    order = rng.permutation(32)
    return np.arange(32.0)[order, None], (np.arange(32) % 2)[order]


def runs(rng: Generator) -> X_and_y:
    """Runs of one label along a line, at equal steps: ties everywhere."""
    y = np.repeat(rng.permutation(["a", "b", "a", "c", "b", "a", "c", "b"]), rng.integers(1, 9, 8))
    order = rng.permutation(len(y))
    return np.arange(len(y), dtype=np.float64)[order, None], y[order]


def single_points(rng: Generator) -> X_and_y:
    """Some labels with one point among labels with many."""
    X, y = touching_blobs(rng, 3)
    y[:6] = np.arange(10, 16)
    return X, y


def one_point_each(rng: Generator) -> X_and_y:
    """Nothing can merge."""
    return rng.standard_normal((12, 3)), rng.permutation(12)


def one_label(rng: Generator) -> X_and_y:
    """Nothing can stop a merge."""
    return rng.standard_normal((20, 4)), np.full(20, "only")


def all_identical(rng: Generator) -> X_and_y:
    """As [CLS] at layer 0: identical rows of several labels, so every row is in conflict."""
    return np.tile(rng.standard_normal(5), (12, 1)), rng.permutation(np.repeat([3, 1, 2], 4))


def identical_with_one_label(rng: Generator) -> X_and_y:
    """Identical rows of one label: the radius is 0 up to rounding."""
    return np.tile(rng.standard_normal(5), (8, 1)), np.zeros(8, dtype=int)


def signed_zeros(rng: Generator) -> X_and_y:
    """0.0 and -0.0 are the same coordinate."""
    X = rng.integers(-1, 2, (16, 2)).astype(np.float64)
    X[rng.random((16, 2)) < 0.5] *= -1.0
    X[:4] = [[0.0, 1.0], [-0.0, 1.0], [0.0, -0.0], [-0.0, 0.0]]
    return X, np.tile([0, 1], 8)


def nearly_identical(rng: Generator) -> X_and_y:
    """Points of another label at distance 1e-8 (within τ, so hulls overlap without a conflict) and 1e-4 (beyond τ)."""
    X, y = touching_blobs(rng, 3)
    y[8:16] = 1 - y[:8]
    X[8:16] = X[:8]
    X[8:12, 0] += 1e-8
    X[12:16, 1] += 1e-4
    return X, y


def uneven_scales(rng: Generator) -> X_and_y:
    """Columns from a thousandth to a thousand."""
    X, y = touching_blobs(rng, 4)
    return X * [1e-3, 1.0, 30.0, 1e3], y


def tiny(rng: Generator) -> X_and_y:
    """A space of size 1e-20, whose squares vanish when added to 1."""
    X, y = touching_blobs(rng, 3)
    return X * 1e-20, y


def squares(rng: Generator) -> X_and_y:
    """Six squares with a label on each diagonal: all diagonals are ties, so the order of rows decides."""
    places = 50 * (rng.permutation(36)[:6, None] // [6, 1] % 6)
    X = (places[:, None] + [[0, 0], [1, 1], [0, 1], [1, 0]]).reshape(24, 2)
    order = rng.permutation(24)
    return X[order].astype(np.float64), np.tile(["a", "a", "b", "b"], 6)[order]


def midpoints(rng: Generator) -> X_and_y:
    """Points of b in the middle of segments of a: hulls that touch in one point."""
    a = rng.integers(-8, 9, (14, 3)).astype(np.float64)
    b = (a[:7] + a[7:]) / 2
    order = rng.permutation(21)
    return np.vstack([a, b])[order], np.array(["a"] * 14 + ["b"] * 7)[order]


def crowded(rng: Generator) -> X_and_y:
    """Sixty points with two random labels in five dimensions: many large hulls that nearly touch."""
    return rng.standard_normal((60, 5)), rng.integers(0, 2, 60)


FAMILIES: list[tuple[Callable[[Generator, int], X_and_y], tuple[int, ...], int]] = [  # family, dimensions, seeds
    (blobs, (3, 8, 20), 1),
    (touching_blobs, (1, 2, 3, 5, 10), 2),
    (random_labels, (1, 2, 3, 4, 6), 3),
    (fewer_points_than_dimensions, (10, 15, 20), 1),
    (grid, (1, 2, 3, 5), 2),
    (distinct_grid, (1, 2, 3), 2),
    (chequered, (2, 3, 4), 4),
    (repeated, (1, 2, 4), 2),
    (collinear, (2, 5), 2),
    (flat, (4, 12), 1),
    (rings, (2, 3), 2),
    (xor, (2, 5), 2),
    (far_away, (2, 5), 1),
    (far_away_grid, (2, 3), 1),
    (half_precision, (1, 2, 4), 1),
    (single_precision, (2, 3), 1),
]
SPECIAL: list[Callable[[Generator], X_and_y]] = [
    interleaved,
    runs,
    single_points,
    one_point_each,
    one_label,
    all_identical,
    identical_with_one_label,
    signed_zeros,
    nearly_identical,
    uneven_scales,
    tiny,
    squares,
    midpoints,
    crowded,
]


def separable_pair() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two clouds in four dimensions with disjoint hulls."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((30, 4)), rng.standard_normal((25, 4)) + 4


def overlapping_pair() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two clouds in four dimensions with overlapping hulls."""
    rng = np.random.default_rng(2)
    return rng.standard_normal((30, 4)), rng.standard_normal((25, 4)) + 0.3

"""Cells of a linear classifier: points of two cells are separable by a hyperplane.

The greedy merging uses them to skip tests (native/cores.h); no result depends on them.
"""

from __future__ import annotations

import numpy as np

from closerlook.geometry.frame import Floats, Integers

USEFUL = 0.9
"""Cells are used if at least this share of the points is in the cell of its own label."""

BLOCK = 1 << 14
"""Rows that are classified at a time."""


def find_cells(Z: Floats, starts: Integers, means: Floats, weights: Floats, clear: float) -> Integers | None:
    """The cell of each point, the number of a label, or -1 if the point is too close to another cell; None: not useful.

    Z: (n, d) points, sorted by label. starts: first point of each label, and the end. means, weights: (m, d) the mean
    of each label, and the weights of a linear classifier. Its scores are `weights @ (x - means / 2)`; a point is in the
    cell of the label with the largest score. The hyperplane between two cells has the same score for both labels. All
    points of a cell are farther than `clear` from it, so that rounding cannot change their side.
    """
    offsets = -0.5 * np.sum(weights * means, axis=1)
    cells = np.concatenate([_classify(Z[i : i + BLOCK], weights, offsets, clear) for i in range(0, len(Z), BLOCK)])
    own = np.repeat(np.arange(len(means)), np.diff(starts))
    return cells if np.mean(cells == own) >= USEFUL else None


def _classify(points: Floats, weights: Floats, offsets: Floats, clear: float) -> Integers:
    best = np.argmax(points @ weights.T + offsets, axis=1)
    cells = np.full(len(points), -1)
    for label in range(len(weights)):
        rows = np.flatnonzero(best == label)
        others = np.arange(len(weights)) != label
        normals = weights[label] - weights[others]
        lengths = np.linalg.norm(normals, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = (offsets[others] - offsets[label]) / lengths + clear
            inside = points[rows] @ (normals / lengths[:, None]).T > limits  # false for equal weights, which give NaN
        cells[rows[inside.all(axis=1)]] = label
    return cells

"""Regions of a linear classifier: points of two regions are separable by a hyperplane.

The greedy merging uses them to skip tests (native/cores.h); no result depends on them.
"""

from __future__ import annotations

import numpy as np

from closerlook.geometry.frame import Floats, Integers

USEFUL = 0.9
"""No point gets a region unless at least this share of points is in the region of its own label: fewer save no time."""

BLOCK = 1 << 14
"""Rows that are classified at a time."""


def find_regions(Z: Floats, starts: Integers, means: Floats, weights: Floats, clear: float) -> Integers:
    """The region of each point, which is the number of a label, or -1 if the point is too close to another region.

    Z: (n, d) points, sorted by label. starts: the first point of each label, and the end. means, weights: (m, d) the
    mean of each label, and the weights of a linear classifier. The score of a label is its row of weights times
    (x - mean / 2); a point is in the region of the label with the largest score. On the hyperplane between two regions
    the scores of both labels are equal. All points of a region are farther than `clear` from it, so that rounding
    cannot change their side.
    """
    offsets = -0.5 * np.sum(weights * means, axis=1)
    blocks = [_classify(Z[i : i + BLOCK], weights, offsets, clear) for i in range(0, len(Z), BLOCK)]
    regions = np.concatenate([np.empty(0, np.int64), *blocks])
    own = np.repeat(np.arange(len(means)), np.diff(starts))
    return regions if np.mean(regions == own) >= USEFUL else np.full(len(Z), -1)


def _classify(points: Floats, weights: Floats, offsets: Floats, clear: float) -> Integers:
    """The regions of some points; offsets: (m,) what is added to the scores."""
    best = np.argmax(points @ weights.T + offsets, axis=1)
    regions = np.full(len(points), -1)
    for label in range(len(weights)):
        rows = np.flatnonzero(best == label)
        others = np.arange(len(weights)) != label
        normals = weights[label] - weights[others]
        lengths = np.linalg.norm(normals, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = (offsets[others] - offsets[label]) / lengths + clear
            inside = points[rows] @ (normals / lengths[:, None]).T > limits  # false for equal weights, which give NaN
        regions[rows[inside.all(axis=1)]] = label
    return regions

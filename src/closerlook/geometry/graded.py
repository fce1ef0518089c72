"""How separable a space is where it is not: by degrees, for each label and each pair of labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry import kernels
from closerlook.geometry.clusters import Clustering
from closerlook.geometry.frame import Floats, Frame, Integers, Label, as_labels, as_points, longest
from closerlook.geometry.hulls import TAU
from closerlook.geometry.kernels import Progress


@dataclass(frozen=True)
class Overlap:
    """Two labels and how many of their points would have to go for the rest to be linearly separable.

    removed: points that a soft-margin hyperplane leaves on the wrong side; without them the labels are apart, so the
    fewest possible are no more than these. share: of the points of both. slack: the sum of the hinge losses at the
    scale where margins are 1: no hyperplane of that margin leaves more than so many points on the wrong side.
    """

    first: Label
    second: Label
    removed: int
    share: float
    slack: float


def largest_shares(clustering: Clustering) -> dict[Label, float]:
    """For each label, the share of its points that lie in its largest cluster; 1 where it is one cluster.

    >>> from closerlook.geometry.clusters import cluster
    >>> largest_shares(cluster([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "a"]))
    {'a': 0.6666666666666666, 'b': 1.0}
    """
    sizes = clustering.sizes
    return {
        label: float(own.max() / own.sum())
        for code, label in enumerate(clustering.labels)
        for own in [sizes[clustering.cluster_codes == code]]
    }


def overlaps(
    X: ArrayLike,
    y: ArrayLike,
    *,
    tau: float = TAU,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Overlap]:
    """The pairs of labels that are not linearly separable, with how far they are from it; the worst first."""
    points = as_points(X)
    labels, codes = as_labels(y, len(points))
    if len(labels) < 2:
        raise InputError(f"y has one label, {labels[0]!r}; expected at least two")
    meeting = _meeting(points, codes, len(labels), tau, kernels.count_threads(threads))
    found = []
    for at, (first, second) in enumerate(meeting):
        rows = np.flatnonzero((codes == first) | (codes == second))
        removed, slack = _soft_margin(points[rows], codes[rows] == first)
        found.append(Overlap(labels[first], labels[second], removed, removed / len(rows), slack))
        if progress:
            progress(at + 1, len(meeting))
    return sorted(found, key=lambda one: (-one.share, str(one.first), str(one.second)))


def _meeting(points: Floats, codes: Integers, m: int, tau: float, threads: int) -> list[tuple[int, int]]:
    """The pairs of labels whose hulls meet."""
    frame = Frame.of(points)
    Z = frame.place(points)
    pairs = list(combinations(range(m), 2))
    found = kernels.solve_pairs(
        Z,
        [np.flatnonzero(codes == code) for code in range(m)],
        np.array(pairs),
        tau=tau * frame.radius,
        slack=Frame.slack(longest(Z), points.shape[1]),
        threads=threads,
    )
    return [pair for pair, verdict in zip(pairs, found.verdict.tolist(), strict=True) if verdict != kernels.SEPARABLE]


def _soft_margin(points: Floats, positive: NDArray[np.bool_]) -> tuple[int, float]:
    """How many points a soft-margin hyperplane gets wrong, and the sum of its hinge losses."""
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    scaled = StandardScaler().fit_transform(points)
    model = LinearSVC(C=10.0, loss="squared_hinge", dual=False, tol=1e-6, max_iter=5000, random_state=0)
    model.fit(scaled, positive)
    margins = np.where(positive, 1.0, -1.0) * model.decision_function(scaled)
    slack = float(np.maximum(0.0, 1.0 - margins).sum())
    return int((margins <= 0).sum()), slack if math.isfinite(slack) else math.nan

"""How far two labels are from linearly separable, for each pair of labels that overlaps."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.geometry import kernels
from closerlook.geometry.clusters import Clustering
from closerlook.geometry.frame import Floats, Frame, Integers, Label, as_labels, check_two_labels, longest
from closerlook.geometry.hulls import TAU
from closerlook.geometry.kernels import Progress
from closerlook.geometry.pairs import in_order
from closerlook.geometry.shape import in_range
from closerlook.geometry.whitened import Whitened

RIDGE = 0.05
"""Ridge penalty of the soft margin: C = 10 in the usual notation."""

CENTRAL = 1.5
"""Labels with more points than this many times d may contain the mean of all points, if labels are random."""

STEPS = 50
HALVINGS = tuple(0.5**k for k in range(20))


@dataclass(frozen=True)
class Overlap:
    """Two overlapping labels, and how many of their points must be removed to make them linearly separable.

    removed: the points on the wrong side of a soft-margin hyperplane, or all points of the smaller label if these are
    fewer. Without them the labels are separable, so this is an upper bound of the fewest possible (finding the fewest
    is NP-hard). share: removed / points of both labels. slack: the sum of the hinge losses of that hyperplane, scaled
    to a margin of 1; at least the number of points on its wrong side. Labels that touch within tau count as overlapping
    even if no point needs to be removed.

    >>> overlap = overlaps([[0.0], [1.0], [2.0], [5.0], [3.0], [4.0], [6.0]], [*"aaaabbb"])[0]
    >>> overlap.first, overlap.second, overlap.removed, round(overlap.share, 6)
    ('a', 'b', 2, 0.285714)
    """

    first: Label
    second: Label
    removed: int
    share: float
    slack: float


def largest_cluster_shares(clustering: Clustering) -> dict[Label, float]:
    """For each label, the share of its points in its largest cluster; 1 if the label is one cluster.

    >>> from closerlook.geometry.clusters import cluster
    >>> largest_cluster_shares(cluster([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "a"]))
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
    """The pairs of labels that are not linearly separable, and how far they are from it; the largest share first.

    >>> X, y = [[0.0], [1.0], [2.0], [5.0], [3.0], [4.0], [6.0], [9.0]], [*"aaaabbbc"]
    >>> [(overlap.first, overlap.second, overlap.removed) for overlap in overlaps(X, y)]
    [('a', 'b', 2)]
    """
    points = in_range(X)
    labels, codes = as_labels(y, len(points))
    check_two_labels(labels)
    separable = LabelHulls(points, tau, threads).separable(codes)
    pairs = combinations(range(len(labels)), 2)
    overlapping = [pair for pair, disjoint in zip(pairs, separable, strict=True) if not disjoint]

    def measure(pair: tuple[int, int]) -> Overlap:
        rows = np.flatnonzero(np.isin(codes, pair))
        removed, slack = _soft_margin(points[rows], codes[rows] == pair[0])
        return Overlap(labels[pair[0]], labels[pair[1]], removed, removed / len(rows), slack)

    results = []
    for overlap in in_order(measure, overlapping, threads):
        results.append(overlap)
        if progress:
            progress(len(results), len(overlapping))
    return sorted(results, key=lambda overlap: (-overlap.share, str(overlap.first), str(overlap.second)))


class LabelHulls:
    """The convex hulls of whole labels; the points are prepared once for many labellings.

    whiten: try to decide each pair on whitened points first (`Whitened`), which pays for many labellings.
    """

    def __init__(self, points: Floats, tau: float, threads: int | None, *, whiten: bool = False) -> None:
        frame = Frame.of(points)
        self.Z = np.vstack([frame.place(points), np.zeros(points.shape[1])])  # the last row is the mean of all points
        self.threads = kernels.count_threads(threads)
        self.tolerance, self.slack = tau * frame.radius, Frame.slack(longest(self.Z), points.shape[1])
        self.rows = kernels.Rows.of(self.Z)
        self.whitened = Whitened.of(self.rows) if whiten else None

    def separable(self, codes: Integers) -> NDArray[np.bool_]:
        """For each pair of labels, in the order of `combinations`, whether their hulls are separable."""
        groups = [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]
        pairs = np.array(list(combinations(range(len(groups)), 2)))
        central = self._near_mean(groups)
        unknown = ~(central[pairs].all(axis=1))
        separable = np.zeros(len(pairs), bool)
        separable[unknown] = self._solve(groups, pairs[unknown], self.tolerance) == kernels.SEPARABLE
        return separable

    def _near_mean(self, groups: list[Integers]) -> NDArray[np.bool_]:
        """For each label, whether its hull is proved to come within half of tau of the mean of all points.

        Two such hulls are within tau of each other, so they overlap. Large labels with random labels all contain the
        mean: one proof for each label then replaces one for each pair. Labels with few points are not tried.
        """
        near = np.zeros(len(groups), bool)
        large = np.flatnonzero([len(group) > CENTRAL * self.Z.shape[1] for group in groups])
        if len(large) > 2:
            pairs = np.column_stack([large, np.full(len(large), len(groups))])
            mean = np.array([len(self.Z) - 1])
            near[large] = self._solve([*groups, mean], pairs, self.tolerance / 2) == kernels.OVERLAPPING
        return near

    def _solve(self, groups: list[Integers], pairs: Integers, tau: float) -> kernels.Signs:
        """The verdicts on pairs of groups of rows."""
        verdict = np.full(len(pairs), kernels.UNDECIDED, np.int8)
        if self.whitened:
            verdict = self.whitened.verdicts(groups, pairs, tau=tau, threads=self.threads)
        left = verdict == kernels.UNDECIDED
        verdict[left] = kernels.solve_pairs(
            self.rows, groups, pairs[left], tau=tau, slack=self.slack, threads=self.threads
        ).verdict
        return verdict


def _soft_margin(points: Floats, positive: NDArray[np.bool_]) -> tuple[int, float]:
    """The number of points on the wrong side of a soft-margin hyperplane, and the sum of its hinge losses."""
    deviation = points.std(axis=0)
    scores = (points - points.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    rows = np.column_stack([scores, np.ones(len(scores))]) * np.where(positive, 1.0, -1.0)[:, None]
    if rows.shape[1] > len(rows):  # the same inner products in fewer dimensions
        rows = np.asarray(np.linalg.qr(rows.T, mode="r")).T
    margins = rows @ _least_squared_hinge(rows)
    smaller = int(min(positive.sum(), (~positive).sum()))
    return min(int((margins <= 0).sum()), smaller), float(np.maximum(0.0, 1.0 - margins).sum())


def _least_squared_hinge(rows: Floats) -> Floats:
    """The w that minimises RIDGE |w|² + sum of max(0, 1 - row w)², by Newton's method.

    A step is exact while the same rows have a margin below 1, so about ten steps suffice (Keerthi & DeCoste 2005). If
    STEPS are not enough, the best w so far is still a valid hyperplane to count with.
    """
    w, ridge = np.zeros(rows.shape[1]), RIDGE * np.eye(rows.shape[1])
    short, least = np.ones(len(rows), bool), float(len(rows))
    for _ in range(STEPS):
        active = rows[short]
        direction = np.linalg.solve(active.T @ active + ridge, active.sum(axis=0)) - w
        for length in HALVINGS:
            loss = RIDGE * float(np.sum((w + length * direction) ** 2))
            margins = rows @ (w + length * direction)
            loss += float((np.maximum(0.0, 1.0 - margins) ** 2).sum())
            if loss < least:
                break
        else:
            return w  # no step improves the loss: this is the minimum, up to rounding
        w, least = w + length * direction, loss
        before, short = short, margins < 1
        if length == 1 and (short == before).all():
            return w
    return w

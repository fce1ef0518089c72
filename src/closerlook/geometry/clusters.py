"""DirectProbe's clusters (Zhou & Srikumar, 2021), and for every blocked merge the cluster that blocks it.

Clusters of one label are merged unless the convex hull of the result would overlap a cluster of another label. Such a
merge is blocked. `cluster` works in three steps: find conflicts (identical rows with different labels), test for each
label whether it is separable from all other labels, and merge greedily within the labels that are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry import kernels
from closerlook.geometry.arrange import Arrangement, arrange, same_rows
from closerlook.geometry.attempts import Attempts, Limit, check_attempts, enter
from closerlook.geometry.blocked import BlockedMerge, Refusals
from closerlook.geometry.frame import Floats, Frame, Integers, Label, as_labels, as_points, check_differences
from closerlook.geometry.hulls import TAU, check_tau
from closerlook.geometry.kernels import Progress
from closerlook.geometry.regions import find_regions
from closerlook.notebook import html
from closerlook.plots.merges import plot_merges

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

TIE = 1e-10
"""Two distances between means are a tie if they differ by less than this, in RMS radii: rounding can cause that."""

Merged = tuple[kernels.Merging, Integers]
"""The result of the greedy merging, and for each of its points the corresponding row of `Arrangement.Z`."""


Overlaps = tuple[list[list[int]], list[list[int]]]
"""For each label: the labels, and the frozen positions, that its hull overlaps or could not be separated from.

A frozen position is the position of rows that never merge, because a row of another label is at the same position.
"""


@dataclass(frozen=True, eq=False)
class Clustering:
    """Clusters of one label each, and the history of their merges.

    The convex hulls of two clusters of different labels are disjoint, except for conflicting rows.

    assignments: (n,) the number of each row's cluster; clusters are numbered by their smallest row.
    labels: all labels, sorted.
    cluster_codes: (k,) the index of each cluster's label in `labels`.
    conflicts: rows that are identical to a row of another label. These rows, and rows within the tolerance of a row of
    another label, never merge: each is a cluster of its own.
    merges: the merge history, a record array. `first` and `second` are the smallest rows of the two merged clusters,
    `distance` is the distance between their means.
    whole: labels that were merged in one step, without entries in `merges`: apart from conflicting rows, their points
    are separable from all other labels.
    n_undecided: the number of merges that were refused because the solver found no proof of either verdict.
    labels_overlap: whether the hulls of any two labels, each with all its points, overlap or could not be separated.
    tau: the tolerance; hulls closer than tau * radius count as overlapping.
    radius: the RMS radius, which is the root of the mean squared distance of the points from their mean.
    effort: the numbers of tests made, by type.
    refusals: the certificates of the blocked merges.
    attempts: None if merging continued until every remaining pair was blocked; otherwise the limit that ended it, and
    the attempts made. Then clusters of one label may be left that could be merged.

    >>> clustering = cluster([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "a"])
    >>> clustering
    Clustering(4 rows, 2 labels, 3 clusters, not linearly separable)
    >>> clustering.cluster_labels, clustering.sizes.tolist()
    (['a', 'b', 'a'], [2, 1, 1])
    """

    assignments: Integers
    labels: tuple[Label, ...]
    cluster_codes: Integers
    conflicts: Integers
    merges: NDArray[np.void]
    whole: tuple[Label, ...]
    n_undecided: int
    labels_overlap: bool
    tau: float
    radius: float
    effort: dict[str, int] = field(repr=False)
    refusals: Refusals = field(repr=False)
    attempts: Attempts | None = None

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return len(self.cluster_codes)

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return len(self.labels)

    @property
    def is_separable(self) -> bool:
        """Whether the space is linearly separable: no two labels overlap, so each label is one cluster.

        The number of clusters alone does not tell: two labels that consist of one row each, at the same position, form
        two clusters but are not separable.
        """
        return self.n_clusters == self.n_labels and not self.labels_overlap

    @property
    def cluster_labels(self) -> list[Label]:
        """The label of each cluster."""
        return [self.labels[code] for code in self.cluster_codes]

    @property
    def sizes(self) -> Integers:
        """(k,) the number of rows in each cluster."""
        return np.bincount(self.assignments, minlength=self.n_clusters)

    def __repr__(self) -> str:
        state = "linearly separable" if self.is_separable else "not linearly separable"
        rows = len(self.assignments)
        return f"Clustering({rows} rows, {self.n_labels} labels, {self.n_clusters} clusters, {state})"

    def to_frame(self) -> pd.DataFrame:
        """One row for each cluster: its number, its label, its number of rows and its first row."""
        import pandas as pd

        first = [int(rows[0]) for rows in self.members()]
        clusters = range(self.n_clusters)
        return pd.DataFrame({"cluster": clusters, "label": self.cluster_labels, "rows": self.sizes, "first_row": first})

    def _repr_html_(self) -> str:
        return html(repr(self), self.to_frame().sort_values("rows", ascending=False, kind="stable"))

    def plot_merges(self) -> alt.Chart:
        """An altair chart of the merge history: for each merge, the distance between the means of its two clusters."""
        codes = self.cluster_codes[self.assignments[self.merges["first"]]]
        return plot_merges(self.merges, [self.labels[code] for code in codes], self.whole)

    def members(self) -> list[Integers]:
        """The rows of each cluster, in ascending order."""
        order = np.argsort(self.assignments, kind="stable")
        return np.split(order, np.cumsum(self.sizes)[:-1])

    def is_blocked(self, first: int, second: int) -> bool:
        """Whether the merge of two clusters of one label was blocked: always, unless `attempts` were limited."""
        return self.attempts is None or self.refusals.known(min(first, second), max(first, second))

    def blocked_pairs(self) -> Iterator[tuple[int, int]]:
        """The pairs of clusters with the same label whose merge was blocked."""
        for code in range(self.n_labels):
            pairs = combinations(np.flatnonzero(self.cluster_codes == code).tolist(), 2)
            yield from (pair for pair in pairs if self.is_blocked(*pair))

    def blocked_merge(self, first: int, second: int) -> BlockedMerge:
        """Why these two clusters of the same label were not merged."""
        first, second = sorted((first, second))
        k = self.n_clusters
        if first < 0 or second >= k or first == second or self.cluster_codes[first] != self.cluster_codes[second]:
            raise InputError(
                f"clusters {first} and {second}: expected the numbers (0 to {k - 1}) of two different clusters with "
                "the same label"
            )
        blocked = self.refusals.between(first, second)
        if blocked is None:
            reason = "" if self.attempts is None else "; the limit on attempts ended the merging before"
            raise InputError(f"clusters {first} and {second}: no blocked merge is recorded for them{reason}")
        return blocked

    def blocked_merges(self) -> Iterator[BlockedMerge]:
        """For each pair of `blocked_pairs`, why it was not merged."""
        return (self.blocked_merge(first, second) for first, second in self.blocked_pairs())


def cluster(
    X: ArrayLike,
    y: ArrayLike,
    *,
    tau: float = TAU,
    attempts: Limit | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Clustering:
    """DirectProbe's clusters of labelled points.

    Repeatedly merges the two clusters of one label whose means are closest, unless the convex hull of their union
    overlaps a cluster of another label.

    X: (n, d) points. y: (n,) labels. tau: the tolerance; hulls closer than tau RMS radii count as overlapping.
    attempts: None merges until every remaining pair is blocked. "released" tries only as many merges as there are
    rows, as the code of the paper did when the paper was published; see `Attempts`.
    threads: the number of threads, by default the number of cores; the result does not depend on it.
    progress: called with the amount of work done and the total.

    >>> clustering = cluster([[0.0], [1.0], [2.0], [3.0], [4.0]], ["a", "a", "b", "a", "a"])
    >>> clustering.n_clusters, clustering.is_separable, clustering.assignments.tolist()
    (3, False, [0, 0, 1, 2, 2])
    >>> clustering.blocked_merge(0, 2).blocking_rows.tolist()
    [2]
    """
    points = as_points(X)
    check_differences(points)
    labels, codes = as_labels(y, len(points))
    check_tau(tau)
    check_attempts(attempts)
    threads = kernels.count_threads(threads)
    frame, n = Frame.of(points), len(points)
    space = arrange(frame.place(points), same_rows(points), codes, len(labels), tau * frame.radius)
    del points  # the arrangement has its own copy, and the merging needs much memory
    overlapping = _overlapping_labels(space, threads, progress)
    labels_overlap = any(map(any, overlapping)) or bool((space.twin >= 0).any())
    limited = attempts is not None
    tie = TIE * frame.radius
    merged = _merge(space, overlapping, tie, limited=limited, threads=threads, progress=progress)
    result = _conclude(space, merged, labels, tau, frame, labels_overlap=labels_overlap)
    if attempts is None:
        return result
    return replace(result, attempts=Attempts.of(attempts, n, merged[0] if merged else None))


# ---- labels that are separable as a whole ----


def _overlapping_labels(space: Arrangement, threads: int, progress: Progress | None) -> Overlaps:
    """For each label, the labels and the frozen positions that its hull overlaps; see `Overlaps`."""
    present = [label for label in range(space.labels) if space.starts[label] < space.starts[label + 1]]
    groups = [np.arange(space.starts[label], space.starts[label + 1]) for label in range(space.labels)]
    groups += [np.array([row]) for row in range(space.n, len(space.Z))]
    pairs = list(combinations(present, 2))
    pairs += [(label, space.labels + i) for label in present for i, own in enumerate(space.blocking) if own != label]
    labels: list[list[int]] = [[] for _ in range(space.labels)]
    positions: list[list[int]] = [[] for _ in range(space.labels)]
    if not pairs:
        return labels, positions
    n = len(space.codes)
    report = (lambda done, total: progress(done * n // (10 * total), n)) if progress else None
    verdicts = kernels.solve_pairs(
        space.Z, groups, np.array(pairs), tau=space.tau, slack=space.slack, threads=threads, progress=report
    )
    for (label, other), verdict in zip(pairs, verdicts.verdict.tolist(), strict=True):
        if verdict == kernels.SEPARABLE:
            continue
        if other >= space.labels:
            positions[label].append(other - space.labels)
        else:
            labels[label].append(other)
            labels[other].append(label)
    return labels, positions


# ---- greedy merging of the labels that are not separable ----


def _merge(
    space: Arrangement,
    overlapping: Overlaps,
    tie: float,
    *,
    limited: bool,
    threads: int,
    progress: Progress | None,
) -> Merged | None:
    """Merge points greedily within each label that is not separable; None if there is none.

    limited: if any label is not separable, all labels are merged greedily, with the limit on attempts.
    """
    overlapping_labels, overlapping_positions = overlapping
    mixed = [bool(overlapping_labels[label] or overlapping_positions[label]) for label in range(space.labels)]
    if limited and (any(mixed) or space.n < len(space.Z)):
        mixed = [True] * space.labels
    entering = np.flatnonzero(mixed).tolist()
    if not entering:
        return None
    points = enter(space, entering, frozen=limited)
    n, starts = points.n, points.starts
    rows = np.concatenate([points.places, np.arange(space.n, len(space.Z))])
    unchanged = np.array_equal(rows, np.arange(len(space.Z)))
    Z = space.Z if unchanged else np.ascontiguousarray(space.Z[rows])
    number = {label: i for i, label in enumerate(entering)}
    inner_overlaps = [[number[other] for other in overlapping_labels[label]] for label in entering]
    basis, planes, means, weights = _directions(Z, n, starts, inner_overlaps)
    n_rows = len(space.codes)
    start = n_rows // 10  # the test of each label as a whole was the first tenth of the work
    report = (lambda done, total: progress(start + done * (n_rows - start) // total, n_rows)) if progress else None
    merging = kernels.merge_greedily(
        Z,
        n=n,
        starts=starts,
        order=points.rows,
        mass=points.mass,
        basis=basis,
        foes=inner_overlaps,
        blocks=[overlapping_positions[label] for label in entering],
        planes=planes,
        tau=space.tau,
        slack=space.slack,
        tie=tie,
        limit=n if limited else None,
        alone=points.alone,
        regions=find_regions(Z[:n], starts, means, weights, space.tau + 2 * space.slack),
        threads=threads,
        progress=report,
    )
    return merging, rows


def _directions(
    Z: Floats, n: int, starts: Integers, overlapping_labels: list[list[int]]
) -> tuple[Floats, list[tuple[int, int, Floats]], Floats, Floats]:
    """The directions of largest variance, hyperplanes between overlapping labels, and a linear classifier.

    For each pair of overlapping labels there are normals of hyperplanes that separate most of their points. Directions
    and normals only make the tests faster; no result depends on them. The classifier (linear discriminant analysis) is
    given by the mean and the weights of each label; see `find_regions`.
    """
    d = Z.shape[1]
    scatter = Z.T @ Z / len(Z)
    basis = np.linalg.eigh(scatter)[1][:, ::-1][:, : kernels.LEADS - 1].T
    means = np.array([Z[a:b].mean(axis=0) for a, b in pairwise(starts)])
    within = scatter * (len(Z) / max(n, 1)) - (means.T * (np.diff(starts) / max(n, 1))) @ means
    ridge = 1e-3 * max(float(np.trace(within)) / d, 1e-12)
    whitened = np.linalg.solve(within + ridge * np.eye(d), means.T).T  # one factorisation for all pairs of labels
    planes = []
    for label, others in enumerate(overlapping_labels):
        for other in (number for number in others if number > label):
            for normal in (whitened[label] - whitened[other], means[label] - means[other]):
                length = float(np.linalg.norm(normal))
                if np.isfinite(length) and length > 0:
                    planes.append((label, other, normal / length))
    return np.ascontiguousarray(basis), planes, means, whitened


# ---- the result ----


def _conclude(
    space: Arrangement,
    merged: Merged | None,
    labels: tuple[Label, ...],
    tau: float,
    frame: Frame,
    *,
    labels_overlap: bool,
) -> Clustering:
    """Assemble the clustering from the arrangement and the merges."""
    owner = np.arange(len(space.Z))
    owner[: space.n] = space.starts[np.searchsorted(space.starts, owner[: space.n], side="right") - 1]
    mixed = np.zeros(space.labels, bool)
    effort: dict[str, int] = {}
    if merged is not None:
        merging, rows = merged
        n = len(merging.owner)
        owner[rows[:n]] = rows[merging.owner]
        mixed[np.unique(space.codes[space.rows[rows[:n]]])] = True
        effort = merging.effort
    owner = owner[space.item]
    frozen = space.twin >= 0
    owner[frozen] = len(space.Z) + np.flatnonzero(frozen)  # each is its own cluster, even if several are identical
    _, first, inverse = np.unique(owner, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    assignments, first = number[inverse.reshape(-1)], first[order]
    free = np.unique(space.codes[~frozen])
    return Clustering(
        assignments,
        labels,
        space.codes[first],
        space.conflicts,
        _history(space, merged, mixed, frame),
        tuple(labels[code] for code in free if not mixed[code]),
        effort.get("undecided", 0),
        labels_overlap,
        tau,
        float(frame.outside(frame.radius)),
        effort,
        _refusals(space, merged, assignments, first),
    )


def _history(space: Arrangement, merged: Merged | None, mixed: NDArray[np.bool_], frame: Frame) -> NDArray[np.void]:
    """The merge history of the labels that were merged greedily.

    First come the merges of identical rows, at distance 0, then the greedy merges in order.
    """
    kind = np.dtype([("first", np.int64), ("second", np.int64), ("distance", np.float64)])
    leader = space.rows[space.item]
    again = np.flatnonzero((leader != np.arange(len(leader))) & (space.twin < 0) & mixed[space.codes])
    history = np.zeros(len(again) + (len(merged[0].first) if merged else 0), kind)
    history["first"][: len(again)], history["second"][: len(again)] = leader[again], again
    if merged:
        rest = history[len(again) :]
        rest["first"] = np.minimum(merged[0].first, merged[0].second)
        rest["second"] = np.maximum(merged[0].first, merged[0].second)
        rest["distance"] = frame.outside(merged[0].distance)
    return history


def _refusals(space: Arrangement, merged: Merged | None, assignments: Integers, first: Integers) -> Refusals:
    """The certificates of the blocked merges, in the rows and cluster numbers of the result."""
    empty = np.zeros(0, np.int64)
    if merged is None:
        return Refusals(
            assignments, empty, np.zeros(1, np.int64), empty, np.zeros(0), np.zeros(0, bool), space.twin, first, {}
        )
    merging, inner = merged
    rows = space.rows[inner]
    a, b = assignments[rows[merging.a]], assignments[rows[merging.b]]
    index: dict[tuple[int, int], int] = {}
    decided = np.diff(merging.begin) > 0
    for at, pair in enumerate(zip(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), strict=True)):
        if pair not in index or (decided[at] and not decided[index[pair]]):
            index[pair] = at
    own = merging.side > 0
    places = rows[merging.place]
    blocking = rows[merging.blocking]
    # A frozen position may be shared by several labels. If the row recorded for it has the label of the merged
    # clusters, its twin, a row of another label at the same position, takes its place.
    codes = space.codes[rows[merging.a]]
    swap = space.codes[blocking] == codes
    blocking[swap] = space.twin[blocking[swap]]
    each = np.repeat(codes, np.diff(merging.begin))
    swap = ~own & (space.codes[places] == each)
    places[swap] = space.twin[places[swap]]
    return Refusals(
        assignments, assignments[blocking], merging.begin, places, merging.weight, own, space.twin, first, index
    )

"""Verify a finished clustering from scratch: one certificate for each pair of clusters, checked in plain numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from closerlook.errors import InputError
from closerlook.geometry import kernels
from closerlook.geometry.blocked import BlockedMerge
from closerlook.geometry.clusters import Clustering
from closerlook.geometry.frame import Floats, Frame, Integers, as_labels, as_points, longest
from closerlook.geometry.hulls import certified
from closerlook.geometry.kernels import Progress

PAIRS = 64
"""The maximum number of pairs whose certificates are in memory together."""


@dataclass(frozen=True)
class Audit:
    """The result of the verification of a clustering.

    separable: pairs of clusters of different labels that were proved separable. conflicting: pairs of single rows of
    different labels that are identical or within tau of each other. blocked: pairs of clusters of one label whose merge
    was proved to be blocked. problems: one line for each failed proof.

    >>> Audit(separable=4, conflicting=0, blocked=2, problems=()).clean
    True
    >>> Audit(3, 0, 2, ("clusters 0 and 1, of different labels, are overlapping",)).clean
    False
    """

    separable: int
    conflicting: int
    blocked: int
    problems: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether every proof succeeded."""
        return not self.problems


def audit(
    X: ArrayLike,
    y: ArrayLike,
    clustering: Clustering,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Verify a clustering of X, y: one label per cluster, disjoint hulls, a blocking cluster for each blocked merge.

    >>> from closerlook.geometry import cluster
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "b", "a", "b"]
    >>> audit(X, y, cluster(X, y))
    Audit(separable=4, conflicting=0, blocked=2, problems=())
    """
    points = as_points(X)
    labels, codes = as_labels(y, len(points))
    if len(points) != len(clustering.assignments) or labels != clustering.labels:
        raise InputError(
            f"X and y have {len(points)} rows and {len(labels)} labels; expected the X and y that were clustered"
        )
    inspector = _Inspector(points, clustering, kernels.count_threads(threads))
    impure = np.flatnonzero(codes != clustering.cluster_codes[clustering.assignments])
    inspector.problems += [
        f"row {row} is in cluster {clustering.assignments[row]}, which has another label" for row in impure
    ]
    inspector.inspect_separable(progress)
    inspector.inspect_blocked(progress)
    return Audit(inspector.separable, inspector.conflicting, inspector.blocked, tuple(inspector.problems))


class _Inspector:
    """Proves a clustering pair by pair and counts the results."""

    def __init__(self, points: Floats, clustering: Clustering, threads: int) -> None:
        self.points, self.clustering, self.threads = points, clustering, threads
        self.frame = Frame.of(points)
        self.Z = self.frame.place(points)
        self.slack = Frame.slack(longest(self.Z), points.shape[1])
        self.tolerance = clustering.tau * self.frame.radius
        self.members = clustering.members()
        self.separable = self.conflicting = self.blocked = 0
        self.problems: list[str] = []

    def inspect_separable(self, progress: Progress | None) -> None:
        """Check that each pair of clusters of different labels is separable, or is a pair of conflicting rows."""
        codes = self.clustering.cluster_codes
        single = self.clustering.sizes == 1
        large, alone = np.flatnonzero(~single), np.flatnonzero(single)
        rows = np.array([self.members[cluster][0] for cluster in alone], np.int64)
        place = np.unique(self.Z[rows] + 0.0, axis=0, return_inverse=True)[1].reshape(-1)  # + 0.0: no negative zeros
        for at, first in enumerate(large.tolist()):
            later = large[at + 1 :]
            self._separate(first, [np.array([other]) for other in later[codes[later] != codes[first]]])
            foreign = codes[alone] != codes[first]
            self._separate(first, _groups(alone[foreign], place[foreign]))
            if progress:
                progress(at + 1, 2 * len(large))
        self._compare_places(self.Z[rows[np.unique(place, return_index=True)[1]]], place, codes[alone])

    def _compare_places(self, places: Floats, place: Integers, codes: Integers) -> None:
        """Single rows, grouped by position: their distance is that of two points."""
        counts = np.zeros((len(places), self.clustering.n_labels), np.int64)
        np.add.at(counts, (place, codes), 1)
        for at in range(len(places)):
            foreign = counts[at].sum() * counts[at:].sum(axis=1) - counts[at:] @ counts[at]
            foreign[0] //= 2  # within the position itself each pair was counted twice
            distance = np.linalg.norm(places[at:] - places[at], axis=1)
            meet = distance <= self.tolerance + 2 * self.slack
            self.conflicting += int(foreign[meet].sum())
            self.separable += int(foreign[~meet].sum())

    def _separate(self, first: int, others: list[Integers]) -> None:
        """Prove a cluster separable from others, given in groups of identical rows: one certificate per group."""
        for at in range(0, len(others), PAIRS):
            part = others[at : at + PAIRS]
            groups = [self.members[first], *(self.members[same[0]] for same in part)]
            verdicts = self._solve(groups, [(0, i + 1) for i in range(len(part))])
            for same, verdict in zip(part, verdicts, strict=True):
                if verdict == "separable":
                    self.separable += len(same)
                    continue
                self.problems += [
                    f"clusters {min(first, other)} and {max(first, other)}, of different labels, are {verdict}"
                    for other in same
                ]

    def inspect_blocked(self, progress: Progress | None) -> None:
        """Check that the union of each pair of clusters of one label overlaps the blocking cluster."""
        pairs, k = list(self.clustering.blocked_pairs()), self.clustering.n_clusters
        waiting: list[BlockedMerge] = []
        for at, pair in enumerate(pairs):
            blocked = self.clustering.refusals.between(*pair)
            if blocked is None:
                self.problems.append(f"clusters {pair[0]} and {pair[1]}: no blocked merge is recorded for them")
            elif self.clustering.cluster_codes[blocked.blocking] == self.clustering.cluster_codes[pair[0]]:
                self.problems.append(
                    f"clusters {pair[0]} and {pair[1]} are blocked by {blocked.blocking}, of their own label"
                )
            elif len(blocked.rows) == len(blocked.blocking_rows) == 1 and self._coincide(blocked):
                self.blocked += 1
            else:
                waiting.append(blocked)
            if len(waiting) == PAIRS or (at == len(pairs) - 1 and waiting):
                self._overlap(waiting)
                waiting = []
                if progress:
                    progress(k + k * (at + 1) // len(pairs), 2 * k)

    def _coincide(self, blocked: BlockedMerge) -> bool:
        """Whether a single row of the union is at the position of a row of the blocking cluster."""
        own = self.clustering.assignments[blocked.rows[0]] in (blocked.first, blocked.second)
        theirs = self.clustering.assignments[blocked.blocking_rows[0]] == blocked.blocking
        distance = np.linalg.norm(self.Z[blocked.rows[0]] - self.Z[blocked.blocking_rows[0]])
        return bool(own and theirs and distance <= self.tolerance * (1 - 1e-9))

    def _overlap(self, merges: list[BlockedMerge]) -> None:
        """Prove for each blocked merge that the union of the two clusters overlaps the blocking cluster."""
        groups: list[Integers] = []
        for blocked in merges:
            union = np.sort(np.concatenate([self.members[blocked.first], self.members[blocked.second]]))
            groups += [union, self.members[blocked.blocking]]
        verdicts = self._solve(groups, [(2 * i, 2 * i + 1) for i in range(len(merges))])
        for blocked, verdict in zip(merges, verdicts, strict=True):
            if verdict == "overlapping":
                self.blocked += 1
            else:
                self.problems.append(
                    f"clusters {blocked.first} and {blocked.second} could have been merged: their union and "
                    f"cluster {blocked.blocking} are {verdict}"
                )

    def _solve(self, groups: list[Integers], pairs: list[tuple[int, int]]) -> list[str]:
        """The verdict on each pair of groups of rows, from its certificate."""
        if not pairs:
            return []
        verdicts = kernels.solve_pairs(
            self.Z,
            groups,
            np.array(pairs),
            tau=self.tolerance,
            slack=self.slack,
            threads=self.threads,
            certificates=True,
        )
        return [
            certified(
                verdicts,
                at,
                points_a=self.points[groups[a]],
                points_b=self.points[groups[b]],
                groups=(groups[a], groups[b]),
                frame=self.frame,
                tolerance=float(self.frame.outside(self.tolerance)),
            ).verdict
            for at, (a, b) in enumerate(pairs)
        ]


def _groups(values: Integers, keys: Integers) -> list[Integers]:
    """The values of each key."""
    order = np.argsort(keys, kind="stable")
    return np.split(values[order], np.flatnonzero(np.diff(keys[order])) + 1) if len(values) else []

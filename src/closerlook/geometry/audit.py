"""A clustering proved again from nothing: every pair by a certificate of its own, checked in plain numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from closerlook.errors import InputError
from closerlook.geometry import kernels
from closerlook.geometry.clusters import BlockedMerge, Clustering
from closerlook.geometry.frame import Floats, Frame, Integers, as_labels, as_points, longest
from closerlook.geometry.hulls import certified
from closerlook.geometry.kernels import Progress

PAIRS = 64
"""Pairs whose certificates are held at a time."""


@dataclass(frozen=True)
class Audit:
    """What a fresh look at a clustering found.

    apart: pairs of clusters of different labels that were proved separable; conflicting: pairs that meet because both
    are single rows at one place, or within tau of each other; blocked: pairs of clusters of one label that were proved
    to be in the way of something. problems: a line for each thing that is not as it should be. Clean: there are none.
    """

    apart: int
    conflicting: int
    blocked: int
    problems: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether everything was proved."""
        return not self.problems


def audit(
    X: ArrayLike,
    y: ArrayLike,
    clustering: Clustering,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Prove a clustering of X, y again: purity, disjoint hulls, and a blocker for each pair that might have merged.

    >>> from closerlook.geometry import cluster
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "b", "a", "b"]
    >>> audit(X, y, cluster(X, y))
    Audit(apart=4, conflicting=0, blocked=2, problems=())
    """
    points = as_points(X)
    labels, codes = as_labels(y, len(points))
    if len(points) != len(clustering.assignments) or labels != clustering.labels:
        raise InputError(f"X and y ({len(points)} rows, {len(labels)} labels) are not what was clustered")
    inspector = _Inspector(points, clustering, kernels.count_threads(threads))
    impure = np.flatnonzero(codes != clustering.cluster_codes[clustering.assignments])
    inspector.problems += [f"row {row} is in cluster {clustering.assignments[row]}, of another label" for row in impure]
    inspector.inspect_apart(progress)
    inspector.inspect_blocked(progress)
    return Audit(inspector.apart, inspector.conflicting, inspector.blocked, tuple(inspector.problems))


class _Inspector:
    def __init__(self, points: Floats, clustering: Clustering, threads: int) -> None:
        self.points, self.clustering, self.threads = points, clustering, threads
        self.frame = Frame.of(points)
        self.Z = self.frame.place(points)
        self.slack = Frame.slack(longest(self.Z), points.shape[1])
        self.tolerance = clustering.tau * self.frame.radius
        self.members = clustering.members()
        self.apart = self.conflicting = self.blocked = 0
        self.problems: list[str] = []

    def inspect_apart(self, progress: Progress | None) -> None:
        """Every two clusters of different labels: separable, or single rows in conflict."""
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
        """Single rows, each at a place: their distance is that of two points."""
        held = np.zeros((len(places), self.clustering.n_labels), np.int64)
        np.add.at(held, (place, codes), 1)
        for at in range(len(places)):
            foreign = held[at].sum() * held[at:].sum(axis=1) - held[at:] @ held[at]  # pairs of rows of different labels
            foreign[0] //= 2  # at the place itself each pair was counted from both sides
            distance = np.linalg.norm(places[at:] - places[at], axis=1)
            meet = distance <= self.tolerance + 2 * self.slack
            self.conflicting += int(foreign[meet].sum())
            self.apart += int(foreign[~meet].sum())

    def _separate(self, first: int, others: list[Integers]) -> None:
        """A cluster from others, given in groups that lie at one place: one certificate for each group."""
        for at in range(0, len(others), PAIRS):
            part = others[at : at + PAIRS]
            groups = [self.members[first], *(self.members[same[0]] for same in part)]
            verdicts = self._solve(groups, [(0, i + 1) for i in range(len(part))])
            for same, verdict in zip(part, verdicts, strict=True):
                if verdict == "separable":
                    self.apart += len(same)
                    continue
                self.problems += [
                    f"clusters {min(first, other)} and {max(first, other)}, of different labels, are {verdict}"
                    for other in same
                ]

    def inspect_blocked(self, progress: Progress | None) -> None:
        """Every two clusters of one label: their union meets a cluster of another label."""
        pairs, k = list(self.clustering.blocked_pairs()), self.clustering.n_clusters
        waiting: list[BlockedMerge] = []
        for at, pair in enumerate(pairs):
            blocker = self.clustering.refusals.between(*pair)
            if blocker is None:
                self.problems.append(f"clusters {pair[0]} and {pair[1]}: nothing is recorded that keeps them apart")
            elif self.clustering.cluster_codes[blocker.blocking] == self.clustering.cluster_codes[pair[0]]:
                self.problems.append(
                    f"clusters {pair[0]} and {pair[1]} are blocked by {blocker.blocking}, of their own label"
                )
            elif len(blocker.rows) == len(blocker.blocking_rows) == 1 and self._coincide(blocker):
                self.blocked += 1
            else:
                waiting.append(blocker)
            if len(waiting) == PAIRS or (at == len(pairs) - 1 and waiting):
                self._overlap(waiting)
                waiting = []
                if progress:
                    progress(k + k * (at + 1) // len(pairs), 2 * k)

    def _coincide(self, blocker: BlockedMerge) -> bool:
        """A single row of the union at the place of one of the blocker."""
        own = self.clustering.assignments[blocker.rows[0]] in (blocker.first, blocker.second)
        theirs = self.clustering.assignments[blocker.blocking_rows[0]] == blocker.blocking
        apart = np.linalg.norm(self.Z[blocker.rows[0]] - self.Z[blocker.blocking_rows[0]])
        return bool(own and theirs and apart <= self.tolerance * (1 - 1e-9))

    def _overlap(self, blockers: list[BlockedMerge]) -> None:
        groups: list[Integers] = []
        for blocker in blockers:
            union = np.sort(np.concatenate([self.members[blocker.first], self.members[blocker.second]]))
            groups += [union, self.members[blocker.blocking]]
        verdicts = self._solve(groups, [(2 * i, 2 * i + 1) for i in range(len(blockers))])
        for blocker, verdict in zip(blockers, verdicts, strict=True):
            if verdict == "overlapping":
                self.blocked += 1
            else:
                self.problems.append(
                    f"clusters {blocker.first} and {blocker.second} might have merged: with {blocker.blocking} their "
                    f"union is {verdict}"
                )

    def _solve(self, groups: list[Integers], pairs: list[tuple[int, int]]) -> list[str]:
        """The verdicts on some pairs of groups of rows, each from its certificate."""
        if not pairs:
            return []
        found = kernels.solve_pairs(
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
                found,
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

"""The nearest convex hull of a point, and its distance to every hull: DirectProbe's prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry import kernels
from closerlook.geometry.frame import Floats, Frame, Integers, as_points, longest
from closerlook.geometry.kernels import Progress

GAP = 1e-7
"""Relative gap between the bounds of a distance."""

GRAM_BYTES = 400_000_000
"""Memory for the inner products of hulls; hulls that need more are solved from coordinates."""

FAR = 1e30
"""Queries farther away than this many radii are refused: their products would overflow in single precision."""

QUERIES = 1024
"""The number of queries in a block."""


def nearest_hulls(
    X: ArrayLike,
    members: Sequence[Integers],
    queries: ArrayLike,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[Integers, Floats]:
    """For each query, the number of the nearest hull and its distance: 0 inside. The smaller number wins a tie.

    X: (n, d). members: rows of X for each hull. queries: (m, d).

    >>> hulls = [np.array([0, 1]), np.array([2])]
    >>> nearest, distance = nearest_hulls([[0.0, 0.0], [2.0, 0.0], [1.0, 5.0]], hulls, [[1.0, 1.0], [1.0, 4.0]])
    >>> nearest.tolist(), distance.round(6).tolist()
    ([0, 1], [1.0, 1.0])
    """
    work = _Work(X, members, queries, threads)
    m = len(work.Q)
    order = np.argsort(work.vertex_distances(), axis=1, kind="stable")
    best, winner = np.full(m, np.inf), np.full(m, -1, np.int64)
    sizes = np.array([len(rows) for rows in members])
    total, done = int(m * sizes.sum()), 0
    for turn in (0, 1):  # first the hull with the nearest point: its distance is a cutoff for the others
        for hull in range(len(members)):
            selected = np.flatnonzero((order[:, 0] == hull) == (turn == 0))
            lower, upper = work.bounds(hull, selected, best[selected] * (1 + 10 * GAP) + work.inside)
            nearer = upper < best[selected] * (1 - 2 * GAP)
            tied = (
                ~nearer
                & (lower <= best[selected])
                & (upper <= best[selected] * (1 + 2 * GAP))
                & (hull < winner[selected])
            )
            change = selected[nearer | tied]
            best[change], winner[change] = np.minimum(upper[nearer | tied], best[change]), hull
            done += len(selected) * int(sizes[hull])
            if progress:
                progress(done, total)
    return winner, work.frame.outside(best)


def hull_distances(
    X: ArrayLike,
    members: Sequence[Integers],
    queries: ArrayLike,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Floats:
    """(m, k) the distance from every query to every hull; arguments as for `nearest_hulls`.

    >>> hulls = [np.array([0, 1]), np.array([2])]
    >>> hull_distances([[0.0, 0.0], [2.0, 0.0], [1.0, 5.0]], hulls, [[1.0, 1.0], [1.0, 4.0]]).round(6).tolist()
    [[1.0, 4.0], [4.0, 1.0]]
    """
    work = _Work(X, members, queries, threads)
    m = len(work.Q)
    distances = np.zeros((m, len(members)))
    for hull in range(len(members)):
        distances[:, hull] = work.bounds(hull, np.arange(m), np.full(m, np.inf))[1]
        if progress:
            progress(hull + 1, len(members))
    return work.frame.outside(distances)


def _check_hulls(members: Sequence[Integers], n: int) -> None:
    """Raise InputError unless there is at least one hull and each has rows of X."""
    if not len(members):
        raise InputError("members is empty; expected at least one list of rows")
    for hull, rows in enumerate(members):
        if not len(rows):
            raise InputError(f"hull {hull} has no rows; expected at least one")
        if np.min(rows) < 0 or np.max(rows) >= n:
            raise InputError(f"hull {hull} has rows from {np.min(rows)} to {np.max(rows)}; X has rows 0 to {n - 1}")


class _Work:
    """Points and queries in one frame, and the inner products of the hulls that fit into memory."""

    def __init__(self, X: ArrayLike, members: Sequence[Integers], queries: ArrayLike, threads: int | None) -> None:
        points, query_points = as_points(X), as_points(queries, "queries")
        if query_points.shape[1] != points.shape[1]:
            raise InputError(f"queries have {query_points.shape[1]} coordinates; expected {points.shape[1]}, as in X")
        _check_hulls(members, len(points))
        self.frame = Frame.of(points)
        self.inside = 1e-9 * self.frame.radius
        """Points closer to a hull than this count as inside."""
        placed = self.frame.place(points)
        self.hulls = [np.ascontiguousarray(placed[rows]) for rows in members]
        self.Q = self.frame.place(query_points)
        far = np.flatnonzero(np.abs(self.Q).max(axis=1) > FAR)
        if len(far):
            raise InputError(
                f"query {far[0]} lies more than {FAR:g} RMS radii away from the points of the hulls; expected vectors "
                "of the same space"
            )
        self.square = np.einsum("ij,ij->i", self.Q, self.Q)
        self.threads = kernels.count_threads(threads)
        self.products: dict[int, Floats] = {}
        self.gram_bytes = 0

    def vertex_distances(self) -> Floats:
        """(m, k) squared distances from queries to the nearest point of each hull, minus |query|², approximately."""
        kind: type[Any] = np.float32 if float(self.square.max()) < 1e30 else np.float64
        Q: NDArray[Any] = self.Q.astype(kind)
        distances = np.empty((len(Q), len(self.hulls)))
        for hull, points in enumerate(self.hulls):
            single: NDArray[Any] = points.astype(kind)
            norms = np.einsum("ij,ij->i", single, single)
            for at in range(0, len(Q), QUERIES):
                distances[at : at + QUERIES, hull] = (norms - 2 * (Q[at : at + QUERIES] @ single.T)).min(axis=1)
        return distances

    def bounds(self, hull: int, selected: Integers, cutoff: Floats) -> tuple[Floats, Floats]:
        """Bounds of the distances from the selected queries to a hull; not refined beyond the cutoff."""
        lower, upper = np.zeros(len(selected)), np.full(len(selected), np.inf)
        points, d = self.hulls[hull], self.Q.shape[1]
        if len(selected) == 0:
            return lower, upper
        if len(points) ** 2 * 8 <= GRAM_BYTES:
            K = self._gram(hull)
            for at in range(0, len(selected), QUERIES):
                part = slice(at, at + QUERIES)
                S = self.Q[selected[part]] @ points.T
                lower[part], upper[part] = kernels.nearest(
                    K, S, self.square[selected[part]], cutoff[part], d=d, gap=GAP, threads=self.threads
                )
        rest = np.flatnonzero(np.isinf(upper) & (lower < cutoff))
        if len(rest):
            lower[rest], upper[rest] = self._exactly(points, self.Q[selected[rest]])
        return lower, upper

    def _gram(self, hull: int) -> Floats:
        """The inner products of a hull's points, from memory if possible."""
        points = self.hulls[hull]
        if hull not in self.products:
            if self.gram_bytes + len(points) ** 2 * 8 > GRAM_BYTES:
                self.products.clear()
                self.gram_bytes = 0
            blocks = np.array_split(points, 1 + len(points) // QUERIES)
            self.products[hull] = np.concatenate([block @ points.T for block in blocks])
            self.gram_bytes += len(points) ** 2 * 8
        return self.products[hull]

    def _exactly(self, points: Floats, queries: Floats) -> tuple[Floats, Floats]:
        """Bounds from the coordinates; each far query is solved alone, as its rounding errors are larger."""
        lower, upper = np.zeros(len(queries)), np.zeros(len(queries))
        far = np.abs(queries).max(axis=1) > 1e3 * max(longest(points), 1.0)
        for selected in (np.flatnonzero(~far), *np.flatnonzero(far)[:, None]):
            if len(selected):
                lower[selected], upper[selected] = self._solve(points, queries[selected])
        return lower, upper

    def _solve(self, points: Floats, queries: Floats) -> tuple[Floats, Floats]:
        """Bounds from the solver; 0 for queries inside the hull."""
        n = len(points)
        Z = np.concatenate([points, queries])
        groups = [np.arange(n), *(np.array([row]) for row in range(n, len(Z)))]
        pairs = np.column_stack([np.zeros(len(queries), np.int64), np.arange(1, len(groups))])
        verdicts = kernels.solve_pairs(
            Z,
            groups,
            pairs,
            tau=self.inside,
            slack=Frame.slack(longest(Z), Z.shape[1]),
            gap=GAP,
            threads=self.threads,
        )
        inside = verdicts.verdict == kernels.OVERLAPPING
        return np.where(inside, 0.0, np.maximum(verdicts.lower, 0.0)), np.where(inside, 0.0, verdicts.upper)

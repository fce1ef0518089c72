"""A plain implementation of the engine: DirectProbe as the paper describes it, one linear program per hull test.

Nothing here is fast, and nothing is shared with the engine: float64, numpy and scipy only.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog, nnls

Points = NDArray[np.float64]
Members = tuple[int, ...]  # the rows of a cluster, ascending: the first is its smallest
Pair = tuple[Members, Members]  # the cluster with the smaller first row comes first

TIE = 1e-10  # in RMS radii: distances of means this close to the smallest are equal
ROUNDING = 1e-14  # in squared radii: what float64 leaves of a product of two differences that should vanish


@dataclass(frozen=True)
class PlainClustering:
    """The clusters of the plain implementation, and every decision on the way."""

    assignments: NDArray[np.int64]  # (n,) cluster of each row; clusters are numbered by their smallest row
    cluster_labels: list[Any]  # label of each cluster
    conflicts: NDArray[np.int64]  # (m,) rows with an identical point under another label
    merges: list[Pair]
    refusals: list[Pair]


def plain_cluster(X: ArrayLike, y: ArrayLike, tau: float = 1e-6) -> PlainClustering:
    """DirectProbe's clusters: merge the closest means of one label, unless the union overlaps another label's hull.

    X: (n, d), y: (n,). A pair that was refused comes back once one side has grown, and is tested again.
    """
    points = in_radii(X)
    labels = np.asarray(y).tolist()
    conflicts = rows_in_conflict(X, y)
    clusters: list[Members] = [(row,) for row in range(len(labels))]
    candidates = distances_of_means(points, labels, conflicts, combinations(clusters, 2))
    merges, refusals = [], []
    while candidates:
        first, second = pair = closest(candidates)
        del candidates[pair]
        union = tuple(sorted(first + second))
        if meets_another_label(points, labels, union, clusters, tau):
            refusals.append(pair)
            continue
        merges.append(pair)
        clusters = [other for other in clusters if other not in pair]
        candidates = {(a, b): gap for (a, b), gap in candidates.items() if a not in pair and b not in pair}
        candidates |= distances_of_means(points, labels, conflicts, ((union, other) for other in clusters))
        clusters.append(union)
    names = [labels[members[0]] for members in sorted(clusters)]
    return PlainClustering(numbered(clusters, len(labels)), names, conflicts, merges, refusals)


@dataclass(frozen=True)
class PlainAttempts:
    """The clusters of the released loop, and its attempts."""

    assignments: NDArray[np.int64]  # as above
    merged: int
    blocked: int


def plain_released(X: ArrayLike, y: ArrayLike, *, limited: bool, tau: float = 1e-6) -> PlainAttempts:
    """The merging loop of the released code: with its limit on attempts until 2022, and without it afterwards.

    Without any test of overlap all rows of a label would be one cluster. If these clusters do not overlap, they are the
    result. Otherwise the loop takes the closest pair of clusters of one label, removes it from the candidates, and
    merges it unless the union overlaps a cluster of another label; the new cluster is a candidate with all others of
    its label. The limit is the number of rows, and every pair that is taken counts. Identical rows of one label are
    closest, so they come first; to that code two single places never overlap, so they merge even in conflict. In the
    result a row within tau of a row of another label is a cluster of its own, as everywhere.
    """
    points, labels = in_radii(X), np.asarray(y).tolist()
    n, places = len(labels), places_by_label(X, labels)
    identical = n - len(places)
    whole = [tuple(row for row in range(n) if labels[row] == label) for label in set(labels)]
    if not any(hulls_meet(points[list(a)], points[list(b)], tau) for a, b in combinations(whole, 2)):
        return PlainAttempts(numbered(whole, n), 0, 0)
    limit = n - identical if limited else None
    clusters, merged, blocked = merge_with_tests(points, labels, places, limit, tau)
    frozen = [place for place in places if meets_another_label(points, labels, place, places, tau)]
    clusters = [other for other in clusters if other not in frozen] + [(row,) for place in frozen for row in place]
    return PlainAttempts(numbered(clusters, n), identical + merged, blocked)


def plain_two_phases(X: ArrayLike, y: ArrayLike, tau: float = 1e-6) -> PlainAttempts:
    """The same loop in the two phases of the released code, with its limit, for a space that is not separable.

    The first phase merges without any test until one cluster is left for each label. The second begins at the last
    state in which no clusters overlap, and makes as many attempts as there are clusters then. No rows may be identical.
    """
    points, labels = in_radii(X), np.asarray(y).tolist()
    none = np.zeros(0, np.int64)
    states: list[list[Members]] = [[(row,) for row in range(len(labels))]]
    while candidates := distances_of_means(points, labels, none, combinations(states[-1], 2)):
        first, second = pair = closest(candidates)
        states.append([other for other in states[-1] if other not in pair] + [tuple(sorted(first + second))])

    def overlap(state: list[Members]) -> bool:
        return any(meets_another_label(points, labels, members, state, tau) for members in state)

    last = (
        bisect(states, x=False, key=overlap) - 1
    )  # states only grow, so clusters that overlap do so in all later ones
    clusters, merged, blocked = merge_with_tests(points, labels, states[last], len(states[last]), tau)
    return PlainAttempts(numbered(clusters, len(labels)), last + merged, blocked)


def merge_with_tests(
    points: Points, labels: list[Any], clusters: list[Members], limit: int | None, tau: float
) -> tuple[list[Members], int, int]:
    """Clusters after at most `limit` attempts (None: any number), and how many attempts merged and were blocked."""
    merged, blocked, none = 0, 0, np.zeros(0, np.int64)
    candidates = distances_of_means(points, labels, none, combinations(clusters, 2))
    while candidates and (limit is None or merged + blocked < limit):
        first, second = pair = closest(candidates)
        del candidates[pair]
        union = tuple(sorted(first + second))
        if meets_another_label(points, labels, union, clusters, tau):
            blocked += 1
            continue
        merged += 1
        clusters = [other for other in clusters if other not in pair]
        candidates = {(a, b): gap for (a, b), gap in candidates.items() if a not in pair and b not in pair}
        candidates |= distances_of_means(points, labels, none, ((union, other) for other in clusters))
        clusters = [*clusters, union]
    return clusters, merged, blocked


def places_by_label(X: ArrayLike, labels: list[Any]) -> list[Members]:
    """The rows of each label at each place."""
    places: dict[Any, list[int]] = {}
    for row, (place, label) in enumerate(zip((np.asarray(X) + 0.0).tolist(), labels, strict=True)):
        places.setdefault((*place, label), []).append(row)
    return [tuple(rows) for rows in places.values()]


def meets_another_label(
    points: Points, labels: list[Any], rows: Members, clusters: list[Members], tolerance: float
) -> bool:
    """Whether the hull of the rows meets the hull of a cluster of another label."""
    foes = [foe for foe in clusters if labels[foe[0]] != labels[rows[0]]]
    return any(hulls_meet(points[list(rows)], points[list(foe)], tolerance) for foe in foes)


def numbered(clusters: list[Members], n: int) -> NDArray[np.int64]:
    """(n,) the cluster of each row; clusters are numbered by their smallest row."""
    assignments = np.empty(n, dtype=np.int64)
    for number, members in enumerate(sorted(clusters)):
        assignments[list(members)] = number
    return assignments


def distances_of_means(
    points: Points, labels: list[Any], conflicts: NDArray[np.int64], pairs: Iterable[Pair]
) -> dict[Pair, float]:
    """The distance between the means of each pair that may merge: one label, no row in conflict."""
    frozen = set(conflicts.tolist())
    gaps = {}
    for a, b in pairs:
        if labels[a[0]] == labels[b[0]] and a[0] not in frozen and b[0] not in frozen:  # a frozen point is alone
            gap = points[list(a)].mean(axis=0) - points[list(b)].mean(axis=0)
            gaps[min(a, b), max(a, b)] = float(np.linalg.norm(gap))
    return gaps


def closest(candidates: dict[Pair, float]) -> Pair:
    """The pair with the closest means; the smallest rows win a tie."""
    smallest = min(candidates.values())
    return min(
        (pair for pair, gap in candidates.items() if gap - smallest < TIE), key=lambda pair: (pair[0][0], pair[1][0])
    )


def rows_in_conflict(X: ArrayLike, y: ArrayLike) -> NDArray[np.int64]:
    """The rows that are identical to a row of another label."""
    X, y = np.asarray(X), np.asarray(y)
    identical = (X[:, None] == X[None]).all(axis=2)
    return np.flatnonzero((identical & (y[:, None] != y[None])).any(axis=1))


def hulls_meet(A: ArrayLike, B: ArrayLike, tolerance: float) -> bool:
    """Whether the hulls of A (m, d) and B (k, d), centred and of radius about 1, are within the tolerance.

    The linear programme minimises t = |aA - bB|∞ over convex weights a and b: t is a lower bound of the distance, and
    its weights give an upper bound. Only a tolerance between the two needs the distance itself.
    """
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    if apart_along(np.vstack([np.eye(A.shape[1]), A.mean(axis=0) - B.mean(axis=0)]), A, B, tolerance):
        return False
    lower, upper = bounds_by_programme(A, B)
    if upper <= tolerance:
        return True
    if lower > tolerance:
        return False
    return plain_distance(A, B) <= tolerance


def apart_along(directions: Points, A: Points, B: Points, tolerance: float) -> bool:
    """Whether a direction of (m, d) has a gap above the tolerance: then the hulls are separable.

    It spares most programmes: the small sets together take a ninth of the time, with the same merges and refusals.
    """
    lengths = np.linalg.norm(directions, axis=1)
    a, b = A @ directions.T, B @ directions.T
    gaps = np.maximum(a.min(axis=0) - b.max(axis=0), b.min(axis=0) - a.max(axis=0))
    return bool((gaps > tolerance * lengths).any())


def bounds_by_programme(A: Points, B: Points) -> tuple[float, float]:
    """Bounds of the distance between the hulls, from the linear program that minimises the largest coordinate."""
    (m, d), k = A.shape, len(B)
    gap = np.hstack([A.T, -B.T])
    result = linprog(
        c=np.r_[np.zeros(m + k), 1.0],
        A_ub=np.vstack([np.c_[gap, -np.ones(d)], np.c_[-gap, -np.ones(d)]]),
        b_ub=np.zeros(2 * d),
        A_eq=np.vstack([np.r_[np.ones(m), np.zeros(k + 1)], np.r_[np.zeros(m), np.ones(k), 0.0]]),
        b_eq=np.ones(2),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.status != 0:
        raise ArithmeticError(f"the linear programme of a hull test gave no optimum: {result.message}")
    a, b = np.clip(result.x[:m], 0, None), np.clip(result.x[m : m + k], 0, None)
    return float(result.fun), float(np.linalg.norm(a / a.sum() @ A - b / b.sum() @ B))


def plain_distance(A: ArrayLike, B: ArrayLike) -> float:
    """The Euclidean distance between the hulls of A (m, d) and B (k, d), with relative error 1e-6.

    It is the norm of the smallest point of the hull of all differences D. Non-negative least squares finds it without
    a penalty: over w ≥ 0, |Dw|² + s²(1 - Σw)² is smallest along the ray of the wanted convex weights, whatever s > 0.
    A solver's tolerance hides distances far below s, so s follows the distance down.
    """
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    radius = rms_radius(np.vstack([A, B]))
    A, B = np.split(in_radii(np.vstack([A, B])), [len(A)])
    D = (A[:, None] - B).reshape(-1, A.shape[1]).T  # (d, m * k)
    s = 1.0
    for _ in range(6):
        weights, _ = nnls(np.vstack([D / s, np.ones(D.shape[1])]), np.r_[np.zeros(len(D)), 1.0])
        nearest = D @ (weights / weights.sum())
        upper = float(np.linalg.norm(nearest))
        if upper < 1e-12:
            return 0.0
        excess = upper**2 - float((nearest @ D).min())  # zero at the optimum
        if excess <= 1e-7 * upper**2 + ROUNDING:
            return radius * upper
        s = upper
    raise ArithmeticError(f"no nearest points found: the best are {upper} radii apart, their excess is {excess}")


def in_radii(X: ArrayLike) -> Points:
    """The rows of X around their mean, in units of their RMS radius."""
    X = np.asarray(X, dtype=np.float64)
    centred: Points = X - X.mean(axis=0)
    return centred / (rms_radius(X) or 1.0)


def rms_radius(X: ArrayLike) -> float:
    """The root of the mean squared distance from the mean."""
    X = np.asarray(X, dtype=np.float64)
    return float(np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()))

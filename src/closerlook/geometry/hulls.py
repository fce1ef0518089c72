"""Decide whether two convex hulls overlap, and compute their distance, with a proof that plain numpy can check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from closerlook.errors import InputError
from closerlook.geometry import kernels
from closerlook.geometry.frame import Floats, Frame, Integers, as_array, as_points, longest
from closerlook.geometry.proofs import Weighted, margin, offset, reach
from closerlook.notebook import html

Verdict = Literal["separable", "overlapping", "undecided"]

TAU = 1e-6
"""The default tolerance: hulls closer than this many RMS radii count as overlapping."""

GAP = 1e-6
"""Relative gap between the bounds of a distance: what the solver aims for.

The bounds themselves always hold. They may be farther apart for faces that are almost flat: if more than d points of a
face lie within 1e-8 RMS radii of a plane, but not on it, and the other hull is close. That is what a large common
offset does to a flat face, because it rounds the coordinates. The gap is then at most
GAP * distance + 100 * UNIT * offset + 1e-10 * radius (measured, not proved).
"""


@dataclass(frozen=True, eq=False)
class Separation:
    """The verdict on the convex hulls of A and B, with its proof.

    separable: the distance between the hulls is above `tolerance`. The proof is the hyperplane x · normal = offset,
    with A above and B below it. overlapping: the distance is at most `tolerance`. The proof is a point of each hull, at
    most `upper` apart: weights_a on rows_a of A and weights_b on rows_b of B, each summing to 1. undecided: the
    distance is so close to `tolerance` that neither proof was found.

    lower and upper are bounds of the distance, rounding included, for every verdict.

    >>> separate([[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 2.0]])
    Separation(separable, distance between 1 and 1)
    >>> separate([[0.0], [2.0]], [[1.0], [3.0]]).is_separable
    False
    """

    verdict: Verdict
    lower: float
    upper: float
    tolerance: float
    normal: Floats
    offset: float
    rows_a: Integers
    weights_a: Floats
    rows_b: Integers
    weights_b: Floats
    steps: int
    frame: Frame = field(repr=False)

    @property
    def distance(self) -> float:
        """The midpoint of the bounds of the distance; 0 for overlapping hulls."""
        return 0.0 if self.verdict == "overlapping" else self.lower + (self.upper - self.lower) / 2

    def __repr__(self) -> str:
        return f"Separation({self.verdict}, distance between {self.lower:.6g} and {self.upper:.6g})"

    def _repr_html_(self) -> str:
        proof = {
            "separable": "Proof: a hyperplane between the two hulls (normal, offset).",
            "overlapping": "Proof: a point of each hull, as weights of rows, at most the upper bound apart.",
            "undecided": f"No proof was found; the distance is close to the tolerance {self.tolerance:.3g}.",
        }
        return html(repr(self), proof[self.verdict])

    @property
    def gap(self) -> float:
        """The width of the interval: upper - lower."""
        return self.upper - self.lower

    @property
    def is_separable(self) -> bool:
        """Whether the hulls are proved separable."""
        return self.verdict == "separable"

    @property
    def residual(self) -> float:
        """An upper bound of the distance between the two weighted points."""
        return self.upper

    def verify(self, A: ArrayLike, B: ArrayLike) -> bool:
        """Whether the proof holds for A and B. It is checked on every point in plain numpy, without the solver.

        >>> result = separate([[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 2.0]])
        >>> result.verdict, result.verify([[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 2.0]])
        ('separable', True)
        """
        points_a, points_b = as_points(A, "A"), as_points(B, "B")
        if points_a.shape[1] != len(self.normal) or points_b.shape[1] != len(self.normal):
            return False
        holds = any(self._bounds_hold(points_a, points_b, exactly=exactly) for exactly in (False, True))
        if self.verdict == "separable":
            return holds and self.lower > self.tolerance
        if self.verdict == "overlapping":
            return holds and self.upper <= self.tolerance
        return holds

    def _bounds_hold(self, points_a: Floats, points_b: Floats, *, exactly: bool) -> bool:
        """Whether the points prove both bounds."""
        lower = self.frame.below(margin(self.frame, points_a, points_b, self.normal, exactly=exactly))
        upper = reach(self.frame, *self._sides(points_a, points_b), exactly=exactly)
        return (self.lower == 0 or lower >= self.lower * (1 - 1e-12)) and upper <= self.upper * (1 + 1e-12)

    def _sides(self, points_a: Floats, points_b: Floats) -> tuple[Weighted, Weighted]:
        """The points of each hull, with the rows and weights of the proof."""
        return (points_a, self.rows_a, self.weights_a), (points_b, self.rows_b, self.weights_b)


def separate(
    A: ArrayLike, B: ArrayLike, *, tau: float = TAU, scale: float | None = None, gap: float | None = GAP
) -> Separation:
    """Decide whether the convex hulls of A and B are separable, with their distance and a proof.

    A: (m, d), B: (n, d). The hulls overlap if their distance is at most tau * scale. scale: the RMS radius of the space
    that A and B come from (default: of A and B together). gap: the relative gap that the bounds of the distance should
    have (see `GAP` for an exception); None stops at the first proof.

    >>> result = separate([[0.0, 0.0], [2.0, 0.0]], [[1.0, 1.0], [1.0, 3.0]])
    >>> result.verdict, round(result.distance, 6)
    ('separable', 1.0)
    >>> separate([[0.0, 0.0], [2.0, 0.0]], [[1.0, -1.0], [1.0, 3.0]]).verdict
    'overlapping'
    """
    points_a, points_b = as_points(A, "A"), as_points(B, "B")
    if points_a.shape[1] != points_b.shape[1]:
        raise InputError(
            f"A has {points_a.shape[1]} coordinates and B has {points_b.shape[1]}; expected the same number in both"
        )
    check_tau(tau)
    if scale is not None and not (np.isfinite(scale) and scale >= 0):
        raise InputError(f"scale is {scale}; expected the RMS radius of the space, at least 0")
    if gap is not None and not 0 < gap < 1:
        raise InputError(f"gap is {gap}; expected a relative gap between 0 and 1, or None to decide only")
    frame = Frame.of(points_a, points_b)
    Z = frame.place(np.concatenate([points_a, points_b]))
    m = len(points_a)
    groups = (np.arange(m), np.arange(m, len(Z)))
    tolerance = tau * (frame.radius if scale is None else frame.inside(scale))
    verdicts = kernels.solve_pairs(
        Z,
        groups,
        np.array([[0, 1]]),
        tau=tolerance,
        slack=frame.slack(longest(Z), Z.shape[1]),
        gap=gap or 0.0,
        certificates=True,
    )
    return certified(
        verdicts,
        0,
        points_a=points_a,
        points_b=points_b,
        groups=groups,
        frame=frame,
        tolerance=float(frame.outside(tolerance)),
        gap=gap,
    )


def point_to_hull(point: ArrayLike, A: ArrayLike, *, tau: float = TAU, scale: float | None = None) -> Separation:
    """Decide whether a point is in the convex hull of A (overlapping), with its distance and a proof.

    point: (d,), A: (m, d). tau and scale: as for `separate`. In the proof, the hull is the first side and the point the
    second.

    >>> round(point_to_hull([3.0, 0.0], [[0.0, -1.0], [0.0, 1.0], [1.0, 0.0]]).distance, 6)
    2.0
    """
    given = as_array(point, "point")
    if given.ndim != 1:
        raise InputError(f"point has shape {given.shape}; expected one point: a list of its coordinates")
    query, hull = as_points(given[None], "point"), as_points(A, "A")
    if query.shape[1] != hull.shape[1]:
        raise InputError(f"point has {query.shape[1]} coordinates; expected {hull.shape[1]}, as the points of A")
    return separate(hull, query, tau=tau, scale=scale)


def check_tau(tau: float) -> None:
    """Raise InputError unless tau is between 0 and 1."""
    if not (np.isfinite(tau) and 0 < tau < 1):
        raise InputError(f"tau is {tau}; expected a part of the RMS radius, above 0 and below 1 (default {TAU:g})")


def certified(
    verdicts: kernels.Verdicts,
    at: int,
    *,
    points_a: Floats,
    points_b: Floats,
    groups: tuple[Integers, Integers],
    frame: Frame,
    tolerance: float,
    gap: float | None = None,
) -> Separation:
    """The separation that the solver claims for one pair, with bounds recomputed from the points.

    The sums are computed in float64 with a bound on their rounding errors. If that bound is too wide for a verdict, or
    for the gap, they are computed exactly. The verdict is 'undecided' if the proof does not hold even then.
    """
    place, weight, side, normal = verdicts.certificate(at)
    sides = []
    for sign, group in ((1, groups[0]), (-1, groups[1])):
        rows = np.searchsorted(group, place[side == sign])
        order = np.argsort(rows)
        sides.append((rows[order], weight[side == sign][order]))
    if not len(place):  # decided along the line of the means, without active points: any point of a hull is valid
        sides = [(np.zeros(1, np.int64), np.ones(1))] * 2
    for exactly in (False, True):
        lower = frame.below(margin(frame, points_a, points_b, normal, exactly=exactly))
        upper = reach(frame, (points_a, *sides[0]), (points_b, *sides[1]), exactly=exactly)
        verdict: Verdict = "undecided"
        if lower > tolerance:
            verdict = "separable"
        elif upper <= tolerance:
            verdict = "overlapping"
        is_wide = verdict == "separable" and gap is not None and upper - lower > gap * upper
        if verdict != "undecided" and not is_wide:
            break
    return Separation(
        verdict,
        max(lower, 0.0),
        upper,
        tolerance,
        normal,
        offset(frame, points_a, points_b, normal),
        *sides[0],
        *sides[1],
        int(verdicts.steps[at]),
        frame,
    )

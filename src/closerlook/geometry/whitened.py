"""Decide pairs of hulls on whitened points, where the solver needs fewer steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from closerlook.geometry import kernels
from closerlook.geometry.frame import UNIT, Frame, Integers

FLATTEST = 1e-3
"""Directions with less than this part of the largest variance are stretched only as much as one that has it."""


@dataclass(frozen=True)
class Whitened:
    """Points after a linear map that makes their variance nearly the same in all directions.

    The map changes the length of every vector by a factor between 1 and `stretch`. So hulls within t of each other
    after the map were within t before, and hulls more than t * stretch apart after the map were more than t apart.
    error: a bound on the rounding error of a distance that the map causes.
    """

    rows: kernels.Rows
    stretch: float
    error: float

    @classmethod
    def of(cls, rows: kernels.Rows) -> Whitened | None:
        """Whiten the rows; None if they are all identical, or if the directions found are not orthogonal."""
        variance, directions = np.linalg.eigh(rows.Z.T @ rows.Z / len(rows.Z))
        is_orthogonal = np.linalg.norm(directions.T @ directions - np.eye(len(variance))) < 1e-8
        if not (variance[-1] > 0 and is_orthogonal):
            return None
        factors = np.sqrt(variance[-1] / np.maximum(variance, FLATTEST * variance[-1])) * (1 + 1e-7)
        map_ = directions * factors
        error = 2 * (len(variance) + 4) * UNIT * rows.longest * float(np.linalg.norm(map_))
        return cls(kernels.Rows.of(rows.Z @ map_), float(factors.max()) * (1 + 1e-7), error)

    def verdicts(self, groups: Sequence[Integers], pairs: Integers, *, tau: float, threads: int) -> kernels.Signs:
        """The verdicts on pairs of groups of rows, for the points before the map; UNDECIDED if it does not tell."""
        found = kernels.solve_pairs(
            self.rows,
            groups,
            pairs,
            tau=max(tau - self.error, 0.0),
            slack=Frame.slack(self.rows.longest, self.rows.Z.shape[1]),
            threads=threads,
        )
        separable = (found.verdict == kernels.SEPARABLE) & (found.lower > tau * self.stretch + self.error)
        overlapping = (found.verdict == kernels.OVERLAPPING) & (tau > self.error)
        return np.select([separable, overlapping], [kernels.SEPARABLE, kernels.OVERLAPPING]).astype(np.int8)

"""Pearson and Spearman correlations over values that occur several times, as in the draws of a bootstrap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closerlook.geometry.frame import Floats, Integers


@dataclass(frozen=True, eq=False)
class Ranked:
    """Values, prepared so that their ranks in many draws are computed at once.

    values: (p,). order: (p,) sorts them. starts: where each run of equal values starts in that order. run: (p,) the run
    of each value.
    """

    values: Floats
    order: Integers
    starts: Integers
    run: Integers

    @classmethod
    def of(cls, values: Floats) -> Ranked:
        """Prepare values; equal ones share a rank."""
        run = np.unique(values, return_inverse=True)[1].reshape(-1)
        order = np.argsort(values, kind="stable")
        return cls(values, order, np.flatnonzero(np.diff(run[order], prepend=-1)), run)

    @property
    def constant(self) -> bool:
        """Whether all values are equal."""
        return len(self.starts) == 1

    def ranks(self, w: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """(k, p) the mean rank of each value in each of k draws, and (k,) whether all values in a draw are equal.

        w: (k, p) how often each value occurs in each draw.
        """
        times = np.add.reduceat(w[:, self.order], self.starts, axis=1)
        ranks = np.cumsum(times, axis=1) - (times - 1) / 2
        return ranks[:, self.run], times.max(axis=1) == times.sum(axis=1)

    def standardised(self) -> Floats:
        """(p,) with mean 0 and length 1: the inner product of two is their Pearson correlation."""
        centred = self.values - self.values.mean()
        return np.asarray(centred / np.linalg.norm(centred))


def weighted_correlations(w: Floats, x: Ranked, y: Ranked) -> tuple[Floats, Floats]:
    """(k,) Pearson and (k,) Spearman if value q occurs w[:, q] times, w: (k, p); NaN if a side is constant."""
    (x_ranks, x_constant), (y_ranks, y_constant) = x.ranks(w), y.ranks(w)
    lost = x_constant | y_constant
    pearson = np.where(lost, np.nan, _pearson(w, x.values, y.values))
    return pearson, np.where(lost, np.nan, _pearson(w, x_ranks, y_ranks))


def _pearson(w: Floats, x: Floats, y: Floats) -> Floats:
    """(k,) the correlation of x and y, (p,) or (k, p), with weights w: (k, p); in two passes, to avoid cancellation."""
    with np.errstate(invalid="ignore", divide="ignore"):  # a constant side; the caller sets NaN
        total = w.sum(axis=1, keepdims=True)
        dx = x - (w * x).sum(axis=1, keepdims=True) / total
        dy = y - (w * y).sum(axis=1, keepdims=True) / total
        covariance = (w * (dx * dy)).sum(axis=1)
        r = covariance / np.sqrt((w * (dx * dx)).sum(axis=1) * (w * (dy * dy)).sum(axis=1))
    return np.asarray(np.clip(r, -1.0, 1.0))

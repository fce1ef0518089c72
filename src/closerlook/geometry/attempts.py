"""Which points enter the greedy merging, and the limit on attempts that the released DirectProbe code had until 2022.

An attempt is a pair of clusters whose merge was tried, whether it was made or blocked. That code made as many attempts
as there are rows, and then returned the clusters of that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from closerlook.errors import InputError
from closerlook.geometry.arrange import Arrangement
from closerlook.geometry.frame import Floats, Integers
from closerlook.geometry.kernels import Merging, Signs

Limit = Literal["released"]
"""Which limit on attempts ends the merging."""


@dataclass(frozen=True)
class Attempts:
    """The attempts of a merging with a limit.

    rule: the name of the limit. limit: the maximum number of attempts. merged, blocked: the attempts that merged two
    clusters, and those that did not. All are 0 for a space that is linearly separable, which needs no attempt.

    >>> from closerlook.geometry import cluster
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "b", "a", "b"]
    >>> attempts = cluster(X, y, attempts="released").attempts
    >>> attempts
    Attempts(rule='released', limit=4, merged=0, blocked=2)
    >>> attempts.ran_out
    False
    """

    rule: Limit
    limit: int
    merged: int
    blocked: int

    @staticmethod
    def of(rule: Limit, n: int, merging: Merging | None) -> Attempts:
        """The attempts of a merging of n rows. Each merge of identical rows of one label, made before, is one."""
        if merging is None:
            return Attempts(rule, n, 0, 0)
        merges, identical = len(merging.first), n - len(merging.owner)
        return Attempts(rule, n, identical + merges, merging.effort["attempts"] - merges)

    @property
    def used(self) -> int:
        """The number of attempts made."""
        return self.merged + self.blocked

    @property
    def ran_out(self) -> bool:
        """Whether all attempts were used, so that clusters may be left that could still be merged."""
        return self.used == self.limit


def check_attempts(attempts: object) -> None:
    """Raise InputError unless `attempts` is None (no limit) or 'released'."""
    if attempts not in (None, "released"):
        raise InputError(f"attempts is {attempts!r}; expected None (no limit) or 'released'")


@dataclass(frozen=True, eq=False)
class Entrants:
    """The points that enter the greedy merging, sorted by label.

    places: for each point, the row of `Arrangement.Z`. rows: for each point, the first row of X that it represents.
    mass: how many rows of X it represents. starts: where each label begins. alone: for each point, 1 if it never
    merges.
    """

    places: Integers
    rows: Integers
    mass: Floats
    starts: Integers
    alone: Signs

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.places)


def enter(space: Arrangement, labels: Sequence[int], *, frozen: bool) -> Entrants:
    """The points of these labels; `frozen`: also the frozen positions, once for each of the labels that are there."""
    places, rows, mass = np.arange(space.n), space.rows[: space.n], space.mass
    codes = space.codes[rows]
    alone = np.zeros(space.n, np.int8)
    if frozen:
        own = np.flatnonzero(space.twin >= 0)
        key = space.item[own] * space.labels + space.codes[own]
        _, first, counts = np.unique(key, return_index=True, return_counts=True)
        own = own[first]
        places, rows = np.concatenate([places, space.item[own]]), np.concatenate([rows, own])
        mass, codes = np.concatenate([mass, counts.astype(np.float64)]), np.concatenate([codes, space.codes[own]])
        alone = np.concatenate([alone, np.ones(len(own), np.int8)])
    order = np.lexsort((rows, codes))
    order = order[np.isin(codes[order], labels)]
    starts = np.r_[np.searchsorted(codes[order], labels), len(order)].astype(np.int64)
    return Entrants(places[order], rows[order], mass[order], starts, alone[order])

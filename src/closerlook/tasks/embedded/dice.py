"""Random choices for the grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Dice:
    """Random choices of several kinds; they use only `Random.random`, which is the same in every version of Python."""

    rng: Random

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return self.rng.random() < p

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1, all equally likely."""
        return int(n * self.rng.random())

    def one(self, items: Sequence[T]) -> T:
        """One item, all equally likely."""
        return items[self.below(len(items))]

    def early(self, items: Sequence[T]) -> T:
        """One item; early items are more likely."""
        u = self.rng.random()
        return items[int(len(items) * u * u)]

    def rather_early(self, items: Sequence[T]) -> T:
        """One item; early items are a little more likely."""
        u = self.rng.random()
        return items[int(len(items) * (u + u * u) / 2)]

    def weighted(self, items: Sequence[tuple[T, float]]) -> T:
        """One item, with probability proportional to its weight."""
        left = self.rng.random() * sum(weight for _, weight in items)
        for item, weight in items:
            left -= weight
            if left < 0:
                return item
        return items[-1][0]

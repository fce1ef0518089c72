"""Which permutation p-values can be small: those from too few permutations are not shown as results."""

from __future__ import annotations

SIGNIFICANCE = 0.05
"""The largest p-value that counts as significant."""

FEWEST_SHUFFLES = 19
"""With fewer shuffles or permutations, a p-value cannot be 0.05 or lower, so it is not given."""


def why_no_p_value(shuffles: int, noun: str = "shuffles", advice: str = "run with 20 or more") -> str:
    """Why a p-value from so many shuffles is not given, with advice; empty if there are enough.

    >>> why_no_p_value(3)
    '3 shuffles cannot give p below 0.25; run with 20 or more'
    >>> why_no_p_value(20)
    ''
    """
    if shuffles >= FEWEST_SHUFFLES:
        return ""
    return f"{shuffles} {noun} cannot give p below {1 / (shuffles + 1):.2g}; {advice}"

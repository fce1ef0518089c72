"""How much a study fine-tuned, which decides how its page opens."""

from __future__ import annotations

from typing import Literal

from closerlook.study.readings import Results
from closerlook.study.runs import by_pair
from closerlook.study.verdicts import MINIMUM

Extent = Literal["none", "few", "many"]
"""none: nothing was fine-tuned. few: fewer pairs of encoder and task than a verdict needs. many: enough of them."""


def extent_of(results: Results) -> Extent:
    """How much a study fine-tuned; existing trainings count like its own."""
    if not results.all_runs:
        return "none"
    return "few" if len(by_pair(results.runs(own=True))) < MINIMUM else "many"

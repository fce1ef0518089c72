"""The kinds of cells, one module for each: settings, key, work, expected cost and measures of a kind are together."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.kinds import (
    centroids,
    checkpoint,
    classifier,
    comparison,
    control,
    description_length,
    explorer,
    extract,
    geometry,
    nulls,
    panel,
    point_similarity,
    released_clusters,
    sensitivity,
    sensitivity_comparison,
    split_halves,
    tune,
)
from closerlook.study.kinds.kind import Kind
from closerlook.study.measure import Measure
from closerlook.study.sizes import Estimate

KINDS: tuple[Kind, ...] = (
    extract.KIND,
    checkpoint.KIND,
    tune.KIND,
    classifier.KIND,
    control.KIND,
    description_length.KIND,
    geometry.KIND,
    released_clusters.KIND,
    comparison.KIND,
    centroids.KIND,
    panel.KIND,
    point_similarity.KIND,
    nulls.KIND,
    split_halves.KIND,
    sensitivity.KIND,
    sensitivity_comparison.KIND,
    explorer.KIND,
)


def _refuse_duplicates(what: str, names: list[str]) -> None:
    """Raise ValueError if a name occurs twice: one entry would hide the other wherever entries are found by name."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise ValueError(f"{what} {', '.join(twice)} is defined twice; expected each once")


_BY_NAME = {kind.name: kind for kind in KINDS}
_refuse_duplicates("kind", [kind.name for kind in KINDS])

_MEASURES: tuple[Measure, ...] = tuple(chain.from_iterable(kind.measures for kind in KINDS))
_refuse_duplicates("measure", [measure.name for measure in _MEASURES])

MEASURES: dict[str, Measure] = {measure.name: measure for measure in _MEASURES}
"""Every measure that a cell's rows may have, by name."""

REQUESTS: tuple[str, ...] = tuple(dict.fromkeys(chain.from_iterable(kind.requests for kind in KINDS)))
"""The names that a plan's `measures` may have."""


def kind_of(cell: Cell) -> Kind:
    """The kind of a cell."""
    return _BY_NAME[cell.kind]


def estimate_cell(study: ResolvedPlan, cell: Cell) -> Estimate:
    """The expected cost of a cell."""
    return kind_of(cell).estimate(study, cell)

"""The kinds of cells, one module for each, and the measures that they produce."""

from __future__ import annotations

from closerlook.study.kinds import (
    centroids,
    classifier,
    comparison,
    geometry,
    nulls,
    panel,
    point_similarity,
    split_halves,
    tune,
)
from closerlook.study.measure import Measure

_ALL: tuple[Measure, ...] = (
    *geometry.MEASURES,
    *classifier.MEASURES,
    *comparison.MEASURES,
    *centroids.MEASURES,
    *panel.MEASURES,
    *nulls.MEASURES,
    *split_halves.MEASURES,
    *point_similarity.MEASURES,
    *tune.MEASURES,
)
MEASURES: dict[str, Measure] = {measure.name: measure for measure in _ALL}
if len(MEASURES) < len(_ALL):
    raise RuntimeError("two measures have the same name")

"""How a measure is named and written on the page: taken from the registry of measures."""

from __future__ import annotations

from closerlook.report.nulls import COMPARED_WITH
from closerlook.report.tables import Column
from closerlook.study.registry import measure, split_name

SHORT = {"original": "pretrained"}
"""What a comparison is called in a measure's title, where that differs from COMPARED_WITH."""


def title_of(name: str) -> str:
    """The title of a measure, with what was compared.

    >>> title_of("n_clusters"), title_of("similarity_train_test"), title_of("similarity_random")
    ('clusters', 'train–test similarity', 'similarity to random weights')
    """
    title, comparison = measure(name).title, split_name(name)[1]
    plain = title.removeprefix("spatial ")
    if comparison.startswith("train_"):
        return f"train–{comparison.removeprefix('train_')} {plain}"
    return f"{plain} to {SHORT.get(comparison, COMPARED_WITH[comparison])}" if comparison else title


def column_of(name: str) -> Column:
    """A column that shows a measure with its number of digits."""
    return Column("", digits=measure(name).digits)

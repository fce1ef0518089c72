"""The last layer of an encoder: the highest at which a study measured one of its spaces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from closerlook.study.kinds import KINDS

if TYPE_CHECKING:
    import pandas as pd

HEAD_MEASURES = frozenset(measure.name for kind in KINDS if kind.makes_spaces for measure in kind.measures)
"""Measures of a fine-tuned head, not of a space: their rows have the encoder's full depth as their layer."""


def last_layer(layers: Iterable[int]) -> int:
    """The last layer: the highest of the measured ones, which need not be the last layer of the encoder."""
    return max(layers)


def measured_layers(table: pd.DataFrame) -> dict[str, tuple[int, ...]]:
    """For each encoder in a study's table, the layers at which one of its spaces was measured, in order."""
    spaces = table[["encoder", "layer"]][~table["measure"].isin(HEAD_MEASURES)]
    return {
        str(encoder): tuple(sorted(int(layer) for layer in layers.unique()))
        for encoder, layers in spaces.groupby("encoder", sort=False)["layer"]
    }


def last_layers(table: pd.DataFrame) -> dict[str, int]:
    """For each encoder in a study's table, the highest layer at which one of its spaces was measured."""
    return {encoder: last_layer(layers) for encoder, layers in measured_layers(table).items()}

"""Which layers of an encoder a study measures, and which of them is the last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from closerlook.encoders.source import EncoderInfo, Source
from closerlook.representations.extract import choose_layers
from closerlook.study.kinds import tune

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.study.plan import Plan

HEAD_MEASURES = frozenset(measure.name for measure in tune.MEASURES)
"""Measures of a fine-tuned head, not of a space: their rows have the encoder's full depth as their layer."""


def layers_of(plan: Plan, source: Source, info: EncoderInfo, *, ends: bool) -> list[int]:
    """The layers of an encoder that are measured: before and after fine-tuning (ends), or at the snapshots between."""
    between = set(choose_layers(plan.snapshot_layers, info.layers, source.name))
    if not ends:
        return sorted(between)
    return sorted(between | set(choose_layers(plan.layers, info.layers, source.name)))


def last_layer(layers: Iterable[int]) -> int:
    """The last layer: the highest of the measured ones, which need not be the last layer of the encoder."""
    return max(layers)


def measured_layers(table: pd.DataFrame) -> dict[str, tuple[int, ...]]:
    """For each encoder in a study's table, the layers at which one of its spaces was measured, in order."""
    spaces = table[~table["measure"].isin(HEAD_MEASURES)]
    return {
        str(encoder): tuple(sorted(int(layer) for layer in layers.unique()))
        for encoder, layers in spaces.groupby("encoder", sort=False)["layer"]
    }


def last_layers(table: pd.DataFrame) -> dict[str, int]:
    """For each encoder in a study's table, the highest layer at which one of its spaces was measured."""
    return {encoder: last_layer(layers) for encoder, layers in measured_layers(table).items()}

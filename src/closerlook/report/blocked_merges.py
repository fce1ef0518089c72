"""Blocked merges: clusters of one label that cannot merge, the cluster that blocks them, and the points involved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypedDict

from closerlook.errors import InputError
from closerlook.escaping import parse_json, show_all
from closerlook.study.readings import Results, own_ends

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 1_500_000
"""Maximum size of the blocked merges on the page; spaces of the last layers come first."""


class Point(TypedDict):
    """A point of a cluster, with its weight in the convex combination that both hulls share."""

    row: int
    weight: float
    word: str | None
    text: str | None


class BlockedMerge(TypedDict):
    """Two clusters of a label (with these sizes) that a cluster of another label blocks.

    decided: whether the overlap was proved; otherwise the distance is too close to tau.
    """

    label: str
    other: str
    sizes: list[int]
    blocker_size: int
    decided: bool
    points: list[Point]
    blocker_points: list[Point]


class BlockedSpace(TypedDict):
    """A space with blocked merges; seed: None before fine-tuning."""

    encoder: str
    task: str
    layer: int
    state: str
    seed: int | None
    clusters: int
    labels: int
    merges: list[BlockedMerge]


def blocked_spaces(results: Results) -> tuple[list[BlockedSpace], int]:
    """Each space with blocked merges, before and after, last layer first; and how many spaces did not fit on the page.

    Spaces in which all points coincide are excluded.
    """
    rows = results.of("blocked_merge")
    ends = rows[(rows.split == "train") & ((rows.tuned_on == "") | own_ends(rows))]
    spaces: list[tuple[tuple[int, int, int], BlockedSpace]] = []
    for _, part in ends.groupby(["encoder", "task", "layer", "tuned_on", "seed"]):
        if _value(results, part, "rms_radius") == 0:  # all points coincide, as those of [CLS] at layer 0
            continue
        place = part.iloc[0]
        encoder, task, layer, tuned = str(place.encoder), str(place.task), int(place.layer), bool(place.tuned_on)
        space = BlockedSpace(
            encoder=encoder,
            task=task,
            layer=layer,
            state="after" if tuned else "before",
            seed=int(place.seed) if tuned else None,
            clusters=int(_value(results, part, "n_clusters") or 0),
            labels=int(_value(results, part, "n_labels") or 0),
            merges=[_merge(*row) for row in part[["label", "other", "text"]].itertuples(index=False, name=None)],
        )
        depth = results.last_layer(encoder) - layer
        spaces.append(((depth, results.encoders.index(encoder), results.tasks.index(task)), space))
    spaces.sort(key=lambda keyed: keyed[0])
    return _fitting([space for _, space in spaces])


def _merge(label: str, other: str, text: str) -> BlockedMerge:
    try:
        content = show_all(parse_json(text))
        points = [point for side in ("points", "blocker_points") for point in content[side] or []]
        intact = all(isinstance(point, dict) for point in points)
    except (ValueError, KeyError, TypeError, RecursionError):
        intact = False
    if not intact:
        raise InputError(
            "a blocked merge in the table cannot be read: its text is no JSON of points; run the study again"
        )
    return BlockedMerge(
        label=label,
        other=other,
        sizes=content.get("sizes"),
        blocker_size=content.get("blocker_size"),
        decided=content.get("decided"),
        points=content.get("points"),
        blocker_points=content.get("blocker_points"),
    )


def _value(results: Results, part: pd.DataFrame, measure: str) -> float | None:
    """A measure of the space that the rows in `part` belong to."""
    place = part.iloc[0]
    rows = results.at(measure, str(place.encoder), str(place.task), layer=int(place.layer), split=str(place.split))
    same = (rows.tuned_on == place.tuned_on) & (rows.seed == place.seed) & (rows.step == place.step)
    values = rows[same].value
    return float(values.iloc[0]) if len(values) else None


def _fitting(spaces: list[BlockedSpace]) -> tuple[list[BlockedSpace], int]:
    room = MOST_BYTES
    kept: list[BlockedSpace] = []
    for space in spaces:
        room -= len(json.dumps(space))
        if room < 0 and kept:
            break
        kept.append(space)
    return kept, len(spaces) - len(kept)

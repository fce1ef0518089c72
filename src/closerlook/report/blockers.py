"""What keeps clusters of one label apart: which clusters, which points of another label, in their sentences."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from closerlook.study.readings import Results

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 1_500_000
"""Room for them in the page; the last layers come first."""


def blocked_spaces(results: Results) -> tuple[list[dict[str, Any]], int]:
    """Each space with refusals, before and after, last layer first; and how many spaces had no room.

    Spaces whose points are all one have nothing to tell.
    """
    rows = results.of("blocked_merge")
    ends = rows[(rows.split == "train") & ((rows.tuned_on == "") | ((rows.tuned_on == rows.task) & rows["is_final"]))]
    spaces: list[tuple[int, dict[str, Any]]] = []
    for (encoder, task, layer, tuned, seed), part in ends.groupby(["encoder", "task", "layer", "tuned_on", "seed"]):
        if _value(results, part, "rms_radius") == 0:  # one point for all, as [CLS] is at layer 0
            continue
        space = {
            "encoder": encoder,
            "task": task,
            "layer": int(layer),
            "state": "after" if tuned else "before",
            "seed": int(seed) if tuned else None,
            "clusters": int(_value(results, part, "n_clusters") or 0),
            "labels": int(_value(results, part, "n_labels") or 0),
            "refusals": [_refusal(row) for row in part[["label", "other", "text"]].itertuples(index=False)],
        }
        spaces.append((results.last_layer(str(encoder)) - int(layer), space))
    spaces.sort(
        key=lambda one: (one[0], results.encoders.index(one[1]["encoder"]), results.tasks.index(one[1]["task"]))
    )
    return _fitting([space for _, space in spaces])


def _refusal(row: Any) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(row.text)
    return {"label": row.label, "other": row.other} | {
        name: told.get(name) for name in ("sizes", "blocker_size", "decided", "points", "blocker_points")
    }


def _value(results: Results, part: pd.DataFrame, measure: str) -> float | None:
    place, rows = part.iloc[0], results.of(measure)
    same = [(rows[name] == place[name]) for name in ("encoder", "task", "layer", "tuned_on", "seed", "step", "split")]
    wanted = same[0]
    for one in same[1:]:
        wanted &= one
    found = rows[wanted].value
    return float(found.iloc[0]) if len(found) else None


def _fitting(spaces: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    room = MOST_BYTES
    kept: list[dict[str, Any]] = []
    for space in spaces:
        room -= len(json.dumps(space))
        if room < 0 and kept:
            break
        kept.append(space)
    return kept, len(spaces) - len(kept)

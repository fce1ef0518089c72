"""Whether results are of the study that a plan describes: the same name, data, weights and settings."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.errors import InputError
from closerlook.study.cells import Position, ResolvedPlan
from closerlook.study.combining import RUN
from closerlook.study.combining_manifests import PieceManifest, read_piece_manifest
from closerlook.study.graph import expand
from closerlook.study.results import home_of

if TYPE_CHECKING:
    import pandas as pd

STATE = [*RUN, "step"]
"""The columns of the table that say which weights a measurement is from."""

KnownWeights = Mapping[tuple[object, ...], set[str]]
"""The fingerprints of the weights, by the values of STATE."""

SECTIONS = {
    "classifier": ("sizes", "seeds", "max_rounds", "patience"),
    "geometry": ("tau", "min_points", "statistic", "permutations", "resamples"),
    "panel": ("neighbours",),
    "nulls": ("shuffles", "cluster_shuffles", "points"),
    "uncertainty": ("layers", "resamples"),
    "halves": ("repeats", "folds"),
    "sensitivity": ("min_points", "tau", "pools"),
}
"""Entries of a plan on which measurements depend, by section; the others say only what is measured.

Intervals are no cells of their own, so a layer cannot get them later.
"""

VECTORS = ("template", "dtype")
"""Entries of a plan on which all vectors depend."""

TRAINING = (
    *("epochs", "learning_rate", "batch_size", "warmup", "weight_decay", "early_stopping", "lora", "trained"),
    *("trainer_arguments", "window", "pool", *VECTORS),
)
"""Settings of a fine-tuning on which its weights depend."""


def check_same_study(study: ResolvedPlan, results: Path, table: pd.DataFrame) -> None:
    """Raise InputError if results are of a different study than a plan, or were measured with different settings.

    results: a folder or the table in it. table: what was read from it.
    """
    manifest = read_piece_manifest(home_of(results), ())
    _check_name_and_data(study, results, table, manifest)
    _check_weights(study, results, table)
    _check_settings(study, results, manifest)


def _check_name_and_data(study: ResolvedPlan, folder: Path, table: pd.DataFrame, manifest: PieceManifest) -> None:
    """Raise InputError if results are of a study with another name or with different examples, or are too old."""
    name = manifest.facts.study or next(iter(table["study"].dropna().unique()), study.plan.name)
    if name != study.plan.name:
        raise InputError(
            f"{folder} has results of the study {name!r}, and the plan is of {study.plan.name!r}; expected the plan "
            "of the same study, or one with the same name"
        )
    for entry, task in study.tasks.items():
        known = [facts.get("hash") for one, facts in manifest.facts.tasks.items() if _last(one) == _last(entry)]
        if known and task.content_hash not in known:
            raise InputError(
                f"the task {entry} has different examples or labels than in {folder}; expected the same data: restore "
                "its files, or run a study without --complete"
            )
    if len(table) and (table["pool"].fillna("") == "").all():
        raise InputError(
            f"{folder} has a table of version 0.1, which does not say how subwords were pooled; expected version 0.2 "
            "or newer: run a study without --complete"
        )


def _last(entry: str) -> str:
    return entry.rstrip("/").rpartition("/")[2]


def _check_weights(study: ResolvedPlan, folder: Path, table: pd.DataFrame) -> None:
    """Raise InputError if pretrained encoders or checkpoints have different weights in the results."""
    known = known_weights(table)
    for placement in expand(study, lambda key: None).placements:
        if has_other_weights(placement.position, known):
            raise InputError(
                f"the encoder {placement.position.encoder} has different weights than in {folder}; expected the same "
                "encoder: restore its files, or run a study without --complete"
            )


def known_weights(table: pd.DataFrame) -> KnownWeights:
    """The fingerprints of the weights in a table, by the values of STATE."""
    known: defaultdict[tuple[object, ...], set[str]] = defaultdict(set)
    for *state, weights in tuples_of(table[[*STATE, "weights"]].drop_duplicates()):
        known[tuple(state)] |= {weights} - {""}
    return known


def has_other_weights(position: Position, known: KnownWeights) -> bool:
    """Whether the weights at a position of the table are known, and different."""
    found = known.get(tuple(getattr(position, name) for name in STATE), set())
    return bool(found) and bool(position.weights) and position.weights not in found


def _check_settings(study: ResolvedPlan, folder: Path, manifest: PieceManifest) -> None:
    """Raise InputError if the results were measured, or their encoders fine-tuned, with different settings."""
    before, now = manifest.content.get("plan", {}), study.plan.to_dict()
    pairs = [
        (f"{section}.{name}", before[section].get(name), now[section][name])
        for section, names in SECTIONS.items()
        if isinstance(before.get(section), dict) and isinstance(now.get(section), dict)
        for name in names
        if name in before[section]
    ]
    pairs += [(name, before[name], now[name]) for name in VECTORS if name in before]
    for (encoder, task), settings in study.settings.items():
        current = settings.to_dict()
        earlier = _settings_of(manifest, encoder, task, current)
        pairs += [
            (f"{name} of {encoder} on {task}", earlier[name], current[name]) for name in TRAINING if name in earlier
        ]
    for name, one, other in pairs:
        if json.dumps(one) != json.dumps(other):
            raise InputError(
                f"{folder} has results with {name} = {one}, and the plan has {other}; expected the settings of these "
                "results: change the plan, or run a study without --complete"
            )
    _check_geometry(folder, set(manifest.facts.plan.measures), set(now["measures"]))


def _settings_of(manifest: PieceManifest, encoder: str, task: str, current: dict[str, Any]) -> dict[str, Any]:
    """The settings with which an encoder was fine-tuned on a task in the results; empty if it was not.

    Both may have been in other folders then. Of several with the same names, those that fit best.
    """
    same = [
        settings
        for name, settings in manifest.facts.settings.items()
        if tuple(map(_last, name.rsplit(" on ", 1))) == (_last(encoder), _last(task))
    ]
    return max(same, key=lambda one: sum(one.get(name) == current[name] for name in TRAINING), default={})


def _check_geometry(folder: Path, before: set[str], now: set[str]) -> None:
    """Raise InputError if the plan requests distances or intervals that the cells of the results do not have.

    Clusters, distances and their intervals are measured by the same cells, so they cannot be added one by one.
    """
    for requests in ({"distances", "similarity"}, {"uncertainty"}):
        if now & requests and not before & requests and before & {"clusters", "centroids", "distances", "similarity"}:
            raise InputError(
                f"{folder} has clusters without {min(now & requests)}, which are measured together; expected the "
                "measures of these results: change the plan, or run a study without --complete"
            )


def tuples_of(table: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """The rows of a table as tuples; a missing text is an empty one."""
    texts = {name: "" for name in table.columns if table[name].dtype == "string"}
    return table.fillna(texts).itertuples(index=False, name=None)

"""Artificial studies for tests: a small one written by hand, and generated ones of any size."""

import base64
import csv
import gzip
import json
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from closerlook.study.results import COLUMNS, MANIFEST, TABLE

GOLDEN = Path(__file__).parent / "golden.csv"
"""Written by hand; the expected values in the tests are worked out from it by hand too."""

BEYOND = Path(__file__).parent / "beyond.csv"
"""Additional rows with the measures beyond the paper."""

BLANK: dict[str, Any] = {
    "study": "golden",
    "seed": 0,
    "epoch": 0.0,
    "tuned_on": "",
    "method": "",
    "pool": "mean",
    "split": "train",
    "label": None,
    "other": None,
    "value": None,
    "ci_low": None,
    "ci_high": None,
    "n": None,
    "text": None,
    "cell": "cell",
    "weights": "0123456789abcdef",
    "version": "0",
}


def frame(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """The table of a study with those rows; missing columns get the values of BLANK."""
    return pd.DataFrame([BLANK | row for row in rows], columns=list(COLUMNS)).astype(COLUMNS)


def golden() -> pd.DataFrame:
    """The table of a study that measured what the paper did."""
    return frame(_lines(GOLDEN))


def golden_beyond() -> pd.DataFrame:
    """The same table with the measures beyond the paper."""
    return frame([*_lines(GOLDEN), *_lines(BEYOND)])


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as stream:
        lines = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    numbers = {"seed": int, "step": int, "layer": int, "value": float, "ci_low": float, "ci_high": float, "n": int}
    rows = []
    for line in lines:
        given = {name: numbers.get(name, str)(text) for name, text in line.items() if text != ""}
        rows.append({"tuned_on": "", **given, "is_final": line["is_final"] == "1"})
    return rows


def write_study(folder: Path, table: pd.DataFrame, manifest: dict[str, Any] | None = None) -> Path:
    """The folder of a finished study."""
    folder.mkdir(parents=True, exist_ok=True)
    table.to_parquet(folder / TABLE, index=False)
    if manifest is not None:
        (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def made_up(
    encoders: Sequence[str] = ("bert-tiny",),
    tasks: dict[str, Sequence[str]] | None = None,
    *,
    steps: Sequence[int] = (0, 1, 10, 100),
    layers: Sequence[int] = (0, 1, 2),
    seeds: Sequence[int] = (0,),
    word: str = "word",
    wider: bool = False,
) -> pd.DataFrame:
    """The table of a whole study with arbitrary numbers; steps: () for no fine-tuning.

    wider: with nulls, intervals over examples, the panel and split halves.
    """
    tasks = tasks or {"animals": ["cat", "dog", "eel"], "colours": ["red", "green", "blue", "grey"]}
    rows: list[dict[str, Any]] = []
    for encoder in encoders:
        for task, labels in tasks.items():
            start = {"encoder": encoder, "task": task, "step": 0, "is_final": False}
            for layer in layers:
                rows += _space(start | {"layer": layer}, labels, 1.0, word)
            rows += _probed(start | {"layer": layers[-1]}, 0.8)
            if wider:
                rows += _wider(start | {"layer": layers[-1]}, labels, 1.0)
                rows += [
                    start | {"layer": layers[-1], "other": other, "measure": f"{one}_encoder", "value": 0.4}
                    for other in encoders[encoders.index(encoder) + 1 :]
                    for one in SIMILARITIES
                ]
            for seed in seeds if steps else ():
                for at, step in enumerate(steps):
                    end = step == steps[-1]
                    place = start | {"tuned_on": task, "seed": seed, "step": step, "is_final": end}
                    grown = 1 + at + 0.1 * seed
                    for layer in layers:
                        rows += _space(place | {"layer": layer}, labels, grown, word)
                        rows += _compared(place | {"layer": layer}, labels, 1 - 0.1 * at * layer, grown)
                        if end:
                            rows += _paths(place | {"layer": layer}, labels, steps)
                    if end:
                        rows += _probed(place | {"layer": layers[-1]}, 0.9)
                    if end and wider:
                        rows += _wider(place | {"layer": layers[-1]}, labels, grown)
                        rows += _comparisons(place, layers, seeds)
    return frame(rows)


SIMILARITIES = ("similarity", "cka", "rsa", "procrustes", "shared_neighbours")
MEASURES = (
    *("nc1", "cdnv", "nc2_norm", "nc2_angle", "nc3", "nc4", "participation_ratio", "two_nn", "iso_score"),
    *(
        "mean_cosine",
        "outlier_dimensions",
        "logme",
        "gdv",
        "silhouette",
        "n_overlapping_pairs",
        "largest_overlap_share",
    ),
    *(
        "mean_largest_cluster_share",
        "n_over_2d",
        "cover_probability",
        "separable_pairs_n_over_2d",
        "separable_pairs_cover_probability",
    ),
)


def _wider(place: dict[str, Any], labels: Sequence[str], grown: float) -> list[dict[str, Any]]:
    """The measures beyond the paper, before and after fine-tuning."""
    rows = [place | {"measure": name, "value": at + grown / 10} for at, name in enumerate(MEASURES)]
    for name, value in (
        ("separable_pairs", 0.9),
        ("subsampled_clusters", 5.0),
        ("subsampled_mean_minimum_distance", 2.0),
    ):
        for end, null in {"": value, "_null_mean": value / 2, "_null_sd": 0.1, "_z": 3.0, "_p_value": 0.05}.items():
            rows.append(place | {"measure": f"{name}{end}", "value": null, "n": 2000})
    for what in ("train_test", "random", *(["original"] if place.get("tuned_on") else [])):
        for name, value in (("null_mean", 0.05), ("null_sd", 0.1), ("p_value", 0.01)):
            rows.append(place | {"measure": f"similarity_{name}_{what}", "value": value, "n": 999})
        interval = {"ci_low": 0.4, "ci_high": 0.9, "n": 20}
        rows.append(place | {"measure": f"similarity_over_examples_{what}", "value": 0.8} | interval)
    rows += [place | {"measure": f"{name}_random", "value": 0.3, "other": "random"} for name in SIMILARITIES]
    rows += [place | {"measure": f"similarity_{part}", "value": 0.7 + grown / 50} for part in ("halves", "folds")]
    rows.append(place | {"measure": "mean_minimum_distance_bias", "value": 0.2, "n": 20})
    few = {
        "measure": "few_points",
        "label": labels[0],
        "value": 3.0,
        "text": "only 3 points (fewer than 5): unreliable",
    }
    rows.append(place | few)
    if place.get("tuned_on"):
        for at, label in enumerate(labels):
            rows.append(
                place
                | {"measure": "minimum_distance_change_p_value", "label": label, "value": 0.04 * (at + 1), "n": 20}
            )
        rows.append(place | {"measure": "n_labels_significantly_increased", "value": 1.0, "n": len(labels)})
        rows.append(place | {"measure": "n_labels_significantly_decreased", "value": 0.0, "n": len(labels)})
        rows.append(place | {"measure": "head_accuracy", "split": "test", "value": 0.9 + grown / 100})
    return rows


def _comparisons(place: dict[str, Any], layers: Sequence[int], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """The end of a fine-tuning run compared with the pretrained encoder, by layer, and with earlier seeds."""
    rows = [
        place | {"layer": layer, "measure": f"{name}_original", "value": 1 - 0.2 * layer}
        for layer in layers
        for name in SIMILARITIES[1:]
    ]
    for other in seeds[: seeds.index(place["seed"])]:
        there = place | {"layer": layers[-1], "other": str(other)}
        rows += [there | {"measure": f"{name}_seed", "value": 0.6} for name in SIMILARITIES]
    return rows


def _space(place: dict[str, Any], labels: Sequence[str], grown: float, word: str) -> list[dict[str, Any]]:
    m = len(labels)
    rows = [
        place | {"measure": measure, "value": value}
        for measure, value in [
            *(("n_points", 10.0 * m), ("n_labels", float(m)), ("n_clusters", m + 2.0 / grown), ("is_separable", 0.0)),
            *(("n_conflicts", 0.0), ("n_undecided", 0.0), ("rms_radius", 2.0 * grown)),
            *(("mean_minimum_distance", grown), ("mean_relative_minimum_distance", grown / 2)),
        ]
    ]
    for at, label in enumerate(labels):
        near = labels[at - 1]
        rows.append(place | {"measure": "label_clusters", "label": label, "value": 1.0, "n": 10})
        for measure, value in (("minimum_distance", grown + at), ("relative_minimum_distance", (grown + at) / 2)):
            rows.append(place | {"measure": measure, "label": label, "other": near, "value": value})
        for there in range(at + 1, m):
            distance = {
                "measure": "label_distance",
                "label": label,
                "other": labels[there],
                "value": grown + at + there,
            }
            rows.append(place | distance)
    point = {"row": 3, "weight": 0.75, "word": word, "text": f"a {word} here"}
    content = {"clusters": [0, 1], "sizes": [8, 2], "blocker": 2, "blocker_size": 10, "decided": True}
    content |= {"points": [point], "blocker_points": [point | {"word": None, "text": None}]}
    text = json.dumps(content, ensure_ascii=False)
    return [*rows, place | {"measure": "blocked_merge", "label": labels[0], "other": labels[-1], "n": 10, "text": text}]


def _probed(place: dict[str, Any], value: float) -> list[dict[str, Any]]:
    similarity = place | {"measure": "similarity_train_test", "ci_low": 0.5, "ci_high": 1.0, "n": 3}
    return [
        place | {"split": "test", "measure": "accuracy", "value": value, "n": 50, "text": "32×32"},
        place | {"split": "test", "measure": "accuracy_sd", "value": 0.01, "n": 5},
        similarity | {"value": 1.7 - value},
    ]


def _compared(place: dict[str, Any], labels: Sequence[str], similarity: float, grown: float) -> list[dict[str, Any]]:
    interval = {"ci_low": similarity - 0.1, "ci_high": min(1.0, similarity + 0.1), "n": len(labels)}
    return [
        place | {"measure": "similarity_original", "value": similarity} | interval,
        place | {"measure": "similarity_p_value_original", "value": 0.01, "n": 999},
        place | {"measure": "n_labels_increased", "value": float(len(labels)) if grown > 1 else 0.0},
        place | {"measure": "n_labels_decreased", "value": 0.0},
        place | {"measure": "mean_minimum_distance_change", "value": grown - 1, "n": len(labels)},
    ]


def _paths(place: dict[str, Any], labels: Sequence[str], steps: Sequence[int]) -> list[dict[str, Any]]:
    rows = [
        place | {"measure": f"{what}_explained_variance_{axis}", "value": 0.4}
        for what in ("path", "shift")
        for axis in "xy"
    ]
    for at, label in enumerate(labels):
        for turn, step in enumerate(steps):
            here = place | {"label": label, "step": step}
            rows.append(here | {"measure": "centroid_x", "value": float(at + turn)})
            rows.append(here | {"measure": "centroid_y", "value": float(at - turn * (at % 2))})
        for measure, value in (("shift_x", 3.0 + at), ("shift_y", float(at % 3)), ("shift_length", 4.0 + at)):
            rows.append(place | {"measure": measure, "label": label, "value": value})
    return rows


def unpack_data(packed: str) -> dict[str, Any]:
    """The data of a page, from its compressed text."""
    lines = gzip.decompress(base64.b64decode(packed)).decode().split("\n")
    return {name: json.loads(text) for name, text in (line.split(" ", 1) for line in lines)}


def data_of(page: str) -> dict[str, Any]:
    """The data of a page, from its HTML."""
    (packed,) = re.findall(r'<script type="text/plain" id="page-data">([^<]+)</script>', page)
    return unpack_data(packed)


def without_data(page: str) -> str:
    """The HTML of a page without its data."""
    return re.sub(r'(id="page-data">)[^<]+', r"\1", page)


def browser() -> str | None:
    """The path of a Chromium on this machine."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

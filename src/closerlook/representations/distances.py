"""Distances of labels as JSON, so that spaces can be compared without measuring them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from closerlook.errors import InputError
from closerlook.geometry import LabelDistances
from closerlook.geometry.frame import Floats

KEY = "label_distances"
"""Where they are in what `closerlook probe --json` prints."""


def to_dict(table: LabelDistances) -> dict[str, Any]:
    """The fields by name, for JSON; `read_distances` reads them back."""
    return dict(vars(table)) | {"relative": table.relative}


def read_distances(path: Path) -> tuple[str, LabelDistances]:
    """The title and the distances of the labels in a file that `closerlook probe --json` wrote."""
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from None
    held = told.get(KEY) if isinstance(told, dict) else None
    if not isinstance(held, dict):
        raise InputError(f"{path} holds no {KEY}; expected what `closerlook probe --json` prints, distances included")
    try:
        table = LabelDistances(
            labels=tuple(str(label) for label in held["labels"]),
            values=_matrix(held["values"]),
            lower=_matrix(held["lower"]),
            upper=_matrix(held["upper"]),
            statistic=held["statistic"],
            separable=bool(held["separable"]),
            min_points=int(held["min_points"]),
            excluded=dict(held["excluded"]),
            radius=float(held["radius"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{path}: its {KEY} cannot be read ({what}); make it again with closerlook probe") from None
    return str(told.get("title") or path.name), table


def _matrix(rows: Any) -> Floats:
    """(m, m) with NaN for null."""
    return np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=np.float64)

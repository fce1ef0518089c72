"""Label distances as JSON, so that spaces can be compared without computing them again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from closerlook.errors import InputError
from closerlook.escaping import parse_json
from closerlook.geometry import LabelDistances
from closerlook.geometry.frame import Floats

KEY = "label_distances"
"""Their key in the JSON that `closerlook probe --json` prints."""


def to_dict(table: LabelDistances) -> dict[str, object]:
    """The fields by name, for JSON; `read_distances` parses them."""
    return dict(vars(table)) | {"relative": table.relative}


def read_distances(path: Path) -> tuple[str, LabelDistances]:
    """The title and the label distances in a file that `closerlook probe --json` wrote."""
    try:
        content = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from None
    saved = content.get(KEY) if isinstance(content, dict) else None
    if not isinstance(saved, dict):
        raise InputError(f"{path} holds no {KEY}; expected what `closerlook probe --json` prints, distances included")
    try:
        table = LabelDistances(
            labels=tuple(str(label) for label in saved["labels"]),
            values=_matrix(saved["values"], len(saved["labels"])),
            lower=_matrix(saved["lower"], len(saved["labels"])),
            upper=_matrix(saved["upper"], len(saved["labels"])),
            statistic=saved["statistic"],
            separable=bool(saved["separable"]),
            min_points=int(saved["min_points"]),
            excluded=dict(saved["excluded"]),
            radius=float(saved["radius"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        raise InputError(f"{path}: its {KEY} cannot be read ({reason}); make it again with closerlook probe") from None
    return str(content.get("title") or path.name), table


def read_sizes(path: Path) -> tuple[dict[str, int] | None, int | None]:
    """The number of points of each label, and of dimensions, in a file that `closerlook probe --json` wrote."""
    content = parse_json(path.read_bytes())
    try:
        return {str(row["label"]): int(row["points"]) for row in content["by_label"]}, int(content["d"])
    except (KeyError, TypeError, ValueError):
        return None, None


def _matrix(rows: Iterable[Iterable[float | None]], m: int) -> Floats:
    """(m, m) the numbers, with NaN for null."""
    matrix = np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=np.float64)
    if matrix.shape != (m, m):
        raise ValueError(f"a matrix of shape {matrix.shape} for {m} labels")
    return matrix

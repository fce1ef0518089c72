"""The rows of a cell's result: one measurement each, as plain values for JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Row = dict[str, Any]
"""A measure, its value, and the columns of the table that the row sets itself: label, other, n, text, step, …"""

Payload = dict[str, Any]
"""What other cells need of a result, as JSON."""


def row(measure: str, value: float | None, **columns: object) -> Row:
    """One measurement; NaN and infinity become None, since JSON has neither."""
    return {"measure": measure, "value": plain(value)} | {
        name: plain(content) for name, content in columns.items() if content is not None
    }


def plain(value: object) -> object:
    """A numpy number as a Python number; a number that is not finite as None."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value

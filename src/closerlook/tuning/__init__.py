"""Fine-tuning an encoder on a task with snapshots of its vectors; a callback that measures geometry in any Trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from closerlook.tuning.alarms import Alarm
from closerlook.tuning.finetune import tune
from closerlook.tuning.settings import TuningSettings
from closerlook.tuning.tuned import Snapshot, TuningResult, snapshot_spaces

if TYPE_CHECKING:
    from closerlook.tuning.callback import GeometryCallback

__all__ = ["Alarm", "GeometryCallback", "Snapshot", "TuningResult", "TuningSettings", "snapshot_spaces", "tune"]


def __getattr__(name: str) -> type[GeometryCallback]:
    """`GeometryCallback`, imported on first use: it needs transformers, and a finished run is read without torch."""
    if name != "GeometryCallback":
        raise AttributeError(f"module 'closerlook.tuning' has no attribute {name!r}")
    from closerlook.tuning.callback import GeometryCallback

    return GeometryCallback

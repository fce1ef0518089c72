"""Fine-tuning on a task, with snapshots of the vectors along the way; and geometry inside a user's own training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from closerlook.tuning.finetune import tune
from closerlook.tuning.tuned import Snapshot, TuningResult, snapshot_spaces

if TYPE_CHECKING:
    from closerlook.tuning.callback import GeometryCallback

__all__ = ["GeometryCallback", "Snapshot", "TuningResult", "snapshot_spaces", "tune"]


def __getattr__(name: str) -> Any:
    """The callback, which needs transformers, imported when first asked for: a finished run is read without torch."""
    if name != "GeometryCallback":
        raise AttributeError(f"module 'closerlook.tuning' has no attribute {name!r}")
    from closerlook.tuning.callback import GeometryCallback

    return GeometryCallback

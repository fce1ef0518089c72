"""A fine-tuning, with the spaces of its snapshots."""

from __future__ import annotations

from closerlook.study.measure import Measure

MEASURES = (
    Measure(
        "head_accuracy",
        "accuracy of the fine-tuned head, %",
        "accuracy of the linear head that was trained with the encoder",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "head_loss",
        "loss of the fine-tuned head",
        "cross-entropy of the linear head that was trained with the encoder",
        digits=3,
        on_test=True,
        archive="none",
    ),
)

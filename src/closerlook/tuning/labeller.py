"""The model that is trained: an encoder, and a linear layer over exactly the vectors that are probed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from closerlook.encoders.alignment import pool
from closerlook.encoders.encoder import Encoder
from closerlook.representations.targets import VECTORS_PER_EXAMPLE
from closerlook.tasks.task import Task

CHUNK = 65536
"""Rows scored at a time."""


class Labeller(torch.nn.Module):
    """An encoder with a linear head; the head sees the last layer's pooled vectors and nothing else."""

    accepts_loss_kwargs = True  # the Trainer then counts the examples of an accumulated batch for us

    def __init__(self, encoder: Encoder, task: Task) -> None:
        super().__init__()
        self.encoder = encoder
        self.body = encoder.model  # so that its parameters are this module's
        self.head = torch.nn.Linear(
            VECTORS_PER_EXAMPLE[task.unit] * encoder.info.width, len(task.labels), device=encoder.device
        )

    def vectors(self, batch: Any) -> torch.Tensor:
        """(n, d) the vectors of a batch's examples, differentiable."""
        last = self.encoder.hidden_states(batch.windows)[-1]
        return pool([last], batch.slots)[0].reshape(-1, self.head.in_features)

    def forward(
        self, batch: Any, labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None = None
    ) -> dict[str, torch.Tensor]:
        """The mean loss over the examples of the whole, possibly accumulated, batch; and the logits."""
        logits = self.head(self.vectors(batch))
        total = cross_entropy(logits.float(), labels.to(logits.device), reduction="sum")
        return {"loss": total / (len(labels) if num_items_in_batch is None else num_items_in_batch), "logits": logits}

    def score(self, X: NDArray[np.float32], y: NDArray[np.int32]) -> tuple[float, float]:
        """Mean loss and accuracy of the head on vectors that were extracted."""
        loss, right = 0.0, 0
        with torch.inference_mode():
            for start in range(0, len(X), CHUNK):
                part = slice(start, start + CHUNK)
                logits = self.head(torch.tensor(X[part]).to(self.head.weight.device))
                labels = torch.tensor(y[part], dtype=torch.long, device=logits.device)
                loss += float(cross_entropy(logits.double(), labels, reduction="sum"))
                right += int((logits.argmax(1) == labels).sum())
        return loss / len(X), right / len(X)

    def gradient_checkpointing_enable(self, *arguments: Any, **options: Any) -> None:
        """As the Trainer asks for it: the encoder's own."""
        self.body.gradient_checkpointing_enable(*arguments, **options)

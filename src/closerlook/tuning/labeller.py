"""The model that is trained: an encoder with a linear head on the same pooled vectors that are stored."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy, normalize

from closerlook.encoders.alignment import pool
from closerlook.encoders.encoder import Encoder
from closerlook.tasks.task import VECTORS_PER_EXAMPLE, Task
from closerlook.tuning.examples import Batch

CHUNK = 65536
"""Maximum number of rows that are scored in one batch."""


class Labeller(torch.nn.Module):
    """An encoder with a linear head on the pooled vectors of its last layer."""

    accepts_loss_kwargs = True  # the Trainer then passes num_items_in_batch
    _keys_to_ignore_on_save = None  # the Trainer reads it when a saved state lacks weights, as frozen ones

    def __init__(self, encoder: Encoder, task: Task) -> None:
        super().__init__()
        self.encoder = encoder
        self.body = encoder.model  # registers the parameters with this module
        self.head = torch.nn.Linear(
            VECTORS_PER_EXAMPLE[task.unit] * encoder.info.width, len(task.labels), device=encoder.device
        )

    def vectors(self, batch: Batch) -> torch.Tensor:
        """The vectors (n, d) of the examples of a batch, differentiable."""
        last = self.encoder.hidden_states(batch.windows)[-1]
        vectors = pool([last], batch.slots)[0]
        return (normalize(vectors) if batch.normalized else vectors).reshape(-1, self.head.in_features)

    def forward(
        self, batch: Batch, labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None = None
    ) -> dict[str, torch.Tensor]:
        """The mean loss over the examples, and the logits.

        num_items_in_batch: the number of examples in all batches that the Trainer accumulates into one step.
        """
        logits = self.head(self.vectors(batch))
        total = cross_entropy(logits.float(), labels.to(logits.device), reduction="sum")
        return {"loss": total / (len(labels) if num_items_in_batch is None else num_items_in_batch), "logits": logits}

    def score(self, X: NDArray[np.float32], y: NDArray[np.int32]) -> tuple[float, float]:
        """The mean loss and the accuracy of the head on vectors X (n, d) with labels y (n,)."""
        loss, correct = 0.0, 0
        with torch.inference_mode():
            for start in range(0, len(X), CHUNK):
                rows = slice(start, start + CHUNK)
                logits = self.head(torch.tensor(X[rows]).to(self.head.weight.device))
                labels = torch.tensor(y[rows], dtype=torch.long, device=logits.device)
                loss += float(cross_entropy(logits.double(), labels, reduction="sum"))
                correct += int((logits.argmax(1) == labels).sum())
        return loss / len(X), correct / len(X)

    def trained_state(self) -> dict[str, torch.Tensor]:
        """The tensors that training changes, by name: trainable weights and buffers."""
        frozen = {name for name, weight in self.named_parameters(remove_duplicate=False) if not weight.requires_grad}
        return {name: tensor for name, tensor in self.state_dict().items() if name not in frozen}

    def gradient_checkpointing_enable(self, *arguments: object, **options: object) -> None:
        """Turn on gradient checkpointing in the encoder; the Trainer calls this if its arguments request it."""
        self.body.gradient_checkpointing_enable(*arguments, **options)

"""What to do when memory runs out: recognise the error, and make batches smaller."""

from __future__ import annotations

import logging

import torch

log = logging.getLogger("closerlook")


class Budget:
    """The number of padded tokens that fit into a batch: unlimited until memory runs out, then halved each time."""

    def __init__(self) -> None:
        self.tokens: int | None = None

    def limit(self, requested: int) -> int:
        """The requested number of tokens, or fewer if that many did not fit earlier."""
        return requested if self.tokens is None else min(requested, self.tokens)

    def halve(self, failed: int) -> None:
        """Allow half as many tokens as the batch that did not fit, and say so in the log."""
        self.tokens = max(1, failed // 2)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        log.warning("out of memory with %d tokens in a batch; continuing with at most %d", failed, self.tokens)


def is_out_of_memory(error: Exception) -> bool:
    """Whether the error says that a device or the machine has no memory left."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)

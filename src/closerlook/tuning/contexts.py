"""Context managers for training: random states, deterministic algorithms, and no messages from transformers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from closerlook.errors import WorkError


@contextmanager
def preserved_random_state() -> Iterator[None]:
    """Restore the global random states of Python, numpy and torch after the block."""
    python_state, numpy_state, torch_state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    device_states = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        torch.set_rng_state(torch_state)
        if device_states:
            torch.cuda.set_rng_state_all(device_states)


@contextmanager
def deterministic_algorithms(device: torch.device) -> Iterator[None]:
    """Use torch's deterministic algorithms inside the block, on a GPU; a CPU is deterministic for one thread count.

    `choose_device` has asked cuBLAS for the same.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    except RuntimeError as error:
        if "determinis" not in str(error):
            raise
        reason = str(error).split(". ")[0]
        raise WorkError(
            f"this encoder cannot be fine-tuned deterministically ({reason}); pass deterministic=False"
        ) from None
    finally:
        torch.use_deterministic_algorithms(before)


@contextmanager
def quiet() -> Iterator[None]:
    """Turn off the log messages and progress bars of transformers inside the block."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()

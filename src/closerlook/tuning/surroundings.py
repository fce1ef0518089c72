"""What a training needs around it and must not leave behind: seeds, determinism, quiet libraries."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from closerlook.errors import WorkError


@contextmanager
def kept_randomness() -> Iterator[None]:
    """Whatever the block draws, the random numbers after it are those that would have come without it."""
    ours, numpys, torchs = random.getstate(), np.random.get_state(), torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(numpys)
        torch.set_rng_state(torchs)
        if devices:
            torch.cuda.set_rng_state_all(devices)


@contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """The same sums in the same order every time; on a CPU they are so already, for one number of threads."""
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when the first matrices are multiplied
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    except RuntimeError as error:
        if "determinis" not in str(error):
            raise
        reason = str(error).split(". ")[0]
        raise WorkError(
            f"this encoder cannot be tuned deterministically ({reason}); pass deterministic=False"
        ) from None
    finally:
        torch.use_deterministic_algorithms(before)


@contextmanager
def quiet() -> Iterator[None]:
    """transformers' notes and bars kept off the screen inside the block."""
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

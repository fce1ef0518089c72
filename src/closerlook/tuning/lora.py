"""Low-rank adapters through PEFT: few weights are trained, the encoder's own stay as they are."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from closerlook.encoders.encoder import Encoder, weights_digest
from closerlook.errors import InputError

DROPOUT = 0.05


def require_peft() -> None:
    """Nothing where PEFT is installed; else an error that says how to install it."""
    try:
        import peft  # noqa: F401 - only whether it is there
    except ImportError:
        raise InputError("lora requested; install PEFT with `pip install closerlook[peft]`") from None


def adapt(encoder: Encoder, rank: int) -> tuple[Encoder, Any]:
    """The encoder with adapters put into its model, and PEFT's handle on them.

    An adapter starts at zero, so that the encoder computes what it did and keeps its fingerprint until the first step.
    """
    import peft
    from peft.utils import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as USUAL

    fingerprint = encoder.fingerprint
    config = peft.LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        lora_dropout=DROPOUT,
        target_modules=None if encoder.model.config.model_type in USUAL else "all-linear",
    )
    handle = peft.get_peft_model(encoder.model, config)
    return replace(encoder, loaded_fingerprint=(fingerprint, weights_digest(encoder.model))), handle


def merged(handle: Any) -> Any:
    """A copy of the adapted model as a plain one of the same weights."""
    return copy.deepcopy(handle).merge_and_unload()

"""Low-rank adapters through PEFT: only the adapters are trained, the encoder's own weights stay unchanged."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from closerlook.encoders.encoder import Encoder, weights_digest
from closerlook.errors import InputError

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel

DROPOUT = 0.05


def require_peft() -> None:
    """Raise InputError, with the command to install it, if PEFT is not installed."""
    try:
        import peft  # noqa: F401 - only to see whether it is installed
    except ImportError:
        raise InputError("lora requested; install PEFT with `pip install closerlook[peft]`") from None


def add_adapters(encoder: Encoder, rank: int) -> tuple[Encoder, PeftModel]:
    """The encoder with adapters inserted into its model, and the PeftModel that manages them.

    An adapter starts at zero: until the first step the encoder gives the same vectors, and it keeps its fingerprint.
    """
    import peft
    from peft.utils import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as DEFAULT_TARGETS

    fingerprint = encoder.fingerprint
    config = peft.LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        lora_dropout=DROPOUT,
        target_modules=None if encoder.model.config.model_type in DEFAULT_TARGETS else "all-linear",
    )
    adapters = peft.get_peft_model(encoder.model, config)
    return replace(encoder, loaded_fingerprint=(fingerprint, weights_digest(encoder.model))), adapters


def merge_adapters(adapters: PeftModel) -> PreTrainedModel:
    """A copy of the model with the adapters added into its weights, without PEFT's layers."""
    return copy.deepcopy(adapters).merge_and_unload()

"""The weights of a snapshot as a folder that `Encoder.load` reads, written completely or not at all."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from closerlook.encoders.pooling import write_stated_pool
from closerlook.errors import WorkError
from closerlook.representations.atomic import PART

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def save_weights(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    head: torch.nn.Module,
    folder: Path,
    sentence_pool: str | None = None,
) -> None:
    """Write model, tokenizer and linear head into the folder; replaces what an earlier run wrote there.

    sentence_pool: the pooling that the encoder's files state, which the folder then states too.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    part = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}{PART}")
    try:
        part.mkdir(parents=True)
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
        save_file({key: value.detach().cpu() for key, value in head.state_dict().items()}, part / "head.safetensors")
        write_stated_pool(part, sentence_pool)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WorkError(f"weights cannot be written to {folder}: {reason}; nothing was left behind") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)

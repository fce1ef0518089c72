"""The weights of a snapshot as a folder that `Encoder.load` reads, written completely or not at all."""

from __future__ import annotations

import errno
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from closerlook.encoders.pooling import write_stated_pool
from closerlook.errors import WorkError
from closerlook.representations.atomic import PART, make_folder, move_into_place

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


HEAD_FILE = "head.safetensors"
"""The file with the linear head, in the folder of a snapshot."""

ATTEMPTS = 20
"""How often a folder is moved to its place while other processes put theirs there."""


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
        make_folder(part)
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
        save_file({key: value.detach().cpu() for key, value in head.state_dict().items()}, part / HEAD_FILE)
        write_stated_pool(part, sentence_pool)
        _replace(part, folder)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WorkError(f"weights cannot be written to {folder}: {reason}; nothing was left behind") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _replace(part: Path, folder: Path) -> None:
    """Move a complete folder to its place, also if another process puts the same one there at the same time."""
    for _ in range(ATTEMPTS):
        old = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}{PART}")
        with suppress(FileNotFoundError):
            folder.rename(old)
        try:
            move_into_place(part, folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            return
        finally:
            if old.is_symlink():
                old.unlink()
            shutil.rmtree(old, ignore_errors=True)
    raise WorkError(f"{folder} is being written by another process; wait for it, and run the same command again")

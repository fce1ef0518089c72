"""The weights of a snapshot as a folder that `Encoder.load` reads, written completely or not at all."""

from __future__ import annotations

import errno
import logging
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import filelock

from closerlook.encoders.pooling import write_stated_pool
from closerlook.errors import WorkError
from closerlook.representations.atomic import PART, make_folder, move_into_place
from closerlook.representations.locking import try_lock
from closerlook.representations.store import ABANDONED

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

log = logging.getLogger("closerlook.tuning")

HEAD_FILE = "head.safetensors"
"""The file with the linear head, in the folder of a snapshot."""

LOCK = ".lock"
"""The suffix of the lock file of an unfinished folder."""

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

    try:
        make_folder(folder.parent)
        with _reserve(folder) as part:
            part.mkdir()
            model.save_pretrained(part)
            tokenizer.save_pretrained(part)
            save_file({key: value.detach().cpu() for key, value in head.state_dict().items()}, part / HEAD_FILE)
            write_stated_pool(part, sentence_pool)
            _replace(part, folder)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WorkError(f"weights cannot be written to {folder}: {reason}; nothing was left behind") from None


@contextmanager
def _reserve(folder: Path) -> Iterator[Path]:
    """A path next to the folder for an unfinished one; what is there at the end of the block is removed.

    A lock file next to it is locked until then, so that others see that this process still needs it.
    """
    part, lock = _lock_part(folder)
    try:
        yield part
    finally:
        if part.is_symlink():
            part.unlink()
        shutil.rmtree(part, ignore_errors=True)
        if lock is not None:
            lock.release()
        Path(f"{part}{LOCK}").unlink(missing_ok=True)


def _lock_part(folder: Path) -> tuple[Path, filelock.BaseFileLock | None]:
    """A new path next to the folder, and its acquired lock; None if the file system has no locks."""
    for _ in range(ATTEMPTS):
        part = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}{PART}")
        with suppress(filelock.Timeout):  # `remove_unfinished` of another process just took it for a remainder
            return part, try_lock(Path(f"{part}{LOCK}"), "remainders of an interrupted run are not removed")
    raise _busy(folder)


def remove_unfinished(out: Path) -> None:
    """Remove the incomplete folders of weights that killed processes left in the folder of a run.

    A folder whose lock file is locked belongs to a living process and stays. A folder without a lock file was made by
    an earlier version, and is removed if nothing in it was added for `ABANDONED` seconds.
    """
    paths = [path for pattern in (f".step-*{PART}", f".step-*{PART}{LOCK}") for path in out.glob(pattern)]
    removed: list[str] = []
    for part in sorted({path.with_name(path.name.removesuffix(LOCK)) for path in paths}):
        lock_file = Path(f"{part}{LOCK}")
        with suppress(OSError):  # in use, just finished, or no locks
            if not lock_file.exists() and time.time() - part.stat().st_mtime <= ABANDONED:
                continue
            with filelock.FileLock(lock_file, timeout=0):
                removed += [part.name] * part.exists()
                shutil.rmtree(part, ignore_errors=True)
                lock_file.unlink(missing_ok=True)
    if removed:
        log.info("incomplete weights of an interrupted run removed from %s: %s", out, ", ".join(removed))


def _replace(part: Path, folder: Path) -> None:
    """Move a complete folder to its place, also if another process puts the same one there at the same time."""
    for _ in range(ATTEMPTS):
        with _reserve(folder) as old:
            with suppress(FileNotFoundError):
                folder.rename(old)
            try:
                move_into_place(part, folder)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            else:
                return
    raise _busy(folder)


def _busy(folder: Path) -> WorkError:
    return WorkError(f"{folder} is being written by another process; wait for it, and run the same command again")

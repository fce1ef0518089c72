"""What the folder of a training that is still going on contains, and whether the training is over."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from closerlook.encoders.configuration import read_json
from closerlook.errors import InputError
from closerlook.tuning.existing import CHECKPOINT, TRAINER_STATE
from closerlook.tuning.tuned import FILE as TUNED_FILE

FINAL = ("model.safetensors", "model.safetensors.index.json", "adapter_model.safetensors", "pytorch_model.bin")
"""Files of weights that `trainer.save_model()` writes into the output folder itself."""

Checkpoints = str | Sequence[str]
"""The checkpoints of a run as a plan names them, see `existing.read_run`."""

Files = dict[str, tuple[int, int]]
"""The size and the time of the last change (in nanoseconds) of each file."""


def list_files(checkpoints: Checkpoints) -> Files:
    """The files of all checkpoints of a run that exist now, and those in its output folder that end a training.

    Two equal answers, some seconds apart, mean that no checkpoint is being written.
    """
    output = _output_folder(checkpoints)
    paths = [path for folder in checkpoint_folders(checkpoints) for path in folder.glob("*")]
    paths += [] if output is None else [output / name for name in (*FINAL, TRAINER_STATE, TUNED_FILE)]
    files: Files = {}
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError:  # not there, or removed just now
            continue
        files[str(path)] = (status.st_size, status.st_mtime_ns)
    return files


def checkpoint_folders(checkpoints: Checkpoints) -> list[Path]:
    """The folders of the checkpoints of a run that exist now, in the order of their steps or as they are listed."""
    output = _output_folder(checkpoints)
    if output is not None:
        numbered = sorted((int(match[1]), path) for path in output.iterdir() if (match := CHECKPOINT.search(path.name)))
        return [path for _, path in numbered if path.is_dir()]
    if isinstance(checkpoints, str):
        text = os.path.expanduser(checkpoints)
        names = sorted(glob.glob(text)) if glob.has_magic(text) else [part.strip() for part in text.split(",")]
    else:
        names = [os.path.expanduser(name) for name in checkpoints]
    return [Path(name) for name in names if os.path.isdir(name)]


def has_checkpoint(checkpoints: Checkpoints) -> bool:
    """Whether a run has a checkpoint, complete or not, or is a finished run of `closerlook tune`."""
    output = _output_folder(checkpoints)
    is_tuned = output is not None and (output / TUNED_FILE).is_file()
    return is_tuned or bool(checkpoint_folders(checkpoints))


def ended(checkpoints: Checkpoints) -> str | None:
    """How it is known that the training of a run is over; None if it may be going on.

    It is over if its last checkpoint is at the last step, if its output folder has final weights or a state that are
    not older than the last checkpoint (`trainer.save_model()`, `trainer.save_state()`), or if `closerlook tune` has
    finished it.
    """
    output, folders = _output_folder(checkpoints), checkpoint_folders(checkpoints)
    if output is not None and (output / TUNED_FILE).is_file():
        return f"{TUNED_FILE} is written at the end of closerlook tune"
    latest = [(steps[0], folder, steps) for folder in folders if (steps := _steps(folder)) is not None]
    if not latest:
        return None
    _, folder, (step, last) = max(latest)
    if step >= last > 0:
        return f"{folder.name} is at the last step, {last}"
    written = _changed(folder / TRAINER_STATE)
    finals = [] if output is None else [output / name for name in (*FINAL, TRAINER_STATE)]
    newer = next((file for file in finals if _changed(file) >= written > 0), None)
    return None if newer is None else f"{newer} was written after the last checkpoint"


def _output_folder(checkpoints: Checkpoints) -> Path | None:
    """The folder that holds the checkpoints; None if they are listed or given by a pattern."""
    folder = Path(os.path.expanduser(checkpoints)) if isinstance(checkpoints, str) else None
    return folder if folder is not None and folder.is_dir() and not _is_checkpoint(folder) else None


def _is_checkpoint(folder: Path) -> bool:
    return CHECKPOINT.search(folder.name) is not None


def _changed(file: Path) -> int:
    """When a file was changed last, in nanoseconds; 0 if it does not exist."""
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _steps(folder: Path) -> tuple[int, int] | None:
    """The step of a checkpoint and the last step of its training; None if its files do not say them."""
    try:
        state = read_json(folder / TRAINER_STATE)
    except (InputError, OSError):
        return None
    steps = (state.get("global_step"), state.get("max_steps"))
    step, last = (value if isinstance(value, int) else None for value in steps)
    return None if step is None or last is None else (step, last)

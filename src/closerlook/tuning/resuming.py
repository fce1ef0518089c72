"""The saved state of a fine-tuning run: an interrupted run continues from it, and its result has the same bits.

FOLDER/state.json   what the state consists of, with checksums; replaced in one step
FOLDER/step-N/      weights, optimizer, schedule and random states after step N, in files that the Trainer resumes from
"""

from __future__ import annotations

import json
import logging
import platform
import random
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import xxhash
from transformers import TrainerCallback

from closerlook.errors import WorkError
from closerlook.representations.atomic import atomic_write
from closerlook.representations.extract import library_versions
from closerlook.representations.store import content_key
from closerlook.tuning.labeller import Labeller
from closerlook.tuning.tuned import Snapshot

if TYPE_CHECKING:
    from closerlook.tuning.trainer import Arguments, Control, RunnableTrainer, State, Stateful

INDEX = "state.json"
SECONDS = 5.0
"""Minimum number of seconds between two saved states; shorter runs save none."""

SHARE = 0.05
"""The share of the time that may be spent on saving: a state that took 2 s to save is followed by 40 s without one."""

DEVICES = ("cpu", "cuda")
"""The devices whose random state the Trainer restores."""

log = logging.getLogger("closerlook.tuning")


@dataclass(frozen=True, eq=False)
class SavedState:
    """A state from which a run continues.

    checkpoint: the folder that the Trainer resumes from. snapshots: those taken so far. stopping: the values of early
    stopping; empty without it. seconds: the time that the run had taken.
    """

    checkpoint: Path
    step: int
    snapshots: tuple[Snapshot, ...]
    stopping: dict[str, float]
    seconds: float


class StateFolder:
    """Reads and writes the state of one run in a folder that belongs to this process.

    made_with: versions, device and threads; a state that was made with different ones would not end with the same bits.
    """

    def __init__(self, folder: Path, made_with: Mapping[str, str]) -> None:
        self.folder = folder
        self.made_with = dict(made_with)

    def load(self) -> SavedState | None:
        """The saved state; None if there is none, or, with a warning, if it is damaged or made with other versions."""
        try:
            content = self._read_index()
            if content is None:
                return None
            self._check_versions(content["made_with"])
            checkpoint = self.folder / f"step-{content['step']}"
            _check_files(checkpoint, content["files"])
            return SavedState(
                checkpoint,
                int(content["step"]),
                tuple(Snapshot(**snapshot) for snapshot in content["snapshots"]),
                dict(content["stopping"]),
                float(content["seconds"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = error if isinstance(error, _UnusableError) else "is damaged"
            self.ignore(str(reason))
            return None

    def ignore(self, reason: str) -> None:
        """Warn that the saved state is not used, and remove it."""
        log.warning("the saved state of an interrupted run %s; training starts again from step 0", reason)
        self.clear()

    def clear(self) -> None:
        """Remove the saved state and the remains of unfinished ones."""
        (self.folder / INDEX).unlink(missing_ok=True)
        self._remove_others(keep="")

    def save(self, step: int, files: Mapping[str, Callable[[Path], object]], content: Mapping[str, object]) -> None:
        """Write a state and remove the one before it; a kill at any moment leaves one of them complete.

        files: for each file of the checkpoint, the function that writes it. content: what `SavedState` has besides.
        """
        checkpoint = self.folder / f"step-{step}"
        try:
            checkpoint.mkdir(exist_ok=True)
            for name, write in files.items():
                write(checkpoint / name)
            whole = {
                "step": step,
                "files": {name: _digest(checkpoint / name) for name in files},
                "made_with": self.made_with,
                **content,
            }
            with atomic_write(self.folder / INDEX) as stream:
                stream.write(json.dumps({"state": whole, "checksum": content_key(whole)}).encode())
        except BaseException:
            shutil.rmtree(checkpoint, ignore_errors=True)
            raise
        self._remove_others(keep=checkpoint.name)

    def _read_index(self) -> dict[str, Any] | None:
        """The content of the index; None if there is no state. Raises an error if it is damaged."""
        try:
            saved = json.loads((self.folder / INDEX).read_bytes())
        except FileNotFoundError:
            return None
        content: dict[str, Any] = saved["state"]
        if saved["checksum"] != content_key(content):
            raise _UnusableError("is damaged")
        return content

    def _check_versions(self, made_with: Mapping[str, str]) -> None:
        for name in sorted({*self.made_with, *made_with}):
            before, now = made_with.get(name, "none"), self.made_with.get(name, "none")
            if before != now:
                raise _UnusableError(f"was made with {name} {before}, now {now}")

    def _remove_others(self, keep: str) -> None:
        for checkpoint in self.folder.glob("step-*"):
            if checkpoint.name != keep:
                shutil.rmtree(checkpoint, ignore_errors=True)


class _UnusableError(ValueError):
    """Why a saved state is not used."""


def _check_files(checkpoint: Path, digests: Mapping[str, str]) -> None:
    if any(_digest(checkpoint / name) != digest for name, digest in digests.items()):
        raise _UnusableError("is damaged")


def _digest(file: Path) -> str:
    digest = xxhash.xxh3_128()
    with file.open("rb") as stream:
        while block := stream.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def conditions(arguments: Arguments) -> dict[str, str]:
    """What the last bits of a training depend on besides settings and data: versions, device and number of threads."""
    device = arguments.device
    return library_versions() | {
        "python": platform.python_version(),
        "accelerate": version("accelerate"),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "threads": str(torch.get_num_threads()),
    }


class StateSaver(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Saves the state of a run from time to time: the pause between two states follows from how long saving takes.

    The last step of an epoch is saved at the end of the epoch, after early stopping has measured its loss: a resumed
    Trainer begins there with the next epoch. collect: returns the snapshots, and the values of early stopping. seconds:
    the time that the run took before it was interrupted.
    """

    def __init__(
        self,
        states: StateFolder,
        labeller: Labeller,
        trainer: RunnableTrainer,
        *,
        steps_per_epoch: int,
        collect: Callable[[], tuple[list[Snapshot], dict[str, float]]],
        seconds: float,
    ) -> None:
        self.states = states
        self.labeller = labeller
        self.trainer = trainer
        self.steps_per_epoch = steps_per_epoch
        self.collect = collect
        self.started = time.monotonic() - seconds
        self.last, self.pause, self.is_on = time.monotonic(), SECONDS, True

    def on_train_begin(self, args: Arguments, state: State, control: Control, **rest: object) -> None:
        """Count the time to the next saved state from here."""
        self.last = time.monotonic()

    def on_step_end(self, args: Arguments, state: State, control: Control, **rest: Any) -> None:
        """Save the state if enough time has passed since the last one."""
        if state.global_step % self.steps_per_epoch != 0 and not control.should_training_stop:
            self._save_if_due(state, rest["optimizer"], rest["lr_scheduler"])

    def on_epoch_end(self, args: Arguments, state: State, control: Control, **rest: Any) -> None:
        """Save the state of an epoch's last step if enough time has passed."""
        if not control.should_training_stop:
            self._save_if_due(state, rest["optimizer"], rest["lr_scheduler"])

    def _save_if_due(self, state: State, optimizer: Stateful, schedule: Stateful) -> None:
        begin = time.monotonic()
        if not self.is_on or begin - self.last < self.pause:
            return
        snapshots, stopping = self.collect()
        content = {
            "snapshots": [asdict(snapshot) for snapshot in snapshots],
            "stopping": stopping,
            "seconds": round(begin - self.started, 3),
        }
        try:
            self.states.save(state.global_step, self._files(state, optimizer, schedule), content)
        except (OSError, RuntimeError, WorkError) as error:  # torch raises RuntimeError if the disk is full
            self.is_on = False
            reason = " ".join(str(getattr(error, "strerror", None) or error).split())
            log.warning("the state of the run cannot be saved (%s); the run continues without saving it", reason)
            return
        self.last = time.monotonic()
        self.pause = max(SECONDS, (self.last - begin) / SHARE)

    def _files(self, state: State, optimizer: Stateful, schedule: Stateful) -> dict[str, Callable[[Path], object]]:
        """The files that a Trainer resumes from, each with the function that writes it."""
        contents = {
            "pytorch_model.bin": self.labeller.trained_state(),
            "optimizer.pt": optimizer.state_dict(),
            "scheduler.pt": schedule.state_dict(),
            "rng_state.pth": _random_states(),
        }
        scaler = self.trainer.accelerator.scaler
        if scaler is not None:
            contents["scaler.pt"] = scaler.state_dict()
        return {name: _writer(content) for name, content in contents.items()} | {
            "trainer_state.json": lambda file: state.save_to_json(str(file))
        }


def _writer(content: object) -> Callable[[Path], object]:
    return lambda file: torch.save(content, file)


def _random_states() -> dict[str, object]:
    """The random states of Python, numpy and torch, in the form in which the Trainer reads them."""
    states: dict[str, object] = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "cpu": torch.get_rng_state(),
    }
    return states | ({"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})

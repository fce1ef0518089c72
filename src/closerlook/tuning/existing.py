"""Read a training that was done elsewhere: its base encoder, and its checkpoints in the order of training.

Only small text files are read here (configurations, `trainer_state.json`) and the bytes of weights, for their hash; no
model is loaded, and nothing in a checkpoint is executed.
"""

from __future__ import annotations

import glob
import logging
import math
import os
import pickletools
import re
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

from closerlook.encoders.configuration import read_json
from closerlook.encoders.source import Source, resolve
from closerlook.errors import InputError
from closerlook.tuning.settings import TuningSettings
from closerlook.tuning.trainable import ALL, BIASES
from closerlook.tuning.tuned import FILE as TUNED_FILE
from closerlook.tuning.tuned import TuningResult

log = logging.getLogger("closerlook.tuning")

TRAINER_STATE = "trainer_state.json"
CHECKPOINT = re.compile(r"checkpoint-(\d+)$")
NUMBER = re.compile(r"(\d+)([kKmM]?)(?!.*\d)")
"""The last number of a name, such as 1000 in `step1000` and 20k in `seed_0-step_20k`."""

FULL = "full"
"""The method of a training in which all weights were changed, as far as the files tell."""


@dataclass(frozen=True)
class Checkpoint:
    """The encoder at one step of a training.

    name: by which `resolve` finds it from any folder: an absolute path or a hub id. epoch: NaN if no file says it.
    logged: the values that the Trainer logged last, up to this step: `loss` on the training batches and `eval_loss` on
    its evaluation data.
    """

    name: str
    source: Source
    step: int
    epoch: float = math.nan
    logged: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ExistingRun:
    """A training that was done elsewhere.

    base: the encoder before the training, as step 0. checkpoints: in the order of training, without the base. method:
    `full`, or the type and rank of the adapters. seed: None if no file says it. tuned_on: the task of a run of
    `closerlook tune`; None for other trainings. skipped: for each folder that is not used, one line that says why.
    """

    base: Checkpoint
    checkpoints: tuple[Checkpoint, ...]
    method: str
    seed: int | None
    tuned_on: str | None = None
    skipped: tuple[str, ...] = ()


def read_run(
    checkpoints: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    base: str | None = None,
    *,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> ExistingRun:
    """The training with these checkpoints.

    checkpoints: the output folder of transformers' Trainer (with `checkpoint-*`), the folder of `closerlook tune` with
    saved weights, a pattern such as 'out/step-*', or a list of encoders (folders, adapters, hub ids such as
    'id@step1000'), as a sequence or separated by commas. base: the encoder before the training; by default the one that
    the checkpoints name. An incomplete checkpoint, as a crashed training leaves it, is skipped with a line in
    `skipped`.
    """
    reader = _Reader(base, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
    if isinstance(checkpoints, str | os.PathLike):
        text = os.fspath(checkpoints)
        folder = Path(os.path.expanduser(text))
        if folder.is_dir():
            return reader.read_folder(folder)
        if glob.has_magic(text):
            return reader.read_list(_by_number(glob.glob(os.path.expanduser(text))), f"pattern {text}")
        return reader.read_list([part.strip() for part in text.split(",") if part.strip()], text)
    names = [os.fspath(name) for name in checkpoints]
    return reader.read_list(names, ", ".join(names))


class _Reader:
    """Reads one training; collects the folders that it skips."""

    def __init__(self, base: str | None, *, allow_pickle: bool, trust_remote_code: bool) -> None:
        self.base, self.skipped = base, list[str]()
        self.resolve = partial(resolve, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)

    def read_folder(self, folder: Path) -> ExistingRun:
        if (folder / TUNED_FILE).is_file():
            return self._read_tuned(folder)
        numbered = sorted((int(match[1]), path) for path in folder.iterdir() if (match := CHECKPOINT.search(path.name)))
        if not numbered:
            if (folder / "config.json").is_file() or (folder / "adapter_config.json").is_file():
                return self.read_list([str(folder)], str(folder))
            raise InputError(
                f"{folder} contains no checkpoints; expected checkpoint-N folders of a Trainer, {TUNED_FILE} of "
                "`closerlook tune --save-weights`, a model, or a pattern such as 'out/step-*'"
            )
        base = self._base_checkpoint([path for _, path in numbered])
        found = [
            Checkpoint(str(path.absolute()), source, step, *_trainer_state(path))
            for step, path in numbered
            if (source := self._complete(path, base)) is not None
        ]
        found += self._final(folder, base, found)
        return self._run(base, found, str(folder))

    def read_list(self, names: Sequence[str], what: str) -> ExistingRun:
        if not names:
            raise InputError(f"{what}: no checkpoints found; expected folders or hub ids, in the order of training")
        folders = [Path(os.path.expanduser(name)) for name in names]
        base = self._base_checkpoint([folder for folder in folders if folder.is_dir()])
        steps = _steps(names, folders)
        found = [
            Checkpoint(_absolute(name), source, step, *(_trainer_state(folder) if folder.is_dir() else ()))
            for name, folder, step in zip(names, folders, steps, strict=True)
            if (source := self._complete(folder if folder.is_dir() else name, base)) is not None
        ]
        return self._run(base, found, what)

    def _read_tuned(self, folder: Path) -> ExistingRun:
        """A run of `closerlook tune`; its snapshot at step 0 is the base if no base is given."""
        run = TuningResult.load(folder)
        saved = [snapshot for snapshot in run.snapshots if snapshot.weights is not None]
        if not saved:
            raise InputError(f"{folder} contains no weights; run `closerlook tune` with --save-weights")
        found = [
            Checkpoint(path, self.resolve(path), snapshot.step, snapshot.epoch, _of_splits(snapshot.loss))
            for snapshot in saved
            for path in [str((folder / str(snapshot.weights)).absolute())]
        ]
        base = found[0] if self.base is None else self._base_checkpoint([])
        return ExistingRun(base, tuple(found[1:]), _method_of_tune(run.settings), run.seed, run.task)

    def _base_checkpoint(self, folders: Sequence[Path]) -> Checkpoint:
        """The encoder before the training: as given, or as the first checkpoint names it."""
        name = self.base or next((named for folder in folders if (named := _named_base(folder))), None)
        if name is None:
            raise InputError(
                f"the base encoder of {folders[0] if folders else 'these checkpoints'} is not known: its files do not "
                "name it; give it with --base (base=)"
            )
        return Checkpoint(_absolute(name), self.resolve(name), 0, 0.0)

    def _complete(self, name: str | Path, base: Checkpoint) -> Source | None:
        """The files of a checkpoint; None, with a line in `skipped`, if a folder is incomplete."""
        try:
            return self.resolve(str(name), tokenizer=base.source.folder)
        except InputError as error:
            if not isinstance(name, Path) or "pickle" in str(error):
                raise
            self.skipped.append(f"{name} is not used: {error}")
            log.warning("%s", self.skipped[-1])
            return None

    def _final(self, folder: Path, base: Checkpoint, found: Sequence[Checkpoint]) -> list[Checkpoint]:
        """The model that `trainer.save_model()` wrote into the output folder itself, if no checkpoint equals it."""
        if not any((folder / name).is_file() for name in ("config.json", "adapter_config.json")):
            return []
        source = self._complete(folder, base)
        if source is None or source.fingerprint in {checkpoint.source.fingerprint for checkpoint in found}:
            return []
        if not (folder / TRAINER_STATE).is_file():
            self.skipped.append(
                f"the weights in {folder} itself are not used: they equal no checkpoint, and there is no "
                f"{TRAINER_STATE} that says their step; list the folders instead to use them"
            )
            log.warning("%s", self.skipped[-1])
            return []
        step = int(read_json(folder / TRAINER_STATE).get("global_step", 0))
        if found and step <= found[-1].step:
            return []
        return [Checkpoint(str(folder.absolute()), source, step, *_trainer_state(folder))]

    def _run(self, base: Checkpoint, found: Iterable[Checkpoint], what: str) -> ExistingRun:
        kept = [checkpoint for checkpoint in found if checkpoint.source.fingerprint != base.source.fingerprint]
        if not kept:
            reason = f": {'; '.join(self.skipped)}" if self.skipped else "; expected encoders other than the base"
            raise InputError(f"{what} has no usable checkpoint{reason}")
        steps = [checkpoint.step for checkpoint in kept]
        if steps != sorted(set(steps)):
            raise InputError(f"{what}: the steps {', '.join(map(str, steps))} do not rise; list checkpoints in order")
        last = kept[-1].source
        return ExistingRun(base, tuple(kept), _method(last), _seed(last), None, tuple(self.skipped))


# ---- what the files of a checkpoint say ----


def _absolute(name: str) -> str:
    """The absolute path of a folder; any other name itself."""
    path = os.path.expanduser(name)
    return os.path.abspath(path) if os.path.isdir(path) else name


def _named_base(folder: Path) -> str | None:
    """The base encoder that a checkpoint names; None if it names none that can be found."""
    if (folder / "adapter_config.json").is_file():
        return read_json(folder / "adapter_config.json").get("base_model_name_or_path") or None
    if not (folder / "config.json").is_file():
        return None
    name = read_json(folder / "config.json").get("_name_or_path")  # not written by transformers 5
    return name if isinstance(name, str) and name and not CHECKPOINT.search(name) else None


def _trainer_state(folder: Path) -> tuple[float, dict[str, float]]:
    """The epoch of a checkpoint and the last logged losses, from `trainer_state.json`; NaN and {} without that file."""
    if not (folder / TRAINER_STATE).is_file():
        return math.nan, {}
    try:
        state = read_json(folder / TRAINER_STATE)
    except InputError:  # cut off by a crash: the weights are there all the same
        return math.nan, {}
    history = state.get("log_history")
    logged: dict[str, float] = {}
    for entry in history if isinstance(history, list) else []:
        if isinstance(entry, dict):
            logged |= {name: float(entry[name]) for name in ("loss", "eval_loss") if _is_number(entry.get(name))}
    epoch = state.get("epoch")
    return float(epoch) if _is_number(epoch) else math.nan, logged


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _of_splits(losses: dict[str, float]) -> dict[str, float]:
    return {"loss": losses["train"]} if "train" in losses else {}


def _method(source: Source) -> str:
    """How a checkpoint was trained, as far as its files tell: `full`, or the type and rank of its adapters."""
    if source.adapter is None:
        return FULL
    config = read_json(source.adapter / "adapter_config.json")
    kind, rank = str(config.get("peft_type", "adapter")).lower(), config.get("r")
    return f"{kind} {rank}" if isinstance(rank, int) else kind


def _method_of_tune(settings: TuningSettings) -> str:
    """The method of a run of `closerlook tune`, by the names that plans use."""
    if settings.lora:
        return f"lora {settings.lora}"
    return {ALL: FULL, BIASES: "bitfit"}.get(settings.trained, settings.trained)


def _seed(source: Source) -> int | None:
    """The seed in `training_args.bin`; None if it cannot be read.

    The file is a pickle, which is not loaded, since that could run code: its instructions are only listed.
    """
    file = (source.adapter or source.folder) / "training_args.bin"
    try:
        with zipfile.ZipFile(file) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith("data.pkl"))
            if archive.getinfo(name).file_size > 1_000_000:
                return None
            instructions = list(pickletools.genops(archive.read(name)))
    except (OSError, ValueError, zipfile.BadZipFile):
        return None
    stores = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
    values = [(code.name, value) for code, value, _ in instructions if code.name not in stores]
    for (_, key), (code, value) in pairwise(values):
        if key == "seed" and "INT" in code and isinstance(value, int):
            return value
    return None


def _steps(names: Sequence[str], folders: Sequence[Path]) -> list[int]:
    """The step of each checkpoint: from `trainer_state.json`, or else from its name; if these do not rise, 1, 2, 3 …"""
    steps: list[int | None] = []
    for name, folder in zip(names, folders, strict=True):
        state = folder / TRAINER_STATE
        step = read_json(state).get("global_step") if state.is_file() else None
        steps.append(step if isinstance(step, int) else _number(name))
    known = [step for step in steps if step is not None]
    if len(known) == len(names) and known == sorted(set(known)) and known[0] >= 0:
        return known
    return list(range(1, len(names) + 1))


def _number(name: str) -> int | None:
    """The last number in the last part of a name.

    >>> _number("out/step-500"), _number("owner/model@step1000"), _number("m/seed_0-step_20k"), _number("final")
    (500, 1000, 20000, None)
    """
    match = NUMBER.search(name.rstrip("/").rpartition("/")[2].rpartition("@")[2])
    if match is None:
        return None
    return int(match[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[match[2].lower()]


def _by_number(names: Sequence[str]) -> list[str]:
    """Names sorted by their last number, so that step-1000 comes after step-200; names without a number come last."""
    return sorted(names, key=lambda name: (number if (number := _number(name)) is not None else math.inf, name))

"""`tune`: fine-tunes an encoder on a task and stores its vectors at snapshots along the way."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from closerlook.encoders.configuration import read_json
from closerlook.encoders.pooling import choose_pool
from closerlook.encoders.source import EMBEDDED, Source, resolve
from closerlook.errors import DamagedFileError, InputError, WorkError
from closerlook.progress import Progress, progress_bar
from closerlook.representations.atomic import set_aside
from closerlook.representations.extract import (
    choose_splits,
    describe_encoder,
    library_versions,
    load_tasks,
)
from closerlook.representations.store import Store, content_key
from closerlook.tasks.task import Task
from closerlook.tuning.settings import TaskSource, TuningSettings
from closerlook.tuning.steps import choose_texts, planned_steps
from closerlook.tuning.tuned import FILE, TuningResult, snapshot_spaces
from closerlook.tuning.weights import remove_unfinished

if TYPE_CHECKING:
    from closerlook.encoders.encoder import Encoder
    from closerlook.tuning.resuming import StateFolder
    from closerlook.tuning.trainer import Arguments

log = logging.getLogger("closerlook.tuning")


def tune(
    encoder: str | Path = EMBEDDED,
    task: TaskSource = "toy-pos",
    settings: TuningSettings | None = None,
    *,
    out: str | Path | None = None,
    data: str | Path | None = None,
    store: Store | str | Path | None = None,
    device: str = "auto",
    encoder_seed: int = 0,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    **changes: Any,
) -> TuningResult:
    """Fine-tune an encoder on a task's train split, with a linear head on the same pooled vectors that are stored.

    At each snapshot, the vectors of the tasks in `settings.probe` (by default the fine-tuning task) are written to the
    store. `snapshot_spaces` reads them from there.
    settings: how to train and what to store, see `TuningSettings`; None: the defaults. changes: single settings to
    replace by name, such as epochs=3.
    out: the folder for `tuned.json` and, with save_weights, for the weights of each snapshot (`step-N`). If it contains
    a finished run with the same encoder, task and settings, whose vectors and weights still exist, that run is returned
    without training. A run with a different encoder, task or setting there is an error.
    data: the folder with downloaded corpora. store: where vectors are stored. device: 'auto', 'cuda', 'mps' or
    'cpu'. encoder_seed: the seed of the weights if the encoder is `random:NAME`, an encoder with random weights.
    allow_pickle, trust_remote_code: see `Encoder.load`.
    resume: save the state of the run in the store from time to time, and continue from it if an earlier run with the
    same encoder, task and settings was interrupted; the result is the same, bit for bit. The state takes about three
    times the disk space of the weights, and is removed at the end. False: save no state, and start at step 0.
    progress: called with the number of finished steps and the
    number of all steps.

    >>> run = tune("bert-tiny", "toy-question", epochs=1, snapshots=2, layers="last")
    >>> [snapshot.step for snapshot in run.snapshots], run.settings.learning_rate
    ([0, 12], 0.0003)
    """
    chosen = (settings or TuningSettings()).change(**changes)
    folder = _check_folder(out, chosen.save_weights)
    (opened,) = load_tasks(_check_task(task), data)
    measured_tasks = _load_measured_tasks(chosen, opened, data)
    request = _Request(
        settings=chosen.change(probe={measured.name: measured.content_hash for measured in measured_tasks}),
        task=check_trainable(opened),
        measured_tasks=measured_tasks,
        source=resolve(
            _encoder_name(encoder), seed=encoder_seed, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
        ),
        store=store if isinstance(store, Store) else Store(store),
        device=device,
        trust_remote_code=trust_remote_code,
        folder=folder,
        resume=resume,
    )
    with progress_bar("training steps", progress) as show:
        finished = request.finished_run()
        if folder is not None:
            remove_unfinished(folder)
        return finished or _train(request, show)


@dataclass(frozen=True, eq=False)
class _Request:
    """A requested run, checked as far as possible before the encoder is loaded.

    settings: the settings as requested, before defaults that depend on the encoder are filled in. measured_tasks: the
    tasks whose vectors are stored at each snapshot.
    """

    settings: TuningSettings
    task: Task
    measured_tasks: list[Task]
    source: Source
    store: Store
    device: str
    trust_remote_code: bool
    folder: Path | None
    resume: bool

    def load_encoder(self) -> Encoder:
        """The encoder, in the precision of the training."""
        from closerlook.encoders.encoder import Encoder
        from closerlook.encoders.loading import choose_device
        from closerlook.tuning.lora import require_peft

        if self.settings.lora is not None:
            require_peft()
        if self.settings.save_weights and read_json(self.source.folder / "config.json").get("is_encoder_decoder"):
            raise InputError(
                f"save_weights is not supported for encoder-decoder models such as {self.source.name}: only the "
                "encoder is fine-tuned, and it cannot be saved alone; leave save_weights off"
            )
        return Encoder.load(
            self.source,
            device=str(choose_device(self.device)),
            dtype=self.settings.dtype,
            window=self.settings.window,
            template=self.settings.template,
            trust_remote_code=self.trust_remote_code,
        )

    def finished_run(self) -> TuningResult | None:
        """The finished run in the folder; None if there is none, or if some of its vectors or weights are missing.

        A damaged `tuned.json` is renamed and reported; the run is trained again then.
        """
        folder = self.folder
        if folder is None or not (folder / FILE).exists():
            return None
        try:
            run = TuningResult.load(folder)
        except DamagedFileError as error:
            aside = set_aside(folder / FILE)
            log.warning("%s; it is kept as %s; training again", str(error).partition(";")[0], aside.name)
            return None
        self._check_same_run(run, folder)
        weights = [snapshot.weights for snapshot in run.snapshots if snapshot.weights is not None]
        if all((folder / name).is_dir() for name in weights) and self._has_vectors(run):
            log.info("found this run, already finished, in %s", folder)
            return run
        log.info("found this run in %s, but some of its vectors or weights are missing; training again", folder)
        return None

    def _check_same_run(self, run: TuningResult, folder: Path) -> None:
        """Raise InputError if the run in the folder has a different encoder, task or setting."""
        _refuse_difference(folder, "encoder", (run.encoder, run.base), (self.source.name, self.source.fingerprint))
        _refuse_difference(folder, "task", (run.task, run.task_hash), (self.task.name, self.task.content_hash))
        requested = json.loads(json.dumps(self.settings.resolve(run.info, self.source.name).to_dict()))
        for name, value in run.settings.to_dict().items():
            _refuse_difference(folder, name, (value, value), (requested[name], requested[name]))

    def _has_vectors(self, run: TuningResult) -> bool:
        """Whether the store contains all vectors of a run."""
        try:
            for snapshot in run.snapshots:
                snapshot_spaces(run, snapshot, self.measured_tasks, splits=self.settings.splits, store=self.store)
        except WorkError:
            return False
        return True


def _train(request: _Request, progress: Progress | None) -> TuningResult:
    """Load the encoder, check what depends on it, train, and write the result."""
    from closerlook.tuning.contexts import quiet
    from closerlook.tuning.training import Training, train, training_arguments

    start = time.perf_counter()
    task = request.task
    with quiet(), tempfile.TemporaryDirectory() as scratch:
        encoder = request.load_encoder()
        settings = request.settings.resolve(encoder.info, request.source.name)
        for measured in (task, *request.measured_tasks):
            choose_pool(settings.pool, measured.unit, encoder.info)
        arguments = training_arguments(settings, encoder.device, scratch)
        steps = planned_steps(settings, task, arguments.world_size)
        _log_settings(encoder, task, settings, steps)
        with _open_states(request, settings, arguments) as states:
            training = Training(task, request.measured_tasks, settings, steps, request.store, request.folder, states)
            snapshots, earlier = train(encoder, training, arguments, progress)
            run = TuningResult(
                encoder=request.source.name,
                base=request.source.fingerprint,
                info=encoder.info,
                parameters=encoder.info.parameters,
                task=task.name,
                task_hash=task.content_hash,
                settings=settings,
                snapshots=snapshots,
                steps=snapshots[-1].step,
                seconds=round(earlier + time.perf_counter() - start, 3),
                device=str(arguments.device),
                versions=dict(library_versions()),
            )
            if request.folder is not None and arguments.process_index == 0:
                run.save(request.folder)
    return run


@contextmanager
def _open_states(request: _Request, settings: TuningSettings, arguments: Arguments) -> Iterator[StateFolder | None]:
    """Where the state of the run is saved while it is alive; None if it is not saved.

    The folder is in the store, named by a hash of encoder, task and settings, and locked: if another process trains
    the same, this one has a separate folder. It is removed if the block ends without an error.
    """
    from closerlook.tuning.resuming import DEVICES, StateFolder, conditions

    if arguments.world_size > 1 or arguments.device.type not in DEVICES:
        if request.resume:
            log.info("the state of this run is not saved: that needs one process on a CPU or an NVIDIA GPU")
        yield None
        return
    content = {
        "weights": request.source.fingerprint,
        "task": request.task.content_hash,
        "settings": settings.to_dict(),
        "out": str(request.folder and request.folder.absolute()) if settings.save_weights else None,
    }
    with request.store.workspace(f"tune-{content_key({'tuning': content})[:32]}") as folder:
        states = StateFolder(folder, conditions(arguments))
        if not request.resume:
            states.clear()
        try:
            yield states if request.resume else None
        finally:
            with suppress(OSError):
                folder.rmdir()  # nothing was saved


def _log_settings(encoder: Encoder, task: Task, settings: TuningSettings, steps: Sequence[int]) -> None:
    log.info("%s", describe_encoder(encoder))
    log.info("task %s: %d texts, %d labels", task.name, len(choose_texts(task, settings).train), len(task.labels))
    hidden = {"probe", "trainer_arguments", "layers", "snapshot_layers", "snapshots"}
    shown = {name: value for name, value in settings.to_dict().items() if name not in hidden}
    shown |= dict(settings.trainer_arguments)
    log.info("settings: %s", ", ".join(f"{name} {value}" for name, value in shown.items()))
    log.info("%d snapshots at steps %s", len(steps), ", ".join(map(str, steps)))


def _encoder_name(encoder: object) -> str:
    if not isinstance(encoder, str | os.PathLike):
        raise InputError(
            f"encoder must be a name or a folder, got {type(encoder).__name__}: tune loads its own copy, because "
            "training changes the weights; to measure a model that you train yourself, use GeometryCallback"
        )
    return os.fspath(encoder)


def _check_task(task: object) -> TaskSource:
    if not isinstance(task, str | Path | Task):
        raise InputError(
            f"task must be a name, a path or a Task, got {type(task).__name__}; fine-tuning uses exactly one task"
        )
    return task


def _check_folder(out: str | Path | None, save_weights: bool) -> Path | None:
    if out is None:
        if save_weights:
            raise InputError("save_weights needs a folder; set out= as well")
        return None
    folder = Path(out).expanduser()
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise InputError(f"out {folder}: {nearest} is a file; expected a folder, existing or new")
    if not os.access(nearest, os.W_OK):
        raise InputError(f"out {folder}: {nearest} is not writable; choose another folder")
    return folder


def check_trainable(task: Task) -> Task:
    """The task itself; raises InputError if its train split has fewer than two labels."""
    labels = np.unique(task.split("train").y)
    if len(labels) < 2:
        only = task.labels[int(labels[0])]
        raise InputError(
            f"task {task.name}: all training examples have the label {only}; fine-tuning needs at least two labels"
        )
    return task


def _load_measured_tasks(settings: TuningSettings, task: Task, data: str | Path | None) -> list[Task]:
    """The tasks whose vectors are stored at each snapshot. An InputError is raised if one lacks a requested split."""
    probe = settings.probe
    if isinstance(probe, Mapping):
        measured_tasks = [_load_measured_task(name, content, task, data) for name, content in probe.items()]
    else:
        measured_tasks = load_tasks(task if probe is None else probe, data)
    names = [measured.name for measured in measured_tasks]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two of the tasks in probe have the same name, {twice}; rename one of them")
    for measured in measured_tasks:
        choose_splits(measured, settings.splits)
    return measured_tasks


def _load_measured_task(name: str, content: str, task: Task, data: str | Path | None) -> Task:
    """Load the task with this name, and check its content hash against `content`, the hash of an earlier run."""
    if content == task.content_hash:
        return task
    (measured,) = load_tasks(name, data)
    if measured.content_hash != content:
        raise InputError(
            f"task {name} is not the one these settings were made for: its content hash differs; pass probe= with the "
            "task or file to use"
        )
    return measured


def _refuse_difference(
    folder: Path, what: str, existing: tuple[object, object], requested: tuple[object, object]
) -> None:
    """Raise InputError if a value differs. existing, requested: (text for the message, value to compare)."""
    if existing[1] != requested[1]:
        same = existing[0] == requested[0]
        shown = f"{existing[0]} with different content" if same else f"{existing[0]}, now {requested[0]}"
        raise InputError(f"{folder} contains a run with different settings ({what}: {shown}); choose another folder")

"""`tune`: fine-tunes an encoder on a task and stores its vectors at snapshots along the way."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from closerlook.encoders.source import EMBEDDED, Source, read_json, resolve
from closerlook.errors import InputError, WorkError
from closerlook.representations.extract import (
    Progress,
    choose_pool,
    choose_splits,
    describe_encoder,
    library_versions,
    load_tasks,
)
from closerlook.representations.store import Store
from closerlook.tasks.task import Task
from closerlook.tuning.settings import TaskSource, TuningSettings
from closerlook.tuning.steps import choose_texts, planned_steps
from closerlook.tuning.tuned import DTYPE, FILE, TuningResult, snapshot_spaces

if TYPE_CHECKING:
    from closerlook.encoders.encoder import Encoder

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
    progress: Progress | None = None,
    **changes: Any,
) -> TuningResult:
    """Fine-tune an encoder on a task's train split, with a linear head over exactly the vectors that are probed.

    At each snapshot the vectors of the probed tasks are put into the store; `snapshot_spaces` reads them from there.
    settings: how to train and what to store, see `TuningSettings`; the defaults if it is None. changes: replace single
    settings by name, such as epochs=3.
    out: folder for `tuned.json` and, with save_weights, for the weights of each snapshot (`step-N`). If the folder
    already holds this run, finished, the run is returned without training.
    data: folder with the corpora of named tasks. store: where vectors are stored. device: 'auto', 'cuda', 'mps', 'cpu'.
    encoder_seed: of the weights of `random:ID`. allow_pickle, trust_remote_code: see `Encoder.load`. progress: called
    with the number of finished steps and of all steps.

    >>> run = tune("bert-tiny", "toy-question", epochs=1, snapshots=2, layers="last")  # doctest: +SKIP
    >>> [snapshot.step for snapshot in run.snapshots], run.settings.learning_rate  # doctest: +SKIP
    ([0, 12], 0.0003)
    """
    chosen = (settings or TuningSettings()).change(**changes)
    folder = _check_folder(out, chosen.save_weights)
    (opened,) = load_tasks(_check_task(task), data)
    probes = _load_probes(chosen, opened, data)
    request = _Request(
        settings=chosen.change(probe={probe.name: probe.content_hash for probe in probes}),
        task=check_trainable(opened),
        probes=probes,
        source=resolve(
            _encoder_name(encoder), seed=encoder_seed, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
        ),
        store=store if isinstance(store, Store) else Store(store),
        device=device,
        trust_remote_code=trust_remote_code,
        folder=folder,
    )
    return request.finished_run() or _train(request, progress)


@dataclass(frozen=True, eq=False)
class _Request:
    """A requested run, checked as far as possible before the encoder is loaded. settings: not yet resolved."""

    settings: TuningSettings
    task: Task
    probes: list[Task]
    source: Source
    store: Store
    device: str
    trust_remote_code: bool
    folder: Path | None

    def load_encoder(self) -> Encoder:
        """The encoder, in the precision of the training."""
        from closerlook.encoders.encoder import Encoder
        from closerlook.encoders.loading import choose_device
        from closerlook.tuning.lora import require_peft

        if self.settings.lora is not None:
            require_peft()
        if self.settings.save_weights and read_json(self.source.folder / "config.json").get("is_encoder_decoder"):
            raise InputError(
                f"save_weights requested; {self.source.name} is an encoder-decoder, of which only the encoder is "
                "fine-tuned, and that half cannot be saved by itself"
            )
        return Encoder.load(
            self.source,
            device=str(choose_device(self.device)),
            dtype=DTYPE,
            window=self.settings.window,
            trust_remote_code=self.trust_remote_code,
        )

    def finished_run(self) -> TuningResult | None:
        """The finished run in the folder; None if there is none, or if vectors or weights of it are missing."""
        folder = self.folder
        if folder is None or not (folder / FILE).exists():
            return None
        run = TuningResult.load(folder)
        self._check_same_run(run, folder)
        weights = [snapshot.weights for snapshot in run.snapshots if snapshot.weights is not None]
        if all((folder / name).is_dir() for name in weights) and self._has_vectors(run):
            log.info("%s holds this run, finished", folder)
            return run
        log.info("%s holds this run, but some of its vectors or weights are missing; training again", folder)
        return None

    def _check_same_run(self, run: TuningResult, folder: Path) -> None:
        """Raise InputError if the run in the folder has a different encoder, task or setting."""
        _refuse_difference(folder, "encoder", (run.encoder, run.base), (self.source.name, self.source.fingerprint))
        _refuse_difference(folder, "task", (run.task, run.task_hash), (self.task.name, self.task.content_hash))
        requested = json.loads(json.dumps(self.settings.resolve(run.info, self.source.name).to_dict()))
        for name, value in run.settings.to_dict().items():
            _refuse_difference(folder, name, (value, value), (requested[name], requested[name]))

    def _has_vectors(self, run: TuningResult) -> bool:
        """Whether the store holds all vectors of a run."""
        try:
            for snapshot in run.snapshots:
                snapshot_spaces(run, snapshot, self.probes, splits=self.settings.splits, store=self.store)
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
        for probed in (task, *request.probes):
            choose_pool(settings.pool, probed.unit, has_cls=encoder.info.has_cls)
        arguments = training_arguments(settings, encoder.device, scratch)
        steps = planned_steps(settings, task, arguments.world_size)
        _log_settings(encoder, task, settings, steps)
        training = Training(task, request.probes, settings, steps, request.store, request.folder)
        snapshots = train(encoder, training, arguments, progress)
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
        seconds=round(time.perf_counter() - start, 3),
        device=str(arguments.device),
        versions=dict(library_versions()),
    )
    if request.folder is not None and arguments.process_index == 0:
        run.save(request.folder)
    return run


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
            f"a {type(encoder).__name__} arrived as encoder; expected a name or folder, since fine-tuning changes the "
            "weights (for a model that you train yourself there is GeometryCallback)"
        )
    return os.fspath(encoder)


def _check_task(task: object) -> TaskSource:
    if not isinstance(task, str | Path | Task):
        raise InputError(f"a {type(task).__name__} arrived as task; expected one name, path or Task to fine-tune on")
    return task


def _check_folder(out: str | Path | None, save_weights: bool) -> Path | None:
    if out is None:
        if save_weights:
            raise InputError("save_weights requested without a folder; pass out as well")
        return None
    folder = Path(out).expanduser()
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise InputError(f"out {folder}: {nearest} is a file; expected a folder, existing or new")
    if not os.access(nearest, os.W_OK):
        raise InputError(f"out {folder}: {nearest} may not be written to; choose another folder")
    return folder


def check_trainable(task: Task) -> Task:
    """The task itself; raises InputError if its train split has fewer than two labels."""
    labels = np.unique(task.split("train").y)
    if len(labels) < 2:
        only = task.labels[int(labels[0])]
        raise InputError(f"task {task.name}: all training examples are {only}; expected two labels or more to learn")
    return task


def _load_probes(settings: TuningSettings, task: Task, data: str | Path | None) -> list[Task]:
    """The tasks whose vectors are stored at each snapshot; they must have the requested splits."""
    probe = settings.probe
    if isinstance(probe, Mapping):
        probes = [_load_probe(name, content, task, data) for name, content in probe.items()]
    else:
        probes = load_tasks(task if probe is None else probe, data)
    names = [probed.name for probed in probes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two tasks to probe are called {twice}; give one of them another name")
    for probed in probes:
        choose_splits(probed, settings.splits)
    return probes


def _load_probe(name: str, content: str, task: Task, data: str | Path | None) -> Task:
    """The task of this name and content hash, as settings of an earlier run name it."""
    if content == task.content_hash:
        return task
    (probed,) = load_tasks(name, data)
    if probed.content_hash != content:
        raise InputError(f"the content of task {name} differs from the one in the settings; pass probe= to name tasks")
    return probed


def _refuse_difference(
    folder: Path, what: str, existing: tuple[object, object], requested: tuple[object, object]
) -> None:
    """Raise InputError if the second values differ; the first values are shown in the message."""
    if existing[1] != requested[1]:
        shown = f"{existing[0]}, now {requested[0]}" if existing[0] != requested[0] else f"another {existing[0]}"
        raise InputError(f"{folder} holds a run with different settings ({what}: {shown}); choose another folder")

"""`tune`: an encoder fine-tuned on a task, its vectors kept along the way."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from closerlook.encoders.source import EMBEDDED, Source, read_json, resolve
from closerlook.errors import InputError, WorkError
from closerlook.representations.extract import (
    Progress,
    choose_layers,
    choose_pool,
    choose_splits,
    describe_encoder,
    library_versions,
    load_tasks,
)
from closerlook.representations.store import Store
from closerlook.tasks.task import Task
from closerlook.tuning.schedule import Snapshots, snapshot_steps
from closerlook.tuning.settings import WARMUP, WEIGHT_DECAY, Asked, TuningSettings
from closerlook.tuning.tuned import DTYPE, FILE, TuningResult, snapshot_spaces

if TYPE_CHECKING:
    from closerlook.encoders.encoder import Encoder
    from closerlook.tuning.training import Plan

log = logging.getLogger("closerlook.tuning")


def tune(
    encoder: str | Path = EMBEDDED,
    task: str | Path | Task = "toy-pos",
    *,
    out: str | Path | None = None,
    seed: int = 0,
    epochs: float | None = None,
    learning_rate: float | None = None,
    batch_size: int | None = None,
    warmup: float = WARMUP,
    weight_decay: float = WEIGHT_DECAY,
    pool: str = "auto",
    snapshots: Snapshots = "log",
    probe: str | Path | Task | Sequence[str | Path | Task] | None = None,
    splits: str | Sequence[str] = "all",
    layers: str | int | Iterable[int] = "all",
    between: str | int | Iterable[int] | None = None,
    data: str | Path | None = None,
    store: Store | str | Path | None = None,
    save_weights: bool = False,
    early_stopping: int | None = None,
    lora: bool | int | None = None,
    device: str = "auto",
    window: int | None = None,
    encoder_seed: int = 0,
    deterministic: bool = True,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    trainer_arguments: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> TuningResult:
    """The run of an encoder fine-tuned on a task's train split, with a linear head over exactly the probed vector.

    Each snapshot puts the vectors of the `probe` tasks (by default the tuned one) into the store, for the `splits` and
    `layers` asked for, or the layers `between` where it is neither the start nor the end; `snapshot_spaces` fetches
    them. Weights are kept only with save_weights, in out/step-N.
    epochs, learning_rate, batch_size: usual for the encoder's size unless given. warmup: share of the steps.
    snapshots: 'log' (0, 1, 2, 4 …), 'epoch', 'every: k', how many, or a list of steps; the start and the end always.
    early_stopping: epochs to wait for a lower loss on the dev split, else on a tenth of train held out.
    lora: True or a rank, to train adapters only. encoder_seed: of the weights of `random:ID`. deterministic: on a GPU,
    the same weights every time at some cost in speed. trainer_arguments: more of transformers' TrainingArguments, such
    as {"bf16": True}. A run that is finished in `out` is returned at once.

    >>> run = tune("bert-tiny", "toy-question", epochs=1, snapshots=2, layers="last")  # doctest: +SKIP
    >>> [snapshot.step for snapshot in run.snapshots], run.settings.learning_rate  # doctest: +SKIP
    ([0, 12], 0.0003)
    """
    asked = Asked(
        seed=seed,
        epochs=epochs,
        learning_rate=learning_rate,
        batch_size=batch_size,
        warmup=warmup,
        weight_decay=weight_decay,
        snapshots=snapshots if isinstance(snapshots, str | int) else list(snapshots),
        early_stopping=early_stopping,
        lora=lora,
        trainer_arguments=dict(trainer_arguments or {}),
    )
    folder = _folder(out, save_weights)
    kept_splits = "all" if splits == "all" else [splits] if isinstance(splits, str) else list(splits)
    (opened,) = load_tasks(_single(task), data)
    request = _Request(
        asked=asked,
        task=check_trainable(opened),
        probes=_probes(opened if probe is None else probe, data, kept_splits),
        source=resolve(
            _name(encoder), seed=encoder_seed, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
        ),
        store=store if isinstance(store, Store) else Store(store),
        pool=pool,
        layers=layers,
        between=layers if between is None else between,
        splits=kept_splits,
        window=window,
        save_weights=save_weights,
        deterministic=deterministic,
        device=device,
        trust_remote_code=trust_remote_code,
    )
    finished = None if folder is None else request.finished(folder)
    if finished is not None:
        return finished
    return _train(request, folder, progress)


@dataclass(frozen=True, eq=False)
class _Request:
    """What was asked for, opened and checked as far as it goes without loading the encoder."""

    asked: Asked
    task: Task
    probes: list[Task]
    source: Source
    store: Store
    pool: str
    layers: str | int | Iterable[int]
    between: str | int | Iterable[int]
    splits: str | list[str]
    window: int | None
    save_weights: bool
    deterministic: bool
    device: str
    trust_remote_code: bool

    def load(self) -> Encoder:
        """The encoder itself."""
        from closerlook.encoders.encoder import Encoder
        from closerlook.encoders.loading import choose_device
        from closerlook.tuning.lora import require_peft

        if self.asked.rank is not None:
            require_peft()
        if self.save_weights and read_json(self.source.folder / "config.json").get("is_encoder_decoder"):
            raise InputError(
                f"save_weights asked for; only one half of {self.source.name} is tuned, which cannot be saved by itself"
            )
        where = str(choose_device(self.device))
        return Encoder.load(
            self.source, device=where, dtype=DTYPE, window=self.window, trust_remote_code=self.trust_remote_code
        )

    def settings(self, parameters: int, last_layer: int) -> TuningSettings:
        """Every choice, for an encoder of that many parameters and layers."""
        return self.asked.fill(
            parameters,
            pool=self.pool,
            probe={task.name: task.content_hash for task in self.probes},
            splits=self.splits,
            layers=choose_layers(self.layers, last_layer, self.source.name),
            between=choose_layers(self.between, last_layer, self.source.name),
            window=self.window,
            save_weights=self.save_weights,
            deterministic=self.deterministic,
        )

    def finished(self, folder: Path) -> TuningResult | None:
        """The run that lies finished in the folder; None if there is none, or some of its vectors are gone."""
        if not (folder / FILE).exists():
            return None
        run = TuningResult.load(folder)
        _refuse_other(folder, "encoder", (run.encoder, run.base), (self.source.name, self.source.fingerprint))
        _refuse_other(folder, "task", (run.task, run.task_hash), (self.task.name, self.task.content_hash))
        ours = json.loads(json.dumps(self.settings(run.parameters, run.info.layers).to_dict()))
        theirs = run.settings.to_dict()
        for name, value in theirs.items():
            _refuse_other(folder, name, (value, value), (ours[name], ours[name]))
        kept = [snapshot.weights for snapshot in run.snapshots if snapshot.weights is not None]
        if all((folder / weights).is_dir() for weights in kept) and self._vectors_are_there(run):
            log.info("%s holds this run, finished", folder)
            return run
        log.info("%s holds this run, but some of what it kept is gone; it is done again", folder)
        return None

    def _vectors_are_there(self, run: TuningResult) -> bool:
        try:
            for snapshot in run.snapshots:
                snapshot_spaces(run, snapshot, self.probes, splits=self.splits, store=self.store)
        except WorkError:
            return False
        return True


def _train(request: _Request, folder: Path | None, progress: Progress | None) -> TuningResult:
    """The encoder loaded, what depends on it checked, and the training done."""
    from closerlook.tuning.surroundings import quiet
    from closerlook.tuning.training import train, training_arguments

    start = time.perf_counter()
    with quiet(), tempfile.TemporaryDirectory() as scratch:
        encoder = request.load()
        parameters = sum(parameter.numel() for parameter in encoder.model.parameters())
        settings = request.settings(parameters, encoder.info.layers)
        arguments = training_arguments(settings, encoder.device, scratch)
        kept = train(encoder, _plan(request, encoder, settings, arguments, folder), arguments, progress)
    run = TuningResult(
        encoder=request.source.name,
        base=request.source.fingerprint,
        info=encoder.info,
        parameters=parameters,
        task=request.task.name,
        task_hash=request.task.content_hash,
        settings=settings,
        snapshots=kept,
        steps=kept[-1].step,
        seconds=round(time.perf_counter() - start, 3),
        device=str(arguments.device),
        versions=dict(library_versions()),
    )
    if folder is not None and arguments.process_index == 0:
        run.save(folder)
    return run


def _plan(request: _Request, encoder: Encoder, settings: TuningSettings, arguments: Any, folder: Path | None) -> Plan:
    """What is to be trained and kept, once it is known to be possible."""
    from closerlook.tuning.training import Plan, choose_texts, count_steps

    for task in (request.task, *request.probes):
        choose_pool(request.pool, task.unit, has_cls=encoder.info.has_cls)
    texts = len(choose_texts(request.task, settings)[0])
    steps = snapshot_steps(settings.snapshots, *count_steps(texts, arguments))
    _announce(encoder, request.task, settings, texts, steps)
    return Plan(request.task, request.probes, settings, steps, request.store, folder)


def _announce(encoder: Encoder, task: Task, settings: TuningSettings, texts: int, steps: Sequence[int]) -> None:
    log.info("%s", describe_encoder(encoder))
    log.info("task %s: %d texts, %d labels", task.name, texts, len(task.labels))
    hidden = {"probe", "trainer_arguments", "layers", "between", "snapshots"}
    shown = {key: value for key, value in settings.to_dict().items() if key not in hidden} | settings.trainer_arguments
    log.info("settings: %s", ", ".join(f"{key} {value}" for key, value in shown.items()))
    log.info("%d snapshots at steps %s", len(steps), ", ".join(map(str, steps)))


def _name(encoder: object) -> str:
    if not isinstance(encoder, str | os.PathLike):
        raise InputError(
            f"a {type(encoder).__name__} arrived as encoder; expected a name or folder, since tuning changes weights "
            "(for a model of your own there is GeometryCallback)"
        )
    return os.fspath(encoder)


def _single(task: object) -> str | Path | Task:
    if not isinstance(task, str | Path | Task):
        raise InputError(f"a {type(task).__name__} arrived as task; expected one name, path or Task to tune on")
    return task


def _folder(out: str | Path | None, save_weights: bool) -> Path | None:
    if out is None:
        if save_weights:
            raise InputError("save_weights asked for without a folder; pass out as well")
        return None
    folder = Path(out).expanduser()
    nearest = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise InputError(f"out {folder}: {nearest} is a file; expected a folder, existing or new")
    if not os.access(nearest, os.W_OK):
        raise InputError(f"out {folder}: {nearest} may not be written to; choose another folder")
    return folder


def check_trainable(task: Task) -> Task:
    """The task, if there is something to learn in its train split."""
    labels = np.unique(task.split("train").y)
    if len(labels) < 2:
        only = task.labels[int(labels[0])]
        raise InputError(f"task {task.name}: all training examples are {only}; expected two labels or more to learn")
    return task


def _probes(
    probe: str | Path | Task | Sequence[str | Path | Task], data: str | Path | None, splits: str | Sequence[str]
) -> list[Task]:
    probes = load_tasks(probe, data)
    names = [task.name for task in probes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two tasks to probe are called {twice}; give one of them another name")
    for task in probes:
        choose_splits(task, splits)
    return probes


def _refuse_other(folder: Path, what: str, theirs: tuple[object, object], ours: tuple[object, object]) -> None:
    """theirs, ours: what to show, and what must be the same."""
    if theirs[1] != ours[1]:
        shown = f"{theirs[0]}, now {ours[0]}" if theirs[0] != ours[0] else f"another {theirs[0]}"
        raise InputError(f"{folder} holds a run with other settings ({what}: {shown}); choose another folder")

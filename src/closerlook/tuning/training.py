"""The training itself: transformers' Trainer, with callbacks that take snapshots and stop early."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

from closerlook.encoders.alignment import Alignment
from closerlook.encoders.encoder import Encoder
from closerlook.encoders.pooling import choose_pool
from closerlook.errors import InputError, WorkError
from closerlook.progress import Progress
from closerlook.representations.extract import (
    choose_layers,
    choose_splits,
    extract,
    fetch_spaces,
)
from closerlook.representations.space import Provenance, Space
from closerlook.representations.store import Store
from closerlook.tasks.task import Split, Task
from closerlook.texts import Text
from closerlook.tuning.contexts import deterministic_algorithms, preserved_random_state
from closerlook.tuning.examples import Examples
from closerlook.tuning.heads import head_nc3
from closerlook.tuning.labeller import Labeller
from closerlook.tuning.lora import add_adapters, merge_adapters
from closerlook.tuning.resuming import SavedState, StateFolder, StateSaver
from closerlook.tuning.settings import TuningSettings
from closerlook.tuning.steps import choose_texts, count_steps
from closerlook.tuning.trainable import freeze
from closerlook.tuning.tuned import Snapshot, checkpoint_name
from closerlook.tuning.weights import save_weights

if TYPE_CHECKING:
    from peft import PeftModel

    from closerlook.tuning.trainer import Arguments, Callback, Control, RunnableTrainer, State

log = logging.getLogger("closerlook.tuning")


@dataclass(frozen=True, eq=False)
class Training:
    """What to train on and what to store.

    probes: the tasks whose vectors are stored. steps: the snapshot steps. states: where the state of the run is saved
    and found again; None: nowhere.
    """

    task: Task
    probes: Sequence[Task]
    settings: TuningSettings
    steps: Sequence[int]
    store: Store
    out: Path | None
    states: StateFolder | None = None


def train(
    encoder: Encoder, training: Training, arguments: Arguments, progress: Progress | None
) -> tuple[tuple[Snapshot, ...], float]:
    """The snapshots of a whole training run, and the seconds that it took before it was interrupted, if it was.

    Changes the weights of the encoder's model in place.
    """
    settings, task = training.settings, training.task
    pool = choose_pool(settings.pool, task.unit, encoder.info)
    texts = choose_texts(task, settings)
    saved = _usable_state(encoder, training)
    earlier = 0.0 if saved is None else saved.seconds
    with preserved_random_state():
        set_seed(settings.seed)
        adapters = None
        if settings.lora is not None:
            encoder, adapters = add_adapters(encoder, settings.lora)
        freeze(encoder, settings.trained)
        labeller = Labeller(encoder, task)
        examples = Examples(encoder, task.unit, task.split("train"), pool, texts.train)
        taker = _SnapshotTaker(labeller, adapters, training, pool, progress)
        stopping = None
        if texts.stopping_split is not None:
            held_out = Examples(encoder, task.unit, texts.stopping_split, pool, texts.stopping)
            stopping = _EarlyStopping(labeller, held_out, settings.early_stopping or 1)
        if saved is not None:
            _restore(saved, taker, stopping)
        callbacks: list[Callback] = [taker] if stopping is None else [taker, stopping]
        trainer = _build_trainer(labeller, arguments, examples, callbacks)
        if training.states is not None:
            per_epoch = count_steps(len(texts.train), settings)[1]
            collect = _collector(taker, stopping)
            trainer.add_callback(
                StateSaver(
                    training.states, labeller, trainer, steps_per_epoch=per_epoch, collect=collect, seconds=earlier
                )
            )
        _run(trainer, saved, deterministic=settings.deterministic)
    return _from_first_process(tuple(taker.snapshots)), earlier


def _usable_state(encoder: Encoder, training: Training) -> SavedState | None:
    """The saved state of the run; None if there is none, or if vectors or weights of its snapshots are missing."""
    states = training.states
    saved = None if states is None else states.load()
    if saved is None or states is None:
        return None
    if not all(_is_stored(snapshot, encoder, training) for snapshot in saved.snapshots):
        states.ignore("belongs to snapshots whose vectors or weights are missing")
        return None
    log.info("continuing an interrupted run after step %d", saved.step)
    return saved


def _is_stored(snapshot: Snapshot, encoder: Encoder, training: Training) -> bool:
    """Whether the vectors of a snapshot, and its weights if they were saved, still exist."""
    if snapshot.weights is not None and not (training.out is not None and (training.out / snapshot.weights).is_dir()):
        return False
    settings = training.settings
    provenance = Provenance(
        encoder=encoder.name, weights=snapshot.fingerprint, dtype=settings.dtype, template=settings.template
    )
    layers = settings.layers if snapshot.step == 0 else settings.snapshot_layers
    try:
        fetch_spaces(
            provenance,
            encoder.info,
            training.probes,
            splits=settings.splits,
            layers=settings.layers if layers is None else layers,
            pool=settings.pool,
            store=training.store,
        )
    except WorkError:
        return False
    return True


def _restore(saved: SavedState, taker: _SnapshotTaker, stopping: _EarlyStopping | None) -> None:
    taker.snapshots = list(saved.snapshots)
    if stopping is not None:
        stopping.best_loss = saved.stopping["best_loss"]
        stopping.epochs_without_gain = int(saved.stopping["epochs_without_gain"])


def _collector(
    taker: _SnapshotTaker, stopping: _EarlyStopping | None
) -> Callable[[], tuple[list[Snapshot], dict[str, float]]]:
    """A function that returns the snapshots taken so far and the values of early stopping."""

    def collect() -> tuple[list[Snapshot], dict[str, float]]:
        if stopping is None:
            return taker.snapshots, {}
        return taker.snapshots, {
            "best_loss": stopping.best_loss,
            "epochs_without_gain": stopping.epochs_without_gain,
        }

    return collect


def training_arguments(settings: TuningSettings, device: torch.device, scratch: str) -> Arguments:
    """The Trainer's arguments for resolved settings; they turn off its own files, progress bars and loggers."""
    silent: dict[str, object] = {
        "save_strategy": "no",
        "disable_tqdm": True,
        "report_to": "none",
        "log_level": "error",
        "remove_unused_columns": False,
        "dataloader_pin_memory": False,
    }
    try:
        arguments = TrainingArguments(
            **(silent | dict(settings.trainer_arguments)),
            output_dir=scratch,
            seed=settings.seed,
            num_train_epochs=settings.epochs,
            learning_rate=settings.learning_rate,
            per_device_train_batch_size=settings.batch_size,
            warmup_steps=settings.warmup,  # below 1 it is a share of the steps
            weight_decay=settings.weight_decay,
            use_cpu=device.type == "cpu",
        )
        chosen = arguments.device
    except (TypeError, ValueError, ImportError, RuntimeError) as error:
        raise InputError(f"trainer arguments cannot be used: {' '.join(str(error).split())}") from None
    if device.type != chosen.type or (device.index is not None and device.index != (chosen.index or 0)):
        raise InputError(f"device {device} requested; the Trainer takes {chosen}, set CUDA_VISIBLE_DEVICES to choose")
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # DataParallel cannot divide our batches; torchrun starts one process for each GPU
    checked: Arguments = arguments
    return checked


def _build_trainer(
    labeller: Labeller, arguments: Arguments, examples: Examples, callbacks: Sequence[Callback]
) -> RunnableTrainer:
    try:
        trainer: RunnableTrainer = Trainer(
            model=labeller,
            args=arguments,
            train_dataset=examples,
            data_collator=examples.collate,
            callbacks=list(callbacks),
        )
    except (ValueError, ImportError, RuntimeError) as error:
        raise InputError(f"trainer arguments cannot be used: {' '.join(str(error).split())}") from None
    trainer.remove_callback(PrinterCallback)
    return trainer


def _run(trainer: RunnableTrainer, saved: SavedState | None, *, deterministic: bool) -> None:
    """Train from the beginning, or from a saved state."""
    checkpoint = None if saved is None else str(saved.checkpoint)
    try:
        with deterministic_algorithms(trainer.args.device) if deterministic else nullcontext():
            trainer.train(checkpoint)
    except torch.OutOfMemoryError:
        raise WorkError(
            f"{trainer.args.device} is out of memory; pass a smaller --batch-size, or --device cpu"
        ) from None


def _from_first_process(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    """The snapshots of the first process, in every process: only the first one takes any."""
    from accelerate.utils import broadcast_object_list

    shared: tuple[Snapshot, ...] = broadcast_object_list([snapshots])[0]
    return shared


class _SnapshotTaker(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Takes a snapshot at the start, at the scheduled steps and at the end, without any effect on the training."""

    def __init__(
        self,
        labeller: Labeller,
        adapters: PeftModel | None,
        training: Training,
        pool: str,
        progress: Progress | None,
    ) -> None:
        self.labeller = labeller
        self.adapters = adapters
        self.training = training
        self.pool = pool
        self.progress = progress
        self.snapshots: list[Snapshot] = []
        self.alignments: dict[tuple[Text, ...], Alignment] = {}

    def on_train_begin(self, args: Arguments, state: State, control: Control, **rest: object) -> None:
        """Take the first snapshot, unless the run continues from a saved state."""
        if not self.snapshots:
            self._take(state, is_end=True)

    def on_step_end(self, args: Arguments, state: State, control: Control, **rest: object) -> None:
        """Take a snapshot if the step is scheduled."""
        if state.global_step in self.training.steps:
            self._take(state, is_end=state.global_step == state.max_steps)
        if self.progress:
            self.progress(state.global_step, state.max_steps)

    def on_train_end(self, args: Arguments, state: State, control: Control, **rest: object) -> None:
        """Take the last snapshot, also if the training stopped early."""
        if self.snapshots and self.snapshots[-1].step == state.global_step != state.max_steps:
            self.snapshots.pop()  # stopped early at a scheduled step, whose snapshot may lack layers
        if not self.snapshots or self.snapshots[-1].step != state.global_step:
            self._take(state, is_end=True)

    def _take(self, state: State, *, is_end: bool) -> None:
        """Store the vectors, score the head, save the weights. is_end: the first or the last snapshot."""
        if not state.is_world_process_zero:
            return
        step, settings, task = int(state.global_step), self.training.settings, self.training.task
        name = checkpoint_name(task.name, settings.seed, step)
        encoder = replace(self.labeller.encoder, checkpoint=name, seed=None, alignments=self.alignments)
        layers = settings.layers if is_end or settings.snapshot_layers is None else settings.snapshot_layers
        with preserved_random_state():
            spaces = extract(
                encoder,
                self.training.probes,
                splits=settings.splits,
                layers=choose_layers(layers, encoder.info.layers, encoder.name),
                pool=settings.pool,
                store=self.training.store,
            )
            scored = {split.name: self._vectors(split, spaces) for split in self._scored_splits()}
            scores = {split: self.labeller.score(*vectors) for split, vectors in scored.items()}
        self.snapshots.append(
            Snapshot(
                step=step,
                epoch=round(float(state.epoch or 0.0), 6),
                fingerprint=str(spaces[0].provenance.weights),
                loss={split: loss for split, (loss, _) in scores.items()},
                accuracy={split: accuracy for split, (_, accuracy) in scores.items()},
                weights=self._save_weights(step),
                nc3=head_nc3(self.labeller.head.weight, *scored["train"]) if step and "train" in scored else None,
            )
        )

    def _scored_splits(self) -> Sequence[Split]:
        """The splits of the fine-tuning's own task for which loss and accuracy are computed."""
        task, splits = self.training.task, self.training.settings.splits
        if splits == "all":
            return task.splits
        return choose_splits(task, [split.name for split in task.splits if split.name in splits])

    def _vectors(self, split: Split, spaces: Sequence[Space]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """The vectors of a split that the head reads, and their labels; taken from `spaces` if these contain them."""
        encoder, task = self.labeller.encoder, self.training.task
        wanted = (task.content_hash, split.name, encoder.info.layers)
        for space in spaces:
            provenance = space.provenance
            if (provenance.task_hash, provenance.split, provenance.layer) == wanted:
                return space.X, space.y
        examples = Examples(encoder, task.unit, split, self.pool)
        return examples.vectors(encoder, [encoder.info.layers])[0], examples.y

    def _save_weights(self, step: int) -> str | None:
        """Save the weights and return their folder, relative to the run's folder; None if weights are not saved."""
        if not self.training.settings.save_weights or self.training.out is None:
            return None
        encoder = self.labeller.encoder
        model = encoder.model if self.adapters is None else merge_adapters(self.adapters)
        folder = self.training.out / f"step-{step}"
        save_weights(model, encoder.tokenizer, self.labeller.head, folder, encoder.info.sentence_pool)
        return f"step-{step}"


class _EarlyStopping(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Stops the training after `patience` epochs in which the loss on the given examples did not fall."""

    def __init__(self, labeller: Labeller, examples: Examples, patience: int) -> None:
        self.labeller = labeller
        self.examples = examples
        self.patience = patience
        self.best_loss, self.epochs_without_gain = math.inf, 0

    def on_epoch_end(self, args: Arguments, state: State, control: Control, **rest: object) -> None:
        """Compute the loss and decide whether to stop."""
        encoder = self.labeller.encoder
        with preserved_random_state():
            X = self.examples.vectors(encoder, [encoder.info.layers])[0]
        loss, _ = self.labeller.score(X, self.examples.y)
        self.epochs_without_gain = 0 if loss < self.best_loss else self.epochs_without_gain + 1
        self.best_loss = min(self.best_loss, loss)
        if self.epochs_without_gain >= self.patience:
            control.should_training_stop = True

"""The training itself, through transformers' Trainer, which stops for a snapshot at the steps of the schedule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

from closerlook.encoders.alignment import Ints
from closerlook.encoders.encoder import Encoder
from closerlook.errors import InputError, WorkError
from closerlook.representations.extract import Progress, choose_pool, choose_splits, extract
from closerlook.representations.store import Store
from closerlook.tasks.task import Split, Task
from closerlook.tuning.examples import Examples
from closerlook.tuning.labeller import Labeller
from closerlook.tuning.lora import adapt, merged
from closerlook.tuning.settings import TuningSettings
from closerlook.tuning.surroundings import deterministic, kept_randomness
from closerlook.tuning.tuned import Snapshot, checkpoint
from closerlook.tuning.weights import save_weights

HELD_OUT = 0.1
"""Share of the training texts that early stopping looks at where the task has no split for it."""

DEV = ("dev", "validation", "valid")


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be trained and what to keep of it. probes: tasks whose vectors each snapshot keeps."""

    task: Task
    probes: Sequence[Task]
    settings: TuningSettings
    steps: Sequence[int]
    store: Store
    out: Path | None


def train(encoder: Encoder, plan: Plan, arguments: Any, progress: Progress | None) -> tuple[Snapshot, ...]:
    """The snapshots of a whole training; the encoder's model is changed in place."""
    settings, train_split = plan.settings, plan.task.split("train")
    pool = choose_pool(settings.pool, plan.task.unit, has_cls=encoder.info.has_cls)
    chosen, held_out = choose_texts(plan.task, settings)
    with kept_randomness():
        set_seed(settings.seed)
        encoder, handle = (encoder, None) if settings.lora is None else adapt(encoder, settings.lora)
        labeller = Labeller(encoder, plan.task)
        examples = Examples(encoder, plan.task.unit, train_split, pool, chosen)
        keeper = _Keeper(labeller, handle, plan, pool, progress)
        callbacks = [keeper]
        if held_out is not None:
            apart = Examples(encoder, plan.task.unit, held_out[0], pool, held_out[1])
            callbacks.append(_Patience(labeller, apart, settings.early_stopping or 1))
        trainer = _trainer(labeller, arguments, examples, callbacks)
        _run(trainer, deterministically=settings.deterministic)
    return _shared(tuple(keeper.snapshots))


def training_arguments(settings: TuningSettings, device: torch.device, scratch: str) -> Any:
    """The Trainer's arguments: ours, those that the user adds, and no files, bars or loggers of its own."""
    quiet: dict[str, Any] = {
        "save_strategy": "no",
        "disable_tqdm": True,
        "report_to": "none",
        "log_level": "error",
        "remove_unused_columns": False,
        "dataloader_pin_memory": False,
    }
    try:
        arguments = TrainingArguments(
            **(quiet | settings.trainer_arguments),
            output_dir=scratch,
            seed=settings.seed,
            num_train_epochs=settings.epochs,
            learning_rate=settings.learning_rate,
            per_device_train_batch_size=settings.batch_size,
            warmup_steps=settings.warmup,
            weight_decay=settings.weight_decay,
            use_cpu=device.type == "cpu",
        )
        where = arguments.device
    except (TypeError, ValueError, ImportError, RuntimeError) as error:
        raise InputError(f"trainer arguments cannot be used: {' '.join(str(error).split())}") from None
    if device.type != where.type or (device.index is not None and device.index != (where.index or 0)):
        raise InputError(f"device {device} requested; the Trainer takes {where}, set CUDA_VISIBLE_DEVICES to choose")
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # batches cannot be cut in two for DataParallel; several GPUs are torchrun's business
    return arguments


def count_steps(texts: int, arguments: Any) -> tuple[int, int]:
    """How many steps the training has in all, and in an epoch; as the Trainer counts them."""
    batches = math.ceil(math.ceil(texts / arguments.per_device_train_batch_size) / arguments.world_size)
    per_epoch = max(1, math.ceil(batches / arguments.gradient_accumulation_steps))
    return math.ceil(arguments.num_train_epochs * per_epoch), per_epoch


def choose_texts(task: Task, settings: TuningSettings) -> tuple[Ints, tuple[Split, Ints] | None]:
    """The texts to train on, and those that early stopping looks at: the dev split's, else a tenth of train's."""
    train_split = task.split("train")
    texts = np.unique(train_split.sentence).astype(np.int64)
    if settings.early_stopping is None:
        return texts, None
    dev = next((split for split in task.splits if split.name in DEV), None)
    if dev is not None:
        return texts, (dev, np.unique(dev.sentence).astype(np.int64))
    if len(texts) < 2:
        raise InputError(f"early stopping requested; task {task.name} has one training text and no dev split")
    drawn = np.random.default_rng(settings.seed).permutation(texts)
    apart = max(1, round(HELD_OUT * len(texts)))
    return np.sort(drawn[apart:]), (train_split, np.sort(drawn[:apart]))


def _trainer(labeller: Labeller, arguments: Any, examples: Examples, callbacks: Sequence[Any]) -> Any:
    try:
        trainer = Trainer(
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


def _run(trainer: Any, *, deterministically: bool) -> None:
    try:
        if deterministically:
            with deterministic(trainer.args.device):
                trainer.train()
        else:
            trainer.train()
    except torch.OutOfMemoryError:
        raise WorkError(
            f"{trainer.args.device} is out of memory; pass a smaller --batch-size, or --device cpu"
        ) from None


def _shared(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    """The first process's snapshots, in every process."""
    from accelerate.utils import broadcast_object_list

    shared: tuple[Snapshot, ...] = broadcast_object_list([snapshots])[0]
    return shared


class _Keeper(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Keeps a snapshot at the steps of the schedule and at the end; training goes on as if nothing had happened."""

    def __init__(self, labeller: Labeller, handle: Any, plan: Plan, pool: str, progress: Progress | None) -> None:
        self.labeller = labeller
        self.handle = handle
        self.plan = plan
        self.pool = pool
        self.progress = progress
        self.snapshots: list[Snapshot] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """The start."""
        self._keep(state, self.plan.settings.layers)

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Those on the schedule."""
        if state.global_step in self.plan.steps:
            settings = self.plan.settings
            self._keep(state, settings.layers if state.global_step == state.max_steps else settings.between)
        if self.progress:
            self.progress(state.global_step, state.max_steps)

    def on_train_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """The end, wherever it came."""
        if self.snapshots and self.snapshots[-1].step == state.global_step != state.max_steps:
            self.snapshots.pop()  # it stopped early, just where it was looked at as one in between
        if not self.snapshots or self.snapshots[-1].step != state.global_step:
            self._keep(state, self.plan.settings.layers)

    def _keep(self, state: Any, layers: list[int]) -> None:
        if not state.is_world_process_zero:
            return
        plan, step = self.plan, int(state.global_step)
        named = replace(
            self.labeller.encoder, checkpoint=checkpoint(plan.task.name, plan.settings.seed, step), seed=None
        )
        with kept_randomness():
            spaces = extract(
                named,
                plan.probes,
                splits=plan.settings.splits,
                layers=layers,
                pool=plan.settings.pool,
                store=plan.store,
            )
            scores = {split.name: self._score(split, spaces) for split in self._own_splits()}
        self.snapshots.append(
            Snapshot(
                step=step,
                epoch=round(float(state.epoch or 0.0), 6),
                fingerprint=str(spaces[0].provenance.weights),
                loss={split: loss for split, (loss, _) in scores.items()},
                accuracy={split: accuracy for split, (_, accuracy) in scores.items()},
                weights=self._save(step),
            )
        )

    def _own_splits(self) -> Sequence[Split]:
        task = self.plan.task
        if self.plan.settings.splits == "all":
            return task.splits
        return choose_splits(task, [split.name for split in task.splits if split.name in self.plan.settings.splits])

    def _score(self, split: Split, spaces: Sequence[Any]) -> tuple[float, float]:
        """Loss and accuracy of the head, on the vectors just extracted where they are among them."""
        encoder, task = self.labeller.encoder, self.plan.task
        wanted = (task.content_hash, split.name, encoder.info.layers)
        for space in spaces:
            made = space.provenance
            if (made.task_hash, made.split, made.layer) == wanted:
                return self.labeller.score(space.X, space.y)
        examples = Examples(encoder, task.unit, split, self.pool)
        return self.labeller.score(examples.vectors(encoder, [encoder.info.layers])[0], examples.y)

    def _save(self, step: int) -> str | None:
        if not self.plan.settings.save_weights or self.plan.out is None:
            return None
        encoder = self.labeller.encoder
        model = encoder.model if self.handle is None else merged(self.handle)
        save_weights(model, encoder.tokenizer, self.labeller.head, self.plan.out / f"step-{step}")
        return f"step-{step}"


class _Patience(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Stops the training after so many epochs in which the loss on the texts held out did not fall."""

    def __init__(self, labeller: Labeller, examples: Examples, patience: int) -> None:
        self.labeller = labeller
        self.examples = examples
        self.patience = patience
        self.best, self.waited = math.inf, 0

    def on_epoch_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """One look."""
        encoder = self.labeller.encoder
        with kept_randomness():
            X = self.examples.vectors(encoder, [encoder.info.layers])[0]
        loss, _ = self.labeller.score(X, self.examples.y)
        self.waited = 0 if loss < self.best else self.waited + 1
        self.best = min(self.best, loss)
        if self.waited >= self.patience:
            control.should_training_stop = True

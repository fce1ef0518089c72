"""How many steps a fine-tuning run has, on which texts, and at which steps it takes snapshots; needs no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.tasks.task import DEV, Split, Task
from closerlook.tuning.schedule import snapshot_steps
from closerlook.tuning.settings import TuningSettings

HELD_OUT = 0.1
"""The share of the training texts on which early stopping measures the loss if the task has no dev split."""


@dataclass(frozen=True, eq=False)
class TrainingTexts:
    """The texts of a fine-tuning run, as ascending indices into `Split.texts`.

    train: the training texts, in the train split. stopping: the texts on which early stopping measures the loss;
    stopping_split: the split they belong to, None without early stopping.
    """

    train: NDArray[np.int64]
    stopping: NDArray[np.int64]
    stopping_split: Split | None


def choose_texts(task: Task, settings: TuningSettings) -> TrainingTexts:
    """The texts to train on, and those for early stopping: the dev split, or a tenth of train drawn by the seed."""
    train = task.split("train")
    texts = _texts_with_examples(train)
    if settings.early_stopping is None:
        return TrainingTexts(texts, texts[:0], None)
    dev = next((split for split in task.splits if split.name == DEV), None)
    if dev is not None:
        return TrainingTexts(texts, _texts_with_examples(dev), dev)
    if len(texts) < 2:
        raise InputError(f"early stopping requested; task {task.name} has one training text and no dev split")
    order = np.random.default_rng(settings.seed).permutation(texts)
    held_out = max(1, round(HELD_OUT * len(texts)))
    return TrainingTexts(np.sort(order[held_out:]), np.sort(order[:held_out]), train)


def _texts_with_examples(split: Split) -> NDArray[np.int64]:
    return np.unique(split.sentence).astype(np.int64)


def count_steps(texts: int, settings: TuningSettings, processes: int = 1) -> tuple[int, int]:
    """The number of optimiser steps in the whole run and in one epoch, counted as transformers' Trainer counts them.

    texts: the number of training texts. settings: resolved settings. processes: the number of processes that train.
    """
    epochs, batch_size = settings.epochs_and_batch_size
    drop_last = settings.trainer_arguments.get("dataloader_drop_last") is True
    batches = texts // batch_size if drop_last else math.ceil(texts / batch_size)
    batches = batches // processes if drop_last else math.ceil(batches / processes)
    accumulated = settings.trainer_arguments.get("gradient_accumulation_steps")
    batches_per_step = accumulated if isinstance(accumulated, int) and accumulated > 0 else 1
    per_epoch = max(1, math.ceil(batches / batches_per_step))
    return math.ceil(epochs * per_epoch), per_epoch


def planned_steps(settings: TuningSettings, task: Task, processes: int = 1) -> list[int]:
    """The steps at which a run on this task takes snapshots, if it does not stop early. settings: resolved."""
    texts = len(choose_texts(task, settings).train)
    return snapshot_steps(settings.snapshots, *count_steps(texts, settings, processes))

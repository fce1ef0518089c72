"""A task that is measured during a training: its examples, its state at the start, and its measurements."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closerlook.encoders.encoder import Encoder
from closerlook.encoders.pooling import choose_pool
from closerlook.errors import InputError
from closerlook.geometry import LabelDistances
from closerlook.geometry.frame import text_array
from closerlook.tasks.splitting import with_test_split
from closerlook.tasks.task import Split, Task, sample_split, split_order
from closerlook.tuning.alarms import Alarm, AlarmState
from closerlook.tuning.examples import Examples
from closerlook.tuning.measures import LayerGeometry, measure_layer, predict_held_out

log = logging.getLogger("closerlook.tuning")


@dataclass(frozen=True)
class Measured:
    """One layer of one task at one step. alarms: those that this measurement raised."""

    task: str
    layer: int
    geometry: LayerGeometry
    alarms: tuple[Alarm, ...]


@dataclass(eq=False)
class WatchedTask:
    """A task that is measured during a training.

    split: the examples whose geometry is measured. held_out: those whose labels are predicted; None: no prediction.
    once: seconds that were spent on what is measured at the start only.
    """

    task: Task
    split: Split
    held_out: Split | None
    pool: str = ""
    once: float = 0.0
    _examples: list[Examples] = field(default_factory=list)
    _start: dict[int, LabelDistances] = field(default_factory=dict)
    _alarms: dict[int, AlarmState] = field(default_factory=dict)

    def begin(self, encoder: Encoder, pool: str, layers: list[int], alarm_level: float | None) -> None:
        """Locate the examples among the encoder's subwords, and forget earlier trainings. alarm_level: None: none."""
        self.pool, self.once = choose_pool(pool, self.task.unit, encoder.info), 0.0
        splits = [self.split] if self.held_out is None else [self.split, self.held_out]
        self._examples = [Examples(encoder, self.task.unit, split, self.pool) for split in splits]
        self._start = {}
        watched = [] if alarm_level is None else layers
        self._alarms = {layer: AlarmState(self.task.name, layer, alarm_level or 0.0) for layer in watched}

    def measure(self, encoder: Encoder, layers: list[int], step: int, threads: int | None) -> list[Measured]:
        """The measurements of all layers; the first call defines the start."""
        vectors = [examples.vectors(encoder, layers) for examples in self._examples]
        codes = [examples.y for examples in self._examples]
        labels = text_array(self.task.labels)[codes[0]]
        measured = []
        for at, layer in enumerate(layers):
            X, correct = vectors[0][at], np.zeros(0, np.bool_)
            if self.held_out is not None:
                correct = predict_held_out(X, codes[0], vectors[1][at], codes[1])
            geometry, distances = measure_layer(X, labels, self._start.get(layer), correct, threads)
            if layer not in self._start:
                self._start[layer] = distances
                self._measure_noise(layer, X, labels, threads)
            state = self._alarms.get(layer)
            alarms = () if state is None else state.check(step, geometry.similarity, correct)
            measured.append(Measured(self.task.name, layer, geometry, tuple(alarms)))
        return measured

    def noise(self, layer: int) -> float | None:
        """The lowest similarity of two halves of the examples at the start; None if alarms are off."""
        return self._alarms[layer].similarity_noise if layer in self._alarms else None

    def _measure_noise(self, layer: int, X: NDArray[np.float32], labels: NDArray[Any], threads: int | None) -> None:
        """Measure the noise of a layer's similarity, if alarms are on."""
        if layer in self._alarms:
            begun = time.perf_counter()
            self._alarms[layer].measure_noise(X, labels, threads)
            self.once += time.perf_counter() - begun


def watch_task(task: Task, split: str, held_out: str | None, max_points: int, seed: int) -> WatchedTask:
    """The task with at most max_points examples of each split. held_out: a split, `auto`, or None.

    auto: test, or else the first other split. If there is none, a fifth of the train split is held out.
    """
    if held_out == split:
        raise InputError(
            f"held_out is {held_out!r}, the split that is measured; expected another split, 'auto' or None"
        )
    if held_out == "auto":
        task, held_out = _choose_held_out(task, split)
    measured = sample_split(task, split, max_points, seed)
    return WatchedTask(task, measured, None if held_out is None else sample_split(task, held_out, max_points, seed))


def _choose_held_out(task: Task, split: str) -> tuple[Task, str | None]:
    """The task and its split for held-out accuracy; None, with a message, if there is none and none can be made."""
    others = sorted((part.name for part in task.splits if part.name != split), key=split_order)
    if others:
        return task, "test" if "test" in others else others[0]
    try:
        divided = with_test_split(task)
    except InputError as error:
        log.warning("task %s has no held-out accuracy: %s", task.name, error)
        return task, None
    log.info("%s", divided.notes[-1])
    return divided, "test"

"""`GeometryCallback`: geometry of the representations during any training with transformers' Trainer."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from closerlook.encoders.encoder import Encoder
from closerlook.errors import CloserLookError, InputError, WorkError
from closerlook.representations.extract import choose_layers, load_tasks
from closerlook.tuning.alarms import LEVEL, Alarm
from closerlook.tuning.budget import Budget
from closerlook.tuning.contexts import preserved_random_state
from closerlook.tuning.settings import Layers, TaskSource
from closerlook.tuning.watched import Measured, WatchedTask, watch_task
from closerlook.version import __version__

if TYPE_CHECKING:
    import torch

    from closerlook.tuning.trainer import Arguments, Control, RunnableTrainer, State

log = logging.getLogger("closerlook.tuning")

COUNTS = ("n", "held_out_n")
"""Fields of a measurement that never change during a training: they are in the results file, but not logged."""


class GeometryCallback(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Measures the geometry of fixed examples of one or more tasks at each layer, every few steps of any Trainer.

    For each task and layer it logs, as `geometry/TASK/layer2/clusters` and so on: the numbers of clusters and labels,
    whether the labels are linearly separable, conflicts (examples with the same vector as an example of another label),
    undecided merges, the mean minimum distance of the labels (absolute and in RMS radii), the spatial similarity to the
    start of the training, and `held_out_accuracy`, the accuracy of the nearest label mean on held-out examples. Once
    for each measurement it logs its time as `geometry/seconds`, and the time of all measurements so far divided by that
    of the rest of the training as `geometry/share`. The callback does not change the training: the final weights are
    the same as without it.

    Call `attach` to add it to a Trainer and to log to the Trainer's loggers. If it is only passed in `callbacks=`, it
    writes to `state.log_history` and to the results file.

    tasks: one or several, each a name, a path or a Task with the examples to measure. every: steps between two
    measurements; the start (before the first step) and the end of the training are always measured. split: whose
    geometry is measured. held_out: the split for held-out accuracy; 'auto': test, else the first other split, else a
    fifth of train; None: none. max_points: if a split has more examples, texts are drawn in a random order (by `seed`)
    until this number is reached; of the last text, some examples may be missing. max_share: a measurement between the
    start and the end is skipped, with a message, if all measurements together would take more than this share of the
    time of the training; None: never. alarm: a function that is called with an `Alarm` when the held-out accuracy or
    the similarity of a task falls by more than its noise, or True; the alarm is logged as a warning in both cases.
    encoder: the encoder inside the model, or the name of its submodule; needed if the model contains several.
    tokenizer: by default the Trainer's processing_class. results: a file to which one line of JSON is appended for each
    task, layer and measurement; `closerlook report FILE` makes a page of it. threads: for clustering; all cores by
    default.

    >>> callback = GeometryCallback(["toy-pos", "toy-dep"], every=50, layers="last", results="geometry.jsonl")
    >>> [(watched.task.name, len(watched.split)) for watched in callback.tasks]
    [('toy-pos', 2000), ('toy-dep', 2000)]
    """

    def __init__(
        self,
        tasks: TaskSource | Sequence[TaskSource] = "toy-pos",
        *,
        every: int = 100,
        split: str = "train",
        held_out: str | None = "auto",
        layers: Layers = "all",
        pool: str = "auto",
        max_points: int = 2000,
        max_share: float | None = 0.05,
        alarm: Callable[[Alarm], object] | bool = False,
        seed: int = 0,
        encoder: torch.nn.Module | str | None = None,
        tokenizer: PreTrainedTokenizerBase | None = None,
        window: int | None = None,
        results: str | Path | None = None,
        data: str | Path | None = None,
        threads: int | None = None,
    ) -> None:
        for name, value in (("every", every), ("max_points", max_points)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is {value!r}; expected a whole number, 1 or more")
        if max_share is not None and not 0 <= max_share <= 1:
            raise InputError(f"max_share is {max_share!r}; expected a number from 0 to 1, or None for no limit")
        if not (callable(alarm) or isinstance(alarm, bool)):
            raise InputError(f"alarm is {alarm!r}; expected a function that takes an Alarm, or True or False")
        loaded = load_tasks(tasks, data)
        names = [task.name for task in loaded]
        if len(set(names)) < len(names):
            raise InputError(f"tasks are {', '.join(names)}; expected different names, which the logged values carry")
        self.tasks = [watch_task(task, split, held_out, max_points, seed) for task in loaded]
        self.every, self.max_points, self.seed, self.max_share = every, max_points, seed, max_share
        self.layers, self.pool, self.alarm = layers, pool, alarm
        self.requested_encoder, self.tokenizer, self.window = encoder, tokenizer, window
        self.results = None if results is None else Path(results)
        if self.results is not None and self.results.is_dir():
            raise InputError(f"results {self.results} is a folder; expected a file, existing or new")
        self.threads = threads
        self.trainer: RunnableTrainer | None = None
        self.budget = Budget(max_share)
        self._start_step = self._measured_step = -1

    @property
    def seconds(self) -> float:
        """The time of all measurements of the last training."""
        return self.budget.seconds

    def attach(self, trainer: RunnableTrainer) -> GeometryCallback:
        """This callback, after it was added to a Trainer and connected to its loggers."""
        self.trainer = trainer
        trainer.add_callback(self)
        return self

    def on_train_begin(self, args: Arguments, state: State, control: Control, **rest: object) -> None:
        """Find the encoder, locate the examples among its subwords, and measure for the first time."""
        if not state.is_world_process_zero:
            return
        tokenizer = rest.get("processing_class") if self.tokenizer is None else self.tokenizer
        if tokenizer is None:
            raise InputError("no tokenizer given; pass GeometryCallback(tokenizer=…) or Trainer(processing_class=…)")
        with preserved_random_state():
            model = find_encoder(cast("torch.nn.Module", rest["model"]), self.requested_encoder)
            self.encoder = Encoder.wrap(model, tokenizer, name=type(model).__name__, window=self.window)
            self.chosen_layers = choose_layers(self.layers, self.encoder.info.layers, self.encoder.name)
            level = LEVEL / (len(self.tasks) * len(self.chosen_layers)) if self.alarm else None
            for task in self.tasks:
                task.begin(self.encoder, self.pool, self.chosen_layers, level)
        self.budget = Budget(self.max_share)
        self._start_step = state.global_step
        if self._start_step:
            log.warning("the training continues at step %d: similarity is to this step", self._start_step)
        self._measure(state, control)

    def on_step_end(self, args: Arguments, state: State, control: Control, **rest: object) -> None:
        """Measure every few steps, if there is time."""
        if not state.is_world_process_zero or state.global_step % self.every:
            return
        if state.global_step >= state.max_steps or self.budget.allows():
            self._measure(state, control)
            return
        log.log(
            logging.WARNING if self.budget.skipped == 1 else logging.INFO,
            "step %d is not measured: a measurement takes %.2g s, and all of them may take %g%% of the time of the "
            "training (so far %.2g s, with %.2g s of measurements); increase max_share to measure more often",
            *(state.global_step, self.budget.expected, 100 * (self.max_share or 0)),
            *(self.budget.training_seconds, self.budget.seconds),
        )

    def on_train_end(self, args: Arguments, state: State, control: Control, **rest: object) -> None:
        """Measure for the last time, and log the cost of all measurements."""
        if not state.is_world_process_zero:
            return
        if self._measured_step != state.global_step:
            self._measure(state, control)
        log.info(
            "all measurements took %.2g s, %.1f%% of the time of the training; %d were skipped",
            *(self.seconds, 100 * self.budget.share, self.budget.skipped),
        )

    def _measure(self, state: State, control: Control) -> None:
        """Measure all tasks; write, log and report what was found."""
        begun = time.perf_counter()
        step, before = state.global_step, sum(task.once for task in self.tasks)
        measured = [layer for task in self.tasks for layer in self._measure_task(task, step)]
        self._measured_step = step
        once = sum(task.once for task in self.tasks) - before
        seconds = time.perf_counter() - begun
        self.budget.add(seconds - once, once=once)
        log.info("step %d: measuring took %.2g s", step, seconds)
        self._write(measured, state, seconds)
        self._log(measured, state, control, seconds)
        for found in (alarm for layer in measured for alarm in layer.alarms):
            log.warning("%s", found)
            if callable(self.alarm):
                self.alarm(found)

    def _measure_task(self, task: WatchedTask, step: int) -> list[Measured]:
        """The measurements of one task; after the start, what cannot be measured does not stop the training."""
        try:
            with preserved_random_state():
                return task.measure(self.encoder, self.chosen_layers, step, self.threads)
        except CloserLookError as error:  # such as NaN, once a training has diverged
            if step == self._start_step:
                raise
            log.warning("step %d: task %s is not measured: %s", step, task.task.name, error)
            return []

    def _share(self, state: State) -> float:
        """The share of time that measurements took so far; NaN at the start."""
        return math.nan if state.global_step == self._start_step else self.budget.share

    def _write(self, measured: Iterable[Measured], state: State, seconds: float) -> None:
        """Append one line for each task and layer to the results file."""
        if self.results is None:
            return
        common = {
            "step": state.global_step,
            "epoch": state.epoch,
            "start_step": self._start_step,
            "seconds": round(seconds, 4),
            "share": self._share(state),
            "skipped": self.budget.skipped,
        }
        settings: dict[str, object] = {"every": self.every, "max_points": self.max_points, "max_share": self.max_share}
        settings |= {"seed": self.seed, "encoder": self.encoder.name, "version": __version__}
        tasks = {task.task.name: task for task in self.tasks}
        lines = [
            _json_line(common | _describe(tasks[layer.task], layer) | asdict(layer.geometry) | settings)
            for layer in measured
        ]
        try:
            self.results.parent.mkdir(parents=True, exist_ok=True)
            with self.results.open("a", encoding="utf-8") as stream:
                stream.write("".join(lines))
        except OSError as error:
            raise WorkError(f"results {self.results} cannot be written: {error.strerror or error}") from None

    def _log(self, measured: Iterable[Measured], state: State, control: Control, seconds: float) -> None:
        """Log to the Trainer's loggers if attached, else to the history; the Trainer still logs when it is due."""
        values = {
            f"geometry/{layer.task}/layer{layer.layer}/{name}": float(value)
            for layer in measured
            for name, value in asdict(layer.geometry).items()
            if name not in COUNTS
        }
        values |= {"geometry/seconds": seconds, "geometry/share": self._share(state)}
        values = {name: value for name, value in values.items() if math.isfinite(value)}
        if self.trainer is None:
            state.log_history.append({**values, "epoch": state.epoch, "step": state.global_step})
            return
        due = control.should_log
        self.trainer.log(values)
        control.should_log = self.trainer.control.should_log = due


def _describe(task: WatchedTask, layer: Measured) -> dict[str, object]:
    """What was measured, for a line of the results file, and the alarms: the names of the measures that fell."""
    return {
        "task": task.task.name,
        "split": task.split.name,
        "held_out_split": None if task.held_out is None else task.held_out.name,
        "pool": task.pool,
        "layer": layer.layer,
        "similarity_noise": task.noise(layer.layer),
        "alarms": [alarm.measure for alarm in layer.alarms],
    }


def find_encoder(model: torch.nn.Module, requested: torch.nn.Module | str | None = None) -> torch.nn.Module:
    """The encoder inside a model: the requested module or submodule, else the only model of transformers in it."""
    if isinstance(requested, str):
        try:
            return model.get_submodule(requested)
        except AttributeError:
            raise InputError(f"encoder {requested!r} requested; the model has no submodule of this name") from None
    if requested is not None:
        return requested
    if isinstance(model, PreTrainedModel) or hasattr(model, "get_base_model"):
        return _without_decoder(model)
    pretrained = [(name, part) for name, part in model.named_modules() if isinstance(part, PreTrainedModel)]
    outermost = [part for name, part in pretrained if not any(name.startswith(f"{other}.") for other, _ in pretrained)]
    if len(outermost) != 1:
        raise InputError(
            f"{len(outermost)} encoders found in {type(model).__name__}; name one, as GeometryCallback(encoder=…)"
        )
    return _without_decoder(outermost[0])


def _without_decoder(model: PreTrainedModel) -> torch.nn.Module:
    """The encoder of an encoder-decoder; any other model itself, without PEFT's wrapper."""
    bare = model.get_base_model() if hasattr(model, "get_base_model") else model
    encoder: torch.nn.Module = bare.get_encoder() if bare.config.is_encoder_decoder else bare
    return encoder


def _json_line(values: Mapping[str, object]) -> str:
    """The values as a line of JSON, with null for numbers that are not finite."""
    plain = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()
    }
    return json.dumps(plain) + "\n"

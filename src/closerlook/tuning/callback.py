"""`GeometryCallback`: geometry of the representations during any training with transformers' Trainer."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from closerlook.encoders.encoder import Encoder
from closerlook.encoders.pooling import choose_pool
from closerlook.errors import InputError, WorkError
from closerlook.geometry import LabelDistances
from closerlook.geometry.frame import text_array
from closerlook.representations.extract import choose_layers, load_tasks
from closerlook.tasks.task import Split
from closerlook.tuning.contexts import preserved_random_state
from closerlook.tuning.examples import Examples
from closerlook.tuning.measures import LayerGeometry, measure_layer
from closerlook.tuning.settings import Layers, TaskSource

if TYPE_CHECKING:
    import torch

    from closerlook.tuning.trainer import Arguments, Control, RunnableTrainer, State


class GeometryCallback(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Measures the geometry of a fixed set of examples at each layer, every few steps of any Trainer.

    For each layer it logs, as `geometry/layer2/clusters` and so on: the numbers of clusters and labels, whether the
    labels are linearly separable, conflicts (examples with the same vector as an example of another label), undecided
    merges, the mean minimum distance of the labels (absolute and in RMS radii), and the spatial similarity to the start
    of the training; and once for each measurement its time, as `geometry/seconds`. The callback does not change the
    training: the final weights are the same as without it.

    Call `attach` to add it to a Trainer and to log to the Trainer's loggers. If it is only passed in `callbacks=`, it
    writes to `state.log_history` and to the results file.

    task: a name, a path or a Task with the examples to measure. max_examples: if the split has more examples, texts
    are drawn in a random order (by `seed`) until this number is reached; of the last text, some examples may be
    missing. every: steps between two measurements; the start (before the first step) and the end of the training are
    measured as well. encoder: the encoder inside the model, or the name of its submodule; needed if the model contains
    several. tokenizer: by default the Trainer's processing_class. results: a file to which one line of JSON is appended
    for each layer and measurement. threads: for clustering; all cores by default.

    Cost (benchmarks/tuning.py: bert-tiny, toy-pos, 2,000 examples, 1 thread, steps of 70 ms): measuring the last layer
    takes 0.12 s, which adds 3% if done every 50 steps; measuring all three layers takes 0.6 s, 18%, most of it for
    layer 0, which is not separable. With larger encoders, both the steps and the measurement take longer, since the
    vectors are computed by the encoder; we measured bert-tiny only.

    >>> callback = GeometryCallback("toy-pos", every=50, layers="last", results="geometry.jsonl")
    >>> callback.attach(trainer)  # doctest: +SKIP
    """

    def __init__(
        self,
        task: TaskSource = "toy-pos",
        *,
        every: int = 100,
        split: str = "train",
        layers: Layers = "all",
        pool: str = "auto",
        max_examples: int = 2000,
        seed: int = 0,
        encoder: torch.nn.Module | str | None = None,
        tokenizer: PreTrainedTokenizerBase | None = None,
        window: int | None = None,
        results: str | Path | None = None,
        data: str | Path | None = None,
        threads: int | None = None,
    ) -> None:
        for name, value in (("every", every), ("max_examples", max_examples)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is {value!r}; expected a whole number, 1 or more")
        (self.task,) = load_tasks(task, data)
        self.split = subsample(self.task.split(split), max_examples, seed)
        self.every = every
        self.layers = layers
        self.pool = pool
        self.requested_encoder = encoder
        self.tokenizer = tokenizer
        self.window = window
        self.results = None if results is None else Path(results)
        if self.results is not None and self.results.is_dir():
            raise InputError(f"results {self.results} is a folder; expected a file, existing or new")
        self.threads = threads
        self.trainer: RunnableTrainer | None = None
        self.seconds = 0.0
        self._measured_step = -1
        self._start: dict[int, LabelDistances] = {}

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
            info = self.encoder.info
            self.chosen_layers = choose_layers(self.layers, info.layers, self.encoder.name)
            pool = choose_pool(self.pool, self.task.unit, info)
            self.examples = Examples(self.encoder, self.task.unit, self.split, pool)
        self._start = {}
        self._measure(state, control)

    def on_step_end(self, args: Arguments, state: State, control: Control, **rest: object) -> None:
        """Measure every few steps."""
        if state.is_world_process_zero and state.global_step % self.every == 0:
            self._measure(state, control)

    def on_train_end(self, args: Arguments, state: State, control: Control, **rest: object) -> None:
        """Measure for the last time."""
        if state.is_world_process_zero and self._measured_step != state.global_step:
            self._measure(state, control)

    def _measure(self, state: State, control: Control) -> None:
        start = time.perf_counter()
        labels = text_array(self.task.labels)[self.examples.y]
        geometry: dict[int, LayerGeometry] = {}
        with preserved_random_state():
            vectors = self.examples.vectors(self.encoder, self.chosen_layers)
        for layer, X in zip(self.chosen_layers, vectors, strict=True):
            geometry[layer], distances = measure_layer(X, labels, self._start.get(layer), self.threads)
            self._start.setdefault(layer, distances)
        self._measured_step = state.global_step
        seconds = time.perf_counter() - start
        self.seconds += seconds
        self._write(geometry, state, seconds)
        self._log(geometry, state, control, seconds)

    def _write(self, geometry: Mapping[int, LayerGeometry], state: State, seconds: float) -> None:
        """Append one line for each layer to the results file."""
        if self.results is None:
            return
        common = {
            "step": state.global_step,
            "epoch": state.epoch,
            "seconds": round(seconds, 4),
            "task": self.task.name,
            "split": self.split.name,
        }
        lines = [_json_line(common | {"layer": layer} | asdict(measured)) for layer, measured in geometry.items()]
        try:
            self.results.parent.mkdir(parents=True, exist_ok=True)
            with self.results.open("a", encoding="utf-8") as stream:
                stream.write("".join(lines))
        except OSError as error:
            raise WorkError(f"results {self.results} cannot be written: {error.strerror or error}") from None

    def _log(self, geometry: Mapping[int, LayerGeometry], state: State, control: Control, seconds: float) -> None:
        """Log to the Trainer's loggers if attached, else to the history; the Trainer still logs when it is due."""
        values = {
            f"geometry/layer{layer}/{name}": float(value)
            for layer, measured in geometry.items()
            for name, value in asdict(measured).items()
            if name != "n" and math.isfinite(value)
        }
        values["geometry/seconds"] = seconds
        if self.trainer is None:
            state.log_history.append({**values, "epoch": state.epoch, "step": state.global_step})
            return
        due = control.should_log
        self.trainer.log(values)
        control.should_log = self.trainer.control.should_log = due


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


def subsample(split: Split, max_examples: int, seed: int) -> Split:
    """The first max_examples examples of a split, if its texts are put in a random order given by the seed."""
    order = np.random.default_rng(seed).permutation(len(split.texts))
    rows = np.sort(np.argsort(order[split.sentence], kind="stable")[:max_examples])
    return Split(split.name, split.texts, split.sentence[rows], split.positions[rows], split.y[rows])


def _json_line(values: Mapping[str, object]) -> str:
    """The values as a line of JSON, with null for NaN."""
    plain = {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in values.items()}
    return json.dumps(plain) + "\n"

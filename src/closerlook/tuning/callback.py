"""Geometry inside a training of the user's own: a callback for transformers' Trainer."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel, TrainerCallback

from closerlook.encoders.encoder import Encoder
from closerlook.errors import InputError, WorkError
from closerlook.geometry import LabelDistances
from closerlook.representations.extract import choose_layers, choose_pool, load_tasks
from closerlook.tasks.task import Split, Task
from closerlook.tuning.examples import Examples
from closerlook.tuning.measures import LayerGeometry, measure_layer
from closerlook.tuning.surroundings import kept_randomness


class GeometryCallback(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Measures, every so many steps of any Trainer, the geometry of a fixed set of examples at each layer.

    Logged for each layer, as `geometry/layer2/clusters` and so on: clusters, labels, whether they are separable,
    conflicts, the mean minimum distance of a label (as it is and in RMS radii), the spatial similarity to the start.
    `attach` adds the callback to a Trainer and lets it log to the Trainer's loggers; merely given in `callbacks=`, it
    writes to `state.log_history` and `results` only. The training itself goes on as it would without it.

    task: a name, a path or a Task: the examples to look at, of which at most max_examples are taken, text by text in an
    order drawn from seed. every: steps between two looks; the start and the end are looked at too. encoder: the
    encoder inside the model, or the name of the attribute that holds it, where it is not `base_model` nor the only
    one there. tokenizer: the Trainer's processing_class unless given. results: a file to which one line of JSON is
    added for each layer and look. threads: of the clustering; all cores by default.

    Cost (benchmarks/tuning.py: bert-tiny, toy-pos, 2,000 examples, 1 thread, steps of 70 ms): a look at the last layer
    takes 0.12 s, so every 50 steps it adds 3%; one at all three layers 0.6 s, 18%, most of it for layer 0, which is not
    separable. With larger encoders steps take longer, a look at a layer hardly.

    >>> callback = GeometryCallback("toy-pos", every=50, layers="last", results="geometry.jsonl")
    >>> callback.attach(trainer)  # doctest: +SKIP
    """

    def __init__(
        self,
        task: str | Path | Task = "toy-pos",
        *,
        every: int = 100,
        split: str = "train",
        layers: str | int | Iterable[int] = "all",
        pool: str = "auto",
        max_examples: int = 2000,
        seed: int = 0,
        encoder: Any = None,
        tokenizer: Any = None,
        window: int | None = None,
        results: str | Path | None = None,
        data: str | Path | None = None,
        threads: int | None = None,
    ) -> None:
        for name, value in (("every", every), ("max_examples", max_examples)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is {value!r}; expected a whole number, 1 or more")
        (self.task,) = load_tasks(task, data)
        self.split = choose_examples(self.task.split(split), max_examples, seed)
        self.every = every
        self.layers = layers
        self.pool = pool
        self.given = encoder
        self.tokenizer = tokenizer
        self.window = window
        self.results = None if results is None else Path(results)
        if self.results is not None and self.results.is_dir():
            raise InputError(f"results {self.results} is a folder; expected a file, existing or new")
        self.threads = threads
        self.trainer: Any = None
        self.seconds = 0.0
        self._measured = -1
        self._start: dict[int, LabelDistances] = {}

    def attach(self, trainer: Any) -> GeometryCallback:
        """This callback, added to a Trainer and to its loggers."""
        self.trainer = trainer
        trainer.add_callback(self)
        return self

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """The examples found in the model's own subwords, and the first look."""
        if not state.is_world_process_zero:
            return
        tokenizer = rest.get("processing_class") if self.tokenizer is None else self.tokenizer
        if tokenizer is None:
            raise InputError("no tokenizer arrived; give GeometryCallback(tokenizer=…) or Trainer(processing_class=…)")
        with kept_randomness():
            found = find_encoder(rest["model"], self.given)
            self.encoder = Encoder.wrap(found, tokenizer, name=type(found).__name__, window=self.window)
            info = self.encoder.info
            self.chosen = choose_layers(self.layers, info.layers, self.encoder.name)
            pool = choose_pool(self.pool, self.task.unit, has_cls=info.has_cls)
            self.examples = Examples(self.encoder, self.task.unit, self.split, pool)
        self._start = {}
        self._look(state, control)

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """A look, if it is time."""
        if state.is_world_process_zero and state.global_step % self.every == 0:
            self._look(state, control)

    def on_train_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """The last look."""
        if state.is_world_process_zero and self._measured != state.global_step:
            self._look(state, control)

    def _look(self, state: Any, control: Any) -> None:
        start = time.perf_counter()
        labels = np.asarray(self.task.labels, dtype=np.str_)[self.examples.y]
        found: dict[int, LayerGeometry] = {}
        with kept_randomness():
            vectors = self.examples.vectors(self.encoder, self.chosen)
        for layer, X in zip(self.chosen, vectors, strict=True):
            found[layer], distances = measure_layer(X, labels, self._start.get(layer), self.threads)
            self._start.setdefault(layer, distances)
        self._measured = state.global_step
        seconds = time.perf_counter() - start
        self.seconds += seconds
        self._write(found, state, seconds)
        self._log(found, state, control, seconds)

    def _write(self, found: dict[int, LayerGeometry], state: Any, seconds: float) -> None:
        if self.results is None:
            return
        when = {"step": state.global_step, "epoch": state.epoch, "seconds": round(seconds, 4)}
        made = {"task": self.task.name, "split": self.split.name}
        lines = [_line(when | made | {"layer": layer} | asdict(geometry)) for layer, geometry in found.items()]
        try:
            self.results.parent.mkdir(parents=True, exist_ok=True)
            with self.results.open("a", encoding="utf-8") as stream:
                stream.write("".join(lines))
        except OSError as error:
            raise WorkError(f"results {self.results} cannot be written: {error.strerror or error}") from None

    def _log(self, found: dict[int, LayerGeometry], state: Any, control: Any, seconds: float) -> None:
        """To the Trainer's loggers where there is a Trainer; its own turn to log is left as it was."""
        values = {
            f"geometry/layer{layer}/{name}": float(value)
            for layer, geometry in found.items()
            for name, value in asdict(geometry).items()
            if name != "n" and math.isfinite(value)
        }
        values["geometry/seconds"] = seconds
        if self.trainer is None:
            state.log_history.append({**values, "epoch": state.epoch, "step": state.global_step})
            return
        due = control.should_log
        self.trainer.log(values)
        control.should_log = self.trainer.control.should_log = due


def find_encoder(model: Any, given: Any = None) -> Any:
    """The encoder inside a model: the one given, by itself or by name, else the only one of transformers' in there."""
    if isinstance(given, str):
        try:
            return model.get_submodule(given)
        except AttributeError:
            raise InputError(f"encoder {given!r} requested; the model has no such part") from None
    if given is not None:
        return given
    if isinstance(model, PreTrainedModel) or hasattr(model, "get_base_model"):
        return _encoder_half(model)
    inside = [(name, part) for name, part in model.named_modules() if isinstance(part, PreTrainedModel)]
    outermost = [part for name, part in inside if not any(name.startswith(f"{other}.") for other, _ in inside)]
    if len(outermost) != 1:
        raise InputError(
            f"{len(outermost)} encoders found in {type(model).__name__}; name one, as GeometryCallback(encoder=…)"
        )
    return _encoder_half(outermost[0])


def _encoder_half(model: Any) -> Any:
    """Of an encoder-decoder, the encoder; any other model as it is."""
    bare = model.get_base_model() if hasattr(model, "get_base_model") else model  # PEFT's own wrapping
    return bare.get_encoder() if bare.config.is_encoder_decoder else bare


def choose_examples(split: Split, most: int, seed: int) -> Split:
    """At most so many of a split's examples: whole texts, in an order drawn from the seed, until it is full."""
    order = np.random.default_rng(seed).permutation(len(split.texts))
    rows = np.sort(np.argsort(order[split.sentence], kind="stable")[:most])
    return Split(split.name, split.texts, split.sentence[rows], split.positions[rows], split.y[rows])


def _line(values: dict[str, Any]) -> str:
    plain = {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in values.items()}
    return json.dumps(plain) + "\n"

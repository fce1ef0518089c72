"""The settings of a fine-tuning run: their defaults, their checks, and the values that depend on the encoder's size."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from closerlook.encoders.source import EncoderInfo
from closerlook.encoders.template import parse_template
from closerlook.errors import InputError
from closerlook.representations.extract import choose_layers
from closerlook.tasks.task import Task
from closerlook.tuning.schedule import Snapshots, read_snapshots
from closerlook.tuning.trainable import ALL, BIASES, EXPECTED, HEAD, is_trainable_part

BATCH_SIZE = 32
LORA_RANK = 8
ADDED: dict[str, object] = {"template": None, "dtype": "float32"}
"""Settings that older results lack, with their defaults."""

Layers = str | int | Iterable[int]
"""`all`, `last`, a layer number, several numbers, or a string such as `0,2-4`; layer 0 is the embedding output."""

TaskSource = str | Path | Task
"""A task, or the name or path from which it is loaded."""


@dataclass(frozen=True)
class SizeDefaults:
    """The default epochs and learning rates for encoders with fewer than `below` parameters."""

    below: float
    epochs: float
    learning_rate: float
    lora_learning_rate: float


DEFAULTS_BY_SIZE = (
    SizeDefaults(50e6, epochs=10, learning_rate=3e-4, lora_learning_rate=3e-3),  # BERT tiny, mini, small, medium
    SizeDefaults(200e6, epochs=10, learning_rate=5e-5, lora_learning_rate=5e-4),  # base
    SizeDefaults(math.inf, epochs=5, learning_rate=2e-5, lora_learning_rate=2e-4),  # large and beyond
)
"""Zhou & Srikumar fine-tune for 10 epochs; rates as in Devlin et al. and in the model cards of the small BERTs."""

RESERVED_ARGUMENTS = {
    "learning_rate": "learning_rate",
    "num_train_epochs": "epochs",
    "max_steps": "epochs",
    "per_device_train_batch_size": "batch_size",
    "warmup_steps": "warmup",
    "warmup_ratio": "warmup",
    "weight_decay": "weight_decay",
    "seed": "seed",
    "data_seed": "seed",
    "output_dir": "out",
    "use_cpu": "device",
    "full_determinism": "deterministic",
}
"""TrainingArguments that `tune` sets from its own settings and parameters: the name to use instead of each."""

FIXED_ARGUMENTS = (
    "disable_tqdm",
    "do_eval",
    "eval_strategy",
    "ignore_data_skip",
    "load_best_model_at_end",
    "push_to_hub",
    "remove_unused_columns",
    "restore_callback_states_from_checkpoint",
    "save_strategy",
)
"""TrainingArguments that must keep the value that `tune` gives them: taking snapshots and resuming rely on it."""


@dataclass(frozen=True)
class TuningSettings:
    """Everything that the result of a fine-tuning run depends on, apart from the encoder and the task.

    seed: for the weights of the head, the order of the texts, and dropout.
    epochs, learning_rate, batch_size: None takes the default for the encoder's size.
    warmup: the share of the steps in which the learning rate rises from zero. weight_decay: the weight decay of AdamW.
    early_stopping: stop after this many epochs without a lower loss on the dev split, or, if the task has no dev
    split, on a tenth of the training texts, which are then not trained on.
    lora: train only low-rank adapters of this rank; True means rank 8. trained: the encoder's weights that are
    trained: 'all', 'head' (none), 'biases', or 'last k' (layers).
    deterministic: produce the same weights every time on a GPU as well, at some cost in speed.
    trainer_arguments: further TrainingArguments of transformers, such as {"bf16": True}.
    pool: how subword vectors become one vector; window: tokens read at a time; template: a text around every text; see
    `extract`. dtype: the precision of the encoder's weights: float32, or bfloat16 with lora.
    snapshots: 'log' (steps 0, 1, 2, 4 …), 'epoch', 'every: k', a number of snapshots, or a list of steps; the first
    and the last step are always included.
    probe: the tasks whose vectors are stored at each snapshot; None means the task of the fine-tuning. After loading:
    the content hash of each task, by name.
    splits: the splits whose vectors are stored. layers: the layers stored at the first and the last snapshot.
    snapshot_layers: the layers stored at the snapshots in between; None means the same as layers.
    save_weights: store the weights at each snapshot as well.

    >>> TuningSettings(epochs=3, snapshots="every:5").snapshots
    'every: 5'
    """

    seed: int = 0
    epochs: float | None = None
    learning_rate: float | None = None
    batch_size: int | None = None
    warmup: float = 0.1
    weight_decay: float = 0.01
    pool: str = "auto"
    snapshots: Snapshots = "log"
    probe: TaskSource | Sequence[TaskSource] | Mapping[str, str] | None = None
    splits: str | Sequence[str] = "all"
    layers: Layers = "all"
    snapshot_layers: Layers | None = None
    window: int | None = None
    template: str | None = None
    dtype: str = "float32"
    save_weights: bool = False
    early_stopping: int | None = None
    lora: bool | int | None = None
    trained: str = ALL
    deterministic: bool = True
    trainer_arguments: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for setting in fields(self):
            check_setting(setting.name, getattr(self, setting.name))
        if self.lora and self.trained != ALL:
            raise InputError(f"lora and trained={self.trained!r} given; expected one of them")
        if self.dtype != "float32" and not self.lora:
            raise InputError(f"dtype {self.dtype} requested without lora; expected lora as well: AdamW needs float32")
        parse_template(self.template)
        plain = {
            "epochs": None if self.epochs is None else float(self.epochs),
            "learning_rate": None if self.learning_rate is None else float(self.learning_rate),
            "warmup": float(self.warmup),
            "weight_decay": float(self.weight_decay),
            "snapshots": read_snapshots(self.snapshots),
            "splits": _plain_splits(self.splits),
            "layers": _plain_layers(self.layers),
            "snapshot_layers": None if self.snapshot_layers is None else _plain_layers(self.snapshot_layers),
            "lora": LORA_RANK if self.lora is True else self.lora or None,
            "trainer_arguments": dict(self.trainer_arguments),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    def change(self, **changes: Any) -> TuningSettings:
        """The same settings with some of them replaced.

        >>> TuningSettings().change(epochs=3).epochs
        3.0
        """
        names = [setting.name for setting in fields(self)]
        for name in changes:
            if name not in names:
                similar = get_close_matches(name, names, n=1)
                hint = f"; did you mean {similar[0]}?" if similar else f"; expected one of {', '.join(names)}"
                raise InputError(f"setting {name!r} is unknown{hint}")
        return replace(self, **changes)

    def resolve(self, info: EncoderInfo, encoder: str) -> TuningSettings:
        """The same settings with every default filled in that depends on the encoder: its size and its layers.

        encoder: its name, for error messages.
        """
        usual = next(size for size in DEFAULTS_BY_SIZE if info.parameters < size.below)
        layers = choose_layers(self.layers, info.layers, encoder)
        between = self.snapshot_layers
        return replace(
            self,
            epochs=self.epochs or usual.epochs,
            learning_rate=self.learning_rate or (usual.lora_learning_rate if self._trains_few else usual.learning_rate),
            batch_size=self.batch_size or BATCH_SIZE,
            layers=layers,
            snapshot_layers=layers if between is None else choose_layers(between, info.layers, encoder),
        )

    @property
    def _trains_few(self) -> bool:
        """Whether only few weights are trained, which takes a larger learning rate."""
        return bool(self.lora) or self.trained in (HEAD, BIASES)

    @property
    def epochs_and_batch_size(self) -> tuple[float, int]:
        """Both numbers, of settings that are resolved."""
        if self.epochs is None or self.batch_size is None:
            raise ValueError("epochs or batch_size is None; call resolve first, which fills in the encoder's defaults")
        return self.epochs, self.batch_size

    def to_dict(self) -> dict[str, object]:
        """The settings as plain values for JSON; a probed task that is a Task or a Path becomes its name."""
        values = {setting.name: getattr(self, setting.name) for setting in fields(self)}
        return deepcopy(values | {"probe": _plain_probe(self.probe)})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TuningSettings:
        """The settings that `to_dict` returned; older files call `snapshot_layers` `between`, and lack `ADDED`."""
        current = {**ADDED, **values}
        current |= {"snapshot_layers": values["between"]} if "between" in values else {}
        return cls(**{setting.name: current[setting.name] for setting in fields(cls)})

    def key_content(self) -> dict[str, object]:
        """What resolved settings contribute to the key of a study's tune cell.

        Probed tasks enter by content, not by name. `snapshot_layers` enters as `between`, its former name: results of
        studies that were run under that name stay valid. So do results from before `ADDED`.
        """
        values = self.to_dict()
        values["between"] = values.pop("snapshot_layers")
        for name in [name for name, default in ADDED.items() if values[name] == default]:
            del values[name]
        if not isinstance(self.probe, Mapping):
            raise ValueError("probe holds no content hashes; the tasks must be loaded before a key is computed")
        return values | {"probe": sorted(self.probe.values())}


def check_setting(name: str, value: object) -> None:
    """Raise InputError if no fine-tuning run can use this value of the setting called `name`."""
    if name in _RULES:
        expected, is_valid = _RULES[name]
        if not is_valid(value):
            raise InputError(f"{name} is {value!r}; expected {expected}")
    elif name == "trainer_arguments":
        _check_trainer_arguments(value)


def _check_trainer_arguments(arguments: object) -> None:
    if not isinstance(arguments, Mapping):
        raise InputError(f"trainer_arguments is {arguments!r}; expected names and values of TrainingArguments")
    try:
        json.dumps(dict(arguments))
    except (TypeError, ValueError) as error:
        raise InputError(f"trainer arguments cannot be kept as JSON ({error}); expected plain values") from None
    for name in arguments:
        if name in RESERVED_ARGUMENTS:
            raise InputError(f"trainer argument {name} is set by tune; give it as {RESERVED_ARGUMENTS[name]} instead")
        if name in FIXED_ARGUMENTS:
            raise InputError(f"trainer argument {name} cannot be set; fine-tuning with snapshots fixes it")


def _is_number(value: object, least: float, below: float = math.inf) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value < below


def _is_positive(value: object) -> bool:
    return value is None or (_is_number(value, 0) and value != 0)


def _is_whole(value: object, least: int, below: float = math.inf) -> bool:
    return isinstance(value, int) and _is_number(value, least, below)


def _is_count(value: object) -> bool:
    return value is None or _is_whole(value, 1)


_RULES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "seed": (f"a whole number from 0 to {(1 << 32) - 1}", lambda value: _is_whole(value, 0, 1 << 32)),
    "epochs": ("a number above 0", _is_positive),
    "learning_rate": ("a number above 0", _is_positive),
    "batch_size": ("a whole number, 1 or more", _is_count),
    "early_stopping": ("a whole number, 1 or more", _is_count),
    "warmup": ("a share of the steps, from 0 to below 1", lambda value: _is_number(value, 0, 1)),
    "weight_decay": ("a number, 0 or more", lambda value: _is_number(value, 0)),
    "dtype": ("float32, or bfloat16 with lora", lambda value: value in ("float32", "bfloat16")),
    "lora": ("True or a rank, 1 or more", lambda value: isinstance(value, bool) or _is_count(value)),
    "trained": (EXPECTED, is_trainable_part),
}
"""For each setting: its valid values, as a text for error messages and as a function that checks a value."""


def _plain_splits(splits: str | Sequence[str]) -> str | list[str]:
    if isinstance(splits, str):
        return "all" if splits == "all" else [splits]
    return list(splits)


def _plain_layers(layers: Layers) -> str | int | list[int]:
    return layers if isinstance(layers, str) or not isinstance(layers, Iterable) else list(layers)


def _plain_probe(
    probe: TaskSource | Sequence[TaskSource] | Mapping[str, str] | None,
) -> str | list[str] | dict[str, str] | None:
    if probe is None:
        return None
    if isinstance(probe, Mapping):
        return dict(probe)
    if isinstance(probe, str | Path | Task):
        return _task_name(probe)
    return [_task_name(task) for task in probe]


def _task_name(task: TaskSource) -> str:
    return task.name if isinstance(task, Task) else str(task)

"""How a fine-tuning is done: every choice spelled out, defaults by the encoder's size, checked before any work."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from closerlook.errors import InputError
from closerlook.tuning.schedule import Snapshots, read_snapshots

BATCH_SIZE = 32
WARMUP = 0.1
WEIGHT_DECAY = 0.01
LORA_RANK = 8


@dataclass(frozen=True)
class Usual:
    """What is usual for encoders of fewer than so many parameters."""

    below: float
    epochs: float
    learning_rate: float
    lora_learning_rate: float


SIZES = (
    Usual(50e6, epochs=10, learning_rate=3e-4, lora_learning_rate=3e-3),  # BERT tiny, mini, small, medium
    Usual(200e6, epochs=10, learning_rate=5e-5, lora_learning_rate=5e-4),  # base
    Usual(math.inf, epochs=5, learning_rate=2e-5, lora_learning_rate=2e-4),  # large and beyond
)
"""Zhou & Srikumar fine-tune for 10 epochs; rates as in Devlin et al. and in the model cards of the small BERTs."""

OURS = {
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
"""Training arguments that have a parameter of their own in `tune`."""

FIXED = (
    "disable_tqdm",
    "do_eval",
    "eval_strategy",
    "load_best_model_at_end",
    "push_to_hub",
    "remove_unused_columns",
    "save_strategy",
)
"""Training arguments on which fine-tuning with snapshots relies."""


@dataclass(frozen=True)
class TuningSettings:
    """Every choice that the result of a fine-tuning depends on, the defaults filled in.

    probe: the content hash of each task to extract, by name. pool: as asked for, since it may differ by task.
    layers: kept at the start and the end; between: at the other snapshots.
    """

    seed: int
    epochs: float
    learning_rate: float
    batch_size: int
    warmup: float
    weight_decay: float
    pool: str
    snapshots: str | int | list[int]
    probe: dict[str, str]
    splits: str | list[str]
    layers: list[int]
    between: list[int]
    window: int | None
    save_weights: bool
    early_stopping: int | None
    lora: int | None
    deterministic: bool
    trainer_arguments: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TuningSettings:
        """The settings that `to_dict` wrote."""
        return cls(**{field.name: values[field.name] for field in fields(cls)})


@dataclass(frozen=True)
class Asked:
    """The choices as they were asked for; what is None depends on the encoder's size."""

    seed: int
    epochs: float | None
    learning_rate: float | None
    batch_size: int | None
    warmup: float
    weight_decay: float
    snapshots: Snapshots
    early_stopping: int | None
    lora: bool | int | None
    trainer_arguments: dict[str, Any]

    def __post_init__(self) -> None:
        self._check_numbers()
        try:
            json.dumps(self.trainer_arguments)
        except (TypeError, ValueError) as error:
            raise InputError(f"trainer arguments cannot be kept as JSON ({error}); expected plain values") from None
        for argument in self.trainer_arguments:
            if argument in OURS:
                raise InputError(f"trainer argument {argument} arrived; give it as {OURS[argument]} instead")
            if argument in FIXED:
                raise InputError(f"trainer argument {argument} arrived; fine-tuning with snapshots fixes it")

    def _check_numbers(self) -> None:
        for name, value in (("epochs", self.epochs), ("learning_rate", self.learning_rate)):
            if value is not None and not (_is_number(value) and 0 < value < math.inf):
                raise InputError(f"{name} is {value!r}; expected a number above 0")
        for name, whole in (("batch_size", self.batch_size), ("early_stopping", self.early_stopping)):
            if whole is not None and (not _is_whole(whole) or whole < 1):
                raise InputError(f"{name} is {whole!r}; expected a whole number, 1 or more")
        if not _is_whole(self.seed) or not 0 <= self.seed < 1 << 32:
            raise InputError(f"seed is {self.seed!r}; expected a whole number from 0 to {(1 << 32) - 1}")
        if not _is_number(self.warmup) or not 0 <= self.warmup < 1:
            raise InputError(f"warmup is {self.warmup!r}; expected a share of the steps, from 0 to below 1")
        if not _is_number(self.weight_decay) or not 0 <= self.weight_decay < math.inf:
            raise InputError(f"weight_decay is {self.weight_decay!r}; expected a number, 0 or more")
        if self.lora is not None and not isinstance(self.lora, bool) and (not _is_whole(self.lora) or self.lora < 1):
            raise InputError(f"lora is {self.lora!r}; expected True or a rank, 1 or more")
        read_snapshots(self.snapshots)

    @property
    def rank(self) -> int | None:
        """Of the low-rank adapters; None where the whole encoder is tuned."""
        if self.lora is None or self.lora is False:
            return None
        return LORA_RANK if self.lora is True else int(self.lora)

    def fill(self, parameters: int, **rest: Any) -> TuningSettings:
        """The settings for an encoder of that many parameters. rest: those that need no filling in."""
        usual = next(size for size in SIZES if parameters < size.below)
        rate = usual.learning_rate if self.rank is None else usual.lora_learning_rate
        return TuningSettings(
            seed=int(self.seed),
            epochs=float(self.epochs or usual.epochs),
            learning_rate=float(self.learning_rate or rate),
            batch_size=int(self.batch_size or BATCH_SIZE),
            warmup=float(self.warmup),
            weight_decay=float(self.weight_decay),
            snapshots=read_snapshots(self.snapshots),
            early_stopping=self.early_stopping,
            lora=self.rank,
            trainer_arguments=dict(self.trainer_arguments),
            **rest,
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

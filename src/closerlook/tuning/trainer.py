"""Types of the parts of transformers' Trainer that fine-tuning and `GeometryCallback` use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch


class Stateful(Protocol):
    """An optimizer, a schedule of learning rates, or a scaler of gradients."""

    def state_dict(self) -> dict[str, object]:
        """Its state."""


class Accelerator(Protocol):
    """The Trainer's accelerator. scaler: scales the gradients of a training in float16."""

    scaler: Stateful | None


class State(Protocol):
    """How far a training has come (TrainerState)."""

    global_step: int
    max_steps: int
    epoch: float | None
    is_world_process_zero: bool
    log_history: list[dict[str, float | None]]

    def save_to_json(self, json_path: str) -> None:
        """Write the state to a file."""


class Control(Protocol):
    """What the Trainer does next (TrainerControl); callbacks may change it."""

    should_log: bool
    should_training_stop: bool


class Arguments(Protocol):
    """The settings of a Trainer (TrainingArguments)."""

    @property
    def device(self) -> torch.device:
        """The device of this process."""

    @property
    def world_size(self) -> int:
        """The number of processes."""

    @property
    def process_index(self) -> int:
        """The number of this process."""


class Callback(Protocol):
    """A TrainerCallback."""

    def on_step_end(self, args: Arguments, state: State, control: Control, **rest: object) -> None:
        """Called after each step of the optimiser."""


class RunnableTrainer(Protocol):
    """A Trainer."""

    control: Control
    args: Arguments
    accelerator: Accelerator

    def train(self, resume_from_checkpoint: str | None = None) -> object:
        """Run the whole training, or continue it from the checkpoint in a folder."""

    def log(self, logs: dict[str, float]) -> None:
        """Send values to all loggers."""

    def add_callback(self, callback: Callback) -> None:
        """Call this callback during the training as well."""

    def remove_callback(self, callback: type[Callback]) -> None:
        """Stop calling callbacks of this class."""

"""What a fine-tuning leaves: its settings and snapshots as JSON, and its vectors in the store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from closerlook.encoders.source import EncoderInfo
from closerlook.errors import InputError
from closerlook.representations.atomic import atomic_write
from closerlook.representations.extract import fetch_spaces
from closerlook.representations.space import Provenance, Space
from closerlook.representations.store import Store
from closerlook.tasks import load_task
from closerlook.tasks.catalogue import CATALOGUE
from closerlook.tasks.task import Task
from closerlook.tuning.settings import TuningSettings

FILE = "tuned.json"
DTYPE = "float32"
"""What encoders are tuned and read in; mixed precision is the Trainer's, and ends where its steps end."""


@dataclass(frozen=True)
class Snapshot:
    """The encoder at one step. fingerprint: of its weights, by which its vectors lie in the store.

    loss, accuracy: of the linear head, without dropout, on each split of the tuned task. weights: the folder they were
    saved in, relative to the run's own, if they were.
    """

    step: int
    epoch: float
    fingerprint: str
    loss: dict[str, float]
    accuracy: dict[str, float]
    weights: str | None = None


@dataclass(frozen=True)
class TuningResult:
    """A finished fine-tuning.

    base: fingerprint of the encoder it started from. parameters: how many the encoder has. steps: how many were made.
    seconds: all told; device: where it was done.
    """

    encoder: str
    base: str
    info: EncoderInfo
    parameters: int
    task: str
    task_hash: str
    settings: TuningSettings
    snapshots: tuple[Snapshot, ...]
    steps: int
    seconds: float
    device: str
    versions: dict[str, str]

    @property
    def seed(self) -> int:
        """Of the head, the order of the texts, and dropout."""
        return self.settings.seed

    def layers(self, snapshot: Snapshot) -> list[int]:
        """The layers that were kept at a snapshot."""
        ends = snapshot.step in (self.snapshots[0].step, self.snapshots[-1].step)
        return self.settings.layers if ends else self.settings.between

    def snapshot(self, step: int) -> Snapshot:
        """The snapshot at that step; -1 is the last."""
        found = self.snapshots[-1] if step == -1 else next((one for one in self.snapshots if one.step == step), None)
        if found is None:
            steps = ", ".join(str(one.step) for one in self.snapshots)
            raise InputError(f"step {step} requested; there are snapshots at {steps}")
        return found

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TuningResult:
        """The run that `to_dict` wrote."""
        known = {field.name: values[field.name] for field in fields(cls)}
        known["info"] = EncoderInfo(**values["info"])
        known["settings"] = TuningSettings.from_dict(values["settings"])
        known["snapshots"] = tuple(Snapshot(**one) for one in values["snapshots"])
        return cls(**known)

    def save(self, folder: Path) -> None:
        """Written as `tuned.json` into that folder, whole or not at all."""
        with atomic_write(folder / FILE) as stream:
            stream.write(json.dumps(self.to_dict(), indent=1, ensure_ascii=False).encode() + b"\n")

    @classmethod
    def load(cls, folder: str | Path) -> TuningResult:
        """The run that was finished in that folder."""
        file = Path(folder) / FILE
        try:
            return cls.from_dict(json.loads(file.read_bytes()))
        except FileNotFoundError:
            raise InputError(f"{folder} holds no {FILE}; expected the folder of a finished fine-tuning") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{file} cannot be read ({type(error).__name__}: {error}); move it away and tune again"
            ) from None


def snapshot_spaces(
    tuned: TuningResult | str | Path,
    step: int | Snapshot = -1,
    task: str | Path | Task | Sequence[str | Path | Task] | None = None,
    *,
    splits: str | Sequence[str] = "train",
    layers: str | int | Iterable[int] | None = None,
    data: str | Path | None = None,
    store: Store | str | Path | None = None,
) -> tuple[Space, ...]:
    """The spaces of a snapshot, from the store, without a model; in order of task, split and layer.

    tuned: a run or its folder. step: of a snapshot, or it itself; -1 is the last. task: the tuned one unless said
    otherwise; a Task that came from elsewhere than the catalogue must be given. layers: those kept at that snapshot.
    """
    run = tuned if isinstance(tuned, TuningResult) else TuningResult.load(tuned)
    if task is None:
        try:
            task = load_task(run.task, data)
        except InputError:
            if run.task in CATALOGUE:
                raise
            raise InputError(
                f"the fine-tuning was on task {run.task!r}, which is no name of the catalogue and no file here; pass "
                "task=, the file or the Task it was tuned on"
            ) from None
    snapshot = step if isinstance(step, Snapshot) else run.snapshot(step)
    known = Provenance(
        encoder=run.encoder,
        weights=snapshot.fingerprint,
        checkpoint=checkpoint(run.task, run.seed, snapshot.step),
        dtype=DTYPE,
    )
    return fetch_spaces(
        known,
        run.info,
        task,
        splits=splits,
        layers=run.layers(snapshot) if layers is None else layers,
        pool=run.settings.pool,
        data=data,
        store=store,
    )


def checkpoint(task: str, seed: int, step: int) -> str:
    """How a snapshot is called in a space's provenance."""
    return f"tuned on {task}, seed {seed}, step {step}"

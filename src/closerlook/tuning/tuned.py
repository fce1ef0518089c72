"""The result of a fine-tuning run: settings and snapshots in `tuned.json`, vectors in the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.encoders.source import EncoderInfo
from closerlook.errors import DamagedFileError, InputError
from closerlook.notebook import html
from closerlook.representations.checked_json import read_checked, write_checked
from closerlook.representations.extract import choose_layers, fetch_spaces
from closerlook.representations.space import Provenance
from closerlook.representations.spaces import Spaces
from closerlook.representations.store import Store
from closerlook.tasks import load_task
from closerlook.tasks.catalogue import CATALOGUE
from closerlook.tasks.task import Task
from closerlook.tuning.settings import Layers, TaskSource, TuningSettings

if TYPE_CHECKING:
    import pandas as pd

FILE = "tuned.json"


@dataclass(frozen=True)
class Snapshot:
    """The encoder at one step of a fine-tuning run.

    fingerprint: the hash of its weights; its vectors are in the store under this fingerprint.
    loss, accuracy: of the linear head, without dropout, for each split of the fine-tuning's task.
    nc3: NC3 with the head, on train (see `geometry.self_duality`); None at step 0, where the head is random.
    weights: the folder with its saved weights, relative to the run's folder; None if they were not saved.

    >>> from closerlook import tune
    >>> run = tune("bert-tiny", "toy-question", epochs=1, snapshots=2, layers="last")
    >>> snapshot = run.snapshot(-1)
    >>> snapshot.step, snapshot.epoch, sorted(snapshot.accuracy)
    (12, 1.0, ['test', 'train'])
    """

    step: int
    epoch: float
    fingerprint: str
    loss: dict[str, float]
    accuracy: dict[str, float]
    weights: str | None = None
    nc3: float | None = None


@dataclass(frozen=True)
class TuningResult:
    """A finished fine-tuning run.

    base: the fingerprint of the pretrained encoder. parameters: the number of its parameters. settings: resolved, with
    all defaults filled in. steps: the number of optimiser steps. seconds: the total time. device: where it ran.

    >>> from closerlook import tune
    >>> run = tune("bert-tiny", "toy-question", epochs=1, snapshots=2, layers="last", out="run")
    >>> run
    TuningResult(bert-tiny on toy-question, seed 0: 12 steps, 2 snapshots)
    >>> TuningResult.load("run").snapshots == run.snapshots
    True
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

    def __repr__(self) -> str:
        return (
            f"TuningResult({self.encoder} on {self.task}, seed {self.seed}: {self.steps} steps, "
            f"{len(self.snapshots)} snapshots)"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row for each snapshot and split: step, epoch, split, and the loss and accuracy of the linear head."""
        import pandas as pd

        return pd.DataFrame(
            [
                (one.step, one.epoch, split, one.loss[split], one.accuracy[split])
                for one in self.snapshots
                for split in one.accuracy
            ],
            columns=["step", "epoch", "split", "loss", "accuracy"],
        )

    def _repr_html_(self) -> str:
        return html(repr(self), self.to_frame())

    @property
    def seed(self) -> int:
        """The seed for the weights of the head, the order of the texts, and dropout."""
        return self.settings.seed

    def layers(self, snapshot: Snapshot) -> list[int]:
        """The layers whose vectors were stored at a snapshot."""
        is_end = snapshot.step in (self.snapshots[0].step, self.snapshots[-1].step)
        between = self.settings.snapshot_layers
        layers = self.settings.layers if is_end or between is None else between
        return choose_layers(layers, self.info.layers, self.encoder)

    def snapshot(self, step: int) -> Snapshot:
        """The snapshot at this step; -1 is the last one."""
        if step == -1:
            return self.snapshots[-1]
        for snapshot in self.snapshots:
            if snapshot.step == step:
                return snapshot
        steps = ", ".join(str(snapshot.step) for snapshot in self.snapshots)
        raise InputError(f"step {step} requested; there are snapshots at {steps}")

    def to_dict(self) -> dict[str, object]:
        """The fields as plain values, for JSON."""
        return asdict(self) | {"settings": self.settings.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TuningResult:
        """The run that `to_dict` returned."""
        known = {field.name: values[field.name] for field in fields(cls)}
        known["info"] = EncoderInfo(**values["info"])
        known["settings"] = TuningSettings.from_dict(values["settings"])
        known["snapshots"] = tuple(Snapshot(**snapshot) for snapshot in values["snapshots"])
        return cls(**known)

    def save(self, folder: Path) -> None:
        """Write `tuned.json` into the folder, completely or not at all."""
        write_checked(folder / FILE, self.to_dict(), indent=1)

    @classmethod
    def load(cls, folder: str | Path) -> TuningResult:
        """The finished run in a folder; a damaged file is an error. Runs of earlier versions have no checksum."""
        file = Path(folder) / FILE
        try:
            return cls.from_dict(read_checked(file, required=False))
        except FileNotFoundError:
            raise InputError(f"{folder} contains no {FILE}; expected the folder of a finished fine-tuning") from None
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
        except DamagedFileError as error:
            raise DamagedFileError(f"{error}; move it away and tune again") from None
        except (ValueError, KeyError, TypeError, AttributeError, InputError) as error:
            raise DamagedFileError(
                f"{file} cannot be read ({type(error).__name__}: {error}); move it away and tune again"
            ) from None


def snapshot_spaces(
    tuned: TuningResult | str | Path,
    step: int | Snapshot = -1,
    task: TaskSource | Sequence[TaskSource] | None = None,
    *,
    splits: str | Sequence[str] = "train",
    layers: Layers | None = None,
    data: str | Path | None = None,
    store: Store | str | Path | None = None,
) -> Spaces:
    """The spaces of a snapshot, read from the store without loading a model; in order of task, split and layer.

    tuned: a run or its folder. step: the step of a snapshot, or the snapshot itself; -1: the last one.
    task: by default the task of the fine-tuning; must be given if that task is neither in the catalogue nor a file.
    splits: one, several, or 'all'. layers: by default all that were stored at the snapshot.

    >>> from closerlook import tune
    >>> run = tune("bert-tiny", "toy-question", epochs=1, snapshots=2, layers="last")
    >>> snapshot_spaces(run, splits=["train", "test"])["test"]
    Space(bert-tiny (tuned on toy-question, seed 0, step 12) · toy-question/test · layer 2 · cls: 86 × 128, 20 labels)
    """
    run = tuned if isinstance(tuned, TuningResult) else TuningResult.load(tuned)
    snapshot = step if isinstance(step, Snapshot) else run.snapshot(step)
    provenance = Provenance(
        encoder=run.encoder,
        weights=snapshot.fingerprint,
        checkpoint=checkpoint_name(run.task, run.seed, snapshot.step),
        dtype=run.settings.dtype,
        template=run.settings.template,
    )
    return fetch_spaces(
        provenance,
        run.info,
        _load_tuned_task(run, data) if task is None else task,
        splits=splits,
        layers=run.layers(snapshot) if layers is None else layers,
        pool=run.settings.pool,
        data=data,
        store=store,
    )


def _load_tuned_task(run: TuningResult, data: str | Path | None) -> Task:
    """The task that a run was fine-tuned on, found by its name."""
    try:
        return load_task(run.task, data)
    except InputError:
        if run.task in CATALOGUE:
            raise
        raise InputError(
            f"the fine-tuning was on task {run.task!r}, which is not in the catalogue and not a file here; pass "
            "task=, the file or the Task of the fine-tuning"
        ) from None


def checkpoint_name(task: str, seed: int, step: int) -> str:
    """The name of a snapshot in the provenance of its spaces."""
    return f"tuned on {task}, seed {seed}, step {step}"

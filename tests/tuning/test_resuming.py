"""An interrupted fine-tuning continues from its saved state and ends with the same bits; a damaged state is ignored."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from filelock import FileLock

from closerlook.encoders.encoder import Encoder
from closerlook.encoders.source import EMBEDDED
from closerlook.errors import InputError, WorkError
from closerlook.representations.store import Store
from closerlook.tasks.task import Task
from closerlook.tuning import TuningResult, resuming, snapshot_spaces, tune
from closerlook.tuning.existing import read_run
from closerlook.tuning.growing import checkpoint_folders
from closerlook.tuning.resuming import INDEX
from closerlook.tuning.weights import remove_unfinished, save_weights
from tests.tuning.tasks import small

SHORT: dict[str, Any] = {"epochs": 3, "batch_size": 8, "learning_rate": 1e-3, "layers": "last"}
"""Fifteen steps of eight texts, five in an epoch."""


@pytest.fixture(autouse=True)
def every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save the state after every step."""
    monkeypatch.setattr(resuming, "SECONDS", 0.0)
    monkeypatch.setattr(resuming, "SHARE", 1e9)


def without_time(run: TuningResult) -> TuningResult:
    return replace(run, seconds=0.0)


def interrupted(step: int, task: Task, **options: Any) -> None:
    """Fine-tune, and stop after that step, before its state is saved."""

    def progress(done: int, total: int) -> None:
        if done == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(EMBEDDED, task, progress=progress, **options)


def state_folder(store: Path) -> Path:
    (folder,) = [path for path in (store / "work").glob("tune-*") if path.is_dir()]
    return folder


def steps_trained(task: Task, **options: Any) -> tuple[TuningResult, list[int]]:
    """A run, and the steps that were trained in this call."""
    seen: list[int] = []
    return tune(EMBEDDED, task, progress=lambda done, total: seen.append(done), **options), seen


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[TuningResult, Path]:
    """The run without an interruption, and its store."""
    store = tmp_path_factory.mktemp("whole")
    return tune(EMBEDDED, small(), store=store, **SHORT), store


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a run that was interrupted in step 9; tests take a copy."""
    store = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resuming, "SECONDS", 0.0)
        patch.setattr(resuming, "SHARE", 1e9)
        interrupted(9, small(), store=store, **SHORT)
    return store


@pytest.mark.parametrize("step", [2, 6, 11, 15])
def test_an_interrupted_run_ends_with_the_same_bits(
    step: int, whole: tuple[TuningResult, Path], tmp_path: Path
) -> None:
    interrupted(step, small(), store=tmp_path, **SHORT)
    run, steps = steps_trained(small(), store=tmp_path, **SHORT)
    assert steps == list(range(step, 16))
    assert without_time(run) == without_time(whole[0])
    for snapshot in run.snapshots:
        (space,) = snapshot_spaces(run, snapshot, small(), store=tmp_path)
        np.testing.assert_array_equal(space.X, snapshot_spaces(whole[0], snapshot, small(), store=whole[1])[0].X)
    assert not [path for path in (tmp_path / "work").iterdir() if path.is_dir()]


@pytest.mark.slow
def test_a_run_that_is_interrupted_again_and_again_ends_with_the_same_bits(
    whole: tuple[TuningResult, Path], tmp_path: Path
) -> None:
    for step in (3, 4, 9, 14):
        interrupted(step, small(), store=tmp_path, **SHORT)
    run, steps = steps_trained(small(), store=tmp_path, **SHORT)
    assert steps == [14, 15]
    assert without_time(run) == without_time(whole[0])


VARIANTS: dict[str, dict[str, Any]] = {
    "adapters": {"lora": 4, "learning_rate": 0.02},
    "accumulated gradients": {"trainer_arguments": {"gradient_accumulation_steps": 2}},
    "a part of an epoch": {"epochs": 1.4, "snapshots": [3]},
    "other layers between": {"layers": "all", "snapshot_layers": "last"},
}


@pytest.mark.parametrize(
    "variant", [pytest.param(name, marks=[] if name == "adapters" else pytest.mark.slow) for name in VARIANTS]
)
def test_every_kind_of_training_continues_with_the_same_bits(variant: str, tmp_path: Path) -> None:
    options = SHORT | VARIANTS[variant]
    expected, all_steps = steps_trained(small(), store=tmp_path / "whole", **options)
    interrupted(all_steps[-1] // 2 + 1, small(), store=tmp_path / "again", **options)
    run, steps = steps_trained(small(), store=tmp_path / "again", **options)
    assert steps[0] > 1
    assert without_time(run) == without_time(expected)


def test_early_stopping_counts_epochs_across_an_interruption(tmp_path: Path) -> None:
    options = SHORT | {"early_stopping": 2, "learning_rate": 0.02, "epochs": 12, "snapshots": "epoch"}
    expected, all_steps = steps_trained(small(), store=tmp_path / "whole", **options)
    assert all_steps[-1] < 60
    store = tmp_path / "again"
    interrupted(all_steps[-1] - 4, small(), store=store, **options)  # one epoch without a gain lies before it
    run, steps = steps_trained(small(), store=store, **options)
    assert steps[0] == all_steps[-1] - 4
    assert without_time(run) == without_time(expected)


def test_saved_weights_of_snapshots_are_kept_and_the_others_follow(tmp_path: Path) -> None:
    options = SHORT | {"save_weights": True, "snapshots": [4, 8]}
    expected = tune(EMBEDDED, small(), out=tmp_path / "whole", store=tmp_path / "a", **options)
    interrupted(7, small(), out=tmp_path / "run", store=tmp_path / "b", **options)
    before = (tmp_path / "run" / "step-4" / "model.safetensors").stat()
    run = tune(EMBEDDED, small(), out=tmp_path / "run", store=tmp_path / "b", **options)
    assert without_time(run) == without_time(expected)
    assert (tmp_path / "run" / "step-4" / "model.safetensors").stat().st_ino == before.st_ino
    for name in ("step-4", "step-8", "step-15"):
        files = [tmp_path / folder / name / "model.safetensors" for folder in ("run", "whole")]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_the_time_before_the_interruption_counts(stopped: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(stopped, tmp_path / "store"))
    index = state_folder(store) / INDEX
    saved = json.loads(index.read_bytes())["state"] | {"seconds": 1000.0}
    index.write_text(json.dumps({"state": saved, "checksum": resuming.content_key(saved)}))
    assert 1000 < tune(EMBEDDED, small(), store=store, **SHORT).seconds < 1500


# ---- states that are not used ----


def _flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _older_torch(folder: Path) -> None:
    saved = json.loads((folder / INDEX).read_bytes())["state"]
    saved["made_with"]["torch"] = "2.0.1"
    (folder / INDEX).write_text(json.dumps({"state": saved, "checksum": resuming.content_key(saved)}))


DAMAGE = {
    "a flipped bit in the weights": (lambda folder: _flip(folder / "step-8" / "pytorch_model.bin"), "is damaged"),
    "a flipped bit in the optimizer": (lambda folder: _flip(folder / "step-8" / "optimizer.pt"), "is damaged"),
    "a flipped bit in the random state": (lambda folder: _flip(folder / "step-8" / "rng_state.pth"), "is damaged"),
    "a flipped bit in the index": (lambda folder: _flip(folder / INDEX), "is damaged"),
    "a cut index": (lambda folder: (folder / INDEX).write_bytes((folder / INDEX).read_bytes()[:50]), "is damaged"),
    "an empty object": (lambda folder: (folder / INDEX).write_text("{}"), "is damaged"),
    "a list": (lambda folder: (folder / INDEX).write_text("[1]"), "is damaged"),
    "a missing file": (lambda folder: (folder / "step-8" / "scheduler.pt").unlink(), "is damaged"),
    "a missing folder": (lambda folder: shutil.rmtree(folder / "step-8"), "is damaged"),
    "another version of torch": (_older_torch, f"was made with torch 2.0.1, now {torch.__version__}"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_state_that_cannot_be_used_is_reported_and_removed(
    damage: str, stopped: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Path(shutil.copytree(state_folder(stopped), tmp_path / "state"))
    states = resuming.StateFolder(folder, json.loads((folder / INDEX).read_bytes())["state"]["made_with"])
    usable = states.load()
    assert usable is not None
    assert (usable.step, len(usable.snapshots), usable.checkpoint.name) == (8, 5, "step-8")
    assert caplog.records == []
    change, reason = DAMAGE[damage]
    change(folder)
    assert states.load() is None
    expected = f"the saved state of an interrupted run {reason}; training starts again from step 0"
    assert [record.message for record in caplog.records] == [expected]
    assert list(folder.iterdir()) == []


def test_a_run_with_a_damaged_state_starts_again(
    whole: tuple[TuningResult, Path], stopped: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Path(shutil.copytree(stopped, tmp_path / "store"))
    _flip(state_folder(store) / "step-8" / "optimizer.pt")
    run, steps = steps_trained(small(), store=store, **SHORT)
    assert "an interrupted run is damaged; training starts again from step 0" in caplog.text
    assert steps == list(range(1, 16))
    assert without_time(run) == without_time(whole[0])


def test_a_state_whose_vectors_were_removed_is_ignored(
    whole: tuple[TuningResult, Path], stopped: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Path(shutil.copytree(stopped, tmp_path / "store"))
    shutil.rmtree(store / "spaces")
    run, steps = steps_trained(small(), store=store, **SHORT)
    assert "belongs to snapshots whose vectors or weights are missing; training starts again" in caplog.text
    assert steps[0] == 1
    assert without_time(run) == without_time(whole[0])
    assert all(snapshot_spaces(run, snapshot, small(), store=store) for snapshot in run.snapshots)


OTHERS: list[dict[str, Any]] = [
    {"seed": 1},
    {"learning_rate": 2e-3},
    {"snapshots": [3]},
    {"task": small("sentence")},
    {"threads": 2},
]


@pytest.mark.parametrize("change", OTHERS, ids=lambda change: next(iter(change)))
def test_a_state_of_a_different_run_is_not_used(
    change: dict[str, Any], stopped: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"task": small(), "threads": 1} | SHORT | change
    store = Path(shutil.copytree(stopped, tmp_path / "store"))
    before = state_folder(store)
    task = options.pop("task")
    torch.set_num_threads(options.pop("threads"))
    try:
        interrupted(1, task, store=store, **options)  # it would not come to step 1 if it continued after step 8
    finally:
        torch.set_num_threads(1)
    if "threads" in change:
        assert "was made with threads 1, now 2; training starts again from step 0" in caplog.text
    else:
        assert (before / INDEX).exists(), "the state of the other run was removed"


def test_without_resume_no_state_is_saved_or_used(
    whole: tuple[TuningResult, Path], stopped: Path, tmp_path: Path
) -> None:
    store = Path(shutil.copytree(stopped, tmp_path / "store"))
    run, steps = steps_trained(small(), store=store, resume=False, **SHORT)
    assert steps[0] == 1
    assert without_time(run) == without_time(whole[0])
    assert not [path for path in (store / "work").iterdir() if path.is_dir()]
    interrupted(3, small(), store=store, resume=False, **SHORT)
    assert not [path for path in (store / "work").iterdir() if path.is_dir()]


# ---- while states are written ----


def test_a_state_that_cannot_be_written_is_one_warning_and_the_run_continues(
    whole: tuple[TuningResult, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(content: object, file: Path) -> None:
        file.write_bytes(b"some")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(resuming.torch, "save", full)
    run = tune(EMBEDDED, small(), store=tmp_path, **SHORT)
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == [
        "the state of the run cannot be saved (No space left on device); the run continues without saving it"
    ]
    assert without_time(run) == without_time(whole[0])


def test_states_are_saved_only_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resuming, "SECONDS", 3600.0)
    monkeypatch.setattr(resuming.StateFolder, "save", lambda *rest: pytest.fail("a state was saved"))
    tune(EMBEDDED, small(), store=tmp_path, **SHORT)


def test_two_processes_that_train_the_same_do_not_disturb_each_other(
    whole: tuple[TuningResult, Path], stopped: Path, tmp_path: Path
) -> None:
    store = Path(shutil.copytree(stopped, tmp_path / "store"))
    folder = state_folder(store)
    before = (folder / INDEX).read_bytes()
    with Store(store).workspace(folder.name):  # as another process has it
        run, steps = steps_trained(small(), store=store, **SHORT)
        assert (folder / INDEX).read_bytes() == before
    assert steps[0] == 1
    assert without_time(run) == without_time(whole[0])


def test_two_processes_that_save_the_same_weights_leave_complete_folders(tmp_path: Path) -> None:
    encoder = Encoder.load(EMBEDDED)
    head = torch.nn.Linear(2, 2)

    def save(_: int) -> None:
        save_weights(encoder.model, encoder.tokenizer, head, tmp_path / "step-4")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(save, range(8)))
    assert Encoder.load(str(tmp_path / "step-4")).info.layers == 2
    assert [path.name for path in tmp_path.iterdir()] == ["step-4"]


def kill_in(function: str, out: Path, store: Path) -> None:
    """Fine-tune in another process that is killed when it calls a function of the module `weights`."""
    code = (
        "import os, signal; from closerlook.tuning import tune, weights; from tests.tuning.tasks import small; "
        f"weights.{function} = lambda *rest: os.kill(os.getpid(), signal.SIGKILL); "
        f"tune(task=small(), out={str(out)!r}, store={str(store)!r}, epochs=1, layers='last', save_weights=True)"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("function", ["write_stated_pool", "move_into_place"])
def test_incomplete_weights_of_a_killed_run_are_no_checkpoints_and_are_removed_by_the_next_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, function: str
) -> None:
    out = tmp_path / "run"
    kill_in(function, out, tmp_path / "store")
    (part,) = out.glob(".step-0.*.part")
    assert (part / "model.safetensors").is_file()
    assert checkpoint_folders(f"{out}/step-*") == checkpoint_folders(str(out)) == []
    with pytest.raises(InputError, match="contains no checkpoints"):
        read_run(out, EMBEDDED)
    caplog.set_level(logging.INFO, "closerlook.tuning")
    options: dict[str, Any] = {"epochs": 1, "layers": "last", "snapshots": 2, "save_weights": True}
    tune(task=small(), out=out, store=tmp_path / "store", **options)
    assert f"incomplete weights of an interrupted run removed from {out}: {part.name}" in caplog.messages
    assert sorted(path.name for path in out.iterdir()) == ["step-0", "step-2", "tuned.json"]


@pytest.mark.parametrize("is_finished", [True, False])
def test_the_next_run_removes_incomplete_weights(tmp_path: Path, is_finished: bool) -> None:
    out, options = tmp_path / "run", SHORT | {"epochs": 0.5, "store": tmp_path / "store"}
    names = [
        ".step-4.0a1b.part.lock",
        ".step-9.2c3d.part.lock",
    ]  # the second folder was not made yet
    if is_finished:
        tune(EMBEDDED, small(), out=out, **options)
    (out / names[0].removesuffix(".lock")).mkdir(parents=True)
    for name in names:
        (out / name).touch()
    tune(EMBEDDED, small(), out=out, **options)
    assert [path.name for path in out.iterdir()] == ["tuned.json"]


def test_incomplete_weights_stay_while_their_process_lives_and_old_ones_without_a_lock_go(tmp_path: Path) -> None:
    living, new, old = (tmp_path / f".step-4.{name}.part" for name in ("living", "new", "old"))
    for part in (living, new, old):
        part.mkdir()
    os.utime(old, (0, 0))
    with FileLock(f"{living}.lock"):  # as another process has it
        remove_unfinished(tmp_path)
        assert sorted(path.name for path in tmp_path.glob("*.part")) == [living.name, new.name]
    remove_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [new.name]


def test_invalid_input_leaves_no_folder_behind(tmp_path: Path) -> None:
    with pytest.raises((InputError, WorkError)):
        tune(EMBEDDED, small(), store=tmp_path, **SHORT | {"trainer_arguments": {"optim": "nope"}})
    assert not (tmp_path / "work").exists()


# ---- killed ----

KILLED = """
import os, signal, sys
from pathlib import Path

import torch

torch.set_num_threads(1)
from closerlook.representations import atomic
from closerlook.tuning import resuming, tune
from tests.tuning.tasks import small

resuming.SECONDS, resuming.SHARE = 0.0, 1e9
options = {"epochs": 3, "batch_size": 8, "learning_rate": 1e-3, "layers": "last"}


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after_step(step, store):
    tune(task=small(), store=store, progress=lambda done, total: kill() if done == step else None, **options)


def in_write(number, store):
    calls, save = [], torch.save

    def save_half(content, file):
        calls.append(file)
        save(content, file)
        if len(calls) == number:
            file.write_bytes(file.read_bytes()[:-100])
            kill()

    resuming.torch.save = save_half
    tune(task=small(), store=store, **options)


def before_index(number, store):
    calls, replace = [], os.replace

    def late(source, target):
        if Path(target).name == "state.json":
            calls.append(target)
            if len(calls) == number:
                kill()
        replace(source, target)

    os.replace = late
    tune(task=small(), store=store, **options)


def before_removal(number, store):
    calls = []

    def remove(self, keep):
        calls.append(keep)
        if len(calls) == number:
            kill()

    resuming.StateFolder._remove_others = remove
    tune(task=small(), store=store, **options)


kills = [(after_step, 2), (after_step, 4), (in_write, 6), (in_write, 9), (before_index, 2), (before_removal, 3)]
for number, (how, when) in enumerate(kills):
    child = os.fork()
    if child == 0:
        how(when, sys.argv[1])
        os._exit(3)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, how
    print(how.__name__, when, flush=True)
run = tune(task=small(), store=sys.argv[1], **options)
Path(sys.argv[2]).mkdir()
run.save(Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_run_that_is_killed_many_times_ends_with_the_same_bits(
    whole: tuple[TuningResult, Path], tmp_path: Path
) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KILLED, str(tmp_path / "store"), str(tmp_path / "run")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 6
    run = TuningResult.load(tmp_path / "run")
    assert without_time(run).snapshots == whole[0].snapshots
    for snapshot in run.snapshots:
        (space,) = snapshot_spaces(run, snapshot, small(), store=tmp_path / "store")
        np.testing.assert_array_equal(space.X, snapshot_spaces(whole[0], snapshot, small(), store=whole[1])[0].X)

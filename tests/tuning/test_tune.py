"""Fine-tuning learns and is repeatable; snapshots hold the encoder's vectors and do not change the training."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from closerlook.encoders import encoder as encoder_module
from closerlook.encoders.alignment import align
from closerlook.encoders.encoder import Encoder
from closerlook.encoders.pooling import write_stated_pool
from closerlook.encoders.source import EMBEDDED, resolve
from closerlook.errors import InputError, WorkError
from closerlook.representations.extract import extract
from closerlook.tasks.task import Task
from closerlook.tuning import TuningResult, TuningSettings, snapshot_spaces, tune
from tests.encoders.families import save_family
from tests.tuning.tasks import small

SHORT: dict[str, Any] = {"epochs": 2, "batch_size": 8, "learning_rate": 1e-3, "layers": "last"}
"""Ten steps of eight texts."""


def prints(run: TuningResult) -> dict[int, str]:
    return {snapshot.step: snapshot.fingerprint for snapshot in run.snapshots}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[TuningResult, Path]:
    """A run with the log schedule that stores all layers, and its store."""
    store = tmp_path_factory.mktemp("usual")
    return tune(EMBEDDED, small(), store=store, **SHORT | {"layers": "all"}), store


def test_loss_and_accuracy_improve(usual: tuple[TuningResult, Path]) -> None:
    start, end = usual[0].snapshots[0], usual[0].snapshots[-1]
    for split in ("train", "test"):
        assert end.accuracy[split] > start.accuracy[split] + 0.3
        assert end.loss[split] < start.loss[split]


def test_snapshots_are_taken_at_the_scheduled_steps(usual: tuple[TuningResult, Path]) -> None:
    assert [snapshot.step for snapshot in usual[0].snapshots] == [0, 1, 2, 4, 8, 10]
    assert [snapshot.epoch for snapshot in usual[0].snapshots] == [0, 0.2, 0.4, 0.8, 1.6, 2]
    assert usual[0].steps == 10


def test_step_zero_has_the_vectors_of_the_pretrained_encoder(usual: tuple[TuningResult, Path]) -> None:
    run, store = usual
    assert run.snapshots[0].fingerprint == run.base == resolve(EMBEDDED).fingerprint
    plain = extract(EMBEDDED, small(), splits="all")
    stored = snapshot_spaces(run, 0, small(), splits="all", store=store)
    assert len(stored) == len(plain) == 6
    for space, expected in zip(stored, plain, strict=True):
        np.testing.assert_array_equal(space.X, expected.X)


def test_stored_vectors_are_not_computed_again_for_step_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    extract(EMBEDDED, small(), splits="all")
    calls = []
    monkeypatch.setattr("closerlook.representations.forward.compute", lambda *rest: calls.append(rest) or stop())
    with pytest.raises(KeyboardInterrupt):
        tune(EMBEDDED, small(), warmup=0, snapshots=[1], **SHORT)
    assert calls[0][0].checkpoint == "tuned on small-token, seed 0, step 1"


def stop() -> None:
    raise KeyboardInterrupt


def test_snapshot_spaces_are_read_without_a_model(
    usual: tuple[TuningResult, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, store = usual
    monkeypatch.setattr(Encoder, "load", None)
    (space,) = snapshot_spaces(run, -1, small(), splits="test", layers=2, store=store)
    provenance = space.provenance
    assert (provenance.encoder, provenance.checkpoint, provenance.layer) == (
        "bert-tiny",
        "tuned on small-token, seed 0, step 10",
        2,
    )
    assert provenance.weights == run.snapshots[-1].fingerprint
    with pytest.raises(WorkError, match="1 of 1 spaces are not in the store .* step 10, small-sentence/train, layer 2"):
        snapshot_spaces(run, -1, small("sentence"), layers=2, store=store)
    with pytest.raises(InputError, match="step 3 requested; there are snapshots at 0, 1, 2, 4, 8, 10"):
        snapshot_spaces(run, 3, small(), store=store)
    with pytest.raises(InputError, match="the fine-tuning was on task 'small-token', which is not in the catalogue"):
        snapshot_spaces(run, store=store)


def test_the_same_seed_gives_the_same_weights_for_every_schedule(usual: tuple[TuningResult, Path]) -> None:
    expected = prints(usual[0])
    for snapshots in (2, "every: 3", [4, 7]):
        fingerprints = prints(tune(EMBEDDED, small(), snapshots=snapshots, **SHORT))
        assert all(fingerprints[step] == expected[step] for step in set(fingerprints) & set(expected))


def test_a_different_seed_gives_different_weights(usual: tuple[TuningResult, Path]) -> None:
    different = prints(tune(EMBEDDED, small(), seed=1, snapshots=2, **SHORT))
    assert different[0] == prints(usual[0])[0]
    assert different[10] != prints(usual[0])[10]


def test_fine_tuning_restores_the_global_random_states() -> None:
    def drawn() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(1))  # noqa: S311 - the global ones

    def seeded() -> None:
        random.seed(5), np.random.seed(5), torch.manual_seed(5)

    seeded()
    expected = drawn()
    seeded()
    tune(EMBEDDED, small("sentence", 8, 4), snapshots=2, epochs=1, layers="last")
    assert drawn() == expected


def test_vectors_of_other_tasks_can_be_stored() -> None:
    probes = [small("pair", 6, 3), small("sentence", 6, 3)]
    run = tune(EMBEDDED, small(), probe=probes, snapshots=2, splits="test", **SHORT)
    assert list(run.settings.probe) == ["small-pair", "small-sentence"]
    assert list(run.snapshots[-1].accuracy) == ["test"]
    before, after = (snapshot_spaces(run, step, probes, splits="test") for step in (0, -1))
    assert [space.d for space in after] == [256, 128]
    assert not any(np.allclose(start.X, end.X) for start, end in zip(before, after, strict=True))


def test_fewer_layers_can_be_stored_between_the_first_and_the_last_snapshot(usual: tuple[TuningResult, Path]) -> None:
    run = tune(EMBEDDED, small(), snapshots=[4], snapshot_layers="last", **SHORT | {"layers": "all"})
    assert prints(run).items() <= prints(usual[0]).items()
    assert [len(snapshot_spaces(run, step, small())) for step in (0, 4, 10)] == [3, 1, 3]
    with pytest.raises(WorkError, match="1 of 1 spaces are not in the store"):
        snapshot_spaces(run, 4, small(), layers=0)


def test_the_last_snapshot_has_all_layers_if_the_training_stops_early() -> None:
    short: dict[str, Any] = {"epochs": 30, "batch_size": 8, "learning_rate": 2e-2, "snapshots": "epoch"}
    run = tune(EMBEDDED, small(), early_stopping=1, snapshot_layers="last", **short)
    assert [snapshot.step for snapshot in run.snapshots] == list(range(0, run.steps + 1, 5))
    assert len(snapshot_spaces(run, -1, small())) == 3


def test_accuracy_does_not_depend_on_whether_the_last_layer_is_stored(usual: tuple[TuningResult, Path]) -> None:
    run = tune(EMBEDDED, small(), snapshots=2, **SHORT | {"layers": [0]})
    assert run.snapshots[-1].accuracy == usual[0].snapshots[-1].accuracy
    assert run.snapshots[-1].fingerprint == usual[0].snapshots[-1].fingerprint


def test_long_texts_are_trained_on_in_windows() -> None:
    run = tune(EMBEDDED, small("sentence", 16, 4), window=8, snapshots=2, **SHORT)
    assert run.info.window == 8
    assert run.snapshots[-1].loss["train"] < run.snapshots[0].loss["train"]
    assert snapshot_spaces(run, -1, small("sentence", 16, 4))[0].provenance.window == 8


def test_accumulated_gradients_give_nearly_the_same_loss() -> None:
    short = SHORT | {"epochs": 1, "trainer_arguments": {"max_grad_norm": 0.0}}
    encoder = without_dropout()
    whole = tune(encoder, small(), snapshots=2, **short)
    short |= {"batch_size": 4, "trainer_arguments": {"max_grad_norm": 0.0, "gradient_accumulation_steps": 2}}
    parts = tune(encoder, small(), snapshots=2, **short)
    assert (whole.steps, parts.steps) == (5, 5)
    assert parts.snapshots[-1].loss["train"] == pytest.approx(whole.snapshots[-1].loss["train"], abs=2e-3)


def without_dropout() -> str:
    """A copy of the embedded encoder whose configuration has no dropout."""
    folder = Path(os.environ["CLOSERLOOK_STORE"]) / "plain"
    source = resolve(EMBEDDED).folder
    folder.mkdir(exist_ok=True)
    for file in source.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def test_the_fingerprint_does_not_depend_on_the_folder_of_the_encoder(tmp_path: Path) -> None:
    save_family("bert", tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    task = small("token", 4, 2)
    a, b = (tune(tmp_path / name, task, snapshots=2, **SHORT).snapshots[-1].fingerprint for name in "ab")
    assert a == b


def test_saving_weights_does_not_change_the_training(tmp_path: Path, usual: tuple[TuningResult, Path]) -> None:
    saving = prints(tune(EMBEDDED, small(), out=tmp_path, save_weights=True, snapshots="every: 4", **SHORT))
    assert saving[10] == prints(usual[0])[10]


# ---- early stopping ----


def test_training_stops_when_the_held_out_loss_no_longer_falls() -> None:
    run = tune(EMBEDDED, small(), early_stopping=1, epochs=30, batch_size=8, learning_rate=2e-2, layers="last")
    assert run.steps < 30 * 5
    assert run.snapshots[-1].step == run.steps
    assert run.steps % 5 == 0


# ---- files and finished runs ----


def test_a_finished_run_is_returned_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tune(EMBEDDED, small(), out=tmp_path / "run", snapshots=2, **SHORT)
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["tuned.json"]
    assert TuningResult.load(tmp_path / "run") == run
    monkeypatch.setattr(Encoder, "load", None)
    assert tune(EMBEDDED, small(), out=tmp_path / "run", snapshots="2", **SHORT) == run


def test_a_finished_run_is_repeated_if_its_vectors_are_missing(tmp_path: Path) -> None:
    first = tune(EMBEDDED, small(), out=tmp_path / "run", snapshots=2, **SHORT)
    again = tune(EMBEDDED, small(), out=tmp_path / "run", snapshots=2, store=tmp_path / "other", **SHORT)
    assert prints(again) == prints(first)
    assert snapshot_spaces(again, -1, small(), store=tmp_path / "other")


def test_settings_of_a_run_repeat_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tune(EMBEDDED, small(), out=tmp_path / "run", snapshots=2, probe=[small(), "toy-question"], **SHORT)
    monkeypatch.setattr(Encoder, "load", None)
    assert tune(EMBEDDED, small(), run.settings, out=tmp_path / "run") == run
    other = {"probe": {"toy-question": "0" * 64}}
    with pytest.raises(InputError, match="task toy-question is not the one these settings were made for"):
        tune(EMBEDDED, small(), run.settings, **other)


def test_single_settings_can_be_replaced_by_name(usual: tuple[TuningResult, Path]) -> None:
    settings = TuningSettings(**SHORT)
    run = tune(EMBEDDED, small(), settings, snapshots=2)
    assert run.settings == settings.change(snapshots=2, probe=run.settings.probe).resolve(run.info, "bert-tiny")
    assert prints(run)[10] == prints(usual[0])[10]
    with pytest.raises(InputError, match=r"setting 'epoch' is unknown; did you mean epochs\?"):
        tune(EMBEDDED, small(), epoch=3)


def test_a_run_with_different_settings_is_not_overwritten(tmp_path: Path) -> None:
    tune(EMBEDDED, small(), out=tmp_path, snapshots=2, **SHORT)
    kept = (tmp_path / "tuned.json").read_bytes()
    others = [
        ({"learning_rate": 2e-3}, "learning_rate: 0.001, now 0.002"),
        ({"seed": 3}, "seed: 0, now 3"),
        ({"layers": "all"}, r"layers: \[2\], now \[0, 1, 2\]"),
        ({"task": small("token", 39)}, "task: small-token with different content"),
        ({"encoder": "random:bert-tiny"}, "encoder: bert-tiny, now random:bert-tiny"),
    ]
    for changed, message in others:
        with pytest.raises(InputError, match=f"contains a run with different settings \\({message}\\)"):
            tune(**{"encoder": EMBEDDED, "task": small(), "out": tmp_path, "snapshots": 2, **SHORT, **changed})
    assert (tmp_path / "tuned.json").read_bytes() == kept


def test_a_run_is_the_same_through_json(usual: tuple[TuningResult, Path]) -> None:
    assert TuningResult.from_dict(json.loads(json.dumps(usual[0].to_dict()))) == usual[0]
    assert usual[0].settings.weight_decay == 0.01
    info = usual[0].info
    assert (info.layers, info.width, info.window, info.has_cls) == (2, 128, 512, True)


def test_a_folder_without_a_run_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"contains no tuned\.json; expected the folder of a finished"):
        snapshot_spaces(tmp_path / "nothing")


def test_saved_weights_give_the_same_vectors(tmp_path: Path) -> None:
    run = tune(EMBEDDED, small(), out=tmp_path, snapshots=[4], save_weights=True, **SHORT)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["step-0", "step-10", "step-4", "tuned.json"]
    assert [snapshot.weights for snapshot in run.snapshots] == ["step-0", "step-4", "step-10"]
    for snapshot in run.snapshots[1:]:
        (again,) = extract(tmp_path / str(snapshot.weights), small(), layers="last")
        np.testing.assert_array_equal(again.X, snapshot_spaces(run, snapshot, small())[0].X)


def test_the_trainer_writes_and_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = tune(EMBEDDED, small(), snapshots=2, trainer_arguments={"logging_steps": 1}, **SHORT)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    assert all(snapshot.weights is None for snapshot in run.snapshots)


def test_progress_counts_steps() -> None:
    seen: list[tuple[int, int]] = []
    tune(EMBEDDED, small(), snapshots=2, progress=lambda done, total: seen.append((done, total)), **SHORT)
    assert seen == [(step, 10) for step in range(1, 11)]


@pytest.mark.slow
def test_a_killed_run_leaves_no_partial_files_and_can_be_repeated(tmp_path: Path) -> None:
    code = (
        "from closerlook.tuning import tune; import torch; torch.set_num_threads(1); "
        f"tune(task='toy-question', out={str(tmp_path / 'run')!r}, epochs=3, snapshots='every: 1', save_weights=True)"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, start_new_session=True)
    limit = time.monotonic() + 120
    while not (tmp_path / "run" / "step-3").exists() and time.monotonic() < limit:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "run" / "tuned.json").exists()
    for folder in (tmp_path / "run").glob("step-*"):
        assert Encoder.load(str(folder)).info.layers == 2
    expected = tune(task="toy-question", epochs=3, snapshots=2, layers="last", store=tmp_path / "other")
    options = {"epochs": 3, "snapshots": "every: 1", "save_weights": True}
    run = tune(task="toy-question", out=tmp_path / "run", **options)  # type: ignore[arg-type]
    assert run.snapshots[-1].fingerprint == expected.snapshots[-1].fingerprint


def test_an_interrupted_run_leaves_no_file_behind(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(EMBEDDED, small(), out=tmp_path / "run", progress=interrupt, **SHORT)
    assert not (tmp_path / "run").exists()


# ---- low-rank adapters ----


def test_lora_trains_adapters_and_starts_from_the_pretrained_encoder(
    tmp_path: Path, usual: tuple[TuningResult, Path]
) -> None:
    run = tune(
        EMBEDDED, small(), lora=4, out=tmp_path, snapshots=2, save_weights=True, **SHORT | {"learning_rate": 0.02}
    )
    assert run.snapshots[0].fingerprint == run.base
    assert run.snapshots[-1].fingerprint not in {run.base, *prints(usual[0]).values()}
    assert run.snapshots[-1].accuracy["train"] > run.snapshots[0].accuracy["train"] + 0.2
    assert run.parameters == usual[0].parameters
    (before,) = snapshot_spaces(run, 0, small(), layers="last")
    np.testing.assert_array_equal(before.X, extract(EMBEDDED, small(), layers="last")[0].X)
    (merged,) = extract(tmp_path / "step-10", small(), layers="last")
    np.testing.assert_allclose(merged.X, snapshot_spaces(run, -1, small())[0].X, atol=1e-4)


def test_lora_in_bfloat16_leaves_the_weights_in_bfloat16_and_learns(tmp_path: Path) -> None:
    options = SHORT | {"learning_rate": 0.02, "lora": 4, "snapshots": 2}
    run = tune(EMBEDDED, small(), dtype="bfloat16", out=tmp_path, **options)
    assert run.snapshots[-1].accuracy["train"] > run.snapshots[0].accuracy["train"] + 0.2
    (before,) = snapshot_spaces(run, 0, small(), layers="last")
    (pretrained,) = extract(EMBEDDED, small(), layers="last", dtype="bfloat16")
    assert before.provenance.dtype == pretrained.provenance.dtype == "bfloat16"
    np.testing.assert_array_equal(before.X, pretrained.X)
    assert TuningResult.load(tmp_path).settings.dtype == "bfloat16"


def test_the_stated_pooling_is_trained_with_and_saved_with_the_weights(tmp_path: Path) -> None:
    base = shutil.copytree(resolve(EMBEDDED).folder, tmp_path / "base")
    write_stated_pool(base, "mean+special+normalized")
    task = small("sentence")
    run = tune(base, task, out=tmp_path / "out", snapshots=2, save_weights=True, **SHORT)
    (last,) = snapshot_spaces(run, -1, task)
    assert last.provenance.pool == "mean+special+normalized"
    np.testing.assert_allclose(np.linalg.norm(last.X, axis=1), 1, atol=1e-5)
    (again,) = extract(tmp_path / "out" / f"step-{run.steps}", task, layers="last")
    assert again.provenance.pool == "mean+special+normalized"
    np.testing.assert_allclose(again.X, last.X, atol=1e-5)


def test_training_and_snapshots_read_texts_inside_the_template() -> None:
    run = tune(EMBEDDED, small(), template="Look: {text} !", snapshots=2, **SHORT)
    (before,) = snapshot_spaces(run, 0, small(), layers="last")
    (pretrained,) = extract(EMBEDDED, small(), layers="last", template="Look: {text} !")
    np.testing.assert_array_equal(before.X, pretrained.X)
    assert run.snapshots[0].fingerprint == run.base


def test_lora_without_peft_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(InputError, match=r"lora requested; install PEFT with `pip install closerlook\[peft\]`"):
        tune(EMBEDDED, small(), lora=True, **SHORT)


# ---- refused input ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "toy-poss"}, "toy-poss"),
        ({"task": ["toy-pos", "toy-dep"]}, "task must be a name, a path or a Task, got list"),
        ({"encoder": 3}, "encoder must be a name or a folder, got int"),
        ({"encoder": "./nowhere"}, "encoder ./nowhere: there is no such folder"),
        ({"splits": ["dev"]}, "split 'dev' requested; task small-token has train, test"),
        ({"splits": []}, "no split requested"),
        ({"layers": 3}, "layer 3 requested; bert-tiny has layers 0 to 2"),
        ({"pool": "cls"}, "pool 'cls' requested; expected auto, mean, first or last for a token task"),
        ({"learning_rate": 0}, "learning_rate is 0; expected a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan; expected a number above 0"),
        ({"epochs": -1}, "epochs is -1; expected a number above 0"),
        ({"batch_size": 0}, "batch_size is 0; expected a whole number, 1 or more"),
        ({"batch_size": 1.5}, "batch_size is 1.5; expected a whole number"),
        ({"early_stopping": 0}, "early_stopping is 0; expected a whole number, 1 or more"),
        ({"warmup": 1}, "warmup is 1; expected a share of the steps"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1; expected a number, 0 or more"),
        ({"seed": -1}, "seed is -1; expected a whole number from 0"),
        ({"lora": 0}, "lora is 0; expected True or a rank, 1 or more"),
        ({"window": 3}, "window 3 requested; encoder bert-tiny reads"),
        ({"device": "tpu9"}, "device 'tpu9' is unknown"),
        ({"snapshots": [11]}, "a snapshot at step 11 requested; this training has steps 0 to 10"),
        ({"snapshots": "sometimes"}, "snapshots 'sometimes' requested; expected log"),
        ({"save_weights": True}, "save_weights needs a folder; set out= as well"),
        ({"probe": []}, "no task given"),
        ({"probe": ["toy-pos", "toy-pos"]}, "two of the tasks in probe have the same name, toy-pos"),
        (
            {"trainer_arguments": {"learning_rate": 1}},
            "trainer argument learning_rate is set by tune; give it as learning_rate",
        ),
        (
            {"trainer_arguments": {"max_steps": 1}},
            "trainer argument max_steps is set by tune; give it as epochs instead",
        ),
        (
            {"trainer_arguments": {"save_strategy": "epoch"}},
            "trainer argument save_strategy cannot be set; fine-tuning",
        ),
        ({"trainer_arguments": {"nothing": 1}}, "trainer arguments cannot be used: "),
        ({"trainer_arguments": {"optim": object()}}, "trainer arguments cannot be kept as JSON"),
        ({"trainer_arguments": {"report_to": "nobody"}}, "trainer arguments cannot be used: "),
    ],
)
def test_invalid_input_is_refused_in_one_line_before_any_step(
    options: dict[str, Any], message: str, own_store: Path
) -> None:
    with pytest.raises(InputError) as refused:
        tune(**{"encoder": EMBEDDED, "task": small(), **SHORT, **options})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not list(own_store.rglob("*.safetensors"))


def test_a_task_without_two_labels_or_texts_is_refused() -> None:
    one = Task.build("one", "token", {"train": [(("a", "b"), [((0,), "A")])]})
    with pytest.raises(InputError, match="task one: all training examples have the label A; fine-tuning needs"):
        tune(EMBEDDED, one)
    test_only = Task.build("t", "token", {"test": [(("a", "b"), [((0,), "A"), ((1,), "B")])]})
    with pytest.raises(InputError, match="split 'train' requested; task t has test"):
        tune(EMBEDDED, test_only)
    pair = Task.build("pair", "token", {"train": [(("a", "b"), [((0,), "A"), ((1,), "B")])]})
    with pytest.raises(InputError, match="early stopping requested; task pair has one training text"):
        tune(EMBEDDED, pair, early_stopping=1)


def test_a_file_as_output_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(InputError, match="file is a file; expected a folder, existing or new"):
            tune(EMBEDDED, small(), out=out)


def test_weights_of_an_encoder_decoder_cannot_be_saved(tmp_path: Path) -> None:
    folder = save_family("t5", tmp_path / "t5")
    with pytest.raises(InputError, match="save_weights is not supported for encoder-decoder models such as t5"):
        tune(folder, small(), save_weights=True, out=tmp_path / "run")


def test_texts_are_tokenized_once_for_all_snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def texts_read(snapshots: int) -> int:
        read: list[int] = []

        def counted(tokenizer: Any, texts: Any, *rest: Any) -> Any:
            read.append(len(texts))
            return align(tokenizer, texts, *rest)

        monkeypatch.setattr(encoder_module, "align", counted)
        tune(EMBEDDED, small(), store=tmp_path / str(snapshots), **SHORT | {"snapshots": snapshots})
        return sum(read)

    assert texts_read(5) == texts_read(2)

"""`closerlook tune` as a user types it."""

import json
import logging
from collections.abc import Iterator
from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest
import torch

from closerlook.cli.tune import tune as tune_command
from closerlook.tuning import TuningResult, TuningSettings, snapshot_spaces
from closerlook.tuning.existing import read_run
from tests.cli.console import assert_refused, run

Capsys = pytest.CaptureFixture[str]
SHORT = ("--task", "toy-question", "--epochs", 1, "--layers", "last", "--snapshots", "every:6")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Use one torch thread: on shared cores more threads are slower. Remove the log handlers afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    log = logging.getLogger("closerlook")
    log.handlers.clear()
    log.setLevel(logging.NOTSET)


def test_every_setting_has_an_option_with_the_same_default() -> None:
    options = {name: parameter.default for name, parameter in signature(tune_command).parameters.items()}
    renamed = {"trainer_arguments": "trainer", "deterministic": "fast"}
    for field in fields(TuningSettings):
        assert renamed.get(field.name, field.name) in options
        if field.name not in {*renamed, "splits"}:
            assert options[field.name] == field.default, field.name
    assert (options["splits"], options["trainer"], options["fast"]) == (None, None, False)


def test_a_run_prints_its_settings_and_a_table_of_snapshots(tmp_path: Path, capsys: Capsys) -> None:
    out, err = run(capsys, "tune", *SHORT, "--out", tmp_path / "run", "--trainer", "max_grad_norm=0.5")
    for text in ("bert-tiny tuned on toy-question, seed 0", "accuracy train", "loss test", "fingerprint"):
        assert text in out
    for text in ("epochs 1.0", "learning_rate 0.0003", "batch_size 32", "warmup 0.1", "weight_decay 0.01"):
        assert text in err
    assert "3 snapshots at steps 0, 6, 12" in err
    assert "max_grad_norm 0.5" in err
    assert "spaces are in the store" not in err
    assert "12 steps, 3 snapshots in " in err
    tuned = TuningResult.load(tmp_path / "run")
    assert tuned.settings.trainer_arguments == {"max_grad_norm": 0.5}
    assert snapshot_spaces(tmp_path / "run", 6, splits="test")[0].n == 86


def test_trained_chooses_the_weights_that_change(tmp_path: Path, capsys: Capsys) -> None:
    command = ("tune", *SHORT, "--epochs", 0.2, "--splits", "test", "--save-weights", "--json")
    for trained, method in (("head", "head"), ("biases", "bitfit"), ("last 1", "last 1")):
        out, _ = run(capsys, *command, "--trained", trained, "--out", tmp_path / method)
        first, *_, last = json.loads(out)["snapshots"]
        assert (first["fingerprint"] == last["fingerprint"]) == (trained == "head")
        assert read_run(tmp_path / method).method == method


def test_json_is_the_run_and_a_finished_run_is_not_trained_again(tmp_path: Path, capsys: Capsys) -> None:
    first, _ = run(capsys, "tune", *SHORT, "--out", tmp_path, "--splits", "test", "--json")
    again, err = run(capsys, "tune", *SHORT, "--out", tmp_path, "--splits", "test", "--json")
    assert first == again
    assert "found this run, already finished" in err
    assert TuningResult.from_dict(json.loads(first)) == TuningResult.load(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no folder given; pass --out DIR"),
        (("--out", "run", "--learning-rate", -1), "learning_rate is -1.0; expected a number above 0"),
        (("--out", "run", "--task", "toy-poss"), "toy-poss"),
        (("--out", "run", "--snapshots", "0,1000000"), "a snapshot at step 1000000 requested"),
        (("--out", "run", "--trainer", "bf16"), "invalid --trainer 'bf16'; expected NAME=VALUE"),
        (("--out", "run", "--trainer", "seed=1"), "trainer argument seed is set by tune; give it as seed instead"),
        (("--out", "run", "--splits", "dev"), "split 'dev' requested"),
        (
            ("--out", "run", "--trained", "first 2"),
            "trained is 'first 2'; expected all, head, biases",
        ),
        (("--out", "run", "--trained", "head", "--lora", 4), "lora and trained='head' given; expected one of them"),
        (("--out", "run", "--save-weight"), "No such option"),
    ],
)
def test_invalid_options_are_one_line_and_exit_code_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys, options: tuple[object, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(capsys, message, "tune", *options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("option", "expected"), [((), True), (("--no-resume",), False), (("--resume",), True)])
def test_the_state_is_saved_unless_no_resume_is_given(
    option: tuple[str, ...], expected: bool, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []

    def tune(*_: object, resume: bool, **__: object) -> None:
        given.append(resume)
        raise KeyboardInterrupt

    monkeypatch.setattr("closerlook.tuning.tune", tune)
    run(capsys, "tune", *SHORT, "--out", tmp_path, *option, code=130)
    assert given == [expected]

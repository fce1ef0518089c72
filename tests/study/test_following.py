"""`closerlook study --watch`: new checkpoints are measured as they come, until the training is over."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from closerlook.errors import InputError, WorkError
from closerlook.study.following import follow
from closerlook.study.results import load_results
from tests.cli.console import assert_refused, run
from tests.study.small import write_plan, write_tasks
from tests.tuning.test_growing import checkpoint
from tests.tuning.trainings import train


class Waiting:
    """A clock and a `sleep` that does one thing at each call, such as writing a checkpoint."""

    def __init__(self, *events: Callable[[], object]) -> None:
        self.now, self.events = 0.0, list(events)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.events:
            self.events.pop(0)()


def nothing() -> None:
    pass


def watched(out: Path, waiting: Waiting, refresh: Callable[[], None], timeout: float = 60.0) -> tuple[str, list[str]]:
    notes: list[str] = []
    options = {"clock": waiting.clock, "sleep": waiting.sleep, "note": notes.append}
    return follow([str(out)], refresh, timeout=timeout, interval=5.0, **options), notes


def test_a_checkpoint_is_read_once_its_files_have_stopped_changing(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    half = tmp_path / "checkpoint-2" / "model.safetensors"
    waiting = Waiting(
        lambda: checkpoint(tmp_path, 2),
        lambda: half.write_bytes(b"first half"),
        lambda: half.write_bytes(b"first half, second half"),
        nothing,
        lambda: checkpoint(tmp_path, 6),
    )
    reason, _ = watched(tmp_path, waiting, lambda: seen.append(sorted(path.name for path in tmp_path.iterdir())))
    assert seen == [["checkpoint-2"], ["checkpoint-2", "checkpoint-6"]]
    assert reason == "the training is over: checkpoint-6 is at the last step, 6"
    assert waiting.now == 6 * 5


def test_watching_ends_without_new_checkpoints(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2)
    rounds: list[int] = []
    reason, _ = watched(tmp_path, Waiting(), lambda: rounds.append(1), timeout=20)
    assert (rounds, reason) == ([1], "no new checkpoint for 20 s")


def test_a_training_that_never_comes_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="out: no checkpoint within 20 s"):
        watched(tmp_path / "out", Waiting(), lambda: pytest.fail("nothing to measure"), timeout=20)


def test_control_c_while_waiting_ends_it_and_before_the_first_checkpoint_interrupts(tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watched(tmp_path, Waiting(interrupt), nothing)
    checkpoint(tmp_path, 2)
    reason, _ = watched(tmp_path, Waiting(nothing, interrupt), nothing)
    assert reason == "stopped by Ctrl-C"


def test_a_round_that_fails_because_files_changed_is_done_again_and_other_failures_end_it(tmp_path: Path) -> None:
    checkpoint(tmp_path, 6)
    rounds: list[int] = []

    def refresh() -> None:
        rounds.append(1)
        if len(rounds) == 1:
            (tmp_path / "checkpoint-6" / "late.txt").write_text("written while it is read")
            raise InputError("half a file")

    reason, notes = watched(tmp_path, Waiting(), refresh)
    assert len(rounds) == 2
    assert reason.startswith("the training is over")
    assert notes == ["checkpoints changed while they were read, and are read again (half a file)"]

    def fail() -> None:
        raise WorkError("no memory")

    with pytest.raises(WorkError, match="no memory"):
        watched(tmp_path, Waiting(), fail)


@pytest.mark.slow
def test_the_command_follows_a_training_that_deletes_its_old_checkpoints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wait brings the next checkpoint of a real training and deletes the last one, as save_total_limit=1 does."""
    finished, out = train(tmp_path / "finished"), tmp_path / "growing"

    def arrive(step: int) -> Callable[[], None]:
        def bring() -> None:
            shutil.copytree(finished / f"checkpoint-{step}", out / f"checkpoint-{step}")
            shutil.rmtree(out / f"checkpoint-{step - 2}", ignore_errors=True)

        return bring

    waiting = Waiting(arrive(2), nothing, arrive(4), nothing, arrive(6))
    monkeypatch.setitem(follow.__kwdefaults__, "sleep", waiting.sleep)
    plan = write_plan(write_tasks(tmp_path / "tasks"), measures=["clusters"], layers=[2])
    options = ("--run", out, "--base", "bert-tiny", "--watch", "--out", tmp_path / "study", "--engine", "here")
    shown, err = run(capsys, "study", plan, *options)
    table = load_results(tmp_path / "study")
    clusters = table[(table.measure == "n_clusters") & (table.split == "train")].sort_values("step")
    assert clusters.step.tolist() == [0, 2, 4, 6]
    assert clusters.is_final.tolist() == [False, False, False, True]
    assert [line.split("steps ")[1].split(", method")[0] for line in err.splitlines() if "run growing:" in line] == [
        "2",
        "2, 4",
        "2, 4, 6",
    ]
    assert "no longer watching: the training is over: checkpoint-6 is at the last step, 6" in err
    assert shown.endswith(f"report: {tmp_path / 'study' / 'report.html'}\n")
    alone = tmp_path / "alone"
    run(capsys, "study", plan, "--run", finished, "--base", "bert-tiny", "--out", alone, "--engine", "here")
    expected = load_results(alone)
    expected = expected[(expected.measure == "n_clusters") & (expected.split == "train")].sort_values("step")
    assert clusters.value.tolist() == expected.value.tolist()


def test_watching_needs_a_run_and_no_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ("--out", tmp_path / "study")
    assert_refused(capsys, "--watch given without a run; expected --run", "study", "--watch", *out)
    assert_refused(capsys, "--watch and --dry-run given", "study", "--watch", "--dry-run", "--run", tmp_path, *out)

"""Ctrl-C while the table, the manifest and the page are written; a cell that runs out of memory; a killed worker."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from closerlook.representations.atomic import PART
from closerlook.study import study as study_module
from closerlook.study.kinds import geometry
from closerlook.study.results import load_results
from closerlook.study.study import run_study
from closerlook.tuning import TuningResult
from tests.cli.console import run
from tests.study.processes import finish, start, until_begun
from tests.study.small import values, write_plan, write_tasks

Capsys = pytest.CaptureFixture[str]
MESSAGE = "closerlook: interrupted; run the same command again to continue where it stopped\n"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study without fine-tuning, as a file."""
    return write_plan(write_tasks(tmp_path_factory.mktemp("tasks")), tuning=None, measures=["clusters", "similarity"])


@pytest.fixture(scope="module")
def undisturbed(plan: Path, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return values(load_results(run_study(plan, tmp_path_factory.mktemp("undisturbed") / "out", engine="here").out))


class Files:
    """Counts the files that are put in their place by a rename, and interrupts the k-th, before or after it."""

    def __init__(self, k: int = 0, *, after: bool = False) -> None:
        self.k, self.after, self.names = k, after, list[str]()

    @contextmanager
    def watched(self) -> Iterator["Files"]:
        plain = os.replace

        def replace(source: Any, target: Any) -> None:
            self.names.append(Path(target).name)
            is_hit = len(self.names) == self.k
            if is_hit and not self.after:
                raise KeyboardInterrupt
            plain(source, target)
            if is_hit:
                raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "replace", replace)
            yield self


def left_over(out: Path) -> list[Path]:
    return [path for path in out.rglob(f".*{PART}") if "work" not in path.parts]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_control_c_while_the_table_is_written_leaves_the_old_or_the_new_table(
    after: bool, plan: Path, undisturbed: pd.DataFrame, tmp_path: Path, capsys: Capsys
) -> None:
    out = tmp_path / "out"
    command = ("study", plan, "--out", out, "--engine", "here", "--no-report")
    run(capsys, *command)
    plain = study_module.write_results
    with Files().watched() as counted:
        run(capsys, *command)
    assert {"results.parquet", "manifest.json", "results.csv"} <= set(counted.names)
    for k in range(1, len(counted.names) + 1):

        def write(*arguments: Any, k: int = k) -> Path:
            with Files(k, after=after).watched():
                return plain(*arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(study_module, "write_results", write)
            _, err = run(capsys, *command, code=130)
        assert err.endswith(MESSAGE)
        assert "Traceback" not in err
        assert not left_over(out)
        pd.testing.assert_frame_equal(values(load_results(out)), undisturbed, check_exact=True)
    run(capsys, *command)
    pd.testing.assert_frame_equal(values(load_results(out)), undisturbed, check_exact=True)


@pytest.mark.parametrize("command", ["study", "report"])
def test_control_c_while_the_page_is_written_leaves_the_old_page_and_the_next_call_writes_it(
    command: str, plan: Path, tmp_path: Path, capsys: Capsys
) -> None:
    out = tmp_path / "out"
    study = ("study", plan, "--out", out, "--engine", "here")
    run(capsys, *study)
    before = (out / "report.html").read_bytes()
    call = study if command == "study" else ("report", out)
    with Files().watched() as counted:
        run(capsys, *call)
    first = counted.names.index("report.html") + 1
    for k in {1, first, len(counted.names)}:
        with Files(k).watched():
            _, err = run(capsys, *call, code=130)
        assert "closerlook: interrupted; run the same command again to" in err
        assert "Traceback" not in err
        assert (out / "report.html").read_bytes()[:100] == before[:100]
        assert (out / "report.html").read_bytes().rstrip().endswith(b"</html>")
    run(capsys, *call)
    assert not left_over(out)
    assert (out / "report.html").exists()


# ---- memory ----


def test_a_cell_that_runs_out_of_memory_fails_alone_and_is_tried_again(
    plan: Path, undisturbed: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    plain = geometry.measure_space

    def measure(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise MemoryError("Unable to allocate 400 GiB")
        return plain(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(geometry, "measure_space", measure)
        done = run_study(plan, tmp_path / "out", engine="here")
    (message,) = done.state.failed.values()
    assert message == "MemoryError: Unable to allocate 400 GiB"
    assert done.state.computed > 1
    again = run_study(plan, tmp_path / "out", engine="here")
    assert not again.state.failed
    pd.testing.assert_frame_equal(values(load_results(again.out)), undisturbed, check_exact=True)


@pytest.mark.slow
def test_a_worker_that_the_system_kills_again_and_again_is_replaced_and_the_study_ends_well(
    plan: Path, undisturbed: pd.DataFrame, tmp_path: Path
) -> None:
    """As when memory runs out: the kernel kills the worker, without warning."""
    out = tmp_path / "out"
    study = start(plan, out, "--workers", "2", "--no-report")
    killed: set[int] = set()
    for _ in range(2):
        until_begun(study, len(killed))
        workers = {int(path.stem.rsplit("-", 1)[1]) for path in (out / "journal").glob("*.log")} - killed
        for worker in sorted(workers)[:1]:
            killed.add(worker)
            os.kill(worker, signal.SIGKILL)
    assert study.wait() == 0, study.told()
    assert killed
    pd.testing.assert_frame_equal(values(load_results(out)), undisturbed, check_exact=True)
    assert finish(plan, out, "--workers", "2", "--no-report")["computed"] == 0


# ---- Ctrl-C during a fine-tuning ----

TUNE = """
import os, signal, sys
from closerlook.cli import main
from closerlook.tuning import resuming

resuming.SECONDS, resuming.SHARE = 0.0, 1e9
if len(sys.argv) > 3:
    save, states = resuming.StateFolder.save, []

    def interrupted(self, step, files, content):
        save(self, step, files, content)
        states.append(step)
        if len(states) == int(sys.argv[3]):
            signal.raise_signal(signal.SIGINT)

    resuming.StateFolder.save = interrupted
    signal.signal(signal.SIGINT, signal.default_int_handler)
options = ["--task", "toy-question", "--epochs", "1", "--layers", "last", "--snapshots", "every:6"]
main(["tune", *options, "--out", sys.argv[1], "--store", sys.argv[2]])
"""


@pytest.mark.slow
def test_control_c_during_a_fine_tuning_is_one_line_and_the_next_call_continues(tmp_path: Path) -> None:
    def tune(*arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-c", TUNE, *arguments],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stderr

    out, store = str(tmp_path / "run"), str(tmp_path / "store")
    told = tune(out, store, "7", code=130)
    assert told.endswith(MESSAGE)
    assert "Traceback" not in told
    assert not (tmp_path / "run" / "tuned.json").exists()
    assert "continuing an interrupted run after step 7" in tune(out, store)
    tune(str(tmp_path / "whole"), str(tmp_path / "other"))
    expected = TuningResult.load(tmp_path / "whole")
    assert TuningResult.load(out).snapshots == expected.snapshots

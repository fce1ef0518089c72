"""Whatever happens to a study's processes and disk, the next call goes on, and the table is that of a quiet run."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from closerlook.study.results import load_results
from closerlook.study.study import CompletedStudy
from tests.study.processes import Run, alive, dask_cluster, finish, start, until_begun
from tests.study.small import begun, computed_twice, finished, until, values, write_plan

pytestmark = pytest.mark.slow  # every test starts processes that load torch


@pytest.fixture
def plan(tasks: Path) -> Path:
    return write_plan(tasks)


@pytest.fixture
def started() -> Iterator[list[Run]]:
    """Studies to be stopped should the test fail."""
    runs: list[Run] = []
    yield runs
    for run in runs:
        if run.process.poll() is None:
            run.kill()


def same(out: Path, quiet: CompletedStudy) -> None:
    pd.testing.assert_frame_equal(values(load_results(out)), values(load_results(quiet.out)), check_exact=True)
    assert not computed_twice(out)
    assert not list(out.glob("cells/*/.*")) + list(out.glob(".results*")), "something half-written is left"


def last_line(run: Run) -> str:
    """The one line that says what happened."""
    told = run.told()
    assert "Traceback" not in told, told
    lines = [line for line in told.splitlines() if line.startswith("closerlook: ")]
    assert len(lines) == 1, told
    return lines[0]


# ---- killed ----


def test_ten_kills_of_all_processes_lose_nothing_that_was_finished(
    single: CompletedStudy, plan: Path, tmp_path: Path, started: list[Run]
) -> None:
    out = tmp_path / "out"
    rng = random.Random(5)  # noqa: S311 - moments, not secrets
    kills = 0
    while kills < 10:
        there = {key: len(begun(out)[key]) for key in finished(out)}
        run = start(plan, out, "--workers", "2")
        started.append(run)
        until_begun(run, sum(map(len, begun(out).values())))
        time.sleep(rng.random() * rng.choice([0.05, 0.5, 1.5]))
        if run.process.poll() is not None:
            assert run.process.returncode == 0, run.told()
            break
        run.kill()
        kills += 1
        assert {key: len(begun(out)[key]) for key in there} == there, "a finished cell was begun again"
        for path in out.glob("cells/*/*.json"):
            assert path.read_bytes().endswith(b"}")
    assert kills >= 3
    finish(plan, out, "--workers", "2")
    same(out, single)


def test_workers_do_not_outlive_a_parent_that_is_killed(
    single: CompletedStudy, plan: Path, tmp_path: Path, started: list[Run]
) -> None:
    run = start(plan, tmp_path / "out", "--workers", "2")
    started.append(run)
    until_begun(run, 0)
    workers = run.workers()
    assert len(workers) >= 2
    os.kill(run.process.pid, signal.SIGKILL)
    run.wait()
    until(lambda: not any(worker.is_running() and worker.status() != "zombie" for worker in workers), 10)
    finish(plan, tmp_path / "out", "--workers", "2")
    same(tmp_path / "out", single)


def test_a_process_that_is_killed_is_replaced_and_its_cell_begun_again(
    single: CompletedStudy, plan: Path, tmp_path: Path, started: list[Run]
) -> None:
    out = tmp_path / "out"
    run = start(plan, out, "--workers", "2")
    started.append(run)
    until_begun(run, 0)
    (worker, *_) = [int(path.stem.rsplit("-", 1)[1]) for path in (out / "journal").glob("*.log")]
    os.kill(worker, signal.SIGKILL)
    assert run.wait() == 0, run.told()
    assert len(list((out / "journal").glob("*.log"))) > 2
    assert not (out / "failed").exists()
    same(out, single)


def test_a_worker_of_a_cluster_that_is_killed_is_made_up_for_by_the_other(
    single: CompletedStudy, plan: Path, tmp_path: Path, started: list[Run]
) -> None:
    out = tmp_path / "out"
    with dask_cluster(tmp_path, ("--nthreads", "1"), ("--nthreads", "1")) as cluster:
        run = start(plan, out, "--engine", "dask", "--scheduler", cluster.address)
        started.append(run)
        until_begun(run, 0)
        busy = {int(path.stem.rsplit("-", 1)[1]) for path in (out / "journal").glob("*.log")}
        victim = next(worker for worker in cluster.workers if worker.pid in busy)
        victim.kill()
        assert run.wait() == 0, run.told()
        assert sum(worker.poll() is None for worker in cluster.workers) == 1
    same(out, single)


# ---- interrupted ----


@pytest.mark.parametrize("workers", ["1", "2"])
def test_control_c_says_how_to_go_on_and_leaves_no_process(
    single: CompletedStudy, plan: Path, tmp_path: Path, started: list[Run], workers: str
) -> None:
    out = tmp_path / "out"
    run = start(plan, out, "--workers", workers)
    started.append(run)
    until_begun(run, 0)
    os.killpg(run.process.pid, signal.SIGINT)  # to all of them, as a terminal does
    assert run.wait(30) == 130, run.told()
    assert last_line(run) == "closerlook: interrupted; run the same command again to continue where it stopped"
    until(lambda: not alive(run.process.pid), 10)
    finish(plan, out, "--workers", workers)
    same(out, single)


def test_control_c_while_workers_are_starting_is_quiet(plan: Path, tmp_path: Path, started: list[Run]) -> None:
    run = start(plan, tmp_path / "out", "--workers", "2")
    started.append(run)
    until(lambda: len(run.workers()) >= 2 or run.process.poll() is not None)
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.wait(30) == 130, run.told()
    last_line(run)
    until(lambda: not alive(run.process.pid), 10)


# ---- the disk ----


def test_a_limit_on_the_size_of_files_is_one_line_and_the_next_call_goes_on(
    single: CompletedStudy, plan: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run = start(plan, out, "--workers", "2", prefix=("sh", "-c", 'ulimit -f 40; exec "$@"', "sh"))
    assert run.wait() == 1
    line = last_line(run)
    assert "File too large" in line
    assert line.endswith("free disk space, and run the same command again: it goes on where it stopped")
    assert not (out / "failed").exists()
    finish(plan, out, "--workers", "2")
    same(out, single)


def mount(*options: str) -> bool:
    """Whether it could be done."""
    return subprocess.run(["/bin/mount", *options], capture_output=True, check=False).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of a size that a study outgrows."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if not mount("-t", "tmpfs", "-o", "size=1m", "none", str(disk)):
        pytest.skip("only root may mount a file system")
    yield disk
    subprocess.run(["/bin/umount", "--lazy", str(disk)], check=True)


def test_a_full_disk_is_one_line_and_the_next_call_goes_on(
    single: CompletedStudy, plan: Path, small_disk: Path
) -> None:
    out = small_disk / "out"
    run = start(plan, out, "--workers", "2")
    assert run.wait() == 1
    assert "No space left on device; " in last_line(run)
    assert mount("-o", "remount,size=64m", str(small_disk))
    kept = set(finished(out))
    told = finish(plan, out, "--workers", "2")
    assert told["computed"] == single.state.total - len(kept)
    same(out, single)


def test_a_disk_that_may_only_be_read_is_one_line(
    single: CompletedStudy, plan: Path, small_disk: Path, tmp_path: Path
) -> None:
    assert mount("-o", "remount,ro", str(small_disk))
    run = start(plan, tmp_path / "log", "--out", str(small_disk / "out"))
    assert run.wait() == 2
    line = last_line(run)
    assert "disk/out cannot be written: Read-only file system; choose another folder" in line
    assert list(small_disk.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_one_line(plan: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    run = start(plan, tmp_path / "log", "--out", str(locked / "out"))
    assert run.wait() == 2
    assert "locked/out cannot be written: Permission denied; choose another folder" in last_line(run)

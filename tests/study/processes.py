"""Studies in processes of their own, as a user starts them, and what befalls them there."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.study.small import begun, until

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}


@dataclass
class Run:
    """A study under way. log: its standard error."""

    process: subprocess.Popen[bytes]
    out: Path
    log: Path

    def wait(self, seconds: float = 900.0) -> int:
        return self.process.wait(seconds)

    def told(self) -> str:
        return self.log.read_text()

    def workers(self) -> list[psutil.Process]:
        """Processes below it, whatever they are."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        """All of its processes at once, without warning."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)
        until(lambda: not alive(self.process.pid), 20)


def start(plan: Path, out: Path, *options: str, prefix: tuple[str, ...] = (), cwd: Path | None = None) -> Run:
    """`closerlook study` in a session of its own."""
    out.parent.mkdir(parents=True, exist_ok=True)
    log = out.parent / f"{out.name}.log"
    command = [*prefix, sys.executable, "-m", "closerlook", "study", str(plan), "--out", str(out), "--json", *options]
    # A job in the background ignores interrupts, and so would its children.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with log.open("wb") as errors, (out.parent / f"{out.name}.json").open("wb") as told:
            process = subprocess.Popen(
                command, stdout=told, stderr=errors, env=os.environ | ENVIRONMENT, start_new_session=True, cwd=cwd
            )
    finally:
        signal.signal(signal.SIGINT, before)
    return Run(process, out, log)


def finish(plan: Path, out: Path, *options: str, code: int = 0, **rest: Any) -> dict[str, Any]:
    """What a study prints when it is done."""
    run = start(plan, out, *options, **rest)
    assert run.wait() == code, run.told()
    told: dict[str, Any] = json.loads((out.parent / f"{out.name}.json").read_text() or "{}")
    return told


def alive(group: int) -> list[psutil.Process]:
    """Processes of a session that are still there."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (OSError, psutil.Error):
            continue
    return found


def until_begun(run: Run, before: int) -> None:
    """Until more than that many cells were begun, or the study is over."""
    until(lambda: sum(map(len, begun(run.out).values())) > before or run.process.poll() is not None, 300)


# ---- a cluster ----


@dataclass
class Cluster:
    """A Dask scheduler and its workers, each a process of its own."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def dask_cluster(folder: Path, *workers: tuple[str, ...], common: Sequence[str] = ()) -> Iterator[Cluster]:
    """A scheduler on loopback with a worker for each tuple of options, started elsewhere than the study is.

    common: options of the scheduler and of all workers.
    """
    file = folder / "scheduler.json"
    started: list[subprocess.Popen[bytes]] = []

    def dask(*arguments: str) -> subprocess.Popen[bytes]:
        with (folder / f"dask-{len(started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments],
                stdout=log,
                stderr=log,
                cwd="/",
                env=os.environ | ENVIRONMENT,
                start_new_session=True,
            )
        started.append(process)
        return process

    try:
        dask(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file), *common
        )
        until(file.exists)
        time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        usual = ("--no-nanny", "--no-dashboard", "--local-directory", str(folder), *common)
        running = [dask("worker", address, *usual, *options) for options in workers]
        logs = [folder / f"dask-{number}.log" for number in range(1, len(started))]
        until(lambda: all("Registered to" in log.read_text() for log in logs))
        yield Cluster(address, running)
    finally:
        for process in started:
            process.kill()
            process.wait()

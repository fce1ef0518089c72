"""Whichever worker process cannot be started: one line and a non-zero exit, and the next run gives the same table."""

import _posixsubprocess
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.small import Study, run

pytestmark = pytest.mark.slow  # worker processes load torch

WORKERS = ("--workers", "2")


class Processes:
    """Counts the processes that this one starts, and lets the k-th fail, as a system with too many of them does."""

    def __init__(self, k: int = 0) -> None:
        self.k, self.started, self.failures = k, 0, 0

    @contextmanager
    def watched(self) -> Iterator["Processes"]:
        plain = _posixsubprocess.fork_exec

        def fork_exec(*arguments: Any) -> int:
            self.started += 1
            if self.started == self.k:
                self.failures += 1
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            return plain(*arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_posixsubprocess, "fork_exec", fork_exec)
            yield self


def test_each_process_that_cannot_be_started(study: Study, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Processes().watched() as processes:
        assert run(study.plan, out, *WORKERS).code == 0
    study.check(out)
    assert processes.started >= 2
    for k in range(1, processes.started + 1):
        study.start(out, finished=False)
        with Processes(k).watched() as failing:
            disturbed = run(study.plan, out, *WORKERS)
        if failing.failures:
            assert disturbed.code == 1, disturbed.errors
            assert "a worker process cannot be started: Resource temporarily unavailable" in disturbed.message
        again = run(study.plan, out, *WORKERS)
        assert again.code == 0, again.errors
        study.check(out)

"""Whichever operation on a file fails: one line and a non-zero exit, and the next run gives the undisturbed table."""

import errno
from itertools import product
from pathlib import Path

import pytest

from tests.faults.disk import OPERATIONS, FaultyDisk, Operation
from tests.faults.small import Study, run

SHORT = 2
"""How many failures of each operation the short form injects."""

STARTS = {"new": False, "finished": True}


def count(study: Study, out: Path, *, finished: bool) -> FaultyDisk:
    """The operations of an undisturbed run."""
    with FaultyDisk(study.start(out, finished=finished)).mounted() as disk:
        assert run(study.plan, out).code == 0
    return disk


def inject(study: Study, out: Path, operation: Operation, k: int, *, finished: bool, full: bool) -> None:
    """Let the k-th operation fail, or with `full` all from the k-th on, and then run the study again."""
    code = errno.ENOSPC if full else errno.EIO
    with FaultyDisk(study.start(out, finished=finished), operation, k, code=code, lasting=full).mounted() as disk:
        disturbed = run(study.plan, out)
    assert disk.failures, "the operation did not take place"
    if disturbed.code == 0:  # the failure was harmless, such as a note about the encoder that was not kept
        study.check(out)
    else:
        assert disturbed.code in (1, 2)
        assert "Input/output error" in disturbed.message or "No space left on device" in disturbed.message
    again = run(study.plan, out)
    assert again.code == 0, again.errors
    study.check(out)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_some_operations_fail(study: Study, tmp_path: Path, operation: Operation, start: str) -> None:
    finished = STARTS[start]
    n = count(study, tmp_path / "out", finished=finished).seen[operation]
    for k in {1 + (n - 1) * i // SHORT for i in range(1, SHORT + 1)} if n else set():
        inject(study, tmp_path / "out", operation, k, finished=finished, full=False)


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True], ids=["once", "full disk"])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_operation_fails(study: Study, tmp_path: Path, operation: Operation, start: str, full: bool) -> None:
    finished = STARTS[start]
    n = count(study, tmp_path / "out", finished=finished).seen[operation]
    if operation == "read" and full:
        pytest.skip("a full disk can be read")
    for k in range(1, n + 1):
        inject(study, tmp_path / "out", operation, k, finished=finished, full=full)


def test_a_run_has_operations_of_every_kind(study: Study, tmp_path: Path) -> None:
    seen = {start: count(study, tmp_path / "out", finished=finished).seen for start, finished in STARTS.items()}
    missing = [pair for pair in product(STARTS, OPERATIONS) if not seen[pair[0]][pair[1]]]
    assert missing == [("finished", "allocate")]

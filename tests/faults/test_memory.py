"""Wherever memory runs out: one line and a non-zero exit, and the next run gives the undisturbed table."""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import closerlook
from tests.faults.small import Study, run

SHORT, LONG = 6, 150
"""How many failures the short and the long form inject, evenly spread over the calls of a study."""

PARTS = tuple(
    str(Path(closerlook.__file__).parent / part)
    for part in ("study", "representations", "encoders", "geometry", "tasks")
)


class Memory:
    """Counts the calls of functions of the package, and lets memory run out in the k-th."""

    def __init__(self, k: int = 0) -> None:
        self.k, self.calls, self.failed_in = k, 0, ""

    @contextmanager
    def watched(self) -> Iterator["Memory"]:
        sys.setprofile(self._called)
        try:
            yield self
        finally:
            sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_flags & inspect.CO_GENERATOR or not code.co_filename.startswith(PARTS):
            return  # a generator is called once more when it is removed from memory, and no error leaves it then
        self.calls += 1
        if self.calls == self.k:
            self.failed_in = code.co_qualname
            raise MemoryError


def inject(study: Study, out: Path, k: int, *, finished: bool) -> None:
    """Let memory run out in the k-th call, and then run the study again."""
    study.start(out, finished=finished)
    with Memory(k).watched() as memory:
        disturbed = run(study.plan, out)
    assert memory.failed_in, "the call did not take place"
    if disturbed.code == 0:
        study.check(out)
    else:
        assert disturbed.code == 1, (memory.failed_in, disturbed.errors)
        assert "out of memory" in disturbed.message or "MemoryError" in disturbed.message, memory.failed_in
    again = run(study.plan, out)
    assert again.code == 0, (memory.failed_in, again.errors)
    study.check(out)


@pytest.mark.parametrize("finished", [False, True], ids=["new", "finished"])
@pytest.mark.parametrize("n", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
def test_memory_runs_out(study: Study, tmp_path: Path, n: int, finished: bool) -> None:
    out = study.start(tmp_path / "out", finished=finished)
    with Memory().watched() as memory:
        assert run(study.plan, out).code == 0
    assert memory.calls > n
    for i in range(n):
        inject(study, out, 1 + (memory.calls - 1) * i // n, finished=finished)

"""One small study, run once in this process; tests that change it take a copy."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from closerlook.study.study import CompletedStudy, run_study
from tests.study.small import full_plan, small_plan, write_tasks
from tests.threads import one_torch_thread


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    with one_torch_thread():
        yield


@pytest.fixture(scope="session")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the small tasks."""
    return write_tasks(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="session")
def done(tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> CompletedStudy:
    """Two tasks, one probed while the encoder is tuned on the other, also with other settings."""
    return run_study(full_plan(tasks), tmp_path_factory.mktemp("studies") / "out", engine="here")


@pytest.fixture(scope="session")
def single(tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> CompletedStudy:
    """The plan as it is, with one task."""
    return run_study(small_plan(tasks), tmp_path_factory.mktemp("studies") / "single", engine="here")


@pytest.fixture
def copied(single: CompletedStudy, tmp_path: Path) -> Callable[[], Path]:
    """A copy of that study's folder to do things to."""

    def copy() -> Path:
        return Path(shutil.copytree(single.out, tmp_path / "copy"))

    return copy

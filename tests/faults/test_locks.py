"""File systems without locks, two studies at once, a store that disappears, symbolic links, a clock that jumps."""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from closerlook.errors import InputError
from closerlook.representations.extract import extract
from closerlook.representations.store import Store
from closerlook.study.kinds import geometry
from closerlook.study.results import load_results
from closerlook.study.runner import StudyState, study_lock
from closerlook.study.study import CompletedStudy, run_study
from tests.study.small import small_plan, values, write_tasks

TASK = "toy-question"
YEAR = 365 * 86400.0


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A study without fine-tuning: it extracts, measures and compares."""
    return small_plan(write_tasks(tmp_path_factory.mktemp("tasks")), tuning=None, measures=["clusters", "similarity"])


@pytest.fixture(scope="module")
def undisturbed(plan: Any, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return values(load_results(run_study(plan, tmp_path_factory.mktemp("undisturbed") / "out", engine="here").out))


def same_table(done: CompletedStudy, expected: pd.DataFrame) -> None:
    assert not done.state.failed
    pd.testing.assert_frame_equal(values(load_results(done.out)), expected, check_exact=True)


# ---- locks ----


@pytest.fixture(params=[errno.ENOLCK, errno.EOPNOTSUPP], ids=["ENOLCK", "EOPNOTSUPP"])
def without_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system whose locks fail, as those of some network file systems do."""

    def flock(descriptor: int, operation: int) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.usefixtures("without_locks")
def test_a_study_runs_where_files_cannot_be_locked(
    plan: Any, undisturbed: pd.DataFrame, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done = run_study(plan, tmp_path / "out", engine="here")
    same_table(done, undisturbed)
    assert f"the file system of {tmp_path / 'out'} has no locks" in caplog.text
    assert "do not run the same study twice at the same time" in caplog.text
    assert not [path for path in (tmp_path / "out" / "store" / "work").iterdir() if path.is_dir()]


@pytest.mark.usefixtures("without_locks")
def test_what_is_interrupted_without_locks_is_removed_and_gc_removes_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt), store.workspace("name") as folder:
        (folder / "file").write_text("unfinished")
        raise KeyboardInterrupt
    assert not [path for path in (tmp_path / "work").iterdir() if path.is_dir()]
    abandoned = tmp_path / "work" / "old"
    abandoned.mkdir()
    os.utime(abandoned, (0, 0))
    assert store.gc() == []
    assert abandoned.exists()


def test_other_errors_of_a_lock_file_are_still_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(InputError, match="cannot be written: Input/output error"), study_lock(tmp_path):
        pytest.fail("the folder was not locked")


# ---- two studies ----


def test_a_second_study_in_the_same_folder_is_refused_and_the_first_one_continues(
    plan: Any, undisturbed: pd.DataFrame, tmp_path: Path
) -> None:
    refusals = []

    def second(state: StudyState) -> None:
        if not refusals:
            with pytest.raises(InputError, match="is in use by another run of this study; wait for it") as caught:
                run_study(plan, tmp_path / "out", engine="here")
            refusals.append(caught.value)

    same_table(run_study(plan, tmp_path / "out", engine="here", watch=second), undisturbed)
    assert len(refusals) == 1


def test_two_studies_share_a_store_at_the_same_time(plan: Any, undisturbed: pd.DataFrame, tmp_path: Path) -> None:
    others: list[CompletedStudy] = []

    def second(state: StudyState) -> None:
        if not others and state.running:
            others.append(run_study(plan, tmp_path / "b", store=tmp_path / "store", engine="here"))

    first = run_study(plan, tmp_path / "a", store=tmp_path / "store", engine="here", watch=second)
    assert len(others) == 1
    for done in (first, *others):
        same_table(done, undisturbed)


# ---- a store that disappears ----


@pytest.mark.parametrize("part", ["", "spaces", "work", "facts"], ids=["everything", "spaces", "work", "facts"])
def test_a_store_that_is_deleted_during_a_run_is_filled_again(
    part: str, plan: Any, undisturbed: pd.DataFrame, tmp_path: Path
) -> None:
    deleted = []

    def delete(state: StudyState) -> None:
        if not deleted and state.computed == 1:
            deleted.append(shutil.rmtree(tmp_path / "store" / part, ignore_errors=True))

    done = run_study(plan, tmp_path / "out", store=tmp_path / "store", engine="here", watch=delete)
    assert deleted
    same_table(done, undisturbed)


def test_a_store_that_is_deleted_during_an_extraction_is_one_line_or_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [space.X.copy() for space in extract(task=TASK, store=tmp_path / "other", layers="last")]
    plain = Store.commit

    def commit(self: Store, *rest: Any) -> None:
        shutil.rmtree(tmp_path / "store", ignore_errors=True)
        plain(self, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", commit)
        with pytest.raises(Exception, match="store .* cannot be written: No such file or directory"):
            extract(task=TASK, store=tmp_path / "store", layers="last")
    again = extract(task=TASK, store=tmp_path / "store", layers="last")
    assert all((space.X == X).all() for space, X in zip(again, expected, strict=True))


# ---- symbolic links ----


def _link_folders(folder: Path) -> tuple[Path, Path]:
    (folder / "disk" / "out").mkdir(parents=True)
    (folder / "disk" / "store").mkdir()
    (folder / "out").symlink_to(folder / "disk" / "out")
    (folder / "store").symlink_to(folder / "disk" / "store")
    return folder / "out", folder / "store"


def _link_parts(folder: Path) -> tuple[Path, Path]:
    out, store = folder / "out", folder / "store"
    for link in (out / "cells", out / "journal", store / "spaces", store / "work"):
        target = folder / "disk" / link.parent.name / link.name
        target.mkdir(parents=True)
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(target)
    return out, store


@pytest.mark.parametrize("link", [_link_folders, _link_parts], ids=["the folders", "folders in them"])
def test_folders_may_be_symbolic_links(
    link: Callable[[Path], tuple[Path, Path]], plan: Any, undisturbed: pd.DataFrame, tmp_path: Path
) -> None:
    out, store = link(tmp_path)
    same_table(run_study(plan, out, store=store, engine="here"), undisturbed)
    again = run_study(plan, out, store=store, engine="here")
    assert again.state.computed == 0
    same_table(again, undisturbed)
    assert list((tmp_path / "disk").rglob("*.safetensors"))
    Store(store).gc(max_bytes=0)
    assert not list((tmp_path / "disk").rglob("*.safetensors"))


def test_a_link_to_nowhere_is_one_line(plan: Any, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "nowhere" / "deep")
    with pytest.raises(InputError, match="out .*/out cannot be written"):
        run_study(plan, tmp_path / "out", store=tmp_path / "store", engine="here")


def test_a_linked_file_in_the_store_is_read_and_replaced_without_changing_its_target(tmp_path: Path) -> None:
    X = extract(task=TASK, store=tmp_path / "store", layers="last")[0].X.copy()  # the file is mapped into memory
    (file,) = (tmp_path / "store" / "spaces").glob("*/*.safetensors")
    target = tmp_path / "elsewhere"
    file.rename(target)
    file.symlink_to(target)
    assert (extract(task=TASK, store=tmp_path / "store", layers="last")[0].X == X).all()
    target.write_bytes(b"damaged")
    assert (extract(task=TASK, store=tmp_path / "store", layers="last")[0].X == X).all()
    assert target.read_bytes() == b"damaged"


# ---- the clock ----


@pytest.mark.parametrize("jump", [-10 * YEAR, -3600.0, 10 * YEAR], ids=["-10 years", "-1 h", "+10 years"])
def test_a_clock_that_jumps_changes_no_result(
    jump: float, plan: Any, undisturbed: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = time.time
    jumped: list[float] = []
    measure = geometry.measure_space

    def jumping(*arguments: Any, **options: Any) -> Any:
        jumped[:] = [jump]
        return measure(*arguments, **options)

    monkeypatch.setattr(time, "time", lambda: plain() + sum(jumped))
    monkeypatch.setattr(geometry, "measure_space", jumping)
    done = run_study(plan, tmp_path / "out", engine="here")
    assert jumped
    same_table(done, undisturbed)
    assert 0 <= done.seconds < 600
    again = run_study(plan, tmp_path / "out", engine="here")
    assert again.state.computed == 0
    same_table(again, undisturbed)


def test_gc_keeps_work_that_is_under_way_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    plain = time.time
    with store.workspace("name") as folder:
        (folder / "file").write_text("unfinished")
        monkeypatch.setattr(time, "time", lambda: plain() + 10 * YEAR)
        assert store.gc() == []
        assert (folder / "file").exists()

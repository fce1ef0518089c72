"""Whenever the power fails, each result file is the old one or the new one, and the next run gives the same table."""

from pathlib import Path

import pytest

from closerlook.representations import atomic
from tests.faults.power import CUTS, Cut, Event, Record, after_cut, restore
from tests.faults.small import Study, run

SHORT, LONG = 3, 60
"""How many moments the short and the long form continue the study from, for each kind of cut."""

UNPROTECTED = ("journal", "work")
"""Folders with unfinished work, which is verified when it is continued."""


def is_protected(path: Path) -> bool:
    """Whether a file must be complete or absent, whatever happens."""
    return not (set(path.parts) & set(UNPROTECTED) or path.name.endswith(".part"))


def broken_promises(events: list[Event], cut: Cut) -> list[str]:
    """For every moment: the files that are neither the old nor the new one, or that have disappeared."""
    found: list[str] = []
    versions: dict[Path, set[bytes]] = {}
    promised: dict[Path, int] = {}
    for i, event in enumerate(events):
        if event.kind == "rename" and is_protected(event.path):
            versions.setdefault(event.path, set()).add(event.content)
        if event.kind == "entries":
            promised |= {path: i for path in versions if path.parent == event.path and path not in promised}
        _, files = after_cut(events, i + 1, cut)
        for path in filter(is_protected, files):
            if files[path] not in versions.get(path, ()):
                found.append(f"{path} is damaged after operation {i}")
        found += [f"{path} has disappeared after operation {i}" for path in promised if path not in files]
    return found


@pytest.fixture(scope="module")
def record(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The operations of a study and of a second run, which writes the table and the manifest again."""
    out = tmp_path_factory.mktemp("power") / "out"
    out.mkdir()
    with Record(out).recording() as record:
        for _ in range(2):
            assert run(study.plan, out).code == 0
    return record


@pytest.mark.parametrize("cut", CUTS)
def test_every_file_is_the_old_or_the_new_one_at_every_moment(record: Record, cut: Cut) -> None:
    assert {"manifest.json", "results.parquet", "results.csv"} <= {event.path.name for event in record.events}
    assert len([event for event in record.events if event.path.suffix == ".safetensors"]) > 4
    assert broken_promises(record.events, cut) == []


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("n", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
def test_a_study_continues_after_a_power_failure(
    study: Study, record: Record, tmp_path: Path, n: int, cut: Cut
) -> None:
    for i in range(n):
        restore(tmp_path / "out", after_cut(record.events, len(record.events) * (i + 1) // (n + 1), cut))
        again = run(study.plan, tmp_path / "out")
        assert again.code == 0, again.errors
        assert "damaged" not in again.errors
        study.check(tmp_path / "out", was_killed=True)


@pytest.mark.parametrize("left_out", ["files", "folders"])
def test_the_record_shows_what_is_lost_without_flushing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_out: str
) -> None:
    plain = atomic.sync

    def partly(path: Path) -> None:
        if path.is_dir() == (left_out == "files"):
            plain(path)

    monkeypatch.setattr(atomic, "sync", partly)
    with Record(tmp_path).recording() as record:
        for content in (b"old", b"new"):
            with atomic.atomic_write(tmp_path / "folder" / "file") as stream:
                stream.write(content)
    found = {cut: broken_promises(record.events, cut) for cut in CUTS}
    if left_out == "files":
        assert "folder/file is damaged" in found["synced"][0]
    else:
        _, files = after_cut(record.events, len(record.events), "synced")
        assert files == {}


def test_a_file_that_is_replaced_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    with Record(tmp_path).recording() as record:
        for content in (b"old", b"new"):
            with atomic.atomic_write(tmp_path / "folder" / "file") as stream:
                stream.write(content)
    seen = [after_cut(record.events, k, "synced")[1].get(Path("folder/file")) for k in range(len(record.events) + 1)]
    assert [content for i, content in enumerate(seen) if content not in seen[:i]] == [None, b"old", b"new"]
    assert seen[-1] == b"new"
    assert all(broken_promises(record.events, cut) == [] for cut in CUTS)

"""The store returns exactly what was put in, also while other processes use it."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import pytest

from closerlook.encoders.source import EncoderInfo
from closerlook.errors import InputError, WorkError
from closerlook.representations.space import Provenance, Space
from closerlook.representations.store import Store, content_key
from closerlook.representations.writer import SpaceWriter

KEY = content_key({"a": 1})
MADE = Provenance(encoder="e", task="t", split="train", layer=0, pool="mean")
LABELS = ("A", "B")


def put(store: Store, key: str = KEY, fill: float = 1.0) -> Path:
    with store.workspace(key[:8]) as folder:
        writer = SpaceWriter.open(
            folder / f"{key}.safetensors",
            3,
            y=np.array([0, 1, 1, 0], np.int32),
            labels=LABELS,
            provenance=MADE,
            key=key,
        )
        writer.X[:] = fill
        store.commit(writer)
    return store.root / "spaces" / key[:2] / f"{key}.safetensors"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_what_is_put_comes_back_memory_mapped(store: Store) -> None:
    put(store)
    space = store.get(KEY)
    assert space is not None
    assert isinstance(space.X, np.memmap)
    assert space.X.tolist() == [[1, 1, 1]] * 4
    assert (space.y.tolist(), space.labels, space.provenance) == ([0, 1, 1, 0], LABELS, MADE)


def test_an_empty_store_has_nothing(store: Store) -> None:
    assert store.get(KEY) is None
    assert list(store.entries()) == []
    assert not store.root.exists()


def test_every_single_altered_byte_is_noticed(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    file = put(store)
    good = file.read_bytes()
    for position in range(0, len(good), 7):
        bad = bytearray(good)
        bad[position] ^= 0x04
        file.write_bytes(bad)
        assert store.get(KEY) is None, position
    assert "it will be computed again" in caplog.text
    file.write_bytes(good)
    assert store.get(KEY) is not None


@pytest.mark.parametrize("length", [0, 4, 100, -1])
def test_a_truncated_file_is_noticed(store: Store, length: int) -> None:
    file = put(store)
    file.write_bytes(file.read_bytes()[:length])
    assert store.get(KEY) is None


def test_a_file_under_another_name_is_noticed(store: Store) -> None:
    other = content_key({"a": 2})
    target = store.root / "spaces" / other[:2] / f"{other}.safetensors"
    target.parent.mkdir(parents=True)
    target.write_bytes(put(store).read_bytes())
    assert store.get(other) is None
    assert [problem for path, problem in store.verify() if path == target] == [
        "holds a different space than its name says"
    ]


def test_a_damaged_space_is_replaced_by_putting_it_again(store: Store) -> None:
    put(store).write_bytes(b"junk")
    assert store.get(KEY) is None
    put(store, fill=2.0)
    space = store.get(KEY)
    assert space is not None
    assert space.X[0, 0] == 2


def test_a_folder_in_place_of_a_space_is_kept_under_another_name(store: Store) -> None:
    file = put(store)
    file.unlink()
    file.mkdir()
    assert store.get(KEY) is None
    assert dict(store.verify()) == {file: "is a folder"}
    put(store)
    assert store.get(KEY) is not None
    assert len(list(file.parent.glob("*.damaged"))) == 1


def test_gc_removes_a_folder_in_place_of_a_space(store: Store) -> None:
    file = put(store)
    file.unlink()
    file.mkdir()
    assert [(item.path, item.reason) for item in store.gc()] == [(file, "is a folder")]
    assert not file.exists()


def test_notes_about_encoders_that_were_swapped_are_forgotten(store: Store) -> None:
    other = content_key({"a": 2})
    for key, layers in ((KEY, 2), (other, 3)):
        store.save_info(key, EncoderInfo(layers=layers, width=8, window=64, has_cls=True, parameters=100))
    first, second = (store.root / "facts" / key[:2] / f"{key}.json" for key in (KEY, other))
    first.write_bytes(second.read_bytes())
    assert store.load_info(KEY) is None
    assert store.load_info(other) is not None


def test_keys_do_not_depend_on_the_order_of_fields() -> None:
    assert content_key({"a": 1, "b": "é"}) == content_key({"b": "é", "a": 1}) != content_key({"a": 1, "b": "e"})


def test_facts_are_remembered_and_a_damaged_note_is_forgotten(store: Store) -> None:
    info = EncoderInfo(layers=2, width=8, window=64, has_cls=True, parameters=100)
    assert store.load_info(KEY) is None
    store.save_info(KEY, info)
    assert store.load_info(KEY) == info
    note = store.root / "facts" / KEY[:2] / f"{KEY}.json"
    note.write_text(note.read_text().replace('"layers": 2', '"layers": 3'))
    assert store.load_info(KEY) is None
    note.write_text("{")
    assert store.load_info(KEY) is None


def test_an_interrupted_workspace_is_found_again(store: Store) -> None:
    with pytest.raises(KeyboardInterrupt), store.workspace("w") as folder:
        (folder / "half").write_text("half")
        raise KeyboardInterrupt
    with store.workspace("w") as folder:
        assert (folder / "half").read_text() == "half"
    assert not folder.exists()


def test_a_second_worker_gets_a_folder_of_its_own_and_tidies_it(store: Store) -> None:
    with store.workspace("w") as first, store.workspace("w") as second:
        assert first != second
        assert second.is_dir()
    assert not first.exists()
    assert not second.exists()
    with pytest.raises(RuntimeError, match="stop"), store.workspace("w") as first, store.workspace("w") as second:
        raise RuntimeError("stop")
    assert first.exists()
    assert not second.exists()


def test_an_unfinished_file_of_different_content_is_started_again(store: Store, tmp_path: Path) -> None:
    y = np.array([0, 1], np.int32)
    first = SpaceWriter.open(tmp_path / "d", 2, y=y, labels=LABELS, provenance=MADE, key=KEY)
    first.X[:] = 7
    same = SpaceWriter.open(tmp_path / "d", 2, y=y, labels=LABELS, provenance=MADE, key=KEY)
    assert (first.fresh, same.fresh, same.X[0, 0]) == (True, False, 7)
    other = SpaceWriter.open(tmp_path / "d", 2, y=y, labels=LABELS, provenance=replace(MADE, layer=1), key=KEY)
    assert (other.fresh, other.X[0, 0]) == (True, 0)


def test_a_space_larger_than_the_disk_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match=r"cannot be written \([\d,]+ bytes\): (No space left|File too large)"):
        SpaceWriter.open(
            tmp_path / "d", 1 << 40, y=np.zeros(1 << 10, np.int32), labels=LABELS, provenance=MADE, key=KEY
        )
    assert list(tmp_path.iterdir()) == []


WRITER = """
import sys; sys.path.insert(0, sys.argv[3])
from tests.representations.test_store import put
from closerlook.representations.store import Store, content_key
for i in range(40):
    put(Store(sys.argv[1]), content_key({"a": i % 5}), fill=float(i % 5))
print("done", sys.argv[2])
"""


def test_many_processes_may_write_and_read_the_same_spaces(store: Store) -> None:
    root = str(Path(__file__).parents[2])
    workers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(store.root), str(i), root], stdout=subprocess.PIPE)
        for i in range(3)
    ]
    seen = 0
    while any(worker.poll() is None for worker in workers):
        for i in range(5):
            space = store.get(content_key({"a": i}))
            if space is not None:
                assert (i == space.X).all()
                seen += 1
    assert all(worker.wait() == 0 for worker in workers)
    for worker in workers:
        worker.communicate()
    assert seen > 0
    assert all(problem is None for _, problem in store.verify())
    assert len(list(store.entries())) == 5
    assert [path for path in (store.root / "work").iterdir() if path.suffix != ".lock"] == []


def test_a_space_that_another_process_replaces_is_read_whole(store: Store, tmp_path: Path) -> None:
    """Two processes may compute the same space, with numbers that differ in the last digits on a GPU."""
    final = put(store, fill=1.0)
    versions = [final.read_bytes(), put(store, fill=2.0).read_bytes()]
    stop = threading.Event()

    def replace_again_and_again() -> None:
        number = 0
        while not stop.is_set():
            part = tmp_path / "part"
            part.write_bytes(versions[number % 2])
            os.replace(part, final)
            number += 1

    writer = threading.Thread(target=replace_again_and_again)
    writer.start()
    try:
        spaces = [store.get(KEY) for _ in range(2000)]
    finally:
        stop.set()
        writer.join()
    assert {float(value) for space in spaces if space is not None for value in np.unique(space.X)} == {1.0, 2.0}
    assert None not in spaces


def test_verify_names_what_is_wrong_and_gc_removes_it(store: Store) -> None:
    good, bad = put(store), put(store, content_key({"a": 2}))
    bad.write_bytes(bad.read_bytes()[:-1])
    assert dict(store.verify()) == {good: None, bad: "is truncated or was altered: it does not match its checksum"}
    assert [item.path for item in store.gc(dry_run=True)] == [bad]
    assert bad.exists()
    assert [item.path for item in store.gc()] == [bad]
    assert (good.exists(), bad.exists()) == (True, False)


def test_gc_removes_the_longest_unused_first(store: Store) -> None:
    files = [put(store, content_key({"a": i})) for i in range(3)]
    for days, file in zip((40, 20, 1), files, strict=True):
        os.utime(file, (time.time() - days * 86400,) * 2)
    assert [item.path for item in store.gc(unused_days=30, dry_run=True)] == [files[0]]
    assert [item.path for item in store.gc(max_bytes=files[0].stat().st_size * 2, dry_run=True)] == [files[0]]
    assert store.get(content_key({"a": 0})) is not None  # now the most recently used
    assert [item.path for item in store.gc(max_bytes=files[0].stat().st_size * 2)] == [files[1]]


def test_gc_sweeps_abandoned_work_but_not_work_that_is_held_or_fresh(store: Store) -> None:
    for name in ("old", "held", "fresh"):
        (store.root / "work" / name).mkdir(parents=True)
        (store.root / "work" / name / "half").write_text("half")
    stray = store.root / "spaces" / "ab" / ".x.123.part"
    stray.parent.mkdir(parents=True)
    stray.write_text("half")
    for path in [stray, *(store.root / "work").rglob("*")]:
        if "fresh" not in str(path):
            os.utime(path, (1.0, 1.0))
    for name in ("old", "held", "fresh"):
        lock = store.root / "work" / f"{name}.lock"
        lock.touch()
        os.utime(lock, (1.0, 1.0))
    with filelock.FileLock(f"{store.root / 'work' / 'held'}.lock"):
        assert sorted(item.path.name for item in store.gc(dry_run=True)) == [".x.123.part", "old"]
        assert (store.root / "work" / "old").exists()
        swept = store.gc()
    assert sorted(item.path.name for item in swept) == [".x.123.part", "old"]
    assert sorted(path.name for path in (store.root / "work").iterdir()) == ["fresh", "fresh.lock", "held", "held.lock"]


def test_gc_removes_both_folders_of_a_killed_process_but_leaves_no_lock_files_in_a_dry_run(store: Store) -> None:
    code = (
        "import os, sys\nfrom closerlook.representations.store import Store\nstore = Store(sys.argv[1])\n"
        "with store.workspace('w') as first, store.workspace('w') as second:\n"
        "    (first / 'half').write_text('half')\n"
        "    (second / 'half').write_text('half')\n"
        "    os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(store.root)], check=True)
    work = store.root / "work"
    (work / "without-lock").mkdir()
    folders = sorted(path for path in work.iterdir() if path.is_dir())
    assert len(folders) == 3
    assert store.gc() == []
    for path in work.rglob("*"):
        os.utime(path, (1.0, 1.0))
    before = sorted(work.iterdir())
    assert [item.path for item in store.gc(dry_run=True)] == folders
    assert sorted(work.iterdir()) == before
    assert [item.path for item in store.gc()] == folders
    assert list(work.iterdir()) == []


def test_gc_leaves_the_separate_folder_of_a_process_that_still_works_there(store: Store) -> None:
    with store.workspace("w") as first, store.workspace("w") as second:
        for path in (store.root / "work").rglob("*"):
            os.utime(path, (1.0, 1.0))
        assert store.gc() == []
        assert first.is_dir()
        assert second.is_dir()
    assert list((store.root / "work").glob("w-*")) == []


def test_entries_describe_the_spaces(store: Store) -> None:
    file = put(store)
    (entry,) = store.entries()
    assert (entry.key, entry.path, entry.n, entry.d, entry.provenance) == (KEY, file, 4, 3, MADE)
    assert entry.size == file.stat().st_size


def test_a_store_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; expected a folder"):
        Store(tmp_path / "file")


def test_a_store_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        WorkError, match=r"store .* cannot be written: Not a directory; set --store or CLOSERLOOK_STORE"
    ):
        with Store(tmp_path / "file" / "store").workspace("w"):
            pass


def test_a_space_in_use_survives_gc(store: Store) -> None:
    put(store)
    space = store.get(KEY)
    store.gc(unused_days=0)
    assert store.get(KEY) is None
    assert isinstance(space, Space)
    assert space.X.sum() == 12


def test_a_file_that_cannot_be_opened_is_not_taken_for_damaged(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(store)
    plain = Path.open

    def refusing(self: Path, *args: Any, **kwargs: Any) -> Any:
        if self == file:
            raise PermissionError(13, "Permission denied")
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refusing)
    assert list(store.verify()) == [(file, "cannot be read: Permission denied")]
    assert store.gc() == []
    assert file.exists()
    with pytest.raises(WorkError, match="is in the store but cannot be read: Permission denied"):
        store.get(KEY)


def test_a_space_keeps_one_file_open(store: Store) -> None:
    put(store)
    before = len(os.listdir("/proc/self/fd"))
    spaces = [store.get(KEY) for _ in range(20)]
    assert len(os.listdir("/proc/self/fd")) - before <= 20
    assert all(space is not None for space in spaces)


def test_facts_that_cannot_be_kept_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    Store(tmp_path / "file" / "store").save_info(
        KEY, EncoderInfo(layers=2, width=8, window=64, has_cls=True, parameters=100)
    )

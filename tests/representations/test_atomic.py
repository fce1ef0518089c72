"""Files appear complete or not at all, carry a checksum, and are set aside if they are damaged."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from closerlook.errors import DamagedFileError, WorkError
from closerlook.representations.atomic import atomic_write, move_into_place, set_aside
from closerlook.representations.checked_json import read_checked, write_checked


def test_an_error_while_writing_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="stop"), atomic_write(file) as stream:
        stream.write(b"half")
        raise RuntimeError("stop")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_is_moved_into_its_place_with_its_files(tmp_path: Path) -> None:
    (tmp_path / "part" / "inner").mkdir(parents=True)
    (tmp_path / "part" / "inner" / "file").write_bytes(b"content")
    move_into_place(tmp_path / "part", tmp_path / "folder")
    assert (tmp_path / "folder" / "inner" / "file").read_bytes() == b"content"
    assert not (tmp_path / "part").exists()


@pytest.mark.parametrize(("code", "is_error"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_system_that_cannot_flush_folders_is_no_error_but_a_broken_disk_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, is_error: bool
) -> None:
    plain = os.fsync

    def failing(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(code, os.strerror(code))
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    if is_error:
        with (
            pytest.raises(WorkError, match="file cannot be written: Input/output error"),
            atomic_write(tmp_path / "file"),
        ):
            pass
    else:
        with atomic_write(tmp_path / "file") as stream:
            stream.write(b"content")
        assert (tmp_path / "file").read_bytes() == b"content"


def test_files_and_folders_are_set_aside_under_names_of_their_own(tmp_path: Path) -> None:
    names = set()
    for _ in range(2):
        (tmp_path / "file").write_bytes(b"damaged")
        names.add(set_aside(tmp_path / "file"))
    (tmp_path / "file").mkdir()
    names.add(set_aside(tmp_path / "file"))
    assert set(tmp_path.iterdir()) == names
    assert len(names) == 3
    assert all(path.suffix == ".damaged" for path in names)


def test_what_cannot_be_renamed_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="nothing is damaged and cannot be renamed: No such file or directory"):
        set_aside(tmp_path / "nothing")


CONTENT = {"text": "é\n\0", "numbers": [1, 0.1, None], "nested": {"checksum": "0" * 32}}


@pytest.mark.parametrize("indent", [None, 1])
def test_what_is_written_is_read_again(tmp_path: Path, indent: int | None) -> None:
    write_checked(tmp_path / "file", CONTENT, indent=indent)
    assert read_checked(tmp_path / "file") == CONTENT


def test_a_checksum_that_was_read_is_not_written_again(tmp_path: Path) -> None:
    write_checked(tmp_path / "file", CONTENT | {"checksum": "old"})
    assert read_checked(tmp_path / "file") == CONTENT


def test_every_altered_byte_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_checked(file, CONTENT, indent=1)
    intact = file.read_bytes()
    for position in range(len(intact)):
        damaged = bytearray(intact)
        damaged[position] ^= 0x08
        file.write_bytes(damaged)
        with pytest.raises(DamagedFileError, match=r"file (has no|does not match its) checksum"):
            read_checked(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[" * 100_000, "is not JSON .it is nested too deeply."),
        (b"null", "contains NoneType; expected a JSON object"),
    ],
)
def test_a_file_without_checksum_is_damaged_unless_it_is_from_an_earlier_version(
    tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(DamagedFileError, match="has no checksum: it is damaged, or from an earlier version"):
        read_checked(file)
    with pytest.raises(DamagedFileError, match=message):
        read_checked(file, required=False)
    file.write_bytes(b'{"a": 1}')
    old: dict[str, Any] = read_checked(file, required=False)
    assert old == {"a": 1}


def test_a_folder_in_place_of_a_file_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match="is a folder; expected a file"):
        read_checked(tmp_path)

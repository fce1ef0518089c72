"""Hostile labels and files of vectors: labels stay apart, and a file that would take too much memory is refused."""

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from closerlook import DirectProbe, Space
from closerlook.errors import CloserLookError, InputError
from closerlook.geometry import cluster
from closerlook.probes.control import control_labels
from closerlook.representations.distances import read_distances
from closerlook.representations.files import DamagedFileError
from closerlook.representations.memory import MAX_MEMORY, parse_memory
from closerlook.representations.points import load_points

NULS = ["a\0", "a", "b", "a\0\0", "\0"]
CONTROL = ["a\x1b[31m", "a\u202e", "a\x7f", "a\ufffe", "\x85b"]
X = np.arange(10.0).reshape(5, 2)


# ---- labels ----


@pytest.mark.parametrize("labels", [NULS, CONTROL])
@pytest.mark.parametrize("name", ["s.npz", "s.safetensors"])
def test_labels_and_words_with_control_characters_stay_apart_in_files(
    tmp_path: Path, labels: list[str], name: str
) -> None:
    space = Space.from_arrays(X, labels, words=labels)
    assert space.labels == tuple(sorted(labels))
    assert space.label_names.tolist() == labels
    loaded = Space.load(space.save(tmp_path / name))
    assert loaded.labels == space.labels
    assert loaded.label_names.tolist() == labels
    assert loaded.words == tuple(labels)
    points = load_points(tmp_path / name)
    assert points.y.tolist() == labels
    assert points.labels == sorted(labels)


def test_labels_that_end_in_nul_stay_apart_in_a_text_folder(tmp_path: Path) -> None:
    space = Space.from_arrays(X, NULS)
    assert Space.load(space.save(tmp_path / "folder")).label_names.tolist() == NULS


def test_labels_that_end_in_nul_stay_apart_in_the_probes() -> None:
    assert cluster(X, NULS).n_labels == 5
    assert cluster(X, np.array(NULS, dtype=object)).n_labels == 5
    probe = DirectProbe().fit(X, NULS)
    assert probe.classes_.tolist() == sorted(NULS)
    assert probe.predict(X).tolist() == NULS


def test_words_that_end_in_nul_are_different_types_of_the_control_task() -> None:
    words = [f"w{at}" + "\0" * end for at in range(20) for end in (0, 1)]
    drawn = control_labels([words], list(range(40)), seed=0)[0]
    assert any(drawn[at] != drawn[at + 1] for at in range(0, 40, 2))


def test_half_a_surrogate_pair_is_kept_in_npz_and_refused_in_text(tmp_path: Path) -> None:
    space = Space.from_arrays(np.eye(2), ["a", "\ud800"])
    assert Space.load(space.save(tmp_path / "s.npz")).labels == ("a", "\ud800")
    with pytest.raises(InputError, match="half a surrogate pair, which cannot be written as text; use .npz"):
        space.save(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


# ---- bombs ----


def refused(read: Callable[[], object]) -> str:
    """The message of the refusal, one line, for which less than 200 MB were taken."""
    tracemalloc.start()
    try:
        with pytest.raises(CloserLookError) as caught:
            read()
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1000
    return message


def zipped(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npy_header(shape: tuple[int, ...], dtype: str = "<f4") -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def bomb(path: Path, size: int) -> Path:
    """A .npz whose X expands to that many zero bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        with archive.open("X.npy", "w", force_zip64=True) as stream:
            stream.write(npy_header((size // 4, 1)))
            zeros = bytes(1 << 20)
            for _ in range(size >> 20):
                stream.write(zeros)
        archive.writestr("y.npy", npy(np.zeros(3)))
    return path


def test_an_archive_that_expands_beyond_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = bomb(tmp_path / "bomb.npz", 64 << 20)
    assert path.stat().st_size < 100_000
    for read in (lambda: load_points(path, max_memory=1000), lambda: Space.load(path, max_memory=1000)):
        assert refused(read) == (
            f"{path} takes 67,108,888 bytes in memory; the limit is 1,000 bytes: if you trust the file, pass "
            "--max-memory with more (max_memory= in Python)"
        )


@pytest.mark.slow  # writing four gigabytes takes longer than reading their header
def test_four_gigabytes_in_four_megabytes_are_refused_by_default(tmp_path: Path) -> None:
    path = bomb(tmp_path / "bomb.npz", 4_100 << 20)
    assert "takes 4.3 GB in memory; the limit is 2.0 GB" in refused(lambda: load_points(path))


def test_a_header_that_claims_more_than_the_file_has_is_refused(tmp_path: Path) -> None:
    small = npy(np.zeros(3))
    for shape in ((1 << 40, 1), (-1, -5), (3, 1 << 62)):
        path = zipped(tmp_path / "claim.npz", {"X": npy_header(shape) + bytes(64), "y": small})
        assert "for which the file has too few bytes" in refused(lambda path=path: load_points(path))


def test_a_large_file_may_take_twice_its_size_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("closerlook.representations.memory.MAX_MEMORY", 100)
    np.savez(tmp_path / "plain.npz", X=np.ones((50, 4)), y=np.arange(50) % 2)
    assert len(load_points(tmp_path / "plain.npz").X) == 50
    np.savez_compressed(tmp_path / "zeros.npz", X=np.zeros((5000, 4)), y=np.arange(5000) % 2)
    assert "the limit is" in refused(lambda: load_points(tmp_path / "zeros.npz"))
    assert len(load_points(tmp_path / "zeros.npz", max_memory=MAX_MEMORY).X) == 5000


def test_methods_of_compression_that_numpy_does_not_use_are_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "b.npz", {"X": npy(np.eye(3)), "y": npy(np.arange(3))}, zipfile.ZIP_BZIP2)
    assert "X is compressed in a way that numpy does not use" in refused(lambda: load_points(path))


@pytest.mark.parametrize(
    "header", ["(" * 5000, "{'descr': " + "[" * 4000, "{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}", "1"]
)
def test_a_malformed_header_of_an_array_is_refused(tmp_path: Path, header: str) -> None:
    text = header.encode()
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    path = zipped(tmp_path / "bad.npz", {"X": content, "y": npy(np.arange(3))})
    assert "cannot be read" in refused(lambda: load_points(path))


DEEP = "[" * 200_000 + "]" * 200_000


def safetensors(path: Path, header: object, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


TENSORS = {
    "X": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
    "y": {"dtype": "I32", "shape": [2], "data_offsets": [8, 16]},
}


@pytest.mark.parametrize(
    "header",
    [
        DEEP.encode(),
        {"__metadata__": 5, **TENSORS},
        {"__metadata__": None, **TENSORS},
        {"__metadata__": {"checksum": "0" * 32, "labels": DEEP, "provenance": "{}"}, **TENSORS},
        {"__metadata__": {"checksum": "0" * 32, "labels": '["a", "b"]', "provenance": DEEP}, **TENSORS},
        {"__metadata__": {"checksum": 5}, **TENSORS},
        {"X": {"dtype": "F32", "shape": [-1, 1 << 70], "data_offsets": [0, 8]}, "y": TENSORS["y"]},
    ],
    ids=["deep", "metadata 5", "metadata null", "deep labels", "deep provenance", "checksum 5", "shape"],
)
def test_malformed_headers_of_safetensors_files_are_refused(tmp_path: Path, header: object) -> None:
    path = safetensors(tmp_path / "s.safetensors", header, bytes(16))
    assert str(path) in refused(lambda: Space.load(path))


@pytest.mark.parametrize(
    "changes", [{"labels": "[1, 2]"}, {"labels": '["a", "a"]'}, {"labels": '["a"]'}, {"provenance": '{"layer": "x"}'}]
)
def test_metadata_that_match_their_checksum_but_make_no_sense_are_refused(
    tmp_path: Path, changes: dict[str, str]
) -> None:
    from closerlook.representations.files import header, with_checksum
    from closerlook.representations.space import Provenance

    vectors, y = np.zeros((2, 1), dtype=np.float32), np.array([0, 1], dtype=np.int32)
    start = header(2, 1, ("a", "b"), Provenance())
    for key, value in changes.items():
        old = {"labels": '["a", "b"]', "provenance": json.dumps(Provenance().to_dict())}[key]
        start = start.replace(json.dumps(old).encode(), json.dumps(value).encode())
    text = start[8:]
    start = len(text).to_bytes(8, "little") + text
    path = tmp_path / "s.safetensors"
    path.write_bytes(with_checksum(start, vectors, y) + vectors.tobytes() + y.tobytes())
    with pytest.raises(DamagedFileError):
        Space.load(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("provenance", np.array(DEEP), "its provenance or labels cannot be read"),
        ("provenance", np.array("5"), "its provenance or labels cannot be read"),
        ("labels", np.array(DEEP), "its provenance or labels cannot be read"),
        ("labels", np.array("5"), "expected (n,) strings"),
        ("labels", np.eye(2), "expected (n,) strings"),
        ("y", np.array([0, 2**32 + 1, 0]), "y runs from 0 to 4294967297"),
        ("y", np.array([0.0, 1.0, 0.0]), "expected whole numbers, the indices of labels"),
    ],
)
def test_malformed_parts_of_a_saved_space_are_refused(
    tmp_path: Path, name: str, value: np.ndarray[Any, Any], message: str
) -> None:
    path = Space.from_arrays(np.eye(3), ["a", "b", "a"], task="t").save(tmp_path / "s.npz")
    with np.load(path) as saved:
        arrays = dict(saved)
    np.savez(path, **(arrays | {name: value}))
    assert message in refused(lambda: Space.load(path))


def test_deep_provenance_and_deep_distances_are_refused(tmp_path: Path) -> None:
    folder = Space.from_arrays(np.eye(2), ["a", "b"]).save(tmp_path / "folder")
    (folder / "provenance/train/0.json").write_text(DEEP)
    assert "expected JSON, or no such file" in refused(lambda: Space.load(folder))
    (tmp_path / "d.json").write_text(DEEP)
    assert "it is nested too deeply" in refused(lambda: read_distances(tmp_path / "d.json"))


@pytest.mark.parametrize("text", ["", "GB", "-1", "1e9", "4 XB", "9" * 40, "٤GB"])
def test_a_limit_that_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no size; expected a number with a unit, such as 4GB or 500MB"):
        parse_memory(text)

"""A Space keeps vectors, labels and provenance together, in memory and in every file format."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from closerlook.errors import CloserLookError, InputError, WorkError
from closerlook.representations.atomic import atomic_write
from closerlook.representations.files import DamagedFileError
from closerlook.representations.space import Provenance, Space

MADE = Provenance(
    encoder="bert-tiny", weights="ab", layer=2, task="toy-pos", split="train", pool="mean", versions={"numpy": "2"}
)


def space(n: int = 5, d: int = 3) -> Space:
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    return Space(X, (np.arange(n) % 2).astype(np.int32), ("NOUN", "VERB", "never seen"), MADE)


def assert_same(loaded: Space, expected: Space) -> None:
    np.testing.assert_array_equal(loaded.X, expected.X)
    np.testing.assert_array_equal(loaded.y, expected.y)
    assert loaded.labels == expected.labels
    assert loaded.provenance == expected.provenance


@pytest.mark.parametrize("name", ["space.npz", "space.safetensors"])
def test_a_saved_space_comes_back_whole(tmp_path: Path, name: str) -> None:
    assert_same(Space.load(space().save(tmp_path / name)), space())


def test_a_directprobe_folder_brings_vectors_labels_and_provenance_back(tmp_path: Path) -> None:
    expected = space(50)
    loaded = Space.load(expected.save(tmp_path / "folder"))
    np.testing.assert_array_equal(loaded.X, expected.X)
    assert loaded.label_names.tolist() == expected.label_names.tolist()
    assert set(loaded.labels) == set(expected.labels)
    assert loaded.provenance == expected.provenance


def test_a_directprobe_folder_is_laid_out_as_its_code_reads_it(tmp_path: Path) -> None:
    space(2, 2).save(tmp_path / "folder")
    folder = tmp_path / "folder"
    assert (folder / "labels" / "tags.txt").read_text().splitlines() == ["NOUN", "VERB", "never seen"]
    assert (folder / "entities" / "train.txt").read_text() == "0\tNOUN\n1\tVERB\n"
    rows = (folder / "embeddings" / "layers" / "train" / "2.txt").read_text().splitlines()
    np.testing.assert_array_equal(np.array([row.split() for row in rows], dtype=np.float32), space(2, 2).X)


def published(folder: Path, vectors: dict[str, str]) -> Path:
    """A folder in the layout that DirectProbe's authors published."""
    files = {"labels/tags.txt": "B\r\nA\r\n", "entities/train.txt": "some words\tA\nothers\tB\n"} | vectors
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_published_directprobe_folder_is_read(tmp_path: Path) -> None:
    layers = {f"embeddings/layers/train/{layer}.txt": f"{layer} 1\n0 2.5\n" for layer in (0, 12)}
    loaded = Space.load(published(tmp_path, layers), layer=12)
    assert loaded.X.tolist() == [[12, 1], [0, 2.5]]
    assert loaded.label_names.tolist() == ["A", "B"]
    assert (loaded.provenance.layer, loaded.provenance.split) == (12, "train")


def test_a_directprobe_folder_of_one_model_needs_no_layer(tmp_path: Path) -> None:
    loaded = Space.load(
        published(tmp_path, {"embeddings/elmo/train.txt": "1 2\n3 4\n", "embeddings/elmo/test.txt": "x"})
    )
    assert loaded.X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has no embeddings for split train"),
        ({"embeddings/a/train.txt": "1\n2\n", "embeddings/b/train.txt": "1\n2\n"}, "has several embeddings for split"),
        ({"embeddings/train.txt": "1 x\n2 3\n"}, r"train.txt cannot be read as numbers"),
        ({"embeddings/train.txt": "1\n2\n3\n"}, "X has 3 rows and y has 2 labels"),
        (
            {"embeddings/train.txt": "1\n2\n", "entities/train.txt": "a\tC\nb\tA\n"},
            "has label 'C', which .* does not list",
        ),
        ({"embeddings/train.txt": "1\n2\n", "entities/train.txt": "\udcff"}, r"train.txt cannot be read"),
        ({"labels/more.txt": "A"}, "has several labels"),
    ],
)
def test_unfit_directprobe_folders_are_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    folder = published(tmp_path, {name: text for name, text in files.items() if "\udcff" not in text})
    if "\udcff" in "".join(files.values()):
        (folder / "entities" / "train.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=message):
        Space.load(folder)


def test_a_label_that_text_cannot_carry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"label 'a\\tb' cannot be written as text"):
        Space.from_arrays([[1.0]], ["a\tb"]).save(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_our_safetensors_are_read_by_the_library_and_lie_aligned(tmp_path: Path) -> None:
    file = space().save(tmp_path / "s.safetensors")
    loaded = safetensors.numpy.load_file(file)
    np.testing.assert_array_equal(loaded["X"], space().X)
    np.testing.assert_array_equal(loaded["y"], space().y)
    loaded = Space.load(file)
    assert isinstance(loaded.X, np.memmap)
    assert loaded.X.ctypes.data % 64 == 0


def test_safetensors_of_others_are_read(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"X": np.eye(2), "y": np.array([7, 9])}, tmp_path / "s.safetensors")
    loaded = Space.load(tmp_path / "s.safetensors")
    assert loaded.labels == ("7", "9")
    assert loaded.X.dtype == np.float32


def test_npz_of_others_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", X=np.eye(3), y=np.array(["b", "a", "b"]), X_test=np.eye(3))
    loaded = Space.load(tmp_path / "s.npz")
    assert loaded.labels == ("a", "b")
    assert loaded.y.tolist() == [1, 0, 1]
    assert loaded.provenance == Provenance()


@pytest.mark.parametrize("position", [0, 20, 300, -40, -1])
def test_an_altered_or_cut_safetensors_file_is_noticed(tmp_path: Path, position: int) -> None:
    file = space(40, 8).save(tmp_path / "s.safetensors")
    blob = bytearray(file.read_bytes())
    blob[position] ^= 0x10
    file.write_bytes(blob)
    with pytest.raises(InputError):
        Space.load(file)
    blob[position] ^= 0x10
    file.write_bytes(blob[:-4])
    with pytest.raises(DamagedFileError, match="is truncated or was altered"):
        Space.load(file)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([".npz", ".safetensors"]))
def test_any_bytes_are_a_space_or_our_error(tmp_path_factory: pytest.TempPathFactory, blob: bytes, suffix: str) -> None:
    file = tmp_path_factory.mktemp("any") / f"s{suffix}"
    file.write_bytes(blob)
    with pytest.raises(CloserLookError):
        Space.load(file)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_npz_is_a_space_or_our_error(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    file = space().save(tmp_path_factory.mktemp("damaged") / "s.npz")
    blob = bytearray(file.read_bytes())
    for _ in range(3):
        blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(blob)
    with suppress(CloserLookError):
        Space.load(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"X": np.eye(2)}, "lacks y; it holds X"),
        ({"a": np.eye(2)}, "lacks X and y; it holds a"),
        ({"X": np.eye(2), "y": np.array([1, "a"], dtype=object)}, "y holds Python objects"),
        (
            {"X": np.eye(2), "y": np.array([0, 1]), "labels": np.array(["a", "a"]), "provenance": np.array("{}")},
            "labels has 'a' twice; expected each label once",
        ),
        ({"X": np.eye(2), "y": np.zeros(3)}, "X has 2 rows and y has 3 labels"),
        (
            {"X": np.eye(2), "y": np.array([0, 5]), "labels": np.array(["a"]), "provenance": np.array("{}")},
            "y runs from 0 to 5",
        ),
        (
            {"X": np.eye(2), "y": np.zeros(2), "labels": np.array(["a"]), "provenance": np.array("[")},
            "provenance or labels",
        ),
    ],
)
def test_unfit_npz_files_are_refused(tmp_path: Path, content: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "s.npz", **content)
    with pytest.raises(InputError, match=message):
        Space.load(tmp_path / "s.npz")


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([1.0, 2.0], [0, 1], r"X has shape \(2,\); expected \(n, d\)"),
        (np.empty((0, 3)), [], r"X has shape \(0, 3\)"),
        ([["a"]], [0], "X holds <U1; expected real numbers"),
        ([[1j]], [0], "X holds complex128; expected real numbers"),
        ([[0.0], [np.nan], [np.inf]], [0, 1, 0], r"NaN, infinity or a number too large for float32 in row 1 \(2 rows"),
        ([[1e300]], [0], "too large for float32 in row 0"),
        ([[1.0]], [[0]], r"y has shape \(1, 1\)"),
        ([[1.0]], [0.5], "y holds 0.5 at row 0; expected labels: strings or whole numbers"),
        ([[1.0], [2.0]], np.array(["a", 1], dtype=object), "y mixes labels of different types: 'a' at row 0, 1"),
        ([[1.0], [2.0]], [0, np.nan], "y holds nan at row 1; expected a label for every row"),
        ([[1.0], [2.0]], [1e300, 2e300], r"y holds 2e\+300; expected labels: strings or whole numbers up to 2\*\*53"),
        ([[1.0]], np.array([b"\xff"]), "y holds bytes that are not UTF-8"),
    ],
)
def test_unfit_arrays_are_refused(X: object, y: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Space.from_arrays(X, y)  # type: ignore[arg-type]


@pytest.mark.parametrize("y", [["b", "a"], np.array(["b", "a"], dtype=object), np.array([b"b", b"a"])])
def test_labels_may_be_any_kind_of_string(y: object) -> None:
    assert Space.from_arrays(np.eye(2), y).labels == ("a", "b")  # type: ignore[arg-type]


@given(arrays(np.float16, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.floats(-100, 100, width=16)))
def test_half_precision_arrays_are_widened_exactly(X: np.ndarray) -> None:
    loaded = Space.from_arrays(X, np.zeros(len(X)))
    assert loaded.X.dtype == np.float32
    np.testing.assert_array_equal(loaded.X, X)


def test_a_users_array_stays_writable_and_the_space_does_not() -> None:
    X = np.eye(2, dtype=np.float32)
    space = Space.from_arrays(X, [0, 1])
    X[0, 0] = 5
    assert space.X[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        space.X[0, 0] = 5


@pytest.mark.parametrize("name", ["space.txt", "space.dat"])
def test_other_suffixes_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="expected .npz, .safetensors, .parquet or a folder"):
        space().save(tmp_path / name)
    (tmp_path / name).write_text("")
    with pytest.raises(InputError, match="expected .npz, .safetensors, .npy, .csv"):
        Space.load(tmp_path / name)
    with pytest.raises(InputError, match="does not exist"):
        Space.load(tmp_path / "nowhere.npz")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(RuntimeError, match="stop"), atomic_write(tmp_path / "file") as stream:
        stream.write(b"new")
        raise RuntimeError("stop")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"old")]


def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="cannot be written: No space left on device; no partial file remains"):
        with atomic_write(tmp_path / "file") as stream:
            with open("/dev/full", "wb") as full:
                full.write(b"x" * 100_000)
            stream.write(b"never")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkError, match="cannot be written: (Not a directory|File exists)"):
        space().save(tmp_path / "file" / "s.npz")


def test_provenance_of_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    values = json.loads(json.dumps(MADE.to_dict() | {"from the future": 1}))
    assert Provenance.from_dict(values) == MADE


def test_title_says_what_a_space_is() -> None:
    assert MADE.title() == "bert-tiny · toy-pos/train · layer 2 · mean"
    assert Provenance().title() == "? · ?/? · layer ? · ?"


def test_a_misspelt_provenance_is_refused() -> None:
    with pytest.raises(InputError, match="provenance tsak is unknown"):
        Space.from_arrays([[1.0]], ["a"], tsak="x")


def test_a_split_that_would_leave_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"split '../../evil' cannot be part of a file's name"):
        Space.from_arrays([[1.0]], ["a"], split="../../evil").save(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


def test_a_space_shows_itself_in_a_line() -> None:
    space = Space.from_arrays(np.eye(3), [0, 1, 1], encoder="bert-tiny", task="mine", split="train", layer=2)
    assert repr(space) == "Space(bert-tiny · mine/train · layer 2 · ?: 3 × 3, 2 labels)"
    tuned = Space.from_arrays(np.eye(2), [0, 1], encoder="bert-tiny", checkpoint="tuned on mine, seed 0, step 9")
    assert tuned.provenance.title().startswith("bert-tiny (tuned on mine, seed 0, step 9) · ")

"""The words of the rows of a space: taken from the task, kept in every file format, and loaded with points."""

from pathlib import Path

import numpy as np
import pytest

from closerlook.errors import InputError
from closerlook.representations.extract import extract
from closerlook.representations.points import load_points
from closerlook.representations.space import Provenance, Space
from closerlook.tasks import load_task
from closerlook.tasks.task import Task

TEXT = ("light", "rain", "fell", "Île-de-France")
WORDS = ("naïve", "rock 'n' roll", "naïve", "")
X = np.arange(8, dtype=np.float32).reshape(4, 2)


def space(words: tuple[str, ...] | None = WORDS) -> Space:
    provenance = Provenance(encoder="bert-tiny", task="toy", split="train", layer=1)
    return Space(X, np.array([0, 1, 1, 0], np.int32), ("a", "b"), provenance, words)


@pytest.mark.parametrize(
    ("unit", "targets", "words"),
    [
        ("token", [((1,), "A"), ((3,), "B"), ((1,), "B")], ("rain", "Île-de-France", "rain")),
        ("span", [((0, 2), "A"), ((3, 4), "B")], ("light rain", "Île-de-France")),
        ("pair", [((2, 1), "A"), ((1, 0), "B")], ("fell rain", "rain light")),
        ("sentence", [((), "A")], None),
    ],
)
def test_the_words_of_a_task_are_those_of_its_examples(unit: str, targets: list, words: object) -> None:
    task = Task.build("weather", unit, {"dev": [(("other",), []), (TEXT, targets)]})  # type: ignore[arg-type]
    assert task.words(task.split("dev")) == words


@pytest.mark.parametrize("name", ["toy-pos", "toy-question"])
def test_extraction_names_the_words_computed_and_from_the_store(name: str) -> None:
    task = load_task(name)
    expected = task.words(task.split("test"))
    assert (expected is None) is (name == "toy-question")
    for _ in ("computed", "from the store"):
        for space in extract("bert-tiny", task, splits="test", layers=[0, 2]):
            assert space.words == expected
    if expected:
        assert len(expected) == len(task.split("test"))


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("words", [WORDS, None])
def test_words_come_back_from_a_file(tmp_path: Path, suffix: str, words: tuple[str, ...] | None) -> None:
    file = space(words).save(tmp_path / f"space{suffix}")
    assert Space.load(file).words == words
    assert load_points(file).words == words
    assert Space.load(file).label_names.tolist() == ["a", "b", "b", "a"]


def test_a_directprobe_folder_has_no_words(tmp_path: Path) -> None:
    assert Space.load(space().save(tmp_path / "folder")).words is None


def test_other_peoples_arrays_may_bring_words_along(tmp_path: Path) -> None:
    names = {"words": np.array(WORDS), "words_test": np.array([b"\xc3\xa9t\xc3\xa9", b"rain"])}
    np.savez(tmp_path / "points.npz", X=X, y=[0, 1, 1, 0], X_test=X[:2], y_test=[0, 1], **names)
    points = load_points(tmp_path / "points.npz")
    assert points.test is not None
    assert (points.words, points.test.words) == (WORDS, ("été", "rain"))
    assert Space.load(tmp_path / "points.npz").words == WORDS
    np.savez(tmp_path / "plain.npz", X=X, y=[0, 1, 1, 0], X_test=X[:2], y_test=[0, 1], words=np.array(WORDS))
    assert load_points(tmp_path / "plain.npz").test.words is None  # type: ignore[union-attr]


def test_arrays_of_a_users_own_may_have_words() -> None:
    assert Space.from_arrays(X, [0, 1, 1, 0], words=list(WORDS)).words == WORDS
    assert Space.from_arrays(X, [0, 1, 1, 0], words=np.array(WORDS, dtype=object)).words == WORDS
    assert Space.from_arrays(X, [0, 1, 1, 0]).words is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b"], "words has 2 entries; expected 4, one for each row"),
        ([1, 2, 3, 4], "words has shape \\(4,\\) and holds int64; expected \\(n,\\) strings"),
        ([["a"]] * 4, "words has shape \\(4, 1\\)"),
        (np.array(["a", 1, "b", "c"], dtype=object), "words has shape \\(4,\\) and holds object; expected"),
        (np.array([b"\xff"] * 4), "words holds bytes that are not UTF-8"),
    ],
)
def test_unfit_words_are_refused(tmp_path: Path, words: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Space.from_arrays(X, [0, 1, 1, 0], words=words)  # type: ignore[arg-type]
    if np.asarray(words).dtype.kind != "O":
        np.savez(tmp_path / "points.npz", X=X, y=[0, 1, 1, 0], words=np.asarray(words))
        with pytest.raises(InputError, match=f"points.npz: {message}"):
            load_points(tmp_path / "points.npz")


def test_a_space_and_its_words_must_be_of_one_length() -> None:
    with pytest.raises(InputError, match="words has 1 entries; expected 4"):
        Space(X, np.zeros(4, np.int32), ("a",), words=("a",))

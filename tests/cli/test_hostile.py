"""Commands on hostile labels, words and files: shown escaped, counted apart, refused in one line."""

from pathlib import Path

import numpy as np
import pytest

from closerlook import Space
from tests.cli.console import answer, assert_refused, run, saved

Capsys = pytest.CaptureFixture[str]
LABELS = ["a\0", "a", "b\x1b[31m", "\u202ec"]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four labels of ten points each, two of which overlap, with words."""
    y = np.arange(40) % 4
    X = np.random.default_rng(0).normal(size=(40, 3)) + np.array([[0, 0, 0], [1, 0, 0], [20, 0, 0], [0, 30, 0]])[y]
    names = [LABELS[at] for at in y]
    words = [f"w{at}\x07\0" for at in range(40)]
    folder = tmp_path_factory.mktemp("space")
    return Space.from_arrays(X, names, words=words, encoder="t\x1b]0;x\x07").save(folder / "s.npz")


@pytest.mark.parametrize(
    "command", [("probe",), ("describe",), ("classify", "--sizes", "linear", "--seeds", "1", "--control")]
)
def test_labels_are_shown_escaped(capsys: Capsys, space: Path, command: tuple[str, ...]) -> None:
    name, *options = command
    test = [] if name == "describe" else ["--test", space]
    out, err = run(capsys, name, space, *test, *options)
    assert not {"\0", "\x1b", "\x07", "\u202e"} & set(out + err)
    assert "t\\x1b]0;x\\x07" in out + err
    if name == "probe":
        assert {"a\\x00", "b\\x1b[31m", "\\u202ec"} <= set(out.replace("│", " ").split())


def test_labels_are_counted_apart_and_unchanged_in_json(capsys: Capsys, space: Path) -> None:
    found = answer(capsys, "probe", space, "--test", space)
    assert list(found["labels"]) == sorted(LABELS)
    compared = answer(capsys, "compare", space, space)
    assert compared["pearson"] == pytest.approx(1.0)
    assert set(compared["labels"]) == set(LABELS)


def test_half_a_surrogate_pair_is_printed_as_an_escape(capsys: Capsys, tmp_path: Path) -> None:
    path = Space.from_arrays(np.eye(3), ["a", "b", "\ud800"]).save(tmp_path / "s.npz")
    assert "\\ud800" in run(capsys, "probe", path)[0]
    assert answer(capsys, "probe", path)["labels"] == ["a", "b", "\ud800"]


@pytest.mark.parametrize("command", ["probe", "classify", "describe", "compare"])
def test_a_file_that_takes_more_memory_than_allowed_is_refused(capsys: Capsys, tmp_path: Path, command: str) -> None:
    path = saved(tmp_path / "p.npz", np.eye(30), np.arange(30) % 3)
    files = [path, path] if command == "compare" else [path]
    message = "takes 7,440 bytes in memory; the limit is 1,000 bytes: if you trust the file, pass --max-memory"
    assert_refused(capsys, message, command, *files, "--max-memory", "1kB")
    assert_refused(capsys, "memory 'much' is no size; expected", command, *files, "--max-memory", "much")


def test_an_error_message_has_no_control_characters(capsys: Capsys, tmp_path: Path) -> None:
    assert_refused(capsys, "\\x1b]0;x.npz", "probe", tmp_path / "\x1b]0;x.npz")

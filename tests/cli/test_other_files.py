"""`probe`, `classify`, `describe` and `compare` read vectors of other programs; a note says which columns."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.console import answer, assert_refused, run, saved

Capsys = pytest.CaptureFixture[str]


def blobs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.repeat(["a", "b", "c", "d"], 12)
    return rng.standard_normal((48, 5)) + 6 * np.repeat(rng.standard_normal((4, 5)), 12, axis=0), y


def as_table(file: Path, seed: int) -> Path:
    X, y = blobs(seed)
    frame = pd.DataFrame(X, columns=[f"d{i}" for i in range(5)]).assign(kind=y)
    if file.suffix == ".csv":
        frame.to_csv(file, index=False)
    else:
        frame.to_parquet(file)
    return file


def test_probe_gives_the_same_for_every_format(tmp_path: Path, capsys: Capsys) -> None:
    X, y = blobs(0)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "test.npy", X[::2])
    (tmp_path / "y.txt").write_text("\n".join(y))
    (tmp_path / "y_test.txt").write_text("\n".join(y[::2]))
    np.savez(tmp_path / "other.npz", vectors=X, kinds=y)
    plain = answer(capsys, "probe", saved(tmp_path / "plain.npz", X, y))
    labels = ("--labels", tmp_path / "y.txt", "--labels", tmp_path / "y_test.txt")
    for arguments in (
        (as_table(tmp_path / "x.csv", 0), "--y-key", "kind"),
        (as_table(tmp_path / "x.parquet", 0), "--y-key", "kind", "--x-key", "d*"),
        (tmp_path / "other.npz", "--x-key", "vectors", "--y-key", "kinds"),
        (tmp_path / "x.npy", *labels),
    ):
        found = answer(capsys, "probe", *arguments)
        assert found["label_distances"] == plain["label_distances"]
    tested = answer(capsys, "probe", tmp_path / "x.npy", "--test", tmp_path / "test.npy", *labels)
    assert (tested["n_test"], tested["test_accuracy"]) == (24, 1.0)


def test_a_note_says_which_columns_were_read(tmp_path: Path, capsys: Capsys) -> None:
    _, err = run(capsys, "probe", as_table(tmp_path / "x.csv", 0), "--y-key", "kind", "--no-distances")
    assert "x.csv: vectors from d0 … d4 (5 numbers), labels from kind" in err


def test_compare_and_describe_read_two_tables(tmp_path: Path, capsys: Capsys) -> None:
    a, b = as_table(tmp_path / "a.csv", 0), as_table(tmp_path / "b.parquet", 1)
    found = answer(capsys, "compare", a, b, "--y-key", "kind", "--permutations", 0, "--resamples", 0)
    assert found["n_labels"] == 4
    described = answer(capsys, "describe", a, "--against", b, "--y-key", "kind", "--permutations", 0)
    assert described["n"] == described["against"]["n"] == 48


def test_classify_reads_tables(tmp_path: Path, capsys: Capsys) -> None:
    train, test = as_table(tmp_path / "a.csv", 0), as_table(tmp_path / "b.parquet", 0)
    found = answer(capsys, "classify", train, "--test", test, "--y-key", "kind", "--sizes", "linear", "--seeds", 1)
    assert (found["title"], found["test_title"]) == ("a.csv", "b.parquet")
    assert [row["label"] for row in found["by_label"]] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.csv",), "no column is called label"),
        (("v.npy",), "a .npy file holds no labels; pass a file with one label for each row: --labels"),
        (("a.csv", "--y-key", "kind", "--labels", "y.txt"), "only a .npy file needs a separate file of labels"),
    ],
)
def test_what_is_missing_is_one_line(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    as_table(Path("a.csv"), 0)
    np.save("v.npy", blobs(0)[0])
    Path("y.txt").write_text("a\n")
    assert_refused(capsys, message, "probe", *arguments)

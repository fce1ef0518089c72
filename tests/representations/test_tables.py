"""Labelled vectors of other programs: .npy, CSV, Parquet, npz with other names, Hugging Face datasets."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from closerlook.errors import InputError
from closerlook.representations.points import load_points
from closerlook.representations.space import Space
from closerlook.representations.tables import Names

X = np.random.default_rng(0).standard_normal((6, 4))
Y = ["a", "b", "a", "c", "b", "a"]


def wide() -> pd.DataFrame:
    return pd.DataFrame({"kind": Y} | {f"d{i}": X[:, i] for i in range(4)})


def lists() -> pd.DataFrame:
    """As embedding-atlas exports it: vectors, a projection, neighbours and the texts."""
    return pd.DataFrame(
        {
            "text": [f"text {i}" for i in range(6)],
            "kind": Y,
            "embedding": list(X),
            "projection_x": 0.5,
            "projection_y": 1.5,
            "neighbors": [{"ids": [1, 2], "distances": [0.1, 0.2]}] * 6,
        }
    )


def check(space: Space, *, words: bool = False) -> None:
    np.testing.assert_array_equal(space.X, X.astype(np.float32))
    assert space.label_names.tolist() == Y
    assert space.words == (tuple(f"text {i}" for i in range(6)) if words else None)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_a_table_has_a_label_column_and_numbers(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"vectors{suffix}"
    if suffix == ".parquet":
        wide().to_parquet(file)
    else:
        wide().to_csv(file, index=False, sep="\t" if suffix == ".tsv" else ",")
    check(Space.load(file, y_key="kind"))
    points = load_points(file, names=Names(y="kind"))
    np.testing.assert_array_equal(points.X, X)  # in full precision
    assert points.description == "vectors from d0 … d3 (4 numbers), labels from kind"


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_the_delimiter_is_detected_and_row_numbers_are_no_coordinate(tmp_path: Path, delimiter: str) -> None:
    wide().rename(columns={"kind": "label"}).to_csv(tmp_path / "v.csv", sep=delimiter)
    check(Space.load(tmp_path / "v.csv"))
    assert "not used: ''" in str(load_points(tmp_path / "v.csv").description)


def test_a_column_of_lists_holds_the_vectors(tmp_path: Path) -> None:
    lists().to_parquet(tmp_path / "atlas.parquet")
    check(Space.load(tmp_path / "atlas.parquet", y_key="kind"), words=True)
    points = load_points(tmp_path / "atlas.parquet", names=Names(y="kind"))
    assert "not used: 'projection_x', 'projection_y', 'neighbors'" in str(points.description)


def test_lists_may_be_written_as_text(tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": Y, "embedding": [json.dumps(row.tolist()) for row in X]})
    frame.to_csv(tmp_path / "v.csv", index=False)
    check(Space.load(tmp_path / "v.csv", x_key="embedding"))


def test_columns_are_chosen_by_name_or_pattern(tmp_path: Path) -> None:
    wide().assign(other=1.0).to_csv(tmp_path / "v.csv", index=False)
    check(Space.load(tmp_path / "v.csv", x_key="d*", y_key="kind"))
    two = Space.load(tmp_path / "v.csv", x_key="d1,d3", y_key="kind")
    np.testing.assert_array_equal(two.X, X[:, [1, 3]].astype(np.float32))


@pytest.mark.parametrize("labels", ["y.txt", "y.npy", "y.csv", "y.parquet"])
def test_npy_has_its_labels_in_another_file(tmp_path: Path, labels: str) -> None:
    np.save(tmp_path / "v.npy", X)
    (tmp_path / "y.txt").write_text("\n".join(Y) + "\n")
    np.save(tmp_path / "y.npy", np.array(Y))
    pd.DataFrame({"label": Y, "n": 0}).to_csv(tmp_path / "y.csv", index=False)
    pd.DataFrame({"label": Y}).to_parquet(tmp_path / "y.parquet")
    check(Space.load(tmp_path / "v.npy", labels=tmp_path / labels))


def test_npz_may_use_other_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", embeddings=X, target=np.array(Y))
    check(Space.load(tmp_path / "v.npz", x_key="embeddings", y_key="target"))
    with pytest.raises(InputError, match=r"lacks X and y; it holds embeddings, target: name the arrays with --x-key"):
        Space.load(tmp_path / "v.npz")
    with pytest.raises(InputError, match=r"lacks nothing; it holds embeddings, target"):
        Space.load(tmp_path / "v.npz", x_key="nothing", y_key="target")


def test_a_dataset_has_splits_and_names_of_labels(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    names = datasets.ClassLabel(names=["a", "b", "c"])
    columns = {"embedding": X.tolist(), "label": [names.str2int(label) for label in Y]}
    train = datasets.Dataset.from_dict(columns).cast_column("label", names)
    datasets.DatasetDict({"train": train, "test": train.select([3, 1])}).save_to_disk(tmp_path / "d")
    check(Space.load(tmp_path / "d"))
    assert Space.load(tmp_path / "d", split="test").label_names.tolist() == ["c", "b"]
    test = load_points(tmp_path / "d").test
    assert test is not None
    assert test.y.tolist() == ["c", "b"]
    with pytest.raises(InputError, match="it has the splits train, test, but no dev"):
        Space.load(tmp_path / "d", split="dev")


@pytest.mark.parametrize("words", [None, tuple("uvwxyz")])
def test_a_space_written_as_parquet_comes_back_whole(tmp_path: Path, words: tuple[str, ...] | None) -> None:
    made = Space.from_arrays(X, Y, words=words, encoder="e", task="t", layer=3)
    space = Space(made.X, made.y, ("a", "b", "c"), made.provenance, made.words)
    for file in (space.to_parquet(tmp_path / "a.parquet"), space.save(tmp_path / "b.parquet")):
        loaded = Space.load(file)
        np.testing.assert_array_equal(loaded.X, space.X)
        np.testing.assert_array_equal(loaded.y, space.y)
        assert (loaded.labels, loaded.words, loaded.provenance) == (space.labels, words, space.provenance)
        assert load_points(file).title == space.provenance.title()
    frame = pd.read_parquet(tmp_path / "a.parquet")
    assert list(frame) == ["vector", "label"] + ["word"] * (words is not None)
    np.testing.assert_array_equal(np.stack(frame["vector"].tolist()), space.X)


def save(frame: pd.DataFrame, file: Path) -> Path:
    frame.to_parquet(file)
    return file


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (wide(), {}, r"no column is called label or .* --y-key \(y_key=\); the columns are 'kind', 'd0'"),
        (wide(), {"y_key": "nothing"}, "there is no column 'nothing'; the columns are 'kind'"),
        (wide().assign(label=1, y=2), {}, "label and y may be the label; name the column with --y-key"),
        (wide(), {"y_key": "kind", "x_key": "e*"}, r"no column is called 'e\*'"),
        (wide().assign(note="x"), {"y_key": "kind"}, "'note' hold text; name the columns of the vectors with --x-key"),
        (wide()[["kind"]], {"y_key": "kind"}, "no column holds vectors or numbers"),
        (wide().iloc[:0], {"y_key": "kind"}, "the table has no rows"),
        (wide().assign(kind=[None, *Y[1:]]), {"y_key": "kind"}, "row 0 has no label in column kind"),
        (wide().assign(d1=[1.0, None, 1, 1, 1, 1]), {"y_key": "kind"}, "row 1 of column 'd1' is empty"),
        (wide().assign(kind=X[:, 0]), {"y_key": "kind"}, "expected labels: strings or whole numbers"),
        (lists().assign(embedding=[[1.0]] * 5 + [[1.0, 2.0]]), {"y_key": "kind"}, "row 5 .* has 2 numbers, and row 0"),
        (lists().assign(more=list(X)), {"y_key": "kind"}, "'embedding', 'more' hold vectors; choose one with --x-key"),
        (
            lists(),
            {"y_key": "kind", "x_key": "text"},
            "holds 'text 0'; expected numbers, or a list of numbers",
        ),
    ],
)
def test_unfit_tables_are_refused(tmp_path: Path, frame: pd.DataFrame, options: dict[str, Any], message: str) -> None:
    file = tmp_path / "v.parquet"
    frame.to_parquet(file)
    with pytest.raises(InputError, match=message) as error:
        Space.load(file, **options)
    assert str(error.value).startswith(f"{file}")


def test_unfit_files_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", X)
    (tmp_path / "y.txt").write_text("a\n\nb\n")
    (tmp_path / "short.txt").write_text("a\n")
    (tmp_path / "v.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    wide().to_csv(tmp_path / "v.csv", index=False)
    for name, options, message in [
        ("v.npy", {}, "a .npy file holds no labels; pass a file"),
        ("v.npy", {"labels": tmp_path / "y.txt"}, "line 2 is empty"),
        ("v.npy", {"labels": tmp_path / "short.txt"}, "it has 6 rows, and .*short.txt has 1 labels"),
        ("v.npy", {"labels": tmp_path / "none.txt"}, "cannot be read: No such file"),
        ("v.parquet", {}, "it cannot be read"),
        ("bad.npy", {"labels": tmp_path / "short.txt"}, "cannot be read"),
        ("v.csv", {"labels": tmp_path / "short.txt"}, "only a .npy file needs a separate file of labels"),
        ("none.csv", {}, "it cannot be read"),
    ]:
        with pytest.raises(InputError, match=message):
            Space.load(tmp_path / name, **options)

"""Load labelled points from plain arrays, a saved space, or a folder of the released DirectProbe code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry.frame import Floats, as_points
from closerlook.representations import directprobe, files
from closerlook.representations.npz import Arrays
from closerlook.representations.space import Provenance, Space, as_label_names, as_words
from closerlook.representations.tables import Names, has_split, is_table, read_labelled

TEST_NAMES = ("X_test", "y_test")
TEST_WORDS = "words_test"


@dataclass(frozen=True, eq=False)
class Points:
    """Points with the name of each point's label; names, unlike numbers, mean the same in every file.

    X: (n, d) float64, finite. y: (n,) label names. title: for display. provenance: None if unknown. test: the points of
    the test split, if the file or folder has them. words: (n,) the text of each point, None if unknown. description:
    which columns of a table were read; None for other files.

    >>> np.savez("points.npz", X=[[0.0], [1.0], [2.0]], y=["a", "b", "a"])
    >>> points = load_points(Path("points.npz"))
    >>> points.X.shape, points.labels, points.title
    ((3, 1), ['a', 'b'], 'points.npz')
    """

    X: Floats
    y: NDArray[Any]
    title: str
    provenance: Provenance | None = None
    test: Points | None = None
    words: tuple[str, ...] | None = None
    description: str | None = None

    @property
    def labels(self) -> list[str]:
        """The label names that occur in y, sorted."""
        return [str(name) for name in np.unique(self.y)]


def load_points(
    path: Path, split: str = "train", names: Names = files.USUAL, *, max_memory: int | None = None
) -> Points:
    """The points in a .npz file of plain arrays, in a table of vectors, or in a saved space.

    Plain arrays: `X` and `y`, optionally `X_test` and `y_test`, and the text of each row in `words` and `words_test`.
    They keep their precision, and so do tables (.npy, .csv, .tsv, .parquet, Hugging Face datasets). names: what the
    vectors and labels are called there.

    A saved space is a .npz or .safetensors file, a DirectProbe folder (of which `split` is loaded), or a file of
    vectors in such a folder. The test split of a folder becomes `Points.test`.

    max_memory: bytes that the content of the file may take, see `check_memory`.

    >>> np.savez("points.npz", X=[[0.0], [1.0]], y=["a", "b"], X_test=[[0.2]], y_test=["a"])
    >>> points = load_points(Path("points.npz"))
    >>> points.y.tolist(), points.test.y.tolist()
    (['a', 'b'], ['a'])
    """
    if is_table(path):
        return _load_table(path, split, names, max_memory)
    if path.suffix == ".npz" and path.is_file():
        arrays = files.read_named(path, names, (*TEST_NAMES, TEST_WORDS), max_memory=max_memory)
        if not {"labels", "provenance"} <= set(arrays):
            return _from_arrays(path, arrays)
        return _from_space(path, files.space_from_arrays(path, arrays))
    points = _from_space(path, files.load_space(path, split, max_memory=max_memory))
    test = directprobe.find_test_file(path) if split == "train" and path.suffix in ("", ".txt") else None
    if test is None:
        return points
    return replace(points, test=_from_space(test, directprobe.load_vectors(test, max_memory)))


def _load_table(path: Path, split: str, names: Names, max_memory: int | None) -> Points:
    read = read_labelled(path, names, split, max_memory)
    if read.metadata is not None:
        return _from_space(path, files.space_from_table(path, read))
    arrays = {"X": read.X, "y": read.y} | ({} if read.words is None else {"words": read.words})
    points = replace(_checked(path, arrays, ("X", "y", "words"), path.name), description=read.description)
    if split != "train" or not has_split(path, "test"):
        return points
    return replace(points, test=_load_table(path, "test", names, max_memory))


def check_same_columns(points: Points, others: Points) -> None:
    """Raise an error if the two sets of points have different numbers of columns."""
    d, other_d = points.X.shape[1], others.X.shape[1]
    if d != other_d:
        raise InputError(f"{others.title} has {other_d} columns; expected {d}, as {points.title} has")


def _from_space(path: Path, space: Space) -> Points:
    known = any(value for value in space.provenance.to_dict().values())
    title = space.provenance.title() if space.provenance.encoder else path.name
    provenance = space.provenance if known else None
    return Points(as_points(space.X), space.label_names, title, provenance, words=space.words)


def _from_arrays(path: Path, arrays: Arrays) -> Points:
    given = [name for name in TEST_NAMES if name in arrays]
    if len(given) == 1:
        missing = next(name for name in TEST_NAMES if name not in arrays)
        raise InputError(f"{path} has {given[0]} but lacks {missing}; expected both, or neither")
    points = _checked(path, arrays, ("X", "y", "words"), path.name)
    if not given:
        return points
    test = _checked(path, arrays, (*TEST_NAMES, TEST_WORDS), f"X_test of {path.name}")
    check_same_columns(points, test)
    return replace(points, test=test)


def _checked(path: Path, arrays: Arrays, keys: tuple[str, str, str], title: str) -> Points:
    X, y, words = keys
    try:
        points, names = as_points(arrays[X], X), _names(arrays[y], y)
        if len(points) != len(names):
            raise InputError(f"{X} has {len(points)} rows and {y} has {len(names)} labels; expected one for each row")
        texts = as_words(arrays[words], len(points), words) if words in arrays else None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return Points(points, names, title, words=texts)


def _names(y: ArrayLike, name: str) -> NDArray[Any]:
    """The label names in y; error messages call the array by its name in the file."""
    try:
        return as_label_names(y)
    except InputError as error:
        raise InputError(str(error).replace("y ", f"{name} ", 1)) from None

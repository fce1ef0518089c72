"""Labelled points from whatever a user has: plain arrays, a saved space, a folder of the released DirectProbe code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry.frame import Floats, as_points
from closerlook.representations import directprobe, files
from closerlook.representations.space import Provenance, Space, names_of, words_of

TEST_NAMES = ("X_test", "y_test")
TEST_WORDS = "words_test"


@dataclass(frozen=True, eq=False)
class Points:
    """Points and the label of each by name, so that spaces with other numbers for the same labels agree.

    X: (n, d) float64, finite. y: (n,) names. title: for people. provenance: None where nothing is known. test: the
    points held out with them, if there are any. words: (n,) what is behind each, where that is known.
    """

    X: Floats
    y: NDArray[np.str_]
    title: str
    provenance: Provenance | None = None
    test: Points | None = None
    words: tuple[str, ...] | None = None

    @property
    def labels(self) -> list[str]:
        """The names that occur, sorted."""
        return [str(name) for name in np.unique(self.y)]


def read_points(path: Path, split: str = "train") -> Points:
    """The points in a .npz of plain arrays (`X`, `y`, and `X_test`, `y_test` if there are any) or in a saved space.

    Plain arrays may bring `words` and `words_test` along: what is behind each row.

    A space is a .npz or .safetensors file, a DirectProbe folder, of which `split` is read, or one file of vectors in
    it. A folder's test split is what is held out. Plain arrays keep their precision.
    """
    if path.suffix == ".npz" and path.is_file():
        arrays = files.read_npz(path, (*files.NAMES, *TEST_NAMES, TEST_WORDS))
        if not {"labels", "provenance"} <= set(arrays):
            return _from_arrays(path, arrays)
        return _from_space(path, files.from_named(path, arrays))
    points = _from_space(path, files.load(path, split))
    held_out = directprobe.held_out(path) if split == "train" and path.suffix in ("", ".txt") else None
    return points if held_out is None else replace(points, test=_from_space(held_out, directprobe.load_file(held_out)))


def check_same_columns(points: Points, others: Points) -> None:
    """Raise where points of two spaces cannot be in one."""
    d, found = points.X.shape[1], others.X.shape[1]
    if d != found:
        raise InputError(f"{others.title} has {found} columns; expected {d}, as {points.title} has")


def _from_space(path: Path, space: Space) -> Points:
    known = any(value for value in space.provenance.to_dict().values())
    title = space.provenance.title() if space.provenance.encoder else path.name
    described = space.provenance if known else None
    return Points(as_points(space.X), space.label_names, title, described, words=space.words)


def _from_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> Points:
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


def _checked(path: Path, arrays: dict[str, NDArray[Any]], keys: tuple[str, str, str], title: str) -> Points:
    X, y, words = keys
    try:
        points, names = as_points(arrays[X], X), _names(arrays[y], y)
        if len(points) != len(names):
            raise InputError(f"{X} has {len(points)} rows and {y} has {len(names)} labels; expected one for each row")
        known = words_of(arrays[words], len(points), words) if words in arrays else None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return Points(points, names, title, words=known)


def _names(y: ArrayLike, name: str) -> NDArray[np.str_]:
    try:
        return names_of(y)
    except InputError as error:
        raise InputError(str(error).replace("y ", f"{name} ", 1)) from None

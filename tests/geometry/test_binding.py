"""What may pass from Python to the engine: the header says it, and the binding checks it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from closerlook.geometry import kernels
from closerlook.geometry.binding import Header, header

X = np.arange(12.0).reshape(4, 3)
ABOUT = np.zeros((1, 4), np.float32)


def neighbours(X: Any = X, about: Any = ABOUT, row: Any = None) -> None:
    row = np.zeros(1, np.int64) if row is None else row
    kernels.library().nearest_in_strip(X, 4, 3, np.zeros(4), about, np.zeros(1, np.int64), 1, 1, 0.0, row, np.zeros(1))


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def shifted(array: np.ndarray) -> np.ndarray:
    """A copy whose numbers begin at an odd address."""
    return np.frombuffer(b"." + array.tobytes(), offset=1).reshape(array.shape)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": X.tolist()}, "X is list; expected an array of float64"),
        ({"X": None}, "X is NoneType; expected an array of float64"),
        ({"X": X.astype(np.float32)}, "X is an array of float32; expected float64 in native byte order"),
        ({"X": X.astype(">f8")}, "X is an array of >f8; expected float64 in native byte order"),
        ({"X": X[:, ::-1]}, "X is not contiguous and aligned"),
        ({"X": np.asfortranarray(X)}, "X is not contiguous and aligned"),
        ({"X": shifted(X)}, "X is not contiguous and aligned"),
        ({"about": np.zeros((1, 4))}, "about is an array of float64; expected float32"),
        ({"row": np.zeros(1, np.int32)}, "row is an array of int32; expected int64"),
        ({"row": read_only(np.zeros(1, np.int64))}, "row is read-only; the engine writes to it"),
    ],
)
def test_an_array_that_the_engine_must_not_use_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ctypes.ArgumentError, match=message):
        neighbours(**arguments)


def test_arrays_that_are_only_read_may_be_read_only() -> None:
    neighbours(X=read_only(X.copy()))


def test_only_optional_arrays_may_be_missing() -> None:
    counts, coded = np.zeros(kernels.LEVELS, np.int64), np.zeros(1, np.intc)
    kernels.library().count_levels(X[:1], 1, 3, 0, 0.01, None, counts, None, coded)
    assert counts.sum() == 2
    with pytest.raises(ctypes.ArgumentError, match="counts is NoneType"):
        kernels.library().count_levels(X[:1], 1, 3, 0, 0.01, None, None, None, coded)


def test_every_function_of_the_header_is_in_the_library() -> None:
    assert len(header().functions) >= 17
    for name, (_, parameters) in header().functions.items():
        assert getattr(kernels.library(), name).argtypes == parameters


def test_constants_and_structs_come_from_the_header() -> None:
    assert {"COMPLETED", "OUT_OF_MEMORY", "STOPPED", "SEPARABLE", "LEADS"} <= set(header().constants)
    assert [name for name, _ in header().structs["Counts"]._fields_][:2] == ["attempts", "merges"]


def test_a_declaration_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"engine.h has a parameter 'double x\[3\]' that binding.py cannot read"):
        Header("ENGINE void f(double x[3]);")

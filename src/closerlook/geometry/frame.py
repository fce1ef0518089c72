"""Input checks, and the coordinate frame that all computations use: centred, float64, RMS radius near 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Label = str | int

UNIT = 2.0**-53
"""The relative rounding error of one float64 operation."""

ROWS = 4096
"""The number of rows in a block, so that temporary arrays stay small compared with the points."""


def as_points(X: ArrayLike, name: str = "X") -> Floats:
    """Return X as a C-contiguous float64 array (n, d) of finite numbers.

    Raises InputError, with the row and column, for anything else.
    """
    array = as_array(X, name)
    if array.dtype.kind not in "fiub":
        what = "complex numbers" if array.dtype.kind == "c" else f"values of type {array.dtype}"
        raise InputError(f"{name} holds {what}; expected real numbers, one row per point")
    if array.ndim != 2:
        raise InputError(f"{name} has shape {array.shape}; expected two dimensions: points, and their coordinates")
    n, d = array.shape
    if n == 0 or d == 0:
        raise InputError(f"{name} has shape {array.shape}; expected at least one point with at least one coordinate")
    points = np.ascontiguousarray(array, dtype=np.float64)
    finite = np.concatenate([np.isfinite(block).all(axis=1) for block in blocks(points)])
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        column = int(np.flatnonzero(~np.isfinite(points[row]))[0])
        count = int((~finite).sum())
        raise InputError(
            f"{name} holds {points[row, column]} at row {row}, column {column}, and in {count} of {n} rows in all; "
            "expected finite numbers: drop or repair those rows"
        )
    return points


def check_differences(points: Floats, name: str = "X") -> None:
    """Raise InputError if the difference of two coordinates of the points (n, d) is not a finite float64."""
    low, high = points.min(axis=0), points.max(axis=0)
    with np.errstate(over="ignore"):
        columns = np.flatnonzero(~np.isfinite(high - low))
    if len(columns):
        column = int(columns[0])
        raise InputError(
            f"{name} holds numbers from {low[column]:g} to {high[column]:g} in column {column}, whose difference "
            f"overflows float64; expected finite differences: divide {name} by a constant"
        )


def as_labels(y: ArrayLike, n: int) -> tuple[tuple[Label, ...], Integers]:
    """Return the distinct labels in sorted order, and (n,) the index of each point's label among them."""
    array = as_array(y, "y")
    if array.dtype.kind == "U" and not isinstance(y, np.ndarray):  # a list of mixed types has become strings
        array = np.asarray(y, dtype=object)
    if array.ndim != 1 or len(array) != n:
        raise InputError(f"y has shape {array.shape}; expected one label for each of the {n} rows of X")
    if array.dtype.kind == "O":
        array = _plain_labels(array)
    if array.dtype.kind == "S":
        array = _decoded(array)
    if array.dtype.kind not in "UTiubfO":  # O: strings, see `text_array`
        raise InputError(f"y holds values of type {array.dtype}; expected strings, integers or booleans as labels")
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            row = int(np.flatnonzero(~np.isfinite(array))[0])
            raise InputError(f"y holds {array[row]} at row {row}; expected a label for every row")
        if (array != np.floor(array)).any():
            row = int(np.flatnonzero(array != np.floor(array))[0])
            raise InputError(f"y holds {array[row]} at row {row}; expected labels: strings or whole numbers")
        if float(np.abs(array).max(initial=0.0)) > 2**53:
            raise InputError(
                f"y holds {array[np.abs(array).argmax()]:g}; expected labels: strings or whole numbers up to 2**53"
            )
        array = array.astype(np.int64)
    labels, codes = np.unique(array, return_inverse=True)
    return tuple(labels.tolist()), codes.astype(np.int64).reshape(-1)


def check_two_labels(labels: tuple[Label, ...]) -> None:
    """Raise InputError unless there are at least two labels."""
    if len(labels) < 2:
        raise InputError(f"y has one label, {labels[0]!r}; expected at least two")


def at_least(name: str, value: int, least: int) -> None:
    """Raise InputError if an option is below its smallest allowed value."""
    if value < least:
        raise InputError(f"{name} is {value}; expected at least {least}")


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return the values as an array; InputError if the rows have different lengths."""
    try:
        return np.asarray(detached(values))
    except ValueError:
        raise InputError(f"{name} has rows of different lengths; expected an array") from None


def detached(values: Any) -> Any:
    """A torch tensor as an array, without its gradient and from any device; other values unchanged.

    Numbers of any precision become float64: numpy has no bfloat16. Torch need not be installed.
    """
    if not (hasattr(values, "detach") and hasattr(values, "is_floating_point")):
        return values
    tensor = values.detach().cpu()
    return (tensor.double() if tensor.is_floating_point() else tensor).numpy()


def _decoded(array: NDArray[np.bytes_]) -> NDArray[np.str_]:
    try:
        return np.char.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"y holds bytes that are not UTF-8 ({error.reason}); expected strings or whole numbers"
        ) from None


def text_array(texts: Sequence[str]) -> NDArray[Any]:
    """(n,) the texts as numpy strings; as Python objects if one ends in NUL, which numpy strings would lose.

    >>> text_array(["a\\0", "a"]).tolist()
    ['a\\x00', 'a']
    """
    ends_in_nul = any(text.endswith("\0") for text in texts)
    return np.array(texts, dtype=np.object_ if ends_in_nul else np.str_)


def with_nuls(values: Any) -> Any:
    """A list of strings as `text_array` keeps it; other values unchanged."""
    is_texts = isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)
    return text_array(values) if is_texts and len(values) else values


def _plain_labels(array: NDArray[np.object_]) -> NDArray[np.generic]:
    """Labels of an object array as an array of strings or of numbers; InputError if types are mixed."""
    kinds = {"a string" if isinstance(label, str) else type(label).__name__ for label in array.tolist()}
    if len(kinds) > 1 and not kinds <= {"int", "bool", "int64", "int32"}:
        other = next(i for i, label in enumerate(array.tolist()) if type(label) is not type(array[0]))
        raise InputError(
            f"y mixes labels of different types: {array[0]!r} at row 0, {array[other]!r} at row {other}; "
            "expected all strings or all numbers"
        )
    if kinds == {"a string"}:
        return text_array(array.tolist())
    plain = as_array(array.tolist(), "y")
    if plain.dtype.kind == "O" or plain.ndim != 1:
        raise InputError(
            f"y holds values of type {type(array[0]).__name__}; expected strings or whole numbers as labels"
        )
    return plain


@dataclass(frozen=True)
class Frame:
    """A translation and an exact change of unit: z = x / 2**exponent - centre.

    radius: the root mean square distance of the points from their mean, in the unit of the frame. It is between 0.5 and
    1, or 0 if all points are identical. The frame preserves the differences between points that lie far from the
    origin.
    """

    exponent: int
    centre: Floats
    radius: float

    @classmethod
    def of(cls, *parts: Floats) -> Frame:
        """The frame of the points in one or more arrays (n, d)."""
        largest = max(float(np.abs(part).max()) for part in parts)
        exponent = int(np.frexp(largest)[1]) if largest > 0 else 0
        n = sum(map(len, parts))
        total = sum(np.ldexp(block, -exponent).sum(axis=0) for part in parts for block in blocks(part))
        centre = total / n
        spread = max(
            float(np.abs(np.ldexp(block, -exponent) - centre).max()) for part in parts for block in blocks(part)
        )
        if spread <= 4 * UNIT * n:  # all points are identical, up to the rounding of their mean
            first = np.ldexp(parts[0][0], -exponent)
            if all((np.ldexp(block, -exponent) == first).all() for part in parts for block in blocks(part)):
                return cls(exponent, first, 0.0)
        shift = int(np.frexp(spread)[1])
        inner = sum(
            float((np.ldexp(np.ldexp(block, -exponent) - centre, -shift) ** 2).sum())
            for part in parts
            for block in blocks(part)
        )
        root = float(np.sqrt(inner / n))
        step = int(np.frexp(root)[1])
        return cls(exponent + shift + step, np.ldexp(centre, -shift - step), float(np.ldexp(root, -step)))

    def outside(self, lengths: Floats | float) -> Floats:
        """Convert lengths from the unit of the frame to the unit of the input; tiny ones may lose digits."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(lengths, self.exponent))

    def below(self, length: float) -> float:
        """The length in the unit of the input, rounded down."""
        return float(np.nextafter(self.outside(length), -np.inf))

    def above(self, length: float) -> float:
        """The length in the unit of the input, rounded up."""
        return float(np.nextafter(self.outside(length), np.inf))

    def inside(self, length: float) -> float:
        """Convert a length from the unit of the input to the unit of the frame."""
        return float(np.ldexp(length, -self.exponent))

    def place(self, points: Floats) -> Floats:
        """The points (n, d) in the frame, as float64."""
        with np.errstate(over="ignore"):
            placed = np.ldexp(points, -self.exponent)
        placed -= self.centre
        return placed

    @staticmethod
    def slack(longest: float, d: int) -> float:
        """A bound on the rounding error of the projection of a point, of length up to `longest`, on a unit vector.

        The error of d products and their sum, in any order, is at most d * UNIT of the sum of their absolute values;
        the point's own rounding and the length of the vector add a few units. The bound is twice that, so that its own
        rounding does not matter.
        """
        return 2 * (d + 16) * UNIT * longest + 1e-300


def blocks(points: Floats) -> list[Floats]:
    """The points in blocks of ROWS rows."""
    return [points[at : at + ROWS] for at in range(0, len(points), ROWS)]


def longest(points: Floats) -> float:
    """The length of the longest row, rounded up."""
    return max(float(np.sqrt(np.einsum("ij,ij->i", block, block).max())) for block in blocks(points)) * (1 + 1e-9)


def plain(value: object) -> object:
    """A value as JSON can store it: tuples become lists, NaN becomes None."""
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value

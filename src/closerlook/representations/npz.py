"""Read the arrays of a .npz file; their sizes are read from the headers before any memory is taken."""

from __future__ import annotations

import math
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.representations.memory import check_memory

AnyArray = NDArray[Any]
Arrays = dict[str, AnyArray]
"""Arrays by name, as in a .npz file."""

SUFFIX = ".npy"
"""The ending of an array's name in the archive."""


def read_npz(
    path: Path, names: Sequence[str], max_memory: int | None = None, *, required: Sequence[str] = ("X", "y")
) -> Arrays:
    """The arrays with these names that a .npz file has; pickled objects are refused.

    max_memory: bytes that the arrays may take together, see `check_memory`.
    """
    try:
        with path.open("rb") as stream:
            if not zipfile.is_zipfile(stream):
                raise InputError(
                    f"{path} cannot be read: it is no .npz archive; expected one with numbers X and labels y"
                )
            with zipfile.ZipFile(stream) as archive, warnings.catch_warnings(action="ignore"):
                members = {info.filename.removesuffix(SUFFIX): info for info in archive.infolist()}
                check_required(path, members, required)
                wanted = {name: members[name] for name in names if name in members}
                check_memory(path, sum(_bytes(path, archive, *member) for member in wanted.items()), max_memory)
                return {name: _read(archive, info) for name, info in wanted.items()}
    except (
        OSError,
        ValueError,
        EOFError,
        RuntimeError,
        OverflowError,
        MemoryError,
        TypeError,
        SyntaxError,
        tokenize.TokenError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{path} cannot be read ({reason}); expected .npz with numbers X and labels y") from None


def check_required(path: Path, names: Collection[str], required: Sequence[str] = ("X", "y")) -> None:
    """Raise InputError unless the required names are there."""
    missing = sorted(set(required) - set(names))
    if missing:
        held = ", ".join(ascii(name)[1:-1] for name in list(names)[:20]) or "nothing"
        raise InputError(
            f"{path} lacks {' and '.join(missing)}; it holds {held}: name the arrays with --x-key and --y-key "
            "(x_key=, y_key=)"
        )


def _bytes(path: Path, archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> int:
    """The size of an array, from its header; InputError if it holds objects, ValueError if the file is cut short."""
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ValueError(f"{name} is compressed in a way that numpy does not use")
    with archive.open(info) as stream:
        shape, dtype = _header(stream)
        start = stream.tell()
    if dtype.hasobject:
        raise InputError(
            f"{path}: {name} holds Python objects, which can run code when read; expected numbers or strings: save it "
            f"again with {name}.astype({'float' if name.startswith('X') else 'str'})"
        )
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size > info.file_size - start:
        raise ValueError(f"{name} has shape {shape}, for which the file has too few bytes")
    return size


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(stream)
    if version not in {(1, 0), (2, 0)}:
        raise ValueError(f"format {version[0]}.{version[1]} of an array; expected 1.0 or 2.0")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> AnyArray:
    with archive.open(info) as stream:
        array: AnyArray = npy.read_array(stream, allow_pickle=False)
    return array

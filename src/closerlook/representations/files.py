"""Save and load spaces: `.npz`, `.safetensors`, and the text folders of the released DirectProbe code."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import xxhash
from numpy.typing import NDArray

from closerlook.errors import DamagedFileError, InputError
from closerlook.escaping import parse_json
from closerlook.representations import directprobe
from closerlook.representations.atomic import atomic_write
from closerlook.representations.checked_json import CHECKSUM, UNWRITTEN
from closerlook.representations.memory import check_memory
from closerlook.representations.npz import AnyArray, Arrays, check_required, read_npz
from closerlook.representations.space import Provenance, Space
from closerlook.representations.tables import METADATA, Labelled, Names, is_table, read_labelled

ALIGNMENT = 64
"""Vectors start at a multiple of this many bytes in the file, so that a memory map of them is aligned."""

USUAL = Names()
NAMES = ("X", "y", "labels", "provenance", "words")
"""The arrays of a space in a .npz file."""

LONGEST_HEADER = 100_000_000
"""The largest header that the safetensors format allows, in bytes."""


def save_space(space: Space, path: Path) -> Path:
    """Write the space to a file or folder, chosen by the suffix; each file is written completely or not at all."""
    if path.suffix == ".npz":
        meta = json.dumps(space.provenance.to_dict())
        arrays: dict[str, Any] = {"X": space.X, "y": space.y, "provenance": np.array(meta)}
        arrays["labels"] = _text_array(space.labels)
        if space.words is not None:
            arrays["words"] = _text_array(space.words)
        with atomic_write(path) as stream:
            np.savez(stream, **arrays)
    elif path.suffix == ".safetensors":
        X, y = np.ascontiguousarray(space.X), np.ascontiguousarray(space.y)
        words = {} if space.words is None else {"words": json.dumps(space.words)}
        start = header(space.n, space.d, space.labels, space.provenance, **words)
        with atomic_write(path) as stream:
            stream.writelines((with_checksum(start, X, y), X.data, y.data))
    elif path.suffix == "":
        directprobe.save_folder(space, path)
    elif path.suffix == ".parquet":
        write_parquet(space, path)
    else:
        raise InputError(f"{path} ends in {path.suffix}; expected .npz, .safetensors, .parquet or a folder (no suffix)")
    return path


def _text_array(texts: tuple[str, ...]) -> AnyArray:
    """The texts for a .npz file; as JSON in one string if a text ends in NUL, which an array of strings would lose."""
    ends_in_nul = any(text.endswith("\0") for text in texts)
    return np.array(json.dumps(texts)) if ends_in_nul else np.array(texts, dtype=np.str_)


def _texts(array: AnyArray) -> list[str]:
    """The texts that `_text_array` wrote."""
    texts = parse_json(str(array)) if array.ndim == 0 else array.tolist()
    if array.ndim > 1 or not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"labels or words have shape {array.shape} and hold {array.dtype}; expected (n,) strings")
    return texts


def write_parquet(space: Space, path: Path) -> Path:
    """Write the space as Parquet: the columns `vector`, `label` and, if known, `word`; written completely or not."""
    import pyarrow as pa
    from pyarrow import parquet

    values = pa.array(np.ascontiguousarray(space.X).reshape(-1))
    columns = {
        "vector": pa.FixedSizeListArray.from_arrays(values, space.d),
        "label": pa.array(space.label_names.tolist()),
    }
    if space.words is not None:
        columns["word"] = pa.array(space.words)
    meta = {"labels": space.labels, "provenance": space.provenance.to_dict()}
    with atomic_write(path) as stream:
        parquet.write_table(pa.table(columns).replace_schema_metadata({METADATA: json.dumps(meta)}), stream)
    return path


def load_space(
    path: Path,
    split: str = "train",
    layer: int | None = None,
    names: Names = USUAL,
    *,
    max_memory: int | None = None,
) -> Space:
    """The space in that file or folder; `split` and `layer` choose among the spaces of a folder.

    names: what the vectors and labels are called in files of other programs. max_memory: bytes that it may take, see
    `check_memory`.
    """
    if is_table(path):
        return space_from_table(path, read_labelled(path, names, split, max_memory))
    if path.is_dir():
        return directprobe.load_folder(path, split, layer, max_memory)
    if not path.exists():
        raise InputError(
            f"{path} does not exist; expected a .npz or .safetensors file, a table (.npy, .csv, .tsv, .parquet), or a "
            "DirectProbe folder"
        )
    if path.suffix == ".npz":
        return space_from_arrays(path, read_named(path, names, max_memory=max_memory))
    if path.suffix == ".safetensors":
        try:
            check_memory(path, path.stat().st_size, max_memory)
            return _load_safetensors(path)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    if path.suffix == ".txt" and "embeddings" in path.absolute().parts:
        return directprobe.load_vectors(path, max_memory)
    raise InputError(
        f"{path} ends in {path.suffix or 'no suffix'}; expected .npz, .safetensors, .npy, .csv, .tsv, .parquet or a "
        "folder"
    )


def space_from_table(path: Path, read: Labelled) -> Space:
    """A space from the vectors in a table; if `Space.to_parquet` wrote it, with its labels and provenance."""
    try:
        space = Space.from_arrays(read.X, read.y, words=read.words)
        if read.metadata is None:
            return space
        labels = tuple(map(str, read.metadata["labels"]))
        codes = {label: code for code, label in enumerate(labels)}
        y = np.array([codes[name] for name in space.label_names.tolist()], dtype=np.int32)
        return Space(space.X, y, labels, Provenance.from_dict(read.metadata["provenance"]), space.words)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: its metadata do not match its labels; write the file again") from None


def header(n: int, d: int, labels: tuple[str, ...], provenance: Provenance, **extra: str) -> bytes:
    """The header of a safetensors file of X (n, d) float32 and y (n,) int32, with a placeholder for the checksum."""
    meta = {"labels": json.dumps(labels), "provenance": json.dumps(provenance.to_dict()), **extra, CHECKSUM: UNWRITTEN}
    size = 4 * n * d
    text = json.dumps(
        {
            "__metadata__": meta,
            "X": {"dtype": "F32", "shape": [n, d], "data_offsets": [0, size]},
            "y": {"dtype": "I32", "shape": [n], "data_offsets": [size, size + 4 * n]},
        }
    ).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def with_checksum(start: bytes, X: NDArray[np.float32], y: NDArray[np.int32]) -> bytes:
    """The header with the checksum filled in: a digest of the header itself, of X and of y."""
    digest = xxhash.xxh3_128(start)
    digest.update(X.data)
    digest.update(y.data)
    offset = start.rindex(UNWRITTEN.encode())
    return start[:offset] + digest.hexdigest().encode() + start[offset + len(UNWRITTEN) :]


def load_mapped(path: Path) -> tuple[Space, dict[str, str]]:
    """The space in a safetensors file that this library wrote, and the file's metadata.

    X and y are memory-mapped, and verified against the checksum. They share one map, since each map keeps a file open.
    The file is opened once: another process may put another one in its place, whose numbers differ in the last digits.
    Raises `DamagedFileError` if the content is wrong, `OSError` if the file cannot be opened.
    """
    with path.open("rb") as stream:
        return _map(path, stream)


def _map(path: Path, stream: BinaryIO) -> tuple[Space, dict[str, str]]:
    start, entries = _header(path, stream)
    try:
        meta = entries["__metadata__"]
        n, d = map(_length, entries["X"]["shape"])
        labels, provenance = _names(meta["labels"]), Provenance.from_dict(parse_json(meta["provenance"]))
        words = _names(meta["words"]) if "words" in meta else None
        unwritten = UNWRITTEN.join(start.decode("latin-1").rsplit(meta[CHECKSUM], 1)).encode("latin-1")
        intact = os.fstat(stream.fileno()).st_size == len(start) + 4 * n * d + 4 * n
        data = np.memmap(stream, dtype=np.uint8, mode="r", offset=len(start)) if intact else np.empty(0, np.uint8)
        X, y = data[: 4 * n * d].view("<f4").reshape(n, d), data[4 * n * d :].view("<i4")
        intact = intact and with_checksum(unwritten, X, y) == start
        intact = intact and y.min() >= 0 and y.max() < len(set(labels)) == len(labels)
        intact = intact and (words is None or len(words) == n)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
        intact = False
    if not intact:
        raise DamagedFileError(f"{path} is truncated or was altered: it does not match its checksum; make it again")
    return Space(X, y, labels, provenance, words), meta


def _length(value: object) -> int:
    """A dimension of X in the header; ValueError if it is not a positive whole number."""
    if not isinstance(value, int) or not 0 < value < 1 << 48:
        raise ValueError("a dimension is not a positive whole number")
    return value


def _names(text: str) -> tuple[str, ...]:
    """The list of strings in a text of JSON; ValueError if it is anything else."""
    names = parse_json(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("no list of strings")
    return tuple(names)


def read_header(path: Path) -> tuple[bytes, dict[str, Any]]:
    """The header of a safetensors file: its bytes, and its entries."""
    with path.open("rb") as stream:
        return _header(path, stream)


def _header(path: Path, stream: BinaryIO) -> tuple[bytes, dict[str, Any]]:
    size = stream.read(8)
    length = int.from_bytes(size, "little")
    text = stream.read(length) if length <= LONGEST_HEADER else b""
    try:
        entries = parse_json(text)
    except ValueError:
        entries = None
    if not isinstance(entries, dict) or not isinstance(entries.get("__metadata__", {}), dict):
        raise DamagedFileError(f"{path} is truncated or not a safetensors file; make it again")
    return size + text, entries


def _load_safetensors(path: Path) -> Space:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    _, entries = read_header(path)
    if CHECKSUM in entries.get("__metadata__", {}):
        return load_mapped(path)[0]
    try:
        arrays = load_file(path)
    except (SafetensorError, KeyError, TypeError) as error:  # KeyError, TypeError: a type that numpy does not have
        raise InputError(f"{path} cannot be read: {error}; expected tensors X and y") from None
    return space_from_arrays(path, arrays)


def read_named(path: Path, names: Names, more: Sequence[str] = (), *, max_memory: int | None = None) -> Arrays:
    """The arrays of a .npz file under the names of `NAMES`, whatever the file calls the vectors and the labels."""
    x, y = names.x or "X", names.y or "y"
    if (x, y) == ("X", "y"):
        return read_npz(path, (*NAMES, *more), max_memory)
    arrays = read_npz(path, (x, y, "words"), max_memory, required=(x, y))
    renamed = {"X": arrays[x], "y": arrays[y]}
    return renamed | ({"words": arrays["words"]} if "words" in arrays else {})


def space_from_arrays(path: Path, arrays: Arrays) -> Space:
    """A space from arrays by name: X and y, and optionally words; labels and provenance are used if both are there."""
    check_required(path, arrays)
    saved = "provenance" in arrays and "labels" in arrays
    try:
        words = _texts(arrays["words"]) if saved and "words" in arrays else arrays.get("words")
        space = Space.from_arrays(arrays["X"], arrays["y"], words=words)
        if not saved:
            return space
        meta, labels = Provenance.from_dict(parse_json(str(arrays["provenance"]))), _texts(arrays["labels"])
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ValueError, TypeError, AttributeError):
        raise InputError(f"{path}: its provenance or labels cannot be read; save the space again") from None
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"{path}: labels has {twice!a} twice; expected each label once")
    y = arrays["y"]
    if y.dtype.kind not in "iu":
        raise InputError(f"{path}: y holds {y.dtype}; expected whole numbers, the indices of labels")
    if y.min() < 0 or y.max() >= len(labels):
        raise InputError(
            f"{path}: y runs from {y.min()} to {y.max()}; expected 0 to {len(labels) - 1}, the indices of labels"
        )
    return Space(space.X, y.astype(np.int32), tuple(labels), meta, space.words)

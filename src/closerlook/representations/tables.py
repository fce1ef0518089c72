"""Read labelled vectors of other programs: .npy with a file of labels, CSV, Parquet, Hugging Face datasets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.escaping import parse_json
from closerlook.geometry.frame import text_array
from closerlook.representations.memory import check_memory

if TYPE_CHECKING:
    import pyarrow as pa

LABEL_COLUMNS = ("label", "labels", "y", "class", "target", "category")
WORD_COLUMNS = ("text", "word", "words", "sentence")
NOT_VECTORS = ("projection_x", "projection_y", "Unnamed: 0", "")
"""Columns of numbers that belong to no vector: the two-dimensional projection of embedding-atlas, and row numbers."""

LONGEST_NAME = 60
"""Characters of the name of a column in a message."""

DELIMITERS = ",;\t|"
TABLES = (".npy", ".csv", ".tsv", ".parquet")
METADATA = b"closerlook"
"""The entry of a Parquet file's metadata in which `Space.to_parquet` stores the labels and the provenance."""

AnyArray = NDArray[Any]


@dataclass(frozen=True)
class Names:
    """What vectors and labels are called in a file of another program; None: the usual names.

    x: the array or the columns of the vectors: names or patterns such as d*, separated by commas. y: the array or the
    column of the labels. labels: a file with one label for each row of a .npy file.
    """

    x: str | None = None
    y: str | None = None
    labels: Path | None = None


class Labelled(NamedTuple):
    """Vectors X (n, d), labels y (n,), the text of each row if known, and one line that says what was read."""

    X: AnyArray
    y: AnyArray
    words: AnyArray | None
    description: str
    metadata: dict[str, Any] | None = None


def is_table(path: Path) -> bool:
    """Whether this module reads the file or folder."""
    if str(path).startswith("hf:") or path.suffix.lower() in TABLES:
        return True
    return any((path / file).is_file() for file in ("dataset_dict.json", "state.json"))


def read_labelled(path: Path, names: Names, split: str = "train", max_memory: int | None = None) -> Labelled:
    """The labelled vectors in a file or folder; `split` chooses among the splits of a dataset.

    max_memory: bytes that the table may take, see `check_memory`.
    """
    if names.labels is not None and path.suffix != ".npy":
        raise InputError(f"labels {names.labels} given for {path}; only a .npy file needs a separate file of labels")
    try:
        if path.suffix == ".npy":
            return _read_npy(path, names, max_memory)
        return _from_table(_read_table(path, split, max_memory), names)
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(str(path)) else f"{path}: {message}") from None


def has_split(path: Path, split: str) -> bool:
    """Whether the path is a dataset that has this split."""
    return path.suffix.lower() not in TABLES and split in _load_dataset(path)


def _read_npy(path: Path, names: Names, max_memory: int | None) -> Labelled:
    if names.labels is None:
        raise InputError("a .npy file holds no labels; pass a file with one label for each row: --labels (labels=)")
    X = _load_npy(path, max_memory)
    y = _read_labels(names.labels, names.y)
    if len(X) != len(y):
        raise InputError(f"it has {len(X)} rows, and {names.labels} has {len(y)} labels; expected one for each row")
    return Labelled(X, y, None, f"labels from {names.labels}")


def _load_npy(path: Path, max_memory: int | None = None) -> AnyArray:
    try:
        mapped: AnyArray = np.load(path, mmap_mode="r", allow_pickle=False)  # takes no memory
        check_memory(path, mapped.nbytes, max_memory)
        array: AnyArray = np.array(mapped)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read ({reason}); expected an array of numbers or strings") from None
    return array


def _read_labels(path: Path, column: str | None) -> AnyArray:
    """The labels in a file: an array (.npy), a column of a table, or lines of text."""
    if path.suffix == ".npy":
        return _load_npy(path)
    if path.suffix.lower() in TABLES:
        table = _read_table(path, "train")
        return _labels(table, _label_column(table, column))
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InputError(f"labels {path} cannot be read: {reason}; expected one label in each line") from None
    empty = next((i for i, line in enumerate(lines, start=1) if not line.strip()), None)
    if empty is not None:
        raise InputError(f"labels {path}: line {empty} is empty; expected one label in each line")
    return np.array([line.strip() for line in lines], dtype=np.str_)


# ---- tables ----


def _read_table(path: Path, split: str, max_memory: int | None = None) -> pa.Table:
    """The table in a CSV or Parquet file, or one split of a dataset."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    suffix = path.suffix.lower()
    if suffix not in TABLES:
        return _dataset_table(path, split)
    try:
        if suffix == ".parquet":
            groups = parquet.read_metadata(path)
            sizes = (groups.row_group(at).total_byte_size for at in range(groups.num_row_groups))
            check_memory(path, sum(sizes), max_memory)
            return parquet.read_table(path)
        with path.open("rb") as stream:
            header = stream.readline(1 << 20).decode("utf-8-sig", "replace")
        delimiter = "\t" if suffix == ".tsv" else max(DELIMITERS, key=header.count)
        long_rows = csv.ReadOptions(block_size=1 << 24)
        table = csv.read_csv(path, long_rows, csv.ParseOptions(delimiter=delimiter))
        table.column_names  # noqa: B018 - raises if a name is not UTF-8
        return table
    except (OSError, pa.ArrowException, UnicodeDecodeError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise InputError(f"it cannot be read ({reason}); expected a table with vectors and labels") from None


def _load_dataset(path: Path) -> dict[str, Any]:
    from closerlook.tasks.readers.hub import load_dataset

    return load_dataset(str(path).removeprefix("hf:"), None, None)


def _dataset_table(path: Path, split: str) -> pa.Table:
    """One split of a dataset as a table, with the names of its labels; the only split, whatever it is called."""
    import pyarrow as pa

    splits = _load_dataset(path)
    if split not in splits and len(splits) > 1:
        raise InputError(f"it has the splits {', '.join(splits)}, but no {split}; expected a split of that name")
    dataset = splits.get(split, next(iter(splits.values())))
    table = dataset.with_format("arrow")[:]
    for name, feature in dataset.features.items():
        known = getattr(feature, "names", None)
        if known and pa.types.is_integer(table.schema.field(name).type):
            codes = table.column(name).to_pylist()
            wrong = next((i for i, code in enumerate(codes) if code is None or not 0 <= code < len(known)), None)
            if wrong is not None:
                raise InputError(
                    f"row {wrong} of column {name} has the label {codes[wrong]}; expected a label's number"
                )
            table = table.set_column(table.column_names.index(name), name, pa.array([known[code] for code in codes]))
    return table


def _from_table(table: pa.Table, names: Names) -> Labelled:
    if table.num_rows == 0:
        raise InputError("the table has no rows; expected one vector in each row")
    twice = next((name for name, n in Counter(table.column_names).items() if n > 1), None)
    if twice is not None:
        raise InputError(f"two columns are called {twice[:LONGEST_NAME]!r}; expected different names")
    label = _label_column(table, names.y)
    y = _labels(table, label)
    word = next((name for name in WORD_COLUMNS if name in table.column_names and name != label), None)
    chosen, ignored = _vector_columns(table, names.x, {label, word})
    if len(chosen) == 1 and not _is_number(table, chosen[0]):
        X = _lists(table, chosen[0])
    else:
        X = np.stack([_numbers(table, name) for name in chosen], axis=1)
    words = None
    if word is not None and _is_text(table, word) and table.column(word).null_count == 0 and word not in chosen:
        words = text_array(_values(table, word))
    shown = chosen[0] if len(chosen) == 1 else f"{chosen[0]} … {chosen[-1]}"
    others = f"; not used: {', '.join(map(repr, ignored))}" if ignored else ""
    stored = (table.schema.metadata or {}).get(METADATA)
    return Labelled(
        X, y, words, f"vectors from {shown} ({X.shape[1]} numbers), labels from {label}{others}", _json(stored)
    )


def _json(stored: bytes | None) -> dict[str, Any] | None:
    try:
        value = None if stored is None else parse_json(stored)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _label_column(table: pa.Table, name: str | None) -> str:
    columns = table.column_names
    if name is not None:
        if name not in columns:
            raise InputError(f"there is no column {name!r}; the columns are {_listed(columns)}")
        return name
    usual = [column for column in LABEL_COLUMNS if column in columns]
    if len(usual) != 1:
        found = (
            f"{' and '.join(usual)} may be the label" if usual else f"no column is called {' or '.join(LABEL_COLUMNS)}"
        )
        raise InputError(f"{found}; name the column with --y-key (y_key=); the columns are {_listed(columns)}")
    return usual[0]


def _labels(table: pa.Table, name: str) -> AnyArray:
    values = _values(table, name)
    missing = next((i for i, value in enumerate(values) if value is None or value == ""), None)
    if missing is not None:
        raise InputError(f"row {missing} has no label in column {name}; expected a label in every row")
    labels: AnyArray = text_array(values) if all(isinstance(value, str) for value in values) else np.asarray(values)
    return labels


def _values(table: pa.Table, name: str) -> list[Any]:
    """The values of a column; InputError if it has texts that are not UTF-8."""
    try:
        values: list[Any] = table.column(name).to_pylist()
    except UnicodeDecodeError:
        raise InputError(f"column {name} has a text that is not UTF-8; expected UTF-8 text") from None
    return values


def _vector_columns(table: pa.Table, wanted: str | None, taken: set[str | None]) -> tuple[list[str], list[str]]:
    """The columns of the vectors, and the columns that are not used."""
    columns = [name for name in table.column_names if name not in taken]
    if wanted is not None:
        chosen = _matching(table.column_names, wanted)
    else:
        lists = [name for name in columns if _is_list(table, name)]
        if len(lists) > 1:
            raise InputError(f"{_listed(lists)} hold vectors; choose one with --x-key (x_key=)")
        chosen = lists or [
            name
            for name in columns
            if _is_number(table, name) and name not in NOT_VECTORS and not name.startswith("__")
        ]
        text = [name for name in columns if _is_text(table, name)]
        if text and not lists:
            raise InputError(
                f"{_listed(text)} hold text; name the columns of the vectors with --x-key (x_key=), such as 'd*'"
            )
    if not chosen:
        raise InputError(f"no column holds vectors or numbers; the columns are {_listed(table.column_names)}")
    return chosen, [name for name in columns if name not in chosen]


def _matching(columns: list[str], wanted: str) -> list[str]:
    """The columns that match a name or pattern, in the order of the table."""
    patterns = [pattern.strip() for pattern in wanted.split(",")]
    lacking = next((p for p in patterns if not any(fnmatchcase(name, p) or name == p for name in columns)), None)
    if lacking is not None:
        raise InputError(f"no column is called {lacking!r}; the columns are {_listed(columns)}")
    return [name for name in columns if any(fnmatchcase(name, p) or name == p for p in patterns)]


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…") for name in names[:8])
    return f"{shown} … ({len(names)} columns)" if len(names) > 8 else shown


def _numbers(table: pa.Table, name: str) -> AnyArray:
    import pyarrow as pa

    column = table.column(name)
    if not _is_number(table, name):
        raise InputError(f"column {name!r} holds {column.type}; expected numbers, or one column of vectors")
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InputError(f"row {row} of column {name!r} is empty; expected a number in every row")
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    numbers: AnyArray = column.to_numpy()
    return numbers


def _lists(table: pa.Table, name: str) -> AnyArray:
    """(n, d) the vectors in a column of lists, or of texts such as '[0.5, 1.25]'."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name).combine_chunks()
    if _is_text(table, name):
        column = _parsed(column, name)
    if not _is_list_type(column.type):
        raise InputError(f"column {name!r} holds {column.type}; expected lists of numbers")
    lengths = pc.list_value_length(column).to_pylist()
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0] or not length), None)
    if odd is not None:
        raise InputError(
            f"row {odd} of column {name!r} has {lengths[odd] or 'no'} numbers, and row 0 has {lengths[0] or 'none'}; "
            "expected vectors of one length"
        )
    values = column.flatten()
    if values.null_count:
        raise InputError(f"column {name!r} has vectors with missing numbers; expected numbers only")
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    array: AnyArray = values.to_numpy(zero_copy_only=False).reshape(len(lengths), -1)
    return array


def _parsed(column: pa.Array, name: str) -> pa.Array:
    """Texts such as '[0.5, 1.25]' as lists of numbers."""
    import pyarrow as pa

    rows = []
    for number, text in enumerate(column.to_pylist()):
        try:
            rows.append([float(value) for value in parse_json(text or "")])
        except (ValueError, TypeError):
            raise InputError(
                f"row {number} of column {name!r} holds {str(text)[:30]!r}; expected numbers, or a list of numbers "
                "such as [0.5, 1.25]"
            ) from None
    return pa.array(rows, type=pa.list_(pa.float64()))


def _is_number(table: pa.Table, name: str) -> bool:
    import pyarrow as pa

    kind = table.schema.field(name).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_text(table: pa.Table, name: str) -> bool:
    import pyarrow as pa

    kind = table.schema.field(name).type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_list(table: pa.Table, name: str) -> bool:
    return _is_list_type(table.schema.field(name).type)


def _is_list_type(kind: Any) -> bool:
    """Whether a column of this type holds lists of numbers."""
    import pyarrow as pa

    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        return False
    return bool(pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type))

"""The records of tables: CSV and TSV, JSON lines, JSON, Parquet, a DataFrame or a list of dicts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.errors import InputError
from closerlook.tasks.readers.records import Record, Records, annotate
from closerlook.tasks.readers.source import Options, Reading, numbered_lines, read_any_text, read_text, short_repr
from closerlook.tasks.readers.values import parse_json

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
"""What may separate the fields of a table."""


def read_csv(path: Path, split: str, options: Options) -> Reading:
    """Read a CSV file with a header: the unit, and the annotated texts of each split."""
    return _read_delimited(path, split, options, ",")


def read_tsv(path: Path, split: str, options: Options) -> Reading:
    """Read a TSV file with a header: the unit, and the annotated texts of each split."""
    return _read_delimited(path, split, options, "\t")


def read_jsonl(path: Path, split: str, options: Options) -> Reading:
    """Read a file with one JSON object per line: the unit, and the annotated texts of each split."""
    return read_records(str(path), _objects(read_text(path)), split, options)


def read_json(path: Path, split: str, options: Options) -> Reading:
    """Read a file with a JSON list of objects (such as Label Studio exports), or with one object per line."""
    text = read_text(path)
    if not text.lstrip().startswith("["):
        return read_records(str(path), _objects(text), split, options)
    try:
        items = parse_json(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return read_items(str(path), items, split, options, number_name="record")


def read_parquet(path: Path, split: str, options: Options) -> Reading:
    """Read a Parquet file: the unit, and the annotated texts of each split."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        batches = pq.ParquetFile(path).iter_batches()
        items = (item for batch in batches for item in batch.to_pylist())
        return read_items(str(path), items, split, options, number_name="row")
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: cannot be read as Parquet ({reason}); expected a table") from None


def read_frame(where: str, table: pd.DataFrame | Iterable[Mapping[str, Any]], split: str, options: Options) -> Reading:
    """The records of a DataFrame, or of a sequence of dicts: the unit, and the annotated texts of each split."""
    items: Iterable[Any] = table.to_dict("records") if hasattr(table, "to_dict") else table
    return read_items(where, items, split, options, number_name="row")


def read_items(where: str, items: Iterable[object], split: str, options: Options, *, number_name: str) -> Reading:
    """The annotated texts of records that are Python values."""
    records = ((number, _record(item)) for number, item in enumerate(items, start=1))
    return read_records(where, records, split, options, number_name=number_name)


def read_records(
    where: str, records: Records, split: str, options: Options, *, from_csv: bool = False, number_name: str = "line"
) -> Reading:
    """The annotated texts of records; an InputError is raised if none has a label."""
    reading = annotate(where, records, split, options, from_csv=from_csv, number_name=number_name)
    if reading is None:
        raise InputError(
            f"{where}: no labelled example found; check the options that name the columns: label=, text=, words="
        )
    return reading


# ---- JSON ----


def _objects(text: str) -> Records:
    for number, line in numbered_lines(text):
        if not line.strip():
            continue
        try:
            record = _record(parse_json(line))
        except InputError as error:
            record = error
        yield number, record


def _record(item: object) -> Record | InputError:
    """A JSON object or a dict as a record; one that Label Studio exported is turned into text and label."""
    if not isinstance(item, Mapping):
        return InputError(f"invalid record {short_repr(item)}; expected a JSON object")
    if isinstance(item.get("data"), dict) and isinstance(item.get("annotations"), list):
        try:
            return _from_label_studio(item)
        except InputError as error:
            return error
    return {
        str(name): value.tolist() if type(value).__module__ == "numpy" else _without_na(value)
        for name, value in item.items()
    }


def _without_na(value: object) -> object:
    """None for pandas' own missing values."""
    return None if type(value).__name__ in {"NAType", "NaTType"} else value


def _from_label_studio(item: Mapping[str, Any]) -> Record:
    """The data of a labelled item and its label: spans with characters, or the choice for the whole text."""
    annotations = _list_of(dict, "objects", item, "annotations")
    done = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    results = _list_of(dict, "objects", done[0], "result") if done else []
    values = [result["value"] for result in results if isinstance(result.get("value"), dict)]
    choices = [choice for value in values for choice in _list_of(str, "texts", value, "choices")]
    spans = [value for value in values if "start" in value and "end" in value]
    return {**item["data"], **({"label": choices} if choices else {"spans": spans})}


def _list_of(kind: type, expected: str, item: Mapping[str, Any], name: str) -> list[Any]:
    """The list under a name, empty if there is none; an InputError if it has values of another kind."""
    found = item.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, kind) for one in found):
        raise InputError(f"invalid {name} {short_repr(found)}; expected a list of {expected}, as Label Studio exports")
    return found


# ---- CSV ----


def _read_delimited(path: Path, split: str, options: Options, usual: str) -> Reading:
    text, notes = read_any_text(path, options.encoding)
    delimiter = _find_delimiter(text, usual)
    if delimiter != usual:
        notes.append(f"{path}: its fields are separated by {DELIMITERS[delimiter]}s")
    reading = read_records(str(path), _rows(path, text, delimiter), split, options, from_csv=True)
    reading.notes[:0] = notes
    return reading


def _find_delimiter(text: str, usual: str) -> str:
    """The delimiter that divides the header into the most fields; the usual one if several do."""
    header = next((line for _, line in numbered_lines(text) if line.strip()), "")

    def fields(delimiter: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=delimiter)))
        except csv.Error:
            return 0

    return max((usual, *DELIMITERS), key=fields)


def _rows(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, Record | InputError]]:
    """The rows of a table with a header, each with the number of its first line."""
    # strict: an unpaired quote is an error; otherwise it would swallow the following fields
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            advice = "enclose a field that contains a quote in quotes, and double the inner quotes"
            yield number, InputError(f"{error}; {advice}")
            return
        if header is None:
            if any(row):
                header = _header(path, number, row)
        elif len(row) == len(header):
            yield number, {name: value for name, value in zip(header, row, strict=True) if name}
        elif any(field.strip() for field in row):
            name = DELIMITERS[delimiter]
            yield (
                number,
                InputError(
                    f"{len(row)} fields, but the header has {len(header)}; separate fields by {name}s, and quote a "
                    f"field that contains a {name}"
                ),
            )


def _header(path: Path, number: int, row: list[str]) -> list[str]:
    """The names of the columns; a column without a name is not read."""
    header = [name.strip() for name in row]
    names = [name for name in header if name]
    if len(set(names)) < len(names):
        raise InputError(
            f"{path}, line {number}: duplicate names in the columns {short_repr(header)}; expected each name once"
        )
    return header

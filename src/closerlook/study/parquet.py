"""Parquet files with a checksum of the whole file in their metadata, so that a damaged table is noticed when read."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.errors import DamagedFileError
from closerlook.representations.atomic import atomic_write
from closerlook.representations.checked_json import UNWRITTEN, fill_checksum, matches_checksum

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

KEY = "closerlook.checksum"
VALUE = re.compile(rb"closerlook\.checksum\x18\x20([0-9a-f]{32})")
"""The entry in the file's last part: its name, the Thrift header of a string of 32 bytes, and the checksum."""

END = 8
"""The last bytes of a Parquet file: the length of the metadata, and 'PAR1'."""


def write_parquet(table: pa.Table, path: Path, **options: Any) -> None:
    """Write a table with a checksum; completely or not at all. options: those of `pyarrow.parquet.write_table`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    metadata = {**(table.schema.metadata or {}), KEY.encode(): UNWRITTEN.encode()}
    pq.write_table(table.replace_schema_metadata(metadata), buffer, **options)
    content = buffer.getvalue().to_pybytes()
    start = _checksum_start(content)
    if start is None:
        raise AssertionError("pyarrow did not write the metadata as a string of its own")
    with atomic_write(path) as stream:
        stream.write(fill_checksum(content, start))


def read_parquet(path: Path) -> tuple[pd.DataFrame, bool]:
    """The table in a file, and whether the file has a checksum; raises DamagedFileError if they do not match.

    Files that other programs or earlier versions of this library wrote have no checksum.
    """
    from pyarrow import parquet

    content = path.read_bytes()
    start = _checksum_start(content)
    if start is not None and not matches_checksum(content, start):
        raise DamagedFileError(f"{path} does not match its checksum: it was damaged or edited")
    table = parquet.read_table(io.BytesIO(content))
    return table.to_pandas(ignore_metadata=True), start is not None  # pandas' own metadata may be damaged


def _checksum_start(content: bytes) -> int | None:
    """Where the checksum is in a file; None if the file has none."""
    length = int.from_bytes(content[-END:-4], "little")
    first = max(0, len(content) - END - length)
    found = VALUE.search(content, first)
    return None if found is None else found.start(1)

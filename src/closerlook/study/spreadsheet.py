"""CSV files in which a spreadsheet shows every text as text, never as a formula; numbers are unchanged."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Literal

from closerlook.escaping import csv_text, from_csv_text

if TYPE_CHECKING:
    import pandas as pd


def write_csv(table: pd.DataFrame, stream: IO[bytes]) -> None:
    """Write the table. A text that begins as a formula does (=, +, -, @, tab, line break) gets an apostrophe in front.

    `read_texts` removes it again.
    """
    safe = change_texts(table, csv_text)
    has_returns = any("\r" in text for name in _text_columns(table) for text in _distinct(table[name]))
    # pandas does not quote a carriage return
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if has_returns else csv.QUOTE_MINIMAL
    safe.to_csv(stream, index=False, encoding="utf-8", quoting=quoting)


def read_texts(table: pd.DataFrame) -> pd.DataFrame:
    """A table that was read from CSV, with its texts as they were before `write_csv`."""
    return change_texts(table, from_csv_text)


def change_texts(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """The table with every text changed; columns without a changed text stay the same objects."""
    changed = {}
    for name in _text_columns(table):
        texts = {text: new for text in _distinct(table[name]) if (new := change(text)) != text}
        if texts:
            changed[name] = table[name].map(lambda value, texts=texts: texts.get(value, value), na_action="ignore")
    return table.assign(**changed)


def _text_columns(table: pd.DataFrame) -> list[str]:
    return [name for name in table.columns if table[name].dtype.kind not in "iufbM"]


def _distinct(column: pd.Series[str]) -> list[str]:
    return [value for value in column.dropna().unique() if isinstance(value, str)]

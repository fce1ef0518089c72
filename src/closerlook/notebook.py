"""Results as HTML, which notebooks show in the place of their text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from closerlook.escaping import show_name

if TYPE_CHECKING:
    import pandas as pd

ROWS, COLUMNS = 10, 12
"""How many rows and columns of a table are shown."""


def html(title: str, *parts: str | Sequence[str] | pd.DataFrame) -> str:
    """A result as HTML. parts: a text becomes a paragraph, several texts a list, a table its first rows.

    Everything is escaped, since titles, texts and tables contain labels and words of users.

    >>> html("1 < 2", "so it is")
    '<div><p><strong>1 &lt; 2</strong></p><p>so it is</p></div>'
    """
    return f"<div><p><strong>{_text(title)}</strong></p>{''.join(map(_part, parts))}</div>"


def _part(part: str | Sequence[str] | pd.DataFrame) -> str:
    if isinstance(part, str):
        return f"<p>{_text(part)}</p>"
    if isinstance(part, Sequence):
        return f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in part)}</ul>"
    return _table(part)


def _table(table: pd.DataFrame) -> str:
    """The first rows and columns of a table, and how many there are in all if these are not all."""
    shown = table.iloc[:ROWS, :COLUMNS]
    head = "".join(f"<th>{_text(str(name))}</th>" for name in shown.columns)
    columns = [shown[name].tolist() for name in shown.columns]
    rows = "".join(
        f"<tr>{''.join(f'<td>{_text(_cell(value))}</td>' for value in row)}</tr>" for row in zip(*columns, strict=True)
    )
    drawn = f'<table class="dataframe"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    if shown.shape == table.shape:
        return drawn
    of_columns = "" if len(shown.columns) == len(table.columns) else f", {COLUMNS} of {len(table.columns):,} columns"
    return f"{drawn}<p>{len(shown):,} of {len(table):,} rows{of_columns}</p>"


def _cell(value: object) -> str:
    """A value as text: four digits of a number, nothing for a missing value."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _text(text: str) -> str:
    return escape(show_name(text))

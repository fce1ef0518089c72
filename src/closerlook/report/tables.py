"""A table as plain values, and how its values are written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from closerlook.study.readings import Measurement

MISSING = "–"

Subject = Literal["", "encoder", "task"]
"""What the reader of a page can choose."""

SUBJECTS: dict[str, Subject] = {
    "encoder": "encoder",
    **dict.fromkeys(("task", "probed on", "fine-tuned on", "trained on"), "task"),
}
"""The titles of columns that hold names of encoders or tasks: their rows follow the reader's choice."""


@dataclass(frozen=True)
class Term:
    """A name and its meaning in one line."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Remark:
    """A remark about a row; is_exception: whether it says that the row contradicts the finding the table is about."""

    text: str
    is_exception: bool = False

    def __bool__(self) -> bool:
        return bool(self.text)


Value = str | int | float | bool | Measurement | Term | Remark | None


@dataclass(frozen=True)
class Column:
    """A column of a table.

    title: its heading. group: a heading that it shares with its neighbours. digits: decimals shown. signed: whether
    positive numbers get a plus sign. left: whether it is aligned to the left, as text is. p_value: whether it holds
    p-values, of which the smallest are shown as '< 0.0001', never as 0. of: what the title is the name of, if the
    column holds the values of one encoder or task.
    """

    title: str
    group: str = ""
    digits: int = 2
    signed: bool = False
    left: bool = False
    p_value: bool = False
    of: Subject = ""

    @property
    def names(self) -> Subject:
        """What its cells are names of, if they are names of encoders or tasks."""
        return "" if self.of else SUBJECTS.get(self.title, "")


@dataclass(frozen=True)
class Table:
    """A table: its name (in links and file names), title, a note that explains it, columns and rows."""

    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]

    def __bool__(self) -> bool:
        return bool(self.rows)

    def shown(self) -> list[list[str]]:
        """The rows as text."""
        return [
            [show_value(value, column) for value, column in zip(row, self.columns, strict=True)] for row in self.rows
        ]

    def without_empty(self) -> Table:
        """The same table without columns that have no values."""
        filled = [at for at in range(len(self.columns)) if any(_is_filled(row[at]) for row in self.rows)]
        rows = tuple(tuple(row[at] for at in filled) for row in self.rows)
        return Table(self.name, self.title, self.note, tuple(self.columns[at] for at in filled), rows)

    def titles(self) -> list[str]:
        """The headings of the columns, each preceded by its group: 'accuracy, % before'."""
        return [f"{column.group} {column.title}".strip() for column in self.columns]


def text_columns(*titles: str) -> tuple[Column, ...]:
    """Columns of text with the given titles."""
    return tuple(Column(title, left=True) for title in titles)


def _is_filled(value: Value) -> bool:
    return bool(value) if isinstance(value, Remark) else value not in (None, "")


def show_value(value: Value, column: Column) -> str:
    """A value as text, with its spread and its null.

    >>> show_value(Measurement(92.326, sd=0.61), Column("accuracy", digits=1))
    '92.3 ± 0.6'
    >>> show_value(-0.5, Column("change", signed=True)), show_value(12345, Column("n"))
    ('−0.50', '12,345')
    """
    if isinstance(value, Term):
        return f"{value.name}: {value.meaning}"
    if isinstance(value, Measurement):
        null = show_null(value, column)
        return show_number(value.value, column) + show_spread(value, column) + (f" ({null})" if null else "")
    return show_plain(value, column)


def show_plain(value: Value, column: Column) -> str:
    """A value as text, without spread, null and meaning."""
    match value:
        case None:
            return MISSING
        case bool():
            return "yes" if value else "no"
        case str(text) | Remark(text=text) | Term(name=text):
            return text
        case Measurement(value=number) | number:
            return show_number(number, column)


def show_number(value: float, column: Column) -> str:
    """A number as text; a dash if it is not finite."""
    if not math.isfinite(value):
        return MISSING
    if column.p_value and 0 <= value < (1 - 1e-6) * 10**-column.digits:  # archives keep 32 bits
        return f"< {10**-column.digits:.{column.digits}f}"
    sign = "+" if column.signed else ""
    text = f"{value:{sign},d}" if isinstance(value, int) else f"{value:{sign},.{column.digits}f}"
    is_zero = text.lstrip("+-").strip("0.,") == ""
    return text.lstrip("+-") if is_zero else text.replace("-", "−")


def show_spread(value: Measurement, column: Column) -> str:
    """The spread that follows a number: ' ± sd' or ' [low, high]'; empty if it is unknown."""
    plain = Column("", digits=column.digits)
    if value.sd is not None:
        return f" ± {show_number(value.sd, plain)}"
    if value.low is None or value.high is None:
        return ""
    return f" [{show_number(value.low, plain)}, {show_number(value.high, plain)}]"


def show_null(value: Measurement, column: Column) -> str:
    """The null of a measurement: 'shuffled labels 0.02 ± 0.15'; empty if no null was computed.

    If the null was computed on a subsample, the value of the true labels on the same subsample follows:
    'subsample: shuffled labels 40.0 ± 4.0, subsample: true labels 5.0'.
    """
    if value.null_mean is None:
        return ""
    plain = Column("", digits=column.digits)
    spread = show_spread(Measurement(0, sd=value.null_sd), plain)
    null = f"shuffled labels {show_number(value.null_mean, plain)}{spread}"
    if value.subsampled is None:
        return null
    return f"subsample: {null}, subsample: true labels {show_number(value.subsampled, plain)}"


def show_before_after(before: Measurement | None, after: Measurement | None, column: Column) -> str | None:
    """Two values as '0.80 → 0.60'; the first alone if there is no second; None if there is neither."""
    if before is None and after is None:
        return None
    first = show_plain(before, column)
    return first if after is None else f"{first} → {show_plain(after, column)}"


def show_signed(value: float, digits: int) -> str:
    """A number with its sign: '+1.5', '−0.20'."""
    return f"{value:+.{digits}f}".replace("-", "−")


def count_of(n: int, noun: str) -> str:
    """A count with its noun: '1 task', '2 tasks'."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"

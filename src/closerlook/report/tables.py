"""A table as plain values, and how its values look; what it is made of stands in `probing.py` and its neighbours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from closerlook.study.readings import Reading

MISSING = "–"


@dataclass(frozen=True)
class Measured:
    """A number with what is known of its spread: a standard deviation (over `seeds`), or a 95% interval.

    chance, chance_sd: what the same measure gives by chance, mean and standard deviation. against: the measure on the
    points that chance was tried on, where these are fewer.
    """

    value: float
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    chance_sd: float | None = None
    against: float | None = None

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Where a line through the value ends: its standard deviation to both sides, else its interval."""
        return (self.low, self.high) if self.sd is None else (self.value - self.sd, self.value + self.sd)

    def scaled(self, factor: float) -> Measured:
        """The same in another unit."""
        parts = (self.sd, self.low, self.high, self.chance, self.chance_sd, self.against)
        return Measured(self.value * factor, *(None if part is None else part * factor for part in parts))


@dataclass(frozen=True)
class Term:
    """A name and what it means, in one line."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Remark:
    """A remark about a row; is_exception: whether it says that the row contradicts the finding the table is about."""

    text: str
    is_exception: bool = False

    def __bool__(self) -> bool:
        return bool(self.text)


Value = str | int | float | bool | Measured | Term | Remark | None


@dataclass(frozen=True)
class Column:
    """A column: its title, the title over several, digits after the point, whether a plus is written; left: as text.

    level: of p-values, which are never 0: the smallest are shown as '< 0.0001'.
    """

    title: str
    group: str = ""
    digits: int = 2
    signed: bool = False
    left: bool = False
    level: bool = False


@dataclass(frozen=True)
class Table:
    """A table with its name (in file names and links), title, what one must know to read it, columns and rows."""

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
        """The same without columns in which nothing stands."""
        filled = [at for at in range(len(self.columns)) if any(_is_filled(row[at]) for row in self.rows)]
        rows = tuple(tuple(row[at] for at in filled) for row in self.rows)
        return Table(self.name, self.title, self.note, tuple(self.columns[at] for at in filled), rows)

    def titles(self) -> list[str]:
        """The columns' titles with those over them: 'accuracy, % before'."""
        return [f"{column.group} {column.title}".strip() for column in self.columns]


def _is_filled(value: Value) -> bool:
    return bool(value) if isinstance(value, Remark) else value not in (None, "")


def show_value(value: Value, column: Column) -> str:
    """A value as people read it.

    >>> show_value(Measured(92.326, sd=0.61), Column("accuracy", digits=1))
    '92.3 ± 0.6'
    >>> show_value(-0.5, Column("change", signed=True)), show_value(12345, Column("n"))
    ('−0.50', '12,345')
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, Remark):
        return value.text
    if isinstance(value, Term):
        return f"{value.name}: {value.meaning}"
    if isinstance(value, Measured):
        chance = show_chance(value, column)
        return show_number(value.value, column) + show_spread(value, column) + (f" ({chance})" if chance else "")
    return show_number(value, column)


def show_number(value: float, column: Column) -> str:
    """The number alone."""
    if column.level and 0 <= value < (1 - 1e-6) * 10**-column.digits:  # archives keep 32 bits
        return f"< {10**-column.digits:.{column.digits}f}"
    sign = "+" if column.signed else ""
    text = f"{value:{sign},d}" if isinstance(value, int) else f"{value:{sign},.{column.digits}f}"
    zero = text.lstrip("+-").strip("0.,") == ""
    return text.lstrip("+-") if zero else text.replace("-", "−")


def show_spread(value: Measured, column: Column) -> str:
    """What follows the number: ' ± sd' or ' [low, high]'."""
    plain = Column("", digits=column.digits)
    if value.sd is not None:
        return f" ± {show_number(value.sd, plain)}"
    if value.low is None or value.high is None:
        return ""
    return f" [{show_number(value.low, plain)}, {show_number(value.high, plain)}]"


def show_chance(value: Measured, column: Column) -> str:
    """What chance gives: 'chance 0.02 ± 0.15', and against what; nothing where that was not measured."""
    if value.chance is None:
        return ""
    plain = Column("", digits=column.digits)
    against = "" if value.against is None else f" against {show_number(value.against, plain)}"
    return f"chance {show_number(value.chance, plain)}{show_spread(Measured(0, value.chance_sd), plain)}{against}"


def over_seeds(readings: Sequence[Reading | None], spread: Sequence[Reading | None] = ()) -> Measured | None:
    """The mean over fine-tunings with their standard deviation; of one alone: its own spread or interval.

    spread: the standard deviation that each was measured with, of probes with other seeds.
    """
    there = [one for one in readings if one is not None]
    if not there:
        return None
    values = [one.value for one in there]
    if len(values) > 1:
        return Measured(statistics.fmean(values), sd=statistics.stdev(values))
    sd = next((one.value for one in spread if one is not None), None)
    return Measured(values[0], sd) if sd is not None else Measured(values[0], None, there[0].low, there[0].high)


def difference(first: Measured | None, second: Measured | None) -> float | None:
    """The second minus the first."""
    return None if first is None or second is None else second.value - first.value

"""Reads the results file of `GeometryCallback`: lines of JSON, one for each task, layer and measured step."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("closerlook.report")

COUNTS = ("step", "start_step", "layer", "labels", "clusters", "conflicts", "undecided", "skipped")
NUMBERS = (*COUNTS, "seconds", "share", "relative_minimum_distance", "similarity", "held_out_accuracy")
"""Fields of a line that are whole numbers, and all that are numbers; of these, the others may be null."""

ALARMS = ("held_out_accuracy", "similarity")
"""The measures that raise alarms."""


@dataclass(frozen=True, eq=False)
class Training:
    """One training of a results file. rows: one for each task, layer and step, in the order of the training."""

    rows: pd.DataFrame

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks, in the order in which they were measured."""
        return list(dict.fromkeys(self.rows.task))

    def records(self, task: str | None = None) -> list[dict[str, Any]]:
        """The rows of a task, by default of all tasks, as dictionaries."""
        rows = self.rows if task is None else self.rows[self.rows.task == task]
        return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]

    def alarms(self) -> list[dict[str, Any]]:
        """The alarms in the order of the training: step, task, layer, the measure that fell, and its value."""
        return [
            {name: row[name] for name in ("step", "task", "layer")} | {"measure": measure, "value": row[measure]}
            for row in self.records()
            for measure in row["alarms"]
        ]


def read_trainings(path: Path) -> list[Training]:
    """The trainings of a results file, in their order.

    A training begins with a measurement at step 0. A measurement that starts at a later step continues the training
    before it: what was measured from that step on is replaced. An incomplete last line, as a crash leaves it, is left
    out with a message.
    """
    import pandas as pd

    trainings: list[list[dict[str, Any]]] = []
    at_start: set[tuple[str, int]] = set()
    for line in _read_lines(path):
        space, start = (line["task"], line["layer"]), line["start_step"]
        is_start = line["step"] == start
        if is_start and (not at_start or space in at_start):
            if start == 0 or not trainings:
                trainings.append([])
            trainings[-1] = [row for row in trainings[-1] if row["step"] < start]
            at_start = set()
        at_start = at_start | {space} if is_start else set()
        trainings[-1].append(line)
    return [Training(pd.DataFrame(rows)) for rows in trainings]


def _read_lines(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"{path} cannot be read: {reason}; expected a results file of GeometryCallback") from None
    lines = text.split("\n")
    rest = lines.pop()
    if rest:
        log.warning("the last line of %s is incomplete and not used", path.name)
    rows = [_read_line(line, f"line {number} of {path}") for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise InputError(f"{path} has no complete line; expected the measurements of GeometryCallback(results=…)")
    return rows


def _read_line(line: str, where: str) -> dict[str, Any]:
    expected = "expected a line that GeometryCallback(results=…) wrote"
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"{where} is not JSON; {expected}") from None
    if not isinstance(row, dict):
        raise InputError(f"{where} is a {type(row).__name__}; {expected}")
    for name in ("task", "alarms", "separable", *NUMBERS):
        if name not in row:
            raise InputError(f"{where} has no {name!r}; {expected}")
    for name in NUMBERS:
        value, whole = row[name], name in COUNTS
        kinds = (int,) if whole else (int, float, type(None))
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise InputError(f"{where} has {value!r} as {name}; expected a {'whole number' if whole else 'number'}")
        row[name] = float("nan") if value is None else value
    alarms = row["alarms"]
    if not isinstance(row["task"], str) or not isinstance(alarms, list) or any(name not in ALARMS for name in alarms):
        raise InputError(f"{where} has a task or alarms of another type; {expected}")
    return row

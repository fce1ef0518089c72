"""Values in the fields of tables: JSON, lists, labels, and the ways to write that a label is missing."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from closerlook.errors import InputError
from closerlook.tasks.readers.source import short_repr

MISSING = frozenset(
    {"", "_", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NULL", "null", "None", "NaN", "nan", "-NaN", "-nan"}
)
"""Fields of CSV and TSV that mean no label: empty, `_`, and what pandas reads as missing."""

SEPARATORS = "|;,"
"""What separates several labels in one field, the first of these that occurs."""


def label_name(value: object) -> str | None:
    """The name of a label; numbers and booleans are written as in JSON, and None, NaN and '' mean no label."""
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise InputError(f"invalid label {short_repr(value)}; expected a string, a number or true/false")


def split_labels(label: str) -> list[str]:
    """The labels in a field that may have several.

    >>> split_labels("news | sport"), split_labels("news")
    (['news', 'sport'], ['news'])
    """
    separator = next((mark for mark in SEPARATORS if mark in label), None)
    return [part.strip() for part in label.split(separator)] if separator else [label]


def list_in_field(field: str) -> list[Any]:
    """The list in a field of CSV or TSV: JSON, or items separated by spaces."""
    field = field.strip()
    if field.startswith("[") and field.endswith("]"):
        try:
            return list(parse_json(field))
        except InputError:
            if re.match(r"\[\s*[{'\"]", field):  # the repr of a Python list
                raise InputError(
                    f"{short_repr(field)} is not a JSON list; use double quotes, or items separated by spaces"
                ) from None
    return list(field.split())


def parse_json(text: str) -> Any:
    """The value of a JSON text; NaN and Infinity, which are not JSON, are refused."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise InputError(f"{short_repr(text)} is nested too deeply; expected JSON") from None
    except json.JSONDecodeError as error:
        raise InputError(f"invalid JSON at character {error.colno}: {error.msg}") from None
    except ValueError as error:  # NaN, or an integer with more digits than Python accepts
        raise InputError(f"{str(error).partition(';')[0]}; expected JSON") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")

"""Read the JSON files of an encoder's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from closerlook.errors import InputError
from closerlook.escaping import parse_json


def read_json(file: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    value = read_json_value(file)
    if not isinstance(value, dict):
        raise InputError(f"{file} contains a {type(value).__name__}; expected a JSON object")
    return value


def read_json_value(file: Path) -> Any:
    """The value in a JSON file, of any type."""
    try:
        return parse_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read as JSON ({error}); expected a Hugging Face configuration") from None

"""The result files of a study's cells: where they are, whether they are intact, and what they contain."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from closerlook.errors import DamagedFileError, WorkError
from closerlook.escaping import parse_json
from closerlook.representations.atomic import set_aside
from closerlook.representations.checked_json import verify_checked, write_checked

CELLS = "cells"

SHOWN = 10
"""At most this many damaged results are reported in a line of their own; the others are counted."""

log = logging.getLogger("closerlook.study")


class LostError(WorkError):
    """An input of a cell is missing: the result or the vectors of an earlier cell, which must run again."""


def result_path(out: Path, key: str) -> Path:
    """The file of a cell's result."""
    return out / CELLS / key[:2] / f"{key}.json"


def write_result(out: Path, result: Mapping[str, Any]) -> None:
    """Write the result of a cell, with a checksum and the cell's key at its beginning."""
    path = result_path(out, result["key"])
    write_checked(path, {"key": result["key"], **result}, allow_nan=False)


def read_result(out: Path, key: str) -> dict[str, Any] | None:
    """The result of a cell; None if it has not run or if its result is damaged."""
    try:
        return _read(out, key)
    except DamagedFileError:
        return None


def require_result(out: Path, key: str) -> dict[str, Any]:
    """The result of a finished cell; raises LostError if it has disappeared or is damaged."""
    again = "run the same command again: it is computed again"
    try:
        result = _read(out, key)
    except DamagedFileError as error:
        raise LostError(f"{error}; {again}") from None
    if result is None:
        raise LostError(f"{result_path(out, key)} has disappeared; {again}")
    return result


def read_payload(out: Path, key: str) -> dict[str, Any]:
    """The payload of a finished cell: the part of its result that other cells need."""
    payload: dict[str, Any] = require_result(out, key)["payload"]
    return payload


def is_finished(out: Path, key: str) -> bool:
    """Whether a cell has an intact result."""
    try:
        return _intact_content(out, key) is not None
    except DamagedFileError:
        return False


def find_finished(out: Path, keys: Iterable[str]) -> tuple[set[str], list[str]]:
    """The keys of the cells that have an intact result, and the files of damaged results.

    Damaged results are renamed, so that their cells run again, and reported.
    """
    finished: set[str] = set()
    damaged: list[str] = []
    for key in keys:
        try:
            if _intact_content(out, key) is not None:
                finished.add(key)
        except DamagedFileError as error:
            aside = set_aside(_damaged_path(out, key))
            damaged.append(str(aside))
            if len(damaged) <= SHOWN:
                log.warning("%s; it is kept as %s, and its cell is computed again", error, aside.name)
    if len(damaged) > SHOWN:
        log.warning("%d more damaged results in %s are computed again", len(damaged) - SHOWN, out / CELLS)
    return finished, damaged


def _read(out: Path, key: str) -> dict[str, Any] | None:
    """The intact result of a cell; None if there is no file."""
    content = _intact_content(out, key)
    try:
        result: dict[str, Any] | None = None if content is None else parse_json(content)
    except ValueError as error:
        raise DamagedFileError(f"{result_path(out, key)} is not JSON ({error})") from None
    return result


def _intact_content(out: Path, key: str) -> bytes | None:
    """The content of a cell's result file, verified; None if there is no file.

    Raises DamagedFileError if it does not match its checksum, is the result of a different cell, or is no file.
    """
    path = result_path(out, key)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise DamagedFileError(f"{path} is a folder; expected the result of a cell") from None
    except NotADirectoryError:
        raise DamagedFileError(f"{path.parent} is a file; expected a folder with results of cells") from None
    except OSError as error:
        raise WorkError(f"{path} cannot be read: {error.strerror or error}") from None
    verify_checked(path, content)
    if f'", "key": "{key}", '.encode() not in content[: len(key) + 100]:
        raise DamagedFileError(f"{path} contains the result of a different cell")
    return content


def _damaged_path(out: Path, key: str) -> Path:
    """What is in the way of a cell's result: a file or folder in its place, or a file in place of its folder."""
    path = result_path(out, key)
    return path if path.parent.is_dir() else path.parent

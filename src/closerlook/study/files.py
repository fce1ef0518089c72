"""The files of a study's cells: where a result is, whether it is complete, and what it contains."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from closerlook.errors import WorkError

CELLS = "cells"


class LostError(WorkError):
    """An input of a cell is missing: the result or the vectors of an earlier cell, which must run again."""


def result_path(out: Path, key: str) -> Path:
    """The file of a cell's result."""
    return out / CELLS / key[:2] / f"{key}.json"


def read_result(out: Path, key: str) -> dict[str, Any] | None:
    """The result of a cell; None if it has not run."""
    try:
        result: dict[str, Any] = json.loads(result_path(out, key).read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        raise WorkError(f"{result_path(out, key)} is damaged; delete it, and run the same command again") from None
    return result


def read_payload(out: Path, key: str) -> dict[str, Any]:
    """The payload of a finished cell: the part of its result that other cells need."""
    result = read_result(out, key)
    if result is None:
        raise LostError(f"the result of cell {key[:12]}… is gone; run the same command again")
    payload: dict[str, Any] = result["payload"]
    return payload


def is_finished(out: Path, key: str) -> bool:
    """Whether a cell's result is complete, up to its last character: a power failure may cut a file short."""
    try:
        with result_path(out, key).open("rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) == b"}"
    except OSError:
        return False

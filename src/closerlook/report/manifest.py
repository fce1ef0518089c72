"""The manifest of a study as its report shows it: checked, and without control characters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from closerlook.errors import InputError
from closerlook.escaping import show_all, show_name
from closerlook.study.readings import Manifest


class _Part(BaseModel):
    """A part of the manifest; entries that the report does not use are not checked."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class _Encoder(_Part):
    name: str = ""
    weights: str | None = None
    revision: str | None = None
    layers: int = 0
    width: int | None = None
    parameters: int | None = None


class _Task(_Part):
    unit: str | None = None
    labels: list[str] = []
    examples: dict[str, int] = {}


class _Tuning(_Part):
    epochs: float = 0
    learning_rate: float = 0
    batch_size: int | None = None
    warmup: float = 0
    weight_decay: float = 0


class _Hardware(_Part):
    memory_bytes: float | None = None


class _Kind(_Part):
    cells: int
    seconds: float
    cpu_seconds: float
    peak_bytes: float | None = None


class _Failure(_Part):
    title: str
    error: str


class _Plan(_Part):
    seeds: list[int] = []
    cross: str | list[dict[str, str]] = []


class _Manifest(_Part):
    study: str | None = None
    version: str | None = None
    plan: _Plan = _Plan()
    encoders: dict[str, _Encoder] = {}
    tasks: dict[str, _Task] = {}
    settings: dict[str, _Tuning] = {}
    hardware: _Hardware = _Hardware()
    packages: dict[str, str | None] = {}
    kinds: dict[str, _Kind] = {}
    failed: list[_Failure] = []
    blocked: int | list[Any] = 0


def show_manifest(manifest: Manifest, path: Path) -> Manifest:
    """The manifest as the report shows it, see `show_name`; InputError if an entry has the wrong type.

    path: its file, for the error message.
    """
    expected = "expected the manifest that a study writes, or none"
    try:
        shown: Manifest = show_all(manifest, show_name)
        _Manifest.model_validate(shown)
    except RecursionError:
        raise InputError(f"{path} is nested too deeply; {expected}") from None
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))[:100]
        raise InputError(f"{path}: {where}: {problem['msg']}; {expected}") from None
    return shown

"""The methods of fine-tuning that a plan compares, each as changes of the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from closerlook.errors import InputError
from closerlook.tuning.existing import FULL

RANDOM = "random"
"""The method that trains the same architecture from random weights."""

EXPECTED = "full, lora, 'lora 4', head, bitfit, 'last 2' or random"
_LORA, _LAST = re.compile(r"lora(?: (\d+))?"), re.compile(r"last \d+")
_FIXED: dict[str, dict[str, Any]] = {
    FULL: {},
    RANDOM: {},
    "head": {"trained": "head"},
    "bitfit": {"trained": "biases"},
}


@dataclass(frozen=True)
class Method:
    """A method of fine-tuning: its name in tables, and the settings that differ from the others."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_random(self) -> bool:
        """Whether it starts from random weights."""
        return self.name == RANDOM


def read_method(entry: str | Mapping[str, Any]) -> Method:
    """The method that an entry of a plan names, alone or with settings of its own.

    >>> read_method("lora 4")
    Method(name='lora 4', settings={'lora': 4})
    >>> read_method({"method": "head", "learning_rate": 0.01}).settings
    {'trained': 'head', 'learning_rate': 0.01}
    """
    own = dict(entry) if isinstance(entry, Mapping) else {"method": entry}
    name = own.pop("method", None)
    if not isinstance(name, str):
        raise InputError(f"a method is {entry!r}; expected {EXPECTED}, or such a name with settings")
    return Method(name, _settings(name) | own)


def _settings(name: str) -> dict[str, Any]:
    lora = _LORA.fullmatch(name)
    if lora is not None:
        return {"lora": int(lora[1]) if lora[1] else True}
    if _LAST.fullmatch(name):
        return {"trained": name}
    if name not in _FIXED:
        raise InputError(f"method {name!r} is unknown; expected {EXPECTED}")
    return dict(_FIXED[name])


def variant_name(encoder: str, method: Method) -> str:
    """The name of an encoder that is fine-tuned by a method: 'bert-small', or 'bert-small (lora 4)'."""
    return encoder if method.name == FULL else f"{encoder} ({method.name})"

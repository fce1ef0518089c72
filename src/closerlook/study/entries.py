"""Types of plan entries that several kinds of cells share, and their checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from closerlook.errors import InputError

T = TypeVar("T")

EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
"""Numbers such as 1e-3 and 1.5e4, which YAML 1.1 reads as texts: it wants 1.0e-3 and 1.5e+4."""

MOST_WHOLE = 1e15
"""Numbers below this that are written with an exponent and have no fraction, such as 2e3, are whole numbers."""


class PlanPart(BaseModel):
    """A section of a plan. Unknown entries are refused; 1e-3 is a number in every entry that is no text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _read_exponents(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        numeric = {name for name, field in cls.model_fields.items() if not _is_text_or_part(field.annotation)}
        return {name: _with_numbers(value) if name in numeric else value for name, value in values.items()}


def _is_text_or_part(annotation: Any) -> bool:
    """Whether an entry of this type can be a text, or holds sections, which read their own entries."""
    if annotation is str or (isinstance(annotation, type) and issubclass(annotation, PlanPart)):
        return True
    inner = get_args(annotation)
    origin = get_origin(annotation)
    is_mapping = isinstance(origin, type) and issubclass(origin, Mapping)
    return any(_is_text_or_part(kind) for kind in (inner[1:] if is_mapping else inner))


def _with_numbers(value: Any) -> Any:
    """The value of an entry with every text such as 1e-3 in it, at any depth, as a number."""
    if isinstance(value, str) and EXPONENT.fullmatch(value):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < MOST_WHOLE else number
    if isinstance(value, list):
        return [_with_numbers(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_numbers(item) for name, item in value.items()}
    return value


def _check_layers(value: object) -> object:
    """Layers as `choose_layers` takes them; whether an encoder has them is checked when it is resolved."""
    numbers = value if isinstance(value, list) else [value]
    if not isinstance(value, str) and not all(type(number) is int for number in numbers):
        raise ValueError(f"expected all, last, or numbers such as 2, [0, 2] or '0,2-4' (got {value!r})")
    return value


Layers = Annotated[str | int | list[int], BeforeValidator(_check_layers)]


class LayeredPart(PlanPart):
    """A section of a plan that says at which layers its kind of cell is run."""

    layers: Layers = "last"


def as_value_error(check: Callable[[Any], T], value: object) -> T:
    """The result of a check; its InputError becomes a ValueError, which pydantic collects with the others."""
    try:
        return check(value)
    except InputError as error:
        raise ValueError(str(error)) from None


def as_list(value: Any) -> Any:
    """A single name or number as a list of one; anything else unchanged."""
    return [value] if isinstance(value, str | int | float) and not isinstance(value, bool) else value

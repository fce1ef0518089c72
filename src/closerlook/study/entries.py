"""Types of plan entries that several kinds of cells share, and their checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from closerlook.errors import InputError

T = TypeVar("T")


class PlanPart(BaseModel):
    """A section of a plan; unknown entries are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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

"""Collects the problems of a plan, so that all of them are reported together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from closerlook.errors import CloserLookError
from closerlook.study.plan import PlanError

T = TypeVar("T")


class Problems:
    """Collects error messages, so that all problems of a plan are reported together."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)

    def catch(self, work: Callable[[], T]) -> T | None:
        """The result of the work; None if it raises, and the message is added to the problems."""
        try:
            return work()
        except CloserLookError as error:
            if str(error) not in self.lines:
                self.lines.append(str(error))
            return None

    def catch_each(self, names: Iterable[str], work: Callable[[str], T]) -> dict[str, T]:
        """The result of the work for each name for which it raises nothing."""
        results = {name: self.catch(partial(work, name)) for name in names}
        return {name: result for name, result in results.items() if result is not None}

    def stop(self, source: str) -> None:
        """Raise one PlanError with all problems, if there are any. source: the name of the plan."""
        if self.lines:
            raise PlanError(source, self.lines)

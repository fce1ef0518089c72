"""The entry `where` of a plan: other seeds or layers for some of its encoders and tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from closerlook.study.entries import Layers, PlanPart, as_list

Names = Annotated[list[str] | None, BeforeValidator(as_list), Field(min_length=1)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=1 << 32)]
Seeds = Annotated[list[Seed], BeforeValidator(as_list), Field(min_length=1)]


class Where(PlanPart):
    """What is different for some fine-tunings.

    encoders, tasks: the encoders, and the tasks that they are fine-tuned on, as the plan names them; None: all.
    seeds, snapshot_layers: replace the entries of the plan with these names; None: the entry of the plan.
    """

    encoders: Names = None
    tasks: Names = None
    seeds: Seeds | None = None
    snapshot_layers: Layers | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.encoders is None and self.tasks is None:
            raise ValueError("expected encoders, tasks or both, for which it applies")
        if self.seeds is None and self.snapshot_layers is None:
            raise ValueError("expected seeds, snapshot_layers or both, which it replaces")
        if self.seeds is not None and len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"a seed is listed twice in {self.seeds}")
        return self

    def applies(self, encoder: str, task: str) -> bool:
        """Whether it is meant for the fine-tuning of this encoder on this task."""
        return (self.encoders is None or encoder in self.encoders) and (self.tasks is None or task in self.tasks)


def problems_of(entries: Iterable[Where], encoders: Sequence[str], tasks: Sequence[str]) -> Iterator[str]:
    """One message for each encoder or task that an entry names and the plan does not have."""
    for entry in entries:
        for what, named, known in (("encoder", entry.encoders, encoders), ("task", entry.tasks, tasks)):
            for name in named or ():
                if name not in known:
                    yield f"where names {what} {name!r}, which is not among the {what}s"

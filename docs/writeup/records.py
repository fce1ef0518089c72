"""Single entries of the lists in the write-up: a change by fine-tuning, a comparison with the paper, moved labels."""

from __future__ import annotations

from dataclasses import dataclass

from closerlook.study.runs import Pair


@dataclass(frozen=True)
class Change:
    """A measure before and after fine-tuning on tuned_on: of one run, or of an encoder and a task (mean over seeds)."""

    encoder: str
    task: str
    tuned_on: str
    before: float
    after: float
    sd: float | None = None
    seed: int | None = None

    @property
    def change(self) -> float:
        """After minus before."""
        return self.after - self.before

    @property
    def points(self) -> float:
        """After minus before, in percentage points."""
        return 100 * self.change

    @property
    def ratio(self) -> float:
        """After divided by before."""
        return self.after / self.before

    @property
    def falls(self) -> bool:
        """Whether it is lower after fine-tuning."""
        return self.after < self.before

    @property
    def rises(self) -> bool:
        """Whether it is higher after fine-tuning."""
        return self.after > self.before


@dataclass(frozen=True)
class Compared:
    """A number of this study and the published one."""

    encoder: str
    task: str
    state: str
    ours: float
    paper: float

    @property
    def difference(self) -> float:
        """Ours minus the paper's."""
        return self.ours - self.paper

    @property
    def factor(self) -> float:
        """The paper's number divided by ours."""
        return self.paper / self.ours

    @property
    def is_equal(self) -> bool:
        """Whether both are the same."""
        return self.ours == self.paper


@dataclass(frozen=True)
class Moved:
    """How many labels of a task move farther from their nearest label, and closer to it, in one run."""

    encoder: str
    task: str
    tuned_on: str
    farther: int
    closer: int

    @property
    def mostly_farther(self) -> bool:
        """Whether more labels move farther away than closer."""
        return self.farther > self.closer

    @property
    def mostly_closer(self) -> bool:
        """Whether more labels move closer than farther away."""
        return self.closer > self.farther


@dataclass(frozen=True)
class Harm:
    """Whether accuracy falls beyond its noise (is_harm), whether a fall is excluded (is_excluded), and the power."""

    pair: Pair
    is_harm: bool
    is_excluded: bool
    power: float

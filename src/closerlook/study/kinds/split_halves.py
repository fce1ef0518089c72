"""The study cell that compares parts of the train split with each other, to predict the train–test similarity."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from closerlook.geometry.distances import Statistic
from closerlook.geometry.split_halves import SplitSimilarity, split_similarity
from closerlook.representations.space import Space
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.entries import LayeredPart
from closerlook.study.inputs import load_space
from closerlook.study.kinds.kind import CellResult, Kind, TrainSpaceSettings
from closerlook.study.measure import Measure
from closerlook.study.rows import Row, row
from closerlook.study.sizes import Estimate, space_size

if TYPE_CHECKING:
    from closerlook.study.plan import Plan

MEASURES = (
    Measure(
        "similarity_halves",
        "similarity of split halves",
        "spatial similarity of two random halves of train, mean over splits; interval: smallest and largest value",
    ),
    Measure(
        "similarity_halves_split",
        "similarity of split halves, one split",
        "spatial similarity of two random halves of train in one of the random splits; text: number of the split",
        rows="setting",
    ),
    Measure(
        "similarity_folds",
        "similarity of folds",
        "spatial similarity of one fold of train and the rest, mean over folds; interval: smallest and largest value",
    ),
)


def _check_folds(value: int) -> int:
    if value == 1:
        raise ValueError("expected 0, or 2 or more (got 1)")
    return value


class Halves(LayeredPart):
    """Similarity of parts of train with each other, before and after fine-tuning.

    repeats: the number of random splits into halves. folds: the number of folds, each compared with the rest; 0: halves
    only.
    """

    repeats: int = Field(5, ge=1)
    folds: Annotated[int, Field(ge=0), AfterValidator(_check_folds)] = 5


def content(plan: Plan) -> dict[str, Any]:
    """What goes into the key of the cell that splits a space, together with the space."""
    settings = plan.halves.model_dump(include={"repeats", "folds"})
    return settings | plan.geometry.model_dump(include={"tau", "min_points", "statistic"})


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Compare parts of the cell's space."""
    settings = {name: value for name, value in cell.content.items() if name != "space"}
    return split_rows(load_space(cell, cell.content["space"]), threads=threads, **settings), {}


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: one clustering for each split."""
    size = space_size(study, cell)
    splits = cell.content["repeats"] + cell.content["folds"]
    return Estimate(0.1 + splits * size.clustering_seconds, size.bytes, 4_000)


KIND = Kind(
    "split_halves",
    4,
    "compare parts of",
    run,
    estimate,
    title="split halves",
    requests=("halves",),
    measures=MEASURES,
    train_space=TrainSpaceSettings("halves", lambda plan: plan.halves, content),
)


def split_rows(
    space: Space,
    *,
    repeats: int,
    folds: int,
    tau: float,
    min_points: int,
    statistic: Statistic,
    threads: int | None = None,
) -> list[Row]:
    """The similarity of halves of a space, and of each fold with the rest."""
    similarity = partial(
        split_similarity,
        space.X,
        space.label_names,
        tau=tau,
        min_points=min_points,
        statistic=statistic,
        threads=threads,
    )
    halves = similarity(repeats=repeats)
    rows = [_split_row("similarity_halves", halves)]
    rows += [row("similarity_halves_split", value, text=str(number)) for number, value in enumerate(halves.values)]
    if folds:
        rows.append(_split_row("similarity_folds", similarity(folds=folds)))
    return rows


def _split_row(name: str, similarity: SplitSimilarity) -> Row:
    return row(name, similarity.mean, ci_low=similarity.low, ci_high=similarity.high, n=len(similarity.values))

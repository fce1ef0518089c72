"""What given results lack: the cells that complete them, so that `combine_results` makes the table of a whole study."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from closerlook.errors import InputError
from closerlook.study.cells import Cell, Placement, Position, ResolvedPlan, encoder_name, task_name
from closerlook.study.combining import PLACE, Training
from closerlook.study.kinds import KINDS, kind_of
from closerlook.study.registry import split_name
from closerlook.study.results import home_of, load_results
from closerlook.study.runs import Run
from closerlook.study.same_study import KnownWeights, check_same_study, has_other_weights, known_weights, tuples_of
from closerlook.study.states import Graph

if TYPE_CHECKING:
    import pandas as pd

SPACE = [name for name in PLACE if name != "measure"]
"""The columns of the table that say which space a measurement is from."""

NAMED = {"seed", "encoder", "random"}
"""Comparisons whose rows name, in the column other, the seed or the encoder that a space was compared with."""

Place = tuple[object, ...]
"""A kind of cell, the values of SPACE, what was compared, and the other seed or encoder."""


@dataclass(frozen=True)
class Lacking:
    """Finds the cells of a study whose measurements given results lack.

    places: what these results have; one measurement of a cell stands for all. last_steps: the last step of each
    training that they have to its end, by the names of encoder and task in the table, and by seed. weights: the
    fingerprints of their weights. name: what messages call these results.
    """

    places: frozenset[Place]
    last_steps: Mapping[tuple[str, str, int], int]
    weights: KnownWeights = field(default_factory=dict)
    name: str = "the results"

    @classmethod
    def of(cls, study: ResolvedPlan, folder: str | Path, out: str | Path) -> Lacking:
        """What results lack of a study; InputError if they are of a different one. folder: of a study or an archive.

        The points of explorers are no measurements: an archive has few of them, and none are prepared for it. out: the
        folder that the study writes to.
        """
        path = Path(folder).expanduser()
        if home_of(path).resolve() == Path(out).expanduser().resolve():
            raise InputError(f"{folder} is the folder that the study writes to; expected another --out than --complete")
        table = load_results(path)
        check_same_study(study, path, table)
        ends = table.loc[table["is_final"], ["encoder", "tuned_on", "seed", "step"]].drop_duplicates()
        steps = {(encoder, tuned_on, seed): step for encoder, tuned_on, seed, step in tuples_of(ends)}
        return cls(frozenset(_places(table)), steps, known_weights(table), str(folder))

    def last_step(self, study: ResolvedPlan, run: Run) -> int | None:
        """The last step of a fine-tuning in the results, which may have stopped early; None if they do not have it."""
        return self.last_steps.get((encoder_name(study, run.encoder), task_name(study, run.tuned_on), run.seed))

    def differing(self, graph: Graph) -> set[Training]:
        """The trainings of a graph whose weights are not those of the results, so that they cannot complete them."""
        positions = {placement.position for placement in graph.placements}
        return {_training(one) for one in positions if has_other_weights(one, self.weights)}

    def explain(self, differing: Collection[Training]) -> str:
        """A message about trainings whose weights are not those of the results."""
        names = ", ".join(sorted(map(str, differing)))
        return (
            f"different weights than in {self.name}, as on another kind of processor: {names}. They cannot complete "
            "these results, so they are not measured; to replace them, run a plan of them without --complete, and give "
            f"closerlook combine its folder before {self.name}"
        )

    def cells(self, graph: Graph, without: Collection[Training] = ()) -> set[str]:
        """The keys of the cells that measure what is lacking, and of all cells whose results they need.

        without: trainings of which nothing is measured.
        """
        placements: defaultdict[str, list[Placement]] = defaultdict(list)
        for placement in graph.placements:
            if not _trainings(placement).intersection(without):
                placements[placement.key].append(placement)
        needed = {key for key, cell in graph.cells.items() if not self._has_all(cell, placements[key])}
        waiting = list(needed)
        while waiting:
            new = set(graph.cells[waiting.pop()].inputs) - needed
            needed |= new
            waiting += new
        return needed

    def _has_all(self, cell: Cell, placements: list[Placement]) -> bool:
        """Whether the results have measurements of a cell at each of its positions, if an archive keeps any of them."""
        if all(measure.archive == "none" for measure in kind_of(cell).measures):
            return True
        return all(_place(cell.kind, one) in self.places for one in placements if not one.renamed)


def _training(position: Position) -> Training:
    return Training(position.encoder, position.tuned_on, position.method, position.seed)


def _trainings(placement: Placement) -> set[Training]:
    """The training that a measurement is of, and the one that it is compared with if that differs in the seed."""
    own = _training(placement.position)
    return {own, own._replace(seed=int(placement.other))} if placement.comparison == "seed" else {own}


def _place(kind: str, placement: Placement) -> Place:
    position = placement.position
    other = placement.other if placement.comparison in NAMED else ""
    return (kind, *(getattr(position, name) for name in SPACE), placement.comparison, other)


def _places(table: pd.DataFrame) -> set[Place]:
    """What a table has. Rows of a whole training have splits of their own, so they are listed without a split too."""
    kinds = {measure.name: kind.name for kind in KINDS for measure in kind.measures}
    names = {name: split_name(name) for name in table["measure"].unique()}
    compares = table["measure"].map({name: comparison in NAMED for name, (_, comparison) in names.items()})
    rows = table[PLACE].assign(other=table["other"].where(compares.astype(bool), ""))
    places: set[Place] = set()
    for *state, split, pool, measure, other in tuples_of(rows.drop_duplicates()):
        name, comparison = names[measure]
        places |= {(kinds.get(name, ""), *state, one, pool, comparison, other) for one in (split, "")}
    return places

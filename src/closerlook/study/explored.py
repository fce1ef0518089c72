"""The explorers of a study: the cells that prepare their points, and the file next to the table that keeps them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from closerlook.errors import DamagedFileError, InputError
from closerlook.representations.checked_json import read_checked, write_checked
from closerlook.study.cells import (
    Cell,
    Placement,
    ResolvedPlan,
    describe_position,
    encoder_name,
    run_layers,
    task_name,
)
from closerlook.study.files import require_result
from closerlook.study.kinds import explorer

if TYPE_CHECKING:
    from closerlook.study.states import EncoderState, Graph

FILE = "explorer.json"


# ---- cells ----


def add_explorer(states: Sequence[EncoderState], task: str, clustered: Mapping[int, Sequence[str]]) -> None:
    """Add the cell that prepares the points of one encoder and task for the explorer, if the plan requests it.

    states: of the training, in order. clustered: for each layer, the keys of the cells that cluster its train spaces.
    If a requested layer is measured before and after the training only, so is the explorer.
    """
    start = states[0]
    study, plan = start.study, start.study.plan
    if "explorer" not in plan.measures:
        return
    requested = start.chosen(plan.explorer.layers)
    layers = sorted(requested & set(run_layers(study, start.encoder, task, ends=False)))
    shown = list(states)
    if not layers or len(states) == 1:
        layers = sorted(requested & set(run_layers(study, start.encoder, task, ends=True)))
        shown = [states[0], *states[1:][-1:]]
    if not layers:
        return
    spaces = {
        split: [[state.space(task, split, layer) for state in shown] for layer in layers]
        for split in ("train", *_test_split(plan.test_splits))
    }
    merges = [key for layer in layers for key in clustered.get(layer, ()) if key]
    position = shown[-1].position(task, "train", layers[-1])
    content = explorer.content(plan, spaces, [state.snapshot.step for state in shown], layers, merges)
    resources = start.resources(task) | {"title": f"{position.encoder}, {task_name(study, task)}"}
    inputs = tuple(dict.fromkeys([*(state.producer for state in shown), *merges]))
    cell: Cell = explorer.KIND.cell(content, resources, inputs, describe_position(position))
    start.graph.placements.append(Placement(start.graph.add(cell), position))


def _test_split(splits: Sequence[str]) -> list[str]:
    """The split that is shown as test, if there is one."""
    return ["test"] if "test" in splits else list(splits[:1])


# ---- the file ----


@dataclass(frozen=True)
class StoredExplorer:
    """The points of one encoder and task.

    tuned_on: empty without fine-tuning. examples: how many the splits have. measured: how many of them were clustered.
    shown: how many points are stored. packed: their data, see `scatter.packing`.
    """

    encoder: str
    task: str
    tuned_on: str
    seed: int
    layers: list[int]
    examples: int
    measured: int
    shown: int
    packed: str


def gather_explorers(study: ResolvedPlan, out: Path, graph: Graph, done: Collection[str]) -> list[StoredExplorer]:
    """The explorers whose cells have finished, in the order of the plan: by encoder, then by task."""
    found = []
    for placement in graph.placements:
        if graph.cells[placement.key].kind != explorer.KIND.name or placement.key not in done:
            continue
        position, payload = placement.position, require_result(out, placement.key)["payload"]
        place = (position.encoder, position.task, position.tuned_on, position.seed)
        found.append(StoredExplorer(*place, **payload))
    encoders = [encoder_name(study, name) for name in (*study.encoders, *study.variants, *study.runs)]
    tasks = [task_name(study, name) for name in study.tasks]
    return sorted(found, key=lambda one: (encoders.index(one.encoder), tasks.index(one.task)))


def write_explorers(folder: Path, explorers: Sequence[StoredExplorer]) -> None:
    """Write the explorers of a study to its folder; without any, an earlier file is removed."""
    if not explorers:
        (folder / FILE).unlink(missing_ok=True)
        return
    write_checked(folder / FILE, {"explorers": [asdict(one) for one in explorers]})


def read_explorers(folder: Path) -> list[StoredExplorer]:
    """The explorers in the folder of a study or of an archive; empty if it has none."""
    path = folder / FILE
    try:
        return [StoredExplorer(**one) for one in read_checked(path)["explorers"]]
    except FileNotFoundError:
        return []
    except (OSError, DamagedFileError, KeyError, TypeError) as error:
        problem = str(error) if isinstance(error, DamagedFileError) else f"{path} cannot be read: {error}"
        raise InputError(f"{problem}; run the study again, which writes the file, or remove it") from None

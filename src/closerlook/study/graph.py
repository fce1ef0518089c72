"""The graph of a study's cells: what is asked of every space, which cells that takes, and where each is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, product
from typing import Any

from closerlook.probes.training import ProbeTraining
from closerlook.representations.extract import choose_layers, space_key
from closerlook.study.cells import (
    PRETRAINED,
    Cell,
    Kind,
    Placement,
    Position,
    ResolvedPlan,
    encoder_name,
    extract_cell,
    how_of,
    opened_as,
    resolved_dtype,
    task_name,
    titled,
    tune_cell,
)
from closerlook.study.layers import last_layer, layers_of
from closerlook.study.plan import Layers
from closerlook.study.runs import Run
from closerlook.tuning.tuned import Snapshot, TuningResult

MEASURED = {"clusters", "distances", "similarity", "centroids"}
"""What the cell that measures a space is for."""


@dataclass(frozen=True, eq=False)
class Graph:
    """The cells known so far, by key, and where each is used.

    waiting: fine-tunings whose snapshots are to come. ends: the spaces at the last layer where fine-tunings ended, on
    their own tasks.
    """

    cells: dict[str, Cell] = field(default_factory=dict)
    uses: list[Placement] = field(default_factory=list)
    waiting: dict[str, Run] = field(default_factory=dict)
    ends: dict[Run, _Measured] = field(default_factory=dict)

    def add(self, cell: Cell) -> str:
        """Its key; a cell that is there already is the same."""
        self.cells.setdefault(cell.key, cell)
        return cell.key


ResultLookup = Callable[[str], dict[str, Any] | None]
"""The result of the cell with that key, if it is there."""


def expand(study: ResolvedPlan, finished: ResultLookup) -> Graph:
    """Every cell of the study that can be named now; fine-tunings that are finished bring their snapshots' cells."""
    graph = Graph()
    bases = {encoder: _add_base(study, graph, encoder) for encoder in study.encoders}
    if study.plan.compare.encoders:
        for (a, b), task in product(combinations(study.encoders, 2), study.tasks):
            if bases[a] and bases[b]:
                _beside(bases[a][task], bases[b][task], "encoder", encoder_name(study, b))
    if study.plan.tuning is not None:
        for encoder, task, seed in product(study.encoders, study.tasks, study.plan.seeds):
            graph.waiting[graph.add(tune_cell(study, encoder, task, seed))] = Run(encoder, task, seed, task)
    for key in list(graph.waiting):
        result = finished(key)
        if result is not None:
            grow(study, graph, key, result)
    return graph


def grow(study: ResolvedPlan, graph: Graph, key: str, result: dict[str, Any]) -> None:
    """Take in the cells that a finished fine-tuning brings."""
    add_run(study, graph, key, graph.waiting.pop(key), TuningResult.from_dict(result["payload"]["tuned"]))


# ---- what is asked of spaces ----


@dataclass(frozen=True, eq=False)
class _Spaces:
    """The spaces of one encoder at one point of its training, and the cell that makes them."""

    study: ResolvedPlan
    graph: Graph
    encoder: str
    weights: str
    dtype: str
    maker: str
    tuned_on: str
    seed: int
    snapshot: Snapshot
    is_final: bool

    def place(self, task: str, split: str, layer: int) -> Position:
        at = self.snapshot
        return Position(
            encoder_name(self.study, self.encoder),
            self.tuned_on,
            self.seed,
            at.step,
            at.epoch,
            layer,
            task_name(self.study, task),
            split,
            self.is_final,
            self.weights,
        )

    def space(self, task: str, split: str, layer: int) -> str:
        _, info = self.study.found(self.encoder)
        opened = self.study.tasks[task]
        return space_key(self.weights, self.dtype, info, opened, split, pool=self.study.plan.pool, layer=layer)

    def is_own(self, task: str) -> bool:
        """Whether the encoder is as it came, or was tuned on that task rather than another."""
        return self.tuned_on in {PRETRAINED, task_name(self.study, task)}

    def chosen(self, layers: Layers) -> set[int]:
        """Those layers of the encoder."""
        source, info = self.study.found(self.encoder)
        return set(choose_layers(layers, info.layers, source.name))

    def geometry(self, task: str, split: str, layer: int, *, whole: bool) -> str:
        """The key of the cell that measures a space; it is added, and used at the space's place.

        whole: with intervals over examples, where the plan asks for them.
        """
        plan, place = self.study.plan, self.place(task, split, layer)
        sure = whole and "uncertainty" in plan.measures and layer in self.chosen(plan.uncertainty.layers)
        content = {
            "space": self.space(task, split, layer),
            "tau": plan.geometry.tau,
            "min_points": plan.geometry.min_points,
            "statistic": plan.geometry.statistic,
            "distances": bool({"distances", "similarity"} & set(plan.measures)),
            "resamples": plan.uncertainty.resamples if sure else 0,
        }
        cell = Cell("geometry", content, self.how(task, split), (self.maker,), f"measure {titled(place)}")
        if self.encoder in self.study.encoders:
            self.graph.uses.append(Placement(cell.key, place))
        return self.graph.add(cell)

    def how(self, task: str, split: str = "train") -> dict[str, Any]:
        """Where and by what means a space of that task is measured."""
        return how_of(self.study) | {"encoder": self.encoder, "task": opened_as(self.study, [task]), "split": split}

    def _measure(self, kind: Kind, title: str, task: str, layer: int, **content: Any) -> None:
        """Add a cell that measures the space of train, with what it depends on beside the space, and its use."""
        place = self.place(task, "train", layer)
        content = {"space": self.space(task, "train", layer)} | content
        cell = Cell(kind, content, self.how(task), (self.maker,), f"{title} {titled(place)}")
        self.graph.uses.append(Placement(self.graph.add(cell), place))

    def panel(self, task: str, layer: int) -> None:
        """Add the wider panel."""
        self._measure("panel", "describe", task, layer, tau=self.study.plan.geometry.tau)

    def nulls(self, task: str, layer: int) -> None:
        """Add what chance gives."""
        asked, geometry = self.study.plan.nulls, self.study.plan.geometry
        content = asked.model_dump(include={"shuffles", "cluster_shuffles", "points"})
        content |= {"tau": geometry.tau, "min_points": geometry.min_points}
        self._measure("nulls", "shuffle", task, layer, **content)

    def halves(self, task: str, layer: int) -> None:
        """Add the similarity of parts of train."""
        asked, geometry = self.study.plan.halves, self.study.plan.geometry
        content = asked.model_dump(include={"repeats", "folds"})
        content |= geometry.model_dump(include={"tau", "min_points", "statistic"})
        self._measure("halves", "split", task, layer, **content)

    def classify(self, task: str, split: str, layer: int) -> None:
        """Add the classifier grid, trained on train and tested on that split."""
        asked, place = self.study.plan.classifier, self.place(task, split, layer)
        content = {
            "train": self.space(task, "train", layer),
            "test": self.space(task, split, layer),
            "sizes": [list(sizes) for sizes in asked.sizes],
            "seeds": asked.seeds,
            "training": asdict(ProbeTraining(max_rounds=asked.max_rounds, patience=asked.patience)),
        }
        how = self.how(task)
        key = self.graph.add(Cell("classify", content, how, (self.maker,), f"classify {titled(place)}", gpu=True))
        self.graph.uses.append(Placement(key, place))


@dataclass(frozen=True, eq=False)
class _Measured:
    """The space of train at one layer, and the key of the cell that measures it; empty where none does."""

    spaces: _Spaces
    task: str
    layer: int
    key: str

    @property
    def place(self) -> Position:
        return self.spaces.place(self.task, "train", self.layer)

    @property
    def space(self) -> str:
        return self.spaces.space(self.task, "train", self.layer)


def _add_base(study: ResolvedPlan, graph: Graph, encoder: str) -> dict[str, _Measured]:
    """What is asked of an encoder as it came, on every task; its spaces at the last layer looked at."""
    spaces = _as_it_came(study, graph, encoder)
    layers = layers_of(study.plan, *study.encoders[encoder], ends=True)
    ends = {}
    for task in study.tasks:
        measured = _ask(spaces, task, layers, whole=True)
        if measured:
            last = last_layer(layers)
            ends[task] = _Measured(spaces, task, last, measured[last])
            _beside_random(ends[task])
    return ends


def _as_it_came(study: ResolvedPlan, graph: Graph, encoder: str) -> _Spaces:
    source, _ = study.found(encoder)
    start = Snapshot(0, 0.0, source.fingerprint, {}, {})
    maker = graph.add(extract_cell(study, encoder))
    dtype = resolved_dtype(study, source)
    return _Spaces(study, graph, encoder, source.fingerprint, dtype, maker, PRETRAINED, 0, start, is_final=False)


def add_run(study: ResolvedPlan, graph: Graph, key: str, run: Run, found: TuningResult) -> None:
    """Add what is asked of a fine-tuning's snapshots, on the tuned task and others probed then. key: of its cell."""
    encoder, tuned_on = run.encoder, run.tuned_on
    shown, final = task_name(study, tuned_on), found.snapshots[-1]
    points = [
        _Spaces(study, graph, encoder, one.fingerprint, "float32", key, shown, run.seed, one, one is final)
        for one in found.snapshots
    ]
    along = tuple(spaces.place(tuned_on, "", found.info.layers) for spaces in points)
    graph.uses.append(Placement(key, along[-1], along=along))
    for task in study.plan.probed(tuned_on):
        paths: dict[int, list[_Measured]] = {}
        for at, spaces in enumerate(points):
            end = at in (0, len(points) - 1)
            measured = _ask(spaces, task, layers_of(study.plan, *study.encoders[encoder], ends=end), whole=end)
            for layer, one in measured.items():
                paths.setdefault(layer, []).append(_Measured(spaces, task, layer, one))
        for steps in paths.values():
            _follow(study, graph, steps)
        if task == tuned_on and paths:
            _add_end(study, graph, run, paths[last_layer(paths)][-1])


def _add_end(study: ResolvedPlan, graph: Graph, run: Run, end: _Measured) -> None:
    """Add what is asked of the end of a fine-tuning: beside other seeds' ends, and beside random weights."""
    _beside_random(end)
    graph.ends[run] = end
    ends = [(seed, graph.ends.get(replace(run, seed=seed))) for seed in study.plan.seeds]
    for (seed, first), (_, second) in combinations(ends, 2):
        if study.plan.compare.seeds and first and second and end in (first, second):
            _beside(second, first, "seed", str(seed))


def _ask(spaces: _Spaces, task: str, layers: Sequence[int], *, whole: bool) -> dict[int, str]:
    """Add the cells of one task at one point; those that measure train's space, by layer.

    whole: with every split, the classifier and, unless the encoder was tuned on another task, the wider panel; else
    train's space alone.
    """
    plan = spaces.study.plan
    wanted = set(plan.measures)
    measured: dict[int, str] = {}
    if wanted & MEASURED:
        for layer in layers:
            measured[layer] = spaces.geometry(task, "train", layer, whole=whole)
            for split in plan.test_splits if whole else ():
                other = spaces.geometry(task, split, layer, whole=whole)
                if plan.compare.train_test and "similarity" in wanted:
                    use = (spaces.place(task, "train", layer), f"train_{split}", "")
                    _compare(spaces.study, spaces.graph, (measured[layer], other), use)
    elif "panel" in wanted and spaces.is_own(task):
        measured = dict.fromkeys(layers, "")  # whose points are compared all the same
    if "classifier" in wanted and (whole or plan.classifier.at == "all"):
        for layer in sorted(spaces.chosen(plan.classifier.layers) & set(layers)):
            for split in plan.test_splits:
                spaces.classify(task, split, layer)
    if whole and spaces.is_own(task):
        wider = (("panel", plan.panel, spaces.panel), ("nulls", plan.nulls, spaces.nulls))
        for measure, asked, ask in (*wider, ("halves", plan.halves, spaces.halves)):
            for layer in sorted(spaces.chosen(asked.layers) & set(layers)) if measure in wanted else ():
                ask(task, layer)
    return measured


def _compare(study: ResolvedPlan, graph: Graph, pair: tuple[str, str], use: tuple[Position, str, str]) -> None:
    """Add a comparison of two measured spaces; use: its place, what is compared, and the second encoder's name."""
    asked, (place, what, other) = study.plan.geometry, use
    content = {"a": pair[0], "b": pair[1], "permutations": asked.permutations, "resamples": asked.resamples}
    cell = Cell("compare", content, {}, tuple(dict.fromkeys(pair)), f"compare {titled(place)} ({what})")
    graph.uses.append(Placement(graph.add(cell), place, what, other))


def _beside(a: _Measured, b: _Measured, what: str, other: str = "", *, points: bool = True) -> None:
    """Add a comparison of two spaces of the same rows: of their label distances, and of the points themselves.

    It is used at a's place. other: the second's name. points: False leaves it at the label distances.
    """
    study, graph, wanted = a.spaces.study, a.spaces.graph, set(a.spaces.study.plan.measures)
    if {"similarity", "distances"} & wanted:
        _compare(study, graph, (b.key, a.key), (a.place, what, other))
    if points and "panel" in wanted and a.spaces.is_own(a.task) and a.layer in a.spaces.chosen(study.plan.panel.layers):
        content = {"a": b.space, "b": a.space, "neighbours": study.plan.panel.neighbours}
        makers = tuple(dict.fromkeys([a.spaces.maker, b.spaces.maker]))
        cell = Cell("alike", content, a.spaces.how(a.task), makers, f"align {titled(a.place)} ({what})")
        graph.uses.append(Placement(graph.add(cell), a.place, what, other))


def _beside_random(end: _Measured) -> None:
    """Add a comparison with the same encoder of random weights, at its last layer; points only as it came.

    Random weights belong to a version of torch: a study that is finished elsewhere needs the other space once more, and
    that of a fine-tuning would have to be made again.
    """
    study, name = end.spaces.study, f"random:{end.spaces.encoder}"
    _, info = study.found(end.spaces.encoder)
    if name not in study.randoms or end.layer != info.layers:
        return
    spaces = _as_it_came(study, end.spaces.graph, name)
    key = spaces.geometry(end.task, "train", info.layers, whole=False) if end.key else ""
    other = _Measured(spaces, end.task, info.layers, key)
    _beside(end, other, "random", encoder_name(study, name), points=not end.spaces.tuned_on)


def _follow(study: ResolvedPlan, graph: Graph, steps: list[_Measured]) -> None:
    """Add what is asked along a run, at one layer: each snapshot beside the start, and the paths of the centroids."""
    plan, start, end = study.plan, steps[0], steps[-1]
    if plan.compare.original:
        for one in steps[:-1]:
            if {"similarity", "distances"} & set(plan.measures):
                _compare(study, graph, (start.key, one.key), (one.place, "original", ""))
        _beside(end, start, "original")
    if "centroids" in plan.measures and len(steps) > 1:
        keys, along = [one.key for one in steps], tuple(one.place for one in steps)
        content = {"along": keys, "steps": [place.step for place in along]}
        cell = Cell("paths", content, {}, tuple(dict.fromkeys(keys)), f"paths {titled(along[-1])}")
        graph.uses.append(Placement(graph.add(cell), along[-1], along=along))

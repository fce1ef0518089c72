"""The graph of a study's cells: which cells a plan needs for every space, and where in the table each result goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any

from closerlook.representations.extract import choose_layers, space_key
from closerlook.study.cells import (
    PRETRAINED,
    Cell,
    Placement,
    Position,
    ResolvedPlan,
    common_resources,
    describe_position,
    encoder_name,
    layers_of,
    opened_as,
    resolved_dtype,
    task_name,
)
from closerlook.study.entries import Layers
from closerlook.study.kinds import KINDS, centroids, classifier, comparison, geometry, point_similarity
from closerlook.study.kinds.extract import extract_cell
from closerlook.study.kinds.kind import Kind
from closerlook.study.kinds.tune import tune_cell
from closerlook.study.layers import last_layer
from closerlook.study.runs import Run
from closerlook.tuning.tuned import DTYPE, Snapshot, TuningResult

NEED_GEOMETRY = {"clusters", "distances", "similarity", "centroids"}
"""Requests of a plan's `measures` for which spaces are clustered."""


@dataclass(frozen=True, eq=False)
class Graph:
    """The cells known so far, by key, and where their results go.

    waiting: fine-tunings that have not finished, by the key of their cell; their snapshots' cells are not known yet.
    ends: the spaces of finished fine-tunings, at the last layer, on the task they were tuned on.
    """

    cells: dict[str, Cell] = field(default_factory=dict)
    placements: list[Placement] = field(default_factory=list)
    waiting: dict[str, Run] = field(default_factory=dict)
    ends: dict[Run, _TrainSpace] = field(default_factory=dict)

    def add(self, cell: Cell) -> str:
        """Add a cell and return its key; a cell with the same key is the same cell."""
        self.cells.setdefault(cell.key, cell)
        return cell.key


ResultLookup = Callable[[str], dict[str, Any] | None]
"""Returns the result of the cell with a key, or None if it has not finished."""


def expand(study: ResolvedPlan, results: ResultLookup) -> Graph:
    """The graph of every cell that is known now; finished fine-tunings contribute the cells of their snapshots."""
    graph = Graph()
    pretrained = {encoder: _add_pretrained(study, graph, encoder) for encoder in study.encoders}
    if study.plan.compare.encoders:
        for (a, b), task in product(combinations(study.encoders, 2), study.tasks):
            if pretrained[a] and pretrained[b]:
                _add_comparison(pretrained[a][task], pretrained[b][task], "encoder", encoder_name(study, b))
    if study.plan.tuning is not None:
        for encoder, task, seed in product(study.encoders, study.tasks, study.plan.seeds):
            graph.waiting[graph.add(tune_cell(study, encoder, task, seed))] = Run(encoder, task, seed, task)
    for key in list(graph.waiting):
        result = results(key)
        if result is not None:
            grow(study, graph, key, result)
    return graph


def grow(study: ResolvedPlan, graph: Graph, key: str, result: dict[str, Any]) -> None:
    """Add the cells of a finished fine-tuning's snapshots."""
    add_run(study, graph, key, graph.waiting.pop(key), TuningResult.from_dict(result["payload"]["tuned"]))


# ---- cells of single spaces ----


@dataclass(frozen=True, eq=False)
class _Weights:
    """An encoder at one point of its training. maker: the key of the cell that computes its spaces."""

    study: ResolvedPlan
    graph: Graph
    encoder: str
    fingerprint: str
    dtype: str
    maker: str
    tuned_on: str
    seed: int
    snapshot: Snapshot
    is_final: bool

    def position(self, task: str, split: str, layer: int) -> Position:
        """Where measures of one of its spaces go in the table."""
        return Position(
            encoder_name(self.study, self.encoder),
            self.tuned_on,
            self.seed,
            self.snapshot.step,
            self.snapshot.epoch,
            layer,
            task_name(self.study, task),
            split,
            self.is_final,
            self.fingerprint,
        )

    def space(self, task: str, split: str, layer: int) -> str:
        """The key of one of its spaces in the store."""
        _, info = self.study.found(self.encoder)
        pool = self.study.plan.pool
        return space_key(self.fingerprint, self.dtype, info, self.study.tasks[task], split, pool=pool, layer=layer)

    def is_own(self, task: str) -> bool:
        """Whether the encoder is pretrained, or was fine-tuned on that task rather than another."""
        return self.tuned_on in {PRETRAINED, task_name(self.study, task)}

    def chosen(self, layers: Layers) -> set[int]:
        """The numbers of the layers that a plan entry names."""
        source, info = self.study.found(self.encoder)
        return set(choose_layers(layers, info.layers, source.name))

    def resources(self, task: str, split: str = "train") -> dict[str, Any]:
        """What a cell needs to find the spaces of a task."""
        return common_resources(self.study) | {
            "encoder": self.encoder,
            "task": opened_as(self.study, [task]),
            "split": split,
        }

    def _add(self, kind: Kind, content: dict[str, Any], task: str, position: Position, split: str = "train") -> str:
        """Add a cell that reads the spaces of these weights; the key of the cell.

        Results of random weights are only compared with others: they have no rows of their own.
        """
        key = self.graph.add(
            kind.cell(content, self.resources(task, split), (self.maker,), describe_position(position))
        )
        if self.encoder in self.study.encoders:
            self.graph.placements.append(Placement(key, position))
        return key

    def add_geometry(self, task: str, split: str, layer: int, *, is_end: bool) -> str:
        """Add the cell that clusters a space; its key. is_end: with intervals over examples if the plan has them."""
        plan = self.study.plan
        intervals = is_end and "uncertainty" in plan.measures and layer in self.chosen(plan.uncertainty.layers)
        content = geometry.content(plan, self.space(task, split, layer), intervals=intervals)
        return self._add(geometry.KIND, content, task, self.position(task, split, layer), split)

    def add_classifier(self, task: str, split: str, layer: int) -> None:
        """Add the cell that trains classifier probes on train and tests them on a split."""
        train, test = self.space(task, "train", layer), self.space(task, split, layer)
        content = classifier.content(self.study.plan, train, test)
        self._add(classifier.KIND, content, task, self.position(task, split, layer))

    def add_train_kinds(self, task: str, layers: Sequence[int]) -> None:
        """Add the cells of all kinds that measure one train space, such as the panel."""
        plan = self.study.plan
        for kind in KINDS:
            settings = kind.train_space
            if settings is None or settings.requested_as not in plan.measures:
                continue
            for layer in sorted(self.chosen(settings.part(plan).layers) & set(layers)):
                content = {"space": self.space(task, "train", layer)} | settings.content(plan)
                self._add(kind, content, task, self.position(task, "train", layer))


@dataclass(frozen=True, eq=False)
class _TrainSpace:
    """A train space at one layer. geometry: the key of the cell that clusters it; empty if none does."""

    weights: _Weights
    task: str
    layer: int
    geometry: str

    @property
    def position(self) -> Position:
        return self.weights.position(self.task, "train", self.layer)

    @property
    def space(self) -> str:
        return self.weights.space(self.task, "train", self.layer)


def _add_spaces(weights: _Weights, task: str, layers: Sequence[int], *, is_end: bool) -> dict[int, str]:
    """Add the cells of one task at one point of a training; the keys of the cells that cluster train, by layer.

    is_end: before or after fine-tuning, where every split, the classifier and, unless the encoder was tuned on another
    task, all kinds of one train space are measured; between them, train alone is clustered.
    """
    plan = weights.study.plan
    requests = set(plan.measures)
    clustered: dict[int, str] = {}
    if requests & NEED_GEOMETRY:
        for layer in layers:
            clustered[layer] = weights.add_geometry(task, "train", layer, is_end=is_end)
            for split in plan.test_splits if is_end else ():
                other = weights.add_geometry(task, split, layer, is_end=is_end)
                if plan.compare.train_test and "similarity" in requests:
                    position = weights.position(task, "train", layer)
                    _add_similarity(weights, clustered[layer], other, Placement("", position, f"train_{split}"))
    elif "panel" in requests and weights.is_own(task):
        clustered = dict.fromkeys(layers, "")  # their points are compared nevertheless
    if "classifier" in requests and (is_end or plan.classifier.at == "all"):
        for layer in sorted(weights.chosen(plan.classifier.layers) & set(layers)):
            for split in plan.test_splits:
                weights.add_classifier(task, split, layer)
    if is_end and weights.is_own(task):
        weights.add_train_kinds(task, layers)
    return clustered


# ---- pretrained encoders and fine-tunings ----


def _add_pretrained(study: ResolvedPlan, graph: Graph, encoder: str) -> dict[str, _TrainSpace]:
    """Add the cells of a pretrained encoder on every task; its train spaces at the last layer, by task."""
    weights = _pretrained(study, graph, encoder)
    layers = layers_of(study.plan, *study.encoders[encoder], ends=True)
    last = last_layer(layers)
    spaces = {}
    for task in study.tasks:
        clustered = _add_spaces(weights, task, layers, is_end=True)
        if clustered:
            spaces[task] = _TrainSpace(weights, task, last, clustered[last])
            _compare_with_random(spaces[task])
    return spaces


def _pretrained(study: ResolvedPlan, graph: Graph, encoder: str) -> _Weights:
    source, _ = study.found(encoder)
    start = Snapshot(0, 0.0, source.fingerprint, {}, {})
    maker = graph.add(extract_cell(study, encoder))
    dtype = resolved_dtype(study, source)
    return _Weights(study, graph, encoder, source.fingerprint, dtype, maker, PRETRAINED, 0, start, is_final=False)


def add_run(study: ResolvedPlan, graph: Graph, key: str, run: Run, tuned: TuningResult) -> None:
    """Add the cells of a fine-tuning's snapshots, on all tasks they are measured on. key: of the tuning's own cell."""
    first, final, tuned_on = tuned.snapshots[0], tuned.snapshots[-1], task_name(study, run.tuned_on)
    start = _Weights(
        study, graph, run.encoder, first.fingerprint, DTYPE, key, tuned_on, run.seed, first, is_final=False
    )
    snapshots = [
        replace(start, fingerprint=snapshot.fingerprint, snapshot=snapshot, is_final=snapshot is final)
        for snapshot in tuned.snapshots
    ]
    positions = tuple(weights.position(run.tuned_on, "", tuned.info.layers) for weights in snapshots)
    graph.placements.append(Placement(key, positions[-1], snapshots=positions))
    for task in study.plan.probed(run.tuned_on):
        by_layer: dict[int, list[_TrainSpace]] = {}
        for weights in snapshots:
            is_end = weights in (snapshots[0], snapshots[-1])
            layers = layers_of(study.plan, *study.encoders[run.encoder], ends=is_end)
            for layer, cell in _add_spaces(weights, task, layers, is_end=is_end).items():
                by_layer.setdefault(layer, []).append(_TrainSpace(weights, task, layer, cell))
        for spaces in by_layer.values():
            _follow(study, graph, spaces)
        if task == run.tuned_on and by_layer:
            _add_end(study, graph, run, by_layer[last_layer(by_layer)][-1])


def _add_end(study: ResolvedPlan, graph: Graph, run: Run, end: _TrainSpace) -> None:
    """Compare the end of a fine-tuning with random weights, and with the ends of other seeds that are known."""
    _compare_with_random(end)
    graph.ends[run] = end
    ends = [(seed, graph.ends.get(replace(run, seed=seed))) for seed in study.plan.seeds]
    for (seed, first), (_, second) in combinations(ends, 2):
        if study.plan.compare.seeds and first and second and end in (first, second):
            _add_comparison(second, first, "seed", str(seed))


def _follow(study: ResolvedPlan, graph: Graph, spaces: list[_TrainSpace]) -> None:
    """Compare each snapshot of a fine-tuning with the start, and follow the centroids, at one layer."""
    plan, start, end = study.plan, spaces[0], spaces[-1]
    if plan.compare.original:
        if {"similarity", "distances"} & set(plan.measures):
            for space in spaces[:-1]:
                placement = Placement("", space.position, "original")
                _add_similarity(space.weights, start.geometry, space.geometry, placement)
        _add_comparison(end, start, "original")
    if "centroids" in plan.measures and len(spaces) > 1:
        keys, positions = [space.geometry for space in spaces], tuple(space.position for space in spaces)
        content = centroids.content(keys, [position.step for position in positions])
        cell = centroids.KIND.cell(content, {}, tuple(dict.fromkeys(keys)), describe_position(positions[-1]))
        graph.placements.append(Placement(graph.add(cell), positions[-1], snapshots=positions))


# ---- comparisons ----


def _add_similarity(weights: _Weights, a: str, b: str, placement: Placement) -> None:
    """Add the comparison of two clustered spaces by their label distances. placement: its position, without the key."""
    content = comparison.content(weights.study.plan, a, b)
    subject = f"{describe_position(placement.position)} ({placement.comparison})"
    key = weights.graph.add(comparison.KIND.cell(content, {}, tuple(dict.fromkeys([a, b])), subject))
    weights.graph.placements.append(replace(placement, key=key))


def _add_comparison(a: _TrainSpace, b: _TrainSpace, what: str, other: str = "", *, points: bool = True) -> None:
    """Add the comparison of two spaces of the same examples, by label distances and point by point.

    Its rows go to the position of a. what: what is compared, the suffix of measures. other: the name of the second.
    points: whether points are compared, too.
    """
    weights, plan = a.weights, a.weights.study.plan
    placement = Placement("", a.position, what, other)
    if {"similarity", "distances"} & set(plan.measures):
        _add_similarity(weights, b.geometry, a.geometry, placement)
    is_described = "panel" in plan.measures and a.layer in weights.chosen(plan.panel.layers)
    if points and is_described and weights.is_own(a.task):
        content = point_similarity.content(plan, b.space, a.space)
        makers = tuple(dict.fromkeys([weights.maker, b.weights.maker]))
        subject = f"{describe_position(a.position)} ({what})"
        key = weights.graph.add(point_similarity.KIND.cell(content, weights.resources(a.task), makers, subject))
        weights.graph.placements.append(replace(placement, key=key))


def _compare_with_random(end: _TrainSpace) -> None:
    """Add the comparison with the same encoder with random weights; points only of the pretrained encoder.

    Random weights depend on the version of torch. A study that is finished on another machine computes their spaces
    again; to compare points after fine-tuning, it would have to fine-tune again as well.
    """
    weights, study = end.weights, end.weights.study
    name = f"random:{weights.encoder}"
    _, info = study.found(weights.encoder)
    if name not in study.randoms or end.layer != info.layers:
        return
    random = _pretrained(study, weights.graph, name)
    key = random.add_geometry(end.task, "train", info.layers, is_end=False) if end.geometry else ""
    space = _TrainSpace(random, end.task, info.layers, key)
    _add_comparison(end, space, "random", encoder_name(study, name), points=weights.tuned_on == PRETRAINED)

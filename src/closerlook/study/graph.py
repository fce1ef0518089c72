"""Builds the dependency graph of a study.

A cell is one unit of work. A space is a set of vectors: one encoder, layer, task and split. The graph holds the cells
that the plan needs for each space and for each pair of spaces that is compared, and the positions of their results in
the results table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

from closerlook.study.cells import (
    PRETRAINED,
    Cell,
    Placement,
    ResolvedPlan,
    describe_position,
    encoder_name,
    layers_of,
    resolved_dtype,
    run_layers,
    task_name,
)
from closerlook.study.explored import add_explorer
from closerlook.study.kinds import (
    centroids,
    comparison,
    point_similarity,
)
from closerlook.study.kinds.checkpoint import checkpoint_cell
from closerlook.study.kinds.extract import extract_cell
from closerlook.study.kinds.tune import tune_cell
from closerlook.study.layers import last_layer
from closerlook.study.runs import UNKNOWN, Run
from closerlook.study.sensitivity_cells import add_settings, compare_settings, pooled_studies
from closerlook.study.states import EncoderState, Graph, TrainSpace
from closerlook.tuning.existing import Checkpoint
from closerlook.tuning.tuned import Snapshot, TuningResult

NEED_GEOMETRY = {"clusters", "distances", "similarity", "centroids"}
"""Entries of `measures` in a plan that need spaces to be clustered."""


ResultLookup = Callable[[str], dict[str, Any] | None]
"""Maps the key of a cell to its result; None if the cell has not finished."""


def expand(study: ResolvedPlan, results: ResultLookup) -> Graph:
    """The graph of all cells known so far, including the cells that measure the snapshots of finished fine-tunings."""
    graph = Graph()
    pretrained = {encoder: _add_pretrained(study, graph, encoder) for encoder in study.encoders}
    if study.plan.compare.encoders:
        for (a, b), task in product(combinations(study.encoders, 2), study.tasks):
            if pretrained[a] and pretrained[b]:
                _add_comparison(pretrained[a][task], pretrained[b][task], "encoder", encoder_name(study, b))
    if study.plan.tuning is not None:
        for encoder, task in product(study.variants, study.tasks):
            for seed in _seeds(study, encoder, task):
                graph.waiting[graph.add(tune_cell(study, encoder, task, seed))] = Run(encoder, task, seed, task)
    for name in study.runs:
        _add_existing(study, graph, name)
    for key in list(graph.waiting):
        result = results(key)
        if result is not None:
            grow(study, graph, key, result)
    return graph


def grow(study: ResolvedPlan, graph: Graph, key: str, result: dict[str, Any]) -> None:
    """Add the cells that measure the snapshots of a fine-tuning. key, result: of the cell that did the fine-tuning."""
    add_run(study, graph, key, graph.waiting.pop(key), TuningResult.from_dict(result["payload"]["tuned"]))


# ---- cells of single spaces ----


def _add_spaces(state: EncoderState, task: str, layers: Sequence[int], *, is_end: bool) -> dict[int, str]:
    """Add the cells that measure one encoder state on one task.

    Returns, for each layer, the key of the cell that clusters the train split. The key is "" if the space is not
    clustered but its points are compared; the dict is empty if neither is done.
    is_end: whether this is the first state (before fine-tuning) or the last (after it), not one in between. If it is,
    the train split and all test splits are clustered. The other measures of a single train space are added too, but
    only if the encoder was not fine-tuned on a different task. At snapshots in between, only the train split is
    clustered, and the classifier runs only if the plan has `at: all`.
    """
    plan = state.study.plan
    requests = set(plan.measures)
    clustered: dict[int, str] = {}
    if requests & NEED_GEOMETRY:
        for layer in layers:
            clustered[layer] = state.add_geometry(task, "train", layer, is_end=is_end)
            if plan.geometry.attempts == "both":
                state.add_released_clusters(task, layer)
            for split in plan.test_splits if is_end else ():
                other = state.add_geometry(task, split, layer, is_end=is_end)
                if plan.compare.train_test and "similarity" in requests:
                    position = state.position(task, "train", layer)
                    _add_similarity(state, clustered[layer], other, Placement("", position, f"train_{split}"))
    elif "panel" in requests and state.is_not_cross_task(task):
        clustered = dict.fromkeys(layers, "")  # not clustered; listed because point similarity needs these spaces
    if "classifier" in requests and (is_end or plan.classifier.at == "all"):
        for layer in sorted(state.chosen(plan.classifier.layers) & set(layers)):
            for split in plan.test_splits:
                state.add_classifier(task, split, layer)
    if is_end and state.is_not_cross_task(task):
        state.add_train_kinds(task, layers)
        add_settings(state, task, layers)
    return clustered


# ---- pretrained encoders and fine-tunings ----


def _add_pretrained(study: ResolvedPlan, graph: Graph, encoder: str) -> dict[str, TrainSpace]:
    """Add the cells of a pretrained encoder on every task, and return its train spaces at the last layer, by task."""
    state = _pretrained(study, graph, encoder)
    layers = layers_of(study.plan, *study.encoders[encoder], ends=True)
    last = last_layer(layers)
    spaces = {}
    for task in study.tasks:
        clustered = _add_spaces(state, task, layers, is_end=True)
        if clustered:
            spaces[task] = TrainSpace(state, task, last, clustered[last])
            _compare_with_random(spaces[task])
        if study.plan.tuning is None:
            add_explorer([state], task, {layer: [key] for layer, key in clustered.items()})
    for pooled in pooled_studies(study, encoder):
        for task in pooled.tasks:
            add_settings(_pretrained(pooled, graph, encoder), task, layers)
    return spaces


def _pretrained(study: ResolvedPlan, graph: Graph, encoder: str) -> EncoderState:
    source, _ = study.source_and_info(encoder)
    start = Snapshot(0, 0.0, source.fingerprint, {}, {})
    producer = graph.add(_producer(study, encoder))
    dtype = resolved_dtype(study, source)
    return EncoderState(
        study, graph, encoder, source.fingerprint, dtype, producer, PRETRAINED, 0, start, is_final=False
    )


def _producer(study: ResolvedPlan, encoder: str) -> Cell:
    """The cell that extracts the spaces of an encoder that is not fine-tuned here."""
    run = encoder.removeprefix("random:")
    if run not in study.runs:
        return extract_cell(study, encoder)
    base = study.runs[run].base
    random = Checkpoint(f"random:{base.name}", study.source_and_info(encoder)[0], 0)
    return checkpoint_cell(study, run, base if encoder == run else random, is_end=True)


def _add_existing(study: ResolvedPlan, graph: Graph, name: str) -> None:
    """Add the cells that measure the base and the checkpoints of an existing training, on every task of the plan."""
    existing = study.runs[name]
    start = replace(
        _pretrained(study, graph, name),
        tuned_on=task_name(study, existing.tuned_on),
        seed=existing.seed,
        method=existing.method,
    )
    states, final = [start], existing.checkpoints[-1]
    for checkpoint in existing.checkpoints:
        key = graph.add(checkpoint_cell(study, name, checkpoint, is_end=checkpoint is final))
        snapshot = Snapshot(checkpoint.step, checkpoint.epoch, checkpoint.source.fingerprint, {}, {})
        state = replace(
            start,
            fingerprint=snapshot.fingerprint,
            dtype=resolved_dtype(study, checkpoint.source),
            producer=key,
            snapshot=snapshot,
            is_final=checkpoint is final,
        )
        graph.placements.append(Placement(key, state.position(existing.tuned_on, "", existing.info.layers)))
        states.append(state)
    _add_snapshots(study, graph, Run(name, existing.tuned_on, existing.seed, existing.tuned_on), states, study.tasks)


def add_run(study: ResolvedPlan, graph: Graph, key: str, run: Run, tuned: TuningResult) -> None:
    """Add the cells that measure the snapshots of a fine-tuning, on each task that the plan measures them on.

    key: the key of the cell that fine-tunes.
    """
    first, final, tuned_on = tuned.snapshots[0], tuned.snapshots[-1], task_name(study, run.tuned_on)
    dtype, method = tuned.settings.dtype, study.variants[run.encoder].method.name
    start = EncoderState(
        study, graph, run.encoder, first.fingerprint, dtype, key, tuned_on, run.seed, first, False, method
    )
    snapshots = [
        replace(start, fingerprint=snapshot.fingerprint, snapshot=snapshot, is_final=snapshot is final)
        for snapshot in tuned.snapshots
    ]
    positions = tuple(state.position(run.tuned_on, "", tuned.info.layers) for state in snapshots)
    graph.placements.append(Placement(key, positions[-1], snapshots=positions))
    _add_snapshots(study, graph, run, snapshots, study.plan.probed(run.tuned_on))


def _add_snapshots(
    study: ResolvedPlan, graph: Graph, run: Run, snapshots: Sequence[EncoderState], tasks: Iterable[str]
) -> None:
    """Add the cells that measure the snapshots of a training on some tasks, and compare them with the start."""
    for task in tasks:
        by_layer: dict[int, list[TrainSpace]] = {}
        for state in snapshots:
            is_end = state in (snapshots[0], snapshots[-1])
            layers = run_layers(study, run.encoder, run.tuned_on, ends=is_end, task=task)
            for layer, cell in _add_spaces(state, task, layers, is_end=is_end).items():
                by_layer.setdefault(layer, []).append(TrainSpace(state, task, layer, cell))
        for spaces in by_layer.values():
            _compare_snapshots(study, graph, spaces)
        own = run.tuned_on in (task, UNKNOWN)
        if own and (run.encoder in study.runs or run.seed == _seeds(study, run.encoder, run.tuned_on)[0]):
            ends = {layer: [spaces[at].clustering_key for at in (0, -1)] for layer, spaces in by_layer.items()}
            add_explorer(snapshots, task, ends)
        if own and by_layer:
            _add_final(study, graph, replace(run, task=task), by_layer[last_layer(by_layer)][-1])


def _seeds(study: ResolvedPlan, encoder: str, task: str) -> list[int]:
    """The seeds with which an encoder (with a method) is fine-tuned on a task; for an existing training, the plan's."""
    variant = study.variants.get(encoder)
    return study.plan.seeds if variant is None else study.plan.seeds_for(variant.base, task)


def _add_final(study: ResolvedPlan, graph: Graph, run: Run, final: TrainSpace) -> None:
    """Compare the final space of a fine-tuning with random weights, and with other seeds that have finished so far."""
    _compare_with_random(final)
    graph.final_spaces[run] = final
    spaces = [
        (seed, graph.final_spaces.get(replace(run, seed=seed))) for seed in _seeds(study, run.encoder, run.tuned_on)
    ]
    for (seed, first), (_, second) in combinations(spaces, 2):
        if study.plan.compare.seeds and first and second and final in (first, second):
            _add_comparison(second, first, "seed", str(seed))


def _compare_snapshots(study: ResolvedPlan, graph: Graph, spaces: list[TrainSpace]) -> None:
    """At one layer: compare every snapshot with step 0, and add the cell for the label centroids.

    Step 0 is compared with itself as well, so that the table has a row for every snapshot. The cell for the centroids
    measures how the mean of each label moves over the snapshots.
    """
    plan, start, end = study.plan, spaces[0], spaces[-1]
    if plan.compare.original:
        if {"similarity", "distances"} & set(plan.measures):
            for space in spaces[:-1]:
                placement = Placement("", space.position, "original")
                _add_similarity(space.state, start.clustering_key, space.clustering_key, placement)
        _add_comparison(end, start, "original")
        compare_settings(start, end)
    if "centroids" in plan.measures and len(spaces) > 1:
        keys, positions = [space.clustering_key for space in spaces], tuple(space.position for space in spaces)
        content = centroids.content(keys, [position.step for position in positions])
        cell = centroids.KIND.cell(content, {}, tuple(dict.fromkeys(keys)), describe_position(positions[-1]))
        graph.placements.append(Placement(graph.add(cell), positions[-1], snapshots=positions))


# ---- comparisons ----


def _add_similarity(state: EncoderState, a: str, b: str, placement: Placement) -> None:
    """Add the comparison of two clustered spaces by their label distances.

    a, b: the keys of the cells that cluster them. placement: where the result goes; its key is filled in here.
    """
    content = comparison.content(state.study.plan, a, b)
    subject = f"{describe_position(placement.position)} ({placement.comparison})"
    key = state.graph.add(comparison.KIND.cell(content, {}, tuple(dict.fromkeys([a, b])), subject))
    state.graph.placements.append(replace(placement, key=key))


def _add_comparison(a: TrainSpace, b: TrainSpace, what: str, other: str = "", *, points: bool = True) -> None:
    """Compare two spaces of the same examples by label distances and point by point, as far as the plan requests each.

    The rows go to the position of a. what: the type of comparison ("original", "random", "seed" or "encoder"), which is
    appended to the names of measures. other: the name of the encoder, or the seed, that b belongs to. points: whether
    to compare point by point at all.
    """
    state, plan = a.state, a.state.study.plan
    placement = Placement("", a.position, what, other)
    if {"similarity", "distances"} & set(plan.measures):
        _add_similarity(state, b.clustering_key, a.clustering_key, placement)
    in_panel = "panel" in plan.measures and a.layer in state.chosen(plan.panel.layers)
    if points and in_panel and state.is_not_cross_task(a.task):
        content = point_similarity.content(plan, b.space, a.space)
        producers = tuple(dict.fromkeys([state.producer, b.state.producer]))
        subject = f"{describe_position(a.position)} ({what})"
        key = state.graph.add(point_similarity.KIND.cell(content, state.resources(a.task), producers, subject))
        state.graph.placements.append(replace(placement, key=key))


def _compare_with_random(end: TrainSpace) -> None:
    """Compare a space with the space that the same architecture gives with random weights, at the encoder's last layer.

    Points are compared only for the pretrained encoder. The reason: random weights depend on the version of torch, so a
    study that is continued with another version computes this baseline again. To compare points after fine-tuning, it
    would then need the vectors of the fine-tuned encoder; on a machine without them, it would have to fine-tune again.
    """
    state, study = end.state, end.state.study
    variant = study.variants.get(state.encoder)
    name = f"random:{state.encoder if variant is None else variant.base}"
    _, info = study.source_and_info(state.encoder)
    if name not in study.randoms or end.layer != info.layers:
        return
    random = _pretrained(study, state.graph, name)
    key = random.add_geometry(end.task, "train", info.layers, is_end=False) if end.clustering_key else ""
    space = TrainSpace(random, end.task, info.layers, key)
    if key and (state.tuned_on == PRETRAINED or state.encoder not in study.encoders):
        renamed = ("label_distance", "random_label_distance")
        state.graph.placements.append(Placement(key, end.position, renamed=renamed))
    _add_comparison(end, space, "random", encoder_name(study, name), points=state.tuned_on == PRETRAINED)

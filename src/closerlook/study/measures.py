"""What a cell finds out, as rows: a measure, what it is of, and its value. Arrays in, plain values out."""

from __future__ import annotations

import base64
import heapq
import json
import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closerlook.geometry import (
    BlockedMerge,
    Clustering,
    LabelDistances,
    Similarity,
    cluster,
    cluster_distances,
    label_distances,
    spatial_similarity,
)
from closerlook.geometry.distances import Statistic
from closerlook.geometry.overlap import largest_cluster_shares
from closerlook.geometry.resampling import (
    ResampledDistances,
    adjust,
    bias,
    change_p_values,
    few_points,
    interval,
    resample_distances,
    resample_similarity,
)
from closerlook.probes.grid import ProbeResult, deviation
from closerlook.probes.training import Sizes
from closerlook.representations.space import Space
from closerlook.tuning.tuned import TuningResult

Row = dict[str, Any]
Floats = NDArray[np.float64]

BLOCKERS = 40
"""Refusals told of one space: those between its largest clusters."""

CORRELATED = 3
"""Labels in common that a correlation of their distances needs; two have one distance."""

SIGNIFICANCE = 0.05
"""The p-value up to which a label's change is marked, after the correction for many labels."""

SHOWN = 3
"""Points told of each side of a refusal, the weightiest."""


def row(measure: str, value: float | None, **rest: Any) -> Row:
    """One measurement; what is NaN is None, so that it can be written as JSON."""
    return {"measure": measure, "value": _plain(value)} | {
        key: _plain(part) for key, part in rest.items() if part is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---- one space ----


def measure_space(
    space: Space,
    context: Sequence[str],
    *,
    tau: float,
    min_points: int,
    statistic: Statistic,
    distances: bool,
    resamples: int = 0,
    threads: int | None = None,
) -> tuple[list[Row], dict[str, Any]]:
    """The rows of a space, and what comparisons need of it. context: the sentence of each row.

    resamples: of the examples, for the intervals of distances; 0: none.
    """
    found = cluster(space.X, space.label_names, tau=tau, threads=threads)
    rows = [
        row("n_points", space.n),
        row("n_dimensions", space.d),
        row("n_labels", found.n_labels),
        row("n_clusters", found.n_clusters),
        row("is_separable", float(found.is_separable)),
        row("n_conflicts", len(found.conflicts)),
        row("n_undecided", found.n_undecided),
        row("rms_radius", found.radius),
    ]
    clusters = np.bincount(found.cluster_codes, minlength=found.n_labels)
    points = np.bincount(found.cluster_codes[found.assignments], minlength=found.n_labels)
    for label, n_clusters, n in zip(found.labels, clusters, points, strict=True):
        rows.append(row("label_clusters", n_clusters, label=label, n=n))
    shares = largest_cluster_shares(found)
    rows += [row("largest_cluster_share", share, label=label) for label, share in shares.items()]
    rows.append(row("mean_largest_cluster_share", float(np.mean(list(shares.values())))))
    few = few_points(found.labels, points, space.d)
    rows += [row("few_points", points[found.labels.index(label)], label=label, text=why) for label, why in few.items()]
    rows += [row("blocked_merge", None, **told) for told in _refusals(found, space, context)]
    payload: dict[str, Any] = {"centroids": _centroids(space, found), "labels": list(found.labels)}
    if distances and found.n_labels > 1:
        how: dict[str, Any] = {"min_points": min_points, "threads": threads}
        apart = label_distances(cluster_distances(space.X, found, **how), statistic=statistic)
        drawn = resample_distances(space.X, found, resamples=resamples, statistic=statistic, **how)
        rows += _distance_rows(apart, drawn)
        payload["distances"] = _kept(apart) | {"replicates": _upper(drawn)}
    return rows, payload


def _centroids(space: Space, found: Clustering) -> str:
    """(m, d) the mean of each label's points, in 32 bits as the points are, as text a third as long as digits."""
    codes = found.cluster_codes[found.assignments]
    sums = np.zeros((found.n_labels, space.d))
    np.add.at(sums, codes, space.X.astype(np.float64))
    means = (sums / np.bincount(codes)[:, None]).astype("<f4")
    return base64.b64encode(means.tobytes()).decode()


def _read_centroids(kept: dict[str, Any]) -> dict[str | int, Floats]:
    """By label, what `_centroids` kept."""
    means = np.frombuffer(base64.b64decode(kept["centroids"]), "<f4").reshape(len(kept["labels"]), -1)
    return dict(zip(kept["labels"], means.astype(np.float64), strict=True))


def _distance_rows(apart: LabelDistances, drawn: ResampledDistances) -> list[Row]:
    unit = apart.radius or 1.0
    rows, minimum = [], drawn.minimum()
    for at, (label, nearest, distance) in enumerate(apart.nearest()):
        sure = _bounds(distance, minimum[:, at])
        rows.append(row("minimum_distance", distance, label=label, other=nearest, **sure))
        rows.append(row("relative_minimum_distance", distance / unit, label=label, other=nearest))
        for there in range(at + 1, len(apart.labels)):
            rows.append(row("label_distance", apart.values[at, there], label=label, other=apart.labels[there]))
    mean = apart.mean_minimum()
    if math.isfinite(mean):
        replicates = drawn.mean_minimum()
        rows.append(row("mean_minimum_distance", mean, **_bounds(mean, replicates)))
        if drawn.resamples:
            rows.append(row("mean_minimum_distance_bias", bias(mean, replicates), n=drawn.resamples))
        rows.append(row("mean_relative_minimum_distance", mean / unit))
    rows += [row("n_excluded_clusters", n, label=label) for label, n in apart.excluded.items()]
    return rows


def _bounds(value: float, replicates: Floats, within: tuple[float, float] = (0.0, math.inf)) -> dict[str, float]:
    """The interval of a value over its replicates, for a row; nothing without replicates."""
    low, high = interval(value, replicates, within=within)
    return {"ci_low": low, "ci_high": high} if math.isfinite(low) else {}


DIGITS = 6
"""Significant digits kept of replicates: they say how far values spread, and are many."""


def _upper(drawn: ResampledDistances) -> list[list[float | None]]:
    """For each replicate the distances of the pairs i < j."""
    i, j = np.triu_indices(len(drawn.labels), 1)
    return [[_plain(float(f"{value:.{DIGITS}g}")) for value in one] for one in drawn.values[:, i, j]]


def _replicates(kept: dict[str, Any]) -> ResampledDistances:
    """What `_upper` kept."""
    labels = tuple(kept["labels"])
    given = kept["distances"]["replicates"]
    values = np.zeros((len(given), len(labels), len(labels)))
    i, j = np.triu_indices(len(labels), 1)
    values[:, i, j] = values[:, j, i] = np.array(given, dtype=float).reshape(len(given), len(i))
    return ResampledDistances(labels, values, "mean", 1, 0)


def _kept(apart: LabelDistances) -> dict[str, Any]:
    values = [[_plain(float(value)) for value in line] for line in apart.values]
    return {"values": values, "separable": apart.separable, "radius": apart.radius}


def _refusals(found: Clustering, space: Space, context: Sequence[str]) -> list[dict[str, Any]]:
    """Which points keep clusters of a label apart, in their sentences; of the largest clusters."""
    sizes = found.sizes
    pairs = (
        pair
        for code in range(found.n_labels)
        for pair in combinations(np.flatnonzero(found.cluster_codes == code).tolist(), 2)
    )
    largest = heapq.nlargest(BLOCKERS, pairs, key=lambda pair: (min(sizes[list(pair)]), max(sizes[list(pair)])))
    return [_told(found.blocked_merge(*pair), found, space, context) for pair in largest]


def _told(blocker: BlockedMerge, found: Clustering, space: Space, context: Sequence[str]) -> dict[str, Any]:
    labels, sizes = found.cluster_labels, found.sizes

    def points(rows: NDArray[np.int64], weights: Floats) -> list[dict[str, Any]]:
        heaviest = (-weights).argsort(kind="stable")[:SHOWN]
        words = space.words
        return [
            {
                "row": int(rows[at]),
                "weight": round(float(weights[at]), 4),
                "word": None if words is None else words[int(rows[at])],
                "text": context[int(rows[at])] if len(context) else None,
            }
            for at in heaviest
        ]

    text = {
        "clusters": [blocker.first, blocker.second],
        "sizes": [int(sizes[blocker.first]), int(sizes[blocker.second])],
        "blocker": blocker.blocking,
        "blocker_size": int(sizes[blocker.blocking]),
        "decided": blocker.decided,
        "points": points(blocker.rows, blocker.weights),
        "blocker_points": points(blocker.blocking_rows, blocker.blocking_weights),
    }
    return {
        "label": labels[blocker.first],
        "other": labels[blocker.blocking],
        "text": json.dumps(text, ensure_ascii=False),
        "n": int(sizes[blocker.first] + sizes[blocker.second]),
    }


# ---- two spaces ----


def compare_spaces(a: dict[str, Any], b: dict[str, Any], *, permutations: int, resamples: int) -> list[Row]:
    """The rows of two spaces, from what was kept of each: how alike their labels lie, and which moved apart."""
    before, after = _minimum(a), _minimum(b)
    shared = [label for label in before if label in after]
    if len(shared) < CORRELATED:
        rows = [row("similarity", None, n=len(shared))]
    else:
        found = spatial_similarity(_Table(a), _Table(b), permutations=permutations, resamples=resamples)
        rows = _similarity_rows(found) + _similarity_over_examples(found.pearson, _replicates(a), _replicates(b))
    changes = [(label, after[label] - before[label]) for label in shared]
    rows += [row("minimum_distance_change", change, label=label) for label, change in changes]
    rows += _change_tests(a, b, dict(changes))
    if changes:
        rows.append(row("n_labels_increased", sum(change > 0 for _, change in changes)))
        rows.append(row("n_labels_decreased", sum(change < 0 for _, change in changes)))
        rows.append(
            row("mean_minimum_distance_change", float(np.mean([change for _, change in changes])), n=len(changes))
        )
    return rows


def _similarity_over_examples(value: float, a: ResampledDistances, b: ResampledDistances) -> list[Row]:
    """The interval of a similarity over examples drawn again, where both spaces have replicates."""
    if not a.resamples or a.resamples != b.resamples:
        return []
    drawn = resample_similarity(a, b)
    sure = _bounds(value, drawn, within=(-1.0, 1.0))
    return [row("similarity_over_examples", value, n=a.resamples, **sure)] if sure else []


def _change_tests(a: dict[str, Any], b: dict[str, Any], changes: dict[str | int, float]) -> list[Row]:
    """For each label the p-value of its change, adjusted for how many labels there are; of the same examples."""
    before, after = _replicates(a), _replicates(b)
    if not before.resamples or before.labels != after.labels or before.resamples != after.resamples:
        return []
    seen = np.array([changes.get(label, math.nan) for label in before.labels])
    adjusted = adjust(change_p_values(before, after, seen))
    rows = [
        row("minimum_distance_change_p_value", p, label=label, n=before.resamples, text="Holm")
        for label, p in zip(before.labels, adjusted, strict=True)
        if math.isfinite(p)
    ]
    marked = [np.sign(seen[at]) for at, p in enumerate(adjusted) if p <= SIGNIFICANCE]
    return [
        *rows,
        row("n_labels_significantly_increased", sum(sign > 0 for sign in marked), n=len(rows)),
        row("n_labels_significantly_decreased", sum(sign < 0 for sign in marked), n=len(rows)),
    ]


def _similarity_rows(found: Similarity) -> list[Row]:
    rows = [
        row(
            measure,
            value,
            ci_low=interval[0],
            ci_high=interval[1],
            n=found.n_labels,
        )
        for measure, value, interval in (
            ("similarity", found.pearson, found.pearson_interval),
            ("similarity_spearman", found.spearman, found.spearman_interval),
        )
    ]
    rows.append(row("similarity_p_value", found.p_value, n=found.permutations))
    if math.isfinite(found.null_deviation):
        rows.append(row("similarity_null_mean", found.null_mean, n=found.permutations))
        rows.append(row("similarity_null_sd", found.null_deviation, n=found.permutations))
    rows.append(row("similarity_both_separable", None if found.separable is None else float(found.separable)))
    excluded = {"excluded": [*found.excluded_a, *found.excluded_b], "undefined": list(found.undefined)}
    if any(excluded.values()):
        rows.append(row("similarity_excluded_labels", len(excluded["excluded"]), text=json.dumps(excluded)))
    return rows


class _Table:
    """The label distances kept of a space, as `spatial_similarity` reads them."""

    def __init__(self, kept: dict[str, Any]) -> None:
        held = kept["distances"]
        self.labels: list[str | int] = list(kept["labels"])
        self.values = np.array([[np.nan if v is None else v for v in line] for line in held["values"]], dtype=float)
        self.separable = bool(held["separable"])


def _minimum(kept: dict[str, Any]) -> dict[str | int, float]:
    """The distance of each label to the nearest other one, where it has one."""
    table = _Table(kept)
    apart = table.values.copy()
    np.fill_diagonal(apart, np.nan)
    some = np.isfinite(apart).any(axis=1)
    return {label: float(np.nanmin(line)) for label, line, has in zip(table.labels, apart, some, strict=True) if has}


# ---- along a run ----


def follow_centroids(kept: Sequence[dict[str, Any]], steps: Sequence[int]) -> list[Row]:
    """The rows of a run: each label's centroid in the plane where all of them vary most, and how far it went.

    The basis is that of the principal components of all centroids of all steps. shift: last minus first, in the
    principal components of the shifts themselves, not centred, so that one common direction shows.
    """
    centroids = [_read_centroids(one) for one in kept]
    labels = [label for label in centroids[0] if all(label in one for one in centroids)]
    paths = np.stack([[one[label] for label in labels] for one in centroids])
    flat = paths.reshape(-1, paths.shape[-1])
    centre = flat.mean(axis=0)
    basis, explained = _components(flat - centre)
    rows = [row(f"path_explained_variance_{axis}", explained[at]) for at, axis in enumerate("xy")]
    for step, points in zip(steps, (paths - centre) @ basis.T, strict=True):
        for label, point in zip(labels, points, strict=True):
            rows += [row(f"centroid_{axis}", point[at], label=label, step=step) for at, axis in enumerate("xy")]
    shifts = paths[-1] - paths[0]
    basis, explained = _components(shifts)
    rows += [row(f"shift_explained_variance_{axis}", explained[at]) for at, axis in enumerate("xy")]
    for label, shift in zip(labels, shifts, strict=True):
        rows += [row(f"shift_{axis}", shift @ basis[at], label=label) for at, axis in enumerate("xy")]
        rows.append(row("shift_length", float(np.linalg.norm(shift)), label=label))
    return rows


def _components(points: Floats) -> tuple[Floats, Floats]:
    """(2, d) the first two principal directions, each with its largest entry positive, and their shares of variance."""
    _, singular, directions = np.linalg.svd(points, full_matrices=False)
    two = np.zeros((2, points.shape[1]))
    two[: min(2, len(directions))] = directions[:2]
    largest = np.abs(two).argmax(axis=1)
    signs = np.sign(two[[0, 1], largest])
    squares = np.zeros(max(2, len(singular)))
    squares[: len(singular)] = singular**2
    total = squares.sum()
    return two * np.where(signs == 0, 1, signs)[:, None], squares[:2] / (total if total > 0 else 1)


# ---- probes and fine-tunings ----


def classifier_rows(result: ProbeResult) -> list[Row]:
    """The rows of a grid of classifier probes; intervals over seeds, by Student's t."""
    accuracy = result.accuracy[result.chosen]
    low, high = _interval(accuracy)
    rows = [
        row("accuracy", result.mean, ci_low=low, ci_high=high, n=result.n_test, text=_named(result.chosen_sizes)),
        row("accuracy_sd", result.deviation, n=len(accuracy)),
        row("macro_f1", float(result.macro_f1.mean()), n=result.n_test),
        row("macro_f1_sd", deviation(result.macro_f1), n=len(accuracy)),
        row("majority_accuracy", result.majority, n=result.n_test),
        row("n_unseen_labels", len(result.unseen)),
    ]
    for one in result.table():
        rows.append(row("grid_accuracy", one["accuracy"], text=_named(one["sizes"])))
        rows.append(row("grid_held_out_accuracy", one["held_out"], text=_named(one["sizes"])))
    counts = result.confusion.sum(axis=1) // len(result.seeds)
    for label, right, n in zip(result.test_labels, result.by_label, counts, strict=True):
        rows.append(row("label_accuracy", right, label=label, n=n))
    return rows


def _named(sizes: Sizes) -> str:
    return "×".join(map(str, sizes)) or "linear"


def _interval(values: Floats) -> tuple[float | None, float | None]:
    from scipy.stats import t

    if len(values) < 2:
        return None, None
    half = float(t.ppf(0.975, len(values) - 1)) * deviation(values) / math.sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def tuning_rows(run: TuningResult) -> list[Row]:
    """The rows of a fine-tuning: how its own head does at each snapshot."""
    return [
        row(f"head_{what}", value, split=split, step=one.step, epoch=one.epoch)
        for one in run.snapshots
        for what, by_split in (("accuracy", one.accuracy), ("loss", one.loss))
        for split, value in by_split.items()
    ]

"""The study cell `geometry`: clusters one space, measures label distances, and stores what comparisons need."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from closerlook.geometry import (
    BlockedMerge,
    Clustering,
    LabelDistances,
    cluster,
    cluster_distances,
    label_distances,
)
from closerlook.geometry.blocked import MOST_BLOCKED_MERGES, largest_pairs
from closerlook.geometry.distances import Statistic
from closerlook.geometry.overlap import largest_cluster_shares
from closerlook.geometry.resampling import ResampledDistances, bias, few_points, interval, resample_distances
from closerlook.representations.space import Space
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.entries import LayeredPart, PlanPart
from closerlook.study.inputs import load_space, load_tasks, sentences, with_words
from closerlook.study.kinds.geometry_payload import (
    distances_payload,
    encode_centroids,
    encode_replicates,
    label_sizes,
)
from closerlook.study.kinds.kind import CellResult, Kind
from closerlook.study.measure import Measure
from closerlook.study.rows import Payload, Row, row
from closerlook.study.sizes import Estimate, space_size

if TYPE_CHECKING:
    from closerlook.study.plan import Plan

Floats = NDArray[np.float64]

SHOWN_POINTS = 3
"""Maximum number of points listed in a blocked merge: this many of the two clusters together, and this many of the
blocking cluster.

They are the points with the largest weights in the convex combinations that prove the overlap.
"""

MEASURES = (
    Measure("n_points", "points", "number of examples in the space", digits=0),
    Measure("n_dimensions", "dimensions", "number of dimensions of the space", digits=0),
    Measure("n_labels", "labels", "number of labels that occur in the space", digits=0),
    Measure(
        "n_clusters",
        "clusters",
        "number of DirectProbe clusters; in a linearly separable space it equals the number of labels",
        digits=0,
        null="subsampled_clusters",
    ),
    Measure(
        "is_separable",
        "linearly separable",
        "1 if the convex hulls of all labels are pairwise disjoint, so that each label is one cluster; else 0",
        digits=0,
    ),
    Measure(
        "n_conflicts",
        "conflicts",
        "number of points with the same vector as a point of another label",
        digits=0,
    ),
    Measure(
        "n_undecided",
        "undecided pairs",
        "number of merges refused because the solver could not prove whether the merged cluster overlaps a cluster of "
        "another label",
        digits=0,
    ),
    Measure("rms_radius", "RMS radius", "root mean square distance of the points from their mean"),
    Measure(
        "label_clusters",
        "clusters of a label",
        "number of clusters of a label; column n: number of points with that label",
        digits=0,
        rows="label",
    ),
    Measure(
        "largest_cluster_share",
        "largest cluster of a label",
        "share of a label's points that are in its largest cluster; 1: the label is one cluster",
        digits=3,
        rows="label",
        archive="none",
    ),
    Measure(
        "mean_largest_cluster_share",
        "largest cluster",
        "share of a label's points that are in its largest cluster, mean over labels; 1: one cluster for each label",
        digits=3,
        group="overlap",
    ),
    Measure(
        "few_points",
        "label with few points",
        "number of points of a label with fewer than 5 points, too few for reliable distances; column text: a note",
        digits=0,
        rows="label",
        archive="ends of last layer",
    ),
    Measure(
        "blocked_merge",
        "blocked merge",
        "two clusters of a label that cannot be merged, and the cluster of another label that blocks them; column "
        "text: JSON with points, words and sentences of the two clusters and of the blocking cluster",
        rows="merge",
        archive="ends of last layer",
    ),
    Measure(
        "label_distance",
        "label distance",
        "distance between two labels: mean (or minimum) of the distances between the convex hulls of their clusters",
        rows="label pair",
    ),
    Measure(
        "minimum_distance",
        "minimum distance",
        "distance of a label to the nearest other label",
        rows="label",
        archive="last layer",
    ),
    Measure(
        "relative_minimum_distance",
        "minimum distance in RMS radii",
        "minimum distance of a label divided by the RMS radius of the space",
        digits=3,
        rows="label",
        archive="last layer",
    ),
    Measure(
        "mean_minimum_distance",
        "mean minimum distance",
        "distance of a label to the nearest other label, mean over labels",
        null="subsampled_mean_minimum_distance",
    ),
    Measure(
        "mean_relative_minimum_distance",
        "mean minimum distance in RMS radii",
        "mean minimum distance divided by the RMS radius of the space",
        digits=3,
    ),
    Measure(
        "mean_minimum_distance_bias",
        "bias of the mean minimum distance",
        "mean minimum distance on half of the examples, averaged over random halves, minus its value on all examples; "
        "column n: number of random halves",
    ),
    Measure(
        "n_excluded_clusters",
        "excluded clusters",
        "number of clusters of a label that are excluded from its distances: they have fewer than min_points points",
        digits=0,
        rows="label",
    ),
)


class Geometry(PlanPart):
    """How spaces are clustered and compared.

    tau: see `geometry.cluster`. min_points: see `geometry.cluster_distances`. statistic: whether the distance between
    two labels is the mean or the minimum over pairs of their clusters. attempts: "both" also counts the clusters of
    every train space with the limit on attempts of the released code (see `released_clusters`); no other result depends
    on it. permutations: the number of permutations in the Mantel test of a similarity. resamples: the number of
    bootstrap samples over labels for the confidence interval of a similarity.
    """

    tau: float = Field(1e-6, gt=0, lt=1)
    min_points: int = Field(1, ge=1)
    statistic: Literal["mean", "min"] = "mean"
    attempts: Literal["all", "both"] = "all"
    permutations: int = Field(9999, ge=0)
    resamples: int = Field(2000, ge=0)


class Uncertainty(LayeredPart):
    """Confidence intervals of distances and similarities that reflect the choice of examples.

    They are computed before and after fine-tuning, not at the snapshots in between. resamples: the number of random
    half-samples of the examples; all distances are computed again on each. Every random split of the examples gives two
    half-samples, so the number should be even.
    """

    resamples: int = Field(20, ge=4)


def content(plan: Plan, space: str, *, intervals: bool) -> dict[str, Any]:
    """What goes into the key of the cell that measures a space. intervals: whether to compute confidence intervals."""
    return {
        "space": space,
        "tau": plan.geometry.tau,
        "min_points": plan.geometry.min_points,
        "statistic": plan.geometry.statistic,
        "distances": bool({"distances", "similarity"} & set(plan.measures)),
        "resamples": plan.uncertainty.resamples if intervals else 0,
    }


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Measure the cell's space, with the words and sentences of its examples."""
    resources, settings = cell.resources, cell.content
    (task,) = load_tasks(cell, resources["task"])
    return measure_space(
        with_words(load_space(cell, settings["space"]), task, resources["split"]),
        sentences(task, resources["split"]),
        tau=settings["tau"],
        min_points=settings["min_points"],
        statistic=settings["statistic"],
        distances=settings["distances"],
        resamples=settings["resamples"],
        threads=threads,
    )


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected time, memory and disk space. The time is one clustering, plus a fifth of that for each resample."""
    size, resamples = space_size(study, cell), cell.content["resamples"]
    disk = 20_000 + 6 * size.m * (size.d + 3 * size.m) + 4 * resamples * size.m**2
    return Estimate(0.02 + size.clustering_seconds * (1 + resamples / 5), size.bytes, disk)


KIND = Kind(
    "geometry",
    4,
    "clusters and distances of",
    run,
    estimate,
    title="clusters and distances",
    requests=("clusters", "distances", "uncertainty"),
    measures=MEASURES,
)


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
) -> CellResult:
    """The rows of a space, and the payload that comparisons need.

    context: the sentence of each example. distances: whether to measure label distances. resamples: the number of
    random half-samples of the examples for the confidence intervals of distances; 0: no intervals.
    """
    clustering = cluster(space.X, space.label_names, tau=tau, threads=threads)
    rows = _cluster_rows(space, clustering)
    rows += [row("blocked_merge", None, **columns) for columns in _blocked_merges(clustering, space, context)]
    payload: Payload = {
        "centroids": encode_centroids(space, clustering),
        "labels": list(clustering.labels),
        "sizes": label_sizes(clustering),
    }
    if distances and clustering.n_labels > 1:
        between_clusters = cluster_distances(space.X, clustering, min_points=min_points, threads=threads)
        between_labels = label_distances(between_clusters, statistic=statistic)
        resampled = resample_distances(
            space.X, clustering, resamples=resamples, statistic=statistic, min_points=min_points, threads=threads
        )
        rows += _distance_rows(between_labels, resampled)
        payload["distances"] = distances_payload(between_labels) | {"replicates": encode_replicates(resampled)}
    return rows, payload


def _cluster_rows(space: Space, clustering: Clustering) -> list[Row]:
    """The rows that count points, labels and clusters of the space, and the clusters and points of each label."""
    n_labels, codes = clustering.n_labels, clustering.cluster_codes
    clusters = np.bincount(codes, minlength=n_labels)
    points = np.bincount(codes[clustering.assignments], minlength=n_labels)
    shares = largest_cluster_shares(clustering)
    few = few_points(clustering.labels, points)
    return [
        row("n_points", space.n),
        row("n_dimensions", space.d),
        row("n_labels", n_labels),
        row("n_clusters", clustering.n_clusters),
        row("is_separable", float(clustering.is_separable)),
        row("n_conflicts", len(clustering.conflicts)),
        row("n_undecided", clustering.n_undecided),
        row("rms_radius", clustering.radius),
        *(
            row("label_clusters", n_clusters, label=label, n=n)
            for label, n_clusters, n in zip(clustering.labels, clusters, points, strict=True)
        ),
        *(row("largest_cluster_share", share, label=label) for label, share in shares.items()),
        row("mean_largest_cluster_share", float(np.mean(list(shares.values())))),
        *(
            row("few_points", points[clustering.labels.index(label)], label=label, text=reason)
            for label, reason in few.items()
        ),
    ]


def _distance_rows(distances: LabelDistances, resampled: ResampledDistances) -> list[Row]:
    """The rows of label distances and minimum distances, with confidence intervals if there are resamples."""
    radius = distances.radius or 1.0
    rows, minimum = [], resampled.minimum()
    for at, (label, nearest, distance) in enumerate(distances.nearest()):
        bounds = confidence_bounds(distance, minimum[:, at])
        rows.append(row("minimum_distance", distance, label=label, other=nearest, **bounds))
        rows.append(row("relative_minimum_distance", distance / radius, label=label, other=nearest))
        for second in range(at + 1, len(distances.labels)):
            rows.append(
                row("label_distance", distances.values[at, second], label=label, other=distances.labels[second])
            )
    mean = distances.mean_minimum()
    if math.isfinite(mean):
        replicates = resampled.mean_minimum()
        rows.append(row("mean_minimum_distance", mean, **confidence_bounds(mean, replicates)))
        if resampled.resamples:
            rows.append(row("mean_minimum_distance_bias", bias(mean, replicates), n=resampled.resamples))
        rows.append(row("mean_relative_minimum_distance", mean / radius))
    rows += [row("n_excluded_clusters", n, label=label) for label, n in distances.excluded.items()]
    return rows


def confidence_bounds(
    value: float, replicates: Floats, within: tuple[float, float] = (0.0, math.inf)
) -> dict[str, float]:
    """The columns ci_low and ci_high of a value, from its resampled values; empty if there are too few of them.

    within: the lowest and the highest possible value; the interval is cut off there.
    """
    low, high = interval(value, replicates, within=within)
    return {"ci_low": low, "ci_high": high} if math.isfinite(low) else {}


# ---- blocked merges ----


def _blocked_merges(clustering: Clustering, space: Space, context: Sequence[str]) -> list[dict[str, object]]:
    """The columns of one row for each blocked merge: at most MOST_BLOCKED_MERGES pairs of clusters of one label.

    Pairs with the largest smaller cluster come first.
    """
    pairs = largest_pairs(clustering.cluster_codes, clustering.sizes, MOST_BLOCKED_MERGES)
    return [_merge_columns(clustering.blocked_merge(*pair), clustering, space, context) for pair in pairs]


def _merge_columns(
    merge: BlockedMerge, clustering: Clustering, space: Space, context: Sequence[str]
) -> dict[str, object]:
    labels, sizes = clustering.cluster_labels, clustering.sizes

    def points(rows: NDArray[np.int64], weights: Floats) -> list[dict[str, object]]:
        heaviest = (-weights).argsort(kind="stable")[:SHOWN_POINTS]
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
        "clusters": [merge.first, merge.second],
        "sizes": [int(sizes[merge.first]), int(sizes[merge.second])],
        "blocker": merge.blocking,
        "blocker_size": int(sizes[merge.blocking]),
        "decided": merge.decided,
        "points": points(merge.rows, merge.weights),
        "blocker_points": points(merge.blocking_rows, merge.blocking_weights),
    }
    return {
        "label": labels[merge.first],
        "other": labels[merge.blocking],
        "text": json.dumps(text, ensure_ascii=False),
        "n": int(sizes[merge.first] + sizes[merge.second]),
    }

"""The rows of the wider panel: the shape of a space, what chance gives, parts of train, and spaces side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from closerlook.geometry.distances import Statistic
from closerlook.geometry.nulls import Null, cluster_nulls, separability
from closerlook.geometry.panel import describe_space
from closerlook.geometry.point_similarity import compare_points
from closerlook.geometry.split_halves import SplitSimilarity, split_similarity
from closerlook.representations.space import Space
from closerlook.study.measures import Row, row


def panel_rows(space: Space, *, tau: float, threads: int | None = None) -> list[Row]:
    """The shape of a space, by the names of `geometry.panel`; nothing for a single label."""
    if len(np.unique(space.y)) < 2:
        return []
    found = describe_space(space.X, space.label_names, clusters=False, tau=tau, threads=threads)
    rows = [row(name, value, n=space.n) for name, value in found.flat().items() if name != "largest_cluster_share"]
    told = ((one.share, {"label": one.first, "other": one.second, "n": one.removed}) for one in found.overlaps)
    return rows + [row("label_overlap", share, **pair) for share, pair in told]


def null_rows(
    space: Space,
    *,
    shuffles: int,
    cluster_shuffles: int,
    points: int,
    tau: float,
    min_points: int,
    threads: int | None = None,
) -> list[Row]:
    """What shuffled labels give; nothing for a single label."""
    if len(np.unique(space.y)) < 2:
        return []
    names, rows = space.label_names, []
    if shuffles:
        apart = separability(space.X, names, shuffles=shuffles, tau=tau, threads=threads)
        rows += _beside("separable_pairs", apart.separable, space.n)
        rows += [row("separable_pairs_n_over_2d", apart.ratio), row("separable_pairs_cover_probability", apart.cover)]
    if cluster_shuffles:
        found = cluster_nulls(
            *(space.X, names),
            shuffles=cluster_shuffles,
            points=points,
            tau=tau,
            min_points=min_points,
            threads=threads,
        )
        rows += _beside("subsampled_clusters", found.n_clusters, found.n)
        rows += _beside("subsampled_mean_minimum_distance", found.mean_minimum_distance, found.n)
    return rows


def _beside(name: str, null: Null, n: int) -> list[Row]:
    """A value, the mean and deviation of its null, z and p."""
    parts = {
        "": null.value,
        "_null_mean": null.mean,
        "_null_sd": null.deviation,
        "_z": null.z,
        "_p_value": null.p_value,
    }
    return [row(f"{name}{end}", value, n=n) for end, value in parts.items()]


def halves_rows(
    space: Space,
    *,
    repeats: int,
    folds: int,
    tau: float,
    min_points: int,
    statistic: Statistic,
    threads: int | None = None,
) -> list[Row]:
    """How alike parts of a space place the labels: halves, and folds beside the rest."""
    how: dict[str, Any] = {"tau": tau, "min_points": min_points, "statistic": statistic, "threads": threads}
    rows = [_split("similarity_halves", split_similarity(space.X, space.label_names, repeats=repeats, **how))]
    if folds:
        found = split_similarity(space.X, space.label_names, folds=folds, **how)
        rows.append(_split("similarity_folds", found))
    return rows


def _split(name: str, found: SplitSimilarity) -> Row:
    return row(name, found.mean, ci_low=found.low, ci_high=found.high, n=len(found.values))


def alike_rows(a: Space, b: Space, *, neighbours: int, threads: int | None = None) -> list[Row]:
    """How alike two spaces of the same rows are, point by point."""
    found = compare_points(a.X, b.X, k=min(neighbours, a.n - 1), threads=threads)
    parts = {"cka": found.cka, "procrustes": found.procrustes, "rsa": found.rsa, "shared_neighbours": found.neighbours}
    return [row(name, value, n=a.n) for name, value in parts.items()]

"""The study cell that compares separable pairs, clusters and distances of one space with shuffled labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from closerlook.geometry.label_sizes import FEWEST_LABELS, noise_similarity
from closerlook.geometry.nulls import Null, cluster_nulls, separability
from closerlook.geometry.p_values import FEWEST_SHUFFLES
from closerlook.representations.space import Space
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.entries import LayeredPart
from closerlook.study.inputs import load_space
from closerlook.study.kinds.kind import CellResult, Kind, TrainSpaceSettings
from closerlook.study.measure import Measure
from closerlook.study.rows import Row, row
from closerlook.study.sizes import BASE_BYTES, Estimate, space_size

if TYPE_CHECKING:
    from closerlook.study.plan import Plan

NOISE_POINTS = 1000
"""Maximum number of points of the noise; with more, label sizes are reduced in proportion."""

NOISE_DRAWS = 3
"""Maximum number of pairs of spaces of noise: their similarities hardly differ, and no p-value comes from them."""


def _with_null(measure: Measure) -> tuple[Measure, ...]:
    """A measure with the true labels, and the four that compare it with shuffled labels."""
    plain = measure.title.removesuffix(", %")
    return (
        measure,
        replace(
            measure,
            name=f"{measure.name}_null_mean",
            title=f"{measure.title} (shuffled labels)",
            meaning=f"mean over shuffles of the labels: {measure.meaning}",
        ),
        replace(
            measure,
            name=f"{measure.name}_null_sd",
            title=f"standard deviation of {measure.title} (shuffled labels)",
            meaning=f"standard deviation over shuffles of the labels: {measure.meaning}",
        ),
        Measure(
            f"{measure.name}_z",
            f"z-score of {plain}",
            "value with the true labels minus mean over shuffles, divided by the standard deviation over shuffles",
            digits=1,
        ),
        Measure(
            f"{measure.name}_p_value",
            f"p-value of {plain}",
            "share of labellings (the shuffled ones and the true one) with a value at least as extreme as the true one",
            digits=3,
        ),
    )


MEASURES = (
    *_with_null(
        Measure(
            "separable_pairs",
            "separable pairs, %",
            "share of the pairs of labels that a hyperplane separates",
            digits=1,
            scale=100.0,
        )
    ),
    Measure(
        "separable_pairs_n_over_2d",
        "n / 2d",
        "number of points of two labels divided by twice the number of dimensions, mean over pairs of labels; "
        "for a pair below 1, most labellings are separable; the same value as n_over_2d of the panel",
    ),
    Measure(
        "separable_pairs_cover_probability",
        "Cover probability, %",
        "probability that a random labelling of the points of two labels is separable, mean over pairs of labels; "
        "the same value as cover_probability of the panel, which is shown from 0 to 1",
        digits=1,
        scale=100.0,
    ),
    *_with_null(
        Measure(
            "subsampled_clusters",
            "clusters of subsampled points",
            "number of clusters on a subsample of the points (column n: how many they are); rare labels may be missing "
            "from it",
            digits=1,
        )
    ),
    *_with_null(
        Measure(
            "subsampled_mean_minimum_distance",
            "mean minimum distance of subsampled points",
            "mean minimum distance on a subsample of the points (column n: how many they are); rare labels may be "
            "missing from it",
        )
    ),
    Measure(
        "noise_similarity",
        "similarity of noise with the same label sizes",
        "spatial similarity of two spaces of pure noise with the label sizes and dimensions of this space, mean over "
        "draws; column n: number of points of the noise",
    ),
)


class Nulls(LayeredPart):
    """Comparison with null models, before and after fine-tuning.

    shuffles: the number of shuffled labellings for separability. cluster_shuffles: the number of shuffled labellings
    that are clustered, on a subsample of at most `points` points; if there are any, up to three pairs of spaces of
    noise with the same label sizes are compared as well. With fewer than 19 shuffles there is no p-value.
    random_encoder: whether spaces are also compared with those of the same encoder with random weights.
    """

    shuffles: int = Field(20, ge=0)
    cluster_shuffles: int = Field(20, ge=0)
    points: int = Field(1000, ge=2)
    random_encoder: bool = True


def content(plan: Plan) -> dict[str, Any]:
    """What goes into the key of the cell that shuffles labels, together with the space."""
    settings = plan.nulls.model_dump(include={"shuffles", "cluster_shuffles", "points"})
    return settings | plan.geometry.model_dump(include={"tau", "min_points"})


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Compare the true labels of the cell's space with shuffled ones."""
    settings = {name: value for name, value in cell.content.items() if name != "space"}
    return null_rows(load_space(cell, cell.content["space"]), threads=threads, **settings), {}


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: a few clusterings for each shuffle of all points, and one for each shuffle of the subsample."""
    size, settings = space_size(study, cell), cell.content
    shuffled = 4 * (settings["shuffles"] + 1) * size.clustering_seconds
    subsampled = (settings["cluster_shuffles"] + 1) * min(size.n, settings["points"]) * size.d * size.m / 1e7
    return Estimate(0.1 + shuffled + subsampled, BASE_BYTES + 60 * size.n * size.d, 4_000)


KIND = Kind(
    "nulls",
    5,
    "compare with shuffled labels:",
    run,
    estimate,
    title="shuffled labels",
    requests=("nulls",),
    measures=MEASURES,
    train_space=TrainSpaceSettings(
        "nulls", lambda plan: plan.nulls, content, lambda plan: plan.nulls.shuffles + plan.nulls.cluster_shuffles > 0
    ),
)


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
    """The rows of a space that compare its labels with shuffled ones; nothing for a single label."""
    if len(np.unique(space.y)) < 2:
        return []
    labels = space.label_names
    rows: list[Row] = []
    if shuffles:
        pairs = separability(space.X, labels, shuffles=shuffles, tau=tau, threads=threads)
        rows += _compared_with_null("separable_pairs", pairs.separable, space.n, shuffles)
        rows += [row("separable_pairs_n_over_2d", pairs.ratio), row("separable_pairs_cover_probability", pairs.cover)]
    if cluster_shuffles:
        clusters = cluster_nulls(
            space.X,
            labels,
            shuffles=cluster_shuffles,
            points=points,
            tau=tau,
            min_points=min_points,
            threads=threads,
        )
        rows += _compared_with_null("subsampled_clusters", clusters.n_clusters, clusters.n, cluster_shuffles)
        rows += _compared_with_null(
            "subsampled_mean_minimum_distance", clusters.mean_minimum_distance, clusters.n, cluster_shuffles
        )
    if cluster_shuffles and len(np.unique(space.y)) >= FEWEST_LABELS:
        sizes = np.unique(space.y, return_counts=True)[1].tolist()
        noise = noise_similarity(
            sizes,
            sizes,
            space.d,
            draws=min(cluster_shuffles, NOISE_DRAWS),
            points=min(points, NOISE_POINTS),
            threads=threads,
        )
        rows.append(row("noise_similarity", noise.mean, n=noise.points))
    return rows


def _compared_with_null(name: str, null: Null, n: int, shuffles: int) -> list[Row]:
    """A value with the true labels, mean and standard deviation with shuffled ones, z-score and p-value.

    With few shuffles the p-value cannot be small, so there is none.
    """
    values = {
        "": null.value,
        "_null_mean": null.mean,
        "_null_sd": null.deviation,
        "_z": null.z,
        "_p_value": null.p_value,
    }
    if shuffles < FEWEST_SHUFFLES:
        del values["_p_value"]
    return [row(f"{name}{suffix}", value, n=n) for suffix, value in values.items()]

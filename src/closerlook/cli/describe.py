"""`closerlook describe`: print all measures of one space, or compare two spaces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from closerlook.cli.measure import (
    InputNames,
    LabelFiles,
    MaxMemory,
    MinPoints,
    Settings,
    Summary,
    Tau,
    Threads,
    TrainPoints,
    XKey,
    YKey,
    find_clusters,
    measure_labels,
    no_p_value,
    similarity_json,
    stage,
)
from closerlook.errors import InputError
from closerlook.version import __version__

if TYPE_CHECKING:
    from closerlook.geometry import Clustering, Null, Panel, PointSimilarity, Separability, Similarity
    from closerlook.representations.points import Points

EXAMPLE = "Example: closerlook describe tuned.npz --against original.npz"
REGISTERED = {"largest_cluster_share": "mean_largest_cluster_share", "neighbours": "shared_neighbours"}
"""Names in the registry of measures, where they differ from the field names of `Panel` and `PointSimilarity`."""


def describe(
    file: TrainPoints,
    against: Annotated[
        Path | None, Option(help="Also compare with this second space, in any of the same formats.")
    ] = None,
    shuffles: Annotated[
        int,
        Option(min=0, help="Also measure separability with this many random shuffles of the labels; 0 for none."),
    ] = 0,
    permutations: Annotated[
        int,
        Option(
            min=0, help="Number of label permutations for the p-value of the similarity (with --against); 0 for none."
        ),
    ] = 9999,
    seed: Annotated[int, Option(min=0, help="Seed for shuffles and permutations.")] = 0,
    tau: Tau = 1e-6,
    min_points: MinPoints = 1,
    statistic: Summary = "mean",
    x_key: XKey = None,
    y_key: YKey = None,
    labels: LabelFiles = None,
    threads: Threads = None,
    max_memory: MaxMemory = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Describe a space (labelled vectors): neural collapse, dimension, isotropy, label fit and overlap of labels."""
    from closerlook.cli.console import note, print_json

    settings = Settings(tau, min_points, statistic, threads)
    names = InputNames(x_key, y_key, labels, max_memory)
    spaces = [names.read(file)] + ([] if against is None else [names.read(against, second=True)])
    for points in spaces:
        if len(points.labels) < 2:
            raise InputError(f"{points.title} has one label, {points.labels[0]!r}; expected at least two")
    seconds: dict[str, float] = {}
    sides = [_describe(points, settings, shuffles, seed, seconds) for points in spaces]
    pair = _compare(sides[0], sides[1], settings, permutations, seed, seconds) if against else None
    if as_json:
        print_json(_as_dict(sides, pair, seconds) | {"settings": vars(settings), "seed": seed, "version": __version__})
    else:
        _print(sides, pair)
    note(f"done in {sum(seconds.values()):.1f} s")


@dataclass(frozen=True, eq=False)
class Side:
    """One space: its points, clusters and panel, and its separability under shuffled labels if requested."""

    points: Points
    clustering: Clustering
    panel: Panel
    separability: Separability | None


@dataclass(frozen=True, eq=False)
class Pair:
    """The comparison of two spaces; None for what cannot be compared."""

    points: PointSimilarity | None
    labels: Similarity | None


# ---- measuring ----


def _describe(points: Points, settings: Settings, shuffles: int, seed: int, seconds: dict[str, float]) -> Side:
    from closerlook.geometry import describe_space, separability

    X, y, tau, threads = points.X, points.y, settings.tau, settings.threads
    clustering = find_clusters(points, settings, seconds)
    with stage("panel", f"of {points.title}", seconds) as show:
        panel = describe_space(X, y, clustering=clustering, tau=tau, threads=threads, progress=show)
    null = None
    if shuffles:
        with stage("separability", f"with {shuffles} shuffles of the labels", seconds) as show:
            null = separability(X, y, shuffles=shuffles, seed=seed, tau=tau, threads=threads, progress=show)
    return Side(points, clustering, panel, null)


def _compare(a: Side, b: Side, settings: Settings, permutations: int, seed: int, seconds: dict[str, float]) -> Pair:
    return Pair(
        _compare_points(a.points, b.points, settings, seconds),
        _compare_labels(a, b, settings, permutations, seed, seconds),
    )


def _compare_points(a: Points, b: Points, settings: Settings, seconds: dict[str, float]) -> PointSimilarity | None:
    """The similarity point by point; None, with a note, if the rows of the two spaces are not the same examples."""
    from closerlook.cli.console import note
    from closerlook.geometry import compare_points
    from closerlook.geometry.point_similarity import NEIGHBOURS

    if len(a.y) != len(b.y) or (a.y != b.y).any():
        note("no point similarity: the two spaces have different rows, or different labels for them")
        return None
    if a.words is not None and b.words is not None and a.words != b.words:
        note("no point similarity: the rows of the two spaces have different words")
        return None
    n = len(a.y)
    with stage("comparing", f"{n:,} points in both spaces", seconds):
        return compare_points(a.X, b.X, k=min(NEIGHBOURS, n - 1), threads=settings.threads)


def _compare_labels(
    a: Side, b: Side, settings: Settings, permutations: int, seed: int, seconds: dict[str, float]
) -> Similarity | None:
    """The spatial similarity; None, with a note, if too few labels can be compared."""
    from closerlook.cli.console import note
    from closerlook.geometry import spatial_similarity
    from closerlook.geometry.similarity import FEWEST_LABELS

    common = set(a.points.labels) & set(b.points.labels)
    if len(common) < FEWEST_LABELS:
        note(f"no spatial similarity: {len(common)} labels in common, expected at least {FEWEST_LABELS}")
        return None
    tables = [measure_labels(side.points, side.clustering, settings, seconds) for side in (a, b)]
    measured = len(tables[0].measured() & tables[1].measured())
    if measured < FEWEST_LABELS:
        note(
            f"no spatial similarity: {measured} labels have distances in both, expected at least {FEWEST_LABELS}; "
            f"clusters of fewer than {settings.min_points} points were excluded (--min-points)"
        )
        return None
    return spatial_similarity(*tables, permutations=permutations, seed=seed)


# ---- printing ----


def _print(sides: list[Side], pair: Pair | None) -> None:
    from closerlook.cli.console import print_table
    from closerlook.geometry.p_values import why_no_p_value

    names = ["value"] if pair is None else ["A", "B"]
    title = sides[0].points.title if pair is None else f"A: {sides[0].points.title}; B: {sides[1].points.title}"
    sizes = [f"{side.panel.n:,} × {side.panel.d}" for side in sides]
    rows = [["points", *sizes, "points × dimensions"], ["labels", *(str(side.panel.m) for side in sides), ""]]
    panels = [_panel_values(side) for side in sides]
    rows += [[name, *(_shown(panel[name]) for panel in panels), meaning(name)] for name in panels[0]]
    nulls = [side.separability.separable for side in sides if side.separability is not None]
    if nulls:
        rows.append(["separable_pairs", *(_shown(null.value) for null in nulls), meaning("separable_pairs")])
        omitted = why_no_p_value(nulls[0].shuffles)
        test = f"no p: {omitted}" if omitted else "p: share of labellings with at least as many"
        explanation = f"mean ± standard deviation; {test}"
        rows.append(["with shuffled labels", *map(_null_text, nulls), explanation])
    print_table(title, ["", *names, "meaning"], rows, numbers=names)
    if pair is not None and (pair.points or pair.labels):
        print_table("A compared with B", ["", "value", "meaning"], _pair_rows(pair), numbers=["value"])


def _panel_values(side: Side) -> dict[str, float]:
    """All scalars of a space by name: those of `describe_space`, and those that studies add to them."""
    from closerlook.study.kinds.panel import scalar_values

    return side.panel.flat() | scalar_values(side.points.X, side.points.y, side.panel)


def meaning(name: str) -> str:
    """The one-line meaning of a value of `Panel` or `PointSimilarity`, from the registry of measures."""
    from closerlook.study.registry import measure

    return measure(REGISTERED.get(name, name)).meaning


def _null_text(null: Null) -> str:
    from closerlook.geometry.p_values import why_no_p_value

    deviation = "" if math.isnan(null.deviation) else f" ± {null.deviation:.3g}"
    test = "" if why_no_p_value(null.shuffles) else f"; p {null.p_value:.3g}"
    return f"{null.mean:.4g}{deviation}{test}"


def _pair_rows(pair: Pair) -> list[list[str]]:
    rows = []
    if pair.points is not None:
        names = ("cka", "procrustes", "rsa", "neighbours")
        rows += [[name, _shown(getattr(pair.points, name)), meaning(name)] for name in names]
    similarity = pair.labels
    if similarity is not None:
        low, high = similarity.pearson_interval
        interval = "" if math.isnan(low) else f"; {similarity.confidence:.0%} interval {low:.4f} to {high:.4f}"
        explanation = f"Pearson correlation of the distances of {similarity.n_labels} labels{interval}"
        rows.append(["spatial similarity", _shown(similarity.pearson), explanation])
        rows.append(["Spearman", _shown(similarity.spearman), "Spearman rank correlation of the same distances"])
        omitted = no_p_value(similarity)
        if omitted:
            rows.append(["Mantel p", "none", omitted])
        elif not math.isnan(similarity.p_value):
            permutations = f"{'all ' if similarity.exact else ''}{similarity.permutations:,} permutations"
            null = f"{similarity.null_mean:.3g} ± {similarity.null_deviation:.3g}"
            rows.append(
                [
                    "Mantel p",
                    _shown(similarity.p_value),
                    f"similarity with permuted labels ({permutations}): {null}",
                ]
            )
        if similarity.separable is False:
            rows.append(["separable", "not both", "the paper defines the similarity for separable spaces only"])
    return rows


def _shown(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.4g}"


def _as_dict(sides: list[Side], pair: Pair | None, seconds: dict[str, float]) -> dict[str, object]:
    content = _side_as_dict(sides[0]) | {"seconds": sum(seconds.values()), "seconds_by_stage": seconds}
    if pair is None:
        return content
    return content | {
        "against": _side_as_dict(sides[1]),
        "point_similarity": None if pair.points is None else pair.points.to_dict(),
        "similarity": None if pair.labels is None else similarity_json(pair.labels),
    }


def _separability_json(separability: Separability) -> dict[str, object]:
    """The fields for JSON; a p-value that cannot be small is null, and `no_p_value` says why."""
    from closerlook.geometry.p_values import why_no_p_value

    content = separability.to_dict()
    omitted = why_no_p_value(separability.separable.shuffles)
    if not omitted:
        return content
    return content | {"separable": separability.separable.to_dict() | {"p_value": None, "no_p_value": omitted}}


def _side_as_dict(side: Side) -> dict[str, object]:
    provenance = side.points.provenance
    return {
        "title": side.points.title,
        "n_clusters": side.clustering.n_clusters,
        "panel": _panel_values(side),
        **{name: getattr(side.panel, name) for name in ("n", "d", "m")},
        "separability": None if side.separability is None else _separability_json(side.separability),
        "provenance": None if provenance is None else provenance.to_dict(),
    }

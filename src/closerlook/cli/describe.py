"""`closerlook describe`: the whole panel of one space, or of two side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from closerlook.cli.measure import (
    MinPoints,
    Settings,
    Summary,
    Tau,
    Threads,
    TrainPoints,
    find_clusters,
    measure_labels,
    stage,
)
from closerlook.errors import InputError
from closerlook.version import __version__

if TYPE_CHECKING:
    from closerlook.geometry import Clustering, Null, Panel, PointSimilarity, Separability, Similarity
    from closerlook.representations.points import Points

EXAMPLE = "Example: closerlook describe tuned.npz --against original.npz"
FEWEST_LABELS = 3
MEANINGS = {
    "nc1": "spread within labels over spread of their means; 0: collapsed",
    "cdnv": "variance of two labels over the squared distance of their means; 0: collapsed",
    "nc2_norm": "how unequal the labels' means are in length; 0: equal",
    "nc2_angle": "how unequal they are in angle; 0: equal",
    "nc3": "how far a linear classifier's weights are from the means; 0: the same",
    "nc4": "how often that classifier says what the nearest mean says; 1: always",
    "participation_ratio": "columns' worth of directions that the variance is spread over",
    "two_nn": "intrinsic dimension, by the two nearest neighbours of each row",
    "iso_score": "1: variance alike in all directions; 0: all in one",
    "mean_cosine": "of two rows; near 1: all point the same way",
    "outlier_dimensions": "share of columns whose mean stands out",
    "logme": "evidence that the labels are linear in the vectors; higher: more",
    "gdv": "distances within labels against those between; -1: far apart, 0: labels say nothing",
    "silhouette": "1: rows lie with their own label; 0: between labels; -1: with another",
    "largest_cluster_share": "of a label's rows in its largest cluster, mean; 1: one cluster each",
    "n_overlapping_pairs": "pairs of labels that no hyperplane separates",
    "largest_overlap_share": "rows of the worst pair that have to go until one does, at most",
    "cover_probability": "that rows of two labels separate by chance; near 1: 'separable' says nothing",
    "n_over_2d": "rows of two labels over twice the columns; below 1 chance separates most",
}
ALIKE = {
    "cka": "linear, debiased; 1: the same up to a turn, 0: unrelated",
    "procrustes": "how far one can be turned into the other; 1: wholly",
    "rsa": "rank correlation of the distances of all pairs of rows",
    "neighbours": "share of the nearest rows that are the same",
}


def describe(
    file: TrainPoints,
    against: Annotated[Path | None, Option(help="Another space, of the same kinds, to put beside it.")] = None,
    shuffles: Annotated[int, Option(min=0, help="Shuffled labellings tried for separability; 0 for none.")] = 0,
    permutations: Annotated[
        int, Option(min=0, help="Relabellings tried for the similarity's p-value; 0 for none.")
    ] = 9999,
    seed: Annotated[int, Option(min=0, help="Of the shuffles and relabellings.")] = 0,
    tau: Tau = 1e-6,
    min_points: MinPoints = 1,
    statistic: Summary = "mean",
    threads: Threads = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Describe a space: how far its labels have collapsed, its dimension, its isotropy, how far labels separate."""
    from closerlook.cli.console import note, print_json
    from closerlook.representations.points import load_points

    settings = Settings(tau, min_points, statistic, threads)
    spaces = [load_points(path) for path in (file, against) if path is not None]
    for points in spaces:
        if len(points.labels) < 2:
            raise InputError(f"{points.title} has one label, {points.labels[0]!r}; expected at least two")
    seconds: dict[str, float] = {}
    sides = [_described(points, settings, shuffles, seed, seconds) for points in spaces]
    pair = _compared(sides[0], sides[1], settings, permutations, seed, seconds) if against else None
    if as_json:
        print_json(_as_dict(sides, pair, seconds) | {"settings": vars(settings), "seed": seed, "version": __version__})
    else:
        _print(sides, pair)
    note(f"done in {sum(seconds.values()):.1f} s")


@dataclass(frozen=True, eq=False)
class Side:
    """One space: its points, its clusters, its panel, and what shuffled labels give where that was asked for."""

    points: Points
    clustering: Clustering
    panel: Panel
    chance: Separability | None


@dataclass(frozen=True, eq=False)
class Pair:
    """Two spaces side by side; None for what cannot be compared."""

    compare_points: PointSimilarity | None
    similarity: Similarity | None


# ---- the work ----


def _described(points: Points, settings: Settings, shuffles: int, seed: int, seconds: dict[str, float]) -> Side:
    from closerlook.geometry import describe_space, separability

    how: dict[str, Any] = {"tau": settings.tau, "threads": settings.threads}
    clustering = find_clusters(points, settings, seconds)
    with stage("panel", f"of {points.title}", seconds) as show:
        panel = describe_space(points.X, points.y, clustering=clustering, progress=show, **how)
    chance = None
    if shuffles:
        with stage("separability", f"under {shuffles} shuffled labellings", seconds) as show:
            chance = separability(points.X, points.y, shuffles=shuffles, seed=seed, progress=show, **how)
    return Side(points, clustering, panel, chance)


def _compared(a: Side, b: Side, settings: Settings, permutations: int, seed: int, seconds: dict[str, float]) -> Pair:
    from closerlook.cli.console import note
    from closerlook.geometry import compare_points, spatial_similarity
    from closerlook.geometry.point_similarity import NEIGHBOURS

    alike = similarity = None
    words = a.points.words, b.points.words
    if len(a.points.y) != len(b.points.y) or (a.points.y != b.points.y).any():
        note("no alikeness of rows: the two have other rows, or other labels for them")
    elif None not in words and words[0] != words[1]:
        note("no alikeness of rows: the words behind the rows of the two are not the same")
    else:
        n = len(a.points.y)
        with stage("alikeness", f"of {n:,} rows in both", seconds):
            alike = compare_points(a.points.X, b.points.X, k=min(NEIGHBOURS, n - 1), threads=settings.threads)
    common = set(a.points.labels) & set(b.points.labels)
    if len(common) >= FEWEST_LABELS:
        tables = [measure_labels(side.points, side.clustering, settings, seconds) for side in (a, b)]
        known = len(tables[0].measured() & tables[1].measured())
        if known >= FEWEST_LABELS:
            similarity = spatial_similarity(*tables, permutations=permutations, seed=seed)
        else:
            note(
                f"no spatial similarity: {known} labels have distances in both, expected at least {FEWEST_LABELS}; "
                f"clusters of fewer than {settings.min_points} points were left out (--min-points)"
            )
    else:
        note(f"no spatial similarity: {len(common)} labels in common, expected at least {FEWEST_LABELS}")
    return Pair(alike, similarity)


# ---- what is shown ----


def _print(sides: list[Side], pair: Pair | None) -> None:
    from closerlook.cli.console import print_table

    names = ["value"] if pair is None else ["A", "B"]
    title = sides[0].points.title if pair is None else f"A: {sides[0].points.title}; B: {sides[1].points.title}"
    sizes = [f"{side.panel.n:,} × {side.panel.d}" for side in sides]
    rows = [["points", *sizes, "rows × columns"], ["labels", *(str(side.panel.m) for side in sides), ""]]
    panels = [side.panel.flat() for side in sides]
    rows += [[name, *(_shown(panel[name]) for panel in panels), meaning] for name, meaning in MEANINGS.items()]
    nulls = [side.chance.separable for side in sides if side.chance is not None]
    if nulls:
        rows.append(["separable_pairs", *(_shown(null.value) for null in nulls), "share of the pairs of labels"])
        rows.append(["under shuffled labels", *map(_by_chance, nulls), "mean ± deviation; p: as many or more"])
    print_table(title, ["", *names, "what it says"], rows, numbers=names)
    if pair is not None and (pair.compare_points or pair.similarity):
        print_table("A and B", ["", "value", "what it says"], _pair_rows(pair), numbers=["value"])


def _by_chance(null: Null) -> str:
    deviation = "" if math.isnan(null.deviation) else f" ± {null.deviation:.3g}"
    return f"{null.mean:.4g}{deviation}; p {null.p_value:.3g}"


def _pair_rows(pair: Pair) -> list[list[str]]:
    rows = []
    if pair.compare_points is not None:
        rows += [[name, _shown(getattr(pair.compare_points, name)), meaning] for name, meaning in ALIKE.items()]
    found = pair.similarity
    if found is not None:
        low, high = found.pearson_interval
        within = "" if math.isnan(low) else f"; {found.confidence:.0%} interval {low:.4f} to {high:.4f}"
        meaning = f"correlation of the distances of {found.n_labels} labels{within}"
        rows.append(["spatial similarity", _shown(found.pearson), meaning])
        rows.append(["Spearman", _shown(found.spearman), "the same of their ranks"])
        if not math.isnan(found.p_value):
            tried = f"{'all ' if found.exact else ''}{found.permutations:,} relabellings"
            chance = f"{found.null_mean:.3g} ± {found.null_deviation:.3g}"
            rows.append(["Mantel p", _shown(found.p_value), f"{tried} give {chance}"])
        if found.separable is False:
            rows.append(["separable", "not both", "the paper defines the similarity for separable spaces only"])
    return rows


def _shown(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.4g}"


def _as_dict(sides: list[Side], pair: Pair | None, seconds: dict[str, float]) -> dict[str, Any]:
    told: dict[str, Any] = _side_as_dict(sides[0]) | {"seconds": sum(seconds.values()), "seconds_by_stage": seconds}
    if pair is None:
        return told
    return told | {
        "against": _side_as_dict(sides[1]),
        "alikeness": None if pair.compare_points is None else pair.compare_points.to_dict(),
        "similarity": None if pair.similarity is None else pair.similarity.to_dict(),
    }


def _side_as_dict(side: Side) -> dict[str, Any]:
    provenance = side.points.provenance
    return {
        "title": side.points.title,
        "n_clusters": side.clustering.n_clusters,
        "panel": side.panel.flat(),
        **{name: getattr(side.panel, name) for name in ("n", "d", "m")},
        "separability": None if side.chance is None else side.chance.to_dict(),
        "provenance": None if provenance is None else provenance.to_dict(),
    }

"""`closerlook compare`: print the spatial similarity of two spaces."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from closerlook.cli.measure import (
    InputNames,
    LabelFiles,
    MaxMemory,
    MinPoints,
    Settings,
    Summary,
    Tau,
    Threads,
    XKey,
    YKey,
    find_clusters,
    measure_labels,
    no_p_value,
    similarity_json,
)
from closerlook.errors import InputError
from closerlook.version import __version__

if TYPE_CHECKING:
    from closerlook.geometry import LabelDistances, Similarity
    from closerlook.geometry.label_sizes import NoiseSimilarity, SizeAdjusted
    from closerlook.representations.points import Points

EXAMPLE = "Example: closerlook compare original.npz tuned.npz; closerlook compare train.json test.npz"
MOST_PERMUTATIONS = 999  # of the test with label sizes removed, which is slower
INPUT = "a file or folder that `closerlook probe` accepts, or its --json output, saved as a .json file."


def compare(
    a: Annotated[Path, Argument(help=f"First space: {INPUT}")],
    b: Annotated[Path, Argument(help=f"Second space: {INPUT}")],
    permutations: Annotated[
        int, Option(min=0, help="Number of label permutations for the p-value; 0 for none.")
    ] = 9999,
    resamples: Annotated[
        int, Option(min=0, help="Number of bootstrap resamples for the confidence intervals; 0 for none.")
    ] = 2000,
    confidence: Annotated[float, Option(help="Confidence level of the intervals.")] = 0.95,
    seed: Annotated[int, Option(min=0, help="Seed for permutations and resamples.")] = 0,
    tau: Tau = 1e-6,
    min_points: MinPoints = 1,
    statistic: Summary = "mean",
    x_key: XKey = None,
    y_key: YKey = None,
    labels: LabelFiles = None,
    threads: Threads = None,
    max_memory: MaxMemory = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Print the spatial similarity of two spaces (labelled vectors): the correlation of their label distances."""
    from closerlook.cli.console import note, print_json
    from closerlook.geometry import spatial_similarity

    settings = Settings(tau, min_points, statistic, threads)
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}; expected a number between 0 and 1, such as 0.95")
    names = InputNames(x_key, y_key, labels, max_memory)
    sides = [_read(a, names, second=False), _read(b, names, second=True)]
    _check_common(*sides)
    seconds: dict[str, float] = {}
    left, right = (_measure(side, settings, seconds) for side in sides)
    similarity = spatial_similarity(
        left.table,
        right.table,
        permutations=permutations,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
    )
    adjusted, noise = _without_sizes(left, right, permutations=permutations, seed=seed, threads=threads)
    for setting in ("statistic", "min_points"):
        value_a, value_b = getattr(left.table, setting), getattr(right.table, setting)
        if value_a != value_b:
            note(f"warning: {setting} is {value_a} in {left.title}, but {value_b} in {right.title}")
    if as_json:
        content = similarity_json(similarity) | {"a": _as_dict(left), "b": _as_dict(right), "settings": vars(settings)}
        content |= {"label_sizes_removed": None if adjusted is None else adjusted.to_dict()}
        content |= {"noise": None if noise is None else vars(noise)}
        print_json(content | {"seed": seed, "seconds": sum(seconds.values()), "version": __version__})
    else:
        _print(similarity, left, right, _size_rows(adjusted, noise))


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two spaces: its label distances, or its points as long as these are not measured.

    sizes: the number of points of each label; None if the file does not say. dimension: the number of dimensions.
    """

    title: str
    labels: list[str]
    points: Points | None
    distances: LabelDistances | None
    sizes: dict[str, int] | None = None
    dimension: int | None = None

    @property
    def table(self) -> LabelDistances:
        """The label distances; raises ValueError if they are not measured yet."""
        if self.distances is None:
            raise ValueError("not measured yet")
        return self.distances


def _read(path: Path, names: InputNames, *, second: bool) -> Side:
    from closerlook.representations.distances import read_distances, read_sizes

    if path.suffix == ".json":
        title, table = read_distances(path)
        return Side(title, [str(label) for label in table.labels], None, table, *read_sizes(path))
    points = names.read(path, second=second)
    sizes = dict(Counter(points.y.tolist()))
    return Side(points.title, points.labels, points, None, sizes, points.X.shape[1])


def _check_common(a: Side, b: Side) -> None:
    """Raise InputError if the spaces have too few labels in common."""
    from closerlook.geometry.similarity import FEWEST_LABELS

    common = set(a.labels) & set(b.labels)
    if len(common) < FEWEST_LABELS:
        listed = f" ({', '.join(sorted(common))})" if common else ""
        raise InputError(
            f"{a.title} ({len(a.labels)} labels) and {b.title} ({len(b.labels)}) have {len(common)} labels in "
            f"common{listed}; expected at least {FEWEST_LABELS}"
        )


def _measure(side: Side, settings: Settings, seconds: dict[str, float]) -> Side:
    if side.points is None:
        return side
    clustering = find_clusters(side.points, settings, seconds)
    return replace(side, points=None, distances=measure_labels(side.points, clustering, settings, seconds))


def _without_sizes(
    a: Side, b: Side, *, permutations: int, seed: int, threads: int | None
) -> tuple[SizeAdjusted | None, NoiseSimilarity | None]:
    """The similarity with label sizes removed, and that of noise; None if sizes are unknown or labels are few."""
    from closerlook.geometry.label_sizes import FEWEST_LABELS, noise_similarity, size_adjusted_similarity

    if a.sizes is None or b.sizes is None:
        return None, None
    adjusted = size_adjusted_similarity(
        a.table, b.table, a.sizes, b.sizes, permutations=min(permutations, MOST_PERMUTATIONS), seed=seed
    )
    common = [label for label in a.sizes if label in b.sizes]
    if a.dimension is None or b.dimension is None or len(common) < FEWEST_LABELS:
        return adjusted, None
    sizes_a, sizes_b = [a.sizes[label] for label in common], [b.sizes[label] for label in common]
    dimension = min(a.dimension, b.dimension)
    return adjusted, noise_similarity(sizes_a, sizes_b, dimension, seed=seed, threads=threads)


def _size_rows(adjusted: SizeAdjusted | None, noise: NoiseSimilarity | None) -> list[tuple[str, str]]:
    """The rows of the table about label sizes."""
    rows = []
    if adjusted is not None and not math.isnan(adjusted.pearson):
        test = "" if math.isnan(adjusted.p_value) else f" (p = {adjusted.p_value:.4g}, Freedman–Lane test)"
        rows.append(("label sizes removed", f"{adjusted.pearson:.4f}{test}"))
    if noise is not None and not math.isnan(noise.mean):
        rows.append(
            (
                "noise of the same sizes",
                f"{noise.mean:.4f} ± {noise.deviation:.4f} ({noise.draws} draws, {noise.points:,} points)",
            )
        )
    return rows


def _print(similarity: Similarity, a: Side, b: Side, about_sizes: list[tuple[str, str]]) -> None:
    from closerlook.cli.console import print_table

    separable = {
        True: "both",
        False: "not both: the paper defines the similarity for separable spaces only",
        None: "unknown",
    }
    permutations = f"{'all ' if similarity.exact else ''}{similarity.permutations:,} permutations"
    rows = [
        ("A", a.title),
        ("B", b.title),
        ("Pearson", _with_interval(similarity.pearson, similarity.pearson_interval, similarity.confidence)),
        ("Spearman", _with_interval(similarity.spearman, similarity.spearman_interval, similarity.confidence)),
        ("Mantel p", no_p_value(similarity) or _p_value_text(similarity, permutations)),
        *about_sizes,
        ("labels", f"{similarity.n_labels}"),
        ("only in A", ", ".join(map(str, similarity.excluded_a))),
        ("only in B", ", ".join(map(str, similarity.excluded_b))),
        ("without distances", ", ".join(map(str, similarity.undefined))),
        ("linearly separable", separable[similarity.separable]),
        ("settings", f"statistic {a.table.statistic}, min points {a.table.min_points}"),
    ]
    print_table("Spatial similarity", ["", ""], [row for row in rows if row[1]])


def _p_value_text(similarity: Similarity, permutations: str) -> str:
    return "" if math.isnan(similarity.p_value) else f"{similarity.p_value:.4g} ({permutations})"


def _with_interval(value: float, interval: tuple[float, float], confidence: float) -> str:
    if math.isnan(value):
        return "undefined: all distances of one space are equal"
    shown = "" if math.isnan(interval[0]) else f" ({confidence:.0%} interval {interval[0]:.4f} to {interval[1]:.4f})"
    return f"{value:.4f}{shown}"


def _as_dict(side: Side) -> dict[str, object]:
    table = side.table
    return {
        "title": side.title,
        "n_labels": len(table.labels),
        "separable": table.separable,
        "statistic": table.statistic,
        "min_points": table.min_points,
        "excluded": table.excluded,
        "radius": table.radius,
    }

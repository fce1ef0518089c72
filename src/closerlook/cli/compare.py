"""`closerlook compare`: the spatial similarity of two spaces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from closerlook.cli.measure import MinPoints, Settings, Summary, Tau, Threads, find_clusters, measure_labels
from closerlook.errors import InputError
from closerlook.version import __version__

if TYPE_CHECKING:
    from closerlook.geometry import LabelDistances, Similarity
    from closerlook.representations.points import Points

EXAMPLE = "Example: closerlook compare original.npz tuned.npz; closerlook compare train.json test.npz"
FEWEST_LABELS = 3
INPUT = "as `closerlook probe` takes it, or what its --json wrote."


def compare(
    a: Annotated[Path, Argument(help=f"A space, {INPUT}")],
    b: Annotated[Path, Argument(help=f"The other one, {INPUT}")],
    permutations: Annotated[int, Option(min=0, help="Relabellings tried for the p-value; 0 for none.")] = 9999,
    resamples: Annotated[int, Option(min=0, help="Bootstrap draws for the intervals; 0 for none.")] = 2000,
    confidence: Annotated[float, Option(help="Of the intervals.")] = 0.95,
    seed: Annotated[int, Option(min=0, help="Of the relabellings and draws.")] = 0,
    tau: Tau = 1e-6,
    min_points: MinPoints = 1,
    statistic: Summary = "mean",
    threads: Threads = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Compare how two spaces place their labels: the correlation of their label distances."""
    from closerlook.cli.console import note, print_json
    from closerlook.geometry import spatial_similarity

    settings = Settings(tau, min_points, statistic, threads)
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}; expected a share between 0 and 1, as 0.95")
    given = [_read(a), _read(b)]
    _check_common(*given)
    seconds: dict[str, float] = {}
    left, right = (_measured(side, settings, seconds) for side in given)
    found = spatial_similarity(
        left.table,
        right.table,
        permutations=permutations,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
    )
    for what in ("statistic", "min_points"):
        ours, theirs = getattr(left.table, what), getattr(right.table, what)
        if ours != theirs:
            note(f"take care: {what} is {ours} in {left.title}, and {theirs} in {right.title}")
    if as_json:
        sides = {"a": _as_dict(left), "b": _as_dict(right)}
        told = found.to_dict() | sides | {"seed": seed, "seconds": sum(seconds.values()), "version": __version__}
        print_json(told | {"settings": vars(settings)})
    else:
        _print(found, left, right)


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two: its distances as they were read, or its points until they are measured."""

    title: str
    labels: list[str]
    points: Points | None
    distances: LabelDistances | None

    @property
    def table(self) -> LabelDistances:
        """The distances, once they are there."""
        if self.distances is None:
            raise ValueError("not measured yet")
        return self.distances


def _read(path: Path) -> Side:
    from closerlook.representations.distances import read_distances
    from closerlook.representations.points import load_points

    if path.suffix == ".json":
        title, table = read_distances(path)
        return Side(title, [str(label) for label in table.labels], None, table)
    points = load_points(path)
    return Side(points.title, points.labels, points, None)


def _check_common(a: Side, b: Side) -> None:
    """Refuse what cannot be compared before any work."""
    common = set(a.labels) & set(b.labels)
    if len(common) < FEWEST_LABELS:
        named = f" ({', '.join(sorted(common))})" if common else ""
        raise InputError(
            f"{a.title} ({len(a.labels)} labels) and {b.title} ({len(b.labels)}) have {len(common)} labels in "
            f"common{named}; expected at least {FEWEST_LABELS}"
        )


def _measured(side: Side, settings: Settings, seconds: dict[str, float]) -> Side:
    if side.points is None:
        return side
    clustering = find_clusters(side.points, settings, seconds)
    return Side(side.title, side.labels, None, measure_labels(side.points, clustering, settings, seconds))


def _print(found: Similarity, a: Side, b: Side) -> None:
    from closerlook.cli.console import print_table

    separable = {
        True: "both",
        False: "not both: the paper defines the value for separable spaces only",
        None: "unknown",
    }
    tried = f"{'all ' if found.exact else ''}{found.permutations:,} relabellings"
    rows = [
        ("A", a.title),
        ("B", b.title),
        ("Pearson", _with_interval(found.pearson, found.pearson_interval, found.confidence)),
        ("Spearman", _with_interval(found.spearman, found.spearman_interval, found.confidence)),
        ("Mantel p", "" if math.isnan(found.p_value) else f"{found.p_value:.4g} ({tried})"),
        ("labels", f"{found.n_labels}"),
        ("only in A", ", ".join(map(str, found.excluded_a))),
        ("only in B", ", ".join(map(str, found.excluded_b))),
        ("without distances", ", ".join(map(str, found.undefined))),
        ("linearly separable", separable[found.separable]),
        ("settings", f"statistic {a.table.statistic}, min points {a.table.min_points}"),
    ]
    print_table("Spatial similarity", ["", ""], [row for row in rows if row[1]])


def _with_interval(value: float, interval: tuple[float, float], confidence: float) -> str:
    if math.isnan(value):
        return "undefined: the distances on one side are all the same"
    within = "" if math.isnan(interval[0]) else f" ({confidence:.0%} interval {interval[0]:.4f} to {interval[1]:.4f})"
    return f"{value:.4f}{within}"


def _as_dict(side: Side) -> dict[str, Any]:
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

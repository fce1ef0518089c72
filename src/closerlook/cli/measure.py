"""What `probe` and `compare` share: how a space is measured, stage by stage, saying what is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typer import Option

from closerlook.errors import InputError

if TYPE_CHECKING:
    from closerlook.geometry import Clustering, LabelDistances
    from closerlook.representations.points import Points

STATISTICS = ("mean", "min")
QUICK_SECONDS = 2.0
"""A stage that takes no longer than this shows no progress."""

Tau = Annotated[float, Option(help="Hulls nearer than this many RMS radii meet.")]
MinPoints = Annotated[
    int, Option(min=1, help="Leave clusters of fewer points out of the distances (the paper's code: 6).")
]
Summary = Annotated[
    str, Option("--statistic", help="Of the distances of two labels' clusters: mean (as the paper's code) or min.")
]
Threads = Annotated[int | None, Option(min=1, help="Threads. (default: all cores)")]


@dataclass(frozen=True)
class Settings:
    """How spaces are measured; refused at once where it cannot be done."""

    tau: float
    min_points: int
    statistic: str
    threads: int | None

    def __post_init__(self) -> None:
        from closerlook.geometry.hulls import check_tau

        if self.statistic not in STATISTICS:
            raise InputError(f"statistic {self.statistic!r} is unknown; expected {' or '.join(STATISTICS)}")
        check_tau(self.tau)


@contextmanager
def stage(name: str, what: str, seconds: dict[str, float]) -> Iterator[Callable[[int, int], None]]:
    """A function for progress while one stage runs; what is done is said before, and its seconds are kept."""
    from closerlook.cli.console import note, progress

    note(f"{name} {what}")
    start = time.perf_counter()
    with progress(name, after=QUICK_SECONDS) as show:
        yield show
    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start


def find_clusters(points: Points, settings: Settings, seconds: dict[str, float]) -> Clustering:
    """DirectProbe's clusters of some points."""
    from closerlook.geometry import cluster

    n, d = points.X.shape
    with stage("clustering", f"{n:,} points × {d} of {len(points.labels)} labels: {points.title}", seconds) as show:
        return cluster(points.X, points.y, tau=settings.tau, threads=settings.threads, progress=show)


def measure_labels(
    points: Points, clustering: Clustering, settings: Settings, seconds: dict[str, float]
) -> LabelDistances:
    """The distances of the labels."""
    from closerlook.geometry import cluster_distances, label_distances

    what = f"between {clustering.n_clusters:,} clusters of {clustering.n_labels} labels"
    with stage("distances", what, seconds) as show:
        apart = cluster_distances(
            points.X, clustering, min_points=settings.min_points, threads=settings.threads, progress=show
        )
        return label_distances(apart, statistic="min" if settings.statistic == "min" else "mean")

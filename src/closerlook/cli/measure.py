"""What `probe`, `classify` and `compare` share: points read, a space measured stage by stage, saying what is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from closerlook.errors import InputError

if TYPE_CHECKING:
    from closerlook.geometry import Clustering, LabelDistances
    from closerlook.representations.points import Points

STATISTICS = ("mean", "min")
QUICK_SECONDS = 2.0
"""A stage that takes no longer than this shows no progress."""

TrainPoints = Annotated[
    Path,
    Argument(
        help="X and y in a .npz, with X_test and y_test if there are any; a saved space; a DirectProbe folder, or one "
        "file of vectors in it."
    ),
]
TestPoints = Annotated[Path | None, Option(help="Points to predict, in a file or folder of the same kinds.")]
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


def load_points(file: Path, test: Path | None) -> tuple[Points, Points | None]:
    """The points in a file, and those to predict: of `test`, or held out with the others, or none."""
    from closerlook.cli.console import note
    from closerlook.representations import points as readers

    points = readers.load_points(file)
    if test is None:
        return points, points.test
    held_out = readers.load_points(test, "test")
    readers.check_same_columns(points, held_out)
    if points.test is not None:
        note(f"{points.title} has points held out, too; those of --test are predicted")
    _warn_of_strangers(points, held_out)
    return points, held_out


def _warn_of_strangers(points: Points, held_out: Points) -> None:
    """Say where vectors of the same length are of different spaces after all."""
    from closerlook.cli.console import note

    if points.provenance is None or held_out.provenance is None:
        return
    for what in ("encoder", "weights", "layer", "task", "pool"):
        ours, theirs = getattr(points.provenance, what), getattr(held_out.provenance, what)
        if None not in (ours, theirs) and ours != theirs:
            note(f"take care: {what} is {ours} in {points.title}, and {theirs} in {held_out.title}")
            return


def unseen_labels(points: Points, held_out: Points) -> dict[str, int]:
    """How many test points have each label that no training point has; said once, since none can be right."""
    from closerlook.cli.console import note

    known = set(points.labels)
    unseen = {label: int((held_out.y == label).sum()) for label in held_out.labels if label not in known}
    if unseen:
        listed = ", ".join(f"{label} ({count})" for label, count in unseen.items())
        note(f"{sum(unseen.values())} test points have labels that no training point has, and count as wrong: {listed}")
    return unseen


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

"""Shared by `probe`, `classify`, `compare` and `describe`: reading points, and measuring them stage by stage."""

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
    from closerlook.geometry import Clustering, LabelDistances, Similarity
    from closerlook.geometry.attempts import Limit
    from closerlook.representations.points import Points

STATISTICS = ("mean", "min")
QUICK_SECONDS = 2.0
"""Progress is shown only after a stage has taken this long."""

TrainPoints = Annotated[
    Path,
    Argument(
        help="A .npz with arrays X and y (optionally X_test and y_test), a file written by `closerlook extract --out`, "
        "a CSV, TSV or Parquet file with a column of labels, a .npy file (with --labels), a folder of a Hugging Face "
        "dataset or hf:NAME, a folder in the format of the DirectProbe code, or one file of vectors in such a folder."
    ),
]
TestPoints = Annotated[Path | None, Option(help="Test points, in a file or folder of any of the same formats.")]
FILES = "Files of other programs"
XKey = Annotated[
    str | None,
    Option(
        help="Name of the vectors: an array of a .npz, a column of lists, or columns of numbers such as 'd*' or 'a,b'. "
        "(default: X, the only column of lists, or all columns of numbers)",
        rich_help_panel=FILES,
    ),
]
YKey = Annotated[
    str | None,
    Option(help="Name of the labels: an array of a .npz, or a column. (default: y, label …)", rich_help_panel=FILES),
]
LabelFiles = Annotated[
    list[Path] | None,
    Option(
        "--labels",
        help="File with the labels of a .npy file: lines of text, .npy, or a table; repeat it for the second file.",
        rich_help_panel=FILES,
    ),
]
Tau = Annotated[
    float,
    Option(
        help="Treat two convex hulls as overlapping if their distance is at most this many times the RMS "
        "distance of the points from their mean."
    ),
]
MinPoints = Annotated[
    int,
    Option(
        min=1,
        help="Exclude clusters with fewer than this many points from the distances (the code of Zhou and "
        "Srikumar 2022 uses 6).",
    ),
]
Summary = Annotated[
    str,
    Option(
        "--statistic",
        help="How the distances between the clusters of two labels are summarised: mean (as in the "
        "code of Zhou and Srikumar 2022) or min.",
    ),
]
Threads = Annotated[int | None, Option(min=1, help="Number of threads. (default: all cores)")]

MaxMemory = Annotated[
    str | None,
    Option(
        "--max-memory",
        help="Refuse files whose content takes more memory than this, such as 8GB. (default: 2GB, or twice the size of "
        "the file if that is more)",
    ),
]


@dataclass(frozen=True)
class Settings:
    """How spaces are measured; checked when created."""

    tau: float
    min_points: int
    statistic: str
    threads: int | None

    def __post_init__(self) -> None:
        from closerlook.geometry.hulls import check_tau

        if self.statistic not in STATISTICS:
            raise InputError(f"statistic {self.statistic!r} is unknown; expected {' or '.join(STATISTICS)}")
        check_tau(self.tau)


@dataclass(frozen=True)
class InputNames:
    """What vectors and labels are called in the files of a command, and the memory that a file may take.

    labels: one file for each .npy file. max_memory: as `--max-memory` gives it.
    """

    x: str | None
    y: str | None
    labels: list[Path] | None
    max_memory: str | None = None

    def read(self, file: Path, split: str = "train", *, second: bool = False) -> Points:
        """The points in a file; a note says which columns of a table were read. second: it is the second file."""
        from closerlook.cli.console import note
        from closerlook.representations.memory import parse_memory
        from closerlook.representations.points import load_points
        from closerlook.representations.tables import Names

        given = self.labels or []
        labels = given[1] if second and len(given) > 1 else given[0] if given else None
        is_needed = file.suffix == ".npy" or not second  # the second file may have labels of its own
        names = Names(self.x, self.y, labels if is_needed else None)
        limit = None if self.max_memory is None else parse_memory(self.max_memory)
        points = load_points(file, split, names, max_memory=limit)
        if points.description is not None:
            note(f"{file.name}: {points.description}")
        return points


def load_points(file: Path, test: Path | None, names: InputNames) -> tuple[Points, Points | None]:
    """The training points in `file`; and the test points in `test`, else those in `file`, else None."""
    from closerlook.cli.console import note
    from closerlook.representations import points as readers

    points = names.read(file)
    if test is None:
        return points, points.test
    test_points = names.read(test, "test", second=True)
    readers.check_same_columns(points, test_points)
    if points.test is not None:
        note(f"{points.title} also has test points; those of --test are used instead")
    _warn_if_different(points, test_points)
    return points, test_points


def _warn_if_different(points: Points, test_points: Points) -> None:
    """Print a warning if the two sets of vectors do not come from the same encoder, layer, task or pooling."""
    from closerlook.cli.console import note

    if points.provenance is None or test_points.provenance is None:
        return
    for field in ("encoder", "weights", "layer", "task", "pool"):
        train, test = getattr(points.provenance, field), getattr(test_points.provenance, field)
        if None not in (train, test) and train != test:
            note(f"warning: {field} is {train} in {points.title}, but {test} in {test_points.title}")
            return


def unseen_labels(points: Points, test_points: Points) -> dict[str, int]:
    """The number of test points of each label that no training point has; a note lists them."""
    from closerlook.cli.console import note

    known = set(points.labels)
    unseen = {label: int((test_points.y == label).sum()) for label in test_points.labels if label not in known}
    if unseen:
        listed = ", ".join(f"{label} ({count})" for label, count in unseen.items())
        note(f"{sum(unseen.values())} test points have labels that no training point has, and count as wrong: {listed}")
    return unseen


@contextmanager
def stage(name: str, what: str, seconds: dict[str, float]) -> Iterator[Callable[[int, int], None]]:
    """Yield a progress callback for one stage; print its name first, and add its duration to `seconds`."""
    from closerlook.cli.console import note, progress

    note(f"{name} {what}")
    start = time.perf_counter()
    with progress(name, after=QUICK_SECONDS) as show:
        yield show
    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start


def find_clusters(
    points: Points, settings: Settings, seconds: dict[str, float], attempts: Limit | None = None
) -> Clustering:
    """The DirectProbe clusters of the points; attempts: as in `closerlook.geometry.cluster`."""
    from closerlook.geometry import cluster

    n, d = points.X.shape
    limit = "" if attempts is None else f" with the limit on attempts '{attempts}'"
    what = f"{n:,} points × {d} of {len(points.labels)} labels{limit}: {points.title}"
    with stage("clustering", what, seconds) as show:
        return cluster(points.X, points.y, tau=settings.tau, attempts=attempts, threads=settings.threads, progress=show)


def measure_labels(
    points: Points, clustering: Clustering, settings: Settings, seconds: dict[str, float]
) -> LabelDistances:
    """The distances between the labels."""
    from closerlook.geometry import cluster_distances, label_distances

    what = f"between {clustering.n_clusters:,} clusters of {clustering.n_labels} labels"
    with stage("distances", what, seconds) as show:
        distances = cluster_distances(
            points.X, clustering, min_points=settings.min_points, threads=settings.threads, progress=show
        )
        return label_distances(distances, statistic="min" if settings.statistic == "min" else "mean")


def no_p_value(similarity: Similarity) -> str:
    """Why the p-value of a similarity is not given; empty if it can be small, or if none was requested."""
    from closerlook.geometry.p_values import why_no_p_value

    if not similarity.permutations:
        return ""
    if similarity.exact:
        advice = f"{similarity.n_labels} labels have no more; compare spaces with 4 or more labels"
        return why_no_p_value(similarity.permutations, "permutations", advice)
    return why_no_p_value(similarity.permutations, "permutations")


def similarity_json(similarity: Similarity) -> dict[str, object]:
    """The fields of a similarity for JSON; a p-value that cannot be small is null, and `no_p_value` says why."""
    omitted = no_p_value(similarity)
    return similarity.to_dict() | ({"p_value": None, "no_p_value": omitted} if omitted else {})

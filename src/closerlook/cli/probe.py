"""`closerlook probe`: run DirectProbe on labelled vectors; with `--audit`, verify the clusters."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from typer import Option

from closerlook.cli.measure import (
    InputNames,
    LabelFiles,
    MaxMemory,
    MinPoints,
    Settings,
    Summary,
    Tau,
    TestPoints,
    Threads,
    TrainPoints,
    XKey,
    YKey,
    find_clusters,
    load_points,
    measure_labels,
    stage,
    unseen_labels,
)
from closerlook.errors import WorkError
from closerlook.version import __version__

if TYPE_CHECKING:
    from closerlook.geometry import Audit, BlockedMerge, ClusterExtents, Clustering, LabelDistances
    from closerlook.representations.points import Points

AttemptsOption = Literal["all", "released", "both"]
EXAMPLE = "Example: closerlook probe train.npz --test test.npz --json"
SHOWN_PAIRS = 10
"""At most this many blocked merges are shown. They are chosen among this many of the largest clusters of each label."""

SHOWN_ROWS = 3
"""The maximum number of points listed for each side of a blocked merge."""


def probe(
    file: TrainPoints,
    test: TestPoints = None,
    tau: Tau = 1e-6,
    min_points: MinPoints = 1,
    statistic: Summary = "mean",
    attempts: Annotated[
        AttemptsOption,
        Option(
            help="all: merge clusters until every merge is blocked. released: try only as many merges as there are "
            "points, blocked ones included, as the code of Zhou and Srikumar (2022) did when the paper was published. "
            "both: as all, and report the numbers of clusters with released too."
        ),
    ] = "all",
    distances: Annotated[
        bool, Option("--distances/--no-distances", help="Measure the distances between labels.")
    ] = True,
    audit: Annotated[
        bool,
        Option(
            "--audit",
            help="Prove again, independently, that clusters of different labels are separable and that blocked "
            "merges are blocked; exit code 1 if a check fails.",
        ),
    ] = False,
    x_key: XKey = None,
    y_key: YKey = None,
    labels: LabelFiles = None,
    threads: Threads = None,
    max_memory: MaxMemory = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Cluster labelled vectors with DirectProbe, measure distances between labels, and classify test points.

    A test point gets the label of the nearest cluster.
    """
    from closerlook.cli.console import note, print_json

    settings = Settings(tau, min_points, statistic, threads)
    points, test_points = load_points(file, test, InputNames(x_key, y_key, labels, max_memory))
    result = _measure(points, test_points, settings, attempts=attempts, distances=distances, prove=audit)
    if as_json:
        print_json(_as_dict(result))
    else:
        _print(result)
    note(f"done in {sum(result.seconds.values()):.1f} s")
    if result.audit is not None and not result.audit.clean:
        problems = result.audit.problems
        raise WorkError(
            f"the audit found {len(problems)} problem{'s' * (len(problems) > 1)}, the first: {problems[0]}; this is "
            "a bug of closerlook: please open an issue"
        )


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predictions for the test points of the file `title`, as counts.

    n: all test points. correct: test points whose label was predicted. majority: test points with the most frequent
    label of training, `majority_label`. unseen: for each label that training does not have, its test points.
    """

    title: str
    n: int
    correct: int
    majority: int
    majority_label: str
    unseen: dict[str, int]


@dataclass(frozen=True, eq=False)
class ProbeOutcome:
    """Everything that one call of `closerlook probe` measured.

    released: the clusters with the limit on attempts of the released code, if both were requested.
    """

    points: Points
    settings: Settings
    clustering: Clustering
    released: Clustering | None
    distances: LabelDistances | None
    extents: ClusterExtents | None
    prediction: Prediction | None
    audit: Audit | None
    seconds: dict[str, float] = field(default_factory=dict)


# ---- measuring ----


def _measure(
    points: Points,
    test_points: Points | None,
    settings: Settings,
    *,
    attempts: AttemptsOption,
    distances: bool,
    prove: bool,
) -> ProbeOutcome:
    from closerlook.geometry import audit, within_cluster_distances

    seconds: dict[str, float] = {}
    clustering = find_clusters(points, settings, seconds, "released" if attempts == "released" else None)
    released = find_clusters(points, settings, seconds, "released") if attempts == "both" else None
    between = extents = None
    if distances:
        between = measure_labels(points, clustering, settings, seconds)
        with stage("distances", "within the clusters", seconds):
            extents = within_cluster_distances(points.X, clustering)
    prediction = None if test_points is None else _predict(points, test_points, clustering, settings, seconds)
    proof = None
    if prove:
        with stage("audit", "of every pair of clusters", seconds) as show:
            proof = audit(points.X, points.y, clustering, threads=settings.threads, progress=show)
    return ProbeOutcome(points, settings, clustering, released, between, extents, prediction, proof, seconds)


def _predict(
    points: Points, test_points: Points, clustering: Clustering, settings: Settings, seconds: dict[str, float]
) -> Prediction:
    import numpy as np

    from closerlook.geometry import nearest_hulls
    from closerlook.geometry.frame import text_array

    n = len(test_points.X)
    with stage("prediction", f"of {n:,} points: {test_points.title}", seconds) as show:
        nearest, _ = nearest_hulls(
            points.X, clustering.members(), test_points.X, threads=settings.threads, progress=show
        )
    predicted = text_array([str(label) for label in clustering.cluster_labels])[nearest]
    names, counts = np.unique(points.y, return_counts=True)
    majority_label = str(names[counts.argmax()])
    unseen = unseen_labels(points, test_points)
    correct, majority = int((predicted == test_points.y).sum()), int((test_points.y == majority_label).sum())
    return Prediction(test_points.title, n, correct, majority, majority_label, unseen)


# ---- printing ----


def _print(result: ProbeOutcome) -> None:
    from closerlook.cli.console import print_table

    print_table(result.points.title, ["", ""], _summary(result))
    columns = ["label", "points", "clusters", *["clusters (attempts: released)"] * (result.released is not None)]
    if result.distances is not None:
        columns += [
            "nearest label",
            "distance",
            "in RMS radii",
            "mean distance in clusters",
            "largest distance in a cluster",
        ]
    rows = [[_shown(value) for value in row.values()] for row in _labels(result)]
    print_table("Labels", columns, rows, numbers=[name for name in columns if name not in ("label", "nearest label")])
    merges = _blocked_merges(result)
    if merges:
        pairs = sum(1 for _ in result.clustering.blocked_pairs())
        title = (
            f"Blocked merges: clusters with the same label whose union overlaps a cluster of another label "
            f"({len(merges)} of {pairs:,} pairs; sorted by the size of the smaller cluster, largest first)"
        )
        if not all(merge["decided"] for merge in merges):
            title += "; undecided: no overlap was proved"
        names = "points" if result.points.words is None else "points: words"
        columns = [
            "label",
            "clusters (size)",
            "blocking cluster (size)",
            f"{names} of the two clusters (weight)",
            f"{names} of the blocking cluster (weight)",
        ]
        print_table(title, columns, [_table_cells(merge) for merge in merges])


def _summary(result: ProbeOutcome) -> list[tuple[str, str]]:
    """The rows of the first table: name and value."""
    clustering, settings = result.clustering, result.settings
    rows = [
        ("points", f"{len(result.points.X):,} × {result.points.X.shape[1]}"),
        ("clusters", f"{clustering.n_clusters:,}"),
        *_attempts(result),
        ("labels", f"{clustering.n_labels}"),
        ("linearly separable", "yes: one cluster for each label" if clustering.is_separable else "no"),
        ("conflicts", f"{len(clustering.conflicts):,} points with the same vector as a point of another label"),
        ("undecided", f"{clustering.n_undecided:,} merges not made: neither overlap nor separation was proved"),
    ]
    if result.prediction is not None:
        test = result.prediction
        accuracy = f"{test.correct / test.n:.4f} ({test.correct:,} of {test.n:,})"
        majority = f"majority label {test.majority_label}: {test.majority / test.n:.4f}"
        rows.append(("test accuracy", f"{accuracy}; {majority}"))
    if result.audit is not None:
        audit = result.audit
        state = "no problems" if audit.clean else f"{len(audit.problems)} PROBLEMS"
        points = f"{audit.conflicting:,} conflicting pairs of points"
        counts = f"{audit.separable:,} separable pairs of clusters, {points}, {audit.blocked:,} blocked merges"
        rows.append(("audit", f"{state}; checked {counts}"))
    rows.append(("RMS radius", f"{clustering.radius:.6g}"))
    options = f"tau {clustering.tau:g}, min points {settings.min_points}, statistic {settings.statistic}"
    rows.append(("settings", options))
    if result.distances is not None and result.distances.excluded:
        listed = ", ".join(f"{label}: {count}" for label, count in result.distances.excluded.items())
        rows.append(("excluded from distances", f"clusters with fewer than {settings.min_points} points ({listed})"))
    rows.append(("seconds", ", ".join(f"{name} {value:.2f}" for name, value in result.seconds.items())))
    return rows


def _attempts(result: ProbeOutcome) -> list[tuple[str, str]]:
    """The rows of the first table on the limit on attempts; none if there is no limit."""
    limited = result.released or result.clustering
    if limited.attempts is None:
        return []
    rule, used = limited.attempts.rule, limited.attempts
    counts = f"{used.used:,} of {used.limit:,} used: {used.merged:,} merged, {used.blocked:,} blocked"
    both = [(f"clusters (attempts: {rule})", f"{limited.n_clusters:,}")] * (result.released is not None)
    return [*both, (f"attempts: {rule}", counts + "; then merging ended" * used.ran_out)]


def _labels(result: ProbeOutcome) -> list[dict[str, object]]:
    """A row for each label: its points and clusters (counts), its nearest label, distances within its clusters."""
    clustering, sizes, codes = result.clustering, result.clustering.sizes, result.clustering.cluster_codes
    nearest = result.distances.nearest() if result.distances is not None else []
    rows: list[dict[str, object]] = []
    for code, label in enumerate(clustering.labels):
        own = codes == code
        row: dict[str, object] = {"label": label, "points": int(sizes[own].sum()), "clusters": int(own.sum())}
        if result.released is not None:
            row["clusters_released"] = int((result.released.cluster_codes == code).sum())
        if result.distances is not None and result.extents is not None:
            _, other, distance = nearest[code]
            pairs = sizes[own] * (sizes[own] - 1)
            total = float((result.extents.mean[own] * pairs).sum())
            row |= {
                "nearest": other,
                "distance": distance,
                "relative": distance / clustering.radius if clustering.radius > 0 else 0.0 * distance,
                "within_mean": total / max(int(pairs.sum()), 1),
                "within_maximum": float(result.extents.maximum[own].max()),
            }
        rows.append(row)
    return rows


class BlockedMergeDict(TypedDict):
    """A blocked merge as plain values, for JSON and for the table.

    rows, blocking_rows: the indices of points of the two clusters and of the blocking cluster, by descending weight.
    words, blocking_words: their words; None if unknown.
    """

    label: str
    clusters: list[int]
    sizes: list[int]
    blocking_cluster: int
    blocking_label: str
    blocking_size: int
    rows: list[int]
    words: list[str] | None
    weights: list[float]
    blocking_rows: list[int]
    blocking_words: list[str] | None
    blocking_weights: list[float]
    decided: bool


def _largest_blocked_merges(clustering: Clustering) -> list[BlockedMerge]:
    """The blocked merges between the largest clusters; pairs are sorted by the size of their smaller cluster."""
    sizes = clustering.sizes.tolist()
    pairs: list[tuple[int, int]] = []
    for code in range(clustering.n_labels):
        own = (clustering.cluster_codes == code).nonzero()[0].tolist()
        largest = heapq.nsmallest(SHOWN_PAIRS, own, key=lambda number: (-sizes[number], number))
        pairs += (pair for pair in combinations(sorted(largest), 2) if clustering.is_blocked(*pair))

    def order(pair: tuple[int, int]) -> tuple[int, int, tuple[int, int]]:
        first, second = (sizes[number] for number in pair)
        return -min(first, second), -(first + second), pair

    return [clustering.blocked_merge(*pair) for pair in heapq.nsmallest(SHOWN_PAIRS, pairs, key=order)]


def _blocked_merges(result: ProbeOutcome) -> list[BlockedMergeDict]:
    clustering, words = result.clustering, result.points.words
    return [_merge_dict(clustering, merge, words) for merge in _largest_blocked_merges(clustering)]


def _merge_dict(clustering: Clustering, merge: BlockedMerge, words: Sequence[str] | None) -> BlockedMergeDict:
    sizes, labels = clustering.sizes, clustering.cluster_labels
    clusters = [merge.first, merge.second]
    order, blocking_order = (
        (-merge.weights).argsort(kind="stable"),
        (-merge.blocking_weights).argsort(kind="stable"),
    )
    rows, blocking_rows = merge.rows[order].tolist(), merge.blocking_rows[blocking_order].tolist()
    return {
        "label": str(labels[merge.first]),
        "clusters": clusters,
        "sizes": sizes[clusters].tolist(),
        "blocking_cluster": merge.blocking,
        "blocking_label": str(labels[merge.blocking]),
        "blocking_size": int(sizes[merge.blocking]),
        "rows": rows,
        "words": None if words is None else [words[row] for row in rows],
        "weights": merge.weights[order].tolist(),
        "blocking_rows": blocking_rows,
        "blocking_words": None if words is None else [words[row] for row in blocking_rows],
        "blocking_weights": merge.blocking_weights[blocking_order].tolist(),
        "decided": merge.decided,
    }


def _as_dict(result: ProbeOutcome) -> dict[str, object]:
    from closerlook.representations.distances import KEY, to_dict

    clustering, points, test = result.clustering, result.points, result.prediction
    distances, extents, audit = result.distances, result.extents, result.audit
    minimum = None if distances is None else dict(zip(clustering.labels, distances.minimum(), strict=True))
    return {
        "title": points.title,
        "n": len(points.X),
        "d": points.X.shape[1],
        "n_clusters": clustering.n_clusters,
        "attempts": _attempts_dict(clustering),
        "released": None if result.released is None else _released_dict(result.released),
        "n_labels": clustering.n_labels,
        "is_separable": clustering.is_separable,
        "n_conflicts": len(clustering.conflicts),
        "n_undecided": clustering.n_undecided,
        "seconds": sum(result.seconds.values()),
        "seconds_by_stage": result.seconds,
        "tau": clustering.tau,
        "radius": clustering.radius,
        "labels": clustering.labels,
        "by_label": _labels(result),
        "cluster_labels": clustering.cluster_labels,
        "cluster_sizes": clustering.sizes,
        "assignments": clustering.assignments,
        "conflicts": clustering.conflicts,
        "blocked_merges": _blocked_merges(result),
        KEY: None if distances is None else to_dict(distances),
        "minimum_distances": minimum,
        "within_clusters": None if extents is None else {"mean": extents.mean, "maximum": extents.maximum},
        "test_accuracy": None if test is None else test.correct / test.n,
        "majority_accuracy": None if test is None else test.majority / test.n,
        "n_test": None if test is None else test.n,
        "test": None if test is None else vars(test),
        "audit": None if audit is None else {"clean": audit.clean} | vars(audit),
        "settings": vars(result.settings),
        "provenance": None if points.provenance is None else points.provenance.to_dict(),
        "version": __version__,
    }


def _attempts_dict(clustering: Clustering) -> dict[str, object] | None:
    used = clustering.attempts
    return None if used is None else vars(used) | {"used": used.used, "ran_out": used.ran_out}


def _released_dict(released: Clustering) -> dict[str, object]:
    """The clusters with the limit on attempts, for JSON."""
    return {
        "n_clusters": released.n_clusters,
        "n_undecided": released.n_undecided,
        "attempts": _attempts_dict(released),
        "assignments": released.assignments,
    }


def _table_cells(merge: BlockedMergeDict) -> list[str]:
    """The row of a blocked merge in the printed table."""
    pair = " and ".join(f"{number} ({size:,})" for number, size in zip(merge["clusters"], merge["sizes"], strict=True))
    blocking = f"{merge['blocking_label']}: cluster {merge['blocking_cluster']} ({merge['blocking_size']:,})"
    if not merge["decided"]:
        return [merge["label"], pair, blocking, "undecided", "undecided"]
    return [
        merge["label"],
        pair,
        blocking,
        _weighted(merge["rows"], merge["weights"], merge["words"]),
        _weighted(merge["blocking_rows"], merge["blocking_weights"], merge["blocking_words"]),
    ]


def _weighted(rows: list[int], weights: list[float], words: list[str] | None) -> str:
    """The points with the largest weights: '12: bank (0.53), 88: river (0.31), 4: bank (0.10), 7 more'."""
    names = [str(row) for row in rows] if words is None else [f"{row}: {words[at]}" for at, row in enumerate(rows)]
    shown = [f"{name} ({weight:.2f})" for name, weight in zip(names[:SHOWN_ROWS], weights[:SHOWN_ROWS], strict=True)]
    return ", ".join(shown + [f"{len(rows) - SHOWN_ROWS} more"] * (len(rows) > SHOWN_ROWS))


def _shown(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else value

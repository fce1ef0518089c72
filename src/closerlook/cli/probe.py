"""`closerlook probe`: DirectProbe on any vectors, with every verdict proved."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from closerlook.cli.measure import (
    MinPoints,
    Settings,
    Summary,
    Tau,
    TestPoints,
    Threads,
    TrainPoints,
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

EXAMPLE = "Example: closerlook probe train.npz --test test.npz --json"
SHOWN_PAIRS = 10
SHOWN_ROWS = 3


def probe(
    file: TrainPoints,
    test: TestPoints = None,
    tau: Tau = 1e-6,
    min_points: MinPoints = 1,
    statistic: Summary = "mean",
    distances: Annotated[bool, Option("--distances/--no-distances", help="Measure the distances of labels.")] = True,
    audit: Annotated[
        bool, Option("--audit", help="Prove the result again, pair by pair; exit code 1 where that fails.")
    ] = False,
    threads: Threads = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Find DirectProbe's clusters in any labelled vectors, their distances, and what they predict."""
    from closerlook.cli.console import note, print_json

    settings = Settings(tau, min_points, statistic, threads)
    points, held_out = load_points(file, test)
    findings = _find(points, held_out, settings, distances=distances, prove=audit)
    if as_json:
        print_json(_as_dict(findings))
    else:
        _print(findings)
    note(f"done in {sum(findings.seconds.values()):.1f} s")
    if findings.audit is not None and not findings.audit.clean:
        problems = findings.audit.problems
        raise WorkError(f"the audit found {len(problems)} problems, the first: {problems[0]}; please report it")


@dataclass(frozen=True, eq=False)
class Tested:
    """Predictions of held-out points: how many, how many right, and what the commonest training label gets."""

    title: str
    n: int
    right: int
    majority: int
    majority_label: str
    unseen: dict[str, int]


@dataclass(frozen=True, eq=False)
class Findings:
    """All that was found, before anything is shown."""

    points: Points
    settings: Settings
    clustering: Clustering
    distances: LabelDistances | None
    inside: ClusterExtents | None
    tested: Tested | None
    audit: Audit | None
    seconds: dict[str, float] = field(default_factory=dict)


# ---- the work ----


def _find(points: Points, held_out: Points | None, settings: Settings, *, distances: bool, prove: bool) -> Findings:
    from closerlook.geometry import audit, within_cluster_distances

    seconds: dict[str, float] = {}
    clustering = find_clusters(points, settings, seconds)
    apart = inside = None
    if distances:
        apart = measure_labels(points, clustering, settings, seconds)
        with stage("distances", "inside the clusters", seconds):
            inside = within_cluster_distances(points.X, clustering)
    tested = None if held_out is None else _predict(points, held_out, clustering, settings, seconds)
    proved = None
    if prove:
        with stage("audit", "of every pair of clusters, each by a certificate of its own", seconds) as show:
            proved = audit(points.X, points.y, clustering, threads=settings.threads, progress=show)
    return Findings(points, settings, clustering, apart, inside, tested, proved, seconds)


def _predict(
    points: Points, held_out: Points, clustering: Clustering, settings: Settings, seconds: dict[str, float]
) -> Tested:
    import numpy as np

    from closerlook.geometry import nearest_hulls

    n = len(held_out.X)
    with stage("prediction", f"of {n:,} points: {held_out.title}", seconds) as show:
        nearest, _ = nearest_hulls(points.X, clustering.members(), held_out.X, threads=settings.threads, progress=show)
    predicted = np.array(clustering.cluster_labels, dtype=np.str_)[nearest]
    names, counts = np.unique(points.y, return_counts=True)
    commonest = str(names[counts.argmax()])
    unseen = unseen_labels(points, held_out)
    right, majority = int((predicted == held_out.y).sum()), int((held_out.y == commonest).sum())
    return Tested(held_out.title, n, right, majority, commonest, unseen)


# ---- what is shown ----


def _print(findings: Findings) -> None:
    from closerlook.cli.console import print_table

    print_table(findings.points.title, ["", ""], _summary(findings))
    columns = ["label", "points", "clusters"]
    if findings.distances is not None:
        columns += ["nearest label", "distance", "in RMS radii", "inside mean", "inside maximum"]
    rows = [[_shown(value) for value in one.values()] for one in _labels(findings)]
    print_table("Labels", columns, rows, numbers=[name for name in columns if name not in ("label", "nearest label")])
    blockers = _blockers(findings)
    if blockers:
        pairs = sum(1 for _ in findings.clustering.blocked_pairs())
        title = (
            f"What keeps clusters of one label apart: {len(blockers)} of {pairs:,} pairs, the largest clusters first"
        )
        columns = [
            "label",
            "clusters (points)",
            "in the way",
            "rows of the union (weights)" if findings.points.words is None else "rows of the union: words (weights)",
            "rows in the way (weights)" if findings.points.words is None else "rows in the way: words (weights)",
        ]
        print_table(title, columns, [_blocker_row(one) for one in blockers])


def _summary(findings: Findings) -> list[tuple[str, str]]:
    found, settings = findings.clustering, findings.settings
    rows = [
        ("points", f"{len(findings.points.X):,} × {findings.points.X.shape[1]}"),
        ("clusters", f"{found.n_clusters:,}"),
        ("labels", f"{found.n_labels}"),
        ("linear", "yes: one cluster for each label" if found.is_separable else "no"),
        ("conflicts", f"{len(found.conflicts):,} points identical to one of another label"),
        ("undecided", f"{found.n_undecided:,} verdicts"),
    ]
    if findings.tested is not None:
        tested = findings.tested
        share = f"{tested.right / tested.n:.4f} ({tested.right:,} of {tested.n:,})"
        rows.append(("test accuracy", f"{share}; always {tested.majority_label}: {tested.majority / tested.n:.4f}"))
    if findings.audit is not None:
        audit = findings.audit
        state = "clean" if audit.clean else f"{len(audit.problems)} PROBLEMS"
        counts = f"{audit.separable:,} apart, {audit.conflicting:,} in conflict, {audit.blocked:,} blocked"
        rows.append(("audit", f"{state}: pairs {counts}"))
    rows.append(("RMS radius", f"{found.radius:.6g}"))
    rows.append(("settings", f"tau {found.tau:g}, min points {settings.min_points}, statistic {settings.statistic}"))
    if findings.distances is not None and findings.distances.excluded:
        listed = ", ".join(f"{count} of {label}" for label, count in findings.distances.excluded.items())
        rows.append(("left out", f"clusters of fewer than {settings.min_points} points: {listed}"))
    rows.append(("seconds", ", ".join(f"{name} {value:.2f}" for name, value in findings.seconds.items())))
    return rows


def _labels(findings: Findings) -> list[dict[str, object]]:
    """What there is to say of each label: its numbers, its nearest neighbour, its clusters inside."""
    found, sizes, codes = findings.clustering, findings.clustering.sizes, findings.clustering.cluster_codes
    nearest = findings.distances.nearest() if findings.distances is not None else []
    rows: list[dict[str, object]] = []
    for code, label in enumerate(found.labels):
        own = codes == code
        row: dict[str, object] = {"label": label, "points": int(sizes[own].sum()), "clusters": int(own.sum())}
        if findings.distances is not None and findings.inside is not None:
            _, other, distance = nearest[code]
            pairs = sizes[own] * (sizes[own] - 1)
            total = float((findings.inside.mean[own] * pairs).sum())
            row |= {
                "nearest": other,
                "distance": distance,
                "relative": distance / found.radius if found.radius > 0 else 0.0 * distance,
                "inside_mean": total / max(int(pairs.sum()), 1),
                "inside_maximum": float(findings.inside.maximum[own].max()),
            }
        rows.append(row)
    return rows


def _telling_blockers(clustering: Clustering) -> list[BlockedMerge]:
    """Why the largest clusters of a label stay apart: pairs by the size of the smaller one."""
    sizes = clustering.sizes.tolist()
    pairs: list[tuple[int, int]] = []
    for code in range(clustering.n_labels):
        own = (clustering.cluster_codes == code).nonzero()[0].tolist()
        pairs += combinations(sorted(heapq.nsmallest(SHOWN_PAIRS, own, key=lambda one: (-sizes[one], one))), 2)
    largest = heapq.nsmallest(
        SHOWN_PAIRS, pairs, key=lambda pair: (-min(sizes[one] for one in pair), -sum(sizes[one] for one in pair), pair)
    )
    return [clustering.blocked_merge(*pair) for pair in largest]


def _blockers(findings: Findings) -> list[dict[str, Any]]:
    found, words = findings.clustering, findings.points.words
    return [_blocked(found, one, words) for one in _telling_blockers(found)]


def _blocked(clustering: Clustering, blocker: BlockedMerge, words: Sequence[str] | None) -> dict[str, Any]:
    """A blocker as plain values, rows by falling weight, with their words where these are known."""
    sizes, labels = clustering.sizes, clustering.cluster_labels
    clusters = [blocker.first, blocker.second]
    own, theirs = (-blocker.weights).argsort(kind="stable"), (-blocker.blocking_weights).argsort(kind="stable")
    rows, their_rows = blocker.rows[own].tolist(), blocker.blocking_rows[theirs].tolist()
    return {
        "label": labels[blocker.first],
        "clusters": clusters,
        "sizes": sizes[clusters].tolist(),
        "blocker": blocker.blocking,
        "blocker_label": labels[blocker.blocking],
        "blocker_size": int(sizes[blocker.blocking]),
        "rows": rows,
        "words": None if words is None else [words[row] for row in rows],
        "weights": blocker.weights[own].tolist(),
        "blocker_rows": their_rows,
        "blocker_words": None if words is None else [words[row] for row in their_rows],
        "blocker_weights": blocker.blocking_weights[theirs].tolist(),
        "decided": blocker.decided,
    }


def _as_dict(findings: Findings) -> dict[str, object]:
    from closerlook.representations.distances import KEY, to_dict

    found, points, tested = findings.clustering, findings.points, findings.tested
    distances, inside, audit = findings.distances, findings.inside, findings.audit
    return {
        "title": points.title,
        "n": len(points.X),
        "d": points.X.shape[1],
        "n_clusters": found.n_clusters,
        "n_labels": found.n_labels,
        "is_separable": found.is_separable,
        "n_conflicts": len(found.conflicts),
        "n_undecided": found.n_undecided,
        "seconds": sum(findings.seconds.values()),
        "seconds_by_stage": findings.seconds,
        "tau": found.tau,
        "radius": found.radius,
        "labels": found.labels,
        "by_label": _labels(findings),
        "cluster_labels": found.cluster_labels,
        "cluster_sizes": found.sizes,
        "assignments": found.assignments,
        "conflicts": found.conflicts,
        "blockers": _blockers(findings),
        KEY: None if distances is None else to_dict(distances),
        "minimum_distances": None if distances is None else dict(zip(found.labels, distances.minimum(), strict=True)),
        "inside": None if inside is None else {"mean": inside.mean, "maximum": inside.maximum},
        "test_accuracy": None if tested is None else tested.right / tested.n,
        "majority_accuracy": None if tested is None else tested.majority / tested.n,
        "n_test": None if tested is None else tested.n,
        "test": None if tested is None else vars(tested),
        "audit": None if audit is None else {"clean": audit.clean} | vars(audit),
        "settings": vars(findings.settings),
        "provenance": None if points.provenance is None else points.provenance.to_dict(),
        "version": __version__,
    }


def _blocker_row(one: dict[str, Any]) -> list[str]:
    pair = " and ".join(f"{number} ({size:,})" for number, size in zip(one["clusters"], one["sizes"], strict=True))
    in_the_way = f"{one['blocker_label']}: cluster {one['blocker']} ({one['blocker_size']:,})"
    if not one["decided"]:
        return [one["label"], pair, in_the_way, "undecided", "undecided"]
    return [
        one["label"],
        pair,
        in_the_way,
        _weighted(one["rows"], one["weights"], one["words"]),
        _weighted(one["blocker_rows"], one["blocker_weights"], one["blocker_words"]),
    ]


def _weighted(rows: list[int], weights: list[float], words: list[str] | None) -> str:
    """The rows with the largest weights: '12: bank (0.53), 88: river (0.31), 4: bank (0.10), 7 more'."""
    named = [str(row) for row in rows] if words is None else [f"{row}: {words[at]}" for at, row in enumerate(rows)]
    shown = [f"{name} ({weight:.2f})" for name, weight in zip(named[:SHOWN_ROWS], weights[:SHOWN_ROWS], strict=True)]
    return ", ".join(shown + [f"{len(rows) - SHOWN_ROWS} more"] * (len(rows) > SHOWN_ROWS))


def _shown(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else value

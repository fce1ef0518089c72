"""`diff`: measures what changed from one encoder to another."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from closerlook.differences.difference import Difference
from closerlook.differences.spaces import Encoders, Pair, Trust, are_related, extract_pair, find_encoder
from closerlook.errors import InputError
from closerlook.geometry import (
    Clustering,
    LabelDistances,
    cluster,
    cluster_distances,
    label_distances,
    separability,
    spatial_similarity,
)
from closerlook.geometry.point_similarity import linear_cka
from closerlook.geometry.resampling import adjust, change_p_values, resample_distances
from closerlook.progress import Progress, progress_bar
from closerlook.representations.extract import load_tasks
from closerlook.representations.requested import encoder_info
from closerlook.representations.space import Space
from closerlook.representations.store import Store, open_store
from closerlook.tasks.splitting import with_held_out_split
from closerlook.tasks.task import Task
from closerlook.texts import joined

if TYPE_CHECKING:
    import pandas as pd

PROBE_SIZES = ((64,),)
SIGNIFICANT = 0.05


def diff(
    before: str | os.PathLike[str],
    after: str | os.PathLike[str],
    task: str | Path | Task | Sequence[str | Path | Task],
    *,
    max_examples: int = 3000,
    pool: str = "auto",
    shuffles: int = 5,
    resamples: int = 20,
    seed: int = 0,
    data: str | Path | None = None,
    store: Store | str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    progress: Progress | None = None,
) -> Difference:
    """What changed from one encoder to another, on the same examples of one or more tasks.

    Nothing is trained but small probes. before, after: encoders, see `Encoder.load`; of the output folder of a
    Trainer, or of `tune` with save_weights, the last checkpoint is taken. They may be a base and its fine-tuned
    version, two fine-tuned versions, or unrelated encoders; for these, only what does not depend on coordinates is
    compared. task: the tasks; if train is the only split of one, a fifth of it becomes its test split, with a note in
    the log and in `settings`.
    max_examples: of each split; larger splits are sampled. shuffles: labellings for the null of separability, at
    the last layer. resamples: half samples for the p-values of label distances. progress: called with the number of
    finished steps and of all steps. Other options: see `extract`.

    >>> result = diff("random:bert-tiny", "bert-tiny", "toy-question", max_examples=100, shuffles=0, resamples=4)
    >>> print(result)  # doctest: +ELLIPSIS
    random:bert-tiny → bert-tiny
    toy-question, last layer:
      Probe accuracy ...
      Clusters ...
      Distance to the nearest other label ...
      Similarity of the two spaces: ...
      By nearest cluster, ...
    """
    for name, value, least in (
        ("max_examples", max_examples, 10),
        ("shuffles", shuffles, 0),
        ("resamples", resamples, 4),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{name} is {value!r}; expected a whole number of at least {least}")
    options = Trust(allow_pickle, trust_remote_code)
    tasks, opened = [with_held_out_split(one) for one in load_tasks(task, data)], open_store(store)
    first = find_encoder(before, options)
    sources = (first, find_encoder(after, options, first))
    if sources[0].fingerprint == sources[1].fingerprint:
        raise InputError(f"{before} and {after} are the same encoder; expected two different ones")
    infos = (encoder_info(sources[0], opened, device=device), encoder_info(sources[1], opened, device=device))
    encoders = Encoders(sources, infos)
    with progress_bar("steps", progress) as show:
        steps = _Steps(show, len(tasks) * (min(infos[0].layers, infos[1].layers) + 3))
        pairs = []
        for one in tasks:
            steps.next()
            pairs.append(
                extract_pair(
                    encoders,
                    one,
                    most=max_examples,
                    pool=pool,
                    seed=seed,
                    store=opened,
                    device=device,
                    trust_remote_code=trust_remote_code,
                )
            )
        related = are_related(pairs)
        repeats = _Repeats(shuffles, resamples, seed)
        measured = [_Measured(pair, repeats, steps, related=related, threads=threads) for pair in pairs]
    settings: dict[str, Any] = {
        "before": _facts(encoders, 0),
        "after": _facts(encoders, 1),
        "related": related,
        "max_examples": max_examples,
        "pool": [str(pair.train[-1][0].provenance.pool) for pair in pairs],
        "probe": f"MLP {PROBE_SIZES[0]}, 1 seed",
        "shuffles": shuffles,
        "resamples": resamples,
        "seed": seed,
        "test_split": [pair.test_split for pair in pairs],
        "notes": list(dict.fromkeys(note for one in tasks for note in one.notes)),
    }
    import pandas as pd

    return Difference(
        *encoders.names,
        related,
        settings,
        pd.concat([one.layers for one in measured], ignore_index=True),
        pd.concat([one.labels for one in measured], ignore_index=True),
        pd.concat([one.examples for one in measured], ignore_index=True),
    )


def _facts(encoders: Encoders, side: int) -> dict[str, object]:
    source, info = encoders.sources[side], encoders.infos[side]
    return {"name": encoders.names[side], "weights": source.fingerprint, **vars(info)}


class _Steps:
    """Counts the steps of a comparison."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def next(self) -> None:
        """Report the steps done so far, and begin the next."""
        if self.progress:
            self.progress(self.done, self.total)
        self.done += 1


@dataclass(frozen=True)
class _Repeats:
    """How often labels are shuffled and examples resampled, and the seed of both."""

    shuffles: int
    resamples: int
    seed: int


class _Measured:
    """The measures of one task: tables of layers, labels and examples."""

    def __init__(self, pair: Pair, repeats: _Repeats, steps: _Steps, *, related: bool, threads: int | None) -> None:
        self.pair, self.repeats, self.related, self.threads = pair, repeats, related, threads
        rows: list[dict[str, object]] = []
        geometry: list[tuple[Clustering, LabelDistances]] = []
        for at, (first, second) in enumerate(pair.layers):
            steps.next()
            geometry = [_geometry(space, threads) for space in pair.train[at]]
            place = {"task": pair.task.name, "layer": first, "layer_after": second, "n": pair.train[at][0].n}
            rows += [place | row for row in self._layer(at, geometry)]
        steps.next()
        rows += [place | row for row in [*self._separability(), *self._heads()]]
        self.layers = _frame(rows, LAYERS)
        self.labels = self._labels(geometry)
        self.examples = self._examples(geometry)

    def _layer(self, at: int, geometry: list[tuple[Clustering, LabelDistances]]) -> list[dict[str, object]]:
        """The measures of one layer, before and after."""
        (before, distances), (after, later) = geometry
        train, test = self.pair.train[at], self.pair.test[at]
        correct = [_is_correct(*spaces, self.threads) for spaces in zip(train, test, strict=True)]
        change, low, high, p_value = paired_change(*correct)
        rows: list[dict[str, object]] = [
            {
                "measure": "accuracy",
                "before": float(correct[0].mean()),
                "after": float(correct[1].mean()),
                "change": change,
                "low": low,
                "high": high,
                "p_value": p_value,
            }
        ]
        values = {
            "labels": (before.n_labels, after.n_labels),
            "clusters": (before.n_clusters, after.n_clusters),
            "separable": (before.is_separable, after.is_separable),
            "minimum_distance": (_relative(distances), _relative(later)),
        }
        rows += [
            {"measure": name, "before": float(one), "after": float(two), "change": float(two) - float(one)}
            for name, (one, two) in values.items()
        ]
        similarity = math.nan
        if before.n_labels >= 3:
            similarity = spatial_similarity(distances, later, permutations=0, resamples=0).pearson
        rows.append({"measure": "similarity", "after": similarity})
        rows.append({"measure": "cka", "after": linear_cka(train[0].X, train[1].X)})
        return rows

    def _separability(self) -> list[dict[str, object]]:
        """The share of separable pairs of labels at the last layer, and the same with shuffled labels."""
        nulls = [
            separability(
                space.X,
                space.label_names,
                shuffles=self.repeats.shuffles,
                seed=self.repeats.seed,
                threads=self.threads,
            )
            for space in self.pair.train[-1]
        ]
        shares = [null.separable for null in nulls]
        rows = [{"measure": "separable_pairs", "before": shares[0].value, "after": shares[1].value}]
        if self.repeats.shuffles:
            rows.append({"measure": "separable_pairs_shuffled", "before": shares[0].mean, "after": shares[1].mean})
        return rows

    def _heads(self) -> list[dict[str, object]]:
        """The accuracy of the encoders' own heads on test; no row if neither has one for this task."""
        before, after = self.pair.heads
        if math.isnan(before) and math.isnan(after):
            return []
        return [{"measure": "head_accuracy", "before": before, "after": after, "change": after - before}]

    def _labels(self, geometry: list[tuple[Clustering, LabelDistances]]) -> pd.DataFrame:
        """For each label at the last layer: its distance to the nearest other label, before and after, in RMS radii."""
        spaces = self.pair.train[-1]
        replicates = [
            resample_distances(
                space.X.astype(np.float64) / (distances.radius or 1.0),
                clustering,
                resamples=self.repeats.resamples,
                seed=self.repeats.seed,
                threads=self.threads,
            )
            for space, (clustering, distances) in zip(spaces, geometry, strict=True)
        ]
        before, after = (distances for _, distances in geometry)
        change = after.minimum() / (after.radius or 1.0) - before.minimum() / (before.radius or 1.0)
        p_values = adjust(change_p_values(replicates[0], replicates[1], change))
        counts = np.bincount(spaces[0].y, minlength=len(spaces[0].labels))
        sizes = dict(zip(spaces[0].labels, counts.tolist(), strict=True))
        rows = []
        for at, label in enumerate(before.labels):
            rows.append(
                {
                    "task": self.pair.task.name,
                    "label": str(label),
                    "n": sizes[str(label)],
                    "nearest_before": str(before.nearest()[at][1] or ""),
                    "nearest_after": str(after.nearest()[at][1] or ""),
                    "before": before.minimum()[at] / (before.radius or 1.0),
                    "after": after.minimum()[at] / (after.radius or 1.0),
                    "change": change[at],
                    "p_value": p_values[at],
                    "moved": _direction(change[at], p_values[at]),
                }
            )
        return _frame(rows, LABELS)

    def _examples(self, geometry: list[tuple[Clustering, LabelDistances]]) -> pd.DataFrame:
        """For each test example at the last layer: its nearest cluster before and after, and how far it moved."""
        from closerlook.geometry import nearest_hulls

        nearest = []
        for train, tested, (clustering, _) in zip(self.pair.train[-1], self.pair.test[-1], geometry, strict=True):
            at, _ = nearest_hulls(train.X, clustering.members(), tested.X, threads=self.threads)
            labels = np.array([str(label) for label in clustering.labels])
            nearest.append(labels[clustering.cluster_codes[at]])
        test = self.pair.test[-1]
        moved = np.full(test[0].n, np.nan)
        if self.related:
            radius = geometry[0][1].radius or 1.0
            moved = np.linalg.norm(test[1].X.astype(np.float64) - test[0].X.astype(np.float64), axis=1) / radius
        truth = np.array([test[0].labels[code] for code in test[0].y])
        right = [labels == truth for labels in nearest]
        split = self.pair.task.split(self.pair.test_split)
        texts = [joined(text) for text in split.texts]
        return _frame(
            [
                {
                    "task": self.pair.task.name,
                    "split": split.name,
                    "text": texts[split.sentence[row]],
                    "word": "" if test[0].words is None else test[0].words[row],
                    "label": truth[row],
                    "nearest_before": nearest[0][row],
                    "nearest_after": nearest[1][row],
                    "became": BECAME[bool(right[0][row]), bool(right[1][row])],
                    "moved": moved[row],
                }
                for row in range(len(truth))
            ],
            EXAMPLES,
        )


LAYERS = ("task", "layer", "layer_after", "n", "measure", "before", "after", "change", "low", "high", "p_value")
LABELS = ("task", "label", "n", "nearest_before", "nearest_after", "before", "after", "change", "p_value", "moved")
EXAMPLES = ("task", "split", "text", "word", "label", "nearest_before", "nearest_after", "became", "moved")
BECAME = {(True, True): "", (False, False): "", (False, True): "right", (True, False): "wrong"}


def _frame(rows: list[dict[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(columns))


def _geometry(space: Space, threads: int | None) -> tuple[Clustering, LabelDistances]:
    """The clusters of a space and its label distances."""
    clustering = cluster(space.X, space.label_names, threads=threads)
    return clustering, label_distances(cluster_distances(space.X, clustering, threads=threads))


def _relative(distances: LabelDistances) -> float:
    return distances.mean_minimum() / (distances.radius or 1.0)


def _is_correct(train: Space, test: Space, threads: int | None) -> NDArray[np.bool_]:
    """(n,) whether a probe that is trained on the first space labels each row of the second correctly."""
    from closerlook.probes.classifier import ClassifierProbe

    probe = ClassifierProbe(sizes=list(PROBE_SIZES), seeds=1, device="cpu", n_jobs=threads)
    predicted = probe.fit(train.X, train.label_names).predict(test.X)
    truth = np.array([test.labels[code] for code in test.y])
    return np.asarray(predicted == truth)


def paired_change(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> tuple[float, float, float, float]:
    """The change in accuracy on the same examples, its 95% interval, and McNemar's exact two-sided p-value.

    With fewer than 6 examples that only one of the two gets right, p cannot be 0.05 or lower: it is NaN.

    >>> paired_change(np.array([True, False, False, False]), np.array([True, True, True, False]))[0]
    0.5
    """
    from scipy.stats import binomtest

    gained, lost, n = int((~before & after).sum()), int((before & ~after).sum()), len(before)
    change = (gained - lost) / n
    spread = 1.96 * math.sqrt(max(gained + lost - (gained - lost) ** 2 / n, 0.0)) / n
    can_be_small = 2.0 ** (1 - gained - lost) <= SIGNIFICANT
    p_value = float(binomtest(gained, gained + lost).pvalue) if can_be_small else math.nan
    return change, max(change - spread, -1.0), min(change + spread, 1.0), p_value


def _direction(change: float, p_value: float) -> str:
    """'farther' or 'closer' if a label's distance changed significantly; empty if not."""
    if not p_value <= SIGNIFICANT:
        return ""
    return "farther" if change > 0 else "closer"

"""`rank`: which encoder and layer suit a task, by the accuracy of a probe and by cheaper scores.

No score is claimed to be best: the result says how well each score orders this very table, and what choosing by it
would cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.geometry import cluster, cluster_distances, label_distances, participation_ratio
from closerlook.geometry.fit import logme, nearest_mean_accuracy
from closerlook.notebook import html
from closerlook.progress import Progress, progress_bar
from closerlook.representations.extract import extract, load_tasks
from closerlook.representations.space import Space
from closerlook.representations.store import Store
from closerlook.tasks.splitting import with_held_out_split
from closerlook.tasks.task import Task, choose_test_split, sample_split

if TYPE_CHECKING:
    import pandas as pd

SCORES: dict[str, tuple[str, int]] = {
    "nearest_mean": ("accuracy of the nearest label mean on train", 1),
    "logme": ("LogME", 1),
    "hull_distance": ("mean distance of a label to the nearest other, in RMS radii", 1),
    "clusters": ("number of clusters", -1),
    "participation_ratio": ("participation ratio (effective dimension)", 1),
}
"""The cheap scores, all computed on train: what each is, and whether larger (1) or smaller (-1) is taken as better."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Encoders × layers for one task. spaces: one row each, best accuracy first, with a 95% Wilson interval.

    scores: one row for each score: its rank correlation (Spearman) with accuracy over `spaces`, the encoder and layer
    that it would choose, their accuracy, and the cost: the best accuracy minus theirs.

    >>> ranking = rank(["bert-tiny"], "toy-question", max_examples=100)
    >>> encoder, layer = ranking.best
    >>> encoder, layer in (0, 1, 2), list(ranking.scores.score)
    ('bert-tiny', True, ['nearest_mean', 'logme', 'hull_distance', 'clusters', 'participation_ratio'])
    """

    task: str
    settings: dict[str, Any]
    spaces: pd.DataFrame
    scores: pd.DataFrame

    @property
    def best(self) -> tuple[str, int]:
        """The encoder and layer with the highest accuracy."""
        first = self.spaces.iloc[0]
        return str(first.encoder), int(first.layer)

    def __repr__(self) -> str:
        encoder, layer = self.best
        return f"Ranking({self.task}: {len(self.spaces)} spaces, best {encoder} layer {layer})"

    def _repr_html_(self) -> str:
        return html(repr(self), self.spaces, "How well each score orders these spaces by accuracy:", self.scores)

    def to_frame(self) -> pd.DataFrame:
        """The table `spaces`: one row for each encoder and layer."""
        return self.spaces


def rank(
    encoders: Sequence[str],
    task: str | Path | Task,
    *,
    layers: str = "all",
    max_examples: int = 3000,
    pool: str = "auto",
    sizes: Sequence[tuple[int, ...]] = ((64,),),
    seeds: int = 1,
    seed: int = 0,
    data: str | Path | None = None,
    store: Store | str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    progress: Progress | None = None,
) -> Ranking:
    """Rank the layers of encoders by how well a probe reads the task's labels from them.

    encoders: see `Encoder.load`. task: if train is its only split, a fifth of it becomes the test split. layers: of
    each encoder, see `extract`. max_examples: of each split; larger splits are sampled. sizes, seeds: of the
    probes, see `ClassifierProbe`. Other options: see `extract`.

    >>> ranking = rank(["bert-tiny", "random:bert-tiny"], "toy-question", layers="last", max_examples=100)
    >>> ranking.spaces.columns[:5].tolist()
    ['encoder', 'layer', 'accuracy', 'low', 'high']
    >>> sorted(ranking.spaces.encoder)
    ['bert-tiny', 'random:bert-tiny']
    """
    import pandas as pd

    if not encoders or len(set(encoders)) < len(encoders):
        raise InputError(f"encoders are {', '.join(encoders) or 'empty'}; expected one or more, each once")
    (loaded,) = load_tasks(task, data)
    whole = with_held_out_split(loaded)
    test = choose_test_split(whole)
    parts = tuple(sample_split(whole, name, max_examples, seed) for name in ("train", test))
    small = Task(whole.name, whole.unit, whole.labels, parts)
    rows = []
    with progress_bar("encoders", progress) as show:
        for at, encoder in enumerate(encoders):
            if show:
                show(at, len(encoders))
            spaces = extract(
                encoder,
                small,
                splits=["train", test],
                layers=layers,
                pool=pool,
                store=store,
                device=device,
                allow_pickle=allow_pickle,
                trust_remote_code=trust_remote_code,
            )
            half = len(spaces) // 2
            rows += [
                _measure(train, tested, sizes, seeds, threads)
                for train, tested in zip(spaces[:half], spaces[half:], strict=True)
            ]
    table = pd.DataFrame(rows).sort_values(["accuracy", "nearest_mean"], ascending=False, ignore_index=True)
    settings = {
        "max_examples": max_examples,
        "pool": pool,
        "sizes": [list(size) for size in sizes],
        "seeds": seeds,
        "seed": seed,
        "test_split": test,
        "notes": list(whole.notes),
    }
    return Ranking(whole.name, settings, table, judge_scores(table))


def _measure(
    train: Space, test: Space, sizes: Sequence[tuple[int, ...]], seeds: int, threads: int | None
) -> dict[str, object]:
    """Accuracy and scores of one layer."""
    from closerlook.probes.classifier import ClassifierProbe

    probe = ClassifierProbe(sizes=list(sizes), seeds=seeds, device="cpu", n_jobs=threads)
    truth = np.array([test.labels[code] for code in test.y])
    right = np.asarray(probe.fit(train.X, train.label_names).predict(test.X) == truth)
    clustering = cluster(train.X, train.label_names, threads=threads)
    distances = label_distances(cluster_distances(train.X, clustering, threads=threads))
    low, high = wilson(int(right.sum()), len(right))
    return {
        "encoder": train.provenance.encoder,
        "layer": train.provenance.layer,
        "accuracy": float(right.mean()),
        "low": low,
        "high": high,
        "n": len(right),
        "nearest_mean": nearest_mean_accuracy(train.X, train.label_names),
        "logme": logme(train.X, train.label_names),
        "hull_distance": distances.mean_minimum() / (distances.radius or 1.0),
        "clusters": clustering.n_clusters,
        "participation_ratio": participation_ratio(train.X),
    }


def wilson(right: int, n: int) -> tuple[float, float]:
    """The 95% Wilson interval of a share of `right` in n.

    >>> [round(end, 3) for end in wilson(9, 10)]
    [0.596, 0.982]
    """
    from scipy.stats import binomtest

    interval = binomtest(right, n).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def judge_scores(spaces: pd.DataFrame) -> pd.DataFrame:
    """How well each score orders the spaces by accuracy, and what choosing by it would cost."""
    import pandas as pd

    best = float(spaces.accuracy.max())
    rows = []
    for name, (meaning, sign) in SCORES.items():
        values = sign * spaces[name].to_numpy(float)
        known = np.isfinite(values)
        if not known.any():
            continue
        chosen = spaces.iloc[int(np.flatnonzero(known)[np.argmax(values[known])])]
        rows.append(
            {
                "score": name,
                "meaning": meaning,
                "rank_correlation": _spearman(values[known], spaces.accuracy.to_numpy(float)[known]),
                "encoder": chosen.encoder,
                "layer": chosen.layer,
                "accuracy": chosen.accuracy,
                "cost": best - chosen.accuracy,
            }
        )
    return pd.DataFrame(rows)


def _spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Spearman's rank correlation; NaN with fewer than three values, or if one side is constant."""
    from scipy.stats import rankdata

    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])

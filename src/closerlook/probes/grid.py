"""The classifier probe of the paper: every network of a grid of sizes and seeds, and what they read off a space."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import StandardScaler

from closerlook.errors import InputError
from closerlook.geometry.frame import Label, as_labels, as_points
from closerlook.geometry.kernels import count_threads
from closerlook.probes.training import Integers, Job, Network, ProbeTraining, Progress, Sizes, is_whole

if TYPE_CHECKING:
    from torch import Tensor

    from closerlook.probes.networks import Batch

WIDTHS = (32, 64, 128, 256)
GRID: tuple[Sizes, ...] = tuple((first, second) for first in WIDTHS for second in WIDTHS)
"""The sizes of the paper: two hidden layers."""

SEEDS = 5
STACK_BYTES = 1 << 28
"""Vectors of several spaces that are worked on at a time."""

Measured = NDArray[np.float64]


class Vectors(Protocol):
    """A space: vectors, and the label of each by name."""

    @property
    def X(self) -> NDArray[np.float32]:  # noqa: N802 - as a space names it
        """(n, d)."""

    @property
    def label_names(self) -> NDArray[np.str_]:
        """(n,)."""


Labelled = Vectors | tuple[ArrayLike, ArrayLike]
"""A space, or X and y."""


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """What a grid of networks reads off one space.

    labels: of train. test_labels: of train and test together. accuracy, held_out: (s, r) on test and on the held-out
    part of train, for each of s sizes and r seeds; rounds: (s, r) to the best one. chosen: the place of the sizes with
    the best mean on held-out, the fewest weights where several have it. Of the chosen sizes: predictions (r, m), places
    in test_labels; macro_f1 (r,), over all labels that are in test or predicted; by_label: the share of each test
    label's rows that are right, mean over seeds, NaN where test has none; confusion (l, l): rows are true labels,
    columns predicted ones, counts summed over seeds. majority: test accuracy of always saying train's commonest label.
    """

    labels: tuple[Label, ...]
    test_labels: tuple[Label, ...]
    n_train: int
    n_test: int
    d: int
    sizes: tuple[Sizes, ...]
    seeds: tuple[int, ...]
    accuracy: Measured
    held_out: Measured
    rounds: Integers
    chosen: int
    predictions: Integers
    macro_f1: Measured
    by_label: Measured
    confusion: Integers
    majority: float
    training: ProbeTraining
    device: str

    @property
    def chosen_sizes(self) -> Sizes:
        """The sizes chosen on held-out accuracy."""
        return self.sizes[self.chosen]

    @property
    def mean(self) -> float:
        """Test accuracy of the chosen sizes, mean over seeds."""
        return float(self.accuracy[self.chosen].mean())

    @property
    def deviation(self) -> float:
        """Its standard deviation over seeds; NaN with one seed."""
        return deviation(self.accuracy[self.chosen])

    @property
    def unseen(self) -> tuple[Label, ...]:
        """Labels that test has and train has not: no probe can get them right."""
        return tuple(label for label in self.test_labels if label not in set(self.labels))

    def table(self) -> list[dict[str, Any]]:
        """A row for each of the sizes."""
        return [
            {
                "sizes": sizes,
                "accuracy": float(self.accuracy[at].mean()),
                "sd": deviation(self.accuracy[at]),
                "held_out": float(self.held_out[at].mean()),
                "rounds": float(self.rounds[at].mean()),
                "chosen": at == self.chosen,
            }
            for at, sizes in enumerate(self.sizes)
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON; predictions left out."""
        return {
            "accuracy": self.mean,
            "sd": self.deviation,
            "chosen_sizes": self.chosen_sizes,
            "macro_f1": float(self.macro_f1.mean()),
            "macro_f1_sd": deviation(self.macro_f1),
            "majority_accuracy": self.majority,
            "n_train": self.n_train,
            "n_test": self.n_test,
            "d": self.d,
            "labels": self.labels,
            "unseen": self.unseen,
            "seeds": self.seeds,
            "grid": self.table(),
            "accuracy_by_seed": self.accuracy.tolist(),
            "test_labels": self.test_labels,
            "accuracy_by_label": self.by_label.tolist(),
            "confusion": self.confusion.tolist(),
            "training": asdict(self.training),
            "device": self.device,
        }


def deviation(values: Measured) -> float:
    """The standard deviation of a sample; NaN for one value."""
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def probe_grid(
    train: Labelled,
    test: Labelled,
    *,
    sizes: Sequence[Sizes] = GRID,
    seeds: int | Sequence[int] = SEEDS,
    training: ProbeTraining | None = None,
    device: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> ProbeResult:
    """What every network of a grid, trained on one space, gets right on another; all are trained together.

    train, test: spaces, or (X, y). sizes: widths of the hidden layers; () is a linear probe. seeds: how many, or which.
    The same numbers come out whatever else is in the grid, and for any number of threads.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> found = probe_grid((X[:200], y[:200]), (X[200:], y[200:]), sizes=[(), (32, 32)], seeds=2)
    >>> found.chosen_sizes, found.mean > 0.9
    ((32, 32), True)
    """
    return probe_grids(
        [(train, test)],
        sizes=sizes,
        seeds=seeds,
        training=training,
        device=device,
        threads=threads,
        progress=progress,
    )[0]


def probe_grids(
    pairs: Sequence[tuple[Labelled, Labelled]],
    *,
    sizes: Sequence[Sizes] = GRID,
    seeds: int | Sequence[int] = SEEDS,
    training: ProbeTraining | None = None,
    device: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[ProbeResult]:
    """The result of `probe_grid` for each pair of train and test; pairs of equal shape are one batch."""
    from closerlook.encoders.loading import choose_device

    asked = _Asked(
        check_sizes(sizes),
        check_seeds(seeds),
        training or ProbeTraining(),
        count_threads(threads),
        str(choose_device(device)),
    )
    prepared = [_Prepared.of(*pair) for pair in pairs]
    results: dict[int, ProbeResult] = {}
    total = len(prepared) * len(asked.sizes) * len(asked.seeds)
    for part in _stacks(prepared):
        done = len(results) * len(asked.sizes) * len(asked.seeds)
        show = None if progress is None else (lambda now, _, done=done: progress(done + now, total))
        found = _run([prepared[at] for at in part], asked, show)
        results |= dict(zip(part, found, strict=True))
    return [results[at] for at in range(len(prepared))]


def check_sizes(sizes: Sequence[Sizes]) -> tuple[Sizes, ...]:
    """The sizes, each once; InputError where they are none."""
    given = [tuple(one) if _several(one) else (None,) for one in sizes] if _several(sizes) else []
    if not given or not all(is_whole(width) and width > 0 for one in given for width in one):
        raise InputError(f"sizes {sizes!r} arrived; expected widths of hidden layers, such as [(64, 128), (32,), ()]")
    return tuple(dict.fromkeys(tuple(map(int, one)) for one in given))


def check_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """The seeds: those given, or as many from 0 on."""
    given: Sequence[int] = range(seeds) if is_whole(seeds) else list(seeds) if _several(seeds) else []
    if not given or not all(is_whole(seed) and seed >= 0 for seed in given):
        raise InputError(f"seeds {seeds!r} arrived; expected how many, at least 1, or several numbers from 0 on")
    return tuple(dict.fromkeys(int(seed) for seed in given))


def _several(values: object) -> TypeGuard[Iterable[Any]]:
    return isinstance(values, Iterable) and not isinstance(values, str | bytes)


def choose_sizes(held_out: Measured, weights: Sequence[int]) -> int:
    """The place of the sizes with the best mean accuracy on held-out (s, r); of equals that of the fewest weights."""
    means = held_out.mean(axis=1)
    return min(np.flatnonzero(means >= means.max() - 1e-9).tolist(), key=lambda at: (weights[at], at))


@dataclass(frozen=True)
class _Asked:
    sizes: tuple[Sizes, ...]
    seeds: tuple[int, ...]
    training: ProbeTraining
    threads: int
    device: str

    def jobs(self, spaces: int) -> list[Job]:
        return [Job(sizes, seed, at) for at in range(spaces) for sizes in self.sizes for seed in self.seeds]


@dataclass(frozen=True, eq=False)
class _Prepared:
    """Train and test, standardised as train is; y_test: places in test_labels."""

    X: NDArray[np.float32]
    y: Integers
    labels: tuple[Label, ...]
    X_test: NDArray[np.float32]
    y_test: Integers
    test_labels: tuple[Label, ...]

    @classmethod
    def of(cls, train: Labelled, test: Labelled) -> _Prepared:
        (X, y, labels), (X_test, y_test, found) = checked(train, "train"), checked(test, "test")
        if X.shape[1] != X_test.shape[1]:
            raise InputError(f"test has {X_test.shape[1]} columns; expected {X.shape[1]}, as train has")
        if isinstance(labels[0], str) != isinstance(found[0], str):
            raise InputError(f"train has labels such as {labels[0]!r}, test {found[0]!r}; expected the same kind")
        every = tuple(sorted({*labels, *found}))  # all strings or all numbers
        place = {label: at for at, label in enumerate(every)}
        scaler = StandardScaler().fit(X)
        return cls(
            scaler.transform(X).astype(np.float32),
            y,
            labels,
            scaler.transform(X_test).astype(np.float32),
            np.array([place[found[code]] for code in y_test], np.int64),
            every,
        )


def checked(given: Labelled, name: str) -> tuple[NDArray[np.float64], Integers, tuple[Label, ...]]:
    """X (n, d), the place of each label among all of them, and those; InputError says in which of the spaces."""
    X, y = given if isinstance(given, tuple) else (given.X, given.label_names)
    try:
        points = as_points(X)
        labels, codes = as_labels(y, len(points))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    return points, codes, labels


def _stacks(prepared: Sequence[_Prepared]) -> list[list[int]]:
    """Pairs that can be one batch, by place: equal shapes, and no more than memory is meant to hold."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for at, one in enumerate(prepared):
        alike.setdefault((one.X.shape, len(one.labels), one.X_test.shape), []).append(at)
    parts = []
    for places in alike.values():
        first = prepared[places[0]]
        at_once = max(1, STACK_BYTES // (first.X.nbytes + first.X_test.nbytes))
        parts += [places[at : at + at_once] for at in range(0, len(places), at_once)]
    return parts


def _run(prepared: Sequence[_Prepared], asked: _Asked, progress: Progress | None) -> list[ProbeResult]:
    """The results of pairs that are one batch."""
    import torch

    from closerlook.probes.networks import Data, train

    X = torch.from_numpy(np.stack([one.X for one in prepared])).to(asked.device)
    y = torch.from_numpy(np.stack([one.y for one in prepared])).to(asked.device)
    tests = torch.from_numpy(np.stack([one.X_test for one in prepared])).to(asked.device)
    said: dict[Job, Integers] = {}
    jobs = asked.jobs(len(prepared))
    networks = train(
        Data(X, y, len(prepared[0].labels)),
        jobs,
        asked.training,
        threads=asked.threads,
        finish=lambda batch: said.update(_said(batch, tests)),
        progress=progress,
    )
    by_job = {network.job: network for network in networks}
    return [_result(one, at, asked, by_job, said) for at, one in enumerate(prepared)]


def _said(batch: Batch, tests: Tensor) -> dict[Job, Integers]:
    """What each network of a batch says of its test rows, as codes of train's labels."""
    return {job: scores.argmax(-1).cpu().numpy() for job, scores in batch.scores(tests)}


def _result(
    one: _Prepared, at: int, asked: _Asked, networks: dict[Job, Network], said: dict[Job, Integers]
) -> ProbeResult:
    place = np.array([one.test_labels.index(label) for label in one.labels])
    every = [[Job(sizes, seed, at) for seed in asked.seeds] for sizes in asked.sizes]
    accuracy = np.array([[np.mean(place[said[job]] == one.y_test) for job in jobs] for jobs in every])
    held_out = np.array([[networks[job].accuracy for job in jobs] for jobs in every])
    chosen = choose_sizes(held_out, [networks[jobs[0]].n_weights for jobs in every])
    predictions = np.stack([place[said[job]] for job in every[chosen]])
    by_seed = np.stack([_confusion(one.y_test, predicted, len(one.test_labels)) for predicted in predictions])
    confusion: Integers = by_seed.sum(axis=0)
    seen = confusion.sum(axis=1)
    majority = place[np.bincount(one.y).argmax()]
    return ProbeResult(
        one.labels,
        one.test_labels,
        len(one.X),
        len(one.X_test),
        one.X.shape[1],
        asked.sizes,
        asked.seeds,
        accuracy,
        held_out,
        np.array([[networks[job].rounds for job in jobs] for jobs in every]),
        chosen,
        predictions,
        np.array([_macro_f1(counts) for counts in by_seed]),
        np.where(seen > 0, confusion.diagonal() / np.maximum(seen, 1), np.nan),
        confusion,
        float(np.mean(one.y_test == majority)),
        asked.training,
        asked.device,
    )


def _confusion(y: Integers, predicted: Integers, labels: int) -> Integers:
    """(l, l) how often each label, by row, was taken for each, by column."""
    return np.bincount(y * labels + predicted, minlength=labels**2).reshape(labels, labels)


def _macro_f1(confusion: Integers) -> float:
    """The mean F1 of the labels that are there or were predicted."""
    right, all_in_all = confusion.diagonal(), confusion.sum(axis=0) + confusion.sum(axis=1)
    return float(np.mean(2 * right[all_in_all > 0] / all_in_all[all_in_all > 0]))

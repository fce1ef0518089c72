"""The classifier probe of Zhou & Srikumar (2022): MLPs for every shape in a grid and every seed, and their accuracy.

A shape (type `Sizes`) is the tuple of the widths of a network's hidden layers, such as (64, 128).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry.frame import Label, as_labels, as_points
from closerlook.geometry.kernels import count_threads
from closerlook.notebook import html
from closerlook.probes.scaling import fit_scaler, standardise
from closerlook.probes.training import Integers, Job, Network, ProbeTraining, Progress, Sizes, is_whole
from closerlook.progress import progress_bar

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from closerlook.probes.networks import Batch

WIDTHS = (32, 64, 128, 256)
GRID: tuple[Sizes, ...] = tuple((first, second) for first in WIDTHS for second in WIDTHS)
"""The shapes used in the paper: two hidden layers."""

SEEDS = 5
STACK_BYTES = 1 << 28
"""Pairs of train and test share a batch up to this many bytes of vectors. A larger pair is a batch of its own."""

Measured = NDArray[np.float64]


class Vectors(Protocol):
    """A space: labelled vectors."""

    @property
    def X(self) -> NDArray[np.float32]:  # noqa: N802 - the name in `Space`
        """(n, d)."""

    @property
    def label_names(self) -> NDArray[Any]:
        """(n,)."""


Labelled = Vectors | tuple[ArrayLike, ArrayLike]
"""A space, or a pair (X, y)."""


class SizeRow(TypedDict):
    """The results of one network shape, averaged over seeds.

    sizes: the shape. accuracy, sd: mean and standard deviation of the test accuracy. held_out: accuracy on the held-out
    part of train. rounds: the number of the best round, see `ProbeTraining`. chosen: whether this shape was chosen.
    """

    sizes: Sizes
    accuracy: float
    sd: float
    held_out: float
    rounds: float
    chosen: bool


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """The results of a grid of networks that were trained on one space and tested on another.

    labels: the labels of train, sorted. test_labels: all labels that occur in train or in test, sorted.
    n_train, n_test, d: the numbers of train rows, of test rows and of dimensions.
    sizes: the s shapes of networks. seeds: the r seeds.
    accuracy, held_out: (s, r) accuracy on test, and on the held-out part of train.
    rounds: (s, r) the number of the best round of training, see `ProbeTraining`.
    chosen: the index of the shape with the best mean held-out accuracy; ties go to the shape with the fewest weights.
    majority: the test accuracy of always predicting the most frequent label of train.

    The other fields describe the networks of the chosen shape:
    predictions: (r, n_test) the predicted labels, as indices into test_labels.
    macro_f1: (r,) over all labels that occur in test or are predicted.
    by_label: (l,) for each of the l test_labels, the accuracy on its test rows, mean over seeds; NaN without test rows.
    confusion: (l, l) counts summed over seeds; true labels in rows, predicted labels in columns.

    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> probe_grid((X[:200], y[:200]), (X[200:], y[200:]), sizes=[()], seeds=2)  # doctest: +ELLIPSIS
    ProbeResult(100 test rows, accuracy ..., sizes ())
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
        """The shape chosen by held-out accuracy."""
        return self.sizes[self.chosen]

    @property
    def mean(self) -> float:
        """The test accuracy of the chosen shape, mean over seeds."""
        return float(self.accuracy[self.chosen].mean())

    @property
    def deviation(self) -> float:
        """The standard deviation of the test accuracy of the chosen shape over seeds; NaN with one seed."""
        return deviation(self.accuracy[self.chosen])

    @property
    def unseen(self) -> tuple[Label, ...]:
        """Labels of test that train does not have: no probe can predict them."""
        return tuple(label for label in self.test_labels if label not in set(self.labels))

    def __repr__(self) -> str:
        return f"ProbeResult({self.n_test} test rows, accuracy {self.mean:.3f}, sizes {self.chosen_sizes})"

    def to_frame(self) -> pd.DataFrame:
        """The rows of `table`."""
        import pandas as pd

        return pd.DataFrame(self.table())

    def _repr_html_(self) -> str:
        return html(repr(self), self.to_frame())

    def table(self) -> list[SizeRow]:
        """One row for each shape."""
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
        """Plain values for JSON, without the predictions."""
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
    """Train a network for every shape and every seed on one space, and test it on another.

    train, test: spaces, or pairs (X, y). sizes: a list of shapes, which are tuples of hidden-layer widths; () is a
    linear probe. seeds: the number of seeds, or a list of seeds. progress: called with the number of networks trained
    and the total.

    Each network is trained independently: its result does not depend on the other networks or the number of threads.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> result = probe_grid((X[:200], y[:200]), (X[200:], y[200:]), sizes=[(), (32, 32)], seeds=2)
    >>> result.chosen_sizes, result.mean > 0.9
    ((32, 32), True)
    """
    options = {"sizes": sizes, "seeds": seeds, "training": training, "device": device, "threads": threads}
    with progress_bar("networks", progress) as show:
        return probe_grids([(train, test)], **options, progress=show)[0]  # type: ignore[arg-type]


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
    """The result of `probe_grid` for each pair of train and test.

    Pairs with the same array shapes and number of labels in train are trained together, for speed, as far as memory
    allows (STACK_BYTES).

    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> pairs = [((rows[:200], y[:200]), (rows[200:], y[200:])) for rows in (X, X[::-1])]
    >>> fits, shuffled = probe_grids(pairs, sizes=[()], seeds=1)
    >>> fits.mean > 0.9 > 0.7 > shuffled.mean
    True
    """
    from closerlook.encoders.loading import choose_device

    grid = _Grid(
        check_sizes(sizes),
        check_seeds(seeds),
        training or ProbeTraining(),
        count_threads(threads),
        str(choose_device(device)),
    )
    prepared = [_Prepared.of(*pair) for pair in pairs]
    results: dict[int, ProbeResult] = {}
    total = len(prepared) * len(grid.sizes) * len(grid.seeds)
    for part in _batches_of_pairs(prepared):
        done = len(results) * len(grid.sizes) * len(grid.seeds)
        report = None if progress is None else (lambda count, _, done=done: progress(done + count, total))
        batch = _run([prepared[at] for at in part], grid, report)
        results |= dict(zip(part, batch, strict=True))
    return [results[at] for at in range(len(prepared))]


def check_sizes(sizes: Sequence[Sizes]) -> tuple[Sizes, ...]:
    """The distinct network shapes; InputError if they are not tuples of hidden-layer widths."""
    given = [tuple(widths) if _is_list(widths) else (0,) for widths in sizes] if isinstance(sizes, Iterable) else []
    if not given or not all(is_whole(width) and width > 0 for widths in given for width in widths):
        raise InputError(
            f"invalid sizes {sizes!r}; expected a list of tuples of layer widths, such as [(64, 128), (32,), ()]"
        )
    return tuple(dict.fromkeys(tuple(map(int, widths)) for widths in given))


def check_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """The seeds without duplicates: the given list, or 0, 1, ..., n - 1 for a number n."""
    given: Sequence[int] = range(seeds) if is_whole(seeds) else list(seeds) if _is_list(seeds) else []
    if not given or not all(is_whole(seed) and seed >= 0 for seed in given):
        raise InputError(
            f"invalid seeds {seeds!r}; expected a number of seeds, at least 1, or a list of integers, at least 0"
        )
    return tuple(dict.fromkeys(int(seed) for seed in given))


def _is_list(values: object) -> TypeGuard[Iterable[int]]:
    """Whether a value is an iterable other than a string."""
    return isinstance(values, Iterable) and not isinstance(values, str | bytes)


def choose_sizes(held_out: Measured, weights: Sequence[int]) -> int:
    """The index of the shape with the highest held-out accuracy, mean over seeds.

    held_out: (s, r) accuracies of s shapes and r seeds. weights: (s,) the numbers of weights; the smaller wins a tie.
    """
    means = held_out.mean(axis=1)
    return min(np.flatnonzero(means >= means.max() - 1e-9).tolist(), key=lambda at: (weights[at], at))


@dataclass(frozen=True)
class _Grid:
    """What to train: shapes and seeds, and the settings of training."""

    sizes: tuple[Sizes, ...]
    seeds: tuple[int, ...]
    training: ProbeTraining
    threads: int
    device: str

    def jobs(self, spaces: int) -> list[Job]:
        return [Job(sizes, seed, at) for at in range(spaces) for sizes in self.sizes for seed in self.seeds]


@dataclass(frozen=True, eq=False)
class _Prepared:
    """Train and test vectors, both standardised with the mean and standard deviation of train.

    y: indices into labels. y_test: indices into test_labels.
    """

    X: NDArray[np.float32]
    y: Integers
    labels: tuple[Label, ...]
    X_test: NDArray[np.float32]
    y_test: Integers
    test_labels: tuple[Label, ...]

    @classmethod
    def of(cls, train: Labelled, test: Labelled) -> _Prepared:

        (X, y, labels), (X_test, y_test, present) = checked(train, "train"), checked(test, "test")
        if X.shape[1] != X_test.shape[1]:
            raise InputError(f"test has {X_test.shape[1]} columns; expected {X.shape[1]}, as train has")
        if isinstance(labels[0], str) != isinstance(present[0], str):
            raise InputError(
                f"train has labels such as {labels[0]!r}, test {present[0]!r}; expected labels of the same type"
            )
        all_labels = tuple(sorted({*labels, *present}))  # all strings or all numbers
        index = {label: at for at, label in enumerate(all_labels)}
        scaler = fit_scaler(X)
        return cls(
            standardise(scaler, X),
            y,
            labels,
            standardise(scaler, X_test, "X_test"),
            np.array([index[present[code]] for code in y_test], np.int64),
            all_labels,
        )


def checked(given: Labelled, name: str) -> tuple[NDArray[np.float64], Integers, tuple[Label, ...]]:
    """X (n, d), the label index of each row, and the labels. name: prefix of error messages, such as 'train'."""
    X, y = given if isinstance(given, tuple) else (given.X, given.label_names)
    try:
        points = as_points(X)
        labels, codes = as_labels(y, len(points))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    return points, codes, labels


def _batches_of_pairs(prepared: Sequence[_Prepared]) -> list[list[int]]:
    """The indices of the pairs in each batch.

    Pairs in a batch have the same array shapes and the same number of labels in train. Together they have at most
    STACK_BYTES of vectors, except a single pair that is larger.
    """
    same_shape: dict[tuple[object, ...], list[int]] = {}
    for at, pair in enumerate(prepared):
        same_shape.setdefault((pair.X.shape, len(pair.labels), pair.X_test.shape), []).append(at)
    parts = []
    for places in same_shape.values():
        first = prepared[places[0]]
        at_once = max(1, STACK_BYTES // (first.X.nbytes + first.X_test.nbytes))
        parts += [places[at : at + at_once] for at in range(0, len(places), at_once)]
    return parts


def _run(prepared: Sequence[_Prepared], grid: _Grid, progress: Progress | None) -> list[ProbeResult]:
    """The results of the pairs of train and test in one batch."""
    import torch

    from closerlook.probes.networks import Data, train

    X = torch.from_numpy(np.stack([pair.X for pair in prepared])).to(grid.device)
    y = torch.from_numpy(np.stack([pair.y for pair in prepared])).to(grid.device)
    tests = torch.from_numpy(np.stack([pair.X_test for pair in prepared])).to(grid.device)
    predictions: dict[Job, Integers] = {}
    jobs = grid.jobs(len(prepared))
    networks = train(
        Data(X, y, len(prepared[0].labels)),
        jobs,
        grid.training,
        threads=grid.threads,
        finish=lambda batch: predictions.update(_predictions(batch, tests)),
        progress=progress,
    )
    by_job = {network.job: network for network in networks}
    return [_result(pair, at, grid, by_job, predictions) for at, pair in enumerate(prepared)]


def _predictions(batch: Batch, tests: Tensor) -> dict[Job, Integers]:
    """For each network, the predicted label of each test row, as an index into the labels of train."""
    return {job: scores.argmax(-1).cpu().numpy() for job, scores in batch.scores(tests)}


def _result(
    pair: _Prepared, at: int, grid: _Grid, networks: dict[Job, Network], predicted_codes: dict[Job, Integers]
) -> ProbeResult:
    """The result of one pair of train and test."""
    index = np.array([pair.test_labels.index(label) for label in pair.labels])
    jobs_by_size = [[Job(sizes, seed, at) for seed in grid.seeds] for sizes in grid.sizes]
    predicted = {job: index[predicted_codes[job]] for jobs in jobs_by_size for job in jobs}
    accuracy = np.array([[np.mean(predicted[job] == pair.y_test) for job in jobs] for jobs in jobs_by_size])
    held_out = np.array([[networks[job].accuracy for job in jobs] for jobs in jobs_by_size])
    chosen = choose_sizes(held_out, [networks[jobs[0]].n_weights for jobs in jobs_by_size])
    predictions = np.stack([predicted[job] for job in jobs_by_size[chosen]])
    by_seed = np.stack([_confusion(pair.y_test, codes, len(pair.test_labels)) for codes in predictions])
    confusion: Integers = by_seed.sum(axis=0)
    seen = confusion.sum(axis=1)
    majority = index[np.bincount(pair.y).argmax()]
    return ProbeResult(
        pair.labels,
        pair.test_labels,
        len(pair.X),
        len(pair.X_test),
        pair.X.shape[1],
        grid.sizes,
        grid.seeds,
        accuracy,
        held_out,
        np.array([[networks[job].rounds for job in jobs] for jobs in jobs_by_size]),
        chosen,
        predictions,
        np.array([_macro_f1(counts) for counts in by_seed]),
        np.where(seen > 0, confusion.diagonal() / np.maximum(seen, 1), np.nan),
        confusion,
        float(np.mean(pair.y_test == majority)),
        grid.training,
        grid.device,
    )


def _confusion(y: Integers, predicted: Integers, labels: int) -> Integers:
    """(l, l) how often each label (row) was predicted as each label (column)."""
    return np.bincount(y * labels + predicted, minlength=labels**2).reshape(labels, labels)


def _macro_f1(confusion: Integers) -> float:
    """The mean F1 score over the labels that occur or were predicted."""
    correct, totals = confusion.diagonal(), confusion.sum(axis=0) + confusion.sum(axis=1)
    return float(np.mean(2 * correct[totals > 0] / totals[totals > 0]))

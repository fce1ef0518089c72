"""Controls for a classifier probe: selectivity against a control task (Hewitt & Liang 2019), and the number of bits
needed to send the labels given the vectors (Voita & Titov 2020).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry.frame import Label, text_array
from closerlook.geometry.kernels import count_threads
from closerlook.probes.grid import (
    SEEDS,
    Labelled,
    Measured,
    ProbeResult,
    check_seeds,
    check_sizes,
    checked,
    deviation,
)
from closerlook.probes.scaling import fit_scaler, standardise
from closerlook.probes.training import Integers, Job, ProbeTraining, Progress, Sizes

BLOCKS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""The share of the rows at which each block of the online code ends."""

CODE_SIZES: Sizes = (256, 256)


# ---- control tasks ----


@dataclass(frozen=True, eq=False)
class Selectivity:
    """Accuracy of a probe on the task and, with the same sizes, on its control task.

    task, control: (r,) accuracy by seed. known: the share of test rows whose word type occurs in train; only these can
    be memorised.

    >>> result = Selectivity(task=np.array([0.9, 0.92]), control=np.array([0.6, 0.62]), sizes=(64,), known=1.0)
    >>> result
    Selectivity(0.300: task 0.910, control 0.610)
    """

    task: Measured
    control: Measured
    sizes: Sizes
    known: float

    def __repr__(self) -> str:
        task, control = self.task.mean(), self.control.mean()
        return f"Selectivity({task - control:.3f}: task {task:.3f}, control {control:.3f})"

    @property
    def selectivity(self) -> Measured:
        """(r,) the accuracy on the task minus that on the control task, by seed."""
        return self.task - self.control

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "selectivity": float(self.selectivity.mean()),
            "sd": deviation(self.selectivity),
            "task_accuracy": float(self.task.mean()),
            "control_accuracy": float(self.control.mean()),
            "sizes": self.sizes,
            "known_types": self.known,
        }


def control_labels(types: Sequence[ArrayLike], y: ArrayLike, seed: int) -> list[NDArray[np.generic]]:
    """A random label for each word type, returned as one array of labels for each list of types.

    types: word types of train, of test, and so on. y: the labels of train; labels are drawn with their
    frequencies there. The label of a type depends on the seed and on the set of all types.

    >>> train, test = control_labels([["a", "b", "a"], ["b"]], ["NOUN", "VERB", "NOUN"], seed=0)
    >>> bool(train[0] == train[2]), bool(train[1] == test[0])
    (True, True)
    """
    lists = [text_array([str(word) for word in np.asarray(words, dtype=np.object_)]) for words in types]
    vocabulary, place = np.unique(np.concatenate(lists), return_inverse=True)
    drawn = np.random.default_rng([seed, 3]).choice(np.asarray(y), size=len(vocabulary))
    return np.split(drawn[place.reshape(-1)], np.cumsum([len(words) for words in lists])[:-1])


def measure_selectivity(
    train: Labelled,
    test: Labelled,
    types: tuple[ArrayLike, ArrayLike],
    *,
    result: ProbeResult,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Selectivity:
    """Selectivity of a probe: its accuracy on the task minus its accuracy on random labels of word types.

    types: (n,) and (m,) the words of the rows of train and test. result: the probe on the task. Each of its seeds
    has its own control task.

    >>> from closerlook.probes import probe_grid
    >>> rng = np.random.default_rng(0)
    >>> words, X = rng.choice([*"abcdefgh"], 400), rng.normal(size=(400, 4))
    >>> y = np.where(X[:, 0] > 0, "NOUN", "VERB")  # depends on the vector, not on the word
    >>> train, test = (X[:300], y[:300]), (X[300:], y[300:])
    >>> probe = probe_grid(train, test, sizes=[(32,)], seeds=1)
    >>> result = measure_selectivity(train, test, (words[:300], words[300:]), result=probe)
    >>> bool(result.selectivity.mean() > 0.2)
    True
    """
    (X, y, labels), (X_test, _, _) = checked(train, "train"), checked(test, "test")
    for name, words, rows in (("train", types[0], X), ("test", types[1], X_test)):
        if len(np.asarray(words)) != len(rows):
            raise InputError(f"{name} has {len(rows)} rows and {len(np.asarray(words))} word types; expected one each")
    networks = _NetworksBySeed(result.chosen_sizes, result.seeds, len(labels), result.training, result.device, threads)
    drawn = [control_labels(types, y, seed) for seed in result.seeds]
    scaler, r = fit_scaler(X), len(result.seeds)
    scaled, tests = standardise(scaler, X), standardise(scaler, X_test, "X_test")
    scores = networks.scores(
        np.broadcast_to(scaled, (r, *scaled.shape)),
        np.stack([control for control, _ in drawn]),
        np.broadcast_to(tests, (r, *tests.shape)),
        progress,
    )
    right = [np.mean(logits.argmax(axis=1) == control) for logits, (_, control) in zip(scores, drawn, strict=True)]
    train_words = {str(word) for word in np.asarray(types[0], dtype=np.object_)}
    known = np.array([str(word) in train_words for word in np.asarray(types[1], dtype=np.object_)])
    return Selectivity(result.accuracy[result.chosen], np.array(right), result.chosen_sizes, float(known.mean()))


# ---- description length ----


@dataclass(frozen=True, eq=False)
class CodeLength:
    """The online code of a space's labels: each block is sent with a probe trained on all rows before it.

    bits: (r,) by seed; each seed has its own order of the rows. uniform: bits of the uniform code, without vectors.
    ends: the row at which each block ends. by_block: (r, b) bits of each block; the first is sent with the uniform
    code.

    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> code = online_code((X, X[:, 0] > 0), sizes=(), seeds=1)
    >>> code  # doctest: +ELLIPSIS
    CodeLength(... bits, compression ...)
    >>> code.uniform, code.ends[-3:]
    (200.0, (50, 100, 200))
    """

    bits: Measured
    uniform: float
    ends: tuple[int, ...]
    by_block: Measured
    labels: tuple[Label, ...]
    sizes: Sizes
    training: ProbeTraining

    def __repr__(self) -> str:
        return f"CodeLength({self.bits.mean():.0f} bits, compression {self.compression.mean():.2f})"

    @property
    def compression(self) -> Measured:
        """(r,) bits of the uniform code divided by bits of the online code."""
        return self.uniform / self.bits if self.uniform else np.ones_like(self.bits)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "bits": float(self.bits.mean()),
            "bits_sd": deviation(self.bits),
            "uniform_bits": self.uniform,
            "compression": float(self.compression.mean()),
            "compression_sd": deviation(self.compression),
            "ends": self.ends,
            "bits_by_block": self.by_block.mean(axis=0).tolist(),
            "sizes": self.sizes,
            "training": asdict(self.training),
        }


def online_code(
    train: Labelled,
    *,
    sizes: Sizes = CODE_SIZES,
    seeds: int | Sequence[int] = SEEDS,
    blocks: Sequence[float] = BLOCKS,
    training: ProbeTraining | None = None,
    device: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> CodeLength:
    """The number of bits needed to send the labels of a space, given its vectors.

    The fewer bits, the easier it is to predict the labels from the vectors.

    A probe trained on t rows gives each label of the next block a probability. We mix it with the uniform distribution
    at the rate 1 / (t + 1), which bounds the cost of a probe trained on few rows.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> easy, random = (online_code((X, y), sizes=(32,), seeds=1) for y in (X[:, 0] > 0, rng.random(200) > 0.5))
    >>> bool(easy.bits.mean() < 150 < random.bits.mean())
    True
    """
    X, y, labels = checked(train, "train")
    (shape,), chosen = check_sizes([sizes]), check_seeds(seeds)
    networks = _NetworksBySeed(shape, chosen, len(labels), training or ProbeTraining(criterion="loss"), device, threads)
    rows = standardise(fit_scaler(X), X)
    ends = block_ends(len(y), blocks)
    orders = np.stack([np.random.default_rng([seed, 4]).permutation(len(y)) for seed in chosen])
    by_block = np.zeros((len(chosen), len(ends)))
    by_block[:, 0] = ends[0] * math.log2(len(labels))
    for at, (start, end) in enumerate(pairwise(ends), start=1):
        seen, coming = orders[:, :start], orders[:, start:end]
        scores = networks.scores(rows[seen], y[seen], rows[coming])
        by_block[:, at] = [_bits(logits, y[sent], 1 / (start + 1)) for logits, sent in zip(scores, coming, strict=True)]
        if progress:
            progress(at, len(ends) - 1)
    uniform = len(y) * math.log2(len(labels))
    return CodeLength(by_block.sum(axis=1), uniform, tuple(ends), by_block, labels, shape, networks.training)


def block_ends(n: int, blocks: Sequence[float] = BLOCKS) -> list[int]:
    """The rows at which the blocks of n rows end: shares rounded up, without repetition, the last at n.

    >>> block_ends(100)
    [1, 2, 4, 7, 13, 25, 50, 100]
    """
    if not blocks or min(blocks) <= 0 or max(blocks) > 1:
        raise InputError(f"invalid blocks {list(blocks)}; expected shares above 0 and up to 1")
    return sorted({math.ceil(share * n) for share in blocks} | {n})


def _bits(scores: NDArray[np.float32], y: Integers, rate: float) -> float:
    """The bits of the true labels under these logits, mixed with the uniform distribution."""
    wide = scores.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    probability = np.exp(wide[np.arange(len(y)), y]) / np.exp(wide).sum(axis=1)
    return float(-np.log2((1 - rate) * probability + rate / scores.shape[1]).sum())


# ---- training, for both ----


@dataclass(frozen=True)
class _NetworksBySeed:
    """Networks of one shape, one for each seed, each trained on its own space and labels."""

    sizes: Sizes
    seeds: tuple[int, ...]
    k: int
    training: ProbeTraining
    device: str
    threads: int | None

    def scores(
        self, X: NDArray[np.float32], y: Integers, tests: NDArray[np.float32], progress: Progress | None = None
    ) -> list[NDArray[np.float32]]:
        """The logits (m, k) of each seed for its tests: (r, m, d), trained on X: (r, n, d) and y: (r, n)."""
        import torch

        from closerlook.encoders.loading import choose_device
        from closerlook.probes.networks import Batch, Data, train

        device = choose_device(self.device)
        data = Data(torch.tensor(X, device=device), torch.tensor(y, device=device), self.k)
        rows = torch.tensor(tests, device=device)
        scores_of: dict[Job, NDArray[np.float32]] = {}

        def keep(batch: Batch) -> None:
            scores_of.update({job: scores.cpu().numpy() for job, scores in batch.scores(rows)})

        jobs = [Job(self.sizes, seed, at) for at, seed in enumerate(self.seeds)]
        threads = count_threads(self.threads)
        train(data, jobs, self.training, threads=threads, slots=len(jobs), finish=keep, progress=progress)
        return [scores_of[job] for job in jobs]

"""Controls for a classifier probe: what it can memorise (Hewitt & Liang 2019), how many bits the labels take given the
vectors (Voita & Titov 2020).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import StandardScaler

from closerlook.errors import InputError
from closerlook.geometry.frame import Label
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
from closerlook.probes.training import Integers, Job, ProbeTraining, Progress, Sizes

BLOCKS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Up to which share of the rows each block of the online code goes."""

CODE_SIZES: Sizes = (256, 256)


# ---- control tasks ----


@dataclass(frozen=True, eq=False)
class Selectivity:
    """A probe on the task and, at the same sizes, on its control task.

    control: accuracy on the control task by seed. selectivity: (r,) the task's accuracy minus the control's. known: the
    share of test rows whose word type train has: only those can be memorised.
    """

    task: Measured
    control: Measured
    sizes: Sizes
    known: float

    @property
    def selectivity(self) -> Measured:
        """(r,) by seed."""
        return self.task - self.control

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "selectivity": float(self.selectivity.mean()),
            "sd": deviation(self.selectivity),
            "task_accuracy": float(self.task.mean()),
            "control_accuracy": float(self.control.mean()),
            "sizes": self.sizes,
            "known_types": self.known,
        }


def control_labels(types: Sequence[ArrayLike], y: ArrayLike, seed: int) -> list[NDArray[Any]]:
    """A random label for each word type, drawn as often as train has it; for each of the lists of types its rows'.

    types: of train, of test, ... y: train's labels. The label of a type depends on the seed and on all types there are.

    >>> train, test = control_labels([["a", "b", "a"], ["b"]], ["NOUN", "VERB", "NOUN"], seed=0)
    >>> bool(train[0] == train[2]), bool(train[1] == test[0])
    (True, True)
    """
    lists = [np.asarray(one, dtype=np.str_) for one in types]
    every, place = np.unique(np.concatenate(lists), return_inverse=True)
    drawn = np.random.default_rng([seed, 3]).choice(np.asarray(y), size=len(every))
    return np.split(drawn[place.reshape(-1)], np.cumsum([len(one) for one in lists])[:-1])


def measure_selectivity(
    train: Labelled,
    test: Labelled,
    types: tuple[ArrayLike, ArrayLike],
    *,
    result: ProbeResult,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Selectivity:
    """How much better the probe of a result does on its task than on random labels of word types.

    types: (n,) and (m,) the words behind the rows of train and test. Each seed of the result has its own control task.
    """
    (X, y, labels), (X_test, _, _) = checked(train, "train"), checked(test, "test")
    for name, words, rows in (("train", types[0], X), ("test", types[1], X_test)):
        if len(np.asarray(words)) != len(rows):
            raise InputError(f"{name} has {len(rows)} rows and {len(np.asarray(words))} word types; expected one each")
    asked = _Asked(result.chosen_sizes, result.seeds, len(labels), result.training, result.device, threads)
    drawn = [control_labels(types, y, seed) for seed in result.seeds]
    scaler, r = StandardScaler().fit(X), len(result.seeds)
    rows, tests = (scaler.transform(one).astype(np.float32) for one in (X, X_test))
    scores = asked.scores(
        np.broadcast_to(rows, (r, *rows.shape)),
        np.stack([control for control, _ in drawn]),
        np.broadcast_to(tests, (r, *tests.shape)),
        progress,
    )
    right = [np.mean(one.argmax(axis=1) == control) for one, (_, control) in zip(scores, drawn, strict=True)]
    known = np.isin(np.asarray(types[1], dtype=np.str_), np.asarray(types[0], dtype=np.str_))
    return Selectivity(result.accuracy[result.chosen], np.array(right), result.chosen_sizes, float(known.mean()))


# ---- description length ----


@dataclass(frozen=True, eq=False)
class CodeLength:
    """The online code of a space's labels: each block is sent with a probe trained on all rows before it.

    bits: (r,) by seed, each with its own order of the rows. uniform: bits without any vectors. compression: (r,).
    ends: where blocks end. by_block: (r, b) bits of each block; the first is sent with the uniform code.
    """

    bits: Measured
    uniform: float
    ends: tuple[int, ...]
    by_block: Measured
    labels: tuple[Label, ...]
    sizes: Sizes
    training: ProbeTraining

    @property
    def compression(self) -> Measured:
        """(r,) the uniform code's bits over these."""
        return self.uniform / self.bits if self.uniform else np.ones_like(self.bits)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
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
    """How many bits the labels of a space take, given its vectors: the fewer, the easier they are to read off.

    A probe that was trained on t rows gives each label of the next block a probability; it is mixed with the uniform
    one at the rate 1 / (t + 1), so that a probe that has seen next to nothing cannot cost without limit (ours).
    """
    X, y, labels = checked(train, "train")
    (shape,), chosen = check_sizes([sizes]), check_seeds(seeds)
    asked = _Asked(shape, chosen, len(labels), training or ProbeTraining(criterion="loss"), device, threads)
    rows = StandardScaler().fit_transform(X).astype(np.float32)
    ends = block_ends(len(y), blocks)
    orders = np.stack([np.random.default_rng([seed, 4]).permutation(len(y)) for seed in chosen])
    by_block = np.zeros((len(chosen), len(ends)))
    by_block[:, 0] = ends[0] * math.log2(len(labels))
    for at, (start, end) in enumerate(pairwise(ends), start=1):
        seen, coming = orders[:, :start], orders[:, start:end]
        scores = asked.scores(rows[seen], y[seen], rows[coming])
        by_block[:, at] = [_bits(one, y[sent], 1 / (start + 1)) for one, sent in zip(scores, coming, strict=True)]
        if progress:
            progress(at, len(ends) - 1)
    uniform = len(y) * math.log2(len(labels))
    return CodeLength(by_block.sum(axis=1), uniform, tuple(ends), by_block, labels, shape, asked.training)


def block_ends(n: int, blocks: Sequence[float] = BLOCKS) -> list[int]:
    """Where the blocks of n rows end: shares rounded up, each end once, the last at n.

    >>> block_ends(100)
    [1, 2, 4, 7, 13, 25, 50, 100]
    """
    if not blocks or min(blocks) <= 0 or max(blocks) > 1:
        raise InputError(f"blocks {list(blocks)} arrived; expected shares above 0 and up to 1")
    return sorted({math.ceil(share * n) for share in blocks} | {n})


def _bits(scores: NDArray[np.float32], y: Integers, mixed: float) -> float:
    """What the true labels cost under these logits, mixed with the uniform distribution."""
    wide = scores.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    likely = np.exp(wide[np.arange(len(y)), y]) / np.exp(wide).sum(axis=1)
    return float(-np.log2((1 - mixed) * likely + mixed / scores.shape[1]).sum())


# ---- what both train ----


@dataclass(frozen=True)
class _Asked:
    """Networks of one shape, one for each seed, each on a space and labels of its own."""

    sizes: Sizes
    seeds: tuple[int, ...]
    k: int
    training: ProbeTraining
    device: str
    threads: int | None

    def scores(
        self, X: NDArray[np.float32], y: Integers, tests: NDArray[np.float32], progress: Progress | None = None
    ) -> list[NDArray[np.float32]]:
        """Each seed's logits (m, k) for its tests: (r, m, d), trained on its rows of X: (r, n, d) and y: (r, n)."""
        import torch

        from closerlook.encoders.loading import choose_device
        from closerlook.probes.networks import Batch, Data, train

        place = choose_device(self.device)
        data = Data(torch.tensor(X, device=place), torch.tensor(y, device=place), self.k)
        rows = torch.tensor(tests, device=place)
        found: dict[Job, NDArray[np.float32]] = {}

        def keep(batch: Batch) -> None:
            found.update({job: scores.cpu().numpy() for job, scores in batch.scores(rows)})

        jobs = [Job(self.sizes, seed, at) for at, seed in enumerate(self.seeds)]
        train(data, jobs, self.training, threads=count_threads(self.threads), finish=keep, progress=progress)
        return [found[job] for job in jobs]

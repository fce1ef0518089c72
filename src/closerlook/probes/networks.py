"""Many small networks trained together: those of one shape are one batched matrix product for each layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from closerlook.probes.training import (
    ROUND,
    TOL,
    Criterion,
    Floats,
    Integers,
    Job,
    Network,
    Progress,
    Sizes,
    Training,
    hold_out,
)

CPU_BYTES, CUDA_BYTES = 1 << 24, 1 << 31
"""What one batch of networks may take with its optimiser: a CPU is fastest where that stays near the caches."""


@dataclass(frozen=True, eq=False)
class Data:
    """What networks are trained on: spaces X (s, n, d), standardised, and labels y (s, n), numbers below k."""

    X: Tensor
    y: Tensor
    k: int

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.X.shape[1])


def train(
    data: Data,
    jobs: Sequence[Job],
    training: Training,
    *,
    threads: int = 1,
    finish: Callable[[Batch], None] | None = None,
    progress: Progress | None = None,
) -> list[Network]:
    """The networks of some jobs, in their order; each is what it would be if it were trained alone.

    Random numbers come from each network's own seed; on a CPU every batch is computed by one thread, several batches
    at a time, so that neither their number nor the company of other networks changes a bit. finish: called with each
    batch once its weights are the best ones.
    """

    def run(part: list[Job]) -> list[Network]:
        batch = Batch(data, part, training)
        batch.train()
        if finish:
            finish(batch)
        return batch.networks()

    found: dict[Job, Network] = {}
    with _mapped(run, _batches(data, jobs, threads), threads if data.X.device.type == "cpu" else 0) as batches:
        for networks in batches:
            found |= {network.job: network for network in networks}
            if progress:
                progress(len(found), len(jobs))
    return [found[job] for job in jobs]


@contextmanager
def _mapped(
    run: Callable[[list[Job]], list[Network]], parts: list[list[Job]], threads: int
) -> Iterator[Iterator[list[Network]]]:
    """The results one after the other: from so many threads, on each of which torch keeps to itself; 0: from this."""
    if not threads:
        yield map(run, parts)
        return
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield pool.map(run, parts)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)


def _batches(data: Data, jobs: Sequence[Job], threads: int) -> list[list[Job]]:
    """Jobs of one shape together, no more than memory is meant to hold; the largest first; work for every thread."""
    on_cpu = data.X.device.type == "cpu"
    limit = CPU_BYTES if on_cpu else CUDA_BYTES
    spare = [len(np.unique(y)) for y in data.y.cpu().numpy()]  # decides how many rows can be held out
    alike: dict[tuple[Sizes, int], list[Job]] = {}
    for job in dict.fromkeys(jobs):
        alike.setdefault((job.sizes, spare[job.space]), []).append(job)
    parts = []
    for shape in sorted(alike, key=lambda shape: -_parameters(shape[0], data)):
        at_once = max(1, limit // (4 * 4 * _parameters(shape[0], data)))
        if on_cpu and len(alike) < threads:
            at_once = min(at_once, math.ceil(len(alike[shape]) / threads))
        parts += [alike[shape][at : at + at_once] for at in range(0, len(alike[shape]), at_once)]
    return parts


def _widths(sizes: Sizes, data: Data) -> list[tuple[int, int]]:
    """Fan in and fan out of each layer."""
    every = [int(data.X.shape[2]), *sizes, data.k]
    return list(pairwise(every))


def _parameters(sizes: Sizes, data: Data) -> int:
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in _widths(sizes, data))


# ---- one batch ----


@dataclass(eq=False)
class Best:
    """The best round so far of each network of a batch: its weights, how it did; and since when nothing was gained."""

    weights: list[Tensor]
    accuracy: Floats
    loss: Floats
    rounds: Integers
    top_accuracy: Floats
    least_loss: Floats
    gained: Integers

    @classmethod
    def of(cls, weights: list[Tensor]) -> Best:
        """Before anything was judged."""
        g = len(weights[0])
        worst, zeros = np.full(g, np.inf, np.float32), np.zeros(g, np.int64)
        copies = [w.clone() for w in weights]
        return cls(copies, -worst, worst.copy(), zeros, -worst, worst.copy(), zeros.copy())

    def renew(
        self, places: Integers, accuracy: Floats, loss: Floats, *, current: Sequence[Tensor], turn: int, by: Criterion
    ) -> None:
        """Take in how the networks at these places did in a round."""
        gain = (accuracy > self.top_accuracy[places]) | (loss < self.least_loss[places] - TOL)
        self.gained[places[gain]] = turn
        self.top_accuracy[places] = np.maximum(self.top_accuracy[places], accuracy)
        self.least_loss[places[gain]] = np.minimum(self.least_loss[places], loss)[gain]
        level = accuracy == self.accuracy[places]
        better = loss < self.loss[places]
        if by == "accuracy":
            better = (accuracy > self.accuracy[places]) | (level & better)
        at = places[better]
        self.accuracy[at], self.loss[at], self.rounds[at] = accuracy[better], loss[better], turn
        kept, new = torch.from_numpy(at), torch.from_numpy(np.flatnonzero(better))
        for best, weight in zip(self.weights, current, strict=True):
            best[kept.to(best.device)] = weight[new.to(weight.device)]


class Batch:
    """Networks of one shape, trained side by side; one that has stopped leaves the products, not the batch."""

    def __init__(self, data: Data, jobs: Sequence[Job], training: Training) -> None:
        self.data, self.jobs, self.training = data, list(jobs), training
        self.device = data.X.device
        y = data.y.cpu().numpy()
        self.parts = [hold_out(y[job.space], training.held_out, job.seed) for job in jobs]
        self.orders = [np.random.default_rng([job.seed, 2]) for job in jobs]
        self.rows, self.y = data.X.reshape(-1, data.X.shape[2]), data.y.flatten()
        weights = self._initial()
        self.best = Best.of(weights)
        self._go_on(np.arange(len(jobs)), weights)

    def _initial(self) -> list[Tensor]:
        """Weights and biases in turn, each with the networks along its first axis; Glorot's, as in scikit-learn."""
        widths = _widths(self.jobs[0].sizes, self.data)
        streams = [np.random.default_rng([job.seed, 1, *job.sizes]) for job in self.jobs]
        tensors = []
        for at, (fan_in, fan_out) in enumerate(widths):
            bound = math.sqrt((6 if at + 1 < len(widths) else 2) / (fan_in + fan_out))
            drawn = [stream.uniform(-bound, bound, (fan_in, fan_out)) for stream in streams]
            tensors.append(torch.from_numpy(np.stack(drawn).astype(np.float32)).to(self.device))
            tensors.append(torch.zeros(len(streams), 1, fan_out, device=self.device))
        return tensors

    def _go_on(self, active: Integers, weights: list[Tensor]) -> None:
        """Train these networks from now on, an optimiser that has seen nothing yet for all of them."""
        self.active = active
        self.weights = [w.requires_grad_() for w in weights]
        self.optimiser = torch.optim.AdamW(
            self.weights, lr=self.training.learning_rate, weight_decay=self.training.weight_decay, fused=True
        )
        held = [self.parts[at][1] + self._offset(at) for at in active]
        self.held = torch.from_numpy(np.stack(held)).to(self.device)
        self.held_y = self.y[self.held]

    def _offset(self, at: int | np.integer) -> int:
        return self.jobs[at].space * self.data.n

    def train(self) -> None:
        """Every network trained until it stops gaining, with the weights of its best round."""
        self._judge(0)
        for turn in range(1, self.training.max_rounds + 1):
            for _ in range(self._passes()):
                for rows in torch.split(self._order(), self.training.batch_size, dim=1):
                    self._step(rows)
            self._judge(turn)
            stay = self.best.gained[self.active] + self.training.patience > turn
            if not stay.any():
                break
            if not stay.all():
                self._leave(stay)
        self.weights = []

    def _passes(self) -> int:
        steps = math.ceil(len(self.parts[0][0]) / self.training.batch_size)
        return math.ceil(ROUND / steps)

    def _order(self) -> Tensor:
        """(g, n) the rows of a pass for each active network, shuffled by its seed."""
        rows = [self.orders[at].permutation(self.parts[at][0]) + self._offset(at) for at in self.active]
        return torch.from_numpy(np.stack(rows)).to(self.device)

    def _step(self, rows: Tensor) -> None:
        """One step on the sum of the networks' mean losses."""
        scores = forward(self.weights, self._take(rows))
        y = self.y[rows.flatten()]
        loss = functional.cross_entropy(scores.flatten(0, 1), y, reduction="sum") / rows.shape[1]
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()

    def _take(self, rows: Tensor) -> Tensor:
        return self.rows.index_select(0, rows.flatten()).view(*rows.shape, -1)

    @torch.no_grad()
    def _judge(self, turn: int) -> None:
        """See how the active networks do on what is held out."""
        scores = forward(self.weights, self._take(self.held))
        right = (scores.argmax(-1) == self.held_y).float().mean(1)
        losses = functional.cross_entropy(scores.transpose(1, 2), self.held_y, reduction="none").mean(1)
        accuracy, loss = right.cpu().numpy(), losses.cpu().numpy()
        self.best.renew(self.active, accuracy, loss, current=self.weights, turn=turn, by=self.training.criterion)

    def _leave(self, stay: NDArray[np.bool_]) -> None:
        """Go on with some of the active networks only, each with what its optimiser knows."""
        before, states = self.weights, self.optimiser.state
        kept = torch.from_numpy(stay).to(self.device)
        self._go_on(self.active[stay], [w.detach()[kept] for w in before])
        for old, new in zip(before, self.weights, strict=True):
            state = states[old]
            moments = {name: state[name][kept] for name in ("exp_avg", "exp_avg_sq")}
            self.optimiser.state[new] = {"step": state["step"], **moments}

    @torch.no_grad()
    def scores(self, X: Tensor) -> Iterator[tuple[Job, Tensor]]:
        """Each network's logits (m, k) for its space of X: (s, m, d)."""
        for at, job in enumerate(self.jobs):
            yield job, forward([w[at : at + 1] for w in self.best.weights], X[job.space : job.space + 1])[0]

    def networks(self) -> list[Network]:
        """The networks at their best."""
        arrays = [w.cpu().numpy() for w in self.best.weights]
        return [
            Network(
                job,
                tuple((arrays[i][at].copy(), arrays[i + 1][at, 0].copy()) for i in range(0, len(arrays), 2)),
                float(self.best.accuracy[at]),
                float(self.best.loss[at]),
                int(self.best.rounds[at]),
            )
            for at, job in enumerate(self.jobs)
        ]


def forward(weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """(g, b, k) the logits of rows x: (g, b, d) under g networks."""
    for at in range(0, len(weights), 2):
        x = torch.baddbmm(weights[at + 1], x, weights[at])
        if at + 2 < len(weights):
            x = functional.relu(x)
    return x

"""Train many small networks together: one batched matrix product per layer for all networks of one shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from threading import Event

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
    ProbeTraining,
    Progress,
    Sizes,
    hold_out,
)

CPU_BYTES, GPU_BYTES = 1 << 24, 1 << 31
"""Maximum memory of one batch of networks and its optimiser. A CPU is fastest if a batch fits into its caches."""

LANES = 16
"""Layer widths are padded with zeros to a multiple of this. Otherwise the position of a network in a batch would decide
which of its numbers are computed in the last, incomplete vector of a loop, where rounding differs.
"""

GPU_LANES, GPU_SLOTS = 256, 200
"""On a GPU, launching a product costs more than computing it. So hidden widths are padded to a multiple of GPU_LANES,
and networks of many sizes form one batch. Every batch has the same number of slots, up to GPU_SLOTS, used or not, since
the number of matrices decides how a GPU computes a product, and so its last digits.
"""

HELD_OUT_ROWS = 512
"""The number of held-out rows that are evaluated together."""

NEVER = -1e30
"""The bias of a padded output: its probability is 0, even after much weight decay."""


@dataclass(frozen=True, eq=False)
class Data:
    """Training data: s standardised spaces X (s, n, d), and their labels y (s, n), integers from 0 to k - 1."""

    X: Tensor
    y: Tensor
    k: int

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.X.shape[1])

    @property
    def d(self) -> int:
        """The number of columns."""
        return int(self.X.shape[2])

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.X.device

    @property
    def on_cpu(self) -> bool:
        """Whether the device is a CPU."""
        return self.X.device.type == "cpu"


def train(
    data: Data,
    jobs: Sequence[Job],
    training: ProbeTraining,
    *,
    threads: int = 1,
    slots: int | None = None,
    finish: Callable[[Batch], None] | None = None,
    progress: Progress | None = None,
) -> list[Network]:
    """Train one network for each job, in the order of the jobs; each is identical to the same network trained alone.

    Random numbers come from each network's own seed. On a CPU each batch is computed by one thread, several batches at
    a time, so neither the number of threads nor the other networks change the result. slots: on a GPU, the number of
    slots of every batch, for callers that always train the same number of networks; default: see GPU_SLOTS. finish:
    called with each batch once it has its best weights.
    """

    stopped = Event()
    rows = padded(data.X).flatten(0, 1)

    def run(part: list[Job]) -> list[Network]:
        batch = Batch(data, rows, part, training, slots)
        batch.train(stopped)
        if finish:
            finish(batch)
        return batch.networks()

    trained: dict[Job, Network] = {}
    workers = threads if data.on_cpu else 0
    with _mapped(run, _batches(data, jobs, threads, slots), workers, stopped) as batches:
        for networks in batches:
            trained |= {network.job: network for network in networks}
            if progress:
                progress(len(trained), len(jobs))
    return [trained[job] for job in jobs]


@contextmanager
def _mapped(
    run: Callable[[list[Job]], list[Network]], parts: list[list[Job]], threads: int, stopped: Event
) -> Iterator[Iterator[list[Network]]]:
    """Iterate over the results of `run`, computed by this many threads with one torch thread each; 0: by this thread.

    stopped: set if the caller ends early, as on Ctrl-C, so that running batches stop soon.
    """
    if not threads:
        yield map(run, parts)
        return
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield pool.map(run, parts)
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)


def _batches(data: Data, jobs: Sequence[Job], threads: int, slots: int | None = None) -> list[list[Job]]:
    """The jobs of each batch: networks of one padded shape, as many as the memory limit allows, largest shapes first.

    On a CPU, batches are smaller if there would otherwise be fewer batches than threads.
    """
    n_labels = [len(np.unique(y)) for y in data.y.cpu().numpy()]  # limits how many rows can be held out
    same_shape: dict[tuple[Sizes, int], list[Job]] = {}
    for job in dict.fromkeys(jobs):
        same_shape.setdefault((_shape(job.sizes, data), n_labels[job.space]), []).append(job)
    parts = []
    for shape, same in sorted(same_shape.items(), key=lambda item: -_parameters(item[0][0])):
        at_once = _slots(shape[0], data, slots)
        if data.on_cpu and len(same_shape) < threads:
            at_once = min(at_once, math.ceil(len(same) / threads))
        parts += [same[at : at + at_once] for at in range(0, len(same), at_once)]
    return parts


def _slots(shape: Sizes, data: Data, wanted: int | None = None) -> int:
    """The maximum number of networks of a padded shape in one batch. wanted: the maximum on a GPU, if not GPU_SLOTS."""
    fit = max(1, (CPU_BYTES if data.on_cpu else GPU_BYTES) // (4 * 4 * _parameters(shape)))
    return fit if data.on_cpu else min(fit, wanted or GPU_SLOTS)


def _widths(sizes: Sizes, data: Data) -> list[tuple[int, int]]:
    """Input and output width of each layer."""
    return list(pairwise([data.d, *sizes, data.k]))


def _shape(sizes: Sizes, data: Data) -> Sizes:
    """The padded widths of input, hidden layers and output."""
    hidden = (_padded_width(width, LANES if data.on_cpu else GPU_LANES) for width in sizes)
    return (_padded_width(data.d), *hidden, _padded_width(data.k))


def _parameters(shape: Sizes) -> int:
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(shape))


def _padded_width(width: int, lanes: int = LANES) -> int:
    return -(-width // lanes) * lanes


def padded(x: Tensor) -> Tensor:
    """x with its last axis padded with zeros to a multiple of LANES."""
    more = _padded_width(x.shape[-1]) - x.shape[-1]
    return functional.pad(x, (0, more)) if more else x


# ---- one batch ----


@dataclass(eq=False)
class Best:
    """The best round so far of each network of a batch.

    weights, accuracy, loss, rounds: the weights, held-out scores and number of the best round. top_accuracy,
    least_loss: the best held-out scores of any round; gained: the last round that improved one of them.
    """

    weights: list[Tensor]
    accuracy: Floats
    loss: Floats
    rounds: Integers
    top_accuracy: Floats
    least_loss: Floats
    gained: Integers

    @classmethod
    def of(cls, weights: list[Tensor]) -> Best:
        """The state before any evaluation."""
        g = len(weights[0])
        worst, zeros = np.full(g, np.inf, np.float32), np.zeros(g, np.int64)
        copies = [w.clone() for w in weights]
        return cls(copies, -worst, worst.copy(), zeros, -worst, worst.copy(), zeros.copy())

    def renew(
        self, places: Integers, scores: tuple[Floats, Floats], current: Sequence[Tensor], *, turn: int, by: Criterion
    ) -> None:
        """Update the best rounds with an evaluation of some networks.

        places: the networks' positions in the batch. scores: their held-out accuracy and loss. current: their weights.
        turn: the number of the round. by: the score that decides which round is the best.
        Round 0 (the initial weights) is replaced by the first round with a finite loss, even if round 0 has better
        scores: with few held-out rows it would often win by accident.
        """
        accuracy, loss = scores
        if turn == 1:
            self.top_accuracy[places], self.least_loss[places] = -np.inf, np.inf
        gain = (accuracy > self.top_accuracy[places]) | (loss < self.least_loss[places] - TOL)
        self.gained[places[gain]] = turn
        self.top_accuracy[places] = np.maximum(self.top_accuracy[places], accuracy)
        self.least_loss[places[gain]] = np.minimum(self.least_loss[places], loss)[gain]
        better = loss < self.loss[places]
        if by == "accuracy":
            level = accuracy == self.accuracy[places]
            better = (accuracy > self.accuracy[places]) | (level & better)
        better |= (self.rounds[places] == 0) & np.isfinite(loss)
        at = places[better]
        self.accuracy[at], self.loss[at], self.rounds[at] = accuracy[better], loss[better], turn
        kept, new = torch.from_numpy(at), torch.from_numpy(np.flatnonzero(better))
        for best, weight in zip(self.weights, current, strict=True):
            best[kept.to(best.device)] = weight[new.to(weight.device)]


class Batch:
    """Networks of one padded shape, trained together.

    rows: (s n, d) the rows of all spaces, padded with zeros; the weights of padding stay 0. A slot is the place of one
    network in the batched matrix products. On a CPU, a network that has stopped is removed from the products. On a GPU
    it stays in them, and unused slots repeat the first network. In shapes below, g is the number of active networks:
    those that are still part of the products.
    """

    def __init__(
        self, data: Data, rows: Tensor, jobs: Sequence[Job], training: ProbeTraining, slots: int | None = None
    ) -> None:
        self.data, self.rows, self.training = data, rows, training
        self.jobs = list(jobs)
        self.shape = _shape(self.jobs[0].sizes, data)
        free = 0 if data.on_cpu else _slots(self.shape, data, slots) - len(self.jobs)
        self.slots = self.jobs + self.jobs[:1] * free
        self.y = data.y.flatten()
        self.minus_one = torch.tensor(-1.0, device=data.device)
        self._divide()
        weights = self._initial()
        self.best = Best.of(weights)
        self.running = np.arange(len(self.jobs))
        self._continue_with(np.arange(len(self.slots)), weights)

    def _divide(self) -> None:
        """Divide the rows of each network into training and held-out rows; the same for the same seed and labels."""
        y = self.data.y.cpu().numpy()
        keys = [(slot.seed, y[slot.space].tobytes()) for slot in self.slots]
        first = {key: keys.index(key) for key in dict.fromkeys(keys)}
        self.division = np.array([list(first).index(key) for key in keys])
        owners = [self.slots[at] for at in first.values()]
        self.parts = [hold_out(y[owner.space], self.training.held_out, owner.seed) for owner in owners]
        self.orders = [np.random.default_rng([owner.seed, 2]) for owner in owners]

    def _initial(self) -> list[Tensor]:
        """The initial weights and biases of each layer, (slots, ...); Glorot initialisation, as in scikit-learn."""
        weights = [torch.zeros(len(self.slots), fan_in, fan_out) for fan_in, fan_out in pairwise(self.shape)]
        for slot, job in enumerate(self.slots):
            stream = np.random.default_rng([job.seed, 1, *job.sizes])
            for at, (fan_in, fan_out) in enumerate(_widths(job.sizes, self.data)):
                bound = math.sqrt((6 if at + 1 < len(weights) else 2) / (fan_in + fan_out))
                drawn = stream.uniform(-bound, bound, (fan_in, fan_out))
                weights[at][slot, :fan_in, :fan_out] = torch.from_numpy(drawn)
        biases = [torch.zeros(len(self.slots), 1, weight.shape[2]) for weight in weights]
        biases[-1][..., self.data.k :] = NEVER
        return [t.to(self.data.device) for pair in zip(weights, biases, strict=True) for t in pair]

    def _continue_with(self, active: Integers, weights: list[Tensor]) -> None:
        """Train these networks from now on, with a new optimiser."""
        self.active = active
        self.weights = weights
        self.optimiser = torch.optim.AdamW(
            self.weights, lr=self.training.learning_rate, weight_decay=self.training.weight_decay, fused=True
        )
        offsets = [self.slots[at].space * self.data.n for at in active]
        self.offset = torch.tensor(offsets, device=self.data.device)[:, None]
        self.shared = torch.from_numpy(self.division[active]).to(self.data.device)
        self.held = self._spread([held for _, held in self.parts])

    def _spread(self, rows: Sequence[Integers]) -> Tensor:
        """(g, n) the rows of each active network, from the rows of each division."""
        return torch.from_numpy(np.stack(rows)).to(self.data.device)[self.shared] + self.offset

    def train(self, stopped: Event) -> None:
        """Train every network until it stops improving, and keep its best weights; ends early if `stopped` is set."""
        self._evaluate(0)
        for turn in range(1, self.training.max_rounds + 1):
            if stopped.is_set():
                break
            self._round(turn)
            self._evaluate(turn)
            self.running = self.running[self.best.gained[self.running] + self.training.patience > turn]
            if not len(self.running):
                break
            if self.data.on_cpu and len(self.running) < len(self.active):
                self._drop(np.isin(self.active, self.running))
        self.weights = []

    def _round(self, turn: int) -> None:
        """The passes of one round; the learning rate falls linearly to 0 at the end of max_rounds."""
        passes = [torch.split(self._order(), self.training.batch_size, dim=1) for _ in range(self._passes())]
        steps = [rows for batches in passes for rows in batches]
        for at, rows in enumerate(steps):
            done = (turn - 1 + at / len(steps)) / self.training.max_rounds
            self.optimiser.param_groups[0]["lr"] = self.training.learning_rate * (1 - done)
            self._step(rows)

    def _passes(self) -> int:
        steps = math.ceil(len(self.parts[0][0]) / self.training.batch_size)
        return math.ceil(ROUND / steps)

    def _order(self) -> Tensor:
        """(g, n) the rows of a pass for each active network, shuffled by its seed."""
        return self._spread([rng.permutation(fit) for rng, (fit, _) in zip(self.orders, self.parts, strict=True)])

    @torch.no_grad()
    def _step(self, rows: Tensor) -> None:
        """One optimiser step of every active network; explicit gradients take half the time of autograd.

        The loss is the sum of the networks' mean losses, so no network affects the gradients of another one.
        """
        layers = list(zip(self.weights[::2], self.weights[1::2], strict=True))
        inputs = [self._take(rows)]
        for weight, bias in layers[:-1]:
            inputs.append(torch.baddbmm(bias, inputs[-1], weight).relu_())
        gradient = torch.softmax(torch.baddbmm(layers[-1][1], inputs[-1], layers[-1][0]), -1)
        gradient.scatter_add_(2, self.y[rows].unsqueeze(2), self.minus_one.expand(*rows.shape, 1))
        gradient /= rows.shape[1]
        for (weight, bias), x in zip(reversed(layers), reversed(inputs), strict=True):
            weight.grad, bias.grad = torch.bmm(x.transpose(1, 2), gradient), gradient.sum(1, keepdim=True)
            if x is not inputs[0]:
                gradient = torch.bmm(gradient, weight.transpose(1, 2)).mul_(x > 0)
        self.optimiser.step()

    def _take(self, rows: Tensor) -> Tensor:
        return self.rows.index_select(0, rows.flatten()).view(*rows.shape, -1)

    @torch.no_grad()
    def _evaluate(self, turn: int) -> None:
        """Evaluate the running networks on their held-out rows."""
        n = self.held.shape[1]
        right = torch.zeros(len(self.active), dtype=torch.float64, device=self.data.device)
        losses = right.clone()
        for rows in torch.split(self.held, HELD_OUT_ROWS, dim=1):
            scores, y = self._forward(self.weights, self._take(rows)), self.y[rows]
            right += (scores.argmax(-1) == y).sum(1)
            losses += functional.cross_entropy(scores.transpose(1, 2), y, reduction="none").sum(1)
        at = np.flatnonzero(np.isin(self.active, self.running))
        accuracy, loss = ((total / n).float().cpu().numpy()[at] for total in (right, losses))
        accuracy[~np.isfinite(loss)] = -1.0  # a diverged network is never the best
        current = self.weights if len(at) == len(self.active) else [w[at] for w in self.weights]
        self.best.renew(self.running, (accuracy, loss), current, turn=turn, by=self.training.criterion)

    def _drop(self, stay: NDArray[np.bool_]) -> None:
        """Continue with the given active networks only, and keep their optimiser state."""
        before, states = self.weights, self.optimiser.state
        kept = torch.from_numpy(stay).to(self.data.device)
        self._continue_with(self.active[stay], [w[kept] for w in before])
        for old, new in zip(before, self.weights, strict=True):
            state = states[old]
            moments = {name: state[name][kept] for name in ("exp_avg", "exp_avg_sq")}
            self.optimiser.state[new] = {"step": state["step"], **moments}

    @torch.no_grad()
    def scores(self, X: Tensor) -> Iterator[tuple[Job, Tensor]]:
        """The logits (m, k) of each network for its space of X: (s, m, d)."""
        for at, job in enumerate(self.jobs):
            own, rows = [w[at : at + 1] for w in self.best.weights], padded(X[job.space : job.space + 1])
            yield job, self._forward(own, rows)[0, :, : self.data.k]

    @staticmethod
    def _forward(weights: Sequence[Tensor], x: Tensor) -> Tensor:
        """(g, b, k) the logits of rows x: (g, b, d) under g networks, k padded."""
        for at in range(0, len(weights), 2):
            x = torch.baddbmm(weights[at + 1], x, weights[at])
            if at + 2 < len(weights):
                x = functional.relu(x)
        return x

    def networks(self) -> list[Network]:
        """The networks with their best weights, without padding."""
        arrays = [w.cpu().numpy() for w in self.best.weights]
        layers = list(zip(arrays[::2], arrays[1::2], strict=True))
        return [
            Network(
                job,
                tuple(
                    (weight[at, :fan_in, :fan_out].copy(), bias[at, 0, :fan_out].copy())
                    for (weight, bias), (fan_in, fan_out) in zip(layers, _widths(job.sizes, self.data), strict=True)
                ),
                float(self.best.accuracy[at]),
                float(self.best.loss[at]),
                int(self.best.rounds[at]),
            )
            for at, job in enumerate(self.jobs)
        ]

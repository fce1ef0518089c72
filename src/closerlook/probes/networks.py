"""Many small networks trained together: those of one shape are one batched matrix product for each layer."""

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
"""What one batch of networks may take with its optimiser: a CPU is fastest where that stays near the caches."""

LANES = 16
"""Every width is filled up with zeros to a multiple of this. Otherwise a network's place in a batch would decide which
of its numbers end up in the last, incomplete vector of a loop, and these are rounded in another way.
"""

GPU_LANES, GPU_SLOTS = 256, 200
"""On a GPU starting a product costs more than the product itself. So hidden widths are filled up to a multiple of the
first, and networks of many sizes are one batch; and every batch has as many places as fit, up to the second, taken or
not, since how a product is computed, and so its last digits, depends there on the number of matrices.
"""

JUDGED = 512
"""Held-out rows looked at at a time."""

NEVER = -1e30
"""The bias of an output that stands for no label: a probability of zero, also when weights have decayed for long."""


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

    @property
    def d(self) -> int:
        """Columns."""
        return int(self.X.shape[2])

    @property
    def device(self) -> torch.device:
        """Where all of it is."""
        return self.X.device

    @property
    def on_cpu(self) -> bool:
        """Whether that is a CPU."""
        return self.X.device.type == "cpu"


def train(
    data: Data,
    jobs: Sequence[Job],
    training: ProbeTraining,
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

    stopped = Event()
    rows = padded(data.X).flatten(0, 1)

    def run(part: list[Job]) -> list[Network]:
        batch = Batch(data, rows, part, training)
        batch.train(stopped)
        if finish:
            finish(batch)
        return batch.networks()

    found: dict[Job, Network] = {}
    workers = threads if data.on_cpu else 0
    with _mapped(run, _batches(data, jobs, threads), workers, stopped) as batches:
        for networks in batches:
            found |= {network.job: network for network in networks}
            if progress:
                progress(len(found), len(jobs))
    return [found[job] for job in jobs]


@contextmanager
def _mapped(
    run: Callable[[list[Job]], list[Network]], parts: list[list[Job]], threads: int, stopped: Event
) -> Iterator[Iterator[list[Network]]]:
    """The results one after the other: from so many threads, on each of which torch keeps to itself; 0: from this.

    stopped: set where whoever takes the results ends early, as by Ctrl-C, so that nobody waits for batches under way.
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


def _batches(data: Data, jobs: Sequence[Job], threads: int) -> list[list[Job]]:
    """Jobs of one shape together, no more than memory is meant to hold; the largest first; work for every thread."""
    spare = [len(np.unique(y)) for y in data.y.cpu().numpy()]  # decides how many rows can be held out
    alike: dict[tuple[Sizes, int], list[Job]] = {}
    for job in dict.fromkeys(jobs):
        alike.setdefault((_shape(job.sizes, data), spare[job.space]), []).append(job)
    parts = []
    for shape, same in sorted(alike.items(), key=lambda item: -_parameters(item[0][0])):
        at_once = _places(shape[0], data)
        if data.on_cpu and len(alike) < threads:
            at_once = min(at_once, math.ceil(len(same) / threads))
        parts += [same[at : at + at_once] for at in range(0, len(same), at_once)]
    return parts


def _places(shape: Sizes, data: Data) -> int:
    """How many networks of a shape are one batch at most."""
    fit = max(1, (CPU_BYTES if data.on_cpu else GPU_BYTES) // (4 * 4 * _parameters(shape)))
    return fit if data.on_cpu else min(fit, GPU_SLOTS)


def _widths(sizes: Sizes, data: Data) -> list[tuple[int, int]]:
    """Fan in and fan out of each layer."""
    return list(pairwise([data.d, *sizes, data.k]))


def _shape(sizes: Sizes, data: Data) -> Sizes:
    """The widths, filled up, of input, hidden layers and output."""
    hidden = (_filled(width, LANES if data.on_cpu else GPU_LANES) for width in sizes)
    return (_filled(data.d), *hidden, _filled(data.k))


def _parameters(shape: Sizes) -> int:
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(shape))


def _filled(width: int, lanes: int = LANES) -> int:
    return -(-width // lanes) * lanes


def padded(x: Tensor) -> Tensor:
    """x with zeros after its last axis, up to a multiple of LANES; x itself where that is so already."""
    more = _filled(x.shape[-1]) - x.shape[-1]
    return functional.pad(x, (0, more)) if more else x


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
        self, places: Integers, judged: tuple[Floats, Floats], current: Sequence[Tensor], *, turn: int, by: Criterion
    ) -> None:
        """Take in how the networks at these places did in a round. judged: accuracy, loss; current: their weights.

        Round 0, the weights as they were drawn, is the best only while there is no other: on few rows chance would
        often have it so. It stays where a network diverges at once.
        """
        accuracy, loss = judged
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
    """Networks of one shape, filled up, trained side by side.

    rows: (s n, d) those of all spaces, filled up with zeros as all widths are; the weights for them stay zero. On a CPU
    a network that has stopped leaves the products; on a GPU it stays, and places without a network repeat the first.
    """

    def __init__(self, data: Data, rows: Tensor, jobs: Sequence[Job], training: ProbeTraining) -> None:
        self.data, self.rows, self.training = data, rows, training
        self.jobs = list(jobs)
        self.shape = _shape(self.jobs[0].sizes, data)
        free = 0 if data.on_cpu else _places(self.shape, data) - len(self.jobs)
        self.slots = self.jobs + self.jobs[:1] * free
        self.y = data.y.flatten()
        self.minus_one = torch.tensor(-1.0, device=data.device)
        self._divide()
        weights = self._initial()
        self.best = Best.of(weights)
        self.running = np.arange(len(self.jobs))
        self._go_on(np.arange(len(self.slots)), weights)

    def _divide(self) -> None:
        """What each network is trained on and judged by; those of one seed and the same labels share it."""
        y = self.data.y.cpu().numpy()
        keys = [(slot.seed, y[slot.space].tobytes()) for slot in self.slots]
        first = {key: keys.index(key) for key in dict.fromkeys(keys)}
        self.division = np.array([list(first).index(key) for key in keys])
        owners = [self.slots[at] for at in first.values()]
        self.parts = [hold_out(y[owner.space], self.training.held_out, owner.seed) for owner in owners]
        self.orders = [np.random.default_rng([owner.seed, 2]) for owner in owners]

    def _initial(self) -> list[Tensor]:
        """Weights and biases in turn, each with the networks along its first axis; Glorot's, as in scikit-learn."""
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

    def _go_on(self, active: Integers, weights: list[Tensor]) -> None:
        """Train these networks from now on, an optimiser that has seen nothing yet for all of them."""
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
        """(g, n) the rows that the active networks have, from those of each division."""
        return torch.from_numpy(np.stack(rows)).to(self.data.device)[self.shared] + self.offset

    def train(self, stopped: Event) -> None:
        """Every network trained until it stops gaining, with the weights of its best round; less where `stopped`."""
        self._judge(0)
        for turn in range(1, self.training.max_rounds + 1):
            if stopped.is_set():
                break
            self._round(turn)
            self._judge(turn)
            self.running = self.running[self.best.gained[self.running] + self.training.patience > turn]
            if not len(self.running):
                break
            if self.data.on_cpu and len(self.running) < len(self.active):
                self._leave(np.isin(self.active, self.running))
        self.weights = []

    def _round(self, turn: int) -> None:
        """The passes of a round; the rate falls step by step, to nothing at the end of the last round there may be."""
        passes = [torch.split(self._order(), self.training.batch_size, dim=1) for _ in range(self._passes())]
        steps = [rows for one in passes for rows in one]
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
        """One step on the sum of the networks' mean losses; gradients written out, at half the cost of autograd's."""
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
    def _judge(self, turn: int) -> None:
        """See how the networks that are still running do on what is held out."""
        n = self.held.shape[1]
        right = torch.zeros(len(self.active), dtype=torch.float64, device=self.data.device)
        losses = right.clone()
        for rows in torch.split(self.held, JUDGED, dim=1):
            scores, y = self._forward(self.weights, self._take(rows)), self.y[rows]
            right += (scores.argmax(-1) == y).sum(1)
            losses += functional.cross_entropy(scores.transpose(1, 2), y, reduction="none").sum(1)
        at = np.flatnonzero(np.isin(self.active, self.running))
        accuracy, loss = ((total / n).float().cpu().numpy()[at] for total in (right, losses))
        accuracy[~np.isfinite(loss)] = -1.0  # a network that has diverged is never the best one
        current = self.weights if len(at) == len(self.active) else [w[at] for w in self.weights]
        self.best.renew(self.running, (accuracy, loss), current, turn=turn, by=self.training.criterion)

    def _leave(self, stay: NDArray[np.bool_]) -> None:
        """Go on with some of the active networks only, each with what its optimiser knows."""
        before, states = self.weights, self.optimiser.state
        kept = torch.from_numpy(stay).to(self.data.device)
        self._go_on(self.active[stay], [w[kept] for w in before])
        for old, new in zip(before, self.weights, strict=True):
            state = states[old]
            moments = {name: state[name][kept] for name in ("exp_avg", "exp_avg_sq")}
            self.optimiser.state[new] = {"step": state["step"], **moments}

    @torch.no_grad()
    def scores(self, X: Tensor) -> Iterator[tuple[Job, Tensor]]:
        """Each network's logits (m, k) for its space of X: (s, m, d)."""
        for at, job in enumerate(self.jobs):
            own, rows = [w[at : at + 1] for w in self.best.weights], padded(X[job.space : job.space + 1])
            yield job, self._forward(own, rows)[0, :, : self.data.k]

    @staticmethod
    def _forward(weights: Sequence[Tensor], x: Tensor) -> Tensor:
        """(g, b, k) the logits of rows x: (g, b, d) under g networks, k filled up."""
        for at in range(0, len(weights), 2):
            x = torch.baddbmm(weights[at + 1], x, weights[at])
            if at + 2 < len(weights):
                x = functional.relu(x)
        return x

    def networks(self) -> list[Network]:
        """The networks at their best, without what was filled up."""
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

"""Settings, jobs and results of probe networks; this module does not import torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError

Progress = Callable[[int, int], None]
"""Called with the number of networks trained and their total."""

Sizes = tuple[int, ...]
"""The widths of a network's hidden layers; empty for a linear probe."""

Criterion = Literal["accuracy", "loss"]
Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

ROUND = 30
"""Minimum number of optimiser steps in a round, see `ProbeTraining`."""

TOL = 1e-3
"""Smallest decrease of the held-out loss that counts as an improvement."""


@dataclass(frozen=True)
class ProbeTraining:
    """How every network is trained; stored with the results.

    A round is one pass over the training rows, or as many passes as give at least ROUND optimiser steps. held_out: the
    share of train that is not trained on; the network is evaluated on it after each round. Training stops after
    `patience` rounds in which neither the held-out accuracy rose nor the held-out loss fell by TOL, or after
    max_rounds. The learning rate falls linearly to 0 at max_rounds. criterion: the held-out score that decides which
    round is the best one; the weights of that round are kept. The initial weights are kept only if no round was
    trained, or if no round had a finite loss.

    >>> from closerlook.probes import probe_grid
    >>> X, y = np.arange(20.0)[:, None], ["low"] * 10 + ["high"] * 10
    >>> result = probe_grid((X, y), (X, y), sizes=[()], seeds=1, training=ProbeTraining(max_rounds=2))
    >>> result.training.max_rounds, result.training.batch_size
    (2, 128)
    """

    learning_rate: float = 4e-3
    batch_size: int = 128
    max_rounds: int = 12
    patience: int = 3
    weight_decay: float = 0.1
    held_out: float = 0.1
    criterion: Criterion = "accuracy"

    def __post_init__(self) -> None:
        for name, lowest in (("batch_size", 1), ("max_rounds", 0), ("patience", 1)):
            value = getattr(self, name)
            if not is_whole(value) or value < lowest:
                raise InputError(f"{name} is {value!r}; expected a whole number of at least {lowest}")
        limits: tuple[tuple[str, Callable[[float], bool], str], ...] = (
            ("learning_rate", lambda rate: 0 < rate < np.inf, "a number above 0"),
            ("weight_decay", lambda decay: 0 <= decay < np.inf, "a number of at least 0"),
            ("held_out", lambda share: 0 < share < 1, "a share between 0 and 1"),
        )
        for name, fits, expected in limits:
            value = getattr(self, name)
            if not isinstance(value, Real) or not fits(float(value)):
                raise InputError(f"{name} is {value!r}; expected {expected}")
        if self.criterion not in ("accuracy", "loss"):
            raise InputError(f"criterion is {self.criterion!r}; expected 'accuracy' or 'loss'")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is an integer and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


@dataclass(frozen=True)
class Job:
    """One network to train: its sizes, its seed, and the index of its space."""

    sizes: Sizes
    seed: int
    space: int = 0


@dataclass(frozen=True, eq=False)
class Network:
    """A trained network: weights (fan in, fan out) and biases (fan out,) of each layer.

    accuracy, loss: on the held-out rows in the best round. rounds: the number of that round.
    """

    job: Job
    layers: tuple[tuple[Floats, Floats], ...]
    accuracy: float
    loss: float
    rounds: int

    @property
    def n_weights(self) -> int:
        """The number of weights, without biases."""
        return sum(weight.size for weight, _ in self.layers)

    def scores(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """(m, k) the logits of standardised rows X: (m, d).

        In double precision: with single precision, digits that show depend on the order of rows on some processors.
        """
        out = np.asarray(X, np.float64)
        for at, (weight, bias) in enumerate(self.layers):
            out = out @ weight.astype(np.float64) + bias
            if at + 1 < len(self.layers):
                out = np.maximum(out, 0)
        return out


def hold_out(y: NDArray[np.integer], part: float, seed: int) -> tuple[Integers, Integers]:
    """The training rows and the held-out rows, stratified by label; every label stays in training."""
    rng = np.random.default_rng([seed, 0])
    shuffled = rng.permutation(len(y))
    order = shuffled[np.argsort(y[shuffled], kind="stable")]
    counts = np.bincount(y)[y[order]]
    rank = np.arange(len(y)) - np.searchsorted(y[order], y[order])
    spare = rank + 1 < counts
    if not spare.any():  # one example per label: nothing can be held out, so training rows are evaluated
        return np.sort(order), np.sort(order)
    wanted = min(max(1, round(part * len(y))), int(spare.sum()))
    first = np.argsort((rank + 0.5) / counts + np.where(spare, 0.0, 2.0), kind="stable")
    return np.sort(order[first[wanted:]]), np.sort(order[first[:wanted]])

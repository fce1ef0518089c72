"""A plain implementation of the batched networks: one network at a time, as usual in torch."""

import math

import numpy as np
import torch
from torch import nn

from closerlook.probes import networks
from closerlook.probes.training import TOL, Job, Network, ProbeTraining, hold_out


def plain_network(X: np.ndarray, y: np.ndarray, k: int, job: Job, training: ProbeTraining) -> Network:
    """The network of a job, trained on standardised rows X: (n, d), y: (n,)."""
    inputs, targets = torch.from_numpy(X), torch.from_numpy(y)
    rows, held = hold_out(y, training.held_out, job.seed)
    model = initial(X.shape[1], k, job)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay, foreach=False, fused=False
    )
    shuffle = np.random.default_rng([job.seed, 2])
    passes = math.ceil(networks.ROUND / math.ceil(len(rows) / training.batch_size))
    best, top, least, gained = None, -math.inf, math.inf, 0
    for turn in range(training.max_rounds + 1):
        orders = [torch.from_numpy(shuffle.permutation(rows)) for _ in range(passes if turn else 0)]
        batches = [batch for order in orders for batch in order.split(training.batch_size)]
        for step, batch in enumerate(batches):
            done = (turn - 1 + step / len(batches)) / training.max_rounds
            optimiser.param_groups[0]["lr"] = training.learning_rate * (1 - done)
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(inputs[batch]), targets[batch]).backward()
            optimiser.step()
        accuracy, loss = judge(model, inputs[held], targets[held])
        if turn == 1:
            best, top, least = None, -math.inf, math.inf  # the start was there for want of anything else
        if accuracy > top or loss < least - TOL:
            gained, least = turn, min(least, loss)
        top = max(top, accuracy)
        key = (accuracy, -loss) if training.criterion == "accuracy" else (-loss,)
        if best is None or key > best[0]:
            best = key, kept(model, job, accuracy, loss, turn)
        if gained + training.patience <= turn:
            break
    assert best is not None
    return best[1]


def initial(d: int, k: int, job: Job) -> nn.Sequential:
    """Linear layers with ReLU between them, with initial weights from the job's seed and sizes."""
    stream = np.random.default_rng([job.seed, 1, *job.sizes])
    widths = [d, *job.sizes, k]
    parts: list[nn.Module] = []
    for at in range(len(widths) - 1):
        fan_in, fan_out = widths[at], widths[at + 1]
        bound = math.sqrt((2 if at == len(widths) - 2 else 6) / (fan_in + fan_out))
        layer = nn.Linear(fan_in, fan_out)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(stream.uniform(-bound, bound, (fan_in, fan_out))).T)
            layer.bias.zero_()
        parts += [layer, nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def judge(model: nn.Module, X: torch.Tensor, y: torch.Tensor) -> tuple[float, float]:
    with torch.no_grad():
        scores = model(X)
        loss = float(nn.functional.cross_entropy(scores, y))
    return float((scores.argmax(1) == y).float().mean()), loss


def kept(model: nn.Sequential, job: Job, accuracy: float, loss: float, turn: int) -> Network:
    linear = [layer for layer in model if isinstance(layer, nn.Linear)]
    layers = tuple((one.weight.detach().numpy().T.copy(), one.bias.detach().numpy().copy()) for one in linear)
    return Network(job, layers, accuracy, loss, turn)

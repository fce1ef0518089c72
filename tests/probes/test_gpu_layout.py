"""Batches in the GPU layout (networks of all sizes in a fixed number of slots), computed on the CPU."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from closerlook.probes import networks
from closerlook.probes.networks import Batch, Data, padded, train
from closerlook.probes.training import Job, Network, ProbeTraining
from tests.probes.plain_networks import plain_network

QUICK = ProbeTraining(learning_rate=0.01, batch_size=32, max_rounds=6, patience=1)
JOBS = [Job((5, 3), 0), Job((5, 3), 1), Job((16, 9), 0), Job((30, 2), 2)]


@pytest.fixture(autouse=True)
def layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "ROUND", 6)
    monkeypatch.setattr(networks, "GPU_LANES", 32)
    monkeypatch.setattr(networks, "GPU_SLOTS", 6)
    monkeypatch.setattr(Data, "on_cpu", False)


def data() -> Data:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 101)
    X = rng.normal(size=(101, 7)) + np.linspace(-1.5, 1.5, 3)[y][:, None]
    return Data(torch.from_numpy(X.astype(np.float32))[None], torch.from_numpy(y)[None], 3)


def assert_same(one: Network, other: Network) -> None:
    assert (one.accuracy, one.loss, one.rounds) == (other.accuracy, other.loss, other.rounds)
    for (weight, bias), (other_weight, other_bias) in zip(one.layers, other.layers, strict=True):
        np.testing.assert_array_equal(weight, other_weight)
        np.testing.assert_array_equal(bias, other_bias)


def test_networks_of_all_sizes_are_one_batch_with_a_fixed_number_of_slots() -> None:
    given = data()
    assert networks._batches(given, JOBS, threads=1) == [JOBS]
    batch = Batch(given, padded(given.X).flatten(0, 1), JOBS[:1], QUICK)
    assert [tuple(weight.shape) for weight in batch.weights[::2]] == [(6, 16, 32), (6, 32, 32), (6, 32, 16)]


def test_a_caller_that_always_trains_the_same_number_of_networks_needs_no_unused_slots() -> None:
    given, jobs = data(), JOBS[:2]
    batch = Batch(given, padded(given.X).flatten(0, 1), jobs, QUICK, len(jobs))
    assert {len(weight) for weight in batch.weights} == {2}
    assert networks._batches(given, JOBS, threads=1, slots=2) == [JOBS[:2], JOBS[2:]]
    for exact, in_six_slots in zip(train(given, jobs, QUICK, slots=2), train(given, jobs, QUICK), strict=True):
        assert exact.rounds == in_six_slots.rounds
        assert exact.loss == pytest.approx(in_six_slots.loss, abs=1e-4)


def test_more_networks_than_slots_are_several_batches() -> None:
    many = [Job((5, 3), seed) for seed in range(8)]
    assert [len(part) for part in networks._batches(data(), many, threads=1)] == [6, 2]


def test_a_network_has_the_same_bits_alone_and_in_a_batch() -> None:
    together = train(data(), JOBS, QUICK)
    for network in together:
        assert_same(train(data(), [network.job], QUICK)[0], network)


def test_each_network_stops_on_its_own_and_matches_a_plain_loop() -> None:
    given = data()
    result = train(given, JOBS, QUICK)
    assert len({network.rounds for network in result}) > 1
    for network in result:
        twin = plain_network(given.X[0].numpy(), given.y[0].numpy(), 3, network.job, QUICK)
        assert network.rounds == twin.rounds
        assert network.loss == pytest.approx(twin.loss, abs=1e-4)


def test_widths_are_the_networks_own() -> None:
    for network in train(data(), JOBS, QUICK):
        widths = [7, *network.job.sizes, 3]
        assert [weight.shape for weight, _ in network.layers] == list(pairwise(widths))

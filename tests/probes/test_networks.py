"""Networks trained together are identical to networks trained alone, and match a plain training loop."""

from collections.abc import Iterator
from contextlib import nullcontext
from threading import Event

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from closerlook.errors import InputError
from closerlook.probes import networks
from closerlook.probes.networks import Batch, Data, padded, train
from closerlook.probes.training import Criterion, Job, Network, ProbeTraining, hold_out
from tests.probes.plain_networks import plain_network

QUICK = ProbeTraining(learning_rate=0.01, batch_size=32, max_rounds=8, patience=1)
ODD = {"d": 7, "k": 3, "n": 101}


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a round one or two passes, so that tests are fast."""
    monkeypatch.setattr(networks, "ROUND", 6)


def space(d: int = 7, k: int = 3, n: int = 101, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels that can be read off the first column, with noise."""
    rng = np.random.default_rng([seed, d, k, n])
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    X = rng.normal(size=(n, d)) * 0.8
    X[:, 0] += np.linspace(-2, 2, k)[y] if k > 1 else 0
    return X.astype(np.float32), y.astype(np.int64)


def stacked(*spaces: tuple[np.ndarray, np.ndarray], k: int = 3) -> Data:
    X, y = (torch.from_numpy(np.stack(arrays)) for arrays in zip(*spaces, strict=True))
    return Data(X, y, k)


def assert_same(one: Network, other: Network) -> None:
    """Assert that two networks have the same bits."""
    assert (one.accuracy, one.loss, one.rounds) == (other.accuracy, other.loss, other.rounds)
    for (weight, bias), (other_weight, other_bias) in zip(one.layers, other.layers, strict=True):
        np.testing.assert_array_equal(weight, other_weight)
        np.testing.assert_array_equal(bias, other_bias)


# ---- the twin ----


@pytest.mark.parametrize("criterion", ["accuracy", "loss"])
@pytest.mark.parametrize(
    ("d", "k", "sizes"), [(7, 3, (5, 3)), (7, 3, ()), (16, 2, (32, 16)), (33, 17, (8,)), (1, 2, (4,))]
)
def test_each_network_matches_a_plain_training_loop(
    d: int, k: int, sizes: tuple[int, ...], criterion: Criterion
) -> None:
    X, y = space(d, k, 150)
    training = ProbeTraining(learning_rate=0.01, batch_size=32, max_rounds=8, patience=1, criterion=criterion)
    jobs = [Job(sizes, seed) for seed in range(3)]
    result = train(stacked((X, y), k=k), jobs, training)
    for network in result:
        plain = plain_network(X, y, k, network.job, training)
        assert network.rounds == plain.rounds
        assert network.accuracy == pytest.approx(plain.accuracy)
        assert network.loss == pytest.approx(plain.loss, rel=1e-4)
        for (weight, bias), (plain_weight, plain_bias) in zip(network.layers, plain.layers, strict=True):
            np.testing.assert_allclose(weight, plain_weight, atol=2e-4)
            np.testing.assert_allclose(bias, plain_bias, atol=2e-4)


# ---- company changes nothing ----


@pytest.mark.parametrize(
    ("d", "k", "sizes"),
    [(7, 3, (5, 3)), (32, 46, (32, 64)), (5, 2, (8,)), (13, 17, ()), (1, 5, (50, 3)), (48, 16, (16, 32))],
)
def test_a_network_has_the_same_bits_alone_and_in_a_batch(d: int, k: int, sizes: tuple[int, ...]) -> None:
    data = stacked(space(d, k, 130), k=k)
    jobs = [Job(one, seed) for one in (sizes, (9,)) for seed in range(5)]
    together = train(data, jobs, QUICK)
    for at in (0, 4):
        assert_same(train(data, [jobs[at]], QUICK)[0], together[at])


@pytest.mark.parametrize("sizes", [(5, 3), (64, 32)])
def test_the_other_spaces_of_a_batch_change_nothing(sizes: tuple[int, ...]) -> None:
    spaces = [space(seed=seed) for seed in range(4)]
    spaces[2] = (spaces[2][0], np.minimum(spaces[2][1], 1))  # a label fewer: more rows can be spared
    together = train(stacked(*spaces), [Job(sizes, seed, at) for at in range(4) for seed in (0, 1)], QUICK)
    for at in range(4):
        for seed in (0, 1):
            assert_same(train(stacked(spaces[at]), [Job(sizes, seed)], QUICK)[0], together[2 * at + seed])


def test_the_number_of_threads_changes_nothing() -> None:
    jobs = [Job(sizes, seed) for sizes in ((5, 3), (16,), ()) for seed in range(3)]
    one, two, five = (train(stacked(space()), jobs, QUICK, threads=threads) for threads in (1, 2, 5))
    for at in range(len(jobs)):
        assert_same(one[at], two[at])
        assert_same(one[at], five[at])


@pytest.mark.parametrize("limit", [1, 1 << 14])
def test_how_many_networks_fit_into_a_batch_changes_nothing(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    jobs = [Job((5, 3), seed) for seed in range(6)]
    expected = train(stacked(space()), jobs, QUICK)
    monkeypatch.setattr(networks, "CPU_BYTES", limit)
    assert len(networks._batches(stacked(space()), jobs, 1)) > 1
    for network, same in zip(train(stacked(space()), jobs, QUICK), expected, strict=True):
        assert_same(network, same)


def test_padding_stays_zero() -> None:
    data = stacked(space())
    batch = Batch(data, padded(data.X).flatten(0, 1), [Job((5, 3), seed) for seed in range(3)], QUICK)
    batch.train(Event())
    shapes = [(7, 5), (1, 5), (5, 3), (1, 3), (3, 3), (1, 3)]
    for weight, (fan_in, fan_out) in zip(batch.best.weights, shapes, strict=True):
        assert weight.shape[2] % networks.LANES == 0
        assert 0 < weight[:, :fan_in, :fan_out].abs().max() < 10
        rest = weight.clone()
        rest[:, :fan_in, :fan_out] = 0
        unused = weight is batch.best.weights[-1]  # the biases of outputs that stand for no label
        assert rest.abs().max() == (-rest[:, :, 3:].max() if unused else 0)
        assert not unused or rest[:, :, 3:].max() < -1e29


def test_a_network_is_found_by_its_seed_sizes_and_space() -> None:
    data = stacked(space(seed=0), space(seed=1))
    jobs = [Job((4,), 1, 1), Job((4,), 0, 0), Job((3,), 1, 1), Job((4,), 1, 0), Job((4,), 1, 1)]
    result = train(data, jobs, QUICK)
    assert [network.job for network in result] == jobs
    assert_same(result[0], result[4])
    weights = [network.layers[0][0] for network in result[:4]]
    assert not any(np.array_equal(weights[i], weights[j]) for i in range(4) for j in range(i))


# ---- stopping ----


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, list[int]]]]:
    """Which networks were active in which round."""
    seen: list[tuple[int, list[int]]] = []
    original = Batch._evaluate

    def judge(self: Batch, turn: int) -> None:
        seen.append((turn, self.active.tolist()))
        original(self, turn)

    monkeypatch.setattr(Batch, "_evaluate", judge)
    return seen


def test_every_network_stops_on_its_own(judged: list[tuple[int, list[int]]]) -> None:
    data, jobs = stacked(space(n=160)), [Job((8,), seed) for seed in range(6)]
    batch = Batch(
        data,
        padded(data.X).flatten(0, 1),
        jobs,
        ProbeTraining(learning_rate=0.01, batch_size=32, max_rounds=25, patience=2),
    )
    batch.train(Event())
    last = {at: max(turn for turn, active in judged if at in active) for at in range(len(jobs))}
    assert len(set(last.values())) > 1
    for at, turn in last.items():
        assert turn == min(batch.best.gained[at] + 2, 25)
        assert batch.best.rounds[at] <= turn


def test_the_weights_are_those_of_the_best_round() -> None:
    X, y = space(n=160)
    for network in train(stacked((X, y)), [Job((8,), seed) for seed in range(4)], QUICK):
        _, held = hold_out(y, QUICK.held_out, network.job.seed)
        assert np.mean(network.scores(X[held]).argmax(1) == y[held]) == pytest.approx(network.accuracy)
        scores = torch.from_numpy(network.scores(X[held]))
        loss = float(torch.nn.functional.cross_entropy(scores, torch.from_numpy(y[held])))
        assert loss == pytest.approx(network.loss, abs=1e-5)


def test_patience_is_the_number_of_rounds_without_improvement(judged: list[tuple[int, list[int]]]) -> None:
    X, y = np.zeros((64, 2), np.float32), np.zeros(64, np.int64)  # nothing to gain after the first round
    for patience in (1, 4):
        judged.clear()
        train(
            Data(torch.from_numpy(X[None]), torch.from_numpy(y[None]), 1),
            [Job((), 0)],
            ProbeTraining(patience=patience),
        )
        assert judged[-1][0] == 1 + patience


def test_an_untrained_network_is_never_the_best_of_those_that_were_trained() -> None:
    """With four of forty rows held out, one of three initial networks scores as well as a trained one."""
    X, y = space(n=40)
    for network in train(stacked((X, y)), [Job((8,), seed) for seed in range(30)], ProbeTraining(max_rounds=5)):
        assert network.rounds > 0


def test_zero_rounds_keep_the_initial_weights() -> None:
    (network,) = train(stacked(space()), [Job((), 5)], ProbeTraining(max_rounds=0))
    drawn = np.random.default_rng([5, 1]).uniform(-np.sqrt(2 / 10), np.sqrt(2 / 10), (7, 3)).astype(np.float32)
    np.testing.assert_array_equal(network.layers[0][0], drawn)
    assert network.rounds == 0


def test_a_network_that_diverges_is_never_the_best_one() -> None:
    X, y = space(k=2)
    result = train(stacked((X, y), k=2), [Job((8, 8), seed) for seed in range(3)], ProbeTraining(learning_rate=1e30))
    for network in result:
        assert all(np.isfinite(weight).all() for weight, _ in network.layers)
        assert np.isfinite(network.loss)


def test_running_training_ends_when_stopped() -> None:
    data, stopped = stacked(space()), Event()
    stopped.set()
    batch = Batch(data, padded(data.X).flatten(0, 1), [Job((4,), 0)], QUICK)
    batch.train(stopped)
    assert batch.best.rounds.tolist() == [0]


# ---- threads and progress ----


@pytest.mark.parametrize("fails", [False, True])
def test_torch_has_as_many_threads_as_before(fails: bool) -> None:
    def finish(_: Batch) -> None:
        assert torch.get_num_threads() == 1
        if fails:
            raise RuntimeError("no more")

    torch.set_num_threads(3)  # the fixture of all these tests brings back what was before
    with pytest.raises(RuntimeError, match="no more") if fails else nullcontext():
        train(stacked(space()), [Job((), 0)], QUICK, threads=2, finish=finish)
    assert torch.get_num_threads() == 3


def test_progress_counts_networks_up_to_all() -> None:
    seen: list[tuple[int, int]] = []
    jobs = [Job(sizes, seed) for sizes in ((4,), ()) for seed in range(3)]
    train(stacked(space()), jobs, QUICK, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(3, 6), (6, 6)]


def test_every_thread_has_work() -> None:
    jobs = [Job((5, 3), seed) for seed in range(6)]
    assert [len(part) for part in networks._batches(stacked(space()), jobs, 2)] == [3, 3]
    assert [len(part) for part in networks._batches(stacked(space()), jobs, 1)] == [6]


# ---- rows held out, settings ----


@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    part=st.floats(0.01, 0.95),
    seed=st.integers(0, 2**32),
)
def test_rows_held_out_are_a_share_of_every_label_and_leave_one_of_each(
    counts: list[int], part: float, seed: int
) -> None:
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    rows, held = hold_out(y, part, seed)
    if max(counts) == 1:  # nothing can be spared
        assert rows.tolist() == held.tolist() == list(range(len(y)))
        return
    assert sorted([*rows.tolist(), *held.tolist()]) == list(range(len(y)))
    assert set(y[rows].tolist()) == set(range(len(counts)))
    spare = len(y) - len(counts)
    assert len(held) == min(max(1, round(part * len(y))), spare)
    if len(held) < spare:  # then every label gives about its share
        taken = np.bincount(y[held], minlength=len(counts))
        share = len(held) / len(y)
        for count, own in zip(counts, taken.tolist(), strict=True):
            assert own <= count - 1
            assert own <= share * count + len(counts)
            assert own >= min(share * count, count - 1) - len(counts)


def test_rows_held_out_are_in_proportion() -> None:
    y = np.repeat([0, 1, 2], [100, 50, 10])
    _, held = hold_out(y, 0.1, 0)
    assert np.bincount(y[held]).tolist() == [10, 5, 1]


def test_other_seeds_hold_out_other_rows_and_the_same_seed_the_same() -> None:
    y = np.repeat([0, 1], [60, 40])
    assert hold_out(y, 0.2, 3)[1].tolist() == hold_out(y, 0.2, 3)[1].tolist()
    assert hold_out(y, 0.2, 3)[1].tolist() != hold_out(y, 0.2, 4)[1].tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0; expected a whole number of at least 1"),
        ({"batch_size": 1.5}, "batch_size is 1.5; expected a whole number of at least 1"),
        ({"batch_size": True}, "batch_size is True; expected a whole number"),
        ({"max_rounds": -1}, "max_rounds is -1; expected a whole number of at least 0"),
        ({"patience": 0}, "patience is 0; expected a whole number of at least 1"),
        ({"learning_rate": 0}, "learning_rate is 0; expected a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan; expected a number above 0"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast'; expected a number above 0"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1; expected a number of at least 0"),
        ({"weight_decay": float("inf")}, "weight_decay is inf; expected"),
        ({"held_out": 1.0}, "held_out is 1.0; expected a share between 0 and 1"),
        ({"held_out": 0}, "held_out is 0; expected a share between 0 and 1"),
        ({"criterion": "luck"}, "criterion is 'luck'; expected 'accuracy' or 'loss'"),
    ],
)
def test_unfit_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ProbeTraining(**settings)  # type: ignore[arg-type]

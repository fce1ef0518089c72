"""Controls: selectivity against a control task, and the description length of the labels."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from closerlook.errors import InputError
from closerlook.probes import ProbeResult, ProbeTraining, control_labels, measure_selectivity, online_code, probe_grid
from closerlook.probes.control import BLOCKS, block_ends

QUICK = ProbeTraining(learning_rate=0.01, batch_size=64, max_rounds=8, patience=2)
CODE = ProbeTraining(learning_rate=0.01, batch_size=64, max_rounds=6, patience=2, criterion="loss")


# ---- control tasks ----


def test_a_word_type_has_one_control_label_in_all_splits() -> None:
    train, test = control_labels([["a", "b", "a", "c"], ["c", "a"]], ["N", "V", "N", "V"], seed=3)
    assert train[0] == train[2] == test[1]
    assert train[3] == test[0]


def test_control_labels_are_drawn_as_often_as_train_has_them() -> None:
    words = [f"w{i}" for i in range(4000)]
    (drawn,) = control_labels([words], ["N"] * 9 + ["V"], seed=0)
    assert np.mean(drawn == "V") == pytest.approx(0.1, abs=0.03)
    assert set(drawn.tolist()) == {"N", "V"}


def test_control_labels_follow_the_seed() -> None:
    words, y = [f"w{i}" for i in range(50)], ["N", "V"]
    one, same, other = (control_labels([words], y, seed)[0].tolist() for seed in (0, 0, 1))
    assert one == same != other


def worded(seed: int, n: int, types: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that show their word type and, in two columns of their own, a label that does not depend on it."""
    rng = np.random.default_rng([seed, n])
    word, y = rng.integers(0, types, n), rng.integers(0, 2, n)
    return word, y, np.c_[np.eye(types)[word], np.eye(2)[y]]


def test_selectivity_is_low_if_vectors_encode_word_types_and_high_if_not() -> None:
    (word, y, X), (test_word, test_y, test_X) = worded(0, 500), worded(1, 200)
    types = [f"w{i}" for i in word], [f"w{i}" for i in test_word]

    def selectivity(columns: slice) -> tuple[float, float]:
        train, test = (X[:, columns], y), (test_X[:, columns], test_y)
        result = probe_grid(train, test, sizes=[(32,)], seeds=2, training=QUICK)
        measured = measure_selectivity(train, test, types, result=result)
        assert measured.known == 1.0
        np.testing.assert_allclose(measured.selectivity, measured.task - measured.control)
        np.testing.assert_array_equal(measured.task, result.accuracy[0])
        return float(measured.task.mean()), float(measured.selectivity.mean())

    task, both = selectivity(slice(None))
    assert task > 0.95
    assert both < 0.2
    task, labels_only = selectivity(slice(40, 42))
    assert task > 0.95
    assert labels_only > 0.3


def test_random_labels_have_low_selectivity() -> None:
    rng = np.random.default_rng(2)
    word, _, X = worded(2, 600)
    y = rng.integers(0, 2, 600)
    train, test = (X[:400], y[:400]), (X[400:], y[400:])
    types = [f"w{i}" for i in word[:400]], [f"w{i}" for i in word[400:]]
    result = probe_grid(train, test, sizes=[(32,)], seeds=2, training=QUICK)
    assert result.mean == pytest.approx(0.5, abs=0.12)
    assert measure_selectivity(train, test, types, result=result).selectivity.mean() < -0.2


def some_result() -> tuple[tuple[np.ndarray, np.ndarray], ProbeResult]:
    X, y = np.random.default_rng(0).normal(size=(30, 7)), np.arange(30) % 3
    return (X, y), probe_grid((X, y), (X, y), sizes=[(5, 3), ()], seeds=[4, 2], training=QUICK)


def test_each_seed_has_its_own_control_task_independent_of_the_others() -> None:
    points, result = some_result()
    words = [f"w{i % 9}" for i in range(30)]
    both = measure_selectivity(points, points, (words, words), result=result)
    alone = probe_grid(points, points, sizes=[result.chosen_sizes], seeds=[2], training=QUICK)
    assert measure_selectivity(points, points, (words, words), result=alone).control[0] == both.control[1]
    assert both.control[0] != both.control[1]


def test_the_share_of_known_words_is_reported() -> None:
    points, result = some_result()
    train_words, test_words = ["a"] * 30, ["a"] * 24 + ["b"] * 6
    measured = measure_selectivity(points, points, (train_words, test_words), result=result)
    assert measured.known == 0.8
    written = json.loads(json.dumps(measured.to_dict()))
    assert (written["known_types"], written["sizes"]) == (0.8, list(result.chosen_sizes))
    assert written["selectivity"] == pytest.approx(written["task_accuracy"] - written["control_accuracy"])


@pytest.mark.parametrize(
    ("train", "test", "message"), [(29, 30, "train has 30 rows and 29"), (30, 2, "test has 30 rows and 2")]
)
def test_words_must_be_as_many_as_rows(train: int, test: int, message: str) -> None:
    points, result = some_result()
    with pytest.raises(InputError, match=f"{message} word types; expected one each"):
        measure_selectivity(points, points, (["a"] * train, ["a"] * test), result=result)


# ---- description length ----


def test_labels_that_can_be_read_off_take_few_bits() -> None:
    y = np.random.default_rng(0).integers(0, 4, 400)
    X = np.eye(4)[y] + np.random.default_rng(1).normal(size=(400, 4)) * 0.05
    result = online_code((X, y), sizes=(16,), seeds=2, training=CODE)
    assert result.uniform == 800
    assert result.compression.min() > 3
    np.testing.assert_allclose(result.compression, 800 / result.bits)


def test_random_labels_take_as_many_bits_as_without_vectors() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 6)), rng.integers(0, 4, 600)
    result = online_code((X, y), sizes=(32, 32), seeds=2, training=CODE)
    assert result.bits.min() > result.uniform * 0.97
    assert result.compression.max() < 1.03


def test_the_blocks_are_the_papers_and_add_up() -> None:
    assert BLOCKS == (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
    assert block_ends(10_000) == [10, 20, 40, 80, 160, 320, 625, 1250, 2500, 5000, 10_000]
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 3
    seen: list[tuple[int, int]] = []
    result = online_code(
        (X, y), sizes=(), seeds=[3, 1], training=CODE, progress=lambda done, total: seen.append((done, total))
    )
    assert result.ends == tuple(block_ends(50)) == (1, 2, 4, 7, 13, 25, 50)
    np.testing.assert_allclose(result.by_block.sum(axis=1), result.bits)
    np.testing.assert_allclose(result.by_block[:, 0], math.log2(3))  # the first goes without a probe
    assert seen == [(at, 6) for at in range(1, 7)]


def test_the_cost_of_a_block_is_bounded() -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 3)) * 100, np.random.default_rng(1).integers(0, 5, 60)
    result = online_code((X, y), sizes=(64,), seeds=2, training=ProbeTraining(learning_rate=1.0, max_rounds=5))
    starts, ends = np.array(result.ends[:-1]), np.array(result.ends[1:])
    assert (result.by_block[:, 1:] <= (ends - starts) * np.log2((starts + 1) * 5) + 1e-9).all()


def test_the_code_of_a_seed_does_not_depend_on_other_seeds() -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 7)), np.arange(40) % 3
    both = online_code((X, y), sizes=(5, 3), seeds=[0, 6], training=CODE, threads=2)
    alone = online_code((X, y), sizes=(5, 3), seeds=[6], training=CODE, threads=1)
    assert alone.bits[0] == both.bits[1] != both.bits[0]


@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_a_single_label_takes_no_bits(n: int) -> None:
    result = online_code((np.zeros((n, 2)), ["a"] * n), sizes=(), seeds=1, training=CODE)
    assert (result.bits.tolist(), result.uniform, result.compression.tolist()) == ([0.0], 0.0, [1.0])


def test_one_row_of_each_label_and_one_column_can_be_coded() -> None:
    result = online_code((np.arange(5.0)[:, None], list("abcde")), sizes=(4,), seeds=1, training=CODE)
    assert result.bits[0] > 0.9 * result.uniform
    assert json.loads(json.dumps(result.to_dict()))["ends"] == [1, 2, 3, 5]


@given(n=st.integers(1, 5000), blocks=st.lists(st.floats(0.0001, 1.0), min_size=1, max_size=12))
def test_blocks_end_at_rising_places_and_the_last_at_n(n: int, blocks: list[float]) -> None:
    ends = block_ends(n, blocks)
    assert ends[-1] == n
    assert ends[0] >= 1
    assert all(first < second for first, second in pairwise(ends))


@pytest.mark.parametrize("blocks", [[], [0.0, 1.0], [0.5, 1.5]])
def test_unfit_blocks_are_refused(blocks: list[float]) -> None:
    with pytest.raises(InputError, match="invalid blocks .*; expected shares above 0 and up to 1"):
        online_code(([[0.0]], ["a"]), blocks=blocks)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": (0,)}, "invalid sizes .*; expected a list of tuples"),
        ({"seeds": 0}, "invalid seeds 0"),
        ({"device": "abacus"}, "device 'abacus' is unknown"),
        ({"threads": 0}, "threads is 0; expected at least 1"),
    ],
)
def test_unfit_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        online_code(([[0.0], [1.0]], ["a", "b"]), **options)  # type: ignore[arg-type]


def test_names_that_are_imported_when_first_used_are_listed() -> None:
    from closerlook import probes

    assert set(probes.__all__) <= set(dir(probes))

"""Calls of the engine that cannot go on: memory runs out, or a signal arrives."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from closerlook.geometry import cluster, hull_distances, kernels, separate
from closerlook.geometry.attempts import Limit
from closerlook.geometry.point_similarity import compare_points
from closerlook.geometry.shape import two_nn
from tests.geometry.sets import random_labels, repeated

Result = list[object]


def clusters(n: int, d: int, labels: int, threads: int) -> Result:
    """Random labels: many merges, many blocked ones, hyperplanes and solver states that are kept and replaced."""
    rng = np.random.default_rng([n, d])
    result = cluster(rng.normal(size=(n, d)), rng.integers(0, labels, n), threads=threads)
    weights = [blocked.weights.tolist() for blocked in result.blocked_merges()]
    return [result.assignments.tolist(), weights]


def clusters_with_conflicts(attempts: Limit | None = None) -> Result:
    return [cluster(*repeated(np.random.default_rng(0), 4), attempts=attempts).assignments.tolist()]


def verdict_with_certificate() -> Result:
    rng = np.random.default_rng(0)
    result = separate(rng.normal(size=(30, 12)), rng.normal(size=(30, 12)) + 0.4)
    return [result.verdict, result.lower, result.upper]


def distances_to_hulls() -> Result:
    X, y = random_labels(np.random.default_rng(0), 3)
    hulls = [np.flatnonzero(y == label) for label in np.unique(y)]
    return hull_distances(X, hulls, X + 0.5, threads=2).tolist()


def neighbours_and_ranks() -> Result:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 5)), rng.normal(size=(80, 5))
    return [two_nn(X), compare_points(X, Y)]


CALLS: dict[str, Callable[[], Result]] = {
    "one thread": lambda: clusters(60, 3, 3, 1),
    "two threads": lambda: clusters(60, 3, 3, 2),
    "many dimensions": lambda: clusters(90, 24, 2, 1),
    "conflicts": clusters_with_conflicts,
    "limited attempts": lambda: clusters_with_conflicts("released"),
    "certificate": verdict_with_certificate,
    "hulls": distances_to_hulls,
    "rows": neighbours_and_ranks,
}


@pytest.fixture
def engine() -> Iterator[kernels.Engine]:
    """The library, in which no allocation is made to fail after the test."""
    loaded = kernels.library()
    yield loaded
    loaded.engine_fail_allocation(0)


@pytest.mark.parametrize("name", CALLS)
def test_any_failed_allocation_is_a_memory_error_and_leaves_nothing_behind(name: str, engine: kernels.Engine) -> None:
    call, failures = CALLS[name], 0
    expected = call()
    while True:
        engine.engine_fail_allocation(failures + 1)
        try:
            assert call() == expected
            break
        except MemoryError:
            failures += 1
        assert engine.engine_blocks() == 0
        engine.engine_fail_allocation(0)
        assert call() == expected
    assert failures > 5


def test_a_size_beyond_all_memory_is_a_memory_error(engine: kernels.Engine) -> None:
    numbers, whole, signs = np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int8)
    for d in (2**45, 2**59):  # more than the machine has, and more than a size can say
        with pytest.raises(MemoryError, match="could not allocate memory"):
            engine.solve_pairs(
                numbers, np.zeros(1, np.float32), 0.0, d, whole, 0, whole, whole, 0, 0.0, 0.0, 0.0, 1, 1,
                signs, numbers, numbers, whole, None, None, None, None, None,
            )  # fmt: skip
    assert engine.engine_blocks() == 0


class HandlerError(Exception):
    """What the signal handler of these tests raises."""


def interrupt(*_: object) -> None:
    raise HandlerError


def large_set(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), rng.integers(0, 3, n)


def one_hard_pair() -> object:
    X, _ = large_set(4000, 2000)
    return separate(X[:2000], X[2000:])


def ranks_of_many_rows() -> object:
    X, _ = large_set(30000, 8)
    return compare_points(X, X[::-1])


LONG: dict[str, Callable[[], object]] = {
    "linkage": lambda: cluster(*large_set(60000, 16), threads=1),
    "linkage on two threads": lambda: cluster(*large_set(60000, 16), threads=2),
    "merging": lambda: cluster(*large_set(8000, 96)),
    "one pair": one_hard_pair,
    "ranks": ranks_of_many_rows,
}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer that sends signals")
@pytest.mark.parametrize("after", [0.7, 1.3])
@pytest.mark.parametrize("name", LONG)
def test_a_signal_ends_a_long_call_within_half_a_second(name: str, after: float, engine: kernels.Engine) -> None:
    """Measured in processor time, for busy machines; another thread may work during that half second too."""
    before = signal.signal(signal.SIGALRM, interrupt)
    started: list[float] = []
    results: list[object] = []
    timer = threading.Timer(after, lambda: (started.append(time.process_time()), signal.raise_signal(signal.SIGALRM)))
    timer.start()
    try:
        with pytest.raises(HandlerError):
            results.append(LONG[name]())
            timer.join()
        assert not results, "the call ended before the signal"
        assert time.process_time() - started[0] < 1.0
        assert engine.engine_blocks() == 0
    finally:
        signal.signal(signal.SIGALRM, before)

"""Alarms and the time budget of GeometryCallback, on made-up measurements."""

import math

import numpy as np
import pytest

from closerlook.tuning.alarms import Alarm, AlarmState
from closerlook.tuning.budget import Budget
from closerlook.tuning.measures import predict_held_out


def correct(n: int, of: int = 100) -> np.ndarray:
    return np.arange(of) < n


def test_accuracy_raises_an_alarm_when_the_mcnemar_test_is_significant() -> None:
    state = AlarmState("t", 2, level=0.01)
    assert state.check(0, math.nan, correct(80)) == []
    assert state.check(1, math.nan, correct(90)) == []
    assert state.check(2, math.nan, correct(84)) == []  # 6 lost, 0 gained: p = 1/64
    (alarm,) = state.check(3, math.nan, correct(83))  # 7 lost, 0 gained: p = 1/128
    assert alarm == Alarm("t", 2, 3, "held_out_accuracy", 0.83, 0.9, pytest.approx(1 / 128))
    assert "step 3, task t, layer 2: held-out accuracy fell from 0.900" in str(alarm)


def test_examples_that_became_correct_count_against_an_alarm() -> None:
    state = AlarmState("t", 2, level=0.01)
    state.check(0, math.nan, correct(50))
    shifted = (np.arange(100) >= 10) & (np.arange(100) < 53)  # 10 lost, 3 gained
    assert state.check(1, math.nan, shifted) == []


def test_an_alarm_comes_once_for_each_fall() -> None:
    state = AlarmState("t", 2, level=0.01)
    numbers = [len(state.check(step, math.nan, correct(n))) for step, n in enumerate([90, 50, 50, 40, 90, 50])]
    assert numbers == [0, 1, 0, 0, 0, 1]


def test_similarity_raises_an_alarm_below_that_of_halves() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.array(list("abcd")), 30)
    X = (rng.normal(size=(120, 3)) + 8 * rng.normal(size=(4, 3))[np.repeat(np.arange(4), 30)]).astype(np.float32)
    state = AlarmState("t", 0, level=0.01)
    state.measure_noise(X, y, 1)
    noise = state.similarity_noise
    assert 0.5 < noise < 1
    assert state.check(0, 1.0, correct(0, 0)) == []
    assert state.check(1, noise + 1e-6, correct(0, 0)) == []
    (alarm,) = state.check(2, noise - 1e-6, correct(0, 0))
    assert (alarm.measure, alarm.reference) == ("similarity", noise)
    assert "similarity to the start fell" in str(alarm)


def test_unknown_similarity_raises_no_alarm() -> None:
    state = AlarmState("t", 0, level=0.01)
    assert state.check(0, 0.1, correct(0, 0)) == []
    state.similarity_noise = 0.9
    assert state.check(1, math.nan, correct(0, 0)) == []


def test_the_budget_allows_a_measurement_when_all_stay_within_the_share() -> None:
    now = [0.0]
    budget = Budget(0.05, clock=lambda: now[0])
    now[0] = 1.0
    budget.add(1.0)
    assert not budget.allows()
    now[0] = 40.9  # 39.9 s of training: 2 s would be too much
    assert not budget.allows()
    now[0] = 41.1
    assert budget.allows()
    assert budget.share == pytest.approx(1 / 40.1)
    assert budget.skipped == 2


def test_what_is_measured_once_counts_but_is_not_expected_again() -> None:
    now = [0.0]
    budget = Budget(0.1, clock=lambda: now[0])
    now[0] = 4.0
    budget.add(1.0, once=3.0)
    assert (budget.seconds, budget.expected) == (4.0, 1.0)
    now[0] = 4 + 50.5
    assert budget.allows()
    assert Budget(None, clock=lambda: 0.0).allows()


def test_a_label_that_was_never_seen_is_never_predicted() -> None:
    X = np.array([[0.0, 0], [0, 1], [9, 9]], np.float32)
    found = predict_held_out(X, np.array([0, 0, 2]), X, np.array([0, 1, 2]))
    assert found.tolist() == [True, False, True]

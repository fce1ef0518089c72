"""The steps at which snapshots are taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from closerlook.errors import InputError
from closerlook.tuning.schedule import Snapshots, read_snapshots, snapshot_steps


@pytest.mark.parametrize(
    ("snapshots", "expected"),
    [
        ("log", [0, 1, 2, 4, 8, 16, 20]),
        ("epoch", [0, 5, 10, 15, 20]),
        ("every: 7", [0, 7, 14, 20]),
        ("every:30", [0, 20]),
        (2, [0, 20]),
        ("3", [0, 1, 20]),
        (99, list(range(21))),
        ([3, 20, 3], [0, 3, 20]),
        ("4, 5", [0, 4, 5, 20]),
        ([], [0, 20]),
    ],
)
def test_schedules_of_a_training_of_twenty_steps(snapshots: Snapshots, expected: list[int]) -> None:
    assert snapshot_steps(snapshots, 20, 5) == expected


def test_the_last_epoch_may_be_incomplete() -> None:
    assert snapshot_steps("epoch", 13, 5) == [0, 5, 10, 13]


@given(number=some.integers(2, 60), total=some.integers(1, 500))
def test_a_number_of_snapshots_is_spread_from_the_first_to_the_last_step(number: int, total: int) -> None:
    steps = snapshot_steps(number, total, 1)
    assert len(steps) == min(number, total + 1)
    assert (steps[0], steps[-1]) == (0, total)
    assert steps == sorted(set(steps))


@given(total=some.integers(1, 3000), per_epoch=some.integers(1, 300), every=some.integers(1, 4000))
def test_every_schedule_includes_the_first_and_the_last_step(total: int, per_epoch: int, every: int) -> None:
    for snapshots in ("log", "epoch", f"every: {every}"):
        steps = snapshot_steps(snapshots, total, per_epoch)
        assert (steps[0], steps[-1]) == (0, total)
        assert steps == sorted(set(steps))


@pytest.mark.parametrize(
    ("snapshots", "message"),
    [
        ("often", "snapshots 'often' requested; expected log, epoch, every: K"),
        ("every: 0", "snapshots 'every: 0' requested"),
        ("", "snapshots '' requested"),
        (2.5, "snapshots 2.5 requested"),
        ([1, "x"], "requested; expected log"),
        (
            1,
            "1 snapshots requested; expected at least 2, the start and the end "
            "(for a snapshot at step 1: [1] in a plan or in Python, `1,` on the command line)",
        ),
        ([-1], "a snapshot at step -1 requested; steps count from 0"),
        ([21], "a snapshot at step 21 requested; this training has steps 0 to 20"),
        ("0,21", "a snapshot at step 21 requested"),
    ],
)
def test_invalid_schedules_are_refused_in_one_line(snapshots: Snapshots, message: str) -> None:
    with pytest.raises(InputError) as refused:
        snapshot_steps(snapshots, 20, 5)
    assert message in str(refused.value)


def test_the_forms_that_the_message_about_one_snapshot_names_are_accepted() -> None:
    assert read_snapshots([1]) == read_snapshots("1,") == [1]


def test_a_negative_number_of_snapshots_is_refused_without_a_form_that_would_be_refused_too() -> None:
    with pytest.raises(InputError, match="^-3 snapshots requested; expected at least 2, the start and the end$"):
        snapshot_steps(-3, 20, 5)


def test_reading_the_stored_form_gives_the_same_form() -> None:
    for snapshots in ("log", "every:4", 7, "3,1"):
        stored = read_snapshots(snapshots)  # type: ignore[arg-type]
        assert read_snapshots(stored) == stored

"""Label noise and merged labels: tasks whose overlap is known."""

import pytest

from closerlook.errors import InputError
from closerlook.geometry import cluster
from closerlook.representations.extract import extract
from closerlook.tasks import load_task


@pytest.mark.parametrize("percent", [0, 10, 40])
def test_that_share_of_the_labels_of_each_split_is_another_one(percent: int) -> None:
    task, noisy = load_task("toy-role"), load_task(f"noisy-{percent}:toy-role")
    assert (noisy.name, noisy.labels) == (f"noisy-{percent}:toy-role", task.labels)
    for split in task.splits:
        changed = noisy.split(split.name).y != split.y
        assert changed.sum() == round(len(split) * percent / 100)
        assert noisy.split(split.name).texts == split.texts


def test_label_noise_is_the_same_every_time() -> None:
    assert load_task("noisy-20:toy-pos") == load_task("noisy-20:toy-pos")
    assert load_task("noisy-20:toy-pos") != load_task("toy-pos")


def test_merged_labels_keep_every_example() -> None:
    task, merged = load_task("toy-pos"), load_task("merged-3:toy-pos")
    parts = {part: group for group in merged.labels for part in group.split("+")}
    assert sorted(parts) == sorted(task.labels)
    before, after = task.split("test"), merged.split("test")
    assert [parts[task.labels[label]] for label in before.y] == [merged.labels[label] for label in after.y]


def test_label_noise_and_merged_labels_make_labels_fall_into_more_clusters() -> None:
    names = ("toy-pos", "noisy-40:toy-pos", "merged-3:toy-pos")
    clean, noisy, merged = (
        cluster(space.X[:300, :10], space.y[:300])
        for name in names
        for space in extract("bert-tiny", name, splits="test", layers="last")
    )
    assert noisy.n_clusters > clean.n_clusters + 5
    assert not merged.is_separable


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("noisy-95:toy-pos", "has 95% label noise; expected 0 to 90"),
        ("merged-1:toy-pos", "merges 17 labels into 1; expected 2 to 16"),
        ("merged-17:toy-pos", "expected 2 to 16"),
        ("noisy-20:toy-poss", "toy-pos"),
    ],
)
def test_impossible_overlap_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_task(name)

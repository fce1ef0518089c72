"""The test split that is made for a task without one: stratified, by text, seeded, and never for one that has it."""

import logging
from collections import Counter

import pytest

from closerlook.errors import InputError
from closerlook.tasks import load_task
from closerlook.tasks.readers import read_task
from closerlook.tasks.splitting import with_test_split
from closerlook.tasks.task import Annotated, Task
from closerlook.texts import words_of


def sentences(**counts: int) -> list[Annotated]:
    return [(f"{label} {i}", [((), label)]) for label, n in counts.items() for i in range(n)]


def counted(task: Task, split: str) -> Counter[str]:
    return Counter(task.labels[y] for y in task.split(split).y)


def test_each_label_gives_its_share() -> None:
    task = with_test_split(Task.build("t", "sentence", {"train": sentences(a=50, b=20, c=5, d=2, e=1)}), 0.2)
    assert counted(task, "test") == {"a": 10, "b": 4, "c": 1, "d": 1}
    assert counted(task, "train") == {"a": 40, "b": 16, "c": 4, "d": 1, "e": 1}
    assert len(with_test_split(Task.build("t", "sentence", {"train": sentences(a=50, b=50)}), 0.4).split("test")) == 40


def test_equal_texts_are_never_in_both_splits() -> None:
    texts = sentences(a=30, b=30) * 3
    task = with_test_split(Task.build("t", "sentence", {"train": texts}), 0.2)
    train, test = (set(task.split(name).texts) for name in ("train", "test"))
    assert not train & test
    assert len(task.split("test")) == 36
    assert len(task.split("train")) + len(task.split("test")) == len(texts)


def test_a_text_with_most_examples_of_its_label_goes_to_test_only_if_no_other_can() -> None:
    two = [("often", [((), "a")])] * 9 + [("once", [((), "a")])] + sentences(b=10)
    assert set(with_test_split(Task.build("t", "sentence", {"train": two}), 0.2).split("test").texts) >= {"once"}
    both = [("one", [((), "a")])] * 9 + [("two", [((), "a")])] * 8
    assert set(with_test_split(Task.build("t", "sentence", {"train": both}), 0.2).split("test").texts) == {"two"}


def test_a_task_of_words_keeps_every_label_in_train_and_its_share_in_test() -> None:
    full = load_task("toy-pos")
    train = full.split("train")
    task = with_test_split(Task("t", full.unit, full.labels, (train,)), 0.2)
    assert set(counted(task, "train")) == {full.labels[y] for y in train.y}
    assert 0.15 < len(task.split("test")) / len(train) < 0.25
    assert not set(task.split("train").texts) & set(task.split("test").texts)
    for name in ("train", "test"):
        part = task.split(name)
        words = [words_of(part.texts[i])[word] for i, (word,) in zip(part.sentence, part.positions, strict=True)]
        assert task.words(part) == tuple(words)


def test_the_split_depends_on_the_seed_and_on_nothing_else() -> None:
    task = Task.build("t", "sentence", {"train": sentences(a=30, b=30)})
    assert with_test_split(task).content_hash == with_test_split(task).content_hash
    assert with_test_split(task, seed=1).content_hash != with_test_split(task).content_hash


def test_a_task_with_a_test_split_stays_as_it_is_and_dev_stays_in_its_place() -> None:
    task = load_task("toy-question")
    assert with_test_split(task) is task
    both = Task.build("t", "sentence", {"train": sentences(a=9, b=9), "dev": sentences(a=1), "extra": sentences(b=1)})
    assert [split.name for split in with_test_split(both).splits] == ["train", "dev", "test", "extra"]


def test_what_was_done_is_noted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"text": text, "label": targets[0][1]} for text, targets in sentences(a=10, b=10)]
    with caplog.at_level(logging.WARNING, logger="closerlook"):
        task = read_task(rows, name="mine", test_share=0.3)
    note = (
        "task mine has no test split: 6 of its 20 examples in train are its test split (test share 0.3, stratified by "
        "label, equal texts together, seed 0)"
    )
    assert (task.notes, caplog.messages) == ((note,), [note])


@pytest.mark.parametrize("share", [0, 1, -0.1, 7])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="expected a number between 0 and 1"):
        with_test_split(Task.build("t", "sentence", {"train": sentences(a=9)}), share)
    with pytest.raises(InputError, match="test_share 'x' is not a number"):
        read_task([{"text": "a", "label": "b"}], test_share="x")


def test_a_task_whose_labels_have_one_text_each_cannot_be_split() -> None:
    with pytest.raises(InputError, match="none can be made: no label occurs in two different texts"):
        with_test_split(Task.build("t", "sentence", {"train": sentences(a=1, b=1)}))

"""Steps are counted before a run as transformers' Trainer counts them; early stopping has its own texts."""

from typing import Any

import pytest

from closerlook.encoders.source import EMBEDDED
from closerlook.tasks.task import SPLIT_NAMES, Task
from closerlook.tuning import TuningSettings, tune
from closerlook.tuning.steps import choose_texts, count_steps, planned_steps
from tests.tuning.tasks import small


@pytest.mark.parametrize(
    "changes",
    [
        {"epochs": 2, "batch_size": 4},
        {"epochs": 1.5, "batch_size": 4},
        {"epochs": 0.3, "batch_size": 4},
        {"epochs": 1, "batch_size": 99},
        {"epochs": 2, "batch_size": 3, "trainer_arguments": {"gradient_accumulation_steps": 2}},
        {"epochs": 2, "batch_size": 4, "trainer_arguments": {"dataloader_drop_last": True}},
        {
            "epochs": 2,
            "batch_size": 2,
            "trainer_arguments": {"gradient_accumulation_steps": 3, "dataloader_drop_last": True},
        },
        {"epochs": 2, "batch_size": 5, "early_stopping": 9},
    ],
)
def test_planned_steps_are_the_steps_of_the_trainer(changes: dict[str, Any]) -> None:
    task = small("sentence", 11, 4)
    run = tune(EMBEDDED, task, snapshots="epoch", layers="last", learning_rate=1e-5, **changes)
    assert planned_steps(run.settings, task) == [snapshot.step for snapshot in run.snapshots]
    assert run.steps == count_steps(len(choose_texts(task, run.settings).train), run.settings)[0]


def test_processes_share_the_batches() -> None:
    settings = TuningSettings(epochs=2, batch_size=4)
    assert [count_steps(21, settings, processes) for processes in (1, 2, 3, 9)] == [(12, 6), (6, 3), (4, 2), (2, 1)]
    dropping = settings.change(trainer_arguments={"dataloader_drop_last": True})
    assert [count_steps(21, dropping, processes) for processes in (1, 2)] == [(10, 5), (4, 2)]


def test_without_early_stopping_all_texts_are_trained_on() -> None:
    texts = choose_texts(small(), TuningSettings())
    assert (len(texts.train), len(texts.stopping), texts.stopping_split) == (40, 0, None)


def test_early_stopping_holds_out_a_tenth_of_train_drawn_by_the_seed() -> None:
    settings = TuningSettings(early_stopping=1)
    texts = choose_texts(small(), settings)
    assert texts.stopping_split is small().split("train")
    assert (len(texts.train), len(texts.stopping)) == (36, 4)
    assert sorted([*texts.train, *texts.stopping]) == list(range(40))
    assert list(choose_texts(small(), settings).stopping) == list(texts.stopping)
    assert list(choose_texts(small(), settings.change(seed=1)).stopping) != list(texts.stopping)


@pytest.mark.parametrize("name", [name for name, split in SPLIT_NAMES.items() if split == "dev"])
def test_early_stopping_uses_the_dev_split_if_there_is_one(name: str) -> None:
    annotated = [((f"word{i}", "here"), [((0,), "AB"[i % 2])]) for i in range(4)]
    task = Task.build("t", "token", {"train": annotated, name: annotated[:2]})
    texts = choose_texts(task, TuningSettings(early_stopping=1))
    assert texts.stopping_split is not None
    assert (len(texts.train), texts.stopping_split.name, list(texts.stopping)) == (4, "dev", [0, 1])

"""Hugging Face datasets: saved datasets, folders of data files, label names, and what is refused; no hub is reached."""

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from closerlook.errors import InputError, WorkError
from closerlook.tasks.readers.hub import load_hub_task

datasets = pytest.importorskip("datasets", reason="the extra `hub` is not installed")


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No hub, and a cache that goes with the test."""
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


def saved(tmp_path: Path, features: dict[str, Any] | None = None, **splits: dict[str, list[Any]]) -> str:
    """The folder of a dataset saved with those columns in each split."""
    given = datasets.Features(features) if features else None
    dataset_dict = {name: datasets.Dataset.from_dict(columns, features=given) for name, columns in splits.items()}
    datasets.DatasetDict(dataset_dict).save_to_disk(tmp_path / "weather")
    return str(tmp_path / "weather")


TAGGED = {
    "tokens": datasets.Sequence(datasets.Value("string")),
    "tags": datasets.Sequence(datasets.ClassLabel(names=["ADJ", "NOUN"])),
    "id": datasets.Value("int64"),
}
RAIN = {"tokens": [["light", "rain"], ["so"]], "tags": [[0, 1], [-100]], "id": [1, 2]}


def test_token_classification_uses_the_names_of_labels(tmp_path: Path) -> None:
    task = load_hub_task(saved(tmp_path, TAGGED, train=RAIN, validation=RAIN))
    assert (task.name, task.unit, task.labels) == ("weather", "token", ("ADJ", "NOUN"))
    assert [split.name for split in task.splits] == ["train", "dev"]
    assert task.split("train").texts == (("light", "rain"), ("so",))
    assert task.split("train").positions.tolist() == [[0], [1]]


def test_tags_may_be_strings(tmp_path: Path) -> None:
    task = load_hub_task(saved(tmp_path, train={"w": [["a", "b"]], "ner": [["O", None]]}), words="w", label="ner")
    assert (task.labels, len(task.split("train"))) == (("O",), 1)


def test_classification_uses_the_names_of_labels_and_leaves_hidden_test_labels_out(tmp_path: Path) -> None:
    features = {"sentence": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    train = {"sentence": ["It rains", "Does it", "So"], "label": [1, -1, None]}
    task = load_hub_task(saved(tmp_path, features, train=train, test={"sentence": ["a"], "label": [-1]}))
    assert (task.unit, task.labels) == ("sentence", ("yes",))
    assert [split.name for split in task.splits] == ["train"]
    assert task.split("train").texts == ("It rains", "Does it", "So")


@pytest.mark.parametrize(("values", "labels"), [([-1, 0, -100], ("-1", "0")), (["x", "y", None], ("x", "y"))])
def test_labels_without_names_are_used_as_they_are(tmp_path: Path, values: list[Any], labels: tuple[str]) -> None:
    task = load_hub_task(saved(tmp_path, train={"text": ["a", "b", "c"], "label": values}))
    assert (task.labels, len(task.split("train"))) == (labels, 2)


def test_a_single_saved_dataset_is_train(tmp_path: Path) -> None:
    datasets.Dataset.from_dict({"text": ["a"], "label": ["x"]}).save_to_disk(tmp_path / "one")
    assert [split.name for split in load_hub_task(str(tmp_path / "one")).splits] == ["train"]


def test_the_format_of_a_saved_dataset_does_not_matter(tmp_path: Path) -> None:
    dataset = datasets.Dataset.from_dict(RAIN, features=datasets.Features(TAGGED))
    dataset.with_format("numpy").save_to_disk(tmp_path / "one")
    assert load_hub_task(str(tmp_path / "one")).labels == ("ADJ", "NOUN")


def test_a_folder_of_data_files_is_read(tmp_path: Path) -> None:
    for split in ("train", "validation"):
        (tmp_path / f"{split}.jsonl").write_text(json.dumps({"text": f"It {split}s", "label": "x"}))
    task = load_hub_task(str(tmp_path))
    assert {split.name: split.texts for split in task.splits} == {
        "train": ("It trains",),
        "dev": ("It validations",),
    }


def test_an_empty_split_is_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded by hand: `datasets` 5 refuses to load one, other releases do not."""
    columns = {"train": {"text": ["a"], "label": ["x"]}, "test": {"text": [], "label": []}}
    dataset_dict = datasets.DatasetDict({split: datasets.Dataset.from_dict(given) for split, given in columns.items()})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: dataset_dict)
    assert [split.name for split in load_hub_task("any").splits] == ["train"]


def refusal(name: str, kind: type[Exception] = InputError, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        load_hub_task(name, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_unreachable_hub_is_a_work_error() -> None:
    assert refusal("nobody/nothing", WorkError) == (
        "dataset 'nobody/nothing': Couldn't reach 'nobody/nothing' on the Hub (OfflineModeIsEnabled);"
        " check the network, or give a folder"
    )


def test_a_missing_or_empty_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(f"{tmp_path}/nothing").endswith("expected a hub id or a folder of data")
    assert "doesn't contain any data files; expected a hub id or a folder of data" in refusal(str(tmp_path))


def test_data_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text("{")
    assert refusal(str(tmp_path)).startswith(f"dataset '{tmp_path}' cannot be loaded: ")
    (tmp_path / "dataset_dict.json").write_text("{")
    assert refusal(str(tmp_path)).startswith(f"dataset '{tmp_path}' cannot be loaded: ")


def test_columns_that_are_not_there_are_refused(tmp_path: Path) -> None:
    name = saved(tmp_path, train={"a": ["x"], "b": ["y"]})
    assert refusal(name) == (
        f"dataset '{name}', no label column (label or class or targets or tags or labels or spans or"
        " entities);"
        " the columns are 'a', 'b': name one with label="
    )


def test_a_label_beyond_the_names_is_refused(tmp_path: Path) -> None:
    dataset = datasets.Dataset.from_dict({"text": ["a"], "label": [7]})
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["x", "y"])})
    dataset.info.features = features  # what a faulty loading script leaves; `cast` would refuse it
    dataset.save_to_disk(tmp_path / "one")
    assert refusal(str(tmp_path / "one")).endswith("invalid label 7; the dataset names labels 0 to 1")


def test_a_dataset_without_labels_is_refused(tmp_path: Path) -> None:
    name = saved(tmp_path, train={"text": ["a"], "label": [-100]})
    assert refusal(name) == (
        f"dataset '{name}': no labelled example found; name the columns with label=, text= or words="
    )


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_datasets(name: str, *args: Any) -> Any:
        if name == "datasets":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without_datasets)
    assert refusal("any") == "reading hub datasets needs `pip install closerlook[hub]`"

"""What `diff` says about two encoders."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import closerlook
from closerlook.differences import Difference, diff
from closerlook.differences.measuring import paired_change
from closerlook.differences.spaces import pair_layers
from closerlook.encoders.source import EncoderInfo
from closerlook.errors import InputError
from closerlook.geometry import cluster, cluster_distances, label_distances
from closerlook.tasks import load_task
from closerlook.tasks.task import sample_split
from tests.threads import one_torch_thread
from tests.tuning.trainings import train

QUICK = {"max_examples": 150, "shuffles": 2, "resamples": 4}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    with one_torch_thread():
        yield


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("run") / "out")


@pytest.fixture(scope="module")
def result(out: Path, tmp_path_factory: pytest.TempPathFactory) -> Difference:
    store = tmp_path_factory.mktemp("store")
    return diff("bert-tiny", out, ["toy-question", "toy-pos"], store=store, device="cpu", **QUICK)  # type: ignore[arg-type]


def test_every_layer_of_every_task_is_measured(result: Difference) -> None:
    assert result.tasks == ["toy-question", "toy-pos"]
    measured = result.layers[result.layers.measure == "accuracy"]
    assert measured[["task", "layer"]].to_numpy().tolist() == [[task, at] for task in result.tasks for at in range(3)]
    assert result.related
    assert result.after == "checkpoint-6"


def test_the_measures_are_those_of_the_library(result: Difference, out: Path) -> None:
    task = load_task("toy-pos")
    small = closerlook.Task(task.name, task.unit, task.labels, (sample_split(task, "train", 150, 0),))
    (space,) = closerlook.extract(str(out / "checkpoint-6"), small, layers="last")
    clustering = cluster(space.X, space.label_names)
    distances = label_distances(cluster_distances(space.X, clustering))
    last = result.last_layer("toy-pos")
    assert last.loc["clusters"].after == clustering.n_clusters
    assert last.loc["minimum_distance"].after == pytest.approx(distances.mean_minimum() / distances.radius, rel=1e-9)
    own = result.labels[result.labels.task == "toy-pos"].set_index("label")
    for label, other, distance in distances.nearest():
        assert own.loc[str(label)].nearest_after == str(other or "")
        assert own.loc[str(label)].after == pytest.approx(distance / distances.radius, rel=1e-9)


def test_examples_say_what_moved_and_what_became_right_or_wrong(result: Difference) -> None:
    examples = result.examples
    assert set(examples.became) <= {"", "right", "wrong"}
    right = examples[examples.became == "right"]
    assert (right.label == right.nearest_after).all()
    assert (right.label != right.nearest_before).all()
    wrong = examples[examples.became == "wrong"]
    assert (wrong.label == wrong.nearest_before).all()
    assert (examples.moved >= 0).all()
    assert (examples[examples.task == "toy-pos"].word != "").all()


def test_the_summary_has_the_numbers_of_the_tables(result: Difference) -> None:
    last = result.last_layer("toy-question")
    first = result.summary()["toy-question"][0]
    assert f"{100 * last.loc['accuracy'].before:.1f} → {100 * last.loc['accuracy'].after:.1f} %" in first
    assert "toy-pos:" in str(result)
    assert "<li>" in result._repr_html_()


def test_the_page_is_written_with_every_task_and_no_request(result: Difference, tmp_path: Path) -> None:
    page = result.write(tmp_path / "diff.html").read_text()
    assert "toy-question" in page
    assert "Examples that moved most" in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    json.dumps(result.to_dict(), allow_nan=False)


def test_unrelated_encoders_are_compared_without_movements(tmp_path: Path) -> None:
    result = diff("bert-tiny", "random:bert-tiny", "toy-pos", device="cpu", **QUICK)  # type: ignore[arg-type]
    assert not result.related
    assert result.examples.moved.isna().all()
    assert result.last_layer("toy-pos").loc["accuracy"].before > result.last_layer("toy-pos").loc["accuracy"].after
    assert "not versions of one model" in result.write(tmp_path / "page.html").read_text()


def test_the_same_encoder_twice_is_refused() -> None:
    with pytest.raises(InputError, match="are the same encoder"):
        diff("bert-tiny", "bert-tiny", "toy-pos")


def test_a_task_without_test_split_is_refused() -> None:
    task = load_task("toy-pos")
    alone = closerlook.Task("alone", task.unit, task.labels, (task.split("train"),))
    with pytest.raises(InputError, match="alone has train; expected train and a split to test on"):
        diff("bert-tiny", "random:bert-tiny", alone)


@pytest.mark.parametrize(
    ("layers", "expected"),
    [((2, 2), [(0, 0), (1, 1), (2, 2)]), ((2, 4), [(0, 0), (1, 2), (2, 4)]), ((4, 2), [(0, 0), (2, 1), (4, 2)])],
)
def test_layers_of_different_depths_are_paired_by_their_share(
    layers: tuple[int, int], expected: list[tuple[int, int]]
) -> None:
    first, second = (EncoderInfo(n, 8, 16, True, 1) for n in layers)
    assert pair_layers((first, second)) == expected


def test_paired_change_is_mcnemars_test() -> None:
    before = np.array([True] * 90 + [False] * 10)
    after = np.array([True] * 85 + [False] * 5 + [True] * 10)
    change, low, high, p_value = paired_change(before, after)
    assert change == pytest.approx(0.05)
    assert low < 0.05 < high
    assert p_value == pytest.approx(0.30176, abs=1e-5)  # binomial, 10 of 15
    assert paired_change(before, before) == (0.0, 0.0, 0.0, 1.0)


def test_a_sample_keeps_whole_texts_and_only_texts_with_examples() -> None:
    task = load_task("toy-pos")
    split = sample_split(task, "train", 100, 0)
    assert len(split) == 100
    assert sorted(set(split.sentence.tolist())) == list(range(len(split.texts)))
    assert len(sample_split(task, "train", 10**6, 0)) == len(task.split("train"))

"""What `diff` says about two encoders."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import closerlook
from closerlook.differences import Difference, diff
from closerlook.differences.measuring import paired_change
from closerlook.differences.spaces import Trust, find_encoder, pair_layers
from closerlook.encoders.source import EncoderInfo, resolve
from closerlook.errors import InputError
from closerlook.escaping import HIDDEN
from closerlook.geometry import cluster, cluster_distances, label_distances
from closerlook.tasks import load_task
from closerlook.tasks.readers import read_task
from closerlook.tasks.task import Task, sample_split
from closerlook.tuning import tune
from closerlook.tuning.heads import head_scores
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
    small = Task(task.name, task.unit, task.labels, (sample_split(task, "train", 150, 0),))
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
    assert "toy-pos, last layer:" in str(result)
    assert "<li>" in result._repr_html_()


@pytest.mark.parametrize(
    ("separable", "ending"),
    [
        ((1, 1), "; linearly separable before and after (with shuffled labels, 90.0 → 95.0 % of pairs of labels are)."),
        (
            (0, 1),
            "; not linearly separable before, linearly separable after (98.5 → 100.0 % of pairs of labels are; with "
            "shuffled labels, 90.0 → 95.0 %).",
        ),
    ],
)
def test_separability_is_said_next_to_that_of_shuffled_labels(
    result: Difference, separable: tuple[int, int], ending: str
) -> None:
    shares = {"separable": separable, "separable_pairs": (0.985, 1), "separable_pairs_shuffled": (0.9, 0.95)}
    layers = result.layers.astype({"before": float, "after": float})
    for measure, values in shares.items():
        layers.loc[layers.measure == measure, ["before", "after"]] = values
    clusters = replace(result, layers=layers).summary()["toy-pos"][1]
    assert clusters.endswith(ending)


def test_the_page_is_written_with_every_task_and_no_request(result: Difference, tmp_path: Path) -> None:
    page = result.write(tmp_path / "diff.html").read_text()
    assert "toy-question" in page
    assert "Examples that moved most" in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    json.dumps(result.to_dict(), allow_nan=False)


def test_figures_and_tables_of_the_page_have_links_and_follow_the_choice_of_a_task(
    result: Difference, tmp_path: Path
) -> None:
    page = result.write(tmp_path / "diff.html").read_text()
    links = re.findall(r'class="permalink" href="#([^"]*)"', page)
    assert {"task-0", "task-1", "figure-layers-0", "table-layers-1", "table-labels-0", "table-overview"} <= set(links)
    ids = re.findall(r' id="([^"]*)"', page)
    assert set(links) <= set(ids)
    assert len(set(ids)) == len(ids)
    assert re.findall(r'<section id="task-\d" [^>]* data-task="([^"]*)"', page) == ["toy-question", "toy-pos"]
    assert '<option value="toy-pos">' in page
    assert all(note.strip() for note in re.findall(r"</strong> <span>(.*?)</span></caption>", page))
    assert page.count("<caption>") == page.count("</span></caption>")


def test_unrelated_encoders_are_compared_without_movements(tmp_path: Path) -> None:
    result = diff("bert-tiny", "random:bert-tiny", "toy-pos", device="cpu", **QUICK)  # type: ignore[arg-type]
    assert not result.related
    assert result.examples.moved.isna().all()
    assert result.last_layer("toy-pos").loc["accuracy"].before > result.last_layer("toy-pos").loc["accuracy"].after
    assert "not versions of one model" in result.write(tmp_path / "page.html").read_text()


@pytest.mark.parametrize("save_weights", [True, False])
def test_of_a_folder_of_tune_the_last_step_is_taken_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, save_weights: bool
) -> None:
    settings = {"epochs": 0.5, "snapshots": [0, 2], "layers": "last", "splits": "test", "save_weights": save_weights}
    tune("bert-tiny", "toy-question", out=tmp_path, device="cpu", **settings)  # type: ignore[arg-type]
    if not save_weights:
        with pytest.raises(InputError, match="contains no weights; run `closerlook tune` with --save-weights"):
            find_encoder(tmp_path, Trust())
        return
    found = find_encoder(tmp_path, Trust(), resolve("bert-tiny"))
    assert (found.name, found.folder) == ("step-6", tmp_path / "step-6")
    assert caplog.messages[-1] == f"{tmp_path} holds several checkpoints; the last one is compared (step 6)"


def test_the_same_encoder_twice_is_refused() -> None:
    with pytest.raises(InputError, match="are the same encoder"):
        diff("bert-tiny", "bert-tiny", "toy-pos")


def test_a_task_with_train_alone_gets_a_test_split_and_a_note() -> None:
    alone = Task.build("alone", "sentence", {"train": sentences(40)})
    result = diff("bert-tiny", "random:bert-tiny", alone, device="cpu", **QUICK)  # type: ignore[arg-type]
    assert set(result.examples.split) == {"test"}
    assert len(result.examples) == 8
    (note,) = result.settings["notes"]
    assert "8 of its 40 examples in train are its test split" in note


def test_a_task_with_dev_is_tested_on_dev() -> None:
    task = Task.build("deved", "sentence", {"train": sentences(40), "dev": sentences(12)})
    result = diff("bert-tiny", "random:bert-tiny", task, device="cpu", **QUICK)  # type: ignore[arg-type]
    assert (result.settings["test_split"], result.settings["notes"]) == (["dev"], [])


def test_a_task_without_train_is_refused() -> None:
    task = Task.build("tested", "sentence", {"test": sentences(12)})
    with pytest.raises(InputError, match="tested has test; expected train and a split to test on"):
        diff("bert-tiny", "random:bert-tiny", task)


def sentences(n: int) -> list[tuple[str, list[tuple[tuple[int, ...], str]]]]:
    return [(f"it rains {'here and there' if at % 2 else 'not at all'} {at}", [((), "ab"[at % 2])]) for at in range(n)]


def test_the_accuracy_of_a_head_is_that_of_transformers(result: Difference, out: Path) -> None:
    task = load_task("toy-question")
    small = Task(task.name, task.unit, task.labels, (sample_split(task, "test", 150, 0),))
    _, accuracy = head_scores(resolve(str(out / "checkpoint-6")), small, ["test"], device="cpu")["test"]
    head = result.last_layer("toy-question").loc["head_accuracy"]
    assert np.isnan(head.before)
    assert head.after == pytest.approx(accuracy)
    assert f"its own classification head after: {100 * accuracy:.1f} %" in str(result)
    assert "head_accuracy" not in result.last_layer("toy-pos").index


def test_two_checkpoints_have_two_heads(out: Path) -> None:
    two = diff(out / "checkpoint-2", out / "checkpoint-6", "toy-question", device="cpu", **QUICK)  # type: ignore[arg-type]
    head = two.last_layer("toy-question").loc["head_accuracy"]
    assert head.change == pytest.approx(head.after - head.before)
    assert "Accuracy of their own classification heads " in str(two)


def test_hostile_labels_and_texts_are_shown_escaped_and_run_nothing(tmp_path: Path) -> None:
    labels = ["a\0", "</script><script>window.ran = 1</script>", "gnp\u202eexe"]
    texts = [
        (f"rain\x1b[31m\u202e {at} <img src=x onerror=alert(1)> {'long ' * 300}", [((), labels[at % 3])])
        for at in range(36)
    ]
    task = Task.build("<b>odd\x07", "sentence", {"train": texts, "test": texts[:9]})
    result = diff("bert-tiny", "random:bert-tiny", task, device="cpu", **QUICK)  # type: ignore[arg-type]
    assert set(result.labels.label) == set(labels)
    page = result.write(tmp_path / "page.html").read_text(encoding="utf-8")
    assert not HIDDEN.search(page.replace("\n", "").replace("\t", ""))
    assert "<script>window.ran" not in page
    assert "<img src=x" not in page
    assert "gnp\\u202eexe" in page
    assert "long " * 100 not in page


def test_the_texts_of_pairs_are_shown_in_one_line(tmp_path: Path) -> None:
    rows = [{"text": f"It rains {at}.", "text_b": "It is wet.", "label": "ab"[at % 2]} for at in range(30)]
    task = read_task(rows, name="pairs", text="text", text_b="text_b", label="label", test_share=0.3)
    result = diff("bert-tiny", "random:bert-tiny", task, device="cpu", **QUICK)  # type: ignore[arg-type]
    assert all(re.fullmatch(r"It rains \d+\.\nIt is wet\.", text) for text in result.examples.text)
    moved = result.examples.assign(moved=1.0)
    page = replace(result, examples=moved).write(tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.search(r"It rains \d+\. / It is wet\.", page)


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
    *unchanged, p_value = paired_change(before, before)
    assert unchanged == [0.0, 0.0, 0.0]
    assert np.isnan(p_value)


@pytest.mark.parametrize(("gained", "expected"), [(5, None), (6, 2 / 64)])
def test_a_p_value_that_cannot_be_small_is_not_given(gained: int, expected: float | None) -> None:
    p_value = paired_change(np.zeros(20, bool), np.arange(20) < gained)[3]
    assert np.isnan(p_value) if expected is None else p_value == pytest.approx(expected)


def test_a_sample_keeps_whole_texts_and_only_texts_with_examples() -> None:
    task = load_task("toy-pos")
    split = sample_split(task, "train", 100, 0)
    assert len(split) == 100
    assert sorted(set(split.sentence.tolist())) == list(range(len(split.texts)))
    assert len(sample_split(task, "train", 10**6, 0)) == len(task.split("train"))

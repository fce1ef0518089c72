"""Results in notebooks: short texts, escaped HTML, and tables."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import closerlook
from closerlook.differences import Difference
from closerlook.encoders.source import EncoderInfo
from closerlook.geometry import cluster, cluster_distances, describe_space, label_distances, separate
from closerlook.notebook import html
from closerlook.probes.control import CodeLength, Selectivity
from closerlook.probes.grid import ProbeResult
from closerlook.probes.training import ProbeTraining
from closerlook.ranking import Ranking, judge_scores
from closerlook.representations.space import Space
from closerlook.representations.spaces import Spaces
from closerlook.study.noise import Effect
from closerlook.study.runner import StudyState
from closerlook.study.runs import Pair
from closerlook.study.states import Graph
from closerlook.study.study import CompletedStudy
from closerlook.study.verdicts import Answer, Finding
from closerlook.tasks.task import Task
from closerlook.tuning.settings import TuningSettings
from closerlook.tuning.tuned import Snapshot, TuningResult

HOSTILE = "<script>alert(1)</script>"
X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0], [1.0, 3.0], [5.0, 0.0], [5.0, 1.0]])
Y = [HOSTILE, HOSTILE, "b", "b", "c", "c"]
CLUSTERING = cluster(X, Y)
DISTANCES = cluster_distances(X, CLUSTERING)
LABEL_DISTANCES = label_distances(DISTANCES)
SPACE = Space.from_arrays(X, Y, words=[HOSTILE] * 6, task=HOSTILE, layer=2, split="train")
TASK = Task.build(
    "weather",
    "token",
    {"train": [(("light", HOSTILE), [((0,), "ADJ"), ((1,), HOSTILE)])], "test": [(("rain",), [((0,), "NOUN")])]},
    ["a note"],
)


def grid() -> ProbeResult:
    ones = np.ones((2, 1))
    return ProbeResult(
        labels=("a", "b"),
        test_labels=("a", "b"),
        n_train=4,
        n_test=2,
        d=2,
        sizes=((8,), ()),
        seeds=(0,),
        accuracy=ones,
        held_out=ones,
        rounds=np.ones((2, 1), dtype=np.int64),
        chosen=1,
        predictions=np.zeros((1, 2), dtype=np.int64),
        macro_f1=np.ones(1),
        by_label=np.ones(2),
        confusion=np.eye(2, dtype=np.int64),
        majority=0.5,
        training=ProbeTraining(),
        device="cpu",
    )


def tuned() -> TuningResult:
    snapshots = tuple(Snapshot(step, step / 4, "f", {"train": 0.5}, {"train": 0.75}) for step in (0, 4))
    return TuningResult(
        encoder=HOSTILE,
        base="b",
        info=EncoderInfo(layers=2, width=128, window=512, has_cls=True, parameters=10),
        parameters=10,
        task="weather",
        task_hash="t",
        settings=TuningSettings(),
        snapshots=snapshots,
        steps=4,
        seconds=1.5,
        device="cpu",
        versions={},
    )


def finding() -> Finding:
    answers = (
        Answer(Pair(HOSTILE, "pos", "pos"), "for", "accuracy rises", Effect(0.5, 0.1)),
        Answer(Pair("bert", "pos", "pos"), "no answer", "not measured"),
    )
    return Finding(1, "Train and test", "holds", 1, 0, 0, 1, "One pair of two.", "rule", None, None, answers)


def difference() -> Difference:
    rows = []
    measures = {"accuracy": 0.5, "clusters": 3.0, "labels": 3.0, "minimum_distance": 1.0, "similarity": 0.5}
    for name, value in {**measures, "cka": 0.9, "separable": 1.0}.items():
        rows.append(("weather", 1, 1, name, value, value, 0.0, 0.0, 0.0, 1.0))
    columns = ["task", "layer", "layer_after", "measure", "before", "after", "change", "low", "high", "p_value"]
    labels = pd.DataFrame({"task": ["weather"], "label": [HOSTILE], "moved": [""]})
    examples = pd.DataFrame({"task": ["weather"], "became": [""]})
    return Difference(HOSTILE, "after", True, {}, pd.DataFrame(rows, columns=columns), labels, examples)


def ranking() -> Ranking:
    names = ("accuracy", "low", "high", "nearest_mean", "logme", "hull_distance", "clusters", "participation_ratio")
    spaces = pd.DataFrame([{"encoder": HOSTILE, "layer": at, **dict.fromkeys(names, 0.5)} for at in range(3)])
    return Ranking("weather", {}, spaces, judge_scores(spaces))


RESULTS = {
    "Space": SPACE,
    "Spaces": Spaces([SPACE]),
    "Task": TASK,
    "Clustering": CLUSTERING,
    "ClusterDistances": DISTANCES,
    "LabelDistances": LABEL_DISTANCES,
    "Separation": separate(X[:2], X[2:]),
    "Similarity": closerlook.spatial_similarity(LABEL_DISTANCES, LABEL_DISTANCES),
    "Panel": describe_space(X, Y),
    "ProbeResult": grid(),
    "TuningResult": tuned(),
    "Finding": finding(),
    "Difference": difference(),
    "Ranking": ranking(),
}


@pytest.mark.parametrize("name", [name for name in RESULTS if name != "Spaces"])
def test_the_text_of_a_result_is_one_short_line_with_its_class(name: str) -> None:
    text = repr(RESULTS[name])
    assert text.startswith(f"{name}(")
    assert "\n" not in text
    assert "array(" not in text
    assert len(text) < 200


@pytest.mark.parametrize("name", [name for name in RESULTS if name not in {"ClusterDistances"}])
def test_the_html_of_a_result_has_no_markup_of_users(name: str) -> None:
    shown = RESULTS[name]._repr_html_()  # type: ignore[attr-defined]
    assert shown.startswith("<div>")
    assert "<script" not in shown


@pytest.mark.parametrize("name", [name for name in RESULTS if name != "Separation"])
def test_a_result_with_a_table_gives_it_as_a_data_frame(name: str) -> None:
    table = RESULTS[name].to_frame()  # type: ignore[attr-defined]
    assert isinstance(table, pd.DataFrame)
    assert len(table)


def test_the_names_of_users_are_shown_escaped() -> None:
    for name in ("Space", "Task", "Clustering", "LabelDistances", "TuningResult", "Finding", "Difference", "Ranking"):
        assert "&lt;script&gt;" in RESULTS[name]._repr_html_()  # type: ignore[attr-defined]


def test_a_space_as_a_table_has_its_labels_words_and_coordinates() -> None:
    table = SPACE.to_frame()
    assert list(table.columns) == ["label", "word", "d0", "d1"]
    assert table.label.tolist() == Y
    assert np.array_equal(table[["d0", "d1"]].to_numpy(), SPACE.X)


def test_a_table_of_a_space_is_read_as_the_same_space(tmp_path: Path) -> None:
    SPACE.to_frame().to_csv(tmp_path / "vectors.csv", index=False)
    read = Space.load(tmp_path / "vectors.csv", x_key="d*", y_key="label")
    assert np.array_equal(read.X, SPACE.X)
    assert read.label_names.tolist() == Y


def test_a_task_as_a_table_has_one_row_for_each_example() -> None:
    rows = TASK.to_frame()[["split", "sentence", "example", "label"]].to_numpy().tolist()
    assert rows == [["train", 0, "light", "ADJ"], ["train", 0, HOSTILE, HOSTILE], ["test", 0, "rain", "NOUN"]]


def test_the_html_of_a_task_counts_labels_by_split() -> None:
    shown = TASK._repr_html_()
    assert "<th>label</th><th>train</th><th>test</th>" in shown
    assert "<td>NOUN</td><td>0</td><td>1</td>" in shown
    assert "a note" in shown


def test_the_tables_of_clusters_and_distances_agree_with_the_arrays() -> None:
    clusters = CLUSTERING.to_frame()
    assert clusters.rows.tolist() == CLUSTERING.sizes.tolist()
    assert clusters.label.tolist() == CLUSTERING.cluster_labels
    assert clusters.first_row.tolist() == [0, 2, 4]
    between = DISTANCES.to_frame()
    assert [DISTANCES.between(row.cluster, row.other) for row in between.itertuples()] == [
        (row.lower, row.upper) for row in between.itertuples()
    ]
    labels = LABEL_DISTANCES.to_frame()
    assert len(labels) == 3
    for row in labels.itertuples():
        i, j = LABEL_DISTANCES.labels.index(row.label), LABEL_DISTANCES.labels.index(row.other)
        assert row.distance == LABEL_DISTANCES.values[i, j]
        assert row.relative == LABEL_DISTANCES.relative[i, j]


def test_clusters_that_are_excluded_have_no_row_in_the_table_of_distances() -> None:
    points, labels = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "a"]
    table = cluster_distances(points, cluster(points, labels), min_points=2).to_frame()
    assert table.empty
    assert list(table.columns) == ["cluster", "other", "label", "other_label", "lower", "upper"]


def test_a_finding_as_a_table_has_the_answer_of_each_pair() -> None:
    table = finding().to_frame()
    assert table.support.tolist() == ["for", "no answer"]
    assert table.effect[0] == 0.5
    assert np.isnan(table.effect[1])


def test_a_tuning_as_a_table_has_a_row_for_each_snapshot_and_split() -> None:
    assert tuned().to_frame().to_numpy().tolist() == [[0, 0.0, "train", 0.5, 0.75], [4, 1.0, "train", 0.5, 0.75]]


def test_probes_with_control_tasks_and_codes_have_short_texts() -> None:
    task, control = np.array([0.9, 0.7]), np.array([0.5, 0.5])
    assert repr(Selectivity(task, control, (8,), 1.0)) == "Selectivity(0.300: task 0.800, control 0.500)"
    code = CodeLength(np.array([50.0]), 100.0, (5,), np.array([[50.0]]), ("a", "b"), (8,), ProbeTraining())
    assert repr(code) == "CodeLength(50 bits, compression 2.00)"


def test_a_completed_study_names_its_folder_and_its_failures(tmp_path: Path) -> None:
    graph = Graph.__new__(Graph)
    study = CompletedStudy(
        tmp_path / "mine", tmp_path / "results.parquet", StudyState(graph, done={"a"}, failed={"b": "no memory"}), 3.2
    )
    assert repr(study) == "CompletedStudy(mine: 1 cells, 1 failed, 3 s)"
    assert "results.parquet" in study._repr_html_()


def test_long_and_wide_tables_show_their_first_rows_and_columns() -> None:
    shown = html("t", pd.DataFrame(np.zeros((30, 20))))
    assert shown.count("<tr>") == 11
    assert shown.count("<th>") == 12
    assert "10 of 30 rows, 12 of 20 columns" in shown


def test_numbers_have_four_digits_and_missing_values_are_empty() -> None:
    shown = html("t", pd.DataFrame({"a": [1 / 3, np.nan], "b": ["x\0", None]}))
    assert "<td>0.3333</td><td>x\\x00</td>" in shown
    assert "<td></td><td></td>" in shown

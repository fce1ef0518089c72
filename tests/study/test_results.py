"""The table of a study: its columns, what stands where, the same in both files; and the manifest beside it."""

import json
from pathlib import Path

import pandas as pd
import pytest

from closerlook.errors import InputError
from closerlook.study.files import read_result
from closerlook.study.results import COLUMNS, load_results, make_table
from closerlook.study.study import CompletedStudy, resolve_study
from closerlook.study.summary import summarise
from closerlook.version import __version__
from tests.study.small import small_plan

KEY = ["encoder", "tuned_on", "seed", "step", "layer", "task", "split", "pool", "measure", "label", "other", "text"]


@pytest.fixture(scope="module")
def table(done: CompletedStudy) -> pd.DataFrame:
    return load_results(done.out)


def of(table: pd.DataFrame, measure: str, **where: object) -> pd.DataFrame:
    part = table[table.measure == measure]
    for column, value in where.items():
        part = part[part[column] == value]
    return part


def test_columns_and_types_are_those_that_are_promised(table: pd.DataFrame) -> None:
    assert {name: str(kind) for name, kind in table.dtypes.items()} == COLUMNS
    assert list(table.columns) == list(COLUMNS)


def test_every_measurement_stands_there_once(table: pd.DataFrame) -> None:
    assert not table[table.measure != "blocked_merge"].duplicated(KEY).any()


def test_the_csv_file_holds_the_same_table(done: CompletedStudy, table: pd.DataFrame) -> None:
    from_csv = load_results(done.out / "results.csv")
    pd.testing.assert_frame_equal(from_csv, table, check_exact=True)


def test_the_study_and_the_version_stand_in_every_row(table: pd.DataFrame) -> None:
    assert set(table.study) == {"small"}
    assert set(table.version) == {__version__}
    assert set(table.encoder) == {"bert-tiny"}
    assert set(table.task) == {"words", "prepositions"}


def test_values_are_those_of_the_cells(done: CompletedStudy, table: pd.DataFrame) -> None:
    for _, line in of(table, "n_clusters").head(5).iterrows():
        result = read_result(done.out, line.cell)
        assert result is not None
        assert line.value == next(row["value"] for row in result["rows"] if row["measure"] == "n_clusters")


def test_the_start_stands_there_as_the_encoder_itself_and_as_step_zero(table: pd.DataFrame) -> None:
    frozen = of(table, "n_clusters", tuned_on="", task="words", split="train", layer=2)
    start = of(table, "n_clusters", tuned_on="words", step=0, task="words", split="train", layer=2)
    assert len(frozen) == len(start) == 1
    assert frozen.value.item() == start.value.item()
    assert frozen.cell.item() == start.cell.item()
    assert not frozen["is_final"].item()


def test_only_the_end_of_a_training_is_last(table: pd.DataFrame) -> None:
    assert set(table[table["is_final"]].step) == {4, 6}
    assert set(table[(table.tuned_on == "words") & table["is_final"]].step) == {4}
    assert not table[table.tuned_on == ""]["is_final"].any()


@pytest.mark.parametrize("measure", ["centroid_x", "head_accuracy", "n_clusters"])
def test_epochs_weights_and_last_belong_to_the_step_of_the_row(table: pd.DataFrame, measure: str) -> None:
    part = of(table, measure, tuned_on="words", task="words", layer=2)
    assert dict(zip(part.step, part.epoch, strict=True)) == {0: 0.0, 1: 0.5, 4: 2.0}
    assert dict(zip(part.step, part["is_final"], strict=True)) == {0: False, 1: False, 4: True}
    weights = of(table, "n_clusters", tuned_on="words", task="words", split="train", layer=2)
    assert set(zip(part.step, part.weights, strict=True)) == set(zip(weights.step, weights.weights, strict=True))


def test_layers_between_the_ends_are_those_asked_for(table: pd.DataFrame) -> None:
    part = of(table, "n_clusters", tuned_on="words", task="words", split="train")
    assert {step: set(group.layer) for step, group in part.groupby("step")} == {0: {0, 2}, 1: {2}, 4: {0, 2}}
    assert set(of(table, "n_clusters", tuned_on="words", split="test").step) == {0, 4}


def test_cross_rows_tell_what_tuning_on_one_task_does_to_another(table: pd.DataFrame) -> None:
    part = table[(table.tuned_on == "words") & (table.task == "prepositions") & (table.layer == 2)]
    end = part[part["is_final"]]
    up, down = (of(end, f"n_labels_{way}").value.item() for way in ("increased", "decreased"))
    changes = of(end, "minimum_distance_change")
    assert up == (changes.value > 0).sum()
    assert down == (changes.value < 0).sum()
    assert of(end, "mean_minimum_distance_change").value.item() == pytest.approx(changes.value.mean())
    assert len(of(end, "accuracy")) == 1
    assert not len(table[(table.tuned_on == "prepositions") & (table.task == "words")])


def test_comparisons_are_named_after_what_is_compared(table: pd.DataFrame) -> None:
    assert set(of(table, "similarity_train_test").step) == {0, 4, 6}
    original = of(table, "similarity_original", tuned_on="words", task="words", layer=2)
    assert list(original.step) == [0, 1, 4]
    assert original.value.iloc[0] == pytest.approx(1)
    assert not len(of(table, "similarity"))
    changes = table[
        table.measure.str.startswith(
            ("minimum_distance_change", "n_labels_increased", "n_labels_decreased", "mean_minimum_distance_change")
        )
    ]
    assert (changes.tuned_on != "").all()
    assert (changes.split == "train").all()


def test_intervals_stand_around_values(table: pd.DataFrame) -> None:
    part = table[table.ci_low.notna() & table.value.notna()]
    assert len(part)
    assert (part.ci_low <= part.value + 1e-9).all()
    assert (part.ci_high >= part.value - 1e-9).all()


def test_a_table_in_parts_is_the_same_table(
    done: CompletedStudy, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    from closerlook.study import results

    monkeypatch.setattr(results, "ROWS_AT_A_TIME", 100)
    plan = json.loads((done.out / "manifest.json").read_text())["plan"]
    from closerlook.study.plan import make_plan

    again, _ = make_table(resolve_study(make_plan(plan), done.out), done.out, done.state.graph, done.state.done)
    pd.testing.assert_frame_equal(again, table, check_exact=True)


# ---- reading ----


def test_a_folder_or_a_file_can_be_given(done: CompletedStudy, table: pd.DataFrame) -> None:
    for place in (str(done.out), done.out / "results.parquet"):
        pd.testing.assert_frame_equal(load_results(place), table)


def test_labels_that_look_like_nothing_keep_their_names(table: pd.DataFrame, tmp_path: Path) -> None:
    named = table.head(3).copy()
    named["label"] = pd.array(["NA", "null", "nan"], dtype="string")
    named.to_csv(tmp_path / "results.csv", index=False)
    assert list(load_results(tmp_path / "results.csv").label) == ["NA", "null", "nan"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing", None, "missing does not exist; expected the folder of a finished study"),
        ("torn.parquet", b"PAR1 torn", "torn.parquet cannot be read: .*; expected a study's table"),
        ("other.csv", b"a,b\n1,2\n", "other.csv lacks study, encoder, .*; expected the table of a study"),
        ("empty.csv", b"", "empty.csv cannot be read"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        load_results(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"results\.parquet does not exist"):
        load_results(tmp_path)


# ---- beside the table ----


def test_the_manifest_says_what_was_run_on_what_and_with_what(done: CompletedStudy, tasks: Path) -> None:
    told = json.loads((done.out / "manifest.json").read_text())
    words = str(tasks / "words")
    assert told["study"] == "small"
    assert told["plan"]["tasks"][0] == words
    assert told["encoders"]["bert-tiny"]["layers"] == 2
    assert len(told["encoders"]["bert-tiny"]["weights"]) == 32
    assert set(told["tasks"][words]) == {"hash", "unit", "labels", "examples", "notes"}
    assert told["tasks"][words]["examples"].keys() == {"train", "test"}
    assert told["settings"][f"bert-tiny on {words}"]["learning_rate"] == 1e-3
    assert {"host", "cores", "memory_bytes", "python", "processor"} <= told["hardware"].keys()
    assert told["packages"]["torch"]
    assert told["cells"] == {"done": done.state.total, "total": done.state.total, "computed": done.state.total}
    assert (told["failed"], told["blocked"]) == ([], 0)
    assert told["kinds"]["tune"]["cells"] == 2
    assert told["kinds"]["tune"]["peak_bytes"] > 100_000_000
    assert sum(kind["cells"] for kind in told["kinds"].values()) == done.state.total
    assert told["slowest"][0]["kind"] == "tune"
    assert told["seconds"] > 0


def test_a_summary_has_a_line_for_each_task_before_and_after(done: CompletedStudy, table: pd.DataFrame) -> None:
    lines = {line.task: line for line in summarise(table)}
    assert set(lines) == {"words", "prepositions"}
    words = lines["words"]
    end = of(table, "n_clusters", tuned_on="words", task="words", split="train", layer=2, step=4)
    assert words.n_clusters[1] == end.value.item()
    assert words.labels == len(set(of(table, "label_clusters", task="words", split="train").label))
    assert all(part is not None for part in (*words.accuracy, *words.similarity, *words.mean_minimum_distance))


def test_without_tuning_a_summary_has_no_after(tasks: Path, tmp_path: Path) -> None:
    from closerlook.study.study import run_study

    found = run_study(
        small_plan(tasks, tuning=None, layers="last", measures=["clusters"]), tmp_path / "out", engine="here"
    )
    (line,) = summarise(load_results(found.out))
    assert line.n_clusters[0] is not None
    assert line.n_clusters[1] is None
    assert line.accuracy == (None, None)

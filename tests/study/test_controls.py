"""Studies with `control: true`: selectivity and description length of the spaces on which classifiers are trained."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from closerlook.probes import measure_selectivity, online_code, probe_grid
from closerlook.probes.training import ProbeTraining
from closerlook.report.controls import control_table, control_text
from closerlook.report.page import make_page
from closerlook.report.writing import write_report
from closerlook.representations.store import Store
from closerlook.study.files import read_result
from closerlook.study.findings import judge_results
from closerlook.study.graph import expand
from closerlook.study.kinds import KINDS
from closerlook.study.readings import index_results
from closerlook.study.results import load_results
from closerlook.study.study import CompletedStudy, forecast, run_study
from closerlook.tasks import load_task
from tests.study.small import opened, small_plan

SIZES = [[1], [16]]
"""The first is too small for any task, so the second is chosen."""

CONTROLS = {"control", "description_length"}


@pytest.fixture(scope="module")
def controlled(tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> CompletedStudy:
    """A task of words and one of sentences, without fine-tuning."""
    plan = small_plan(
        tasks,
        tasks=[str(tasks / "words"), str(tasks / "questions")],
        tuning=None,
        measures=["classifier"],
        classifier={"sizes": SIZES, "seeds": 2, "max_rounds": 3},
        control=True,
    )
    return run_study(plan, tmp_path_factory.mktemp("studies") / "controlled", engine="here")


@pytest.fixture(scope="module")
def table(controlled: CompletedStudy) -> pd.DataFrame:
    return load_results(controlled.out)


def value(table: pd.DataFrame, measure: str, task: str) -> float:
    (found,) = table[(table.measure == measure) & (table.task == task)].value
    return float(found)


def test_selectivity_is_the_accuracy_of_the_table_minus_that_on_control_tasks(table: pd.DataFrame) -> None:
    accuracy, control = value(table, "accuracy", "words"), value(table, "control_accuracy", "words")
    assert value(table, "selectivity", "words") == pytest.approx(accuracy - control, abs=1e-12)
    rows = table[table.measure.isin(["selectivity", "control_accuracy"])]
    assert set(rows.text) == {"16"}
    assert set(rows.split) == {"test"}


def test_the_numbers_are_those_of_the_probes_package(
    controlled: CompletedStudy, table: pd.DataFrame, tasks: Path
) -> None:
    (cell,) = [cell for cell in controlled.state.graph.cells.values() if cell.kind == "control"]
    store, task = Store(cell.resources["store"]), load_task(str(tasks / "words"))
    train, test = store.get(cell.content["train"]), store.get(cell.content["test"])
    assert train is not None
    assert test is not None
    words = task.words(task.split("train")), task.words(task.split("test"))
    training = ProbeTraining(max_rounds=3)
    result = probe_grid(train, test, sizes=[(16,)], seeds=2, training=training)
    expected = measure_selectivity(train, test, words, result=result)
    assert value(table, "control_accuracy", "words") == pytest.approx(float(expected.control.mean()), abs=1e-12)
    assert value(table, "known_words", "words") == np.isin(words[1], words[0]).mean()
    code = online_code(train, seeds=2, training=ProbeTraining(max_rounds=3, criterion="loss"))
    assert value(table, "description_length", "words") == pytest.approx(float(code.bits.mean()))
    assert value(table, "compression", "words") == pytest.approx(float(code.compression.mean()))
    assert value(table, "uniform_length", "words") == pytest.approx(code.uniform)


def test_sentences_have_a_description_length_but_no_control_task(table: pd.DataFrame) -> None:
    measures = set(table[table.task == "questions"].measure)
    assert "description_length" in measures
    assert not measures & {"selectivity", "control_accuracy", "known_words"}


def test_rows_are_registered_with_their_kind(controlled: CompletedStudy) -> None:
    found = defaultdict(set)
    for key, cell in controlled.state.graph.cells.items():
        result = read_result(controlled.out, key)
        assert result is not None
        found[cell.kind] |= {row["measure"] for row in result["rows"]}
    for kind in KINDS:
        if kind.name in CONTROLS:
            assert found[kind.name] == {measure.name for measure in kind.measures}


def test_controls_add_cells_and_change_no_other_key(tasks: Path, tmp_path: Path) -> None:
    plain, with_control = (
        expand(opened(small_plan(tasks, tuning=None, control=control), tmp_path), lambda key: None)
        for control in (False, True)
    )
    assert not CONTROLS & {cell.kind for cell in plain.cells.values()}
    assert set(plain.cells) < set(with_control.cells)
    added = [with_control.cells[key].kind for key in set(with_control.cells) - set(plain.cells)]
    assert sorted(added) == sorted(CONTROLS)


def test_every_test_split_has_its_selectivity_and_train_one_description_length(tasks: Path, tmp_path: Path) -> None:
    for split in ("dev", "test"):
        (tmp_path / "words" / f"{split}.jsonl").parent.mkdir(exist_ok=True)
        (tmp_path / "words" / f"{split}.jsonl").write_bytes((tasks / "words" / "test.jsonl").read_bytes())
    (tmp_path / "words" / "train.jsonl").write_bytes((tasks / "words" / "train.jsonl").read_bytes())
    plan = small_plan(tmp_path, splits=["train", "dev", "test"], tuning=None, measures=["classifier"], control=True)
    graph = expand(opened(plan, tmp_path), lambda key: None)
    splits = defaultdict(list)
    for placement in graph.placements:
        splits[graph.cells[placement.key].kind].append(placement.position.split)
    assert sorted(splits["control"]) == sorted(splits["classifier"]) == ["dev", "test"]
    assert splits["description_length"] == ["train"]


def test_a_forecast_shows_the_cost_of_controls(tasks: Path, tmp_path: Path) -> None:
    kinds = {kind.kind: kind for kind in forecast(opened(small_plan(tasks, control=True), tmp_path), tmp_path)}
    for name in CONTROLS:
        assert kinds[name].cells == kinds["classifier"].cells == 2
        assert kinds[name].seconds > 0


def test_the_page_has_a_section_of_controls_only_if_they_were_measured(
    controlled: CompletedStudy, table: pd.DataFrame
) -> None:
    results = index_results(table)
    shown = control_table(results)
    titles = [column.title for column in shown.columns]
    by_task = {row[0]: dict(zip(titles, row, strict=True)) for row in shown.shown()}
    words, questions = by_task["words"], by_task["questions"]
    assert words["selectivity, points"][0] in "+−"
    assert questions["selectivity, points"] == "–"
    assert float(questions["compression"].split()[0]) == pytest.approx(
        value(table, "compression", "questions"), abs=0.005
    )
    text = control_text(results)
    assert "selectivity is above 0 for 1 of 1 space." in text
    assert "Examples that are whole sentences have no word" in text
    page = write_report(controlled.out, figures=False).read_text(encoding="utf-8")
    assert 'id="control"' in page
    assert f"{value(table, 'compression', 'questions'):.2f}" in page
    without = index_results(table[table.measure.isin(["accuracy", "n_clusters"])])
    assert not control_table(without)
    assert control_text(without) == ""
    page = make_page(without, judge_results(without), [])
    assert 'id="control"' not in page
    assert 'id="run"' in page

"""The page of a results file of GeometryCallback."""

import json
from pathlib import Path
from typing import Any

import pytest

from closerlook.errors import InputError
from closerlook.report.watched import overview_table, steps_figure, write_watched
from closerlook.report.watched_file import read_trainings
from tests.cli.console import answer, assert_refused, run


def line(step: int, task: str = "words", layer: int = 2, start: int = 0, **changes: Any) -> dict[str, Any]:
    values = {"step": step, "epoch": step / 10, "start_step": start, "seconds": 0.5, "skipped": 1}
    values |= {"share": None if step == start else 0.031, "task": task, "layer": layer, "n": 50, "labels": 5}
    values |= {"clusters": 9 - step, "separable": False, "conflicts": 0, "undecided": 0, "alarms": []}
    values |= {"relative_minimum_distance": 0.1 + step / 100, "similarity": 1 - step / 100, "split": "train"}
    return values | {"held_out_accuracy": 0.5 + step / 100, "max_share": 0.05, "pool": "mean"} | changes


def write(path: Path, *lines: dict[str, Any], end: str = "") -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines) + end)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    steps = [line(step, task, layer) for step in (0, 4, 8) for task in ("words", "<b>x</b>") for layer in (0, 2)]
    steps[-3] |= {"alarms": ["similarity"]}
    return write(tmp_path / "geometry.jsonl", *steps)


def test_the_page_shows_every_task_and_layer(file: Path) -> None:
    page, training = write_watched(file, figures=False)
    assert page == file.with_suffix(".html")
    assert training.tasks == ["words", "<b>x</b>"]
    table = overview_table(training)
    assert table.titles()[:4] == ["task", "layer", "held-out accuracy, % start", "held-out accuracy, % end"]
    assert table.shown()[0] == ["words", "0", "50.0", "58.0", "9", "1", "0.100", "0.180", "1.000", "0.920"]
    assert [row[:2] for row in table.rows] == [(task, layer) for task in training.tasks for layer in (0, 2)]
    text = page.read_text()
    assert "3 measurements, from step 0 to step 8; they took 1.5 s, 3.1 % of the time" in text
    assert "Alarms: a measure fell by more than its noise" in text
    assert "<b>x</b>" not in text.split("<main", 1)[1].split("<script", 1)[0]


def test_the_figure_has_a_mark_for_each_step_layer_and_measure(file: Path) -> None:
    (training,) = read_trainings(file)
    figure = steps_figure(training.rows, "words")
    assert len(figure.data) == 3 * 2 * 4
    accuracy = figure.data[(figure.data.measure == "held_out_accuracy") & (figure.data.layer == 2)]
    assert accuracy.value.tolist() == pytest.approx([50, 54, 58])
    assert figure.data[figure.data.alarm][["measure", "step", "layer"]].to_numpy().tolist() == [["similarity", 8, 2]]


def test_the_command_writes_page_and_figures(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = run(capsys, "report", file)
    assert out == f"{file.with_suffix('.html')}\n"
    assert f"figures: {file.parent / 'geometry-figures'}" in err
    assert (file.parent / "geometry-figures" / "steps_words.svg").stat().st_size > 1000
    found = answer(capsys, "report", file, "--no-figures")
    assert (found["tasks"], found["steps"]) == (["words", "<b>x</b>"], [0, 4, 8])
    assert found["alarms"] == [{"step": 8, "task": "words", "layer": 2, "measure": "similarity", "value": 0.92}]


def test_a_file_with_several_trainings_shows_the_last_and_says_so(tmp_path: Path) -> None:
    first, second = [line(0), line(4)], [line(0, clusters=7), line(5)]
    file = write(tmp_path / "g.jsonl", *first, line(0), *second)
    assert [training.rows.step.tolist() for training in read_trainings(file)] == [[0, 4], [0], [0, 5]]
    page, _ = write_watched(file, figures=False)
    assert "The file has 3 trainings; this page shows the last one." in page.read_text()


def test_a_continued_training_replaces_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    before = [line(step) for step in (0, 4, 8)]
    after = [line(step, start=6, clusters=3) for step in (6, 8, 10)]
    (training,) = read_trainings(write(tmp_path / "g.jsonl", *before, *after))
    assert training.rows.step.tolist() == [0, 4, 6, 8, 10]
    assert training.rows.clusters.tolist() == [9, 5, 3, 3, 3]
    page, _ = write_watched(tmp_path / "g.jsonl", figures=False)
    assert "The training was continued at step 6" in page.read_text()


def test_an_incomplete_last_line_is_left_out_with_a_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = write(tmp_path / "g.jsonl", line(0), line(4), end='{"step": 8, "ta')
    (training,) = read_trainings(file)
    assert training.rows.step.tolist() == [0, 4]
    assert "the last line of g.jsonl is incomplete and not used" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no complete line; expected the measurements of GeometryCallback"),
        ("nonsense\n", "line 1 of .* is not JSON; expected a line that GeometryCallback"),
        ("[1]\n", "line 1 of .* is a list; expected a line"),
        (json.dumps({"task": "t"}) + "\n", "line 1 of .* has no 'alarms'"),
        (json.dumps(line(0)) + "\n" + json.dumps(line(0, clusters="x")) + "\n", "line 2 of .* has 'x' as clusters"),
        (json.dumps(line(0, layer=None)) + "\n", "has None as layer; expected a whole number"),
        (json.dumps(line(0, alarms=["clusters"])) + "\n", "has a task or alarms of another type"),
        (json.dumps(line(0, task=3)) + "\n", "has a task or alarms of another type"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "g.jsonl").write_text(text)
    with pytest.raises(InputError, match=message):
        read_trainings(tmp_path / "g.jsonl")


def test_the_command_refuses_what_it_cannot_use(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(capsys, "nothing.jsonl cannot be read: No such file", "report", file.with_name("nothing.jsonl"))
    assert_refused(capsys, "--archive given with", "report", file, "--archive", file.parent / "archive")
    assert not file.with_suffix(".html").exists()

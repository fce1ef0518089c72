"""`closerlook diff` and `closerlook rank` as a user types them."""

from pathlib import Path

import pytest

from closerlook.ranking import SCORES
from tests.cli.console import answer, assert_refused, run
from tests.threads import one_torch_thread
from tests.tuning.trainings import train

pytestmark = pytest.mark.usefixtures("one_thread")

Capsys = pytest.CaptureFixture[str]
DIFF = ("-t", "toy-question", "--max-examples", 120, "--shuffles", 1, "--resamples", 4, "--device", "cpu")
RANK = ("-t", "toy-question", "--max-examples", 120, "--device", "cpu")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with one_torch_thread():
        return train(tmp_path_factory.mktemp("run") / "out")


def test_diff_prints_sentences_a_table_and_the_path_of_its_page(out: Path, tmp_path: Path, capsys: Capsys) -> None:
    shown, err = run(capsys, "diff", "bert-tiny", out, *DIFF, "--page", tmp_path / "page.html")
    for text in (
        "bert-tiny → checkpoint-6\ntoy-question, last layer:\n  Probe accuracy ",
        "Accuracy of its own classification head after: ",
        "What was gained and lost, by task",
        f"page: {tmp_path / 'page.html'}\n",
    ):
        assert text in shown
    assert "at most 120 examples of a split, pool auto, 1 shuffles, 4 resamples, seed 0" in err
    assert "own classification head" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_diff_as_json_is_one_object_with_all_tables(
    out: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = answer(capsys, "diff", "bert-tiny", out / "checkpoint-2", *DIFF, "--no-page")
    assert (found["before"], found["after"], found["page"]) == ("bert-tiny", "checkpoint-2", None)
    assert {"summary", "settings", "layers", "labels", "examples"} <= set(found)
    assert found["settings"]["test_split"] == ["test"]
    assert {row["measure"] for row in found["layers"]} >= {"accuracy", "clusters", "head_accuracy"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bert-tiny", "bert-tiny", "-t", "toy-pos"), "bert-tiny and bert-tiny are the same encoder"),
        (("bert-tiny", "./nowhere", "-t", "toy-pos"), "encoder ./nowhere: there is no such folder"),
        (("bert-tiny", "random:bert-tiny", "-t", "toy-poss"), "toy-poss"),
        (("bert-tiny", "random:bert-tiny"), "Missing option '--task'"),
        (("bert-tiny", "-t", "toy-pos"), "Missing argument 'after'"),
        (("bert-tiny", "empty", "-t", "toy-pos"), "empty"),
        (("bert-tiny", "random:bert-tiny", "-t", "toy-pos", "--max-examples", "3"), "--max-examples"),
        (("bert-tiny", "random:bert-tiny", "-t", "toy-pos", "--resamples", "3"), "--resamples"),
        (("bert-tiny", "random:bert-tiny", "-t", "toy-pos", "--page", "empty"), "--page empty is a folder"),
        (("bert-tiny", "random:bert-tiny", "-t", "toy-pos", "--page", "/proc/a/p.html"), "--page /proc/a cannot be"),
    ],
)
def test_bad_input_of_diff_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert_refused(capsys, message, "diff", *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_rank_prints_two_tables(capsys: Capsys) -> None:
    shown, err = run(capsys, "rank", "-e", "random:bert-tiny", "-e", "bert-tiny", "--layers", "last", *RANK)
    assert "toy-question: encoders and layers, best accuracy first" in shown
    assert "what choosing by each would cost" in shown
    assert "settings: max_examples 120" in err


def test_rank_as_json_has_a_row_for_each_layer_and_each_score(capsys: Capsys) -> None:
    found = answer(capsys, "rank", "-e", "bert-tiny", *RANK)
    assert sorted(row["layer"] for row in found["spaces"]) == [0, 1, 2]
    accuracies = [row["accuracy"] for row in found["spaces"]]
    assert accuracies == sorted(accuracies, reverse=True)
    assert found["best"] == [found["spaces"][0]["encoder"], found["spaces"][0]["layer"]]
    assert [row["score"] for row in found["scores"]] == list(SCORES)
    assert all(row["cost"] >= 0 for row in found["scores"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-e", "bert-tiny"), "Missing option '--task'"),
        (("-t", "toy-pos"), "Missing option '--encoder'"),
        (("-e", "bert-tiny", "-e", "bert-tiny", "-t", "toy-pos"), "expected one or more, each once"),
        (("-e", "./nowhere", "-t", "toy-pos"), "encoder ./nowhere: there is no such folder"),
        (("-e", "bert-tiny", "-t", "toy-poss"), "toy-poss"),
        (("-e", "bert-tiny", "-t", "toy-pos", "--layers", "9"), "layer 9 requested"),
    ],
)
def test_bad_input_of_rank_is_one_line(capsys: Capsys, arguments: tuple[str, ...], message: str) -> None:
    assert_refused(capsys, message, "rank", *arguments)


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("diff", ("{before} {after}", "--task", "--max-examples", "--no-page", "Example: closerlook diff")),
        ("rank", ("--encoder", "--task", "--layers", "--seeds", "Example: closerlook rank")),
        ("study", ("--run", "--base", "--tuned-on", "lora-vs-full")),
    ],
)
def test_help_names_arguments_options_and_an_example(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, command: str, texts: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    shown, _ = run(capsys, command, "--help")
    for text in texts:
        assert text in shown

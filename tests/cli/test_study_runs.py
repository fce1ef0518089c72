"""`closerlook study --run`: trainings that a user already has, as a user types it."""

import json
import shutil
from pathlib import Path

import pytest

from closerlook.study.results import load_results
from closerlook.study.runs import UNKNOWN
from tests.cli.console import assert_refused, run
from tests.study.small import write_plan, write_tasks
from tests.threads import one_torch_thread
from tests.tuning.trainings import train

pytestmark = pytest.mark.usefixtures("one_thread")

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a plan of few measures, its tasks, and the output of a Trainer in `out`."""
    folder = write_tasks(tmp_path_factory.mktemp("tasks"))
    write_plan(folder, layers="last", measures=["clusters", "distances"])
    with one_torch_thread():
        train(folder / "out")
    return folder


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with an empty folder."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_on_the_command_line_replaces_the_encoders_of_the_plan(
    folder: Path, tmp_path: Path, capsys: Capsys
) -> None:
    given = ("--run", folder / "out", "--base", "bert-tiny")
    shown, err = run(
        capsys, "study", folder / "plan.yaml", *given, "--out", tmp_path / "s", "--engine", "here", "--no-report"
    )
    assert "before → after fine-tuning" in shown
    assert f"run out: base bert-tiny, steps 2, 4, 6, method full, seed 5, on {UNKNOWN}\n" in err
    table = load_results(tmp_path / "s")
    assert set(table.encoder) == {"out"}
    assert sorted(set(table.step)) == [0, 2, 4, 6]


def test_a_run_that_has_grown_is_continued_where_it_was(folder: Path, tmp_path: Path, capsys: Capsys) -> None:
    growing = shutil.copytree(folder / "out", tmp_path / "growing")
    last = (growing / "checkpoint-6").rename(tmp_path / "later")
    command = ("study", folder / "plan.yaml", "--run", growing, "--base", "bert-tiny", "--out", tmp_path / "s")
    options = ("--engine", "here", "--no-report", "--json")
    first = json.loads(run(capsys, *command, *options)[0])
    assert sorted(set(load_results(tmp_path / "s").step)) == [0, 2, 4]
    last.rename(growing / "checkpoint-6")
    second = json.loads(run(capsys, *command, *options)[0])
    assert sorted(set(load_results(tmp_path / "s").step)) == [0, 2, 4, 6]
    assert 0 < second["computed"] < first["computed"] < second["total"]


def test_two_runs_share_a_base_and_have_tasks_of_their_own(folder: Path, tmp_path: Path, capsys: Capsys) -> None:
    words, questions = str(folder / "words"), str(folder / "questions")
    runs = ("--run", folder / "out", "--run", f"{folder / 'out' / 'checkpoint-2'},{folder / 'out' / 'checkpoint-4'}")
    tasks = ("-t", words, "-t", questions, "--tuned-on", words, "--tuned-on", questions)
    out, _ = run(
        capsys,
        "study",
        folder / "plan.yaml",
        *runs,
        "--base",
        "bert-tiny",
        *tasks,
        "--out",
        tmp_path / "s",
        "--dry-run",
        "--json",
    )
    plan = json.loads(out)["plan"]
    assert [(entry["base"], entry["tuned_on"]) for entry in plan["runs"]] == [
        ("bert-tiny", words),
        ("bert-tiny", questions),
    ]
    assert plan["encoders"] == []
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--base", "bert-tiny"), "--base or --tuned-on given without --run; expected a run that they belong to"),
        (("--tuned-on", "toy-pos"), "--base or --tuned-on given without --run"),
        (
            ("--run", "a", "--run", "b", "--run", "c", "--base", "x", "--base", "y"),
            "--base given 2 times for 3 runs; give it once, or once for each run",
        ),
        (("--run", "empty", "--base", "bert-tiny"), "empty contains no checkpoints; expected checkpoint-N folders"),
        (
            ("--run", "{out}", "--base", "bert-tiny", "--tuned-on", "toy-poss"),
            "'toy-poss', which is not among",
        ),
        (("--run", "{out}", "--base", "bert-tiny", "-t", "toy-poss"), "toy-poss"),
        (("--run", "{out}"), "is not known: its files do not name it; give it with --base"),
        (("--run", "none-*", "--base", "bert-tiny"), "pattern none-*: no checkpoints found"),
        (("--run", "./nowhere", "--base", "bert-tiny"), "./nowhere"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    folder: Path, there: Path, capsys: Capsys, arguments: tuple[str, ...], message: str
) -> None:
    assert_refused(capsys, message, "study", *(word.format(out=folder / "out") for word in arguments))
    assert [path.name for path in there.iterdir()] == ["empty"]

"""`closerlook study` as a user types it."""

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from closerlook.cli import study_progress
from closerlook.representations.space import Space
from closerlook.study.kinds import geometry
from closerlook.study.results import load_results, read_manifest
from closerlook.study.study import resolve_study
from tests.cli.console import assert_refused, run, shown_on_a_terminal
from tests.report.studies import write_study
from tests.study.small import measures_of, write_plan, write_tasks

pytestmark = pytest.mark.usefixtures("one_thread")

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_tasks(tmp_path_factory.mktemp("tasks"))
    return write_plan(folder, layers="last", snapshots=2, tuning={"epochs": 1, "batch_size": 12})


@pytest.fixture(scope="module")
def frozen(plan: Path) -> Path:
    """A plan that takes a moment: nothing is tuned."""
    file = plan.with_name("frozen.yaml")
    file.write_text(plan.read_text() + "\nmeasures: [clusters, distances]\n")
    text = file.read_text().replace("tuning:\n  batch_size: 12\n  epochs: 1\n", "tuning: null\n")
    file.write_text(text)
    assert "tuning: null" in text
    return file


def test_a_study_prints_a_line_for_each_task_and_says_what_is_new(plan: Path, tmp_path: Path, capsys: Capsys) -> None:
    out, err = run(capsys, "study", plan, "--out", tmp_path / "out", "--engine", "here")
    for told in ("before → after fine-tuning", "bert-tiny", "words", "clusters", "accuracy", " → "):
        assert told in out
    assert "study small: bert-tiny × " in err
    assert "26 of 26 cells finished (26 computed now) in " in err
    assert f"measurements are in {tmp_path / 'out' / 'results.parquet'} and results.csv" in err
    again, err = run(capsys, "study", plan, "--out", tmp_path / "out", "--engine", "here", "--no-report")
    assert out == f"{again}report: {tmp_path / 'out' / 'report.html'}\n"
    assert "26 of 26 cells finished (0 computed now) in " in err


def test_a_csv_file_replaces_the_tasks_of_a_preset_with_a_note_on_standard_error(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (None, "closerlook"):  # handlers of pytest and of earlier commands
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])
    file = tmp_path / "reviews.csv"
    rows = [
        f"{split},{split} film {n} {stars},{stars}" for split in ("train", "test") for n in range(4) for stars in (1, 5)
    ]
    file.write_text("\n".join(["split,review,stars", *rows]))
    task = f"{file}?text=review&label=stars"
    out, err = run(capsys, "study", "--task", task, "--out", tmp_path / "out", "--dry-run", "--json")
    assert err == "cross pairs of preset default dropped, because the tasks were replaced: toy-fxn → toy-role\n"
    forecast = json.loads(out)
    assert forecast["plan"]["tasks"] == [task]
    assert forecast["plan"]["cross"] == []


def test_another_study_in_the_same_folder_is_told(frozen: Path, tmp_path: Path, capsys: Capsys) -> None:
    other = frozen.with_name("other.yaml")
    other.write_text(frozen.read_text().replace("name: small", "name: other"))
    ask = ("--out", tmp_path / "out", "--engine", "here", "--no-report")
    _, err = run(capsys, "study", frozen, *ask)
    assert "replaced" not in err
    _, err = run(capsys, "study", other, *ask)
    assert "the results table and report of study small in this folder are replaced; its finished cells are kept" in err


def test_a_file_in_the_place_of_the_folder_is_refused_by_a_dry_run_too(
    frozen: Path, tmp_path: Path, capsys: Capsys
) -> None:
    (tmp_path / "out").write_text("")
    for more in ((), ("--dry-run",)):
        assert_refused(capsys, "is a file; expected a folder", "study", frozen, "--out", tmp_path / "out", *more)


def test_a_plan_may_be_given_as_its_entries(tmp_path: Path) -> None:
    opened = resolve_study({"encoders": "bert-tiny", "tasks": "toy-question"}, tmp_path)
    assert (opened.plan.tasks, list(opened.encoders)) == (["toy-question"], ["bert-tiny"])


def test_json_is_one_object(frozen: Path, tmp_path: Path, capsys: Capsys) -> None:
    out, _ = run(capsys, "study", frozen, "--out", tmp_path / "out", "--engine", "here", "--json")
    told = json.loads(out)
    assert told["cells"] == told["total"] == told["computed"] == 3
    assert told["failed"] == {}
    assert told["table"] == str(tmp_path / "out" / "results.parquet")
    assert len(load_results(told["out"]))


def test_a_dry_run_says_what_it_would_cost_and_makes_nothing(
    plan: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out, _ = run(capsys, "study", plan, "--out", tmp_path / "out", "--dry-run")
    for told in (
        "fine-tuning",
        "extract",
        "tune",
        "geometry",
        "classifier",
        "comparison",
        "centroids",
        "total cells",
        "memory of a cell",
    ):
        assert told in out
    assert list(tmp_path.iterdir()) == []
    out, _ = run(capsys, "study", plan, "--out", tmp_path / "out", "--dry-run", "--json")
    told = json.loads(out)
    assert sum(kind["cells"] for kind in told["kinds"]) == 26
    assert all(kind["done"] == 0 and kind["memory"] > 0 and kind["disk"] > 0 for kind in told["kinds"])
    assert told["core_seconds"] > 0
    assert told["plan"]["name"] == "small"
    assert list(tmp_path.iterdir()) == []


def test_complete_runs_only_what_given_results_lack(plan: Path, tmp_path: Path, capsys: Capsys) -> None:
    run(capsys, "study", plan, "--out", tmp_path / "kept", "--workers", "1", "--no-report")
    options = ("--complete", tmp_path / "kept", "--out", tmp_path / "part", "--json")
    assert json.loads(run(capsys, "study", plan, "--dry-run", *options)[0])["kinds"] == []
    with_control = ("study", plan, "--control", *options)
    kinds = {kind["kind"] for kind in json.loads(run(capsys, *with_control, "--dry-run")[0])["kinds"]}
    assert kinds == {"extract", "tune", "classifier", "description_length", "control"}
    told = json.loads(run(capsys, *with_control, "--workers", "1")[0])
    assert (told["cells"], told["computed"], told["report"]) == (8, 8, None)
    measures = set(load_results(tmp_path / "part")["measure"])
    assert "selectivity" in measures
    assert "n_clusters" not in measures


def test_complete_says_that_nothing_is_lacking_and_runs_nothing(plan: Path, tmp_path: Path, capsys: Capsys) -> None:
    run(capsys, "study", plan, "--out", tmp_path / "kept", "--workers", "1", "--no-report")
    options = ("--complete", tmp_path / "kept", "--out", tmp_path / "part")
    for option in ("--dry-run", "--no-report"):
        out, err = run(capsys, "study", plan, *options, option)
        assert out == ""
        assert f"{tmp_path / 'kept'} lacks nothing of this plan" in err
    told = json.loads(run(capsys, "study", plan, *options, "--json")[0])
    assert (told["cells"], told["computed"], told["failed"], told["report"]) == (0, 0, {}, None)
    assert not (tmp_path / "part" / "results.parquet").exists()


def test_complete_says_what_to_do_if_a_training_has_different_weights(
    plan: Path, tmp_path: Path, capsys: Capsys, caplog: pytest.LogCaptureFixture
) -> None:
    run(capsys, "study", plan, "--out", tmp_path / "kept", "--workers", "1", "--no-report")
    table, manifest = load_results(tmp_path / "kept"), read_manifest(tmp_path / "kept")
    table.loc[table["tuned_on"] != "", "weights"] = "other"
    lacks = table["is_final"] & table["measure"].isin(measures_of("panel"))
    kept = write_study(tmp_path / "changed", table[~lacks], manifest)
    _, error = run(capsys, "study", plan, "--complete", kept, "--out", tmp_path / "part", "--workers", "1", code=1)
    assert f"1 training(s) have different weights than in {kept}; expected the same weights" in error
    assert "to replace them, run a plan of them without --complete, and give closerlook combine its" in caplog.text


def test_the_control_option_replaces_the_entry_of_the_plan(plan: Path, tmp_path: Path, capsys: Capsys) -> None:
    counts = []
    for options in ((), ("--control",), ("--no-control",)):
        out, _ = run(capsys, "study", plan, "--out", tmp_path / "out", "--dry-run", "--json", *options)
        told = json.loads(out)
        assert told["plan"]["control"] == ("--control" in options)
        counts.append({kind["kind"]: kind["cells"] for kind in told["kinds"]})
    assert counts[1] == counts[0] | {"control": 2, "description_length": 2}
    assert counts[2] == counts[0]


def test_a_dry_run_names_the_number_of_cores(
    plan: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cores, title in ((1, "time on 1 core "), (2, "time on 2 cores ")):
        monkeypatch.setattr("closerlook.study.engines.cores", lambda cores=cores: cores)
        out, _ = run(capsys, "study", plan, "--out", tmp_path / "out", "--dry-run")
        assert title in out


def test_a_dry_run_of_a_finished_study_costs_nothing(frozen: Path, tmp_path: Path, capsys: Capsys) -> None:
    run(capsys, "study", frozen, "--out", tmp_path / "out", "--engine", "here")
    out, _ = run(capsys, "study", frozen, "--out", tmp_path / "out", "--dry-run", "--json")
    assert all(kind["done"] == kind["cells"] for kind in json.loads(out)["kinds"])
    assert json.loads(out)["core_seconds"] == 0


def test_progress_is_a_line_now_and_then_where_it_goes_to_a_file(
    frozen: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_progress, "QUIET_SECONDS", 0.0)
    _, err = run(capsys, "study", frozen, "--out", tmp_path / "out", "--engine", "here")
    lines = [line for line in err.splitlines() if " of 3 cells finished; " in line]
    assert lines[0].startswith("0 of 3 cells finished; ")
    assert lines[0].endswith("B memory; running: extract bert-tiny")
    assert " left; " not in lines[0]  # nothing is known yet
    assert lines[-1].startswith("3 of 3 cells finished; about 0 s left")


@pytest.mark.slow
def test_progress_on_a_terminal_is_a_bar_with_what_runs_now(frozen: Path, tmp_path: Path) -> None:
    command_line = [sys.executable, "-m", "closerlook", "study", str(frozen), "--out", str(tmp_path / "out")]
    shown = shown_on_a_terminal([*command_line, "--engine", "here"], dict(os.environ))
    for told in ("cells", "0/3", "memory", "extract bert-tiny"):  # three cells end before their time is known
        assert told in shown


def test_other_encoders_and_tasks_may_be_named_on_the_command_line(
    frozen: Path, tmp_path: Path, capsys: Capsys
) -> None:
    task = frozen.parent / "questions"
    options = ("-e", "random:bert-tiny", "-t", task, "--out", tmp_path / "out", "--engine", "here")
    run(capsys, "study", frozen, *options)
    table = load_results(tmp_path / "out")
    assert set(table.encoder) == {"random:bert-tiny"}
    assert set(table.task) == {"questions"}


def test_failed_cells_are_one_line_and_exit_code_one(
    frozen: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = geometry.measure_space

    def broken(space: Space, *arguments: Any, **rest: Any) -> Any:
        if space.provenance.split == "test":
            raise ValueError("this space is odd")
        return real(space, *arguments, **rest)

    monkeypatch.setattr(geometry, "measure_space", broken)
    out, err = run(capsys, "study", frozen, "--out", tmp_path / "out", "--engine", "here", code=1)
    assert "words" in out
    (line,) = [line for line in err.splitlines() if line.startswith("closerlook: ")]
    assert "1 of 3 cells failed, and 0 depend on them; first failure: ValueError: this space is odd; see " in line
    assert line.endswith("run the same command again to retry them")
    assert len(list((tmp_path / "out" / "failed").glob("*.json"))) == 1
    assert "2 of 3 cells finished (2 computed now)" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("nowhere.yaml",),
            "plan nowhere.yaml cannot be read: No such file or directory; expected a YAML file or one of",
        ),
        (("default", "--task", "toy-poss"), "plan default has 1 problem: "),
        (
            ("default", "--encoder", "./nowhere"),
            "plan default has 1 problem: encoder ./nowhere: there is no such folder",
        ),
        (("default", "--device", "tpu"), "device: expected auto, cpu, mps, cuda or cuda:N"),
        (("paper-small",), "paper-small has "),
        (("default", "--engine", "threads"), "engine 'threads' is unknown; expected here, processes or dask"),
        (("default", "--engine", "dask"), "engine dask needs --scheduler ADDRESS"),
        (("default", "--engine", "here", "--workers", "2"), "engine here runs one cell at a time"),
        (("default", "--workers", "0"), "Invalid value for '--workers'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(capsys, message, "study", *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.4, "0 s"), (89, "89 s"), (120, "2 min"), (5399, "90 min"), (9000, "2.5 h")]
)
def test_times_are_told_in_few_figures(seconds: float, told: str) -> None:
    assert study_progress.span(seconds) == told


@pytest.mark.parametrize("out", ["file", "file/below", "/proc/closerlook"])
def test_a_folder_that_cannot_be_written_is_found_before_any_work(tmp_path: Path, capsys: Capsys, out: str) -> None:
    (tmp_path / "file").write_text("")
    message = "is a file; expected a folder" if "file" in out else "cannot be written: "
    assert_refused(capsys, message, "study", "nowhere.yaml", "--out", tmp_path / out)
    assert_refused(capsys, message, "extract", "--task", "nowhere", "--out", tmp_path / out)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_csv_file_without_splits_is_a_task(tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (None, "closerlook"):  # handlers of pytest and of earlier commands
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])
    file = tmp_path / "mine.csv"
    file.write_text("text;label\n" + "".join(f"text {i};{'ab'[i % 2]}\n" for i in range(20)))
    out, err = run(capsys, "study", "-t", file, "--out", tmp_path / "out", "--dry-run", "--json", "--test-share", "0.3")
    assert json.loads(out)["plan"]["test_share"] == 0.3
    assert "6 of its 20 examples in train are its test split (test share 0.3" in err
    _, err = run(capsys, "study", "-t", file, "--test-share", "2", "--dry-run", code=2)
    assert err.endswith("closerlook: default has 1 problem: test_share: expected less than 1 (got 2.0)\n")

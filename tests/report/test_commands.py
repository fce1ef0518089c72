"""The commands on a study that has run."""

import csv
import json
from pathlib import Path

import pytest

from closerlook.study.results import load_results
from closerlook.study.rules import VERSION, rules_hash
from tests.cli.console import assert_refused, run
from tests.report.studies import golden, golden_beyond, made_up, write_study


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_study(tmp_path / "study", golden())


def test_report_prints_the_path_of_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, "report", folder, "--no-figures")
    assert out == f"{folder / 'report.html'}\n"
    assert not (folder / "figures").exists()


def test_report_as_json_has_the_verdicts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, "report", folder, "--no-figures", "--json")
    content = json.loads(out)
    assert [finding["verdict"] for finding in content["findings"]] == ["cannot tell"] * 5
    assert content["rules"] == {"version": VERSION, "hash": rules_hash()}
    assert content["findings"][1]["effect"]["unit"] == "clusters"


def test_report_refuses_a_folder_without_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(capsys, "expected the folder of a finished study", "report", tmp_path)


def test_report_archives_only_the_distances_that_are_requested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = write_study(tmp_path / "whole", made_up(layers=(0, 1, 2)))
    out, _ = run(capsys, "report", whole, "--archive", tmp_path / "kept", "--distances", "last")
    assert out == f"{tmp_path / 'kept' / 'report.html'}\n"
    table = load_results(tmp_path / "kept")
    assert set(table[table.measure == "label_distance"].layer) == {2}


def test_report_refuses_a_choice_of_distances_without_an_archive(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = "--distances last given without --archive; expected both, or neither"
    assert_refused(capsys, expected, "report", folder, "--distances", "last")


def test_show_prints_every_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, "show", folder)
    titles = (
        "The five findings",
        "Before → after",
        "Clusters, linear sep",
        "Distance to the nearest",
        "Fine-tuned on one task",
    )
    assert all(title in out for title in (*titles, "Similarity to the pretrained", "Compared with the paper"))


def test_show_prints_folded_tables_on_request_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_study(tmp_path, golden_beyond())
    out, err = run(capsys, "show", folder)
    assert "Similarity with true and shuffled labels" in out
    assert "All labels" not in out
    assert "not shown: by-layer, labels (print one with --table labels)" in err
    out, _ = run(capsys, "show", folder, "--table", "labels")
    assert "* significantly farther" in out


def test_show_writes_one_table_as_csv(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, "show", folder, "--table", "distances", "--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))
    assert rows[0]["mean minimum distance change"] == "2.0"


@pytest.mark.parametrize(("form", "part"), [("latex", r"\toprule"), ("markdown", "|:--|")])
def test_show_writes_for_papers(folder: Path, capsys: pytest.CaptureFixture[str], form: str, part: str) -> None:
    out, _ = run(capsys, "show", folder, "--format", form)
    assert part in out


def test_show_names_the_tables_there_are(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(
        capsys, "this study has no table 'nothing'; it has changes, findings, summary", "show", folder, "-t", "nothing"
    )


def test_compare_studies_writes_one_page(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write_study(tmp_path / "other", made_up())
    out, _ = run(capsys, "compare-studies", folder, other, "--out", tmp_path / "both.html")
    assert out == f"{tmp_path / 'both.html'}\n"
    assert (tmp_path / "both.html").stat().st_size > 500_000


def test_a_page_that_cannot_be_made_does_not_lose_the_study(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from closerlook.cli.study import _report

    def broken(folder: Path) -> Path:
        raise RuntimeError("no ink")

    monkeypatch.setattr("closerlook.report.write_report", broken)
    assert _report(folder) is None
    message = capsys.readouterr().err
    assert "the report could not be written (RuntimeError: no ink); retry with closerlook report" in message

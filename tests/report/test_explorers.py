"""The explorers on a study's page: which fit, what the page says about the rest, and what an archive keeps."""

import re
from pathlib import Path

import pytest

from closerlook.errors import InputError
from closerlook.report import write_report
from closerlook.report.archive import archive
from closerlook.report.explorers import FEWER_POINTS, fit_explorers
from closerlook.scatter.packing import count_points, unpack
from closerlook.study.explored import FILE, read_explorers, write_explorers
from tests.explorer.stored import stored
from tests.report.studies import data_of, made_up, write_study


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A made-up study without fine-tuning, whose page is made quickly, with the explorers of both tasks."""
    folder = write_study(tmp_path / "study", made_up(steps=()))
    write_explorers(folder, [stored(), stored(task="colours")])
    return folder


def test_all_points_are_shown_where_they_fit() -> None:
    explorers = [stored(), stored(task="colours")]
    fitted = fit_explorers(explorers)
    assert fitted.shown == explorers
    assert fitted.notes == []


def test_points_are_left_out_before_explorers_are() -> None:
    explorers = [stored(task=task, n=800, examples=9000, measured=5000, shown=830) for task in ("animals", "colours")]
    most = 2 * len(explorers[0].packed) - 1
    fitted = fit_explorers(explorers, most)
    assert fitted.most == 700
    assert 700 in FEWER_POINTS
    assert [count_points(unpack(one.packed)) for one in fitted.shown] == [700, 700]
    assert sum(len(one.packed) for one in fitted.shown) <= most
    assert "bert-tiny, animals: 700 of 9,000 examples are shown; clusters are those of a sample of 5,000." in (
        fitted.notes
    )


def test_explorers_that_do_not_fit_are_left_out_and_named() -> None:
    explorers = [stored(task=task) for task in ("animals", "colours", "shapes")]
    fitted = fit_explorers(explorers, int(1.5 * len(explorers[0].packed)))
    assert [one.task for one in fitted.shown] == ["animals"]
    assert fitted.notes[-1].endswith("at most 1.4 MB: bert-tiny on colours, bert-tiny on shapes.")


def test_the_page_has_the_explorers_of_the_study(study: Path) -> None:
    page = write_report(study, figures=False).read_text(encoding="utf-8")
    assert re.findall(r'id="(points-\d)"', page) == ["points-0", "points-1"]
    assert 'href="#points"' in page


def test_a_study_without_points_has_no_explorer(tmp_path: Path) -> None:
    page = write_report(write_study(tmp_path, made_up(steps=())), figures=False).read_text(encoding="utf-8")
    assert data_of(page)["explorers"] == []
    assert "#points" not in page


def test_an_archive_keeps_the_points_and_can_be_reported_again(study: Path, tmp_path: Path) -> None:
    page = archive(study, tmp_path / "kept")
    first = page.read_text(encoding="utf-8")
    assert read_explorers(page.parent) == read_explorers(study)
    assert write_report(page.parent, figures=False).read_text(encoding="utf-8") == first
    assert "points-1" in first


def test_an_archive_leaves_out_points_beyond_its_room_and_names_them(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("closerlook.report.archive.ARCHIVE_BYTES", 0)
    kept = archive(study, tmp_path / "kept").parent
    assert [one.task for one in read_explorers(kept)] == ["animals"]
    assert "has no room for the points of bert-tiny on colours" in caplog.text


def test_an_archive_of_a_study_without_points_has_none(study: Path, tmp_path: Path) -> None:
    kept = archive(study, tmp_path / "kept").parent
    write_explorers(study, [])
    assert not (study / FILE).exists()
    archive(study, kept)
    assert not (kept / FILE).exists()


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-40], lambda text: text.replace("animals", "plants!"), lambda _: ""]
)
def test_a_damaged_file_of_points_is_refused_in_one_line(study: Path, damage: object) -> None:
    path = study / FILE
    path.write_text(damage(path.read_text()))  # type: ignore[operator]
    with pytest.raises(InputError, match="run the study again, which writes the file, or remove it") as caught:
        write_report(study, figures=False)
    assert "\n" not in str(caught.value)
    path.unlink()
    assert write_report(study, figures=False).exists()

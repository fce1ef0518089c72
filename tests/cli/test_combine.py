"""`closerlook combine` on the pieces of an artificial study."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from closerlook.study.results import load_results
from tests.cli.console import assert_refused, run
from tests.report.studies import made_up, write_study

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """Without log handlers of other tests, whose streams are closed, and without leaving one."""
    log = logging.getLogger("closerlook")
    level = log.level
    log.handlers.clear()
    yield
    log.handlers.clear()
    log.setLevel(level)


@pytest.fixture
def pieces(tmp_path: Path) -> list[Path]:
    return [write_study(tmp_path / f"seed-{seed}", made_up(seeds=(seed,))) for seed in (0, 1)]


def test_combine_prints_the_path_of_the_table(capsys: Capsys, pieces: list[Path], tmp_path: Path) -> None:
    out, err = run(capsys, "combine", tmp_path / "whole", *pieces)
    assert (out, err) == (f"{tmp_path / 'whole' / 'results.parquet'}\n", "")
    assert sorted(load_results(tmp_path / "whole")["seed"].unique()) == [0, 1]
    out, _ = run(capsys, "report", tmp_path / "whole", "--no-figures")
    assert out == f"{tmp_path / 'whole' / 'report.html'}\n"


def test_combine_names_a_training_that_is_left_out(capsys: Capsys, pieces: list[Path], tmp_path: Path) -> None:
    table = made_up(seeds=(0,))
    again = table.assign(weights=table["weights"].where(table["step"] == 0, "different"))
    out, err = run(capsys, "combine", tmp_path / "whole", *pieces, write_study(tmp_path / "again", again))
    assert out.endswith("results.parquet\n")
    assert err.startswith(f"{tmp_path / 'again'}: an earlier folder has different weights, so these are left out: ")
    assert "bert-tiny on animals (" in err
    assert err.count("\n") == 1


def test_combine_refuses_a_single_folder(capsys: Capsys, pieces: list[Path], tmp_path: Path) -> None:
    assert_refused(capsys, "1 folder given to combine; expected at least two", "combine", tmp_path / "x", pieces[0])
    assert not (tmp_path / "x").exists()

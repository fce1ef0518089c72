"""`closerlook measures` lists the registry."""

import pytest

from closerlook.study.registry import MEASURES
from tests.cli.console import assert_refused, run

Capsys = pytest.CaptureFixture[str]


def test_every_measure_is_listed_with_its_title(capsys: Capsys) -> None:
    out, _ = run(capsys, "measures")
    cells = [line.split("│")[1].strip() for line in out.splitlines() if line.startswith("│")]
    assert [name for name in cells if name] == list(MEASURES)


def test_one_measure_is_found_by_its_name_in_a_table(capsys: Capsys) -> None:
    out, _ = run(capsys, "measures", "cka_original")
    assert "CKA" in out
    assert "nc1" not in out


def test_an_unknown_measure_is_refused(capsys: Capsys) -> None:
    assert_refused(capsys, "measure 'ckaa' is unknown", "measures", "ckaa")

"""The README is short, its Python code runs, and it shows what the code prints and what the replication found."""

import re
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from tests.threads import one_torch_thread

README = Path(__file__).parents[2] / "README.md"
REPLICATION = README.parent / "docs" / "reproduction.md"

ROW = re.compile(r"^\| (\d)\.? .*?\| \**(holds|fails|mixed|within noise|cannot tell)\**(?= \|)", re.MULTILINE)
"""A row of a table of findings: its number and its verdict."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_it_has_at_most_120_lines() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


def test_its_python_code_runs_and_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOSERLOOK_PROGRESS", "0")
    with one_torch_thread():  # in this process: importing torch again takes five seconds
        exec(compile("\n".join(blocks("python")), README.name, "exec"), {"__name__": "__main__"})  # noqa: S102 - our own documentation
    printed = capsys.readouterr().out
    *difference, clusters, accuracy = printed.splitlines()
    (shown,) = blocks("text")
    tutorial = runpy.run_path(str(README.parent / "docs" / "run_tutorial.py"))
    tolerance = replace(tutorial["TRAINED"], counts=1)  # of labels that moved: one may be near the limit
    assert tutorial["difference"](shown, "\n".join(difference), tolerance) is None
    assert clusters == "37 True"
    assert 0.8 < float(accuracy) < 0.95


def test_it_gives_the_verdicts_of_the_replication() -> None:
    shown = ROW.findall(README.read_text(encoding="utf-8"))
    assert [number for number, _ in shown] == list("12345")
    assert shown == ROW.findall(REPLICATION.read_text(encoding="utf-8"))[:5]

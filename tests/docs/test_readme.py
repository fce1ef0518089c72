"""The README is short, and its Python code runs."""

import re
from pathlib import Path

import pytest

from tests.threads import one_torch_thread

README = Path(__file__).parents[2] / "README.md"


def test_it_has_at_most_120_lines() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


def test_its_python_code_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOSERLOOK_PROGRESS", "0")
    with one_torch_thread():  # in this process: importing torch again takes five seconds
        exec(compile(code, README.name, "exec"), {"__name__": "__main__"})  # noqa: S102 - our own documentation
    printed = capsys.readouterr().out
    assert printed.startswith("37 True 0.")
    assert "random:bert-tiny → bert-tiny" in printed

"""The README is short, and its Python code runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_it_has_at_most_120_lines() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


def test_its_python_code_runs(tmp_path: Path) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL))
    environment = os.environ | {"CLOSERLOOK_STORE": str(tmp_path / "store"), "CLOSERLOOK_PROGRESS": "0"}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("37 True 0.")
    assert "random:bert-tiny → bert-tiny" in run.stdout

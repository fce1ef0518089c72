"""The page about data: every command in its table runs on the files that it shows, and so does its Python."""

import json
import logging
import os
import re
import shlex
from pathlib import Path

import pytest

from closerlook.tasks.readers import FORMATS
from tests.cli.console import run
from tests.threads import one_torch_thread

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([^`\n]+)`:\n\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^\|[^|]+\| `closerlook ([^`]+)` \|$", PAGE, re.MULTILINE)
(PYTHON,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page."""
    folder = tmp_path_factory.mktemp("data")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    here = Path.cwd()
    os.chdir(folder)
    try:
        with one_torch_thread():
            exec(compile(PYTHON, "docs/data.md", "exec"), {})  # noqa: S102 - the code of our own page
    finally:
        os.chdir(here)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_runs(
    folder: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "hf:" in command:
        pytest.importorskip("datasets")
    monkeypatch.chdir(folder)
    logging.getLogger("closerlook").handlers.clear()
    with one_torch_thread():
        out, _ = run(capsys, *shlex.split(command), "--json")
    found = json.loads(out)
    assert found.get("spaces") or found["kinds"]


def test_the_page_has_a_command_for_every_file_and_format() -> None:
    assert len(COMMANDS) == len(re.findall(r"^\|(?! you have| ?-)", PAGE, re.MULTILINE))
    named = " ".join(COMMANDS)
    assert [name for name in FILES if Path(name).parts[0] not in named] == []
    read = {Path(re.split(r"[?:/]$|[?']", word)[0]).suffix for word in named.split()}
    assert [name for name, form in FORMATS.items() if not read & set(form.suffixes)] == []

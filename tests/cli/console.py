"""A command run inside the test's own process, which takes a hundredth of the time of one of its own."""

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from closerlook.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> tuple[str, str]:
    """Standard output and standard error of a command; its exit code is checked."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert ended.value.code == code, err
    return out, err


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """What a command says with --json: one JSON object and nothing else on standard output."""
    out, _ = run(capsys, *arguments, "--json")
    assert out.count("\n") == 1
    assert "NaN" not in out
    found: dict[str, Any] = json.loads(out)
    return found


def saved(file: Path, *points: object, **arrays: object) -> Path:
    """Arrays in a .npz file; points: X and y."""
    named = dict(zip(("X", "y"), points, strict=False)) | arrays
    np.savez(file, **{name: np.asarray(array) for name, array in named.items()})  # type: ignore[arg-type]
    return file


def assert_refused(capsys: pytest.CaptureFixture[str], message: str, *arguments: object) -> None:
    """The command ends with exit code 2, one line on standard error that says this, and nothing else."""
    out, err = run(capsys, *arguments, code=2)
    assert out == ""
    assert err.count("\n") == 1, err
    assert err.startswith("closerlook: ")
    assert message in err


def shown_on_a_terminal(command: list[str], environment: dict[str, str]) -> str:
    """What a command in a process of its own writes on standard error, where that is a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=follower, env=environment | {"TERM": "xterm", "COLUMNS": "120"}
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        shown += part
    os.close(leader)
    assert process.wait() == 0
    return shown.decode()

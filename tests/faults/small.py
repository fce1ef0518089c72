"""A study of a few cells that takes a fraction of a second, run inside the test's process as a user would run it."""

import io
import shutil
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from closerlook.cli import main
from closerlook.study.results import load_results
from tests.study.small import small_values, values, write_tasks

CELLS: dict[str, Any] = {
    "layers": "last",
    "measures": ["clusters", "similarity"],
    "compare": {"train_test": True, "original": False, "seeds": False, "encoders": False},
}
"""The cells of the study: extract, measure two splits, compare them."""


@dataclass(frozen=True)
class Study:
    """A plan, the folder of an undisturbed run of it, and the table of that run."""

    plan: Path
    out: Path
    table: pd.DataFrame

    def check(self, out: Path, *, was_killed: bool = False) -> None:
        """The table in a folder is that of the undisturbed run, bit for bit, and no unfinished file remains.

        was_killed: unfinished files may remain in the store, where `closerlook store gc` removes them after a day.
        """
        pd.testing.assert_frame_equal(values(load_results(out)), self.table, check_exact=True)
        parts = [path.relative_to(out) for path in out.rglob("*.part")]
        assert not [path for path in parts if not (was_killed and path.parts[0] == "store")]

    def start(self, out: Path, *, finished: bool) -> Path:
        """The folder, empty or with a finished study."""
        shutil.rmtree(out, ignore_errors=True)
        if finished:
            shutil.copytree(self.out, out)
        return out


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and its standard error."""

    code: int
    errors: str

    @property
    def message(self) -> str:
        """The one line that says what went wrong."""
        assert "Traceback" not in self.errors, self.errors
        assert "unexpected" not in self.errors, self.errors
        (line,) = [line for line in self.errors.splitlines() if line.startswith("closerlook: ")]
        return line


def prepare(folder: Path, **changes: Any) -> Study:
    """Write the plan of a small study, and run it once."""
    write_tasks(folder, texts=8, tests=6)
    plan, out = folder / "plan.yaml", folder / "undisturbed"
    plan.write_text(yaml.safe_dump(small_values(folder) | changes))
    ended = run(plan, out)
    assert ended.code == 0, ended.errors
    return Study(plan, out, values(load_results(out)))


def run(plan: Path, out: Path, *options: str) -> Ended:
    """`closerlook study` in this process; options: by default, cells run in this process as well."""
    errors = io.StringIO()
    with redirect_stderr(errors), redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as ended:
        main(["study", str(plan), "--out", str(out), "--no-report", "--json", *(options or ("--engine", "here"))])
    return Ended(int(ended.value.code or 0), errors.getvalue())

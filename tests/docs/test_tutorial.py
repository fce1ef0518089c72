"""The tutorial does what it shows: all of it is run, and what it prints is compared with the page."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUNNER = Path(__file__).parents[2] / "docs" / "run_tutorial.py"


@pytest.fixture(scope="module")
def runner() -> dict[str, Any]:
    return runpy.run_path(str(RUNNER))


def test_the_tutorial_prints_what_it_shows() -> None:
    done = subprocess.run([sys.executable, str(RUNNER)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("clusters 6", "clusters 6"),
        ("accuracy 0.903", "accuracy 0.734"),
        ("607 points", "607   points\n"),
        ("done in 12.5 s", "done in 3 s"),
        ("weights 4c55bc5e6933", "weights 5b372113d188"),
        ("│ seconds │ clustering 0.2 │", "│ seconds │ clustering 7.9 │"),
        ("┃ a ┃", "┃   a   ┃"),
    ],
)
def test_what_may_differ_is_no_difference(runner: dict[str, Any], shown: str, printed: str) -> None:
    assert runner["difference"](shown, printed) is None


@pytest.mark.parametrize(
    ("shown", "printed", "said"),
    [
        ("clusters 6", "clusters 4", "'6' is shown, '4' is printed"),
        ("finding: holds", "finding: fails", "'holds' is shown, 'fails' is printed"),
        ("a b", "a", "'b' is shown, 'nothing' is printed"),
        ("", "a", "'nothing' is shown, 'a' is printed"),
        ("accuracy 0.903", "accuracy 0.503", "'0.903' is shown, '0.503' is printed"),
        ("5 → 4", "5 → 5", "'4' is shown, '5' is printed"),
        ("similarity 0.9", "similarity −0.9", "'0.9' is shown, '−' is printed"),
    ],
)
def test_other_words_and_numbers_are_a_difference(runner: dict[str, Any], shown: str, printed: str, said: str) -> None:
    assert runner["difference"](shown, printed) == said


PAGE = "Do:\n\n```bash\necho one; pwd\n```\n\n```text\nold\n```\n\n```python\nx = 1\n```\n\nand\n\n```sh\nfalse\n```\n"


def test_what_is_printed_takes_the_place_of_what_was_shown(runner: dict[str, Any], tmp_path: Path) -> None:
    results = list(runner["run"](runner["read_steps"](PAGE), tmp_path))
    assert runner["rewritten"](PAGE, results) == PAGE.replace("old\n", "one\n/home/me\n")


def test_a_command_that_fails_ends_the_tutorial_with_its_words(runner: dict[str, Any], tmp_path: Path) -> None:
    steps = runner["read_steps"]("```bash\necho oh no >&2; false | true\n```\n")
    with pytest.raises(SystemExit, match="exit code 1 of\necho oh no[^\n]*\n\noh no"):
        list(runner["run"](steps, tmp_path))

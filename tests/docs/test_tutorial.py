"""The output of the tutorial's commands is the output that the page shows."""

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
    process = subprocess.run([sys.executable, str(RUNNER)], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("clusters 6", "clusters 6"),
        ("607 points", "607   points\n"),
        ("distance 0.4362", "distance 0.4363"),
        ("radius 5.12056", "radius 5.12057"),
        ("done in 12.5 s", "done in 3 s"),
        ("weights 4c55bc5e6933", "weights 5b372113d188"),
        ("│ seconds │ clustering 0.2 │", "│ seconds │ clustering 7.9 │"),
        ("┃ time on 2 cores ┃", "┃ time on 16 cores ┃"),
        ("┃ time on 2 cores ┃", "┃ time on 1 core ┃"),
        ("┃ a ┃", "┃   a   ┃"),
        (
            "│ x │ 7: child (0.11), 9: │\n│   │ cook (0.04), 61 more │",
            "│ x │ 7: child (0.12), 8: │\n│   │ hat (0.05), 9 more │",
        ),
    ],
)
def test_rounding_and_the_machine_make_no_difference(runner: dict[str, Any], shown: str, printed: str) -> None:
    assert runner["difference"](shown, printed) is None


@pytest.mark.parametrize(
    ("shown", "printed", "message"),
    [
        ("clusters 6", "clusters 5", "'6' is shown, '5' is printed"),
        ("finding: holds", "finding: fails", "'holds' is shown, 'fails' is printed"),
        ("a b", "a", "'b' is shown, 'nothing' is printed"),
        ("", "a", "'nothing' is shown, 'a' is printed"),
        ("accuracy 0.903", "accuracy 0.901", "'0.903' is shown, '0.901' is printed"),
        ("5 → 4", "5 → 5", "'4' is shown, '5' is printed"),
        ("similarity 0.9", "similarity −0.9", "'0.9' is shown, '−' is printed"),
    ],
)
def test_other_words_and_numbers_are_a_difference(
    runner: dict[str, Any], shown: str, printed: str, message: str
) -> None:
    assert runner["difference"](shown, printed) == message


@pytest.mark.parametrize(
    ("tolerance", "printed", "is_allowed"),
    [("PRETRAINED", "8.9", False), ("FINE_TUNED", "8.9", True), ("FINE_TUNED", "1.5", False)],
)
def test_only_numbers_after_fine_tuning_may_differ_by_more_than_rounding(
    runner: dict[str, Any], tolerance: str, printed: str, is_allowed: bool
) -> None:
    assert (runner["difference"]("9.40", printed, runner[tolerance]) is None) == is_allowed


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (
            "│ place │ 76 │ 1 │ cause │ 13.5 │ 1.4 │ 1.8 │ 4.0 │",
            "│ place │ 76 │ 1 │ speaker │ 13.5 │ 1.4 │ 3.3 │ 6.1 │",
        ),
        (
            "│    0 │  0.00 │     1.2904 │         0.3655 │",
            "│    0 │  0.00 │     1.8320 │         0.1480 │",
        ),
    ],
)
def test_what_random_numbers_decide_is_compared_only_before_fine_tuning(
    runner: dict[str, Any], shown: str, printed: str
) -> None:
    assert runner["difference"](shown, printed, runner["PRETRAINED"]) is not None
    assert runner["difference"](shown, printed, runner["FINE_TUNED"]) is None


@pytest.mark.parametrize(
    ("shown", "printed", "message"),
    [
        ("clusters 4", "clusters 5", "'4' is shown, '5' is printed"),
        ("move away: holds", "move away: mixed", "'holds' is shown, 'mixed' is printed"),
        (
            "│ place │ 76 │ 1 │ cause │ 13.5 │ 1.4 │ 1.8 │ 4.0 │",
            "│ place │ 76 │ 1 │ cause │ 2.7 │ 1.4 │ 1.8 │ 4.0 │",
            "'13.5' is shown, '2.7' is printed",
        ),
        (
            "│  128 │  8.00 │ 0.0012 │ 0.9991 │ e0a3996bec45 │",
            "│  128 │  8.00 │ 0.0012 │ 0.8391 │ e0a3996bec45 │",
            "'0.9991' is shown, '0.8391' is printed",
        ),
    ],
)
def test_counts_verdicts_and_accuracies_after_fine_tuning_are_compared(
    runner: dict[str, Any], shown: str, printed: str, message: str
) -> None:
    assert runner["difference"](shown, printed, runner["FINE_TUNED"]) == message


def test_the_tolerance_is_strict_until_the_first_fine_tuning(runner: dict[str, Any]) -> None:
    steps = runner["read_steps"]("".join(f"```bash\n{code}\n```\n" for code in ("ls", "closerlook tune x", "ls")))
    strict, wide = runner["PRETRAINED"], runner["FINE_TUNED"]
    assert runner["tolerances"](steps) == [strict, wide, wide]


PAGE = "Do:\n\n```bash\necho one; pwd\n```\n\n```text\nold\n```\n\n```python\nx = 1\n```\n\nand\n\n```sh\nfalse\n```\n"


def test_write_replaces_the_shown_output(runner: dict[str, Any], tmp_path: Path) -> None:
    results = list(runner["run"](runner["read_steps"](PAGE), tmp_path))
    assert runner["rewritten"](PAGE, results) == PAGE.replace("old\n", "one\n/home/me\n")


def test_a_command_that_fails_ends_the_tutorial_with_its_error_output(runner: dict[str, Any], tmp_path: Path) -> None:
    steps = runner["read_steps"]("```bash\necho oh no >&2; false | true\n```\n")
    with pytest.raises(SystemExit, match="exit code 1 of\necho oh no[^\n]*\n\noh no"):
        list(runner["run"](steps, tmp_path))

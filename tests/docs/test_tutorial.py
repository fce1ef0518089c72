"""The output of the tutorial's commands is the output that the page shows."""

import re
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


@pytest.mark.portable
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
        ("weights 4c55bc5e6933", "weights 5b372113d188"),
        ("┃ a ┃", "┃   a   ┃"),
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
    [("EXACT", "8.9", False), ("TRAINED", "8.9", True), ("TRAINED", "1.5", False)],
)
def test_only_numbers_after_a_training_may_differ_by_more_than_rounding(
    runner: dict[str, Any], tolerance: str, printed: str, is_allowed: bool
) -> None:
    assert (runner["difference"]("9.40", printed, runner[tolerance]) is None) == is_allowed


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("│    0 │  0.00 │     1.2904 │         0.3655 │", "│    0 │  0.00 │     1.8320 │         0.1480 │"),
        (
            "75.6 % (a significant change: −14.1, 95% interval −16.8 to −11.4)",
            "78.2 % (a significant change: −11.5, 95% interval −14.0 to −9.0)",
        ),
        ("(with shuffled labels, 97.0 → 97.4 % of pairs)", "(with shuffled labels, 96.2 → 98.0 % of pairs)"),
        ("0 of 16 labels moved farther, 13 closer.", "0 of 16 labels moved farther, 10 closer."),
        (
            "15 of 1000 test examples became right and 214 wrong.",
            "17 of 1000 test examples became right and 187 wrong.",
        ),
        ("spatial similarity 0.86, CKA 0.26.", "spatial similarity 0.61, CKA 0.38."),
    ],
)
def test_what_random_numbers_decide_is_not_compared_after_a_training(
    runner: dict[str, Any], shown: str, printed: str
) -> None:
    assert runner["difference"](shown, printed, runner["EXACT"]) is not None
    assert runner["difference"](shown, printed, runner["TRAINED"]) is None


@pytest.mark.parametrize(
    ("shown", "printed", "message"),
    [
        ("Clusters 7 → 4", "Clusters 7 → 5", "'4' is shown, '5' is printed"),
        ("a significant change: −14.1", "no significant change: −14.1", "'a' is shown, 'no' is printed"),
        ("0.339 → 0.137 RMS radii", "0.339 → 0.237 RMS radii", "'0.137' is shown, '0.237' is printed"),
        (
            "│  128 │  8.00 │ 0.0012 │ 0.9991 │ e0a3996bec45 │",
            "│  128 │  8.00 │ 0.0012 │ 0.8391 │ e0a3996bec45 │",
            "'0.9991' is shown, '0.8391' is printed",
        ),
    ],
)
def test_clusters_verdicts_distances_and_accuracies_after_a_training_are_compared(
    runner: dict[str, Any], shown: str, printed: str, message: str
) -> None:
    assert runner["difference"](shown, printed, runner["TRAINED"]) == message


@pytest.mark.parametrize(
    ("code", "tolerance"),
    [
        ("head train.csv", "EXACT"),
        ("space = closerlook.extract(tuned)\nseparability(space.X, space.y)", "EXACT"),
        ("closerlook tune -t x", "TRAINED"),
        ("closerlook diff a b -t x", "TRAINED"),
        ("cat > plan.yaml\ncloserlook study plan.yaml", "TRAINED"),
        ("closerlook.load_results('study')", "TRAINED"),
    ],
)
def test_the_tolerance_is_strict_where_nothing_is_trained(runner: dict[str, Any], code: str, tolerance: str) -> None:
    (step,) = runner["read_steps"](f"```bash\n{code}\n```\n")
    assert runner["tolerance_of"](step) == runner[tolerance]


def test_the_tutorial_has_a_section_for_every_question_that_it_lists() -> None:
    text = (RUNNER.parent / "tutorial.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[([^\]]+)\]\(#", text, re.MULTILINE)
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert len(listed) == 6
    assert listed == [section for section in sections if section != "Install"]


def test_every_question_of_the_tutorial_shows_output_and_a_wrong_conclusion() -> None:
    text = (RUNNER.parent / "tutorial.md").read_text(encoding="utf-8")
    questions = [section for section in text.split("\n## ")[1:] if section.splitlines()[0].endswith("?")]
    parts = ("```text\n", "**How to read it.**", "rong conclusion", "**More**")
    assert [part for section in questions for part in parts if part not in section] == []


PAGE = "Do:\n\n```bash\necho one; pwd\n```\n\n```text\nold\n```\n\n```python\nx = 1\n```\n\nand\n\n```sh\nfalse\n```\n"


def test_write_replaces_the_shown_output(runner: dict[str, Any], tmp_path: Path) -> None:
    results = list(runner["run"](runner["read_steps"](PAGE), tmp_path))
    assert runner["rewritten"](PAGE, results) == PAGE.replace("old\n", "one\n/home/me\n")


def test_a_command_that_fails_ends_the_tutorial_with_its_error_output(runner: dict[str, Any], tmp_path: Path) -> None:
    steps = runner["read_steps"]("```bash\necho oh no >&2; false | true\n```\n")
    with pytest.raises(SystemExit, match="exit code 1 of\necho oh no[^\n]*\n\noh no"):
        list(runner["run"](steps, tmp_path))

"""Run the tutorial in an empty folder and compare the output of its commands with the output it shows.

Blocks of `bash` and `python` are run in order. A block of `text` right after one shows its standard output; a block
without one prints nothing.

    python docs/run_tutorial.py          # one line for every difference, exit code 1 if there is any
    python docs/run_tutorial.py --write  # write the present output into docs/tutorial.md
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

TUTORIAL = Path(__file__).with_name("tutorial.md")
SHOWN_FOLDER = "/home/me"
"""The name that the tutorial shows for the folder it is run in."""

BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
FINGERPRINT = re.compile(r"\b[0-9a-f]{12}\b")
"""The fingerprint of weights: processors differ in their last bits."""

NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?"
TOKEN = re.compile(rf"{NUMBER}|[^\s\d\u2500-\u257f]+")  # without the frames of tables

RANDOM = re.compile(
    r"│ +0 │ +0\.00 │.*"  # loss and accuracy at step 0: the weights of the head are random
    r"|(?<=significant change: )[^)]*"  # a difference of two accuracies that are compared themselves
    r"|with shuffled labels, [\d.]+ → [\d.]+ %"  # five shuffles
    r"|\d+ closer|\d+ of \d+ test examples became right and \d+ wrong"  # counts of labels and examples near a limit
    r"|spatial similarity [\d.]+, CKA [\d.]+"  # of four labels: a correlation of six numbers
)
"""Output that depends on the random numbers of fine-tuning."""

TRAINS = re.compile(r"closerlook (?:tune|diff|rank|study)|closerlook\.(?:diff|load_results)|online_code")
"""Code that trains an encoder or a probe, or reads what was trained."""


@dataclass(frozen=True)
class Tolerance:
    """How far a printed number may be from the one shown: one unit of the last digit shown, or more if this says so.

    counts: absolute, for whole numbers. relative, absolute: for fractions. ignored: output that is not compared.
    """

    counts: int
    relative: float
    absolute: float
    ignored: tuple[re.Pattern[str], ...] = (FINGERPRINT,)

    def allows(self, shown: str, printed: str) -> bool:
        """Whether two numbers are close enough."""
        a, b = (float(number.replace(",", "")) for number in (shown, printed))
        if "." not in shown + printed:
            return abs(a - b) <= self.counts
        last_digit = 10.0 ** -len(shown.partition(".")[2].partition("e")[0])
        return math.isclose(a, b, rel_tol=self.relative, abs_tol=max(self.absolute, 1.01 * last_digit))

    def tokens(self, text: str) -> list[str]:
        """The words and numbers to compare."""
        for pattern in self.ignored:
            text = pattern.sub("", text)
        return TOKEN.findall(text)


EXACT = Tolerance(counts=0, relative=0.001, absolute=0.0)
"""For vectors of given weights: processors differ in the seventh digit, so the digits shown differ by rounding only."""

TRAINED = Tolerance(counts=0, relative=0.15, absolute=0.05, ignored=(FINGERPRINT, RANDOM))
"""After a training, for any random numbers: without MKL, torch draws different ones, which is like another seed. Over
seeds 0 to 7, the distance to the nearest label was 1.26 to 1.39 RMS radii after full fine-tuning (0.35 before) and 0.80
to 0.94 after LoRA; the accuracy on toy-pos was 74.2 to 78.8% and 74.0 to 78.8% (89.7% before); numbers of clusters and
accuracies on the task of the training were the same."""


@dataclass(frozen=True)
class Step:
    """A block of the tutorial that is run, the output it shows, and the position of both in the text."""

    language: str
    code: str
    shown: str
    start: int
    stop: int


def read_steps(text: str) -> list[Step]:
    """The blocks to run, in order."""
    return [Step(m[1], m[2], m[3] or "", m.start(), m.end()) for m in BLOCK.finditer(text)]


def run(steps: list[Step], folder: Path) -> Iterator[tuple[Step, str]]:
    """Each step with its output when run in that folder; a step that fails ends the tutorial."""
    for step in steps:
        program = ["bash", "-euo", "pipefail", "-c"] if step.language == "bash" else [sys.executable, "-c"]
        process = subprocess.run(  # noqa: S603 - the commands of our own tutorial
            [*program, step.code], cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
        )
        if process.returncode:
            raise SystemExit(f"exit code {process.returncode} of\n{step.code}\n{process.stderr}")
        yield step, tidy(process.stdout, folder)


def environment(folder: Path) -> dict[str, str]:
    """No network, no GPU, an empty store; one thread, which is not slower for a small encoder, unless set otherwise."""
    return (
        {"OMP_NUM_THREADS": "1"}
        | os.environ
        | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "CLOSERLOOK_STORE": str(folder / ".store"),
            "CUDA_VISIBLE_DEVICES": "",
            "HF_HUB_OFFLINE": "1",
            "NO_COLOR": "1",
        }
    )


def tidy(output: str, folder: Path) -> str:
    """The output as the tutorial shows it: no spaces at the ends of lines, and SHOWN_FOLDER for the folder."""
    lines = output.replace(str(folder), SHOWN_FOLDER).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def tolerance_of(step: Step) -> Tolerance:
    """How far the output of a step may be from what is shown: strict if it trains nothing."""
    return TRAINED if TRAINS.search(step.code) else EXACT


def difference(shown: str, printed: str, tolerance: Tolerance = EXACT) -> str | None:
    """The first word or number that differs by more than the tolerance, or None."""
    for expected, actual in zip_longest(tolerance.tokens(shown), tolerance.tokens(printed), fillvalue=""):
        are_numbers = re.fullmatch(NUMBER, expected) and re.fullmatch(NUMBER, actual)
        if not (tolerance.allows(expected, actual) if are_numbers else expected == actual):
            return f"{expected or 'nothing'!r} is shown, {actual or 'nothing'!r} is printed"
    return None


def rewritten(text: str, results: list[tuple[Step, str]]) -> str:
    """The tutorial with the printed output instead of the output that it showed."""
    for step, printed in reversed(results):
        shown = f"\n```text\n{printed}```\n" if printed else ""
        text = f"{text[: step.start]}```{step.language}\n{step.code}```\n{shown}{text[step.stop :]}"
    return text


def main() -> int:
    """Run the tutorial; print differences, or with --write put the output into the page."""
    text = TUTORIAL.read_text(encoding="utf-8")
    steps = read_steps(text)
    with tempfile.TemporaryDirectory() as name:
        results = list(run(steps, Path(name).resolve()))
    if "--write" in sys.argv[1:]:
        TUTORIAL.write_text(rewritten(text, results), encoding="utf-8")
        return 0
    differences = [
        (step, message)
        for step, printed in results
        if (message := difference(step.shown, printed, tolerance_of(step))) is not None
    ]
    for step, message in differences:
        sys.stdout.write(f"{message} by\n{step.code}")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())

"""Run the tutorial in an empty folder and compare what its commands print with what it shows.

Blocks of `bash` and `python` are run in order; a block of `text` right after one shows its standard output, and a block
without one prints nothing. Counts may differ by a tenth and fractions by a third, as fine-tuning makes much of the last
digits, which each kind of machine has of its own. Times and fingerprints may differ altogether.

    python docs/run_tutorial.py          # one line for every difference, exit code 1 if there is any
    python docs/run_tutorial.py --write  # shows in docs/tutorial.md what is printed now
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
SHOWN_AS = "/home/me"
"""What stands in the tutorial for the folder it is run in."""

BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
PASSING = re.compile(r"\d[\d,.]* (s|min|h|kB|MB|GB)\b|\b[0-9a-f]{12}\b|seconds +│.*")
"""What differs between runs and machines: times, sizes in memory, fingerprints of weights."""

NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?"
TOKEN = re.compile(rf"{NUMBER}|[^\s\d\u2500-\u257f]+")  # frames of tables do not count
COUNTS = {"rel_tol": 0.1}
FRACTIONS = {"rel_tol": 0.33, "abs_tol": 0.1}


@dataclass(frozen=True)
class Step:
    """A block of the tutorial that is run, what it shows, and where both stand."""

    language: str
    code: str
    shown: str
    start: int
    stop: int


def read_steps(text: str) -> list[Step]:
    """The blocks to run, in order."""
    return [Step(m[1], m[2], m[3] or "", m.start(), m.end()) for m in BLOCK.finditer(text)]


def run(steps: list[Step], folder: Path) -> Iterator[tuple[Step, str]]:
    """Each step with what it printed in that folder; one that fails ends the tutorial."""
    for step in steps:
        start = ["bash", "-euo", "pipefail", "-c"] if step.language == "bash" else [sys.executable, "-c"]
        done = subprocess.run(  # noqa: S603 - the commands of our own tutorial
            [*start, step.code], cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"exit code {done.returncode} of\n{step.code}\n{done.stderr}")
        yield step, tidy(done.stdout, folder)


def environment(folder: Path) -> dict[str, str]:
    """No network, no GPU, a store of its own, and one thread: the same numbers, and not slower for a small encoder."""
    return os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "CLOSERLOOK_STORE": str(folder / ".store"),
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "NO_COLOR": "1",
        "OMP_NUM_THREADS": "1",
    }


def tidy(output: str, folder: Path) -> str:
    """The output as the tutorial shows it: no spaces at the ends of lines, no folder of this run."""
    lines = output.replace(str(folder), SHOWN_AS).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def difference(shown: str, printed: str) -> str | None:
    """The first thing that differs, if anything does that should not."""
    tokens = [TOKEN.findall(PASSING.sub("", text)) for text in (shown, printed)]
    for expected, got in zip_longest(*tokens, fillvalue=""):
        if not is_alike(expected, got):
            return f"{expected or 'nothing'!r} is shown, {got or 'nothing'!r} is printed"
    return None


def is_alike(expected: str, got: str) -> bool:
    """Whether two words are the same, or two numbers nearly."""
    if not (re.fullmatch(NUMBER, expected) and re.fullmatch(NUMBER, got)):
        return expected == got
    a, b = (float(number.replace(",", "")) for number in (expected, got))
    return math.isclose(a, b, **(COUNTS if a.is_integer() and b.is_integer() else FRACTIONS))


def rewritten(text: str, results: list[tuple[Step, str]]) -> str:
    """The tutorial with what was printed in place of what it showed."""
    for step, printed in reversed(results):
        shown = f"\n```text\n{printed}```\n" if printed else ""
        text = f"{text[: step.start]}```{step.language}\n{step.code}```\n{shown}{text[step.stop :]}"
    return text


def main() -> int:
    """Run all of it; with --write, show what came out."""
    text = TUTORIAL.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        results = list(run(read_steps(text), Path(name).resolve()))
    if "--write" in sys.argv[1:]:
        TUTORIAL.write_text(rewritten(text, results), encoding="utf-8")
        return 0
    found = [(step, difference(step.shown, printed)) for step, printed in results]
    for step, what in found:
        if what is not None:
            sys.stdout.write(f"{what} by\n{step.code}")
    return int(any(what is not None for _, what in found))


if __name__ == "__main__":
    sys.exit(main())

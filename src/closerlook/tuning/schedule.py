"""The steps of a training at which snapshots are taken."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable

import numpy as np

from closerlook.errors import InputError

Snapshots = str | int | Iterable[int]
"""`log`, `epoch`, `every: k`, a number of snapshots, or a list of steps."""

EXPECTED = "expected log, epoch, every: K, a number of snapshots, or steps such as 0,10,100"


def read_snapshots(snapshots: Snapshots) -> str | int | list[int]:
    """The schedule in the form in which it is stored: a name, a number of snapshots, or ascending steps.

    >>> read_snapshots("every:5"), read_snapshots("8"), read_snapshots("10, 0, 10")
    ('every: 5', 8, [0, 10])
    """
    if isinstance(snapshots, str):
        return _read_text(snapshots)
    try:
        if isinstance(snapshots, Iterable):
            steps = sorted({operator.index(step) for step in snapshots})
            return _checked_steps(steps)
        return _checked_number(operator.index(snapshots))
    except TypeError:
        raise InputError(f"snapshots {snapshots!r} requested; {EXPECTED}") from None


def snapshot_steps(snapshots: Snapshots, total: int, per_epoch: int) -> list[int]:
    """The ascending steps of the snapshots in a training of `total` steps, always with step 0 and the last step.

    log: 0, 1, 2, 4, 8 and so on. epoch: the end of each epoch. every: k: multiples of k. A number: that many steps,
    evenly spaced on a logarithmic scale. A list of steps: these steps.

    >>> snapshot_steps("log", 20, 5), snapshot_steps("every: 8", 20, 5), snapshot_steps(5, 100, 5)
    ([0, 1, 2, 4, 8, 16, 20], [0, 8, 16, 20], [0, 1, 5, 22, 100])
    """
    plain = read_snapshots(snapshots)
    if isinstance(plain, int):
        return _spread_steps(plain, total)
    if isinstance(plain, list):
        if plain and plain[-1] > total:
            raise InputError(f"a snapshot at step {plain[-1]} requested; this training has steps 0 to {total}")
        steps = plain
    elif plain == "log":
        steps = [1 << i for i in range(total.bit_length())]
    else:
        stride = per_epoch if plain == "epoch" else int(plain.removeprefix("every: "))
        steps = list(range(0, total, stride))
    return sorted({0, total, *(step for step in steps if step <= total)})


def _read_text(snapshots: str) -> str | int | list[int]:
    text = snapshots.strip()
    if text in {"log", "epoch"}:
        return text
    if every := re.fullmatch(r"every\s*:?\s*0*([1-9]\d*)", text):
        return f"every: {every[1]}"
    if re.fullmatch(r"\d+", text):
        return _checked_number(int(text))
    if re.fullmatch(r"\d+(\s*,\s*\d+)+\s*,?|\d+\s*,", text):
        return _checked_steps(sorted({int(step) for step in re.findall(r"\d+", text)}))
    raise InputError(f"snapshots {snapshots!r} requested; {EXPECTED}")


def _checked_number(number: int) -> int:
    if number < 2:
        hint = f" (for a snapshot at step {number}: [{number}] in a plan or in Python, `{number},` on the command line)"
        raise InputError(
            f"{number} snapshots requested; expected at least 2, the start and the end{hint if number >= 0 else ''}"
        )
    return number


def _checked_steps(steps: list[int]) -> list[int]:
    if steps and steps[0] < 0:
        raise InputError(f"a snapshot at step {steps[0]} requested; steps count from 0")
    return steps


def _spread_steps(number: int, total: int) -> list[int]:
    """Step 0 and number - 1 further steps up to the last, as evenly spaced in the logarithm as whole numbers allow."""
    if number > total:
        return list(range(total + 1))
    steps = [0, *np.rint(np.geomspace(1, total, number - 1)).astype(int).tolist()]
    steps[-1] = total
    for i in range(1, number):
        steps[i] = max(steps[i], steps[i - 1] + 1)
    for i in range(number - 2, 0, -1):
        steps[i] = min(steps[i], steps[i + 1] - 1)
    steps[-1] = total
    return steps

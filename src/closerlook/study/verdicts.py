"""Verdicts on a finding: the answers of fine-tuning runs, and the rule that all findings share.

RULE says the rule in words. The sentence of a finding gives the 95% confidence interval (Clopper and Pearson) of the
share of runs that support it; with few runs it is wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from closerlook.study.runs import Run

Verdict = Literal["holds", "fails", "mixed", "cannot tell"]

MINIMUM = 3
"""With fewer answers than this, there is no verdict."""

SHARE = 0.75
"""A finding holds if at least this share of the answers supports it, and fails if this share contradicts it."""

RULE = (
    "If at least three quarters of the runs with an answer support the finding, it holds; if at most one quarter do, "
    f"it fails; otherwise the verdict is mixed. With fewer than {MINIMUM} such runs: cannot tell."
)


@dataclass(frozen=True)
class Answer:
    """The answer of one fine-tuning run: it supports the finding (True), contradicts it (False), or neither (None).

    reason: why. signs: single facts that the sentence of the finding counts.
    """

    run: Run
    holds: bool | None
    reason: str
    signs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Finding:
    """A finding with its verdict: how many runs support it, contradict it or have no answer; a sentence; the rule."""

    number: int
    title: str
    verdict: Verdict
    n_for: int
    n_against: int
    n_no_answer: int
    sentence: str
    rule: str
    answers: tuple[Answer, ...] = ()


def verdict_of(answers: Sequence[Answer]) -> Verdict:
    """The verdict by the rule that all findings share.

    >>> run = Run("bert-tiny", "pos", 0, "pos")
    >>> verdict_of([Answer(run, True, "")] * 3 + [Answer(run, False, "")])
    'holds'
    """
    n_for, n_against = count_answers(answers)
    known = n_for + n_against
    if known < MINIMUM:
        return "cannot tell"
    share = n_for / known
    return "holds" if share >= SHARE else "fails" if share <= 1 - SHARE else "mixed"


def count_answers(answers: Sequence[Answer]) -> tuple[int, int]:
    """The number of answers that support a finding, and of those that contradict it."""
    return sum(answer.holds is True for answer in answers), sum(answer.holds is False for answer in answers)


def share_interval(n_for: int, known: int) -> tuple[float, float]:
    """The 95% confidence interval of Clopper and Pearson for a share.

    >>> [round(bound, 3) for bound in share_interval(3, 3)]
    [0.292, 1.0]
    """
    from scipy.stats import beta

    low = float(beta.ppf(0.025, n_for, known - n_for + 1)) if n_for else 0.0
    high = float(beta.ppf(0.975, n_for + 1, known - n_for)) if n_for < known else 1.0
    return low, high


def make_finding(
    number: int, title: str, answers: Sequence[Answer], *, result: str, rule: str, no_answer: str
) -> Finding:
    """A finding with its verdict and its sentence. no_answer: the reason that is given if no run has an answer."""
    n_for, n_against = count_answers(answers)
    known = n_for + n_against
    if not known:
        sentence = f"Cannot tell: {no_answer}."
    else:
        low, high = share_interval(n_for, known)
        few = f" A verdict needs at least {MINIMUM} runs with an answer." if known < MINIMUM else ""
        sentence = (
            f"{result}. {count_runs(n_for)} support{'s' if n_for == 1 else ''} the finding, {n_against} "
            f"contradict{'s' if n_against == 1 else ''} it (95% confidence interval of the share of runs that "
            f"support it: {low:.0%} to {high:.0%}).{few}"
        )
    return Finding(
        number=number,
        title=title,
        verdict=verdict_of(answers),
        n_for=n_for,
        n_against=n_against,
        n_no_answer=len(answers) - known,
        sentence=sentence,
        rule=f"{rule} {RULE}",
        answers=tuple(answers),
    )


def count_runs(n: int) -> str:
    """A number of runs: '1 fine-tuning run', '2 fine-tuning runs'."""
    return f"{n} fine-tuning run{'' if n == 1 else 's'}"

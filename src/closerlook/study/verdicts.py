"""Verdicts on a finding: the answers of pairs of encoder and task, and the rule that all findings share.

RULE says the rule in words. With a verdict come the median effect over pairs, with a 95% interval from a bootstrap over
encoders and over tasks, and the p-value of a sign test over pairs.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from closerlook.geometry.p_values import SIGNIFICANCE
from closerlook.notebook import html
from closerlook.study.noise import Effect
from closerlook.study.runs import Pair

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["holds", "fails", "mixed", "within noise", "cannot tell"]
Support = Literal["for", "against", "within noise", "no answer"]

MINIMUM = 5
"""With fewer pairs than this, there is no verdict: a one-sided sign test of four pairs cannot give p ≤ 0.05."""

SHARE = 0.75
"""A finding holds if at least this share of the pairs supports it, and fails if this share contradicts it."""

DRAWS = 2000
"""The number of bootstrap draws for the interval of the median effect."""

RULE = (
    "If at least three quarters of the pairs with an answer support the finding, and a one-sided sign test of the "
    f"pairs that support it against those that contradict it gives p ≤ {SIGNIFICANCE}, the finding holds; if the same "
    "is true of the pairs that contradict it, it fails. Pairs within noise count as pairs with an answer, but not in "
    "the sign test. Otherwise the verdict is within noise if at least half of the pairs are, and mixed if fewer are. "
    f"With fewer than {MINIMUM} pairs with an answer: cannot tell."
)


@dataclass(frozen=True)
class Answer:
    """The answer of one pair of encoder and task, over all its seeds.

    reason: why. effect: the change that decides, with its margin. signs: single facts that the sentence of the finding
    counts.

    >>> answer = Answer(Pair("bert-tiny", "toy-pos", "toy-pos"), "for", "each label is one cluster after fine-tuning")
    >>> answer.pair.encoder, answer.support
    ('bert-tiny', 'for')
    """

    pair: Pair
    support: Support
    reason: str
    effect: Effect | None = None
    signs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class MedianEffect:
    """The median of an effect over pairs with its 95% interval; low and high are None with fewer than MINIMUM pairs."""

    value: float
    low: float | None
    high: float | None
    unit: str

    def __str__(self) -> str:
        """The median, its interval and its unit: '−0.12 [−0.20, −0.05]'."""
        digits = 1 if self.unit else 3
        numbers = [
            f"{number:+.{digits}f}".replace("-", "−")
            for number in (self.value, self.low, self.high)
            if number is not None
        ]
        interval = f" [{', '.join(numbers[1:])}]" if len(numbers) == 3 else ""
        return f"{numbers[0]}{interval}" + (f" {self.unit}" if self.unit else "")


@dataclass(frozen=True)
class Finding:
    """A finding with its verdict.

    n_for, n_against, n_within_noise, n_no_answer: the number of pairs with each answer. effect: its median over pairs.
    p_value: of the one-sided sign test that more pairs support the finding than contradict it; None if there are too
    few pairs for a small p-value.

    >>> pairs = [Pair(encoder, task, task) for encoder in ("bert-tiny", "bert-mini") for task in ("pos", "dep", "trec")]
    >>> answers = [Answer(pair, "for", "each label is one cluster") for pair in pairs]
    >>> make_finding(2, "Labels become clusters", answers, result="Yes", rule="", unit="", no_answer="not measured")
    Finding(2. Labels become clusters: holds, 6 of 6 pairs support it)
    """

    number: int
    title: str
    verdict: Verdict
    n_for: int
    n_against: int
    n_within_noise: int
    n_no_answer: int
    sentence: str
    rule: str
    effect: MedianEffect | None
    p_value: float | None
    answers: tuple[Answer, ...] = ()

    def __repr__(self) -> str:
        return f"Finding({self.number}. {self.title}: {self.verdict}, {self.n_for} of {self.n_pairs} pairs support it)"

    def to_frame(self) -> pd.DataFrame:
        """One row for each pair of encoder and task: its answer, the change that decides, its margin, and why."""
        import pandas as pd

        rows = []
        for answer in self.answers:
            effect = (None, None) if answer.effect is None else (answer.effect.value, answer.effect.margin)
            pair = answer.pair
            rows.append((pair.encoder, pair.tuned_on, pair.task, answer.support, *effect, answer.reason))
        columns = ["encoder", "tuned_on", "task", "support", "effect", "margin", "reason"]
        return pd.DataFrame(rows, columns=columns).astype({"effect": "float64", "margin": "float64"})

    def _repr_html_(self) -> str:
        return html(f"{self.number}. {self.title}: {self.verdict}", self.sentence, self.to_frame())

    @property
    def n_pairs(self) -> int:
        """The number of pairs, with or without an answer."""
        return self.n_for + self.n_against + self.n_within_noise + self.n_no_answer


def verdict_of(n_for: int, n_against: int, n_within_noise: int) -> Verdict:
    """The verdict by the rule that all findings share.

    >>> verdict_of(5, 0, 1), verdict_of(4, 0, 1), verdict_of(0, 0, 9), verdict_of(4, 0, 0)
    ('holds', 'mixed', 'within noise', 'cannot tell')
    """
    known = n_for + n_against + n_within_noise
    if known < MINIMUM:
        return "cannot tell"
    if n_for >= SHARE * known and sign_test(n_for, n_against) <= SIGNIFICANCE:
        return "holds"
    if n_against >= SHARE * known and sign_test(n_against, n_for) <= SIGNIFICANCE:
        return "fails"
    return "within noise" if 2 * n_within_noise >= known else "mixed"


def sign_test(n_for: int, n_against: int) -> float:
    """The probability of at least n_for heads in n_for + n_against tosses of a fair coin.

    >>> sign_test(5, 0), sign_test(6, 1)
    (0.03125, 0.0625)
    """
    from scipy.stats import binom

    return float(binom.sf(n_for - 1, n_for + n_against, 0.5))


def count(answers: Sequence[Answer], support: Support) -> int:
    """The number of pairs with this answer."""
    return sum(answer.support == support for answer in answers)


def with_answer(answers: Sequence[Answer]) -> list[Answer]:
    """The answers of pairs that support a finding, contradict it, or are within noise."""
    return [answer for answer in answers if answer.support != "no answer"]


def make_finding(
    number: int, title: str, answers: Sequence[Answer], *, result: str, rule: str, unit: str, no_answer: str
) -> Finding:
    """A finding with its verdict and its sentence.

    unit: of the effect. no_answer: the reason that is given if no pair has an answer.
    """
    n_for, n_against, within = (count(answers, support) for support in ("for", "against", "within noise"))
    known = n_for + n_against + within
    effect = median_effect(with_answer(answers), unit)
    p_value = sign_test(n_for, n_against) if n_for + n_against >= MINIMUM else None
    sentence = f"Cannot tell: {no_answer}."
    if known:
        few = f" A verdict needs at least {MINIMUM} pairs with an answer." if known < MINIMUM else ""
        test = "" if p_value is None else f"; sign test: p = {p_value:.2g}"
        shown = "" if effect is None else f" Median change over pairs: {effect}{_interval_note(effect)}{test}."
        sentence = (
            f"{result}. {count_pairs(n_for)} support{'s' if n_for == 1 else ''} the finding, {n_against} "
            f"contradict{'s' if n_against == 1 else ''} it, {within} {'is' if within == 1 else 'are'} within "
            f"noise.{shown}{few}"
        )
    return Finding(
        number=number,
        title=title,
        verdict=verdict_of(n_for, n_against, within),
        n_for=n_for,
        n_against=n_against,
        n_within_noise=within,
        n_no_answer=len(answers) - known,
        sentence=sentence,
        rule=f"{rule} {RULE}",
        effect=effect,
        p_value=p_value,
        answers=tuple(answers),
    )


def _interval_note(effect: MedianEffect) -> str:
    return "" if effect.low is None else " (95% interval from a bootstrap over encoders and tasks)"


def median_effect(answers: Sequence[Answer], unit: str) -> MedianEffect | None:
    """The median effect over pairs, with an interval from bootstrap draws of encoders and of tasks.

    Pairs that share an encoder or a task are not independent, so encoders and tasks are drawn, not pairs (Owen, 2007).
    """
    known = {answer.pair: answer.effect.value for answer in answers if answer.effect is not None}
    if not known:
        return None
    values = np.array(list(known.values()))
    if len(values) < MINIMUM:
        return MedianEffect(float(np.median(values)), None, None, unit)
    weights = np.ones((DRAWS, len(values)), dtype=np.int64)
    rng = np.random.default_rng(0)
    for names in ([pair.encoder for pair in known], [f"{pair.tuned_on}\n{pair.task}" for pair in known]):
        levels, codes = np.unique(names, return_inverse=True)
        weights *= rng.multinomial(len(levels), [1 / len(levels)] * len(levels), size=DRAWS)[:, codes]
    medians = [float(np.median(np.repeat(values, row))) for row in weights if row.any()]
    low, high = np.quantile(medians, [0.025, 0.975]).tolist()
    return MedianEffect(statistics.median(values.tolist()), low, high, unit)


def count_pairs(n: int) -> str:
    """A number of pairs: '1 pair', '2 pairs'."""
    return f"{n} pair{'' if n == 1 else 's'}"

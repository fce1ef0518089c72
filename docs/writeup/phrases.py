"""Numbers, counts and names as text, for the templates of the write-up."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from closerlook.report.published import paper_name
from closerlook.report.tables import Column, show_number

SHORT = {"all-MiniLM-L6-v2": "MiniLM"}
"""Encoders that the text calls by a shorter name."""


LATER = ("bert-medium", "bert-base")
"""The encoders of this project that saw fewer word pieces in pretraining than the others; the text says so."""

MARK = "†"
"""Follows the names of LATER in tables and lists."""


class StaleTextError(Exception):
    """A sentence of a template is no longer true, or needs a value that the kept table does not have."""


def require(condition: object, statement: str) -> str:
    """An empty text; an error if a statement of the text is no longer true."""
    if not condition:
        raise StaleTextError(f"the kept table contradicts the text: {statement}; change the sentence in the template")
    return ""


def fixed(value: float, digits: int = 2) -> str:
    """A number with a fixed number of decimals: '1,234.50', '−0.20'."""
    return show_number(round(value) if digits == 0 else value, Column("", digits=digits))


def counted(value: float) -> str:
    """A mean of counts, without decimals if it is whole."""
    return fixed(value, 0 if float(value).is_integer() else 1)


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign: '+1.50'."""
    return show_number(round(value) if digits == 0 else value, Column("", digits=digits, signed=True))


def percent(value: float, digits: int = 0) -> str:
    """A share in percent: '12%'."""
    return f"{fixed(100 * value, digits)}%"


def span(values: Iterable[float], digits: int = 2) -> str:
    """The lowest and the highest value: '0.40 to 0.91'; one number if both are shown the same."""
    known = sorted(values)
    if not known:
        raise StaleTextError("a range of values is empty: the kept table does not have them")
    low, high = fixed(known[0], digits), fixed(known[-1], digits)
    return low if low == high else f"{low} to {high}"


def out_of(part: Sequence[object], whole: Sequence[object], noun: str = "") -> str:
    """How many of a list are in its part: 'all 30 pairs', '17 of 30 pairs', 'none of 30 pairs'."""
    n, of = len(part), len(whole)
    count = f"all {of}" if n == of and of else f"{n or 'none'} of {of}"
    return f"{count} {noun}".strip()


def which(items: Iterable[Any], attribute: str) -> list[Any]:
    """The items for which an attribute is true."""
    return [item for item in items if getattr(item, attribute)]


def how_many(items: Sequence[Any], attribute: str, noun: str = "") -> str:
    """For how many items an attribute is true: 'all 30 pairs', '17 of 30 pairs'."""
    return out_of(which(items, attribute), items, noun)


def points(shares: Iterable[float]) -> list[float]:
    """Shares in percentage points."""
    return [100 * share for share in shares]


def percents(values: Iterable[float], digits: int = 0) -> str:
    """The lowest and the highest share in percent: '26% to 42%'."""
    shown = span([100 * value for value in values], digits)
    return shown.replace(" to ", "% to ") + "%"


def extreme(values: Iterable[float]) -> float:
    """The value that is farthest from 0."""
    return max(values, key=abs)


def listed(names: Iterable[object], joined: str = "and") -> str:
    """Names as a list in a sentence: 'a, b and c'."""
    known = [str(name) for name in names]
    if len(known) < 2:
        return "".join(known)
    return f"{', '.join(known[:-1])} {joined} {known[-1]}"


def short(encoder: str) -> str:
    """The name of an encoder in tables and lists, with the mark of those that saw fewer word pieces."""
    base = encoder.partition(" (")[0]
    return encoder.replace(base, SHORT.get(base, base) + MARK * (paper_name(base) in LATER))


def named(items: Iterable[Any], tasks: Sequence[str] = ()) -> str:
    """Pairs of encoder and task as names: 'bert-tiny (pos, dep) and MiniLM (ps-role)'.

    items: changes, comparisons or answers. tasks: all tasks; an encoder that has all of them is named alone.
    """
    by_encoder: dict[str, list[str]] = {}
    for item in items:
        pair = getattr(item, "pair", item)
        own = getattr(pair, "tuned_on", pair.task) == pair.task
        known = by_encoder.setdefault(pair.encoder, [])
        name = pair.task if own else f"{pair.tuned_on} → {pair.task}"
        if name not in known:
            known.append(name)
    for known in by_encoder.values():
        known.sort(key=lambda name: tasks.index(name) if name in tasks else len(tasks))
    if not by_encoder:
        return "no pair"
    return listed(
        short(encoder) if tasks and set(known) == set(tasks) else f"{short(encoder)} ({', '.join(known)})"
        for encoder, known in by_encoder.items()
    )


def trend(values: Sequence[float]) -> str:
    """How a value goes from the smallest encoder to the largest, as a verb."""
    steps = [second - first for first, second in itertools.pairwise(values)]
    verb = "rises" if values[-1] > values[0] else "falls"
    is_steady = all(step > 0 for step in steps) or all(step < 0 for step in steps)
    return f"{verb} from each size to the next" if is_steady else f"{verb}, though not from each size to the next"


WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def capital(text: str) -> str:
    """A text with a capital first letter."""
    return text[:1].upper() + text[1:]


def uncapital(text: str) -> str:
    """A text with a small first letter."""
    return text[:1].lower() + text[1:]


def in_words(n: int) -> str:
    """A small number as a word."""
    return WORDS[n] if 0 <= n < len(WORDS) else str(n)

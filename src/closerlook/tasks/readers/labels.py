"""Labels of a whole task: numbers as labels, bins of scores, several labels in one name, texts that disagree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.tasks.readers.source import SHOWN, short_repr
from closerlook.tasks.readers.values import SEPARATORS
from closerlook.tasks.task import Annotated
from closerlook.texts import Text, joined

Splits = dict[str, list[Annotated]]

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d{1,2}")
MANY = 20
"""More whole numbers than this, each with fewer than two examples on average, are scores and not classes."""

EACH = "each"
"""The value of the option `bins` that makes every number a label."""


def name_numbers(splits: Splits, bins: str | None) -> tuple[Splits, list[str]]:
    """The splits with labels that are numbers written in one way, or divided into bins; and notes.

    bins: None, a number of bins with about equally many examples of train, boundaries such as '1.5,3', or 'each'.
    Without it, numbers that look like scores are refused.
    """
    labels = sorted({label for texts in splits.values() for _, targets in texts for _, label in targets})
    numbers = {label: number for label in labels if (number := as_number(label)) is not None}
    if not numbers or len(numbers) < len(labels):
        if bins is not None:
            other = next((label for label in labels if label not in numbers), "")
            raise InputError(f"bins={bins} given, but label {short_repr(other)} is not a number; omit bins")
        return splits, []
    if bins is None:
        _refuse_scores(splits, numbers)
    names = _bin_names(splits, numbers, bins) if bins not in {None, EACH} else _number_names(numbers)
    changed = [label for label in labels if names[label] != label]
    if not changed:
        return splits, []
    if bins in {None, EACH}:
        notes = [f"labels {_quoted(changed)} are read as {_quoted([names[label] for label in changed])}"]
    else:
        notes = [f"{len(labels)} different numbers are divided into labels {_quoted(sorted(set(names.values())))}"]
    return _renamed(splits, names.__getitem__), notes


def as_number(label: str) -> float | None:
    """The number that a label is; None if it is none. A comma before one or two last digits is a decimal point."""
    if DECIMAL_COMMA.fullmatch(label):
        label = label.replace(",", ".")
    return float(label) if NUMBER.fullmatch(label) else None


def _refuse_scores(splits: Splits, numbers: Mapping[str, float]) -> None:
    examples = sum(len(targets) for texts in splits.values() for _, targets in texts)
    fractions = [label for label, number in numbers.items() if not number.is_integer()]
    if not fractions and (len(numbers) <= MANY or 2 * len(numbers) <= examples):
        return
    shown = ", ".join((fractions or list(numbers))[:SHOWN])
    raise InputError(
        f"the labels are numbers such as {shown} ({len(numbers)} different ones in {examples} examples), which look "
        f"like scores; expected classes: bins=3 divides them into three classes, bins={EACH} makes every number a class"
    )


def _number_names(numbers: Mapping[str, float]) -> dict[str, str]:
    """Each label as it is, except that whole numbers with zeros after the point lose them, as 1.0 for 1."""
    return {
        label: str(int(number)) if number.is_integer() and not label.lstrip("+-").isdigit() else label
        for label, number in numbers.items()
    }


def _bin_names(splits: Splits, numbers: Mapping[str, float], bins: str | None) -> dict[str, str]:
    reference = splits.get("train") or [text for texts in splits.values() for text in texts]
    values = np.array([numbers[label] for _, targets in reference for _, label in targets])
    edges = _edges(values, str(bins))
    names = [f"below {edges[0]:g}", *(f"{a:g} to {b:g}" for a, b in pairwise(edges))]
    names.append(f"{edges[-1]:g} and above")
    return {label: names[int(np.searchsorted(edges, number, side="right"))] for label, number in numbers.items()}


def _edges(values: NDArray[np.float64], bins: str) -> list[float]:
    """The boundaries between bins, ascending."""
    if bins.isdigit() and int(bins) >= 2:
        edges = np.quantile(values, np.arange(1, int(bins)) / int(bins))
        edges = edges[edges > values.min()]
        if not len(edges):
            raise InputError(f"bins={bins} given, but nearly all numbers are {values.min():g}; give boundaries instead")
    else:
        try:
            edges = np.array([float(edge) for edge in bins.split(",")])
        except ValueError:
            edges = np.array([])
        if bins.isdigit() or not len(edges) or not np.isfinite(edges).all():
            raise InputError(f"bins={bins} given; expected a number of bins from 2, boundaries such as 1.5,3 or {EACH}")
    return sorted({float(f"{edge:g}") for edge in edges})


def _quoted(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return ", ".join(f"{label!r}" for label in labels[:SHOWN]) + more


def _renamed(splits: Splits, name: Callable[[str], str]) -> Splits:
    return {
        split: [(text, [(positions, name(label)) for positions, label in targets]) for text, targets in texts]
        for split, texts in splits.items()
    }


def note_combinations(splits: Splits) -> list[str]:
    """A note if some labels seem to be several labels in one, such as 'a|b' where 'a' and 'b' are labels too."""
    labels = {label for texts in splits.values() for _, targets in texts for _, label in targets}
    for mark in SEPARATORS:
        combined = sorted(label for label in labels if mark in label)
        if combined and all(part.strip() in labels for label in combined for part in label.split(mark)):
            first = combined[0].split(mark)[0].strip()
            return [
                f"labels such as {_quoted(combined)} look like several labels in one; has={first} makes a task of "
                f"texts that have the label {first} and texts that do not"
            ]
    return []


def note_disagreements(splits: Splits, lines: Mapping[str, Sequence[int]], number_name: str) -> list[str]:
    """A note if the same example occurs with different labels, so that no space can separate these labels fully.

    lines: for each split, the line of each text.
    """
    copies = Counter(text for texts in splits.values() for text, _ in texts)
    examples = 0
    seen: dict[tuple[Text, tuple[int, ...]], dict[str, str]] = {}
    for split, texts in splits.items():
        where = f"{split} {number_name}" if len(splits) > 1 else number_name
        for (text, targets), line in zip(texts, lines[split], strict=True):
            places = [tuple(positions) for positions, _ in targets]
            if copies[text] == 1 and len(set(places)) == len(places):  # each example once: nothing to compare
                examples += len(places)
                continue
            for place, (_, label) in zip(places, targets, strict=True):
                seen.setdefault((text, place), {}).setdefault(label, f"{label} in {where} {line}")
    examples += len(seen)
    different = [(example, labels) for example, labels in seen.items() if len(labels) > 1]
    if not different:
        return []
    shown = "; ".join(
        f"{short_repr(joined(text))}{f' word {places[0]}' if places else ''}: {', '.join(labels.values())}"
        for (text, places), labels in different[: SHOWN - 2]
    )
    more = f"; and {len(different) - SHOWN + 2} more" if len(different) > SHOWN - 2 else ""
    return [f"{len(different)} of {examples} different examples occur with more than one label ({shown}{more})"]

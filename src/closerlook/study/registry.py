"""The measures of a study: the one list that plan, cells, table, page, command line, archive and docs read."""

from __future__ import annotations

import re

from closerlook.errors import InputError
from closerlook.study.kinds import MEASURES
from closerlook.study.measure import Archive, Measure, Rows

__all__ = ["COMPARISONS", "MEASURES", "Archive", "Measure", "Rows", "find", "markdown_table", "measure", "split_name"]

COMPARISONS = re.compile(r"(?P<name>\w+?)_(?P<comparison>train_\w+|original|seed|random|encoder)")
"""The name in the table of a measure that compares two spaces: the measure's own name, then what was compared."""


def split_name(name: str) -> tuple[str, str]:
    """A measure's own name, and what was compared; the second is empty for a measure of one space.

    >>> split_name("similarity_p_value_train_test"), split_name("accuracy")
    (('similarity_p_value', 'train_test'), ('accuracy', ''))
    """
    if name in MEASURES:
        return name, ""
    match = COMPARISONS.fullmatch(name)
    if match and match["name"] in MEASURES and MEASURES[match["name"]].compares:
        return match["name"], match["comparison"]
    return name, ""


def find(name: str) -> Measure | None:
    """The measure with that name in the table; None if there is none."""
    return MEASURES.get(split_name(name)[0])


def measure(name: str) -> Measure:
    """The measure with that name in the table; what was compared may follow its own name.

    >>> measure("cka_original").title, measure("accuracy").on_test
    ('CKA', True)
    """
    known = find(name)
    if known is None:
        raise InputError(f"measure {name!r} is unknown; expected one of closerlook.study.registry.MEASURES")
    return known


def markdown_table() -> str:
    """All measures as a Markdown table; docs/study.md contains it.

    `python -c "from closerlook.study.registry import markdown_table; print(markdown_table())"` prints it.
    """
    lines = ["| measure | title | meaning |", "|---|---|---|"]
    for entry in MEASURES.values():
        compared = "_…" if entry.compares and not entry.training_only else ""
        lines.append(f"| `{entry.name}{compared}` | {entry.title} | {entry.meaning} |")
    return "\n".join(lines) + "\n"

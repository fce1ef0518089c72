"""How the word tables are written: words with spaces between, words in slashes, rows that run on."""

from __future__ import annotations


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text.

    >>> words_of("man woman child")
    ('man', 'woman', 'child')
    """
    return tuple(text.split())


def slashed(text: str) -> tuple[tuple[str, ...], ...]:
    """The words of a text, each split at its slashes.

    >>> slashed("old/older good/better")
    (('old', 'older'), ('good', 'better'))
    """
    return tuple(tuple(word.split("/")) for word in text.split())


def rows_of(table: str) -> list[str]:
    """The rows of a table, each with its indented continuation lines."""
    return [" ".join(row.split()) for row in table.replace("\n  ", " ").strip().split("\n")]

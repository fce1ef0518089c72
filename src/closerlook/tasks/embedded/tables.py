"""Parse the word tables: words separated by spaces or slashes, and rows with continuation lines."""

from __future__ import annotations


def split_words(text: str) -> tuple[str, ...]:
    """The words of a text.

    >>> split_words("man woman child")
    ('man', 'woman', 'child')
    """
    return tuple(text.split())


def split_slashes(text: str) -> tuple[tuple[str, ...], ...]:
    """The words of a text, each split at its slashes.

    >>> split_slashes("old/older good/better")
    (('old', 'older'), ('good', 'better'))
    """
    return tuple(tuple(word.split("/")) for word in text.split())


def split_rows(table: str) -> list[str]:
    """The rows of a table, each with its indented continuation lines."""
    return [" ".join(row.split()) for row in table.replace("\n  ", " ").strip().split("\n")]

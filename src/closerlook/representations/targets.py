"""Locate the examples of a task among the subwords of its texts, for extraction and for fine-tuning."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closerlook.encoders.alignment import (
    Alignment,
    Ints,
    Pooling,
    cls_pooling,
    last_pooling,
    mean_pooling,
    range_pooling,
)
from closerlook.encoders.pooling import SentencePool, parse_sentence_pool
from closerlook.errors import InputError
from closerlook.tasks.task import VECTORS_PER_EXAMPLE, Split, Unit
from closerlook.texts import joined

SHORTEST = 1e-12
"""A vector shorter than this is divided by this number when it is normalized."""


def locate_examples(
    unit: Unit, split: Split, alignment: Alignment, pool: str, *, examples: Ints, text: Ints
) -> Pooling:
    """How to pool the hidden states of the examples, `VECTORS_PER_EXAMPLE[unit]` vectors for each, in order.

    examples: (k,) rows of the split. text: (k,) for each of them, the number of its text in the alignment. pool: as
    `choose_pool` returns it; whoever computes the vectors also normalizes them if it says so (`is_normalized`).
    """
    if unit == "sentence":
        return _locate_sentences(split, alignment, sentence_pool(pool), examples, text)
    words = alignment.text_words[text][:, None] + split.positions[examples]
    head, tail = (words[:, 0], words[:, 1] - 1) if unit == "span" else (words.ravel(), words.ravel())
    first, stop = alignment.word_first[head], alignment.word_stop[tail]
    _refuse_lost(split, examples, first >= stop, VECTORS_PER_EXAMPLE[unit])
    return range_pooling(alignment, first, stop, pool)


def sentence_pool(pool: str) -> SentencePool:
    """The pooling of that name; ValueError if `choose_pool` would refuse it."""
    parsed = parse_sentence_pool(pool)
    if parsed is None:
        raise ValueError(f"{pool!r} is not a resolved pooling of sentences")
    return parsed


def is_normalized(unit: Unit, pool: str) -> bool:
    """Whether this pooling scales each vector to length 1."""
    return unit == "sentence" and sentence_pool(pool).normalized


def normalize(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors (n, d), each scaled to length 1; a vector of zeros stays as it is."""
    length = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    scaled: NDArray[np.float32] = (X / np.maximum(length, SHORTEST)[:, None]).astype(np.float32)
    return scaled


def _locate_sentences(split: Split, alignment: Alignment, pool: SentencePool, examples: Ints, text: Ints) -> Pooling:
    if pool.kind == "cls":
        return cls_pooling(alignment, text)
    if pool.kind == "last":
        windows = np.searchsorted(alignment.window_text, text, side="right") - 1
        _refuse_lost(split, examples, np.array([len(alignment.windows[i]) == 0 for i in windows], dtype=bool))
        return last_pooling(alignment, text)
    _refuse_lost(split, examples, alignment.text_tokens[text] >= alignment.text_tokens[text + 1])
    return mean_pooling(alignment, text, special=pool.special, weighted=pool.kind == "weighted_mean")


def _refuse_lost(split: Split, examples: Ints, is_lost: NDArray[np.bool_], vectors_each: int = 1) -> None:
    """Raise InputError for the first vector without subwords. is_lost: (k · vectors_each,)."""
    lost = np.flatnonzero(is_lost)
    if len(lost):
        _refuse(split, int(examples[lost[0] // vectors_each]))


def _refuse(split: Split, example: int) -> None:
    number = int(split.sentence[example])
    text = joined(split.texts[number])
    where = f"words {split.positions[example].tolist()} of " if split.positions.shape[1] else ""
    raise InputError(
        f"the tokenizer makes no subword of {where}{split.name} sentence {number + 1} ({text[:60]!a}), and it has no "
        "unknown token; remove that example or clean its characters"
    )

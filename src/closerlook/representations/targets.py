"""Locate the examples of a task among the subwords of its texts, for extraction and for fine-tuning."""

from __future__ import annotations

import numpy as np

from closerlook.encoders.alignment import Alignment, Ints, Pool, Pooling, cls_pooling, range_pooling
from closerlook.errors import InputError
from closerlook.tasks.task import VECTORS_PER_EXAMPLE, Split, Unit
from closerlook.texts import joined


def locate_examples(
    unit: Unit, split: Split, alignment: Alignment, pool: Pool, *, examples: Ints, text: Ints
) -> Pooling:
    """How to pool the hidden states of the examples, `VECTORS_PER_EXAMPLE[unit]` vectors for each, in order.

    examples: (k,) rows of the split. text: (k,) for each of them, the number of its text in the alignment.
    """
    if pool == "cls":
        return cls_pooling(alignment, text)
    if unit == "sentence":
        first, stop = alignment.text_tokens[text], alignment.text_tokens[text + 1]
    else:
        words = alignment.text_words[text][:, None] + split.positions[examples]
        head, tail = (words[:, 0], words[:, 1] - 1) if unit == "span" else (words.ravel(), words.ravel())
        first, stop = alignment.word_first[head], alignment.word_stop[tail]
    lost = np.flatnonzero(first >= stop)
    if len(lost):
        _refuse(split, int(examples[lost[0] // VECTORS_PER_EXAMPLE[unit]]))
    return range_pooling(alignment, first, stop, pool)


def _refuse(split: Split, example: int) -> None:
    number = int(split.sentence[example])
    text = joined(split.texts[number])
    where = f"words {split.positions[example].tolist()} of " if split.positions.shape[1] else ""
    raise InputError(
        f"the tokenizer makes no subword of {where}{split.name} sentence {number + 1} ({text[:60]!a}), and it has no "
        "unknown token; remove that example or clean its characters"
    )

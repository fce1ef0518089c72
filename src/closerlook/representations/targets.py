"""A task's examples, found among an encoder's subwords: where extraction and fine-tuning take their vectors from."""

from __future__ import annotations

import numpy as np

from closerlook.encoders.alignment import Aligned, Ints, Pool, Slots, cls_slots, range_slots
from closerlook.errors import InputError
from closerlook.tasks.task import Split, Unit

VECTORS_PER_EXAMPLE = {"token": 1, "pair": 2, "span": 1, "sentence": 1}
"""How many pooled vectors make up one example; a pair is its head's, then its dependent's."""


def locate_examples(unit: Unit, split: Split, aligned: Aligned, pool: Pool, *, examples: Ints, text: Ints) -> Slots:
    """The recipe of the examples' vectors, `VECTORS_PER_EXAMPLE[unit]` slots each, in order.

    examples: (k,) rows of the split. text: (k,) which of the aligned texts each stands in.
    """
    if pool == "cls":
        return cls_slots(aligned, text)
    if unit == "sentence":
        first, stop = aligned.text_tokens[text], aligned.text_tokens[text + 1]
    else:
        words = aligned.text_words[text][:, None] + split.positions[examples]
        head, tail = (words[:, 0], words[:, 1] - 1) if unit == "span" else (words.ravel(), words.ravel())
        first, stop = aligned.word_first[head], aligned.word_stop[tail]
    lost = np.flatnonzero(first >= stop)
    if len(lost):
        _refuse(split, int(examples[lost[0] // VECTORS_PER_EXAMPLE[unit]]))
    return range_slots(aligned, first, stop, pool)


def _refuse(split: Split, example: int) -> None:
    number = int(split.sentence[example])
    text = split.texts[number]
    shown = text if isinstance(text, str) else " ".join(text)
    where = f"words {split.positions[example].tolist()} of " if split.positions.shape[1] else ""
    raise InputError(
        f"the tokenizer makes no subword of {where}{split.name} sentence {number + 1} ({shown[:60]!a}), and it has no "
        "unknown token; leave that example out or clean its characters"
    )

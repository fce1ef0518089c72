"""Words and spans -> subwords -> one vector each; the same differentiable code serves extraction and fine-tuning.

A text of words is joined by single spaces and tokenized as running text, as the encoder met it in pretraining, and
each word takes the subwords whose characters overlap its own. That one rule serves word-piece, byte-level and
SentencePiece tokenizers alike; feeding words one by one would drop the leading space that byte-level ones need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import embedding_bag

Pool = Literal["mean", "first", "last", "cls"]
Text = str | tuple[str, ...]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Aligned:
    """Tokenized texts, and where each word's subwords are in them.

    windows: token ids of each model input, special tokens included; a text longer than the window has several.
    window_text: (windows,) the text each window belongs to.
    cls: (windows,) column of the classification token, -1 where there is none.
    token_window, token_column: (tokens,) where each subword's vector stands.
    text_tokens, text_words: (texts + 1,) first subword and first word of each text.
    word_first, word_stop: (words,) the range of subwords of each word; empty if the tokenizer made none of it.
    """

    windows: list[list[int]]
    window_text: Ints
    cls: Ints
    token_window: Ints
    token_column: Ints
    text_tokens: Ints
    text_words: Ints
    word_first: Ints
    word_stop: Ints


@dataclass(frozen=True)
class Slots:
    """The recipe of n pooled vectors: the hidden state at (window, column) goes into `slot` with `weight`."""

    n: int
    window: Ints
    column: Ints
    slot: Ints
    weight: NDArray[np.float32]


def align(tokenizer: Any, texts: Sequence[Text], window: int) -> Aligned:
    """Tokenized texts with every word's subwords located.

    A text longer than the window is read in windows that share a quarter of their length, and each subword is taken
    from the window in which it stands farthest from an edge. A word that the tokenizer turns into nothing (control
    characters, say) is replaced by the unknown token, so that it keeps a place; without one its range stays empty.
    """
    words = [(text,) if isinstance(text, str) else text for text in texts]
    aligned = _align(tokenizer, words, window)
    lost = np.flatnonzero(aligned.word_first >= aligned.word_stop)
    if len(lost) == 0 or tokenizer.unk_token is None:
        return aligned
    text_of_word = np.searchsorted(aligned.text_words, lost, side="right") - 1
    for word, text in zip(lost, text_of_word, strict=True):
        place = word - aligned.text_words[text]
        words[text] = (*words[text][:place], tokenizer.unk_token, *words[text][place + 1 :])
    return _align(tokenizer, words, window)


def _align(tokenizer: Any, words: Sequence[tuple[str, ...]], window: int) -> Aligned:
    capacity = window - tokenizer.num_special_tokens_to_add()
    step = capacity - capacity // 4
    parts, window_text = _encode(tokenizer.backend_tokenizer, words, capacity, step)
    windows = [part.ids for part in parts]
    row, column = _places(windows)
    special = np.fromiter(chain.from_iterable(part.special for part in parts), dtype=bool)
    own = np.flatnonzero(~special)
    if len(windows) > len(words):
        own = own[_most_context(row[own], window_text, step)]

    first_character = np.cumsum([0, *(sum(map(len, text)) + len(text) for text in words)])
    characters = chain.from_iterable(chain.from_iterable(part.offsets for part in parts))
    offsets = np.fromiter(characters, dtype=np.int64).reshape(-1, 2)[own]
    offsets += first_character[window_text[row[own]], None]
    word_start, word_stop, text_words = _word_characters(words)
    word_first = np.searchsorted(offsets[:, 1], word_start, side="right")
    word_last = np.searchsorted(offsets[:, 0], word_stop, side="left")
    ids = np.fromiter(chain.from_iterable(windows), dtype=np.int64)
    return Aligned(
        windows=windows,
        window_text=window_text,
        cls=_cls_columns(special & (ids == tokenizer.cls_token_id), row, column, len(windows)),
        token_window=row[own],
        token_column=column[own],
        text_tokens=np.searchsorted(window_text[row[own]], np.arange(len(words) + 1)),
        text_words=text_words,
        word_first=_past_blank(tokenizer.backend_tokenizer, ids[own], word_first, word_last),
        word_stop=word_last,
    )


class _Window(NamedTuple):
    """What the model reads at a time: token ids, which of them are special, and each one's characters in the text."""

    ids: list[int]
    special: list[int]
    offsets: list[tuple[int, int]]


def _encode(backend: Any, words: Sequence[tuple[str, ...]], capacity: int, step: int) -> tuple[list[_Window], Ints]:
    """Every text's windows, and the text each belongs to."""
    backend.no_truncation()  # some releases of tokenizers lose all but the second window when they cut themselves
    backend.no_padding()
    cut = [_cut(one, capacity, step) for one in backend.encode_batch([" ".join(text) for text in words])]
    return list(chain.from_iterable(cut)), np.repeat(np.arange(len(words)), [len(windows) for windows in cut])


def _cut(encoding: Any, capacity: int, step: int) -> list[_Window]:
    """A tokenized text as windows of so many subwords, that many apart, each between the text's special tokens."""
    whole = _Window(encoding.ids, encoding.special_tokens_mask, encoding.offsets)
    own = whole.special.count(0)
    if own <= capacity:
        return [whole]
    first = whole.special.index(0)
    starts = range(first, first + own - capacity + step, step)
    return [
        _Window(
            *(
                [*part[:first], *part[start : min(start + capacity, first + own)], *part[first + own :]]
                for part in whole
            )
        )
        for start in starts
    ]


def _places(windows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Row and column of every token, windows laid end to end."""
    sizes = np.array([len(ids) for ids in windows], dtype=np.int64)
    row = np.repeat(np.arange(len(windows)), sizes)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _most_context(row: Ints, window_text: Ints, step: int) -> Ints:
    """Indices of the subwords to keep: each subword of a text once, from the window where it is farthest from an edge.

    The windows of a text start `step` subwords apart.
    """
    window_number = np.arange(len(window_text)) - np.searchsorted(window_text, window_text)
    starts = np.searchsorted(row, np.arange(len(window_text)))
    counts = np.diff(np.append(starts, len(row)))
    place = np.arange(len(row)) - starts[row]
    edge = np.minimum(place, counts[row] - 1 - place)
    text, number = window_text[row], window_number[row] * step + place
    order = np.lexsort((row, -edge, number, text))
    fresh = (np.diff(text[order]) != 0) | (np.diff(number[order]) != 0)
    keep: Ints = order[np.concatenate([[True], fresh])]
    return keep


def _word_characters(words: Sequence[tuple[str, ...]]) -> tuple[Ints, Ints, Ints]:
    """Character range of every word, texts laid end to end, and the first word of each text."""
    text_words = np.cumsum([0, *(len(text) for text in words)])
    lengths = np.fromiter(map(len, chain.from_iterable(words)), dtype=np.int64, count=text_words[-1])
    stop = np.cumsum(lengths + 1) - 1  # one space after every word, the last of a text included
    return stop - lengths, stop, text_words


def _past_blank(backend: Any, ids: Ints, first: Ints, stop: Ints) -> Ints:
    """Where each word starts, a lone mark of a space left out: some tokenizers put one before a text's first word."""
    blanks = [id_ for mark in ("▁", "Ġ") if (id_ := backend.token_to_id(mark)) is not None]
    several = np.flatnonzero(stop - first > 1)
    starts = first.copy()
    starts[several] += np.isin(ids[first[several]], blanks)
    return starts


def _cls_columns(is_cls: NDArray[np.bool_], row: Ints, column: Ints, windows: int) -> Ints:
    columns = np.full(windows, -1, dtype=np.int64)
    found = np.flatnonzero(is_cls)[::-1]  # the first of a window is written last
    columns[row[found]] = column[found]
    return columns


def range_slots(aligned: Aligned, first: Ints, stop: Ints, pool: Pool) -> Slots:
    """The recipe that pools the subwords [first, stop) into one vector for each range; none may be empty."""
    first = stop - 1 if pool == "last" else first
    stop = first + 1 if pool == "first" else stop
    counts = stop - first
    slot = np.repeat(np.arange(len(counts)), counts)
    token = np.arange(len(slot)) - np.repeat(np.cumsum(counts) - counts, counts) + first[slot]
    weight = (1.0 / counts).astype(np.float32)[slot]
    return Slots(len(counts), aligned.token_window[token], aligned.token_column[token], slot, weight)


def cls_slots(aligned: Aligned, texts: Ints) -> Slots:
    """The recipe of each text's classification vector; the mean over its windows where it has several."""
    first, stop = (np.searchsorted(aligned.window_text, texts, side=side) for side in ("left", "right"))
    counts = stop - first
    slot = np.repeat(np.arange(len(counts)), counts)
    window = np.arange(len(slot)) - np.repeat(np.cumsum(counts) - counts, counts) + first[slot]
    return Slots(len(counts), window, aligned.cls[window], slot, (1.0 / counts).astype(np.float32)[slot])


def pool(states: Sequence[torch.Tensor], slots: Slots) -> list[torch.Tensor]:
    """(n, d) pooled vectors in float32 for each layer's hidden states (windows, length, d); differentiable."""
    device, length = states[0].device, states[0].shape[1]
    order = np.argsort(slots.slot, kind="stable")
    row = torch.from_numpy((slots.window * length + slots.column)[order]).to(device)
    slot = torch.from_numpy(slots.slot[order]).to(device)
    weight = torch.from_numpy(slots.weight[order]).to(device)
    first = torch.from_numpy(np.searchsorted(slots.slot[order], np.arange(slots.n))).to(device)
    if device.type == "mps":  # which has no embedding_bag before torch 2.10
        return [add_rows(hidden.flatten(0, 1).float(), row, slot, weight, slots.n) for hidden in states]
    return [
        embedding_bag(row, hidden.flatten(0, 1).float(), first, mode="sum", per_sample_weights=weight)
        for hidden in states
    ]


def add_rows(table: torch.Tensor, row: torch.Tensor, slot: torch.Tensor, weight: torch.Tensor, n: int) -> torch.Tensor:
    """(n, d) weighted sums of rows, the plain way; `embedding_bag` does the same 15 times faster on a CPU."""
    return table.new_zeros(n, table.shape[1]).index_add(0, slot, table[row] * weight.unsqueeze(1))

"""Align words with subwords, and pool the hidden states of subwords; used for extraction and for fine-tuning.

The words of a text are joined by single spaces, or as they are written if the text says so, and tokenized as running
text, as in pretraining; each word gets the subwords whose characters overlap its own. This rule works for word-piece,
byte-level and SentencePiece tokenizers. Tokenizing word by word would drop the leading space that byte-level tokenizers
need. The two texts of a pair are encoded as the tokenizer encodes pairs. Pooling is differentiable.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import embedding_bag

from closerlook.encoders.template import Template
from closerlook.errors import InputError
from closerlook.texts import RunningText, Text, TextPair, as_running, replace_word

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
    from transformers import PreTrainedTokenizerFast

Ints = NDArray[np.int64]
NO_TEMPLATE = Template()

log = logging.getLogger("closerlook")


class PairWindow(list[int]):
    """The token ids of a pair of texts as one model input, and the type (segment) of each token."""

    def __init__(self, ids: Sequence[int], types: Sequence[int]) -> None:
        super().__init__(ids)
        self.types = list(types)


@dataclass(frozen=True)
class Alignment:
    """Tokenized texts, and the subwords of each word in them.

    windows: the token ids of each model input, with special tokens; a text longer than the window has several.
    window_text: (windows,) the number of the text that each window belongs to.
    cls: (windows,) the column of the classification token, -1 if there is none. A column is an index within a window.
    token_window, token_column: (subwords,) the window and the column of each subword of the texts. Special tokens are
    excluded, and each subword is listed once, even where windows overlap.
    text_tokens, text_words: (texts + 1,) the first subword and the first word of each text. The last entry is the
    total, so text i has the words text_words[i]:text_words[i + 1].
    word_first, word_stop: (words,) the range of subwords of each word; empty if the tokenizer gives it no subword.
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
class Pooling:
    """How to compute n pooled vectors from hidden states.

    Vector number `slot` is the sum of the hidden states at its (window, column) entries, each times its `weight`.
    """

    n: int
    window: Ints
    column: Ints
    slot: Ints
    weight: NDArray[np.float32]


def align(
    tokenizer: PreTrainedTokenizerFast, texts: Sequence[Text], window: int, template: Template = NO_TEMPLATE
) -> Alignment:
    """Tokenize the texts, each inside the template, and find the subwords of each word.

    The subwords of the template belong to the text, but to none of its words.

    A text longer than the window is split into overlapping windows: neighbouring windows share a quarter of their
    length. Each subword is taken from the window in which it is farthest from an edge. A word for which the tokenizer
    gives no subword (control characters, for example) is replaced by the unknown token. If the tokenizer has none, the
    word's range of subwords stays empty.
    """
    running = [_inside(template, text) for text in texts]
    seconds = [text.second if isinstance(text, TextPair) else None for text in texts]
    alignment = _align(tokenizer, running, seconds, window)
    empty = np.flatnonzero(alignment.word_first >= alignment.word_stop)
    if len(empty) == 0 or tokenizer.unk_token is None:
        return alignment
    text_of_word = np.searchsorted(alignment.text_words, empty, side="right") - 1
    for word, text in zip(empty, text_of_word, strict=True):
        running[text] = replace_word(running[text], word - alignment.text_words[text], tokenizer.unk_token)
        seconds[text] = None
    return _align(tokenizer, running, seconds, window)


def _inside(template: Template, text: Text) -> RunningText:
    """The text inside the template, with the characters of each of its words."""
    running = as_running(text)
    if not template.before and not template.after:
        return running
    if isinstance(text, TextPair):
        raise InputError("a template was given for pairs of texts; expected one only for single texts")
    shift = len(template.before)
    spans = tuple((start + shift, stop + shift) for start, stop in running.spans)
    return RunningText(f"{template.before}{running.text}{template.after}", spans, running.forms)


def _align(
    tokenizer: PreTrainedTokenizerFast, texts: Sequence[RunningText], seconds: Sequence[str | None], window: int
) -> Alignment:
    """The alignment of running texts. seconds: the second text of each pair, with which the running text ends."""
    capacity = window - tokenizer.num_special_tokens_to_add()
    step = capacity - capacity // 4
    parts, window_text = _encode(tokenizer, texts, seconds, window)
    windows = [part.ids if part.types is None else PairWindow(part.ids, part.types) for part in parts]
    row, column = _rows_and_columns(windows)
    special = np.fromiter(chain.from_iterable(part.special for part in parts), dtype=bool)
    own = np.flatnonzero(~special)
    if len(windows) > len(texts):
        own = own[_most_context(row[own], window_text, step)]

    first_character = np.cumsum([0, *(len(text.text) + 1 for text in texts)])
    characters = chain.from_iterable(chain.from_iterable(part.offsets for part in parts))
    offsets = np.fromiter(characters, dtype=np.int64).reshape(-1, 2)[own]
    offsets += first_character[window_text[row[own]], None]
    char_start, char_stop, text_words = _word_characters(texts, first_character)
    subword_first = np.searchsorted(offsets[:, 1], char_start, side="right")
    subword_stop = np.searchsorted(offsets[:, 0], char_stop, side="left")
    ids = np.fromiter(chain.from_iterable(windows), dtype=np.int64)
    return Alignment(
        windows=windows,
        window_text=window_text,
        cls=_cls_columns(special & (ids == tokenizer.cls_token_id), row, column, len(windows)),
        token_window=row[own],
        token_column=column[own],
        text_tokens=np.searchsorted(window_text[row[own]], np.arange(len(texts) + 1)),
        text_words=text_words,
        word_first=_skip_space_mark(tokenizer.backend_tokenizer, ids[own], subword_first, subword_stop),
        word_stop=subword_stop,
    )


class _Window(NamedTuple):
    """One model input: the token ids, which of them are special, and the range of characters of each in the text.

    types: the type of each token, for a pair of texts only.
    """

    ids: list[int]
    special: list[int]
    offsets: list[tuple[int, int]]
    types: list[int] | None = None


def _encode(
    tokenizer: PreTrainedTokenizerFast, texts: Sequence[RunningText], seconds: Sequence[str | None], window: int
) -> tuple[list[_Window], Ints]:
    """The windows of all texts, and for each window the number of its text."""
    # Long texts are split by `_split_windows`, not by `tokenizers`, because some of its releases return only the second
    # window of a truncated text.
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    starts = [0 if end is None else len(text.text) - len(end) for text, end in zip(texts, seconds, strict=True)]
    encodings = backend.encode_batch(
        [
            text.text if end is None else (text.text[: start - 1], end)
            for text, start, end in zip(texts, starts, seconds, strict=True)
        ]
    )
    capacity = window - tokenizer.num_special_tokens_to_add()
    step = capacity - capacity // 4
    pair_capacity = window - tokenizer.num_special_tokens_to_add(pair=True)
    windows = [
        [_pair_window(encoding, pair_capacity, start)] if start else _split_windows(encoding, capacity, step)
        for encoding, start in zip(encodings, starts, strict=True)
    ]
    shortened = sum(
        start > 0 and len(parts[0].ids) < len(encoding.ids)
        for encoding, parts, start in zip(encodings, windows, starts, strict=True)
    )
    if shortened:
        log.warning("%d of %d pairs of texts are longer than %d tokens and were cut", shortened, len(texts), window)
    return list(chain.from_iterable(windows)), np.repeat(np.arange(len(texts)), [len(part) for part in windows])


def _split_windows(encoding: Encoding, capacity: int, step: int) -> list[_Window]:
    """The windows of a tokenized text: `capacity` subwords, starting every `step`, each with the special tokens."""
    full = _Window(encoding.ids, encoding.special_tokens_mask, encoding.offsets)
    own = full.special.count(0)
    if own <= capacity:
        return [full]
    first = full.special.index(0)
    starts = range(first, first + own - capacity + step, step)
    return [
        _Window(
            *(
                [*part[:first], *part[start : min(start + capacity, first + own)], *part[first + own :]]
                for part in full[:3]
            )
        )
        for start in starts
    ]


def _pair_window(encoding: Encoding, capacity: int, second_start: int) -> _Window:
    """The model input of a pair of texts; subwords of the longer text are cut from its end until the pair fits.

    second_start: the first character of the second text, where the running text contains both.
    """
    members = encoding.sequence_ids
    lengths = [members.count(0), members.count(1)]
    excess = max(0, sum(lengths) - capacity)
    longer = int(lengths[1] > lengths[0])
    first_cut = min(excess, abs(lengths[0] - lengths[1]))
    lengths[longer] -= first_cut
    lengths = [lengths[0] - (excess - first_cut) // 2, lengths[1] - (excess - first_cut + 1) // 2]
    seen = [0, 0]
    kept = []
    for column, member in enumerate(members):
        if member is not None:
            seen[member] += 1
        if member is None or seen[member] <= lengths[member]:
            kept.append(column)
    offsets = [encoding.offsets[column] for column in kept]
    return _Window(
        [encoding.ids[column] for column in kept],
        [encoding.special_tokens_mask[column] for column in kept],
        [
            (start + second_start, stop + second_start) if members[column] == 1 else (start, stop)
            for column, (start, stop) in zip(kept, offsets, strict=True)
        ],
        [encoding.type_ids[column] for column in kept],
    )


def _rows_and_columns(windows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """The window (row) and the column of each token, for all windows in order."""
    sizes = np.array([len(ids) for ids in windows], dtype=np.int64)
    row = np.repeat(np.arange(len(windows)), sizes)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _most_context(row: Ints, window_text: Ints, step: int) -> Ints:
    """The indices of the subwords to keep: each subword once, from the window in which it is farthest from an edge.

    The windows of a text start `step` subwords apart.
    """
    window_number = np.arange(len(window_text)) - np.searchsorted(window_text, window_text)
    starts = np.searchsorted(row, np.arange(len(window_text)))
    counts = np.diff(np.append(starts, len(row)))
    position = np.arange(len(row)) - starts[row]
    edge = np.minimum(position, counts[row] - 1 - position)
    text, number = window_text[row], window_number[row] * step + position
    order = np.lexsort((row, -edge, number, text))
    is_new = (np.diff(text[order]) != 0) | (np.diff(number[order]) != 0)
    keep: Ints = order[np.concatenate([[True], is_new])]
    return keep


def _word_characters(texts: Sequence[RunningText], first_character: Ints) -> tuple[Ints, Ints, Ints]:
    """The start and the (exclusive) end offset of each word, and the first word of each text.

    Offsets are counted in characters, over all texts one after the other. first_character: (texts + 1,) the offset of
    each text.
    """
    counts = [len(text.spans) for text in texts]
    text_words = np.cumsum([0, *counts])
    spans = chain.from_iterable(chain.from_iterable(text.spans for text in texts))
    offsets = np.fromiter(spans, dtype=np.int64, count=2 * text_words[-1]).reshape(-1, 2)
    offsets += np.repeat(first_character[:-1], counts)[:, None]
    return offsets[:, 0], offsets[:, 1], text_words


def _skip_space_mark(backend: Tokenizer, ids: Ints, first: Ints, stop: Ints) -> Ints:
    """The first subword of each word, without a subword that is only a space marker ("▁" or "Ġ").

    A space marker is kept if the word has no other subword.
    """
    marks = [id_ for mark in ("▁", "Ġ") if (id_ := backend.token_to_id(mark)) is not None]
    several = np.flatnonzero(stop - first > 1)
    starts = first.copy()
    starts[several] += np.isin(ids[first[several]], marks)
    return starts


def _cls_columns(is_cls: NDArray[np.bool_], row: Ints, column: Ints, windows: int) -> Ints:
    columns = np.full(windows, -1, dtype=np.int64)
    tokens = np.flatnonzero(is_cls)[::-1]  # reversed, so that the first of each window is written last
    columns[row[tokens]] = column[tokens]
    return columns


def range_pooling(alignment: Alignment, first: Ints, stop: Ints, pool: str) -> Pooling:
    """How to pool the subwords of each range [first, stop) into one vector; no range may be empty.

    pool: 'mean', 'first' or 'last'.
    """
    first = stop - 1 if pool == "last" else first
    stop = first + 1 if pool == "first" else stop
    slot, token, weight = _in_ranges(first, stop)
    return Pooling(len(first), alignment.token_window[token], alignment.token_column[token], slot, weight)


def cls_pooling(alignment: Alignment, texts: Ints) -> Pooling:
    """How to pool the classification vector of each text; for a long text, it is the mean over its windows."""
    first, stop = (np.searchsorted(alignment.window_text, texts, side=side) for side in ("left", "right"))
    slot, window, weight = _in_ranges(first, stop)
    return Pooling(len(first), window, alignment.cls[window], slot, weight)


def last_pooling(alignment: Alignment, texts: Ints) -> Pooling:
    """How to take the last token of each text, which may be a special token; no text may be without tokens."""
    window = np.searchsorted(alignment.window_text, texts, side="right") - 1
    column = np.array([len(alignment.windows[i]) for i in window], dtype=np.int64) - 1
    return Pooling(len(texts), window, column, np.arange(len(texts)), np.ones(len(texts), np.float32))


def mean_pooling(alignment: Alignment, texts: Ints, *, special: bool, weighted: bool) -> Pooling:
    """How to pool all subwords of each text into their mean; no text may be without subwords.

    special: special tokens are pooled as well; those of a text in several windows only once. weighted: the weight of a
    token is its position, counted from 1, so that later tokens count more.
    """
    first, stop = alignment.text_tokens[texts], alignment.text_tokens[texts + 1]
    slot, token, _ = _in_ranges(first, stop)
    window, column = alignment.token_window[token], alignment.token_column[token]
    if special:
        first_window, last_window = alignment.token_window[first], alignment.token_window[stop - 1]
        sizes = np.array([len(alignment.windows[i]) for i in last_window], dtype=np.int64)
        before, column_before, _ = _in_ranges(np.zeros_like(first), alignment.token_column[first])
        after, column_after, _ = _in_ranges(alignment.token_column[stop - 1] + 1, sizes)
        slot = np.concatenate([before, slot, after])
        order = np.argsort(slot, kind="stable")  # the tokens of each text in order
        slot = slot[order]
        window = np.concatenate([first_window[before], window, last_window[after]])[order]
        column = np.concatenate([column_before, column, column_after])[order]
    counts = np.bincount(slot, minlength=len(texts))
    position = np.arange(len(slot)) - (np.cumsum(counts) - counts)[slot] + 1
    weight = position / (counts * (counts + 1) / 2)[slot] if weighted else (1.0 / counts)[slot]
    return Pooling(len(texts), window, column, slot, weight.astype(np.float32))


def _in_ranges(first: Ints, stop: Ints) -> tuple[Ints, Ints, NDArray[np.float32]]:
    """For every integer in the ranges [first, stop): the index of its range, the integer, and 1 / range length."""
    counts = stop - first
    number = np.repeat(np.arange(len(counts)), counts)
    integer = np.arange(len(number)) - np.repeat(np.cumsum(counts) - counts, counts) + first[number]
    return number, integer, (1.0 / np.maximum(counts, 1)).astype(np.float32)[number]


def pool(states: Sequence[torch.Tensor], pooling: Pooling) -> list[torch.Tensor]:
    """The pooled vectors (n, d) of each layer, in float32; differentiable.

    states: the hidden states of several layers, each (windows, length, d).
    """
    device, length = states[0].device, states[0].shape[1]
    states = [hidden.to(device) for hidden in states]  # a model may be spread over several devices
    order = np.argsort(pooling.slot, kind="stable")
    row = torch.from_numpy((pooling.window * length + pooling.column)[order]).to(device)
    slot = torch.from_numpy(pooling.slot[order]).to(device)
    weight = torch.from_numpy(pooling.weight[order]).to(device)
    first = torch.from_numpy(np.searchsorted(pooling.slot[order], np.arange(pooling.n))).to(device)
    if device.type == "mps":  # embedding_bag is missing on MPS before torch 2.10
        return [add_rows(hidden.flatten(0, 1).float(), row, slot, weight, pooling.n) for hidden in states]
    return [
        embedding_bag(row, hidden.flatten(0, 1).float(), first, mode="sum", per_sample_weights=weight)
        for hidden in states
    ]


def add_rows(table: torch.Tensor, row: torch.Tensor, slot: torch.Tensor, weight: torch.Tensor, n: int) -> torch.Tensor:
    """(n, d) weighted sums of rows of a table; `embedding_bag` computes the same, 15 times faster on a CPU."""
    return table.new_zeros(n, table.shape[1]).index_add(0, slot, table[row] * weight.unsqueeze(1))

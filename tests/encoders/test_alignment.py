"""Words are aligned with their subwords for every kind of tokenizer, and pooled vectors equal those of a plain loop."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from closerlook.encoders.alignment import Alignment, add_rows, align, cls_pooling, pool, range_pooling
from closerlook.encoders.encoder import Encoder
from tests.encoders.families import FAMILIES, word_piece

Load = Callable[[str], Encoder]
WORDS = ("The", "quick", "naïve", "internationalization", "don't", ".", "light", "Zürich", "1,200", "near")


def subwords(encoder: Encoder, alignment: Alignment, word: int) -> list[str]:
    tokens = range(alignment.word_first[word], alignment.word_stop[word])
    ids = [alignment.windows[alignment.token_window[t]][alignment.token_column[t]] for t in tokens]
    return list(encoder.tokenizer.convert_ids_to_tokens(ids))


def spelled(tokens: list[str]) -> str:
    """What subwords spell, marks of word pieces and spaces left out."""
    return "".join(token.removeprefix("##").replace("▁", "").replace("Ġ", "") for token in tokens)


@pytest.mark.parametrize("name", FAMILIES)
def test_ascii_words_are_spelled_by_their_subwords(encoder: Load, name: str) -> None:
    loaded = encoder(name)
    words = tuple(word for word in WORDS if word.isascii())
    alignment = loaded.align([words])
    for i, word in enumerate(words):
        result = spelled(subwords(loaded, alignment, i))
        assert result == (word.lower() if name == "bert" else word)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_word_has_a_subword_and_their_ranges_ascend(encoder: Load, name: str) -> None:
    alignment = encoder(name).align([WORDS, ("so",), WORDS[::-1]])
    assert (alignment.word_stop > alignment.word_first).all()
    assert (np.diff(alignment.word_first) >= 0).all()
    assert alignment.text_words.tolist() == [0, 10, 11, 21]


@pytest.mark.parametrize("name", ["roberta", "gpt2", "modernbert"])
def test_a_byte_level_word_keeps_its_leading_space(encoder: Load, name: str) -> None:
    loaded = encoder(name)
    alignment = loaded.align([("the", "the")])
    assert [subwords(loaded, alignment, i) for i in (0, 1)] == [["t", "he"], ["Ġthe"]]


@pytest.mark.parametrize("name", FAMILIES)
def test_control_characters_get_the_unknown_token_and_shift_nothing(encoder: Load, name: str) -> None:
    loaded = encoder(name)
    plain = loaded.align([("The", "lazy", "dog")])
    odd = loaded.align([("The", "\u0007", "lazy", "\u200b", "dog")])
    for before, after in ((0, 0), (1, 2), (2, 4)):
        assert subwords(loaded, odd, after) == subwords(loaded, plain, before)
    assert len(subwords(loaded, odd, 1)) > 0
    assert len(subwords(loaded, odd, 3)) > 0
    if name.startswith("bert"):
        assert subwords(loaded, odd, 1) == ["[UNK]"]


def test_without_an_unknown_token_a_lost_word_has_an_empty_range(encoder: Load) -> None:
    class NoUnknown:
        unk_token = None

        def __getattr__(self, name: str) -> Any:
            return getattr(encoder("bert").tokenizer, name)

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return encoder("bert").tokenizer(*args, **kwargs)

    alignment = align(NoUnknown(), [("The", "\u0007", "dog")], 64)
    assert (alignment.word_stop - alignment.word_first).tolist() == [1, 0, 1]


def test_special_tokens_written_in_the_text_do_not_shift_words(encoder: Load) -> None:
    loaded = encoder("bert")
    alignment = loaded.align([("[SEP]", "dog", "[CLS]", "fox")])
    assert subwords(loaded, alignment, 1) == ["dog"]
    assert subwords(loaded, alignment, 3) == ["fox"]
    assert alignment.cls.tolist() == [0]


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "t5"])
def test_a_text_longer_than_the_window_loses_no_subword(encoder: Load, name: str) -> None:
    loaded = encoder(name)
    words = tuple(WORDS[i % 10] for i in range(150))
    alignment = loaded.align([("so",), words, ("so",)])
    assert len(alignment.windows) > 5
    assert max(map(len, alignment.windows)) <= loaded.info.window
    ids = [alignment.windows[w][c] for w, c in zip(alignment.token_window, alignment.token_column, strict=True)]
    own = slice(alignment.text_tokens[1], alignment.text_tokens[2])
    assert ids[own] == loaded.tokenizer(" ".join(words), add_special_tokens=False)["input_ids"]
    assert (alignment.word_stop > alignment.word_first).all()


def test_each_subword_is_taken_from_the_window_where_it_is_farthest_from_an_edge(encoder: Load) -> None:
    alignment = encoder("bert").align([("dog",) * 150])
    inner = [len(window) - 2 for window in alignment.windows]
    starts = [0]
    for _ in inner[1:]:
        starts.append(starts[-1] + 62 - 15)  # capacity less a quarter of it
    for token, (window, column) in enumerate(zip(alignment.token_window, alignment.token_column, strict=True)):
        edges = {
            w: min(token - start, start + inner[w] - 1 - token)
            for w, start in enumerate(starts)
            if start <= token < start + inner[w]
        }
        assert edges[window] == max(edges.values())
        assert starts[window] + column - 1 == token


@pytest.mark.parametrize("how", ["mean", "first", "last"])
def test_pooling_equals_a_plain_loop(encoder: Load, how: Any) -> None:
    loaded = encoder("bert")
    alignment = loaded.align([WORDS, ("so", "light")])
    states = loaded.hidden_states(alignment.windows)
    vectors = pool(states, range_pooling(alignment, alignment.word_first, alignment.word_stop, how))
    assert [tuple(layer.shape) for layer in vectors] == [(12, 32)] * 4
    for layer, hidden in enumerate(states):
        for word, (first, stop) in enumerate(zip(alignment.word_first, alignment.word_stop, strict=True)):
            rows = [hidden[alignment.token_window[t], alignment.token_column[t]] for t in range(first, stop)]
            expected = {"mean": sum(rows) / len(rows), "first": rows[0], "last": rows[-1]}[how]
            torch.testing.assert_close(vectors[layer][word], expected)


def test_pooling_agrees_with_the_tokenizers_own_word_numbers(encoder: Load) -> None:
    loaded = encoder("bert-cased")
    encoded = loaded.tokenizer([list(WORDS)], is_split_into_words=True, return_tensors="pt")
    hidden = loaded.model(**encoded).last_hidden_state[0]
    numbers = np.array([-1 if n is None else n for n in encoded.word_ids(0)])
    expected = torch.stack([hidden[numbers == word].mean(0) for word in range(len(WORDS))])
    alignment = loaded.align([WORDS])
    states = loaded.hidden_states(alignment.windows)
    result = pool(states[-1:], range_pooling(alignment, alignment.word_first, alignment.word_stop, "mean"))[0]
    torch.testing.assert_close(result, expected)


def test_pooling_is_differentiable(encoder: Load) -> None:
    alignment = encoder("bert").align([WORDS])
    hidden = torch.randn(1, len(alignment.windows[0]), 8, dtype=torch.float32, requires_grad=True)
    pool([hidden], range_pooling(alignment, alignment.word_first, alignment.word_stop, "mean"))[0].sum().backward()  # type: ignore[no-untyped-call]
    assert hidden.grad is not None
    weights = hidden.grad[0, :, 0]
    counts = alignment.word_stop - alignment.word_first
    np.testing.assert_allclose(weights[1:-1].numpy(), np.repeat(1 / counts, counts), rtol=1e-6)
    assert weights[0] == weights[-1] == 0


def test_the_classification_vector_of_a_long_text_is_the_mean_over_its_windows(encoder: Load) -> None:
    loaded = encoder("bert")
    alignment = loaded.align(["so", "dog " * 100, "fox"])
    states = loaded.hidden_states(alignment.windows)
    result = pool(states[-1:], cls_pooling(alignment, np.array([0, 1, 2])))[0]
    several = np.flatnonzero(alignment.window_text == 1)
    assert len(several) > 1
    torch.testing.assert_close(result[1], states[-1][several, 0].mean(0))
    torch.testing.assert_close(result[2], states[-1][-1, 0])


def test_half_precision_states_are_pooled_in_single_precision(encoder: Load) -> None:
    alignment = encoder("bert").align([("internationalization",)])
    hidden = torch.randn(1, len(alignment.windows[0]), 8).half()
    result = pool([hidden], range_pooling(alignment, alignment.word_first, alignment.word_stop, "mean"))
    assert result[0].dtype == torch.float32
    torch.testing.assert_close(result[0][0], hidden[0, 1:-1].float().mean(0))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.text(min_size=1, max_size=6).filter(str.strip), min_size=1, max_size=40), min_size=1, max_size=4
    )
)
def test_any_words_are_aligned_or_left_empty_but_never_out_of_their_text(texts: list[list[str]]) -> None:
    tokenizer = _tokenizer()
    alignment = align(tokenizer, [tuple(text) for text in texts], 24)
    for i in range(len(texts)):
        words = slice(alignment.text_words[i], alignment.text_words[i + 1])
        first, stop = alignment.word_first[words], alignment.word_stop[words]
        assert (stop > first).all()
        assert first[0] >= alignment.text_tokens[i]
        assert stop[-1] <= alignment.text_tokens[i + 1]
    assert len(alignment.token_window) == alignment.text_tokens[-1]


def _tokenizer(cache: list[Any] = []) -> Any:  # noqa: B006 - one tokenizer for all calls
    if not cache:
        from transformers import PreTrainedTokenizerFast

        tokens = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
        cache.append(PreTrainedTokenizerFast(tokenizer_object=word_piece(lowercase=True), **tokens))
    return cache[0]


@pytest.mark.parametrize("name", ["deberta-v3", "t5", "llama", "roberta", "bert"])
def test_a_lone_mark_of_a_space_belongs_to_no_word(encoder: Load, name: str) -> None:
    loaded = encoder(name)
    alignment = loaded.align([("日", "日", "日")])
    assert subwords(loaded, alignment, 0) == subwords(loaded, alignment, 1) == subwords(loaded, alignment, 2)


def test_the_plain_way_to_add_rows_agrees_with_the_fast_one(encoder: Load) -> None:
    alignment = encoder("bert").align([WORDS, ("so", "light")])
    slots = range_pooling(alignment, alignment.word_first, alignment.word_stop, "mean")
    hidden = torch.randn(2, max(map(len, alignment.windows)), 8)
    table = hidden.flatten(0, 1)
    row = torch.from_numpy(slots.window * hidden.shape[1] + slots.column)
    plain = add_rows(table, row, torch.from_numpy(slots.slot), torch.from_numpy(slots.weight), slots.n)
    torch.testing.assert_close(pool([hidden], slots)[0], plain)

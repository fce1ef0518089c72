"""Words in running text and pairs of texts, tokenized as the tokenizer of the encoder expects them."""

import logging
from functools import cache

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from closerlook.encoders.alignment import PairWindow, align
from closerlook.encoders.encoder import Encoder
from closerlook.representations.extract import extract
from closerlook.tasks.readers import read_task
from closerlook.texts import RunningText, Text, TextPair

CORPUS = [
    "我喜欢喝茶。",
    "我们喜欢她。",
    "彼は本を読んだ。",
    "I don't like it, do I?",
    "Il boit du vin.",
    "the tea is good",
] * 3
CHINESE = RunningText("我喜欢茶。", ((0, 1), (1, 3), (3, 4), (4, 5)))
CLITIC = RunningText("I don't like it.", ((0, 1), (2, 4), (4, 7), (8, 12), (13, 15), (15, 16)))
FRENCH = RunningText("Il boit du vin.", ((0, 2), (3, 7), (8, 9), (9, 10), (11, 14), (14, 15)))


def wrapped(backend: Tokenizer, trainer: trainers.Trainer) -> PreTrainedTokenizerFast:
    backend.train_from_iterator(CORPUS, trainer)
    ids = {token: backend.token_to_id(token) for token in ("[CLS]", "[SEP]")}
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=list(ids.items())
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]", pad_token="[PAD]"
    )


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


@cache
def word_piece() -> PreTrainedTokenizerFast:
    """The rules of multilingual BERT: every Chinese character is a word of its own."""
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(handle_chinese_chars=True, lowercase=False)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    return wrapped(backend, trainers.WordPieceTrainer(vocab_size=200, special_tokens=SPECIAL, show_progress=False))


@cache
def byte_level() -> PreTrainedTokenizerFast:
    """The rules of GPT-2 and its relatives: bytes, and a space belongs to the word after it."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return wrapped(
        backend,
        trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False),
    )


@cache
def metaspace() -> PreTrainedTokenizerFast:
    """The rules of XLM-RoBERTa: SentencePiece, which marks spaces."""
    backend = Tokenizer(models.Unigram())
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    return wrapped(
        backend,
        trainers.UnigramTrainer(vocab_size=120, special_tokens=SPECIAL, unk_token="[UNK]", show_progress=False),
    )


TOKENIZERS = [word_piece, byte_level, metaspace]


@pytest.mark.parametrize("text", [CHINESE, CLITIC, FRENCH], ids=["Chinese", "clitic", "multiword"])
@pytest.mark.parametrize("rules", TOKENIZERS)
def test_running_text_is_tokenized_as_it_is_written(rules: object, text: RunningText) -> None:
    tokenizer = rules()  # type: ignore[operator]
    alignment = align(tokenizer, [text], 64)
    assert alignment.windows == [tokenizer(text.text)["input_ids"]]


@pytest.mark.parametrize("text", [CHINESE, CLITIC, FRENCH], ids=["Chinese", "clitic", "multiword"])
@pytest.mark.parametrize("rules", TOKENIZERS)
def test_each_word_gets_the_subwords_that_overlap_it(rules: object, text: RunningText) -> None:
    tokenizer = rules()  # type: ignore[operator]
    alignment = align(tokenizer, [text], 64)
    encoding = tokenizer(text.text, return_offsets_mapping=True)
    offsets = [span for span in encoding["offset_mapping"] if span != (0, 0)]
    for word, (start, stop) in enumerate(text.spans):
        own = range(alignment.word_first[word], alignment.word_stop[word])
        assert len(own) > 0
        for subword, (first, last) in enumerate(offsets):
            overlaps = first < stop and last > start
            is_mark = overlaps and not text.text[first:last].strip()
            assert (subword in own) == overlaps or is_mark


def test_a_space_between_chinese_words_would_change_the_tokens() -> None:
    tokenizer = byte_level()
    spaced = align(tokenizer, [CHINESE.words], 64).windows
    assert spaced != align(tokenizer, [CHINESE], 64).windows
    assert spaced == [tokenizer("我 喜欢 茶 。")["input_ids"]]


def test_running_text_with_a_space_after_each_word_equals_its_words() -> None:
    texts: list[Text] = [("I", "like", "it"), RunningText("I like it", ((0, 1), (2, 6), (7, 9))), "I like it"]
    alignment = align(word_piece(), texts, 64)
    assert alignment.windows[0] == alignment.windows[1] == alignment.windows[2]
    first, second, _ = np.split(alignment.word_first, alignment.text_words[1:-1])
    assert (first == second - alignment.text_tokens[1]).all()


def test_a_word_without_subwords_in_running_text_becomes_the_unknown_token() -> None:
    tokenizer = word_piece()
    text = RunningText("I \u0007\u0007 like it", ((0, 1), (2, 4), (5, 9), (10, 12)))
    alignment = align(tokenizer, [text], 64)
    assert tokenizer.unk_token_id in alignment.windows[0]
    assert (alignment.word_stop > alignment.word_first).all()


# ---- pairs ----

PAIR = TextPair("I like tea.", "The tea is good, do I like it?")


@pytest.mark.parametrize("rules", TOKENIZERS)
def test_a_pair_is_encoded_as_the_tokenizer_encodes_pairs(rules: object) -> None:
    tokenizer = rules()  # type: ignore[operator]
    alignment = align(tokenizer, ["I like it", PAIR, "tea"], 64)
    encoded = tokenizer(PAIR.first, PAIR.second, return_token_type_ids=True)
    window = alignment.windows[1]
    assert isinstance(window, PairWindow)
    assert (window, window.types) == (encoded["input_ids"], encoded["token_type_ids"])
    assert alignment.windows[0] == tokenizer("I like it")["input_ids"]
    own = range(*alignment.text_tokens[1:3])
    special = {tokenizer.cls_token_id, tokenizer.sep_token_id}
    assert alignment.token_column[own].tolist() == [column for column, id_ in enumerate(window) if id_ not in special]


@pytest.mark.parametrize("window", range(8, 20))
def test_the_longer_text_of_a_long_pair_is_cut_first(window: int, caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = word_piece()
    for pair in (PAIR, TextPair(PAIR.second, PAIR.first), TextPair(PAIR.first, PAIR.first)):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="closerlook"):
            (ids,) = align(tokenizer, [pair], window).windows
        kept = [len(part) for part in np.split(np.array(ids), np.flatnonzero(np.array(ids) == tokenizer.sep_token_id))]
        full = [len(tokenizer(text)["input_ids"]) - 2 for text in (pair.first, pair.second)]
        first, second = kept[0] - 1, kept[1] - 1
        assert len(ids) == min(window, sum(full) + 3)
        if first < full[0] and second < full[1]:
            assert abs(first - second) <= 1
        message = f"1 of 1 pairs of texts are longer than {window} tokens and were cut"
        assert caplog.messages == ([message] if sum(full) + 3 > window else [])


@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_vectors_of_a_pair_are_those_of_the_model_with_token_types(pool: str) -> None:
    encoder = Encoder.load("bert-tiny")
    pairs = [("It rains.", "The street is wet."), ("It is dry.", "It rains."), ("No.", "Yes, it does, I think so.")]
    task = read_task([{"text_a": a, "text_b": b, "label": "xy"[i % 2]} for i, (a, b) in enumerate(pairs)])
    (space,) = extract(encoder, task, layers="last", pool=pool)
    for row, (a, b) in zip(space.X, pairs, strict=True):
        inputs = encoder.tokenizer(a, b, return_tensors="pt", return_token_type_ids=True)
        special = encoder.tokenizer.get_special_tokens_mask(inputs["input_ids"][0], already_has_special_tokens=True)
        with torch.inference_mode():
            states = encoder.model(**inputs).last_hidden_state[0]
        own = states[torch.tensor(special) == 0].mean(dim=0)
        np.testing.assert_allclose(row, states[0] if pool == "cls" else own, atol=1e-5)
        untyped = encoder.model(inputs["input_ids"]).last_hidden_state[0, 0].detach()
        assert np.abs(row - untyped.numpy()).max() > 1e-3

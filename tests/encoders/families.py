"""Tiny encoders of each family with random weights, and tokenizers of each kind trained on a few sentences."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers as hf
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = [
    "The quick brown fox jumps over the lazy dog near the river bank .",
    "She didn't light the lamp , so they ran back to the house in the rain .",
    "Naïve café owners in Zürich paid 1,200 francs for the unbelievable internationalization .",
] * 20
SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 64}


def word_piece(lowercase: bool) -> Tokenizer:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=220, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("[CLS]", "[SEP]")]
    )
    return tokenizer


def byte_level(template: str | None, special: list[str], *, split_first: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split_first)
    splitter = pre_tokenizers.Split(Regex(r"'t|'s| ?\w+| ?[^\s\w]+|\s+"), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([splitter, level]) if split_first else level
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=alphabet)
    )
    if template:
        known = [(t, tokenizer.token_to_id(t)) for t in special]
        tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=known)
    return tokenizer


def unigram(template: str, special: list[str], unknown: str) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(
        CORPUS, trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token=unknown)
    )
    known = [(t, tokenizer.token_to_id(t)) for t in special]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=known)
    return tokenizer


def byte_fallback() -> Tokenizer:
    """Llama's kind: no pre-tokenizer, spaces become ▁ in the normalizer, unknown characters become bytes."""
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=420, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    return tokenizer


BERT_TOKENS = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
ROBERTA_TOKENS = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"}


def _bert(lowercase: bool) -> tuple[Tokenizer, dict[str, str], hf.PretrainedConfig]:
    return word_piece(lowercase), BERT_TOKENS, hf.BertConfig(vocab_size=400, max_position_embeddings=64, **SIZES)


def _roberta() -> tuple[Tokenizer, dict[str, str], hf.PretrainedConfig]:
    tokenizer = byte_level("<s> $A </s>", ["<s>", "<pad>", "</s>", "<unk>"])
    return (
        tokenizer,
        ROBERTA_TOKENS,
        hf.RobertaConfig(vocab_size=400, max_position_embeddings=66, pad_token_id=1, **SIZES),
    )


def _deberta() -> tuple[Tokenizer, dict[str, str], hf.PretrainedConfig]:
    config = hf.DebertaV2Config(
        vocab_size=400,
        max_position_embeddings=64,
        relative_attention=True,
        position_buckets=16,
        pos_att_type=["p2c", "c2p"],
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        position_biased_input=False,
        type_vocab_size=0,
        **SIZES,
    )
    return unigram("[CLS] $A [SEP]", ["[PAD]", "[CLS]", "[SEP]", "[UNK]"], "[UNK]"), BERT_TOKENS, config


def _modernbert() -> tuple[Tokenizer, dict[str, str], hf.PretrainedConfig]:
    tokenizer = byte_level("[CLS] $A [SEP]", ["[PAD]", "[UNK]", "[CLS]", "[SEP]"], split_first=True)
    config = hf.ModernBertConfig(
        vocab_size=400, max_position_embeddings=64, local_attention=16, pad_token_id=0, bos_token_id=2, eos_token_id=3,
        cls_token_id=2, sep_token_id=3, **SIZES,
    )  # fmt: skip
    return tokenizer, BERT_TOKENS, config


def _gpt2() -> tuple[Tokenizer, dict[str, str], hf.PretrainedConfig]:
    tokens = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
    config = hf.GPT2Config(
        vocab_size=400, n_positions=64, n_embd=32, n_layer=3, n_head=2, bos_token_id=0, eos_token_id=0
    )
    return byte_level(None, ["<|endoftext|>"]), tokens, config


def _llama() -> tuple[Tokenizer, dict[str, str], hf.PretrainedConfig]:
    config = hf.LlamaConfig(vocab_size=500, max_position_embeddings=64, num_key_value_heads=1, **SIZES)
    return byte_fallback(), {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}, config


def _t5() -> tuple[Tokenizer, dict[str, str], hf.PretrainedConfig]:
    config = hf.T5Config(
        vocab_size=400, d_model=32, d_kv=16, d_ff=64, num_layers=3, num_heads=2, decoder_start_token_id=0
    )
    tokens = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return unigram("$A </s>", ["<pad>", "</s>", "<unk>"], "<unk>"), tokens, config


FAMILIES = {
    "bert": lambda: _bert(lowercase=True),
    "bert-cased": lambda: _bert(lowercase=False),
    "roberta": _roberta,
    "deberta-v3": _deberta,
    "modernbert": _modernbert,
    "gpt2": _gpt2,
    "llama": _llama,
    "t5": _t5,
}


def save_family(name: str, folder: Path) -> Path:
    """A model folder as transformers writes it."""
    tokenizer, tokens, config = FAMILIES[name]()
    torch.manual_seed(0)
    hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **tokens).save_pretrained(folder)
    hf.AutoModel.from_config(config).save_pretrained(folder)
    return folder

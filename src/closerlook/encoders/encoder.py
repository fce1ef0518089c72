"""Encoder: a loaded model with its tokenizer, which computes the hidden states and pooled vectors of every layer."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch.nn.functional import pad

from closerlook.encoders.alignment import Alignment, Ints, PairWindow, Pooling, align, pool
from closerlook.encoders.loading import (
    Placement,
    choose_device,
    input_device,
    load_model,
    load_tokenizer,
    short_errors,
    window_limit,
)
from closerlook.encoders.memory import Budget, is_out_of_memory
from closerlook.encoders.source import EncoderInfo, Source, choose_dtype, resolve
from closerlook.encoders.template import parse_template
from closerlook.errors import InputError, WorkError
from closerlook.texts import Text

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

BATCH_TOKENS = {"cpu": 2048, "mps": 8192, "cuda": 32768}
"""The number of padded tokens in a batch: small batches stay in a CPU's cache, a GPU needs large ones."""

LARGE_ON_CPU = (500_000_000, 512)
"""From this many parameters on, a batch on a CPU has at most this many tokens, so that hidden states take less memory.

With one billion parameters in bfloat16, batches of 2048 tokens took 0.45 GB beyond the weights.
"""

INCIDENTAL = {"_name_or_path", "architectures", "transformers_version"}
"""Entries of a configuration that do not affect vectors, such as the path it was read from."""


@dataclass(frozen=True, eq=False)
class Encoder:
    """A loaded encoder. `Encoder.load` loads one by name; `Encoder.wrap` takes a model that is in memory already.

    loaded_fingerprint: the fingerprint of the files that it was loaded from, and the digest of its weights then.
    alignments: if given, a cache for results of `align`, for texts that are read again after the weights have changed.
    template: a text around every text that it reads, such as 'Question: {text}'. budget: the size of batches.

    >>> encoder = Encoder.load("bert-tiny")
    >>> encoder.name, encoder.info.layers, encoder.info.width, encoder.dtype
    ('bert-tiny', 2, 128, 'float32')
    """

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    device: torch.device
    info: EncoderInfo
    checkpoint: str | None = None
    seed: int | None = None
    loaded_fingerprint: tuple[str, str] | None = None
    alignments: dict[tuple[Text, ...], Alignment] | None = None
    template: str | None = None
    budget: Budget = field(default_factory=Budget)

    @classmethod
    def load(
        cls,
        name: str | Source = "bert-tiny",
        *,
        device: str = "auto",
        dtype: str = "auto",
        device_map: str | None = None,
        window: int | None = None,
        template: str | None = None,
        seed: int = 0,
        allow_pickle: bool = False,
        trust_remote_code: bool = False,
    ) -> Encoder:
        """The encoder of that name (see `resolve`), on a device and in a precision.

        The arguments are those of `extract`.

        >>> Encoder.load("bert-tiny").info.layers
        2
        """
        if isinstance(name, str):
            source = resolve(name, seed=seed, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
        else:
            source = name
        parse_template(template)
        chosen_device = choose_device(device)
        precision = choose_dtype(dtype, source.half_parameters, on_cpu=chosen_device.type == "cpu")
        tokenizer = load_tokenizer(source, trust_remote_code)
        model = load_model(source, precision, trust_remote_code, Placement(chosen_device, device_map))
        info = examine(source.name, model, tokenizer, window, source.sentence_pool)
        return cls(
            source.name,
            model,
            tokenizer,
            input_device(model) if device_map else chosen_device,
            info,
            source.revision,
            source.random_seed,
            (source.fingerprint, weights_digest(model)),
            template=template,
        )

    @classmethod
    def wrap(
        cls,
        model: PreTrainedModel | PeftModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str,
        checkpoint: str | None = None,
        window: int | None = None,
        template: str | None = None,
    ) -> Encoder:
        """An encoder from a model in memory, which stays on its device and is not copied; a head is not used.

        The tokenizer is copied, so that padding and truncation of the given one do not change.
        """
        model = model.get_base_model() if hasattr(model, "get_base_model") else model  # a PEFT model
        model = getattr(model, "base_model", model)
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"encoder {name}: its tokenizer is slow; expected a fast tokenizer, which gives subword positions"
            )
        parse_template(template)
        tokenizer = copy.deepcopy(tokenizer)
        info = examine(name, model, tokenizer, window)
        return cls(name, model, tokenizer, next(model.parameters()).device, info, checkpoint, template=template)

    @property
    def fingerprint(self) -> str:
        """Hex digest of the files it was loaded from, or of model and tokenizer if the weights have changed since."""
        weights = weights_digest(self.model)
        if self.loaded_fingerprint is not None and self.loaded_fingerprint[1] == weights:
            return self.loaded_fingerprint[0]
        rules = _tokenizer_rules(self.tokenizer.backend_tokenizer.to_str())
        config = {key: value for key, value in self.model.config.to_dict().items() if key not in INCIDENTAL}
        parts = [rules, json.dumps(config, default=str), json.dumps(weights)]
        return xxhash.xxh3_128(f"[{', '.join(parts)}]".encode()).hexdigest()

    @property
    def dtype(self) -> str:
        """The precision of its computations, such as 'float32', or of its weights if these are quantised."""
        if getattr(self.model, "is_quantized", False):
            return "int8" if getattr(self.model, "is_loaded_in_8bit", False) else "int4"
        return str(next(self.model.parameters()).dtype).removeprefix("torch.")

    @property
    def batch_tokens(self) -> int:
        """The default number of padded tokens in a batch."""
        parameters, tokens = LARGE_ON_CPU
        if self.device.type == "cpu" and self.info.parameters >= parameters:
            return tokens
        return BATCH_TOKENS.get(self.device.type, 8192)

    def align(self, texts: Sequence[Text]) -> Alignment:
        """The texts, tokenized for this encoder, with the subwords of each word."""
        template = parse_template(self.template)
        if self.alignments is None:
            return align(self.tokenizer, texts, self.info.window, template)
        key = tuple(texts)
        if key not in self.alignments:
            self.alignments[key] = align(self.tokenizer, texts, self.info.window, template)
        return self.alignments[key]

    def hidden_states(self, windows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, ...]:
        """The hidden states (windows, length, d) of each layer; layer 0 is the embedding output. Differentiable."""
        sizes = np.fromiter(map(len, windows), dtype=np.int64)
        mask = np.arange(max(1, sizes.max())) < sizes[:, None]
        ids = np.zeros(mask.shape, dtype=np.int64)  # padding is masked, so its token does not matter
        ids[mask] = np.fromiter(chain.from_iterable(windows), dtype=np.int64, count=sizes.sum())
        mask[:, 0] = True  # if all tokens are masked, the result is NaN
        _check_vocabulary(self.name, self.model, int(ids.max()))
        tokens, attention = torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))
        types = token_types(self.tokenizer, windows, mask.shape[1])
        return _states(
            self.model,
            tokens.to(self.device),
            attention.to(self.device),
            None if types is None else types.to(self.device),
        )

    def pooled(
        self, alignment: Alignment, pooling: Pooling, layers: Sequence[int], batch_tokens: int | None = None
    ) -> Iterator[tuple[Ints, list[NDArray[np.float32]]]]:
        """For each batch, the numbers (k,) of pooled vectors and, for each layer, their values (k, d).

        A vector that is pooled from windows in several batches occurs in each of them; the caller adds the values up.
        Windows go through the model in order of length, and a batch is padded to its longest. Pooling is done on the
        device, so that only one batch of hidden states exists at a time.
        """
        sizes = np.array([len(window) for window in alignment.windows])
        order = np.argsort(sizes, kind="stable")[::-1]  # longest first: if memory is too small, the first batch fails
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        by_rank = np.argsort(rank[pooling.window], kind="stable")
        entry_rank = rank[pooling.window][by_rank]
        start = 0
        while start < len(order):
            stop = batch_end(sizes[order], start, self.budget.limit(batch_tokens or self.batch_tokens))
            entries = by_rank[slice(*np.searchsorted(entry_rank, (start, stop)))]
            numbers, slot = np.unique(pooling.slot[entries], return_inverse=True)
            window = rank[pooling.window[entries]] - start
            batch = Pooling(len(numbers), window, pooling.column[entries], slot, pooling.weight[entries])
            if len(entries):
                try:
                    vectors = self._vectors([alignment.windows[i] for i in order[start:stop]], batch, layers)
                except RuntimeError as error:
                    if not is_out_of_memory(error) or stop - start == 1:
                        raise
                    self.budget.halve(int(sizes[order[start]]) * (stop - start))
                    continue
                yield numbers, vectors
            start = stop

    def _vectors(
        self, windows: Sequence[Sequence[int]], pooling: Pooling, layers: Sequence[int]
    ) -> list[NDArray[np.float32]]:
        """The pooled vectors of one batch, for each layer."""
        with _evaluating(self.model):
            states = self.hidden_states(windows)
            vectors = pool([states[layer] for layer in layers], pooling)
            bad = [layer for layer, part in zip(layers, vectors, strict=True) if not part.sum().isfinite()]
        if bad:
            raise WorkError(f"encoder {self.name} gives NaN or infinity at layer {bad[0]} in {self.dtype}")
        return [part.cpu().numpy() for part in vectors]


TRIED_TEXT = "a word"
"""The text with which an encoder is tried out."""


def examine(
    name: str,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    window: int | None,
    sentence_pool: str | None = None,
) -> EncoderInfo:
    """The info of a model, from short forward passes, one of them padded; raises if it cannot be used.

    sentence_pool: the pooling that its files state, if any.
    """
    limit = window_limit(model, tokenizer)
    minimum = tokenizer.num_special_tokens_to_add() + 4
    if window is not None and not minimum <= window <= limit:
        raise InputError(f"window {window} requested; encoder {name} reads {minimum} to {limit} tokens at a time")
    with short_errors(name, "model"):
        words = align(tokenizer, [TRIED_TEXT], limit)
        ids = torch.tensor(words.windows, device=input_device(model))
        _check_vocabulary(name, model, int(ids.max()))
        with _evaluating(model):
            states = _states(model, ids, torch.ones_like(ids))
            longer = _states(model, pad(ids, (0, 3)), pad(torch.ones_like(ids), (0, 3)))
            padded = [state[:, : ids.shape[1]] for state in longer]
            if sentence_pool is None and _is_sentence_classifier(model) and _is_causal(model, ids, states[-1]):
                sentence_pool = "last"
    if len({tuple(state.shape) for state in states}) != 1:
        raise InputError(f"encoder {name} changes length or width between layers; such encoders are not supported")
    bad = [layer for layer, pair in enumerate(zip(states, padded, strict=True)) if not _are_finite(*pair)]
    if bad:
        raise InputError(
            f"encoder {name} gives NaN or infinity at layer {bad[0]} for the text {TRIED_TEXT!r} in "
            f"{str(model.dtype).removeprefix('torch.')}; its weights may be damaged, or its training diverged"
        )
    if not torch.allclose(states[-1].float(), padded[-1].float(), atol=0.05, rtol=0.05):
        raise InputError(
            f"encoder {name} ignores the attention mask (padding changes its vectors); it is not supported"
        )
    return EncoderInfo(
        layers=len(states) - 1,
        width=states[0].shape[2],
        window=window or limit,
        has_cls=bool((words.cls >= 0).all()),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        sentence_pool=sentence_pool,
    )


def _are_finite(*states: torch.Tensor) -> bool:
    """Whether no number is NaN or infinite; kernels of torch may hide a NaN in a text without padding."""
    return all(bool(state.isfinite().all()) for state in states)


def _is_sentence_classifier(model: PreTrainedModel) -> bool:
    """Whether the configuration says that the model was saved with a head that classifies texts."""
    return any(name.endswith("ForSequenceClassification") for name in model.config.architectures or ())


def _is_causal(model: PreTrainedModel, ids: torch.Tensor, states: torch.Tensor) -> bool:
    """Whether a token's state does not depend on later tokens, as in decoders. states: (1, length, d), the last layer.

    In transformers, the head of such a classifier reads the last token: only it has seen the whole text.
    """
    longer = _states(model, torch.cat([ids, ids], dim=1), torch.ones_like(torch.cat([ids, ids], dim=1)))[-1]
    return torch.allclose(longer[:, : ids.shape[1]].float(), states.float(), atol=1e-3, rtol=1e-3)


def _check_vocabulary(name: str, model: PreTrainedModel, largest: int) -> None:
    """Raise InputError if a token is outside the embedding table; on a GPU, all later calls of torch would fail too."""
    rows = model.get_input_embeddings().num_embeddings
    if largest >= rows:
        raise InputError(
            f"encoder {name}: the tokenizer gives token {largest}, the model has {rows} tokens; they do not match"
        )


@contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Switch off dropout and gradients inside the block; afterwards the model is in its former mode."""
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)


@lru_cache(maxsize=4)
def _tokenizer_rules(serialized: str) -> str:
    """A serialized tokenizer without truncation and padding, as JSON; cached, since vocabularies are long."""
    return json.dumps(json.loads(serialized) | {"truncation": None, "padding": None})


def weights_digest(model: torch.nn.Module) -> str:
    """Hex digest of the names and values of all weights, at about 10 GB/s.

    torch's version counters of tensors cannot replace it: fused optimizers do not increase them.
    """
    digest = xxhash.xxh3_128()
    # `state_dict` of bitsandbytes 0.50 rearranges 4-bit weights on a CPU, and later vectors are wrong
    is_quantized = getattr(model, "is_quantized", False)
    weights = dict(model.named_parameters()) if is_quantized else model.state_dict()
    for key, value in sorted(weights.items()):
        digest.update(f"{key}:{value.dtype}:{tuple(value.shape)}\n".encode())
        if value.is_meta:  # on disk, where nothing changes it
            continue
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def token_types(
    tokenizer: PreTrainedTokenizerBase, windows: Sequence[Sequence[int]], length: int
) -> torch.Tensor | None:
    """(windows, length) the type of each token; None without pairs of texts, or if the model uses no types."""
    pairs = {row: window.types for row, window in enumerate(windows) if isinstance(window, PairWindow)}
    if not pairs or "token_type_ids" not in tokenizer.model_input_names:
        return None
    types = torch.zeros((len(windows), length), dtype=torch.int64)
    for row, values in pairs.items():
        types[row, : len(values)] = torch.tensor(values)
    return types


def _states(
    model: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor | None = None
) -> tuple[torch.Tensor, ...]:
    more = {} if types is None else {"token_type_ids": types}
    output = model(input_ids=ids, attention_mask=mask, output_hidden_states=True, return_dict=True, **more)
    return (*output.hidden_states[:-1], output.last_hidden_state)  # in some models, hidden_states lacks the final norm


def batch_end(sizes: Ints, start: int, tokens: int) -> int:
    """The end of the batch of windows that begins at `start`: its padded size is at most `tokens`, or it is one window.

    sizes: the lengths of all windows, descending.
    """
    return min(len(sizes), start + max(1, tokens // max(1, int(sizes[start]))))

"""An encoder ready to be asked: tokenizer and model; windows of token ids in, every layer's pooled vectors out."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch.nn.functional import pad

from closerlook.encoders.alignment import Aligned, Ints, Slots, Text, align, pool
from closerlook.encoders.loading import choose_device, load_model, load_tokenizer, one_line, window_limit
from closerlook.encoders.source import EncoderInfo, Source, choose_dtype, resolve
from closerlook.errors import InputError, WorkError

BATCH_TOKENS = {"cpu": 2048, "mps": 8192, "cuda": 32768}
"""Padded tokens in a batch: on a CPU small batches stay in cache, an accelerator wants large ones."""

INCIDENTAL = {"_name_or_path", "architectures", "transformers_version"}
"""What a configuration says of where it was read and what last saved it, on which no vector depends."""


@dataclass(frozen=True, eq=False)
class Encoder:
    """A loaded encoder. `Encoder.load` reads one; `Encoder.wrap` takes a model that is in memory already."""

    name: str
    model: Any
    tokenizer: Any
    device: torch.device
    info: EncoderInfo
    checkpoint: str | None = None
    seed: int | None = None
    read: tuple[str, str] | None = None  # fingerprint of the files it was read from, and of its weights at that time

    @classmethod
    def load(
        cls,
        name: str | Source = "bert-tiny",
        *,
        device: str = "auto",
        dtype: str = "auto",
        window: int | None = None,
        seed: int = 0,
        allow_pickle: bool = False,
        trust_remote_code: bool = False,
    ) -> Encoder:
        """The encoder of that name, or in those files (see `resolve`), on a device and in a precision.

        >>> Encoder.load("bert-tiny").info.layers
        2
        """
        if isinstance(name, str):
            source = resolve(name, seed=seed, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
        else:
            source = name
        where = choose_device(device)
        precision = getattr(torch, choose_dtype(dtype, source.half_parameters, on_cpu=where.type == "cpu"))
        tokenizer = load_tokenizer(source, trust_remote_code)
        model = load_model(source, precision, trust_remote_code).to(where)
        info = examine(source.name, model, tokenizer, window)
        read = (source.fingerprint, weights_digest(model))
        return cls(source.name, model, tokenizer, where, info, source.revision, source.random_seed, read)

    @classmethod
    def wrap(
        cls, model: Any, tokenizer: Any, *, name: str, checkpoint: str | None = None, window: int | None = None
    ) -> Encoder:
        """An encoder around a model in memory, where and as it is; of a model with a head, the part below the head.

        The tokenizer is copied, so that the caller's keeps its own padding and truncation.
        """
        model = model.get_base_model() if hasattr(model, "get_base_model") else model  # PEFT's own wrapping
        model = getattr(model, "base_model", model)
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"encoder {name}: a slow tokenizer arrived; expected a fast one, which tells where words are"
            )
        tokenizer = copy.deepcopy(tokenizer)
        info = examine(name, model, tokenizer, window)
        return cls(name, model, tokenizer, next(model.parameters()).device, info, checkpoint)

    @property
    def fingerprint(self) -> str:
        """Of the files it was read from; of its present configuration, weights and tokenizer once they were changed."""
        weights = weights_digest(self.model)
        if self.read is not None and self.read[1] == weights:
            return self.read[0]
        rules = json.loads(self.tokenizer.backend_tokenizer.to_str()) | {"truncation": None, "padding": None}
        config = {key: value for key, value in self.model.config.to_dict().items() if key not in INCIDENTAL}
        return xxhash.xxh3_128(json.dumps([rules, config, weights], default=str).encode()).hexdigest()

    @property
    def dtype(self) -> str:
        """The precision it computes in."""
        return str(next(self.model.parameters()).dtype).removeprefix("torch.")

    @property
    def batch_tokens(self) -> int:
        """How many padded tokens go into a batch unless somebody says otherwise."""
        return BATCH_TOKENS.get(self.device.type, 8192)

    def align(self, texts: Sequence[Text]) -> Aligned:
        """The texts tokenized for this encoder, every word located."""
        return align(self.tokenizer, texts, self.info.window)

    def hidden_states(self, windows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, ...]:
        """Every layer's states (windows, length, d); layer 0 is the embedding output. Differentiable."""
        sizes = np.fromiter(map(len, windows), dtype=np.int64)
        mask = np.arange(max(1, sizes.max())) < sizes[:, None]
        ids = np.zeros(mask.shape, dtype=np.int64)  # padding is masked, so any token will do for it
        ids[mask] = np.fromiter(chain.from_iterable(windows), dtype=np.int64, count=sizes.sum())
        mask[:, 0] = True  # a model that is shown nothing at all gives NaN
        _refuse_unknown(self.name, self.model, int(ids.max()))
        tokens, shown = torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))
        return _states(self.model, tokens.to(self.device), shown.to(self.device))

    def pooled(
        self, aligned: Aligned, slots: Slots, layers: Sequence[int], batch_tokens: int | None = None
    ) -> Iterator[tuple[Ints, list[NDArray[np.float32]]]]:
        """Batch by batch, slot numbers (k,) and for each layer their vectors (k, d); a slot's parts are to be added up.

        Windows go through the model in order of length, each batch padded to its longest only; pooling happens on the
        device, so that no more than one batch of hidden states exists at a time.
        """
        sizes = np.array([len(window) for window in aligned.windows])
        order = np.argsort(sizes, kind="stable")[::-1]  # longest first: what does not fit in memory fails at once
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        by_rank = np.argsort(rank[slots.window], kind="stable")
        entry_rank = rank[slots.window][by_rank]
        for start, stop in batches(sizes[order], batch_tokens or self.batch_tokens):
            entries = by_rank[slice(*np.searchsorted(entry_rank, (start, stop)))]
            if len(entries) == 0:
                continue
            numbers, slot = np.unique(slots.slot[entries], return_inverse=True)
            window = rank[slots.window[entries]] - start
            recipe = Slots(len(numbers), window, slots.column[entries], slot, slots.weight[entries])
            with _evaluating(self.model):
                states = self.hidden_states([aligned.windows[i] for i in order[start:stop]])
                vectors = pool([states[layer] for layer in layers], recipe)
                bad = [layer for layer, part in zip(layers, vectors, strict=True) if not part.sum().isfinite()]
            if bad:
                raise WorkError(f"encoder {self.name} gives NaN or infinity at layer {bad[0]} in {self.dtype}")
            yield numbers, [part.cpu().numpy() for part in vectors]


def examine(name: str, model: Any, tokenizer: Any, window: int | None) -> EncoderInfo:
    """What an extraction must know of a model, seen from two short forward passes, one of them padded."""
    limit = window_limit(model, tokenizer)
    least = tokenizer.num_special_tokens_to_add() + 4
    if window is not None and not least <= window <= limit:
        raise InputError(f"window {window} requested; encoder {name} reads {least} to {limit} tokens at a time")
    with one_line(name, "model"):
        words = align(tokenizer, ["a word"], limit)
        ids = torch.tensor(words.windows, device=next(model.parameters()).device)
        _refuse_unknown(name, model, int(ids.max()))
        with _evaluating(model):
            states = _states(model, ids, torch.ones_like(ids))
            padded = _states(model, pad(ids, (0, 3)), pad(torch.ones_like(ids), (0, 3)))[-1][:, : ids.shape[1]]
    if len({tuple(state.shape) for state in states}) != 1:
        raise InputError(f"encoder {name} changes length or width between layers; such encoders cannot be read")
    if not torch.allclose(states[-1].float(), padded.float(), atol=0.05, rtol=0.05):
        raise InputError(f"encoder {name} takes padding for text (it ignores the attention mask); it cannot be read")
    return EncoderInfo(
        layers=len(states) - 1,
        width=states[0].shape[2],
        window=window or limit,
        has_cls=bool((words.cls >= 0).all()),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )


def _refuse_unknown(name: str, model: Any, largest: int) -> None:
    """A token beyond the embedding table would crash, on a GPU beyond repair."""
    rows = model.get_input_embeddings().num_embeddings
    if largest >= rows:
        raise InputError(
            f"encoder {name}: the tokenizer gives token {largest}, the model knows {rows}; they do not match"
        )


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """No dropout and no gradients inside the block; the model is left in the mode it was in."""
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)


def weights_digest(model: Any) -> str:
    """Hex digest of every weight's name and content, at about 10 GB/s.

    torch counts changes of a tensor, but not those that its fused optimizers make: only the content tells.
    """
    digest = xxhash.xxh3_128()
    for key, value in sorted(model.state_dict().items()):
        digest.update(f"{key}:{value.dtype}:{tuple(value.shape)}\n".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _states(model: Any, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
    output = model(input_ids=ids, attention_mask=mask, output_hidden_states=True, return_dict=True)
    return (*output.hidden_states[:-1], output.last_hidden_state)  # some models leave the final norm out of the former


def batches(sizes: Ints, budget: int) -> Iterator[tuple[int, int]]:
    """Ranges of windows, longest first, whose padded size stays within the budget; at least one window each."""
    start = 0
    while start < len(sizes):
        stop = min(len(sizes), start + max(1, budget // max(1, int(sizes[start]))))
        yield start, stop
        start = stop

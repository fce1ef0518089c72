"""The accuracy of the classification head in a checkpoint of transformers, on a task with the same labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from closerlook.encoders.configuration import read_json
from closerlook.encoders.source import Source
from closerlook.tasks.task import Split, Task, Unit

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from closerlook.encoders.alignment import Alignment

HEADS: dict[Unit, str] = {"sentence": "ForSequenceClassification", "token": "ForTokenClassification"}
"""For each unit of a task that a head can label: how the names of transformers' model classes for it end."""


def has_head(source: Source, task: Task) -> bool:
    """Whether a checkpoint has a head for tasks of this unit whose labels include all labels of the task.

    The labels are those of `id2label` in config.json. Heads of adapters are not read: their files name no labels.
    """
    if source.adapter is not None or source.random_seed is not None or task.unit not in HEADS:
        return False
    config = read_json(source.folder / "config.json")
    architectures = config.get("architectures")
    named = isinstance(architectures, list) and any(str(name).endswith(HEADS[task.unit]) for name in architectures)
    return named and set(task.labels) <= set(_labels(config.get("id2label")))


def _labels(names: object) -> list[str]:
    """The names of the head's outputs, in order."""
    if not isinstance(names, dict):
        return []
    return [str(names[key]) for key in sorted(names, key=int)]


def head_scores(
    source: Source, task: Task, splits: Sequence[str], *, device: str = "auto", trust_remote_code: bool = False
) -> dict[str, tuple[float, float]]:
    """For each split, the loss (mean cross-entropy) and the accuracy of the checkpoint's own head.

    A word is labelled by its first subword, as in transformers' examples; a text longer than the window by the mean of
    the logits of its windows. Call it only if `has_head` is true.
    """
    import torch
    import transformers

    from closerlook.encoders.alignment import align
    from closerlook.encoders.loading import choose_device, load_tokenizer, short_errors, window_limit

    factory = getattr(transformers, f"AutoModel{HEADS[task.unit]}")
    with short_errors(source.name, "head"):
        model = factory.from_pretrained(
            str(source.folder),
            dtype=torch.float32,
            trust_remote_code=trust_remote_code,
            use_safetensors=not source.pickled,
        )
    model = model.to(choose_device(device)).eval()
    tokenizer = load_tokenizer(source, trust_remote_code)
    outputs = _labels(read_json(source.folder / "config.json").get("id2label"))
    columns = np.array([outputs.index(label) for label in task.labels])
    scores = {}
    for name in splits:
        split = task.split(name)
        aligned = align(tokenizer, split.texts, window_limit(model, tokenizer))
        logits = _example_logits(partial(_logits, model, tokenizer, aligned.windows), aligned, split, task.unit)
        scores[name] = _score(logits, columns[split.y])
    return scores


def _score(logits: NDArray[np.float64], y: NDArray[np.int64]) -> tuple[float, float]:
    """The mean cross-entropy and the accuracy of logits (n, outputs) for the outputs y (n,)."""
    from scipy.special import log_softmax

    loss = -log_softmax(logits, axis=1)[np.arange(len(y)), y].mean()
    return float(loss), float((logits.argmax(1) == y).mean())


def _example_logits(
    batches: Callable[[], Iterator[NDArray[np.float64]]], aligned: Alignment, split: Split, unit: Unit
) -> NDArray[np.float64]:
    """The logits (n, outputs) of the examples of a split. batches: those of the windows, batch by batch."""
    if unit == "sentence":
        windows = np.concatenate(list(batches()))
        texts = np.zeros((len(split.texts), windows.shape[1]))
        np.add.at(texts, aligned.window_text, windows)
        texts /= np.bincount(aligned.window_text, minlength=len(texts))[:, None]
        return texts[split.sentence]
    word = aligned.text_words[split.sentence] + split.positions[:, 0]
    first = aligned.word_first[word]
    window, column = aligned.token_window[first], aligned.token_column[first]
    by_window = np.argsort(window, kind="stable")
    rows: NDArray[np.float64] | None = None
    start = 0
    for logits in batches():
        own = by_window[slice(*np.searchsorted(window[by_window], (start, start + len(logits))))]
        if rows is None:
            rows = np.zeros((len(word), logits.shape[-1]))
        rows[own] = logits[window[own] - start, column[own]]
        start += len(logits)
    assert rows is not None  # noqa: S101 - a split has at least one text
    return rows


def _logits(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, windows: Sequence[Sequence[int]]
) -> Iterator[NDArray[np.float64]]:
    """The logits of the windows, batch by batch, in order."""
    import torch

    from closerlook.encoders.encoder import BATCH_TOKENS, token_types

    device = next(model.parameters()).device
    budget = BATCH_TOKENS.get(device.type, 8192)
    start = 0
    while start < len(windows):
        stop, longest = start, 0
        while stop < len(windows) and max(longest, len(windows[stop])) * (stop + 1 - start) <= budget:
            longest = max(longest, len(windows[stop]))
            stop += 1
        stop = max(stop, start + 1)
        ids, mask = _padded(windows[start:stop], getattr(model.config, "pad_token_id", None) or 0)
        inputs = {"input_ids": ids, "attention_mask": mask}
        types = token_types(tokenizer, windows[start:stop], ids.shape[1])
        if types is not None:
            inputs["token_type_ids"] = types
        with torch.inference_mode():
            logits = model(**{name: values.to(device) for name, values in inputs.items()}).logits
        yield logits.double().cpu().numpy()
        start = stop


def _padded(windows: Sequence[Sequence[int]], filler: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The token ids of windows, padded on the right, and their attention mask."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    rows = [torch.tensor(window, dtype=torch.long) for window in windows]
    return (
        pad_sequence(rows, batch_first=True, padding_value=filler),
        pad_sequence([torch.ones_like(row) for row in rows], batch_first=True),
    )

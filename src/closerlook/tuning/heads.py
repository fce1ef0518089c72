"""The accuracy of the classification head in a checkpoint of transformers, on a task with the same labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from closerlook.encoders.configuration import read_json
from closerlook.encoders.pooling import choose_pool
from closerlook.encoders.source import Source
from closerlook.errors import InputError
from closerlook.geometry.shape import self_duality
from closerlook.tasks.task import Split, Task, Unit
from closerlook.tuning.tuned import FILE, TuningResult
from closerlook.tuning.weights import HEAD_FILE

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from closerlook.encoders.alignment import Alignment
    from closerlook.representations.space import Space

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


def head_nc3(weight: torch.Tensor, X: NDArray[np.float32], y: NDArray[np.int32]) -> float | None:
    """NC3 with a linear head: how far its weights are from the label means, see `geometry.self_duality`.

    weight: (outputs, d). X: (n, d) the vectors that the head reads. y: (n,) the output for each of them; outputs that
    do not occur are excluded. None if it is not defined: for a single label, or if a training made the weights NaN.
    """
    rows = np.unique(y)
    weights = weight.detach().double().cpu().numpy()[rows]
    if len(rows) < 2 or not np.isfinite(weights).all():
        return None
    value = self_duality(X, y, weights)
    return value if math.isfinite(value) else None


def head_scores(
    source: Source, task: Task, splits: Sequence[str], *, device: str = "auto", trust_remote_code: bool = False
) -> dict[str, tuple[float, float]]:
    """For each split, the loss (mean cross-entropy) and the accuracy of the checkpoint's own head.

    A word is labelled by its first subword, as in transformers' examples; a text longer than the window by the mean of
    the logits of its windows. Call it only if `has_head` is true.
    """
    return load_head(source, task, device=device, trust_remote_code=trust_remote_code).scores(splits)


@dataclass(frozen=True, eq=False)
class CheckpointHead:
    """The model of a checkpoint with its own head. columns: (m,) the output of the head for each label of the task."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    task: Task
    columns: NDArray[np.int64]

    def scores(self, splits: Sequence[str]) -> dict[str, tuple[float, float]]:
        """For each split, the loss and the accuracy, see `head_scores`."""
        from closerlook.encoders.alignment import align
        from closerlook.encoders.loading import window_limit

        scores = {}
        for name in splits:
            split = self.task.split(name)
            aligned = align(self.tokenizer, split.texts, window_limit(self.model, self.tokenizer))
            batches = partial(_logits, self.model, self.tokenizer, aligned.windows)
            logits = _example_logits(batches, aligned, split, self.task.unit)
            scores[name] = _score(logits, self.columns[split.y])
        return scores

    def nc3(self, space: Space) -> float | None:
        """NC3 with this head, for a space of the checkpoint's last layer; None if the head does not read its vectors.

        A head that reads them is one linear layer on the vectors of the last layer: on those of all subwords for words,
        whatever their pooling, since a linear layer commutes with means; on the vector to which sentences are pooled.
        """
        import torch

        layers = [
            layer
            for name, layer in self.model.named_modules()
            if isinstance(layer, torch.nn.Linear) and not name.startswith(f"{self.model.base_model_prefix}.")
        ]
        if len(layers) != 1 or not self._reads_last_layer(layers[0], space.provenance.pool):
            return None
        return head_nc3(layers[0].weight[self.columns], space.X, space.y)

    def _reads_last_layer(self, layer: torch.nn.Linear, pool: str | None) -> bool:
        """Whether the input of a layer is the last hidden state, of all subwords or of the one that `pool` chooses."""
        import torch

        inputs: list[torch.Tensor] = []
        hook = layer.register_forward_pre_hook(lambda _, arguments: inputs.append(arguments[0]))
        ids = torch.tensor([self.tokenizer("a b c")["input_ids"]], device=self.model.device)
        with torch.inference_mode():
            last = self.model(input_ids=ids, output_hidden_states=True).hidden_states[-1]
        hook.remove()
        read = inputs[0]
        if self.task.unit == "sentence" and read.ndim == last.ndim and pool != "last":
            return False
        if read.ndim != last.ndim:
            last = last[:, {"cls": 0, "last": -1}[pool]] if pool in ("cls", "last") else last
        return read.shape == last.shape and torch.allclose(read, last, rtol=1e-4, atol=1e-5)


def saved_head_nc3(source: Source, task: Task, space: Space) -> float | None:
    """NC3 with the head that `closerlook tune` saved in a snapshot; None if there is none that reads these vectors.

    space: of the snapshot's last layer. The run must have been on the same task and with the same pooling.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = source.folder / HEAD_FILE
    if not file.is_file() or not (source.folder.parent / FILE).is_file():
        return None
    run = TuningResult.load(source.folder.parent)
    pool = choose_pool(run.settings.pool, task.unit, run.info)
    is_trained = any(snapshot.step for snapshot in run.snapshots if snapshot.weights == source.folder.name)
    if not is_trained or (run.task_hash, pool) != (task.content_hash, space.provenance.pool):
        return None
    try:
        weight = load_file(file)["weight"]
    except (OSError, SafetensorError, KeyError) as error:
        raise InputError(f"{file} cannot be read ({error}); expected the linear head of a snapshot") from None
    return head_nc3(weight, space.X, space.y)


def load_head(source: Source, task: Task, *, device: str = "auto", trust_remote_code: bool = False) -> CheckpointHead:
    """The model of a checkpoint with its own head. Call it only if `has_head` is true."""
    import torch
    import transformers

    from closerlook.encoders.loading import choose_device, load_tokenizer, short_errors

    factory = getattr(transformers, f"AutoModel{HEADS[task.unit]}")
    with short_errors(source.name, "head"):
        model = factory.from_pretrained(
            str(source.folder),
            dtype=torch.float32,
            trust_remote_code=trust_remote_code,
            use_safetensors=not source.pickled,
        )
    model = model.to(choose_device(device)).eval()
    outputs = _labels(read_json(source.folder / "config.json").get("id2label"))
    columns = np.array([outputs.index(label) for label in task.labels])
    return CheckpointHead(model, load_tokenizer(source, trust_remote_code), task, columns)


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

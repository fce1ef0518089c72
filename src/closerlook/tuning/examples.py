"""The examples of a split, located once among an encoder's subwords: batches for training, vectors for measuring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import torch
from numpy.typing import NDArray

from closerlook.encoders.alignment import Ints, Pooling
from closerlook.encoders.encoder import Encoder
from closerlook.representations.targets import is_normalized, locate_examples, normalize
from closerlook.tasks.task import VECTORS_PER_EXAMPLE, Split, Unit


@dataclass(frozen=True, eq=False)
class Batch:
    """Tokenized texts, and which subword vectors make up the vectors of their examples.

    windows: the token ids of each model input. slots: how the subword vectors are combined. normalized: the combined
    vectors are scaled to length 1.
    """

    windows: list[list[int]]
    slots: Pooling
    normalized: bool = False


class Inputs(TypedDict):
    """What the Trainer passes to the model: a batch of texts, and the labels (n,) of all their examples."""

    batch: Batch
    labels: torch.Tensor


class Examples:
    """The labelled examples of some texts of a split, ordered by text.

    It is a data set for the Trainer whose items are the positions of the texts; `collate` makes batches of them.
    y: (n,) the labels. rows: (n,) the rows of the examples in the split.
    """

    def __init__(self, encoder: Encoder, unit: Unit, split: Split, pool: str, texts: Ints | None = None) -> None:
        """texts: ascending indices of the texts to use; by default all texts that have an example."""
        used = np.unique(split.sentence) if texts is None else texts
        self.rows = np.flatnonzero(np.isin(split.sentence, used))
        self.rows = self.rows[np.argsort(split.sentence[self.rows], kind="stable")]
        self.y = split.y[self.rows]
        text = np.searchsorted(used, split.sentence[self.rows])
        self.aligned = encoder.align([split.texts[i] for i in used])
        self.slots = locate_examples(unit, split, self.aligned, pool, examples=self.rows, text=text)
        self.normalized = is_normalized(unit, pool)
        self.vectors_each = VECTORS_PER_EXAMPLE[unit]
        boundaries = np.arange(len(used) + 1)
        self._first_window = np.searchsorted(self.aligned.window_text, boundaries)
        self._first_example = np.searchsorted(text, boundaries)
        self._first_entry = np.searchsorted(self.slots.slot, self._first_example * self.vectors_each)

    def __len__(self) -> int:
        """The number of texts."""
        return len(self._first_window) - 1

    def __getitem__(self, text: int) -> int:
        """The position of the text itself; `collate` turns positions into a batch."""
        return text

    def collate(self, texts: Sequence[int]) -> Inputs:
        """The texts at these positions as one batch, and the labels of all their examples."""
        windows: list[list[int]] = []
        labels, parts, slots = [], [], 0
        for text in texts:
            first, stop = self._first_window[text : text + 2]
            start, end = self._first_example[text : text + 2]
            entries = slice(*self._first_entry[text : text + 2])
            window = self.slots.window[entries] - first + len(windows)
            slot = self.slots.slot[entries] - start * self.vectors_each + slots
            parts.append((window, self.slots.column[entries], slot, self.slots.weight[entries]))
            windows += self.aligned.windows[first:stop]
            labels.append(self.y[start:end])
            slots += int(end - start) * self.vectors_each
        window, column, slot, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
        return {
            "batch": Batch(windows, Pooling(slots, window, column, slot, weight), self.normalized),
            "labels": torch.from_numpy(np.concatenate(labels).astype(np.int64)),
        }

    def vectors(self, encoder: Encoder, layers: Sequence[int]) -> list[NDArray[np.float32]]:
        """For each layer the vectors (n, d) of all examples, equal to those of `extract`; nothing is stored."""
        vectors = [np.zeros((self.slots.n, encoder.info.width), np.float32) for _ in layers]
        for slots, parts in encoder.pooled(self.aligned, self.slots, layers):
            for layer_vectors, part in zip(vectors, parts, strict=True):
                layer_vectors[slots] += part
        vectors = [normalize(layer_vectors) for layer_vectors in vectors] if self.normalized else vectors
        return [layer_vectors.reshape(len(self.y), -1) for layer_vectors in vectors]

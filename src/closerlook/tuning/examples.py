"""A split's examples, found once among an encoder's subwords: batches to train on, and vectors to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from closerlook.encoders.alignment import Ints, Pool, Pooling
from closerlook.encoders.encoder import Encoder
from closerlook.representations.targets import VECTORS_PER_EXAMPLE, locate_examples
from closerlook.tasks.task import Split, Unit


@dataclass(frozen=True, eq=False)
class Batch:
    """Some texts as the encoder reads them, and the recipe of their examples' vectors."""

    windows: list[list[int]]
    slots: Pooling


class Examples:
    """The labelled examples of some texts of a split, text after text; as a data set, its items are the texts' numbers.

    y: (n,) their labels. rows: (n,) their rows in the split.
    """

    def __init__(self, encoder: Encoder, unit: Unit, split: Split, pool: str, texts: Ints | None = None) -> None:
        """texts: those of the split to take, ascending; by default all that have an example."""
        used = np.unique(split.sentence) if texts is None else texts
        self.rows = np.flatnonzero(np.isin(split.sentence, used))
        self.rows = self.rows[np.argsort(split.sentence[self.rows], kind="stable")]
        self.y = split.y[self.rows]
        place = np.searchsorted(used, split.sentence[self.rows])
        self.aligned = encoder.align([split.texts[i] for i in used])
        self.slots = locate_examples(unit, split, self.aligned, cast("Pool", pool), examples=self.rows, text=place)
        self.vectors_each = VECTORS_PER_EXAMPLE[unit]
        every = np.arange(len(used) + 1)
        self._first_window = np.searchsorted(self.aligned.window_text, every)
        self._first_example = np.searchsorted(place, every)
        self._first_entry = np.searchsorted(self.slots.slot, self._first_example * self.vectors_each)

    def __len__(self) -> int:
        """How many texts."""
        return len(self._first_window) - 1

    def __getitem__(self, text: int) -> int:
        """The text's number; `collate` makes batches of them."""
        return text

    def collate(self, texts: Sequence[int]) -> dict[str, Any]:
        """The texts of these numbers as a batch, and the labels of all their examples."""
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
        recipe = Pooling(slots, window, column, slot, weight)
        return {"batch": Batch(windows, recipe), "labels": torch.from_numpy(np.concatenate(labels).astype(np.int64))}

    def vectors(self, encoder: Encoder, layers: Sequence[int]) -> list[NDArray[np.float32]]:
        """For each layer the vectors (n, d) of all examples, as extraction gives them; nothing is stored."""
        found = [np.zeros((self.slots.n, encoder.info.width), np.float32) for _ in layers]
        for numbers, parts in encoder.pooled(self.aligned, self.slots, layers):
            for whole, part in zip(found, parts, strict=True):
                whole[numbers] += part
        return [whole.reshape(len(self.y), -1) for whole in found]

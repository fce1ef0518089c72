"""The spaces of two encoders on the same examples of a task."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from closerlook.encoders.source import EncoderInfo, Source, resolve
from closerlook.representations.extract import extract
from closerlook.representations.space import Space
from closerlook.representations.store import Store
from closerlook.tasks.task import Task, choose_test_split, sample_split
from closerlook.tuning.existing import CHECKPOINT, read_run
from closerlook.tuning.heads import has_head, head_scores
from closerlook.tuning.tuned import FILE as TUNED_FILE

log = logging.getLogger("closerlook.differences")

RELATED = 0.5
"""Two encoders count as versions of one model if their layer-0 vectors have at least this mean cosine similarity.

Fine-tuning changes the embeddings little (0.9 and more in our runs); encoders from different pretrainings are near 0.
"""


@dataclass(frozen=True, eq=False)
class Pair:
    """One task in two encoders. layers: (layer before, layer after) of each comparison, the last layers at the end.

    train, test: for each of these, the two spaces. test_split: the task's split that is called test here. heads: the
    accuracy of each encoder's own head on that split, NaN for an encoder that has no head with the labels of the task.
    """

    task: Task
    test_split: str
    layers: list[tuple[int, int]]
    train: list[tuple[Space, Space]]
    test: list[tuple[Space, Space]]
    heads: tuple[float, float] = (math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class Encoders:
    """The two encoders of a comparison: their files, facts and names for display."""

    sources: tuple[Source, Source]
    infos: tuple[EncoderInfo, EncoderInfo]

    @property
    def names(self) -> tuple[str, str]:
        """Two different names for display."""
        first, second = (source.name for source in self.sources)
        if first == second:
            first, second = (str(source.adapter or source.folder) for source in self.sources)
        return first, second


class Trust(NamedTuple):
    """Whether pickle files and code that come with an encoder may be used."""

    allow_pickle: bool = False
    trust_remote_code: bool = False


def find_encoder(name: str | os.PathLike[str], trust: Trust, base: Source | None = None) -> Source:
    """The files of an encoder; of the folder of a training (a Trainer's, or that of `tune`), of its last checkpoint.

    base: the encoder whose tokenizer is used if the folder has none.
    """
    text = os.fspath(name)
    folder = Path(os.path.expanduser(text))
    if folder.is_dir() and not (folder / "config.json").is_file() and _has_checkpoints(folder):
        run = read_run(folder, None if base is None else str(base.folder), **trust._asdict())
        last = run.checkpoints[-1]
        log.warning("%s holds several checkpoints; the last one is compared (step %d)", folder, last.step)
        return last.source
    return resolve(text, tokenizer=None if base is None else base.folder, **trust._asdict())


def _has_checkpoints(folder: Path) -> bool:
    return (folder / TUNED_FILE).is_file() or any(map(CHECKPOINT.search, os.listdir(folder)))


def pair_layers(infos: tuple[EncoderInfo, EncoderInfo]) -> list[tuple[int, int]]:
    """The layers that are compared: equal numbers, or with different depths those at the same share of the depth."""
    first, second = (info.layers for info in infos)
    fewest = min(first, second)
    return [(round(at * first / fewest), round(at * second / fewest)) for at in range(fewest + 1)]


def extract_pair(
    encoders: Encoders,
    task: Task,
    *,
    most: int,
    pool: str,
    seed: int,
    store: Store | str | Path | None,
    device: str,
    trust_remote_code: bool,
) -> Pair:
    """The spaces of both encoders on the same examples of a task."""
    from closerlook.encoders.encoder import Encoder

    test = choose_test_split(task)
    splits = tuple(sample_split(task, name, most, seed) for name in ("train", test))
    small = Task(task.name, task.unit, task.labels, splits)
    layers = pair_layers(encoders.infos)
    by_side: list[list[list[Space]]] = []
    for side, source in enumerate(encoders.sources):
        numbers = sorted({pair[side] for pair in layers})
        encoder = Encoder.load(source, device=device, trust_remote_code=trust_remote_code)
        spaces = extract(encoder, small, splits=["train", test], layers=numbers, pool=pool, store=store)
        by_layer = {(str(space.provenance.split), int(space.provenance.layer or 0)): space for space in spaces}
        by_side.append([[by_layer[name, pair[side]] for pair in layers] for name in ("train", test)])
    train, tested = (list(zip(by_side[0][at], by_side[1][at], strict=True)) for at in range(2))
    before, after = (head_accuracy(source, small, test, device, trust_remote_code) for source in encoders.sources)
    return Pair(small, test, layers, train, tested, (before, after))


def head_accuracy(source: Source, task: Task, split: str, device: str, trust_remote_code: bool) -> float:
    """The accuracy of an encoder's own classification head on a split; NaN without a head with the task's labels."""
    if not has_head(source, task):
        return math.nan
    _, accuracy = head_scores(source, task, [split], device=device, trust_remote_code=trust_remote_code)[split]
    return accuracy


def are_related(pairs: Sequence[Pair]) -> bool:
    """Whether the encoders are versions of one model, so that the same coordinates mean the same in both."""
    before, after = pairs[0].train[0]
    if before.d != after.d or pairs[0].layers[-1][0] != pairs[0].layers[-1][1]:
        return False
    similarities = [cosine for pair in pairs if (cosine := _mean_cosine(*pair.train[0])) is not None]
    if similarities:
        return max(similarities) >= RELATED
    return bool(np.allclose(before.X, after.X, atol=0.1 * float(np.abs(before.X).max())))


def _mean_cosine(before: Space, after: Space) -> float | None:
    """The mean cosine similarity of the rows of two centred spaces; None if all rows of one space are equal.

    Rows are equal at layer 0 if a sentence is represented by its classification token.
    """
    a, b = (space.X.astype(np.float64) - space.X.mean(axis=0, dtype=np.float64) for space in (before, after))
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    known = lengths > 1e-6 * float(np.abs(before.X).max()) * float(np.abs(after.X).max())
    return float(((a * b).sum(axis=1)[known] / lengths[known]).mean()) if known.any() else None

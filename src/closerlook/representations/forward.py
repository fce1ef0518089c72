"""The forward passes of an extraction: each distinct text once, for all layers and all tasks.

Vectors are written directly into unfinished files in the store. Every few seconds a journal records, for each finished
chunk of texts, a checksum of the rows that it filled; an interrupted extraction continues after the last intact chunk.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

import numpy as np
import xxhash

from closerlook.encoders.alignment import Alignment, Ints, Pooling
from closerlook.encoders.encoder import Encoder
from closerlook.errors import DamagedFileError, WorkError
from closerlook.progress import Progress
from closerlook.representations.atomic import set_aside
from closerlook.representations.checked_json import read_checked, write_checked
from closerlook.representations.extract import Target
from closerlook.representations.store import Store, content_key
from closerlook.representations.targets import is_normalized, locate_examples, normalize
from closerlook.representations.writer import SpaceWriter
from closerlook.tasks.task import VECTORS_PER_EXAMPLE
from closerlook.texts import Text, joined

CHUNK = 16
"""Texts are tokenized in chunks of this many characters for each token of a batch, which is about four batches.

An interrupted extraction continues at the start of a chunk.
"""

SECONDS = 2.0
"""Minimum number of seconds between two writes of the journal.

A killed process loses about this much work, or one chunk if that takes longer.
"""

Chunk = tuple[int, int]
"""A range of texts in the reading order: the first, and one past the last."""

log = logging.getLogger("closerlook")


@dataclass(frozen=True, eq=False)
class Job:
    """The work on one target: a writer for each layer, and the examples in the order in which their texts are read.

    order: (n,) numbers of examples. rank: (n,) the position of the text of each in the reading order; ascending.
    """

    target: Target
    writers: dict[int, SpaceWriter]
    order: Ints
    rank: Ints

    def examples(self, start: int, stop: int) -> tuple[Ints, Ints]:
        """The examples in texts [start, stop) of the reading order, and the position of each one's text from start."""
        part = slice(*np.searchsorted(self.rank, (start, stop)))
        return self.order[part], self.rank[part] - start


def compute(
    encoder: Encoder,
    missing: Mapping[Target, Sequence[int]],
    store: Store,
    batch_tokens: int | None,
    progress: Progress | None,
) -> None:
    """Compute every missing space and put it into the store."""
    keys = sorted(target.key(layer) for target, layers in missing.items() for layer in layers)
    with store.workspace(content_key({"spaces": keys})[:32]) as folder:
        texts, ranks = reading_order(list(missing))
        jobs = [
            _job(encoder, target, layers, rank, folder)
            for (target, layers), rank in zip(missing.items(), ranks, strict=True)
        ]
        writers = [writer for job in jobs for writer in job.writers.values()]
        resumable = not any(writer.fresh for writer in writers)
        ranges = list(chunks(texts, CHUNK * (batch_tokens or encoder.batch_tokens)))
        journal = Journal(folder / "journal.json", jobs, ranges if resumable else [])
        done, total = _count_examples(jobs, ranges[: len(journal.digests)]), _count_examples(jobs, ranges)
        for chunk, alignment in _align_chunks(encoder, texts, ranges[len(journal.digests) :]):
            for finished in _fill(encoder, jobs, alignment, chunk, batch_tokens):
                if progress:
                    progress(min(total, done + finished), total)
            journal.record(chunk)
            done += _count_examples(jobs, [chunk])
        if progress:
            progress(total, total)
        for writer in writers:
            store.commit(writer)


def _count_examples(jobs: Sequence[Job], ranges: Sequence[Chunk]) -> int:
    return sum(len(job.examples(*chunk)[0]) for job in jobs for chunk in ranges)


def _align_chunks(
    encoder: Encoder, texts: Sequence[Text], ranges: Sequence[Chunk]
) -> Iterator[tuple[Chunk, Alignment]]:
    """Each chunk with its texts tokenized and aligned; while a GPU computes, a thread prepares the next chunk."""
    if encoder.device.type == "cpu":  # the model needs every core: a thread was measured to be slower
        yield from ((chunk, encoder.align(texts[slice(*chunk)])) for chunk in ranges)
        return
    with ThreadPoolExecutor(1) as thread:
        pending = [thread.submit(encoder.align, texts[slice(*chunk)]) for chunk in ranges[:1]]
        for number, chunk in enumerate(ranges):
            alignment = pending.pop().result()
            pending += [thread.submit(encoder.align, texts[slice(*part)]) for part in ranges[number + 1 : number + 2]]
            yield chunk, alignment


def reading_order(targets: Sequence[Target]) -> tuple[list[Text], list[Ints]]:
    """The distinct texts with examples, longest first, and for each target the position of each example's text."""
    splits = [target.split for target in targets]
    used = [np.unique(split.sentence) for split in splits]
    texts = list(dict.fromkeys(split.texts[i] for split, numbers in zip(splits, used, strict=True) for i in numbers))
    texts.sort(key=lambda text: len(joined(text)), reverse=True)
    position = {text: i for i, text in enumerate(texts)}
    ranks = []
    for split, numbers in zip(splits, used, strict=True):
        rank = np.zeros(len(split.texts), dtype=np.int64)
        rank[numbers] = [position[split.texts[i]] for i in numbers]
        ranks.append(rank[split.sentence])
    return texts, ranks


def chunks(texts: Sequence[Text], characters: float) -> Iterator[Chunk]:
    """Ranges of texts with about that many characters each."""
    start = size = 0
    for i, text in enumerate(texts):
        size += len(joined(text))
        if size >= characters or i == len(texts) - 1:
            yield start, i + 1
            start, size = i + 1, 0


def _job(encoder: Encoder, target: Target, layers: Sequence[int], rank: Ints, folder: Path) -> Job:
    writers = {
        layer: SpaceWriter.open(
            folder / f"{target.key(layer)}.safetensors",
            encoder.info.width * VECTORS_PER_EXAMPLE[target.task.unit],
            y=target.split.y,
            labels=target.task.labels,
            provenance=replace(target.provenance, layer=layer),
            key=target.key(layer),
        )
        for layer in layers
    }
    order = np.argsort(rank, kind="stable")
    return Job(target, writers, order, rank[order])


def _fill(
    encoder: Encoder, jobs: Sequence[Job], alignment: Alignment, chunk: Chunk, batch_tokens: int | None
) -> Iterator[int]:
    """Compute and write the rows of one chunk; yields after each batch how many examples are done."""
    layers = sorted({layer for job in jobs for layer in job.writers})
    examples = [job.examples(*chunk)[0] for job in jobs]
    pooling = _all_pooling(jobs, alignment, *chunk)
    first_slot = np.cumsum(
        [0, *(len(rows) * VECTORS_PER_EXAMPLE[job.target.task.unit] for job, rows in zip(jobs, examples, strict=True))]
    )
    complete = len(alignment.windows) == chunk[1] - chunk[0]  # each text has one window: no vector needs two batches
    if not complete:
        for job, rows in zip(jobs, examples, strict=True):
            for writer in job.writers.values():
                writer.X[rows] = 0
    done = 0
    for numbers, vectors in encoder.pooled(alignment, pooling, layers, batch_tokens):
        for j, job in enumerate(jobs):
            part = slice(*np.searchsorted(numbers, first_slot[j : j + 2]))
            per_example = VECTORS_PER_EXAMPLE[job.target.task.unit]
            vector = numbers[part] - first_slot[j]
            rows = examples[j][vector // per_example] * per_example + vector % per_example
            for layer, writer in job.writers.items():
                X, values = writer.X.reshape(-1, encoder.info.width), vectors[layers.index(layer)][part]
                X[rows] = values if complete else X[rows] + values
            done += len(rows) // per_example
        yield done
    for job, rows in zip(jobs, examples, strict=True):
        if is_normalized(job.target.task.unit, job.target.pool):
            for writer in job.writers.values():
                writer.X[rows] = normalize(writer.X[rows])


def _all_pooling(jobs: Sequence[Job], alignment: Alignment, start: int, stop: int) -> Pooling:
    """How to pool the vectors of all jobs, job after job."""
    parts, first = [], 0
    for job in jobs:
        rows, text = job.examples(start, stop)
        target = job.target
        part = locate_examples(target.task.unit, target.split, alignment, target.pool, examples=rows, text=text)
        parts.append(replace(part, slot=part.slot + first))
        first += part.n
    window, column, slot, weight = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("window", "column", "slot", "weight")
    )
    return Pooling(first, window, column, slot, weight)


class Journal:
    """A file that lists the finished chunks, with a checksum of the rows of each; written every few seconds."""

    def __init__(self, path: Path, jobs: Sequence[Job], ranges: Sequence[Chunk]) -> None:
        """Continue the journal at that path; chunks count as finished up to the first one whose rows have changed."""
        self.path = path
        self.jobs = jobs
        self.waiting: list[Chunk] = []
        self.written = time.monotonic()
        recorded = _read_journal(path)
        intact = takewhile(lambda pair: pair[0] == _digest(jobs, *pair[1]), zip(recorded, ranges, strict=False))
        self.digests = [digest for digest, _ in intact]
        if self.digests:
            log.info("an earlier run was interrupted; continuing after %d of %d parts", len(self.digests), len(ranges))

    def record(self, chunk: Chunk) -> None:
        """Record that chunk as finished."""
        self.waiting.append(chunk)
        if time.monotonic() - self.written >= SECONDS:
            self.digests += [_digest(self.jobs, *finished) for finished in self.waiting]
            write_checked(self.path, {"chunks": self.digests})
            self.waiting, self.written = [], time.monotonic()


def _read_journal(path: Path) -> list[str]:
    """The checksums of the finished chunks; none if there is no journal. A damaged one is renamed and reported."""
    try:
        return list(map(str, read_checked(path)["chunks"]))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise WorkError(f"{path} cannot be read: {error.strerror or error}") from None
    except (DamagedFileError, KeyError, TypeError) as error:
        problem = str(error) if isinstance(error, DamagedFileError) else f"{path} lists no chunks"
        log.warning("%s; it is kept as %s, and the extraction starts again", problem, set_aside(path).name)
        return []


def _digest(jobs: Sequence[Job], start: int, stop: int) -> str:
    digest = xxhash.xxh3_128()
    for job in jobs:
        rows, _ = job.examples(start, stop)
        for writer in job.writers.values():
            digest.update(writer.X[rows].data)
    return digest.hexdigest()

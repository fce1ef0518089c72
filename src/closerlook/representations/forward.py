"""The forward passes of an extraction: each distinct text once, all layers and all tasks from the same pass.

Vectors go straight into the store's files under way. Every few seconds the journal notes, for each finished chunk of
text, a checksum of the rows that it filled, so that an interrupted extraction goes on after those that are still right.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import cast

import numpy as np
import xxhash

from closerlook.encoders.alignment import Aligned, Ints, Pool, Slots, Text
from closerlook.encoders.encoder import Encoder
from closerlook.representations.atomic import atomic_write
from closerlook.representations.draft import Draft
from closerlook.representations.extract import Progress, Target
from closerlook.representations.store import Store, content_key
from closerlook.representations.targets import VECTORS_PER_EXAMPLE, locate_examples

CHUNK = 16
"""Characters of text, for each token of a batch, that are tokenized at a time: four batches or so.

Between two such chunks an interrupted extraction can be taken up again.
"""

SECONDS = 2.0
"""How much work, at the most, is lost when the process is killed (one chunk may take longer)."""

log = logging.getLogger("closerlook")


@dataclass(frozen=True, eq=False)
class Job:
    """One wanted split: its drafts by layer, and its examples in the order in which their texts are read.

    order: (n,) examples. rank: (n,) for each of them the place of its text in the reading order, ascending.
    """

    want: Target
    drafts: dict[int, Draft]
    order: Ints
    rank: Ints

    def examples(self, start: int, stop: int) -> tuple[Ints, Ints]:
        """The examples in texts [start, stop) of the reading order, and the place of each one's text there."""
        part = slice(*np.searchsorted(self.rank, (start, stop)))
        return self.order[part], self.rank[part] - start


def compute(
    encoder: Encoder,
    missing: Mapping[Target, Sequence[int]],
    store: Store,
    batch_tokens: int | None,
    progress: Progress | None,
) -> None:
    """Every missing space computed and put into the store."""
    keys = sorted(want.key(layer) for want, layers in missing.items() for layer in layers)
    with store.workspace(content_key({"spaces": keys})[:32]) as folder:
        texts, ranks = reading_order(list(missing))
        jobs = [
            _job(encoder, want, layers, rank, folder)
            for (want, layers), rank in zip(missing.items(), ranks, strict=True)
        ]
        resumable = all(not draft.fresh for job in jobs for draft in job.drafts.values())
        parts = list(chunks(texts, CHUNK * (batch_tokens or encoder.batch_tokens)))
        journal = Journal(folder / "journal.json", jobs, parts if resumable else [])
        done, total = _examples(jobs, parts[: len(journal.digests)]), _examples(jobs, parts)
        for chunk, aligned in _ahead(encoder, texts, parts[len(journal.digests) :]):
            for finished in _fill(encoder, jobs, aligned, chunk, batch_tokens):
                if progress:
                    progress(min(total, done + finished), total)
            journal.note(chunk)
            done += _examples(jobs, [chunk])
        if progress:
            progress(total, total)
        for draft in [draft for job in jobs for draft in job.drafts.values()]:
            store.commit(draft)


def _examples(jobs: Sequence[Job], parts: Sequence[tuple[int, int]]) -> int:
    return sum(len(job.examples(*chunk)[0]) for job in jobs for chunk in parts)


def _ahead(
    encoder: Encoder, texts: Sequence[Text], parts: Sequence[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], Aligned]]:
    """Each chunk with its texts aligned; beside an accelerator, the next one is aligned meanwhile."""
    if encoder.device.type == "cpu":  # where the model needs every core itself: measured, it is slower ahead
        yield from ((chunk, encoder.align(texts[slice(*chunk)])) for chunk in parts)
        return
    with ThreadPoolExecutor(1) as aside:
        aligned = [aside.submit(encoder.align, texts[slice(*chunk)]) for chunk in parts[:1]]
        for number, chunk in enumerate(parts):
            ready = aligned.pop().result()
            aligned += [aside.submit(encoder.align, texts[slice(*part)]) for part in parts[number + 1 : number + 2]]
            yield chunk, ready


def reading_order(wanted: Sequence[Target]) -> tuple[list[Text], list[Ints]]:
    """The distinct texts that hold an example, longest first, and for each split the place of every example's text."""
    used = [np.unique(want.split.sentence) for want in wanted]
    texts = list(dict.fromkeys(want.split.texts[i] for want, those in zip(wanted, used, strict=True) for i in those))
    texts.sort(key=_characters, reverse=True)
    place = {text: i for i, text in enumerate(texts)}
    ranks = []
    for want, those in zip(wanted, used, strict=True):
        rank = np.zeros(len(want.split.texts), dtype=np.int64)
        rank[those] = [place[want.split.texts[i]] for i in those]
        ranks.append(rank[want.split.sentence])
    return texts, ranks


def chunks(texts: Sequence[Text], characters: float) -> Iterator[tuple[int, int]]:
    """Ranges of texts of about that many characters each."""
    start = size = 0
    for i, text in enumerate(texts):
        size += _characters(text)
        if size >= characters or i == len(texts) - 1:
            yield start, i + 1
            start, size = i + 1, 0


def _characters(text: Text) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text)) + len(text) - 1


def _job(encoder: Encoder, want: Target, layers: Sequence[int], rank: Ints, folder: Path) -> Job:
    drafts = {
        layer: Draft.open(
            folder / f"{want.key(layer)}.safetensors",
            encoder.info.width * VECTORS_PER_EXAMPLE[want.task.unit],
            y=want.split.y,
            labels=want.task.labels,
            provenance=replace(want.provenance, layer=layer),
            key=want.key(layer),
        )
        for layer in layers
    }
    order = np.argsort(rank, kind="stable")
    return Job(want, drafts, order, rank[order])


def _fill(
    encoder: Encoder, jobs: Sequence[Job], aligned: Aligned, chunk: tuple[int, int], batch_tokens: int | None
) -> Iterator[int]:
    """The rows of one chunk computed and written; yields how many examples are done, batch by batch."""
    layers = sorted({layer for job in jobs for layer in job.drafts})
    examples = [job.examples(*chunk)[0] for job in jobs]
    slots = _all_slots(jobs, aligned, *chunk)
    first_slot = np.cumsum(
        [0, *(len(rows) * VECTORS_PER_EXAMPLE[job.want.task.unit] for job, rows in zip(jobs, examples, strict=True))]
    )
    whole = len(aligned.windows) == chunk[1] - chunk[0]  # every text in one window, so every vector in one batch
    if not whole:
        for job, rows in zip(jobs, examples, strict=True):
            for draft in job.drafts.values():
                draft.X[rows] = 0
    done = 0
    for numbers, vectors in encoder.pooled(aligned, slots, layers, batch_tokens):
        for j, job in enumerate(jobs):
            part = slice(*np.searchsorted(numbers, first_slot[j : j + 2]))
            per_example = VECTORS_PER_EXAMPLE[job.want.task.unit]
            place = numbers[part] - first_slot[j]
            rows = examples[j][place // per_example] * per_example + place % per_example
            for layer, draft in job.drafts.items():
                X, found = draft.X.reshape(-1, encoder.info.width), vectors[layers.index(layer)][part]
                X[rows] = found if whole else X[rows] + found
            done += len(rows) // per_example
        yield done


def _all_slots(jobs: Sequence[Job], aligned: Aligned, start: int, stop: int) -> Slots:
    """One recipe for the vectors of all jobs, job after job."""
    parts, first = [], 0
    for job in jobs:
        rows, text = job.examples(start, stop)
        want = job.want
        part = locate_examples(want.task.unit, want.split, aligned, cast("Pool", want.pool), examples=rows, text=text)
        parts.append(replace(part, slot=part.slot + first))
        first += part.n
    window, column, slot, weight = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("window", "column", "slot", "weight")
    )
    return Slots(first, window, column, slot, weight)


class Journal:
    """Which chunks are done, each vouched for by a checksum of its rows; written every few seconds."""

    def __init__(self, path: Path, jobs: Sequence[Job], parts: Sequence[tuple[int, int]]) -> None:
        """The journal at that path, as far as the rows in the drafts still are what it says of these chunks."""
        self.path = path
        self.jobs = jobs
        self.waiting: list[tuple[int, int]] = []
        self.written = time.monotonic()
        noted = _read_journal(path) if parts else []
        sound = takewhile(lambda pair: pair[0] == _digest(jobs, *pair[1]), zip(noted, parts, strict=False))
        self.digests = [digest for digest, _ in sound]
        if self.digests:
            log.info("an earlier run was interrupted; going on after %d of %d parts", len(self.digests), len(parts))

    def note(self, chunk: tuple[int, int]) -> None:
        """That chunk put down as done."""
        self.waiting.append(chunk)
        if time.monotonic() - self.written >= SECONDS:
            self.digests += [_digest(self.jobs, *finished) for finished in self.waiting]
            with atomic_write(self.path) as stream:
                stream.write(json.dumps(self.digests).encode())
            self.waiting, self.written = [], time.monotonic()


def _read_journal(path: Path) -> list[str]:
    try:
        return [str(digest) for digest in json.loads(path.read_bytes())]
    except (OSError, ValueError, TypeError):
        return []


def _digest(jobs: Sequence[Job], start: int, stop: int) -> str:
    digest = xxhash.xxh3_128()
    for job in jobs:
        rows, _ = job.examples(start, stop)
        for draft in job.drafts.values():
            digest.update(draft.X[rows].data)
    return digest.hexdigest()

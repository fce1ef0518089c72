"""Task x Encoder -> one Space per layer, through the store."""

from __future__ import annotations

import logging
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from closerlook.encoders.source import EMBEDDED, LARGE, EncoderInfo, Source, choose_dtype, resolve
from closerlook.errors import InputError, WorkError
from closerlook.representations.space import Provenance, Space
from closerlook.representations.store import Store, content_key
from closerlook.tasks import load_task
from closerlook.tasks.task import Split, Task, Unit, split_order
from closerlook.version import __version__

if TYPE_CHECKING:  # torch is loaded only where something is not in the store yet
    from closerlook.encoders.encoder import Encoder

Progress = Callable[[int, int], None]
"""Called with examples done and examples in all."""

log = logging.getLogger("closerlook")


@dataclass(frozen=True, eq=False)
class Target:
    """One split of one task, and how it is to be pooled; a space of it for each layer."""

    task: Task
    split: Split
    pool: str
    provenance: Provenance
    split_hash: str

    def key(self, layer: int) -> str:
        """The address of that layer's space: a hash of all that its vectors and labels depend on, names left out."""
        made_from = self.provenance
        return _key(
            made_from.weights, made_from.dtype, made_from.window, split=self.split_hash, pool=self.pool, layer=layer
        )


def _key(weights: str | None, dtype: str | None, window: int | None, *, split: str, pool: str, layer: int) -> str:
    """split: its hash."""
    return content_key(
        {"weights": weights, "dtype": dtype, "window": window, "split": split, "pool": pool, "layer": layer}
    )


def space_key(weights: str, dtype: str, info: EncoderInfo, task: Task, split: str, *, pool: str, layer: int) -> str:
    """The store's address of a space of an encoder with those weights, by whatever way they came about."""
    chosen = choose_pool(pool, task.unit, has_cls=info.has_cls)
    return _key(weights, dtype, info.window, split=_split_hash(task, split), pool=chosen, layer=layer)


@cache
def _split_hash(task: Task, split: str) -> str:
    return task.split_hash(task.split(split))


def extract(
    encoder: str | Path | Encoder = EMBEDDED,
    task: str | Path | Task | Sequence[str | Path | Task] = "toy-pos",
    *,
    splits: str | Sequence[str] = "train",
    layers: str | int | Iterable[int] = "all",
    pool: str = "auto",
    data: str | Path | None = None,
    store: Store | str | Path | None = None,
    device: str = "auto",
    dtype: str = "auto",
    window: int | None = None,
    batch_tokens: int | None = None,
    seed: int = 0,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    progress: Progress | None = None,
) -> tuple[Space, ...]:
    """The spaces of the encoder's layers for a task, in order of task, split and layer; taken from the store if there.

    encoder: a name (see `closerlook.Encoder`) or a loaded one. task: a name, a path or a Task; several share one
    forward pass over each distinct text. splits: one name, several, or 'all'. layers: 'all', 'last', a number or several,
    or '0,2-4'; 0 is the embedding output. pool: 'mean', 'first' or 'last' subword; for sentences 'cls' or 'mean';
    'auto' is mean, and cls for sentences where the encoder has such a token. window: tokens read at a time, if fewer
    than the encoder can; longer texts are read in overlapping windows. An interrupted call goes on where it stopped.

    >>> [space.X.shape for space in extract("bert-tiny", "toy-question", splits="test", layers="last")]
    [(86, 128)]
    """
    tasks = load_tasks(task, data)
    encoder = os.fspath(encoder) if isinstance(encoder, os.PathLike) else encoder
    if not isinstance(encoder, str) and (device, dtype, window) != ("auto", "auto", None):
        raise InputError("device, dtype or window given with a loaded encoder; give them to Encoder.load instead")
    asked = _asked(encoder, device, dtype, seed=seed, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
    kept = store if isinstance(store, Store) else Store(store)
    info = asked.info(kept, window)
    chosen = choose_layers(layers, info.layers, asked.provenance.encoder or "")
    wanted = _all_wanted(asked.provenance, info, tasks, splits, pool)
    found = {want.key(layer): kept.get(want.key(layer)) for want in wanted for layer in chosen}
    log.info(
        "%d of %d spaces are in the store %s", sum(space is not None for space in found.values()), len(found), kept.root
    )
    once = {want.key(0): want for want in wanted}.values()
    missing = {want: [layer for layer in chosen if found[want.key(layer)] is None] for want in once}
    missing = {want: absent for want, absent in missing.items() if absent}
    if missing:
        import torch

        from closerlook.representations.forward import compute

        loaded = asked.loaded(window)
        log.info("%s", describe_encoder(loaded))
        try:
            compute(loaded, missing, kept, batch_tokens, progress)
        except torch.OutOfMemoryError:
            raise WorkError(
                f"{loaded.device} is out of memory; pass a smaller --batch-tokens, or --device cpu"
            ) from None
        for key in [want.key(layer) for want, absent in missing.items() for layer in absent]:
            found[key] = kept.get(key)
    return tuple(_named(found[want.key(layer)], want, layer) for want in wanted for layer in chosen)


def fetch_spaces(
    known: Provenance,
    info: EncoderInfo,
    task: str | Path | Task | Sequence[str | Path | Task],
    *,
    splits: str | Sequence[str] = "train",
    layers: str | int | Iterable[int] = "all",
    pool: str = "auto",
    data: str | Path | None = None,
    store: Store | str | Path | None = None,
) -> tuple[Space, ...]:
    """The spaces that `extract` gave for an encoder, from the store alone: neither its files nor torch are needed.

    known: its name, fingerprint (`weights`) and precision (`dtype`). info: layers, width, window, special token.
    """
    kept = store if isinstance(store, Store) else Store(store)
    chosen = choose_layers(layers, info.layers, known.encoder or "")
    wanted = _all_wanted(known, info, load_tasks(task, data), splits, pool)
    found = [(kept.get(want.key(layer)), want, layer) for want in wanted for layer in chosen]
    missing = [(want, layer) for space, want, layer in found if space is None]
    if missing:
        want, layer = missing[0]
        what = f"{known.encoder} {known.checkpoint or known.weights}, {want.task.name}/{want.split.name}, layer {layer}"
        raise WorkError(f"{len(missing)} of {len(found)} spaces are not in the store {kept.root} ({what})")
    return tuple(_named(space, want, layer) for space, want, layer in found)


def choose_layers(layers: str | int | Iterable[int], last: int, encoder: str) -> list[int]:
    """The layer numbers asked for, in ascending order.

    >>> choose_layers("0,2-4", 12, "bert-base")
    [0, 2, 3, 4]
    """
    if isinstance(layers, str) and layers in {"all", "last"}:
        return list(range(last + 1)) if layers == "all" else [last]
    try:
        ranges = _ranges(layers)
    except (ValueError, TypeError):
        raise InputError(f"layers {layers!r} requested; expected all, last, or numbers such as 0,2-4") from None
    wrong = next((end for ends in ranges for end in ends if not 0 <= end <= last), None)
    if wrong is not None:
        raise InputError(f"layer {wrong} requested; {encoder} has layers 0 to {last}")
    chosen = {layer for first, end in ranges for layer in range(first, end + 1)}
    if not chosen:
        raise InputError(f"no layer requested; {encoder} has layers 0 to {last}")
    return sorted(chosen)


def _ranges(layers: str | int | Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of layers."""
    if isinstance(layers, str):
        parts = [part.partition("-") for part in layers.split(",")]
        return [(int(first), int(end or first)) for first, _, end in parts]
    numbers = layers if isinstance(layers, Iterable) else [layers]
    return [(operator.index(number),) * 2 for number in numbers]


def choose_pool(pool: str, unit: Unit, *, has_cls: bool) -> str:
    """How subwords become one vector, see `extract`."""
    allowed = ("cls", "mean") if unit == "sentence" else ("mean", "first", "last")
    if pool == "auto":
        return "cls" if unit == "sentence" and has_cls else "mean"
    if pool not in allowed:
        raise InputError(f"pool {pool!r} requested; a {unit} task takes auto, {', '.join(allowed)}")
    if pool == "cls" and not has_cls:
        raise InputError("pool cls requested; this encoder has no classification token, use mean")
    return pool


def describe_encoder(encoder: Encoder) -> str:
    """One line on a loaded encoder and how it computes."""
    info, parameters = encoder.info, sum(p.numel() for p in encoder.model.parameters())
    return (
        f"encoder {encoder.name}: {info.layers} layers × {info.width}, {parameters / 1e6:.1f} M parameters, "
        f"{encoder.device}, {encoder.dtype}, window {info.window}"
    )


@dataclass
class _Asked:
    """The encoder asked for: loaded only when needed, since a store hit must not wait for torch."""

    provenance: Provenance
    source: Source | None
    encoder: Encoder | None
    device: str
    trust_remote_code: bool

    def info(self, store: Store, window: int | None) -> EncoderInfo:
        """What must be known of it; remembered in the store after the first time."""
        if self.encoder is not None:
            return self.encoder.info
        info = self.remembered(store, window)
        if info is None:
            info = self.loaded(window).info
            store.remember(self._facts_key(window), info)
        return info

    def remembered(self, store: Store, window: int | None) -> EncoderInfo | None:
        """What the store knows of it."""
        return store.info(self._facts_key(window))

    def _facts_key(self, window: int | None) -> str:
        return content_key({"facts": self.provenance.weights, "window": window})

    def loaded(self, window: int | None) -> Encoder:
        """The encoder itself."""
        if self.encoder is None:
            from closerlook.encoders.encoder import Encoder

            assert self.source is not None  # noqa: S101 - for mypy: either an encoder or a source is given
            self.encoder = Encoder.load(
                self.source,
                device=self.device,
                dtype=self.provenance.dtype or "auto",
                window=window,
                trust_remote_code=self.trust_remote_code,
            )
        return self.encoder


def _asked(
    encoder: str | Encoder, device: str, dtype: str, *, seed: int, allow_pickle: bool, trust_remote_code: bool
) -> _Asked:
    if not isinstance(encoder, str):
        known = Provenance(
            encoder=encoder.name,
            weights=encoder.fingerprint,
            checkpoint=encoder.checkpoint,
            seed=encoder.seed,
            dtype=encoder.dtype,
        )
        return _Asked(known, None, encoder, device, trust_remote_code)
    source = resolve(encoder, seed=seed, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
    known = Provenance(
        encoder=source.name,
        weights=source.fingerprint,
        checkpoint=source.revision,
        seed=source.random_seed,
        dtype=dtype_for(source, dtype, device),
    )
    return _Asked(known, source, None, device, trust_remote_code)


def encoder_info(source: Source, store: Store, *, device: str = "auto") -> EncoderInfo:
    """What must be known of an encoder to plan with it: from the store, else it is loaded; nothing is written."""
    known = Provenance(encoder=source.name, weights=source.fingerprint, dtype=dtype_for(source, "auto", device))
    asked = _Asked(known, source, None, device, trust_remote_code=False)
    return asked.remembered(store, None) or asked.loaded(None).info


def dtype_for(source: Source, dtype: str, device: str) -> str:
    """The precision that an encoder is read in where that was asked for."""
    return choose_dtype(dtype, source.half_parameters, on_cpu=_on_cpu(source, device))


def _on_cpu(source: Source, device: str) -> bool:
    """Whether a large encoder will run on a CPU; for others it makes no difference, and torch is not loaded to see."""
    if source.half_parameters < LARGE:
        return True
    from closerlook.encoders.loading import choose_device

    return choose_device(device).type == "cpu"


@cache
def library_versions() -> dict[str, str]:
    """Of the code that computes; looking them up takes longer than a store hit, so it is done once."""
    return {"closerlook": __version__} | {
        name: version(name) for name in ("torch", "transformers", "tokenizers", "numpy")
    }


def _wanted(known: Provenance, info: EncoderInfo, task: Task, split: Split, pool: str) -> Target:
    chosen = choose_pool(pool, task.unit, has_cls=info.has_cls)
    described = replace(
        known,
        task=task.name,
        task_hash=task.content_hash,
        split=split.name,
        pool=chosen,
        window=info.window,
        versions=dict(library_versions()),
    )
    return Target(task, split, chosen, described, _split_hash(task, split.name))


def load_tasks(task: str | Path | Task | Sequence[str | Path | Task], data: str | Path | None = None) -> list[Task]:
    """The tasks behind names, paths or Tasks, one or several."""
    several = [task] if isinstance(task, str | os.PathLike | Task) else task
    tasks = [one if isinstance(one, Task) else load_task(os.fspath(one), data) for one in several]
    if not tasks:
        raise InputError("no task arrived; expected a name, a path or a Task")
    return tasks


def _all_wanted(
    known: Provenance, info: EncoderInfo, tasks: Sequence[Task], splits: str | Sequence[str], pool: str
) -> list[Target]:
    return [_wanted(known, info, one, part, pool) for one in tasks for part in choose_splits(one, splits)]


def choose_splits(task: Task, splits: str | Sequence[str]) -> tuple[Split, ...]:
    """The requested splits of a task, always in the order of `split_order`; 'all' requests every split it has."""
    available = [split.name for split in task.splits]
    requested = available if splits == "all" else [splits] if isinstance(splits, str) else splits
    if not requested:
        raise InputError(f"no split requested; task {task.name} has {', '.join(available)}")
    return tuple(task.split(name) for name in sorted(set(requested), key=split_order))


def _named(space: Space | None, want: Target, layer: int) -> Space:
    """The space under the names of this request: the store knows content, not what people call it."""
    if space is None:
        raise WorkError(f"the space of {want.task.name} at layer {layer} was damaged on disk as soon as it was written")
    names = want.provenance
    described = replace(
        space.provenance,
        encoder=names.encoder,
        checkpoint=names.checkpoint,
        seed=names.seed,
        task=names.task,
        task_hash=names.task_hash,
        split=names.split,
    )
    return Space(space.X, space.y, space.labels, described, want.task.words(want.split))

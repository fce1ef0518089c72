"""Compute the vectors of a task's examples at the layers of an encoder.

The labelled vectors of one split of a task at one layer are called a space. Spaces that are already in the store are
read from there.
"""

from __future__ import annotations

import logging
import operator
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from closerlook.encoders.pooling import choose_pool
from closerlook.encoders.source import EMBEDDED, EncoderInfo
from closerlook.errors import InputError, WorkError
from closerlook.progress import Progress, progress_bar
from closerlook.representations.requested import LoadingOptions, request_encoder
from closerlook.representations.space import Provenance, Space
from closerlook.representations.spaces import Spaces
from closerlook.representations.store import Store, content_key, open_store
from closerlook.tasks import load_task
from closerlook.tasks.task import Split, Task, split_order
from closerlook.version import __version__

if TYPE_CHECKING:  # torch is imported only if a space must be computed
    from closerlook.encoders.encoder import Encoder

log = logging.getLogger("closerlook")


@dataclass(frozen=True, eq=False)
class Target:
    """A split of a task whose vectors are requested, and how they are pooled; each layer gives one space.

    pool: how subwords become one vector, see `extract`. provenance: the origin of these spaces; its layer is not set.
    split_hash: the hash of the content of the split.
    """

    task: Task
    split: Split
    pool: str
    provenance: Provenance
    split_hash: str

    def key(self, layer: int) -> str:
        """The key of the space at this layer in the store: a hash of all that its vectors and labels depend on.

        The names of encoder, task and split are not part of the key, so a new name does not cause a new computation.
        """
        provenance = self.provenance
        return _key(
            provenance.weights,
            provenance.dtype,
            provenance.window,
            provenance.template,
            split=self.split_hash,
            pool=self.pool,
            layer=layer,
        )


def _key(
    fingerprint: str | None,
    dtype: str | None,
    window: int | None,
    template: str | None,
    *,
    split: str,
    pool: str,
    layer: int,
) -> str:
    """The key of a space in the store. fingerprint: the hash of the encoder's weights. split: the hash of the split."""
    around = {} if template is None else {"template": template}
    content = {"weights": fingerprint, "dtype": dtype, "window": window, "split": split, "pool": pool, "layer": layer}
    return content_key({**content, **around})


def space_key(
    fingerprint: str,
    dtype: str,
    info: EncoderInfo,
    task: Task,
    split: str,
    *,
    pool: str,
    layer: int,
    template: str | None = None,
) -> str:
    """The key of a space in the store. fingerprint: the hash of the encoder's weights, pretrained or fine-tuned."""
    resolved = choose_pool(pool, task.unit, info)
    return _key(fingerprint, dtype, info.window, template, split=_split_hash(task, split), pool=resolved, layer=layer)


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
    device_map: str | None = None,
    window: int | None = None,
    template: str | None = None,
    batch_tokens: int | None = None,
    seed: int = 0,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    progress: Progress | None = None,
) -> Spaces:
    """One space (labelled vectors) for each task, split and layer; spaces in the store are not computed again.

    The spaces are in the order of the given tasks; for each task, they are sorted by split (train, dev, test, others by
    name), then by layer. They are also found by name: `spaces["test"]` or `spaces.test` if there is one layer,
    `spaces["test", 2]` for one of several. If the call is interrupted, the next call with the same arguments continues
    where it stopped.

    encoder: a name (see `closerlook.Encoder`) or a loaded encoder.
    task: a name, a path or a Task, or several of them; each distinct text goes through the encoder only once.
    splits: the name of a split, several names, or 'all'.
    layers: 'all', 'last', a number, several numbers, or a string such as '0,2-4'; layer 0 is the embedding output.
    pool: how subwords become one vector: 'mean', 'first' or 'last' for tokens, spans and pairs ('auto' is 'mean');
    'cls', 'mean', 'weighted_mean' (weights are positions) or 'last' (the last token) for sentences. '+special' after a
    mean includes special tokens, '+normalized' scales vectors to length 1, at every layer. 'auto' for sentences is what
    the encoder's files state (sentence-transformers; 'last' for decoders that are classifiers), else 'cls' if the
    tokenizer adds a classification token, else 'mean'.
    data: the folder with downloaded corpora. store: the folder in which computed spaces are kept.
    device: 'auto', 'cuda', 'cuda:N', 'mps' or 'cpu'.
    dtype: the precision: 'float32', 'float16', 'bfloat16', or 'int8' and 'int4', which quantise the weights with
    bitsandbytes; 'auto' is float32, or bfloat16 for large 16-bit models on a GPU.
    device_map: 'auto' spreads the model over all GPUs, then memory, then disk; layers on disk are read one by one, as
    they are needed. None: the model is on one device.
    window: the maximum number of tokens per model input, by default the model's own limit; longer texts are read in
    overlapping windows.
    template: a text around every text of the task, with {text} at its place, such as 'Question: {text}'. Words are
    found inside it; the vector of a sentence is pooled over the whole of it.
    batch_tokens: the maximum number of tokens, with padding, in one forward pass; halved when memory runs out.
    seed: the seed from which the weights of an encoder `random:NAME` are drawn.
    allow_pickle: read weights from pickle files, which can run code.
    trust_remote_code: run the code that comes with an encoder.
    progress: called with the number of examples done and the total.

    >>> [space.X.shape for space in extract("bert-tiny", "toy-question", splits="test", layers="last")]
    [(86, 128)]
    """
    tasks = load_tasks(task, data)
    encoder = os.fspath(encoder) if isinstance(encoder, os.PathLike) else encoder
    options = LoadingOptions(device, dtype, device_map, template, trust_remote_code)
    if not isinstance(encoder, str) and (replace(options, trust_remote_code=False), window) != (LoadingOptions(), None):
        raise InputError(
            "device, dtype, device_map, window or template given with a loaded encoder; give them to Encoder.load"
        )
    request = request_encoder(encoder, options, seed=seed, allow_pickle=allow_pickle)
    store = open_store(store)
    info = request.info(store, window)
    numbers = choose_layers(layers, info.layers, request.provenance.encoder or "")
    targets = _all_targets(request.provenance, info, tasks, splits, pool)
    spaces = {target.key(layer): store.get(target.key(layer)) for target in targets for layer in numbers}
    present = sum(space is not None for space in spaces.values())
    log.info("%d of %d spaces are in the store %s", present, len(spaces), store.root)
    distinct = {target.key(0): target for target in targets}.values()
    missing = {target: [layer for layer in numbers if spaces[target.key(layer)] is None] for target in distinct}
    missing = {target: absent for target, absent in missing.items() if absent}
    if missing:
        with progress_bar("examples", progress) as show:
            _compute(request.load(window), missing, store, batch_tokens, show)
        for key in [target.key(layer) for target, absent in missing.items() for layer in absent]:
            spaces[key] = store.get(key)
    return Spaces(_with_names(spaces[target.key(layer)], target, layer) for target in targets for layer in numbers)


def _compute(
    encoder: Encoder,
    missing: dict[Target, list[int]],
    store: Store,
    batch_tokens: int | None,
    progress: Progress | None,
) -> None:
    """Compute the missing layers of each target and write their spaces to the store."""
    from closerlook.encoders.memory import is_out_of_memory
    from closerlook.representations.forward import compute

    log.info("%s", describe_encoder(encoder))
    try:
        compute(encoder, missing, store, batch_tokens, progress)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise WorkError(
            f"{encoder.device} is out of memory even with one text in a batch; use a smaller window, a dtype of fewer "
            "bits, device_map auto, or device cpu"
        ) from None


def fetch_spaces(
    provenance: Provenance,
    info: EncoderInfo,
    task: str | Path | Task | Sequence[str | Path | Task],
    *,
    splits: str | Sequence[str] = "train",
    layers: str | int | Iterable[int] = "all",
    pool: str = "auto",
    data: str | Path | None = None,
    store: Store | str | Path | None = None,
) -> Spaces:
    """Spaces that `extract` or fine-tuning stored earlier; needs neither the encoder's files nor torch.

    provenance: the encoder's name, the fingerprint of its weights (`weights`) and its precision (`dtype`). The order of
    the spaces and the other arguments are the same as for `extract`.
    """
    store = open_store(store)
    numbers = choose_layers(layers, info.layers, provenance.encoder or "")
    targets = _all_targets(provenance, info, load_tasks(task, data), splits, pool)
    results = [(store.get(target.key(layer)), target, layer) for target in targets for layer in numbers]
    missing = [(target, layer) for space, target, layer in results if space is None]
    if missing:
        target, layer = missing[0]
        weights = provenance.checkpoint or provenance.weights
        first = f"{provenance.encoder} {weights}, {target.task.name}/{target.split.name}"
        raise WorkError(
            f"{len(missing)} of {len(results)} spaces are not in the store {store.root} ({first}, layer {layer})"
        )
    return Spaces(_with_names(space, target, layer) for space, target, layer in results)


def choose_layers(layers: str | int | Iterable[int], last: int, encoder: str) -> list[int]:
    """The requested layer numbers, in ascending order.

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
    reversed_range = next((f"{first}-{end}" for first, end in ranges if first > end), None)
    if reversed_range is not None:
        raise InputError(f"layers {layers!r} requested; {reversed_range} is reversed, write the lower number first")
    chosen = {layer for first, end in ranges for layer in range(first, end + 1)}
    if not chosen:
        raise InputError(f"no layer requested; {encoder} has layers 0 to {last}")
    return sorted(chosen)


def _ranges(layers: str | int | Iterable[int]) -> list[tuple[int, int]]:
    """The first and the last layer of each requested range."""
    if isinstance(layers, str):
        parts = [part.partition("-") for part in layers.split(",")]
        return [(int(first), int(end or first)) for first, _, end in parts]
    numbers = layers if isinstance(layers, Iterable) else [layers]
    return [(operator.index(number),) * 2 for number in numbers]


def describe_encoder(encoder: Encoder) -> str:
    """One line that describes a loaded encoder: its size, device, precision and window."""
    info, parameters = encoder.info, sum(p.numel() for p in encoder.model.parameters())
    return (
        f"encoder {encoder.name}: {info.layers} layers × {info.width}, {parameters / 1e6:.1f} M parameters, "
        f"{encoder.device}, {encoder.dtype}, window {info.window}"
    )


@cache
def library_versions() -> dict[str, str]:
    """The versions of the libraries that compute vectors; cached, since a lookup takes longer than reading a space."""
    return {"closerlook": __version__} | {
        name: version(name) for name in ("torch", "transformers", "tokenizers", "numpy")
    }


def load_tasks(task: str | Path | Task | Sequence[str | Path | Task], data: str | Path | None = None) -> list[Task]:
    """Load one or several tasks, each given as a name, a path or a Task."""
    given = [task] if isinstance(task, str | os.PathLike | Task) else task
    tasks = [item if isinstance(item, Task) else load_task(os.fspath(item), data) for item in given]
    if not tasks:
        raise InputError("no task given; expected a name, a path or a Task")
    return tasks


def _all_targets(
    provenance: Provenance, info: EncoderInfo, tasks: Sequence[Task], splits: str | Sequence[str], pool: str
) -> list[Target]:
    return [_target(provenance, info, task, split, pool) for task in tasks for split in choose_splits(task, splits)]


def _target(provenance: Provenance, info: EncoderInfo, task: Task, split: Split, pool: str) -> Target:
    resolved_pool = choose_pool(pool, task.unit, info)
    target_provenance = replace(
        provenance,
        task=task.name,
        task_hash=task.content_hash,
        split=split.name,
        pool=resolved_pool,
        window=info.window,
        versions=dict(library_versions()),
    )
    return Target(task, split, resolved_pool, target_provenance, _split_hash(task, split.name))


def choose_splits(task: Task, splits: str | Sequence[str]) -> tuple[Split, ...]:
    """The requested splits of a task, in the order of `split_order`; 'all' requests every split."""
    available = [split.name for split in task.splits]
    requested = available if splits == "all" else [splits] if isinstance(splits, str) else splits
    if not requested:
        raise InputError(f"no split requested; task {task.name} has {', '.join(available)}")
    return tuple(task.split(name) for name in sorted(set(requested), key=split_order))


def _with_names(space: Space | None, target: Target, layer: int) -> Space:
    """The space with the names and words of this request.

    The stored space may have been computed under other names, since names are not part of its key.
    """
    if space is None:
        raise WorkError(
            f"the space of {target.task.name} at layer {layer} was damaged on disk right after it was written; "
            "check the disk, and run this again"
        )
    names = target.provenance
    provenance = replace(
        space.provenance,
        encoder=names.encoder,
        checkpoint=names.checkpoint,
        seed=names.seed,
        task=names.task,
        task_hash=names.task_hash,
        split=names.split,
    )
    return Space(space.X, space.y, space.labels, provenance, target.task.words(target.split))

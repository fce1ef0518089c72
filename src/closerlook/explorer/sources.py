"""Where the explorer's points come from: files of vectors, spaces, encoders with a task, or a finished fine-tuning."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from closerlook.differences.spaces import Pair, Trust, are_related, find_encoder
from closerlook.encoders.source import Source
from closerlook.errors import InputError
from closerlook.representations.extract import choose_layers, choose_splits, extract, load_tasks
from closerlook.representations.files import USUAL
from closerlook.representations.points import Points, load_points
from closerlook.representations.requested import encoder_info
from closerlook.representations.space import Space
from closerlook.representations.spaces import Spaces
from closerlook.representations.store import Store, open_store
from closerlook.representations.tables import Names
from closerlook.scatter.series import Series, from_spaces, limit_rows, snapshot_name, task_context
from closerlook.tasks import load_task
from closerlook.tasks.task import Split, Task, choose_test_split, sample_split
from closerlook.tuning.tuned import FILE, TuningResult, snapshot_spaces

log = logging.getLogger("closerlook.explorer")

Input = Space | TuningResult | str | os.PathLike[str]
"""A space, a finished fine-tuning, or the name of a file of vectors, of a fine-tuning's folder, or of an encoder."""

NO_TRUST = Trust()
UNRELATED = "These encoders are not versions of one model: their coordinates, and movements between them, mean nothing."


@dataclass(frozen=True)
class Choice:
    """Which points are read, and how; see `explore`."""

    layers: str | int | Sequence[int]
    max_examples: int
    seed: int
    pool: str = "auto"
    data: str | Path | None = None
    store: Store | str | Path | None = None
    device: str = "auto"
    names: Names = USUAL
    max_memory: int | None = None
    trust: Trust = NO_TRUST


def read_series(
    inputs: Sequence[Input], task: str | Path | Task | None, test: Sequence[Space], choice: Choice
) -> Series:
    """The examples of one explorer, at most `choice.max_examples` of each split."""
    if not inputs:
        raise InputError(
            "nothing to explore was given; expected vectors, spaces, a fine-tuning, or encoders with a task"
        )
    runs = [one for one in inputs if not isinstance(one, Space) and (isinstance(one, TuningResult) or _is_run(one))]
    spaces = [one for one in inputs if isinstance(one, Space)]
    if runs and len(inputs) > 1:
        raise InputError("a fine-tuning and other inputs were given; expected one fine-tuning alone")
    if test and len(test) != len(spaces):
        raise InputError(f"{len(spaces)} spaces and {len(test)} test spaces were given; expected one for each space")
    if runs:
        series = _from_run(runs[0], task, choice)
    elif spaces and len(spaces) == len(inputs):
        series = _from_points([from_spaces(one, other) for one, other in _pairs(spaces, test)], spaces)
    elif spaces:
        raise InputError("spaces and names were given together; expected one or the other")
    else:
        names = [os.fspath(one) for one in inputs if not isinstance(one, Space | TuningResult)]
        if task is not None:
            return _from_encoders(names, task, choice)
        series = _from_files([Path(name).expanduser() for name in names], choice)
    return limit_rows(series, choice.max_examples, choice.seed)


def _is_run(one: str | os.PathLike[str]) -> bool:
    return (Path(one).expanduser() / FILE).is_file()


def _pairs(spaces: Sequence[Space], test: Sequence[Space]) -> list[tuple[Space, Space | None]]:
    return [(space, test[at] if test else None) for at, space in enumerate(spaces)]


# ---- vectors ----


def _from_files(files: Sequence[Path], choice: Choice) -> Series:
    for file in files:
        if not file.exists() and not str(file).startswith("hf:"):
            raise InputError(
                f"{file} does not exist; expected a file of vectors or the folder of a finished fine-tuning, or with "
                "a task (-t) the name of an encoder"
            )
    points = [load_points(file, names=choice.names, max_memory=choice.max_memory) for file in files]
    return _from_points(points, files)


def _from_points(points: Sequence[Points], origins: Sequence[Space | Path]) -> Series:
    """The series of points that were given one snapshot after the other, all of one layer."""
    names = [_snapshot_name(one, origin) for one, origin in zip(points, origins, strict=True)]
    layers = {None if one.provenance is None else one.provenance.layer for one in points}
    if len(layers) > 1:
        raise InputError("the spaces are of different layers; expected the same layer of every snapshot")
    shown = _distinct(names)
    title = points[0].title if len(points) == 1 else f"{shown[0]} → {shown[-1]}"
    return Series(title, shown, (layers.pop(),), (tuple(points),))


def _snapshot_name(points: Points, origin: Space | Path) -> str:
    if points.provenance is not None and points.provenance.encoder:
        step = points.provenance.checkpoint
        return f"{points.provenance.encoder}{f' ({step})' if step and ' ' in step else ''}"
    return origin.name if isinstance(origin, Path) else points.title


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names of snapshots, numbered if two are the same."""
    return (
        tuple(names) if len(set(names)) == len(names) else tuple(f"{at + 1}: {name}" for at, name in enumerate(names))
    )


# ---- a finished fine-tuning ----


def _from_run(given: TuningResult | str | os.PathLike[str], task: str | Path | Task | None, choice: Choice) -> Series:
    """The snapshots of a fine-tuning, from the store."""
    run = given if isinstance(given, TuningResult) else TuningResult.load(os.fspath(given))
    chosen = load_tasks(task, choice.data)[0] if task is not None else load_task(run.task, choice.data)
    stored = set.intersection(*(set(run.layers(snapshot)) for snapshot in run.snapshots))
    wanted = choose_layers(choice.layers, run.info.layers, run.encoder)
    layers = [layer for layer in wanted if layer in stored] if choice.layers == "all" else wanted
    if not layers or set(layers) - stored:
        raise InputError(
            f"layers {', '.join(map(str, wanted))} requested; all snapshots of this fine-tuning have "
            f"{', '.join(map(str, sorted(stored))) or 'none in common'}"
        )
    names = [split.name for split in choose_splits(chosen, run.settings.splits)]
    splits = ["train", *_test_name(chosen, names)]
    by_snapshot = {
        snapshot_name(snapshot.step): snapshot_spaces(
            run, snapshot, chosen, splits=splits, layers=layers, data=choice.data, store=choice.store
        )
        for snapshot in run.snapshots
    }
    title = f"{run.encoder}, fine-tuned on {run.task}"
    title += "" if chosen.name == run.task else f", measured on {chosen.name}"
    return _from_layers(title, layers, by_snapshot, chosen, [chosen.split(name) for name in splits])


def _test_name(task: Task, names: Sequence[str]) -> list[str]:
    """The name of the split that is shown as test, if one of these splits is; otherwise empty."""
    others = [name for name in names if name != "train"]
    return [choose_test_split(replace(task, splits=tuple(map(task.split, ["train", *others]))))] if others else []


def _from_layers(
    title: str, layers: Sequence[int], spaces: dict[str, Spaces], task: Task, splits: Sequence[Split]
) -> Series:
    """The series of the spaces of a task's splits (train, and perhaps a second one). spaces: by name of snapshot."""
    test = splits[1].name if len(splits) > 1 else None
    points = tuple(
        tuple(from_spaces(own["train", layer], None if test is None else own[test, layer]) for own in spaces.values())
        for layer in layers
    )
    return Series(title, tuple(spaces), tuple(layers), points, task_context(task, splits))


# ---- encoders and a task ----


def _from_encoders(names: Sequence[str], given: str | Path | Task, choice: Choice) -> Series:
    """The same examples in one encoder or several versions of one, as its training goes on."""
    task, store = load_tasks(given, choice.data)[0], open_store(choice.store)
    base = find_encoder(names[0], choice.trust)
    sources = [base, *(find_encoder(name, choice.trust, base) for name in names[1:])]
    full = [task.split("train").name, *_test_name(task, [split.name for split in task.splits])]
    splits = [sample_split(task, name, choice.max_examples, choice.seed) for name in full]
    small = Task(task.name, task.unit, task.labels, tuple(splits))
    depths = [encoder_info(source, store, device=choice.device).layers for source in sources]
    if len(set(depths)) > 1:
        raise InputError(f"the encoders have {', '.join(map(str, depths))} layers; expected versions of one encoder")
    layers = choose_layers(choice.layers, depths[0], names[0])
    by_source = [_extract(source, small, sorted({0, *layers}), choice, store) for source in sources]
    shown = [source.name for source in sources]
    if len(set(shown)) < len(shown):
        shown = [str(source.adapter or source.folder) for source in sources]
    title = f"{' → '.join(dict.fromkeys((shown[0], shown[-1])))}, {task.name}"
    spaces = dict(zip(_distinct(shown), by_source, strict=True))
    series = _from_layers(title, layers, spaces, small, small.splits)
    left_out = sum(len(task.split(name)) for name in full) - sum(map(len, splits))
    notes = [f"At most {choice.max_examples:,} examples of a split; {left_out:,} were left out."] if left_out else []
    firsts = [own["train", 0] for own in by_source]
    if not all(are_related([Pair(small, full[-1], [(0, 0)], [(firsts[0], one)], [])]) for one in firsts[1:]):
        log.warning("%s", UNRELATED)
        notes.append(UNRELATED)
    return replace(series, notes=(*series.notes, *notes))


def _extract(source: Source, task: Task, layers: Sequence[int], choice: Choice, store: Store) -> Spaces:
    from closerlook.encoders.encoder import Encoder

    encoder = Encoder.load(source, device=choice.device, trust_remote_code=choice.trust.trust_remote_code)
    return extract(encoder, task, splits="all", layers=layers, pool=choice.pool, store=store)

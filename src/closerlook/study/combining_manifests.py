"""Combines the manifests of the pieces of a study: what was run, how many cells are done, and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from closerlook.errors import InputError
from closerlook.study import renamed
from closerlook.study.cells import SHORT_KEY
from closerlook.study.results import MANIFEST, Record, read_manifest

SLOWEST = 20
"""How many of the slowest cells a manifest lists."""


class _Part(BaseModel):
    """A part of a manifest; entries that are not combined are not checked, and those of older versions may lack."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Plan(_Part):
    encoders: list[Any] = []
    encoder_names: dict[str, str] = {}
    tasks: list[Any] = []
    runs: list[Any] = []
    seeds: list[Any] = []
    cross: Literal["all"] | list[Any] = []
    measures: list[Any] = []


class _Cells(_Part):
    """whole: of a piece that completes other results, the number of all cells of the study."""

    done: int
    total: int
    whole: int | None = None


class _Kind(_Part):
    cells: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: float | None = None


class _Timed(_Part):
    seconds: float = 0.0


class _Failure(_Part):
    key: str = ""
    title: str = ""


class _Manifest(_Part):
    study: str | None = None
    plan: _Plan = _Plan()
    encoders: Record = {}
    tasks: dict[str, Record] = {}
    settings: Record = {}
    runs: Record = {}
    cells: _Cells | None = None
    kinds: dict[str, _Kind] = {}
    slowest: list[_Timed] = []
    failed: list[_Failure] = []
    seconds: float = 0.0
    pieces: list[Record] = []


@dataclass(frozen=True, eq=False)
class PieceManifest:
    """The manifest of one piece of a study.

    name: of its folder. content: as it was read; empty if there is none. facts: the entries that are combined, checked.
    keys: those of all cells that its table has rows of, shortened, as archives have them. left_out: the number of cells
    whose rows are left out, because an earlier piece has their training.
    """

    name: str
    content: Record
    facts: _Manifest
    keys: Collection[str]
    left_out: int = 0

    @property
    def cells(self) -> _Cells:
        """How many cells are done, and of how many; without an entry, those in the table."""
        n = len(self.keys) + self.left_out
        return self.facts.cells or _Cells(done=n, total=n)

    def only(self, keys: Collection[str]) -> PieceManifest:
        """The manifest of the piece without the rows of some cells. keys: those of the cells that still have rows."""
        return replace(self, keys=keys, left_out=self.left_out + len(self.keys) - len(keys))


def read_piece_manifest(folder: Path, keys: Collection[str]) -> PieceManifest:
    """The manifest in the folder of a piece; InputError if an entry that is combined has the wrong type.

    keys: those of all cells that the table of the piece has rows of, shortened.
    """
    content = read_manifest(folder)
    try:
        facts = _Manifest.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))[:100]
        message = f"{folder / MANIFEST}: {where}: {problem['msg']}; expected the manifest that a study writes, or none"
        raise InputError(message) from None
    return PieceManifest(folder.absolute().name, content, facts, keys)


def combine_manifests(pieces: Sequence[PieceManifest], study: str) -> Record:
    """One manifest for the combined results: the first one, with what the others add. study: the name of the study.

    If a piece has the plan of the whole study, its manifest takes the place of the first one, and its plan gives the
    order of encoders and tasks. A piece that replaces trainings has to be given first, but is a part of the study.
    """
    whole = _whole_pieces(pieces)
    order = sorted(pieces, key=lambda piece: piece not in whole)
    first = next((piece.content for piece in order if piece.content), {})
    plan = _combine_plans(order)
    failed = _failed(pieces)
    done, total = _count_cells(pieces, whole)
    combined = {name: _merge_entries(order, name) | _merge_entries(pieces, name) for name in MERGED}
    return {
        **first,
        "study": study,
        "plan": plan,
        **combined,
        "cells": {"done": done, "total": total, "computed": 0},
        "failed": failed,
        "blocked": max(0, total - done - len(failed)),
        "seconds": round(sum(piece.facts.seconds for piece in pieces), 1),
        "kinds": _sum_kinds(pieces),
        "slowest": _slowest(pieces),
        "pieces": [one for piece in pieces for one in _describe(piece)],
    }


def _whole_pieces(pieces: Sequence[PieceManifest]) -> list[PieceManifest]:
    """The pieces that know the number of their cells, and whose plan has all that the plans of the others have."""
    plan = _combine_plans(pieces)
    return [piece for piece in pieces if piece.facts.cells and _covers(piece.facts.plan, plan)]


MERGED = ("encoders", "tasks", "settings", "runs")
"""Entries of the manifest that have an entry for each encoder, task, fine-tuning or run."""

LISTS = ("encoders", "tasks", "runs", "seeds", "cross", "measures")
"""Entries of the plan of which a piece may have only a part."""


def _combine_plans(pieces: Sequence[PieceManifest]) -> Record:
    """The first plan, with the encoders, tasks, runs, seeds, cross pairs and measures of all plans."""
    plans: list[Record] = [piece.content.get("plan", {}) for piece in pieces]
    combined = dict(next((plan for plan in plans if plan), {}))
    for name in LISTS:
        values = [plan[name] for plan in plans if name in plan]
        if values:
            combined[name] = "all" if "all" in values else _union(values)
    names = [plan["encoder_names"] for plan in plans if "encoder_names" in plan]
    return combined | ({"encoder_names": _merge(names)} if names else {})


def _count_cells(pieces: Sequence[PieceManifest], whole: Sequence[PieceManifest]) -> tuple[int, int]:
    """How many cells are done, and of how many. whole: the pieces that have the plan of the whole study.

    A cell that several tables have counts once. Cells without rows in the table, such as extractions, count once for
    each piece that ran them, so that a study can seem finished while as many cells are missing.
    """
    folders = Counter(key for piece in pieces for key in set(piece.keys))
    repeated = sum(count - 1 for count in folders.values()) + sum(piece.left_out for piece in pieces)
    done = max(0, sum(piece.cells.done for piece in pieces) - repeated)
    if not whole:
        return done, max(done, sum(piece.cells.total for piece in pieces) - repeated)
    known = [piece.cells.whole for piece in whole if piece.cells.whole]
    total = known[-1] if known else max(piece.cells.total for piece in whole)
    return min(done, total), total


def _covers(part: _Plan, plan: Record) -> bool:
    """Whether the plan of a piece has all encoders, tasks, runs, seeds and measures of the combined plan."""
    named = [name for name in LISTS if name != "cross"]
    return all(value in getattr(part, name) for name in named for value in plan.get(name, []))


def _failed(pieces: Sequence[PieceManifest]) -> list[Record]:
    """The failed cells of all pieces, each once, without those that another piece has results of."""
    finished = set().union(*(piece.keys for piece in pieces))
    by_name: dict[tuple[str, str], Record] = {}
    for piece in pieces:
        for failure in piece.facts.failed:
            if failure.key[:SHORT_KEY] not in finished:
                by_name.setdefault((failure.key, "" if failure.key else failure.title), failure.model_dump())
    return list(by_name.values())


def _sum_kinds(pieces: Sequence[PieceManifest]) -> Record:
    """The cells and times of each kind of cell in all pieces, and the largest memory."""
    kinds: dict[str, Record] = {}
    for piece in pieces:
        for former, kind in piece.facts.kinds.items():
            zero = {"cells": 0, "seconds": 0.0, "cpu_seconds": 0.0, "peak_bytes": 0}
            total = kinds.setdefault(renamed.KINDS.get(former, former), zero)
            total["cells"] += kind.cells
            total["seconds"] += kind.seconds
            total["cpu_seconds"] += kind.cpu_seconds
            total["peak_bytes"] = max(total["peak_bytes"], kind.peak_bytes or 0)
    return kinds


def _slowest(pieces: Sequence[PieceManifest]) -> list[Record]:
    cells = [cell for piece in pieces for cell in piece.facts.slowest]
    return [cell.model_dump() for cell in sorted(cells, key=lambda cell: -cell.seconds)[:SLOWEST]]


def _describe(piece: PieceManifest) -> list[Record]:
    """Where a piece ran, and how much of it is done; of combined results, the pieces that they were combined from."""
    itself = {
        "name": piece.name,
        "cells": piece.cells.model_dump(exclude_none=True),
        "hardware": piece.content.get("hardware", {}),
        "packages": piece.content.get("packages", {}),
        "version": piece.content.get("version"),
    }
    return piece.facts.pieces or [itself]


def _union(lists: Iterable[list[Any]]) -> list[Any]:
    """The values of all lists, each once, in order. They may be dicts, which have no hash."""
    values: list[Any] = []
    for value in (value for values_of_one in lists for value in values_of_one):
        if value not in values:
            values.append(value)
    return values


def _merge_entries(pieces: Iterable[PieceManifest], name: str) -> Record:
    """What the entry of that name contains in all pieces; of two with the same name, the first."""
    return _merge(piece.content.get(name, {}) for piece in pieces)


def _merge(parts: Iterable[Record]) -> Record:
    """The entries of all parts; of two with the same name, the first."""
    merged: Record = {}
    for part in parts:
        merged = {**merged, **{name: value for name, value in part.items() if name not in merged}}
    return merged

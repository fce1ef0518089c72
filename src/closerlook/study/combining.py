"""Combines the results of a study that was run in pieces, from the tables of the pieces; their cells are not needed."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.representations.atomic import check_writable, make_folder, move_into_place
from closerlook.study import explored
from closerlook.study.cells import PRETRAINED, SHORT_KEY
from closerlook.study.combining_manifests import PieceManifest, combine_manifests, read_piece_manifest
from closerlook.study.explored import StoredExplorer, read_explorers, write_explorers
from closerlook.study.registry import find, split_name
from closerlook.study.results import COLUMNS, CSV, MANIFEST, TABLE, home_of, load_results, sort_table, write_files

if TYPE_CHECKING:
    import pandas as pd

RUN = ["encoder", "tuned_on", "method", "seed"]
"""The columns that say which training a measurement is from."""

PLACE = [*RUN, "step", "layer", "task", "split", "pool", "measure"]
"""The columns that say where in the study a measure was taken."""

NAMES = [name for name in PLACE if COLUMNS[name] == "string"]
"""The columns among them with texts; a missing one means the same as an empty one."""

log = logging.getLogger("closerlook.study")


class Training(NamedTuple):
    """A training of the study: an encoder, the task and method of its fine-tuning, and the seed."""

    encoder: str
    tuned_on: str
    method: str
    seed: int

    def __str__(self) -> str:
        """The training as messages name it."""
        return f"{self.encoder} on {self.tuned_on} ({self.method}, seed {self.seed})"


Weights = dict[tuple[Training, int], set[str]]
"""The fingerprints of the weights of each training at each step. tuned_on is empty for a pretrained encoder."""


@dataclass(frozen=True, eq=False)
class Piece:
    """The results of one piece of a study. path: as it was given. left_out: trainings that were removed from it."""

    path: Path
    table: pd.DataFrame
    manifest: PieceManifest
    explorers: list[StoredExplorer]
    left_out: frozenset[Training] = frozenset()

    @property
    def study(self) -> str:
        """The name of the study."""
        names = self.table["study"].dropna().unique()
        return str(self.manifest.facts.study or (names[0] if len(names) else "study"))


def combine_results(folders: Iterable[str | Path], out: str | Path) -> Path:
    """Write the combined results of the pieces of a study to a new folder, and return the path of the table.

    folders: of studies or archives with the same name. If several have a measurement, it is taken from the first. If
    the weights of a training differ, only the training in the first folder is used; a warning names those that are left
    out. A pretrained encoder with different weights is an InputError. Nothing is written if there is an error.
    """
    paths, target = [Path(folder).expanduser() for folder in folders], Path(out).expanduser()
    _check_paths(paths, target)
    pieces = [_read_piece(path) for path in paths]
    _check_one_study(pieces)
    pieces = _leave_out(pieces)
    table = combine_tables([piece.table for piece in pieces])
    manifest = combine_manifests([piece.manifest for piece in pieces], pieces[0].study)
    make_folder(target)
    with tempfile.TemporaryDirectory(dir=target, prefix=".combine-") as part:
        write_files(Path(part), table, manifest)
        write_explorers(Path(part), _combine_explorers(pieces))
        (target / explored.FILE).unlink(missing_ok=True)
        for name in (explored.FILE, MANIFEST, CSV, TABLE):  # tables last: with them, a second call is refused
            if (Path(part) / name).exists():
                move_into_place(Path(part) / name, target / name)
    return target / TABLE


# ---- reading and checking ----


def _check_paths(paths: Sequence[Path], target: Path) -> None:
    """Raise InputError if there are fewer than two pieces, one is given twice, or results cannot go to the target."""
    if len(paths) < 2:
        raise InputError(f"{len(paths)} folder given to combine; expected at least two pieces of a study")
    homes = [home_of(path).resolve() for path in paths]
    for at, path in enumerate(paths):
        if homes[at] in homes[:at]:
            raise InputError(f"{path} is given twice; expected a different folder for each piece")
        if homes[at] == target.resolve():
            raise InputError(f"{target} is one of the pieces; expected a new folder for the combined results")
    if any((target / name).exists() for name in (TABLE, CSV)):
        raise InputError(f"{target} already has results; expected a new folder for the combined results")
    check_writable(target)


def _read_piece(path: Path) -> Piece:
    table = load_results(path).fillna(dict.fromkeys(NAMES, ""))
    return Piece(path, table, read_piece_manifest(home_of(path), _cells(table)), read_explorers(home_of(path)))


def _cells(table: pd.DataFrame) -> set[str]:
    """The keys of the cells that a table has rows of, shortened, as archives have them."""
    return {str(key)[:SHORT_KEY] for key in table["cell"].dropna().unique() if key}


def _check_one_study(pieces: Sequence[Piece]) -> None:
    first = pieces[0]
    for piece in pieces[1:]:
        if piece.study != first.study:
            raise InputError(
                f"{piece.path} has results of the study {piece.study!r}, and {first.path} of {first.study!r}; expected "
                "pieces of one study: give their plans the same name, or use closerlook compare-studies"
            )
        for name, facts in piece.manifest.facts.tasks.items():
            if facts.get("hash") != first.manifest.facts.tasks.get(name, facts).get("hash"):
                raise InputError(
                    f"the task {name} has different examples or labels in {first.path} and in {piece.path}; expected "
                    "the same data in all pieces: run one of them again"
                )


# ---- different trainings ----


def _leave_out(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces without trainings whose weights differ from those in an earlier piece; a warning names them.

    If the weights of a pretrained encoder differ, its name is ambiguous: an InputError.
    """
    known: Weights = {}
    kept: list[Piece] = []
    for piece in pieces:
        weights = _weights(piece.table)
        differ = [
            (run, step) for run, step in weights if weights[run, step] - known.get((run, step), weights[run, step])
        ]
        for run, _ in differ:
            if run.tuned_on == PRETRAINED:
                raise InputError(_ambiguous(run, piece, kept))
        left_out = frozenset(run for run, _ in differ)
        for (run, step), values in weights.items():
            if run not in left_out:
                known.setdefault((run, step), set()).update(values)
        kept.append(_without(piece, left_out))
    for piece in kept:
        if piece.left_out:
            names = ", ".join(sorted(map(str, piece.left_out)))
            log.warning("%s: an earlier folder has different weights, so these are left out: %s", piece.path, names)
    return kept


def _ambiguous(run: Training, piece: Piece, earlier: Sequence[Piece]) -> str:
    """The message about a pretrained encoder whose weights differ from those in an earlier piece."""
    other = next(one for one in earlier if any(known == run for known, _ in _weights(one.table)))
    return (
        f"the pretrained encoder {run.encoder} has different weights in {other.path} and in {piece.path}; expected one "
        "encoder for each name: give one of them another name in its plan, and run that piece again"
    )


def _weights(table: pd.DataFrame) -> Weights:
    rows = table[[*RUN, "step", "weights"]].drop_duplicates().dropna()
    found: Weights = {}
    for encoder, tuned_on, method, seed, step, weights in rows.itertuples(index=False, name=None):
        if weights:
            found.setdefault((Training(encoder, tuned_on, method, seed), step), set()).add(weights)
    return found


def _without(piece: Piece, left_out: frozenset[Training]) -> Piece:
    """The piece without the measurements of some trainings, and without comparisons of other seeds with them."""
    if not left_out:
        return piece
    table = piece.table
    compared = {name for name in table["measure"].unique() if split_name(name)[1] == "seed"}
    is_compared = table["measure"].isin(compared)
    removed = np.zeros(len(table), dtype=np.bool_)
    for run in left_out:
        same = (table["encoder"] == run.encoder) & (table["tuned_on"] == run.tuned_on) & (table["method"] == run.method)
        rows = same & ((table["seed"] == run.seed) | (is_compared & (table["other"] == str(run.seed))))
        removed |= rows.fillna(value=False).to_numpy(np.bool_)
    shown = {(run.encoder, run.tuned_on, run.seed) for run in left_out}
    explorers = [one for one in piece.explorers if (one.encoder, one.tuned_on, one.seed) not in shown]
    kept = table[~removed]
    manifest = piece.manifest.only(_cells(kept))
    return replace(piece, table=kept, manifest=manifest, explorers=explorers, left_out=left_out)


# ---- combining ----


def combine_tables(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all tables in one, sorted. A measurement that several tables have is taken from the first of them."""
    import pandas as pd

    table = pd.concat(tables, ignore_index=True).astype(COLUMNS)
    number = np.repeat(np.arange(len(tables)), [len(one) for one in tables])
    measurement = _identify(table)
    first = np.full(measurement.max(initial=-1) + 1, len(tables))
    np.minimum.at(first, measurement, number)
    return sort_table(table[number == first[measurement]])


def _identify(table: pd.DataFrame) -> NDArray[np.int64]:
    """A number for each row; rows of the same measurement have the same number, whatever was measured.

    What belongs to the result does not count: the chosen size of a probe (text) or the nearest label (other) may differ
    between two machines. All blocked merges of a space are one measurement.
    """
    known = {name: find(name) for name in table["measure"].unique()}
    rows = table["measure"].map({name: "unknown" if one is None else one.rows for name, one in known.items()})
    parts = {
        "label": table["label"].mask(rows == "merge"),
        "other": table["other"].mask(rows.isin(["merge", "label"])),
        "text": table["text"].where(rows.isin(["setting", "probe size", "unknown"])),
    }
    identity = table[PLACE].assign(**parts)
    return np.asarray(identity.groupby(list(identity.columns), dropna=False, sort=False).ngroup(), dtype=np.int64)


def _combine_explorers(pieces: Sequence[Piece]) -> list[StoredExplorer]:
    """The points of each encoder and task, from the first piece that has them; by encoder, then by task."""
    found: dict[tuple[str, str], StoredExplorer] = {}
    for piece in pieces:
        for one in piece.explorers:
            found.setdefault((one.encoder, one.task), one)
    encoders, tasks = (list(dict.fromkeys(names)) for names in zip(*found, strict=True)) if found else ([], [])
    return sorted(found.values(), key=lambda one: (encoders.index(one.encoder), tasks.index(one.task)))

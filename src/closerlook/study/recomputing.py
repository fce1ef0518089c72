"""Computes the similarities in a study's table again from the label distances in the same table."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from closerlook.geometry.label_sizes import size_adjusted_similarity
from closerlook.geometry.similarity import FEWEST_LABELS, read_table, spatial_similarity

if TYPE_CHECKING:
    import pandas as pd

PLACE = ["encoder", "tuned_on", "seed", "step", "layer", "task"]
"""The columns of the table that say which space of a split a row is about."""

SIMILARITIES = re.compile(
    r"similarity(?P<kind>|_spearman|_size_adjusted)_(?P<compared>train_\w+|original|seed|random|encoder)"
)
"""The measures that can be computed again."""

LabelTable = tuple[list[str], NDArray[np.float64]]
Place = tuple[Any, ...]


def recompute_similarities(table: pd.DataFrame) -> pd.DataFrame:
    """The similarities of a study, computed again: one row for each, with `value` as stored and `recomputed`.

    table: of a study or of its archive. Columns: encoder, tuned_on, seed, step, layer, task, measure, other, value,
    recomputed. `recomputed` is NaN where the table lacks label distances; archives of earlier versions lack most.
    """
    import pandas as pd

    rows = table[[SIMILARITIES.fullmatch(str(name)) is not None for name in table["measure"]]]
    spaces = _Spaces(table)
    columns = [*PLACE, "measure", "other", "value"]
    found = rows[columns].copy()
    found["recomputed"] = pd.array([spaces.similarity(line) for line in found.itertuples(index=False)], dtype="float64")
    return found.reset_index(drop=True)


class _Spaces:
    """The label distances and label sizes of every space in a table; matrices are made when they are needed."""

    def __init__(self, table: pd.DataFrame) -> None:
        self.distances = _by_place(table[table["measure"] == "label_distance"])
        self.random = _by_place(table[table["measure"] == "random_label_distance"])
        self.sizes = _by_place(table[table["measure"] == "label_clusters"])
        self.known: dict[tuple[str, Place], LabelTable | None] = {}
        self.random_places = {(place[0], place[4], place[5]): place for place in self.random}

    def similarity(self, line: Any) -> float:
        """The similarity that a row of the table is about; NaN if the distances of a space are not known."""
        match = SIMILARITIES.fullmatch(str(line.measure))
        assert match is not None  # noqa: S101 - only such rows are given
        first: Place = (*line[: len(PLACE)], "train")
        second = self._compared_with(first, match["compared"], line.other)
        a, b = self._distances(first), self._distances(second, random=match["compared"] == "random")
        if a is None or b is None:
            return math.nan
        return self._value(match["kind"], (a, b), (first, second))

    def _compared_with(self, place: Place, compared: str, other: object) -> Place:
        """The space that a train space was compared with."""
        encoder, tuned_on, seed, _, layer, task, split = place
        match compared:
            case "original":
                return (encoder, tuned_on, seed, 0, layer, task, split)
            case "random":
                return self.random_places.get((encoder, layer, task), ())
            case "encoder":
                return self._other_encoder(place, str(other))
            case "seed":
                same = (encoder, tuned_on, int(str(other)))
                steps = [known for known in self.distances if known[:3] == same and known[4:] == (layer, task, split)]
                return max(steps, key=lambda known: int(known[3]), default=())
            case _:
                return (*place[:-1], compared.removeprefix("train_"))

    def _other_encoder(self, place: Place, other: str) -> Place:
        """The pretrained space of another encoder at its last layer."""
        same = [known for known in self.distances if known[0] == other and known[1] == place[1]]
        layers = [known for known in same if known[5:] == place[5:]]
        return max(layers, key=lambda known: int(known[4]), default=())

    def _distances(self, place: Place, *, random: bool = False) -> LabelTable | None:
        """The labels of a space and the matrix of their distances; None if the table does not have them."""
        kind = "random" if random else ""
        if (kind, place) not in self.known:
            rows = (self.random if random else self.distances).get(place)
            self.known[kind, place] = None if rows is None else _matrix(rows)
        return self.known[kind, place]

    def _value(self, kind: str, tables: tuple[LabelTable, LabelTable], places: tuple[Place, Place]) -> float:
        a, b = tables
        left, right = read_table(a, "a"), read_table(b, "b")
        if len((set(a[0]) - left.undefined) & (set(b[0]) - right.undefined)) < FEWEST_LABELS:
            return math.nan
        if kind != "_size_adjusted":
            similarity = spatial_similarity(a, b, permutations=0, resamples=0)
            return similarity.spearman if kind else similarity.pearson
        first, second = (self.sizes.get(place) for place in places)
        if first is None or second is None:
            return math.nan
        sizes = [dict(zip(rows["label"], rows["n"].astype(int), strict=True)) for rows in (first, second)]
        return size_adjusted_similarity(a, b, sizes[0], sizes[1], permutations=0).pearson


def _by_place(rows: pd.DataFrame) -> dict[Place, pd.DataFrame]:
    """The rows of each space."""
    return {tuple(place): group for place, group in rows.groupby([*PLACE, "split"], sort=False)}


def _matrix(rows: pd.DataFrame) -> LabelTable:
    """The labels in some rows of label distances, and the (m, m) matrix of these distances."""
    labels = sorted({*rows["label"], *rows["other"]})
    position = {label: at for at, label in enumerate(labels)}
    i, j = (np.array([position[label] for label in rows[name]]) for name in ("label", "other"))
    values = np.zeros((len(labels), len(labels)))
    values[i, j] = values[j, i] = rows["value"].to_numpy(float)
    return labels, values

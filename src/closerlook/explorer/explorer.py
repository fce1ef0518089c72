"""`explore`: measures the points of spaces and prepares them for a page; `Explorer`: the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from closerlook.differences.spaces import Trust
from closerlook.errors import InputError
from closerlook.explorer.sources import Choice, Input, read_series
from closerlook.geometry.frame import Integers
from closerlook.representations.space import Space
from closerlook.representations.store import Store
from closerlook.representations.tables import Names
from closerlook.scatter.layers import Layer, Progress, ViewSettings
from closerlook.scatter.points import MOST_POINTS
from closerlook.scatter.scatter import Scatter, make_scatter
from closerlook.scatter.series import Context
from closerlook.scatter.views import MOST_PAIRS
from closerlook.tasks.task import Task

if TYPE_CHECKING:
    import pandas as pd

MAX_EXAMPLES = 3000
"""Examples of each split that are clustered, by default: a few seconds for each snapshot."""


@dataclass(frozen=True, eq=False)
class Explorer:
    """Points of a space over a training, ready to be shown: in a notebook as they are, or as a page with `write`.

    scatter: the shown points. notes: what a reader must know. settings: how it was made.

    >>> explorer = explore("bert-tiny", task="toy-question", max_examples=100)
    >>> explorer
    Explorer(bert-tiny, toy-question: 186 of 186 points, 20 labels, 1 snapshots)
    >>> explorer.write("points.html").name
    'points.html'
    """

    scatter: Scatter
    notes: tuple[str, ...]
    settings: dict[str, Any]

    @property
    def title(self) -> str:
        """What is shown."""
        return self.scatter.title

    @property
    def snapshots(self) -> tuple[str, ...]:
        """The names of the snapshots, in order."""
        return self.scatter.snapshots

    @property
    def names(self) -> tuple[str, ...]:
        """All labels, sorted."""
        return self.scatter.names

    @property
    def rows(self) -> Integers:
        """(m,) the shown points, as rows of the measured train points followed by the measured test points."""
        return self.scatter.rows

    @property
    def labels(self) -> NDArray[Any]:
        """(m,) the label of each shown point."""
        return self.scatter.labels

    @property
    def is_test(self) -> NDArray[np.bool_]:
        """(m,) whether each shown point is a test point."""
        return self.scatter.is_test

    @property
    def context(self) -> Context | None:
        """The texts around the shown points; None if unknown."""
        return self.scatter.context

    @property
    def words(self) -> tuple[str, ...] | None:
        """The word of each shown point; None if unknown."""
        return self.scatter.words

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The positions and clusters at each layer."""
        return self.scatter.layers

    def __repr__(self) -> str:
        shown = f"{len(self.rows):,} of {self.scatter.n_points:,} points"
        return f"Explorer({self.title}: {shown}, {len(self.names)} labels, {len(self.snapshots)} snapshots)"

    def _repr_html_(self) -> str:
        from closerlook.explorer.page import frame

        return frame(self)

    def to_frame(self) -> pd.DataFrame:
        """One row for each shown point, layer and snapshot, with its nearest cluster, movement and PCA position."""
        from closerlook.explorer.tables import points_table

        return points_table(self)

    def write(self, path: str | Path = "explorer.html") -> Path:
        """Write the page, one HTML file that works offline, and return its absolute path."""
        from closerlook.explorer.page import write_page

        return write_page(self, path)


def explore(
    *inputs: Input,
    task: str | Path | Task | None = None,
    test: Space | Sequence[Space] = (),
    layers: str | int | Sequence[int] = "last",
    points: int = MOST_POINTS,
    max_examples: int = MAX_EXAMPLES,
    pairs: Sequence[tuple[str, str]] | None = None,
    umap: bool = False,
    pool: str = "auto",
    seed: int = 0,
    data: str | Path | None = None,
    store: Store | str | Path | None = None,
    device: str = "auto",
    names: Names | None = None,
    max_memory: int | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Explorer:
    """The points of a space, or of the same examples at several snapshots, for a page on which they can be explored.

    inputs: spaces or files of vectors, one for each snapshot, with the same examples; or a finished fine-tuning
    (`tune`) or its folder; or, with `task`, encoders: one, or versions of one as its training goes on.
    test: the test space of each space. layers: as for `extract`; of a fine-tuning, those of all snapshots.
    points: how many points are shown. Points that block merges, have the vector of another label, are nearest to a
    cluster of another label, or lie at the margin of two labels come first; the others are sampled by label.
    max_examples: how many examples of each split are clustered; larger splits are sampled.
    pairs: pairs of labels for margin views; by default those with the closest means. umap: also make a UMAP view.
    names: what vectors and labels are called in files of other programs. progress: called with steps done and in total.

    >>> space = Space.from_arrays([[0.0, 0.0], [0.0, 1.0], [3.0, 0.0]], ["a", "a", "b"], words=["x", "y", "z"])
    >>> explorer = explore(space)
    >>> round(explorer.layers[0].margins[0].gaps[0].distance, 6)
    3.0
    """
    for name, value in (("points", points), ("max_examples", max_examples)):
        if value < 1:
            raise InputError(f"{name} is {value}; expected a number of at least 1")
    own = Choice(
        layers,
        max_examples,
        seed,
        pool,
        data,
        store,
        device,
        Names() if names is None else names,
        max_memory,
        Trust(allow_pickle, trust_remote_code),
    )
    series = read_series(inputs, task, [test] if isinstance(test, Space) else test, own)
    scatter = make_scatter(
        series,
        ViewSettings(points, MOST_PAIRS if pairs is None else pairs, umap, seed),
        threads=threads,
        progress=progress,
    )
    provenance = series.first.provenance
    settings = {
        "points": scatter.n_points,
        "train points": scatter.n_train,
        "shown points": len(scatter.rows),
        "max_examples": max_examples,
        "layers": [layer for layer in series.layers if layer is not None],
        "pool": None if provenance is None else provenance.pool,
        "umap": umap,
        "seed": seed,
    }
    return Explorer(scatter, series.notes, settings)

"""The merge history of a clustering: the distance between the two clusters of every merge."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from closerlook.escaping import show_name
from closerlook.plots.style import HEIGHT, WIDTH, compact, heading, inline, label_colours

if TYPE_CHECKING:
    import altair as alt


def plot_merges(merges: NDArray[np.void], labels: Sequence[object], whole: Sequence[object]) -> alt.Chart:
    """One point for each merge, in their order: the distance between the means of the two merged clusters.

    merges: the merge history, see `Clustering.merges`. labels: the label of each merge. whole: the labels that were
    merged in one step, which have no entries in `merges`.
    """
    import altair as alt
    import pandas as pd

    names = [show_name(str(label)) for label in labels]
    table = pd.DataFrame(
        {
            "merge": range(1, len(merges) + 1),
            "distance": np.asarray(merges["distance"], dtype=np.float64),
            "label": names,
            "first row": merges["first"],
            "second row": merges["second"],
        }
    )
    at_once = shorten(", ".join(show_name(str(label)) for label in whole), 60, placeholder=" …")
    text = f"{len(whole)} labels were merged in one step and are not shown: {at_once}" if whole else ""
    ordered = sorted(set(names))
    legend = alt.Legend(symbolLimit=40) if names else None
    chart: alt.Chart = (
        alt.Chart(inline(compact(table)))
        .mark_circle(size=24, opacity=0.7)
        .encode(
            x=alt.X("merge:Q", title="merge", axis=alt.Axis(format=",d", tickMinStep=1)),
            y=alt.Y("distance:Q", title="distance between the means"),
            color=alt.Color("label:N", scale=label_colours(ordered), legend=legend),
            tooltip=["label:N", "distance:Q", "first row:Q", "second row:Q"],
        )
        .properties(width=WIDTH, height=HEIGHT, title=heading(f"{len(merges):,} merges", text))
    )
    return chart

"""Distances between labels: a heat map, and a dendrogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.escaping import show_name
from closerlook.plots.style import LABEL_LIMIT, PANEL, WIDTH, compact, heading, inline

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

DistanceChart = Literal["heatmap", "dendrogram"]
Linkage = Literal["average", "single", "complete"]

Floats = NDArray[np.float64]


def plot_distances(
    labels: Sequence[object],
    values: Floats,
    *,
    kind: DistanceChart = "heatmap",
    linkage: Linkage = "average",
    title: str = "Distances between labels",
) -> alt.Chart | alt.LayerChart:
    """A chart of the distances between labels. values: (m, m), NaN for labels without a distance.

    kind: 'heatmap', a cell for each pair of labels; or 'dendrogram', a tree that joins the closest labels first, by
    `linkage`: the mean ('average'), smallest ('single') or largest ('complete') distance of two groups of labels.
    """
    names = [show_name(str(label)) for label in labels]
    if kind == "heatmap":
        return _heat(names, values, title)
    if kind == "dendrogram":
        return _dendrogram(names, values, linkage, title)
    raise InputError(f"kind is {kind!r}; expected 'heatmap' or 'dendrogram'")


# ---- heat map ----


def _heat(names: list[str], values: Floats, title: str) -> alt.Chart:
    import pandas as pd

    i, j = np.nonzero(np.isfinite(values) & ~np.eye(len(names), dtype=bool))
    data = {"label": [names[at] for at in i], "other": [names[at] for at in j], "distance": values[i, j]}
    table = compact(pd.DataFrame(data).astype({"distance": "float64"}))
    return heat_map(inline(table), names, float(table.distance.max()) if len(table) else 1.0, heading(title))


def heat_map(data: Any, labels: list[str], largest: float, title: object) -> alt.Chart:
    """A cell for each pair of labels, with the colour of its distance.

    data: rows with `label`, `other` and `distance`. largest: the distance at the end of the colour scale.
    """
    import altair as alt

    size = 10 if len(labels) <= 24 else 8
    side = max(PANEL, round(9.5 * len(labels)))
    legend = alt.Legend(title="distance", gradientLength=180, orient="bottom", direction="horizontal")

    def axis() -> alt.Axis:
        return alt.Axis(
            labelFontSize=size, labelOverlap=True, ticks=False, domain=False, labelLimit=90, title=None, grid=False
        )

    chart: alt.Chart = (
        alt.Chart(data)
        .mark_rect()
        .encode(
            x=alt.X("other:N", axis=axis(), scale=alt.Scale(domain=labels)),
            y=alt.Y("label:N", axis=axis(), scale=alt.Scale(domain=labels)),
            color=alt.Color("distance:Q", scale=alt.Scale(scheme="viridis", domain=[0, largest]), legend=legend),
            tooltip=[alt.Tooltip("label:N"), alt.Tooltip("other:N"), alt.Tooltip("distance:Q", format=".3f")],
        )
        .properties(width=side, height=side, title=title)
    )
    return chart


# ---- dendrogram ----


def _dendrogram(names: list[str], values: Floats, linkage: Linkage, title: str) -> alt.LayerChart:
    import altair as alt

    if linkage not in ("average", "single", "complete"):
        raise InputError(f"linkage is {linkage!r}; expected 'average', 'single' or 'complete'")
    measured = np.isfinite(np.where(np.eye(len(names), dtype=bool), np.nan, values)).any(axis=1)
    kept = [names[at] for at in np.flatnonzero(measured)]
    if len(kept) < 2:
        raise InputError(f"{len(kept)} labels have a distance to another label; a dendrogram needs at least 2")
    lines, leaves = dendrogram_data(kept, values[np.ix_(measured, measured)], linkage)
    missing = len(names) - len(kept)
    text = f"groups of labels are joined by their {linkage} distance"
    text += f"; labels without a distance are left out: {missing}" if missing else ""
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, 10 * len(kept)], nice=False, reverse=True))
    tree = (
        alt.Chart(inline(lines))
        .mark_line(strokeWidth=1.4)
        .encode(
            x=alt.X("distance:Q", title="distance", scale=alt.Scale(zero=True, nice=True)),
            y=y,
            detail="join:N",
            order="corner:Q",
            tooltip=[alt.Tooltip("joined:Q", title="distance", format=".3f")],
        )
    )
    marks = (
        alt.Chart(inline(leaves))
        .mark_text(align="right", baseline="middle", dx=-6, limit=LABEL_LIMIT)
        .encode(x="distance:Q", y=y, text="label:N")
    )
    return alt.LayerChart(layer=[tree, marks], width=WIDTH, height=max(60, 16 * len(kept)), title=heading(title, text))


def dendrogram_data(names: Sequence[str], values: Floats, linkage: Linkage) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The lines and the leaves of a dendrogram, for distances without NaN.

    lines: four corners for each join, with its distance (`joined`). leaves: the place of each label.

    >>> lines, leaves = dendrogram_data(["a", "b", "c"], np.array([[0.0, 1, 4], [1, 0, 6], [4, 6, 0]]), "average")
    >>> lines.groupby("join").joined.first().tolist(), leaves.label.tolist()
    ([1.0, 5.0], ['c', 'a', 'b'])
    """
    import pandas as pd
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    symmetric = (values + values.T) / 2
    tree = hierarchy.dendrogram(hierarchy.linkage(squareform(symmetric, checks=False), linkage), no_plot=True)
    rows = [
        (join, corner, y, x, max(xs))
        for join, (ys, xs) in enumerate(zip(tree["icoord"], tree["dcoord"], strict=True))
        for corner, (y, x) in enumerate(zip(ys, xs, strict=True))
    ]
    lines = pd.DataFrame(rows, columns=["join", "corner", "y", "distance", "joined"]).astype({"joined": "float64"})
    places = [(names[leaf], 5.0 + 10 * at, 0.0) for at, leaf in enumerate(tree["leaves"])]
    lines = lines.sort_values(["joined", "join", "corner"], kind="stable", ignore_index=True)
    lines["join"] = lines.groupby("join", sort=False).ngroup()
    return lines, pd.DataFrame(places, columns=["label", "y", "distance"])

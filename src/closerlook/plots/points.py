"""Points in the plane of their two main directions (PCA), coloured by label, with the outlines of clusters."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.escaping import show_name
from closerlook.plots.style import HEIGHT, WIDTH, compact, heading, inline, label_colours

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

MOST_POINTS = 2000
"""Points that are drawn: more would cover each other, and make a notebook large."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def plot_points(
    X: ArrayLike,
    labels: Sequence[object],
    *,
    title: str,
    columns: Mapping[str, Sequence[object]],
    clusters: Integers | None = None,
    points: int = MOST_POINTS,
    seed: int = 0,
) -> alt.LayerChart:
    """A scatter plot of X: (n, d) along its first two principal components, coloured by label.

    columns: what is shown of each point when the pointer is on it, by name, besides the label. clusters: (n,) the
    cluster of each point, to draw the outline of each cluster. points, seed: how many points are drawn, and the seed of
    their sample; components and outlines are computed from all points.
    """
    import altair as alt

    if points < 1:
        raise InputError(f"points is {points}; expected a number of at least 1")
    names = [show_name(str(label)) for label in labels]
    xy, shares = principal_plane(np.asarray(X, dtype=np.float64))
    rows = sample_rows(names, points, seed)
    shown = {name: [_shown(values[row]) for row in rows] for name, values in columns.items()}
    data = _table(xy[rows], [names[row] for row in rows], shown)
    ordered = sorted(set(names))
    legend = alt.Legend(title="label", symbolLimit=40, symbolOpacity=1)
    colour = alt.Color("label:N", scale=label_colours(ordered), legend=legend)
    mark = hashlib.sha256(data.to_json().encode()).hexdigest()[:12]
    chosen = alt.selection_point(fields=["label"], bind="legend", name=f"label_{mark}")
    moved = alt.selection_interval(bind="scales", name=f"view_{mark}")
    parts = [
        alt.Chart(inline(data))
        .mark_circle(size=28)
        .encode(
            x=_axis("x", 0, shares),
            y=_axis("y", 1, shares),
            color=colour,
            opacity=alt.condition(chosen, alt.value(0.7), alt.value(0.06)),
            tooltip=["label:N", *(alt.Tooltip(f"{name}:N") for name in columns)],
        )
        .add_params(chosen, moved)  # both in one layer: Vega-Lite cannot compose charts with one in each
    ]
    if clusters is not None:
        parts.insert(0, _outlines(xy, names, clusters).encode(color=colour))
    text = [f"{len(rows):,} of {len(names):,} points"] if len(rows) < len(names) else []
    if clusters is not None:
        text.append("lines: clusters, as projections; they may seem to overlap")
    top = heading(show_name(title), "; ".join(text))
    return alt.LayerChart(layer=parts, title=top, width=WIDTH, height=HEIGHT)


def principal_plane(X: Floats) -> tuple[Floats, tuple[float, float]]:
    """(n, 2) the positions of X along its first two principal components, and their shares of the variance.

    >>> xy, shares = principal_plane(np.array([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [4.0, 0.0, 1.0]]))
    >>> np.abs(xy).round(6).tolist(), shares
    ([[2.0, 0.0], [0.0, 0.0], [2.0, 0.0]], (1.0, 0.0))
    """
    from sklearn.decomposition import PCA

    xy, shares = np.zeros((len(X), 2)), [0.0, 0.0]
    if len(X) > 1 and np.ptp(X, axis=0).any():
        pca = PCA(min(2, *X.shape), svd_solver="covariance_eigh")
        found = pca.fit_transform(X)
        xy[:, : found.shape[1]] = found
        shares[: found.shape[1]] = [float(share) for share in pca.explained_variance_ratio_]
    return xy, (shares[0], shares[1])


def sample_rows(labels: Sequence[str], most: int, seed: int) -> Integers:
    """At most `most` rows, in order; every label keeps its share of them.

    >>> rows = sample_rows(["a"] * 30 + ["b"] * 10, 4, seed=0)
    >>> [int(row) // 30 for row in rows]
    [0, 0, 0, 1]
    """
    n = len(labels)
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng([seed, 13]).permutation(n)
    by_label = order[np.argsort(np.asarray(labels, dtype=np.object_)[order], kind="stable")]
    middles = (np.arange(most) + 0.5) * n / most
    return np.sort(by_label[middles.astype(np.int64)])


def outline(xy: Floats) -> Floats:
    """(k, 2) the corners of the convex hull of points in the plane, in order; the first corner is also the last.

    >>> outline(np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.2], [0.0, 1.0]])).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    ordered = [(float(x), float(y)) for x, y in np.unique(xy, axis=0)]
    half = [_chain(points) for points in (ordered, ordered[::-1])]
    return np.array([*half[0][:-1], *half[1]]) if len(ordered) > 1 else np.array(ordered)


def _chain(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The lower half of the hull of sorted points (Andrew's monotone chain)."""
    corners: list[tuple[float, float]] = []
    for x, y in points:
        while len(corners) > 1:
            (ax, ay), (bx, by) = corners[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                break
            corners.pop()
        corners.append((x, y))
    return corners


def _outlines(xy: Floats, labels: Sequence[str], clusters: Integers) -> alt.Chart:
    """The outline of each cluster of at least two points, in the colour of its label."""
    import altair as alt
    import pandas as pd

    parts = []
    for cluster in np.unique(clusters):
        rows = np.flatnonzero(clusters == cluster)
        corners = outline(xy[rows])
        if len(corners) > 1:
            part = _table(corners, [labels[rows[0]]] * len(corners), {"cluster": [int(cluster)] * len(corners)})
            parts.append(part.assign(corner=range(len(corners))))
    columns = ["x", "y", "label", "cluster", "corner"]
    data = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    chart: alt.Chart = (
        alt.Chart(inline(data))
        .mark_line(strokeWidth=1.2, opacity=0.6)
        .encode(x="x:Q", y="y:Q", detail="cluster:N", order="corner:Q")
    )
    return chart


def _table(xy: Floats, labels: Sequence[str], columns: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    import pandas as pd

    return compact(pd.DataFrame({"x": xy[:, 0], "y": xy[:, 1], "label": labels, **columns}))


def _axis(name: str, at: int, shares: tuple[float, float]) -> Any:
    import altair as alt

    channel = alt.X if name == "x" else alt.Y
    title = f"component {at + 1} ({100 * shares[at]:.0f} % of the variance)"
    return channel(f"{name}:Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))


def _shown(value: object) -> object:
    """A value of a column: numbers as they are, texts without control characters."""
    return show_name(value) if isinstance(value, str) else value

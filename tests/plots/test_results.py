"""Charts of spaces, clusters and distances: what they draw, and that they can be composed."""

import json
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pytest
import vl_convert
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

import closerlook
from closerlook.errors import InputError
from closerlook.geometry import LabelDistances, cluster, cluster_distances, label_distances
from closerlook.plots.distances import dendrogram_data, plot_distances
from closerlook.plots.points import outline, principal_plane, sample_rows
from closerlook.representations.space import Space

HOSTILE = "</script><script>alert('1')</script>\"] + alert(2)\\"


def clouds(n: int = 60, seed: int = 0, spread: float = 1.0) -> Space:
    """Three labels in five dimensions; with a large spread they overlap."""
    random = np.random.default_rng(seed)
    centres = np.array([[0.0, 0, 0, 0, 0], [4, 0, 0, 0, 0], [0, 8, 0, 0, 0]])
    y = np.arange(n) % 3
    X = centres[y] + spread * random.normal(size=(n, 5))
    return Space.from_arrays(X, [f"label {code}" for code in y], words=[f"w{at}" for at in range(n)], task="clouds")


def draw(chart: Any) -> str:
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


def values(chart: Any) -> list[dict[str, Any]]:
    """The rows of a chart, or of its only layer: altair moves those to the whole."""
    found: list[dict[str, Any]] = chart.data.values
    return found


def test_a_space_is_drawn_with_its_words_and_labels() -> None:
    space = clouds()
    chart = space.plot()
    points = values(chart)
    assert [point["word"] for point in points] == list(space.words or ())
    assert [point["row"] for point in points] == list(range(60))
    assert {point["label"] for point in points} == set(space.labels)
    svg = draw(chart)
    assert "clouds" in svg
    assert "% of the variance" in svg
    assert "label 2" in svg


def test_positions_are_the_first_two_principal_components() -> None:
    space = clouds()
    xy, shares = principal_plane(space.X.astype(float))
    centred = space.X - space.X.mean(axis=0, dtype=float)
    _, lengths, directions = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ directions[:2].T
    assert np.allclose(np.abs(xy), np.abs(expected), atol=1e-5)
    assert np.allclose(shares, lengths[:2] ** 2 / (lengths**2).sum(), atol=1e-5)
    drawn = values(space.plot())
    assert np.allclose([[point["x"], point["y"]] for point in drawn], xy, atol=1e-3)


@pytest.mark.parametrize("X", [[[1.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]], [[1.0], [2.0]]])
def test_a_space_without_two_components_is_drawn(X: list[list[float]]) -> None:
    assert draw(Space.from_arrays(X, ["a"] * len(X)).plot())


def test_a_large_space_is_sampled_and_says_so() -> None:
    chart = clouds(900).plot(points=90)
    points = values(chart)
    assert len(points) == 90
    assert {point["label"]: 0 for point in points}.keys() == {"label 0", "label 1", "label 2"}
    assert sum(point["label"] == "label 1" for point in points) == 30
    assert "90 of 900 points" in draw(chart)
    assert values(clouds(900).plot(points=90)) == points
    assert values(clouds(900).plot(points=90, seed=1)) != points


def test_a_sample_is_a_set_of_rows_in_order() -> None:
    rows = sample_rows(["a", "b"] * 500, 100, seed=0)
    assert len(set(rows.tolist())) == 100
    assert sorted(rows.tolist()) == rows.tolist()


def test_a_number_of_points_below_one_is_an_error() -> None:
    with pytest.raises(InputError, match="points is 0; expected a number of at least 1"):
        clouds().plot(points=0)


def test_more_labels_than_colours_are_drawn() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    space = Space.from_arrays(X, [f"label {at // 2:02}" for at in range(50)])
    colours = space.plot().to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert len(colours["domain"]) == len(colours["range"]) == 25


def test_hostile_labels_and_words_are_only_data() -> None:
    space = Space.from_arrays([[0.0, 0.0], [1.0, 2.0], [5.0, 1.0]], [HOSTILE, "a\0", "b"], words=[HOSTILE, "x\n", "y"])
    svg = draw(space.plot())
    assert "<script" not in svg
    assert "a\\x00" in svg
    probe = closerlook.DirectProbe().fit(space.X, space.label_names)
    for chart in (probe.plot(), probe.distances_.plot(kind="dendrogram"), probe.clustering_.plot_merges()):
        assert "<script" not in draw(chart)


# ---- clusters ----


def test_a_probe_is_drawn_with_outlines_and_distances() -> None:
    space = clouds(90, spread=2.5)
    probe = closerlook.DirectProbe().fit(space.X, space.label_names)
    chart = probe.plot()
    lines, points = chart.hconcat[0].layer
    assert {point["cluster"] for point in values(points)} == set(range(probe.n_clusters_))
    sizes = probe.clustering_.sizes
    assert {line["cluster"] for line in values(lines)} == {at for at, size in enumerate(sizes) if size > 1}
    assert len(values(chart.hconcat[1])) == 6
    assert "clusters of 3 labels" in draw(chart)


def test_outlines_and_components_are_those_of_all_points() -> None:
    space = clouds(900)
    probe = closerlook.DirectProbe().fit(space.X, space.label_names)
    whole, sampled = (probe.plot(distances=False, points=points) for points in (900, 30))
    assert values(whole.layer[0]) == values(sampled.layer[0])
    assert len(values(sampled.layer[1])) == 30


def test_a_probe_without_distances_does_not_compute_them() -> None:
    space = clouds()
    probe = closerlook.DirectProbe().fit(space.X, space.label_names)
    assert isinstance(probe.plot(distances=False), alt.LayerChart)
    assert "distances_" not in dir(probe)


def test_an_outline_contains_all_points() -> None:
    xy = np.random.default_rng(0).normal(size=(200, 2))
    corners = outline(xy)
    assert np.array_equal(corners[0], corners[-1])
    for a, b in pairwise(corners):
        side = (b[0] - a[0]) * (xy[:, 1] - a[1]) - (b[1] - a[1]) * (xy[:, 0] - a[0])
        assert side.min() > -1e-12


@pytest.mark.parametrize(
    ("xy", "corners"),
    [
        ([[1.0, 1.0]], [[1.0, 1.0]]),
        ([[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]),
        ([[0.0, 0.0], [2.0, 2.0], [1.0, 1.0]], [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0]]),
    ],
)
def test_outlines_of_few_points(xy: list[list[float]], corners: list[list[float]]) -> None:
    assert outline(np.array(xy)).tolist() == corners


def test_merges_are_drawn_in_their_order() -> None:
    space = clouds(120, spread=4.0)
    clustering = cluster(space.X[:, :2], space.label_names)
    chart = clustering.plot_merges()
    points = values(chart)
    assert len(points) == len(clustering.merges) > 10
    assert [point["first row"] for point in points] == clustering.merges["first"].tolist()
    assert np.allclose([point["distance"] for point in points], clustering.merges["distance"], rtol=1e-4)
    assert [point["label"] for point in points] == [space.label_names[row] for row in clustering.merges["first"]]
    assert f"{len(points)} merges" in draw(chart)


def test_labels_that_were_merged_in_one_step_are_named() -> None:
    space = clouds(spread=0.1)
    svg = draw(cluster(space.X, space.label_names).plot_merges())
    assert "0 merges" in svg
    assert "3 labels were merged in one step and are not shown: label 0, label 1, label 2" in svg


# ---- distances ----


def distances() -> LabelDistances:
    space = clouds(spread=0.5)
    return label_distances(cluster_distances(space.X, cluster(space.X, space.label_names)))


def test_a_heat_map_has_a_cell_for_each_ordered_pair() -> None:
    table = distances()
    cells = values(table.plot())
    assert len(cells) == 6
    for cell in cells:
        i, j = (table.labels.index(cell[name]) for name in ("label", "other"))
        assert cell["distance"] == pytest.approx(table.values[i, j], rel=1e-4)


def test_the_joins_of_a_dendrogram_are_those_of_scipy() -> None:
    random = np.random.default_rng(0)
    matrix = np.abs(random.normal(size=(6, 6)))
    matrix = matrix + matrix.T
    np.fill_diagonal(matrix, 0)
    for method in ("average", "single", "complete"):
        lines, leaves = dendrogram_data(list("abcdef"), matrix, method)  # type: ignore[arg-type]
        heights = linkage(squareform(matrix), method)[:, 2]
        assert np.allclose(lines.groupby("join").joined.first(), heights)
        assert sorted(leaves.label) == list("abcdef")


def test_labels_without_a_distance_are_left_out_of_a_dendrogram() -> None:
    matrix = np.array([[0.0, 1.0, np.nan], [1.0, 0.0, np.nan], [np.nan, np.nan, 0.0]])
    svg = draw(plot_distances(["a", "b", "c"], matrix, kind="dendrogram"))
    assert "labels without a distance are left out: 1" in svg
    assert len(values(plot_distances(["a", "b", "c"], matrix))) == 2
    with pytest.raises(InputError, match="0 labels have a distance to another label; a dendrogram needs at least 2"):
        plot_distances(["a", "b"], np.full((2, 2), np.nan), kind="dendrogram")


def test_unknown_kinds_of_charts_are_errors() -> None:
    with pytest.raises(InputError, match="kind is 'tree'; expected 'heatmap' or 'dendrogram'"):
        distances().plot(kind="tree")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="linkage is 'ward'; expected 'average', 'single' or 'complete'"):
        distances().plot(kind="dendrogram", linkage="ward")  # type: ignore[arg-type]


# ---- composition ----


def test_charts_compose_without_warnings() -> None:
    before, after = clouds(seed=0), clouds(seed=1)
    probe = closerlook.DirectProbe().fit(before.X, before.label_names)
    both = (before.plot() | after.plot()) & (probe.plot() | probe.distances_.plot(kind="dendrogram"))
    svg = draw(both & probe.clustering_.plot_merges())
    assert svg.count("% of the variance") >= 4


def test_more_than_five_thousand_points_are_drawn() -> None:
    chart = clouds(6000).plot(points=6000)
    assert len(values(chart)) == 6000
    json.dumps(chart.to_dict())


def test_the_style_of_the_page_is_a_theme() -> None:
    with alt.theme.enable("default"):
        alt.theme.register("closerlook", enable=True)(closerlook.plots.theme)
        assert clouds().plot().to_dict()["config"]["view"] == {"stroke": None}

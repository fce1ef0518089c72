"""The data behind every figure, worked out by hand from golden.csv; and the figures as files."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from closerlook.report.figures import Figure
from closerlook.report.figures.centroids import centroid_paths, closest_labels
from closerlook.report.figures.similarity import layer_colours
from closerlook.report.figures.style import compact
from closerlook.report.outline import draw_figures
from closerlook.report.writing import file_names, write_figures
from closerlook.study.readings import Results, Run, index_results
from tests.report.studies import frame, golden, golden_beyond, made_up

OWN = Run("bert-tiny", "ps-fxn", 0, "ps-fxn")


@pytest.fixture(scope="module")
def results() -> Results:
    return index_results(golden())


@pytest.fixture(scope="module")
def figures(results: Results) -> dict[tuple[str, str], Figure]:
    return {(figure.kind, figure.task): figure for figure in draw_figures(results)}


def rows(figure: Figure, *columns: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in figure.data[list(columns)].itertuples(index=False)]


def test_the_golden_table_has_these_figures(figures: dict[tuple[str, str], Figure]) -> None:
    assert sorted(kind for kind, _ in figures) == sorted(
        [
            "accuracy",
            "glance",
            "clusters",
            "distances",
            "paths",
            "shifts",
            "label-distances",
            "similarity",
            "similarity",
            "similarity",
        ]
    )


def test_accuracy_and_similarity_before_and_after(figures: dict[tuple[str, str], Figure]) -> None:
    found = rows(figures["accuracy", ""], "measure", "task", "state", "value", "low", "high")
    assert found[:2] == [("accuracy", "ps-fxn", "before", 74, 73, 75), ("accuracy", "ps-fxn", "after", 75, 74, 76)]
    assert ("similarity", "pos", "after", 0.7, 0.6, 0.74) in found
    assert len(found) == 12


def test_clusters_per_label(figures: dict[tuple[str, str], Figure]) -> None:
    found = rows(figures["clusters", ""], "task", "state", "clusters", "labels", "value")
    assert found[0] == ("ps-fxn", "before", 5, 3, 1.6667)
    assert found[-1] == ("pos", "after", 6, 3, 2)


def test_minimum_distances_during_fine_tuning(figures: dict[tuple[str, str], Figure]) -> None:
    figure = figures["distances", "ps-fxn"]
    assert rows(figure, "label", "step", "nearest_label", "distance", "distance_in_rms_radii", "change") == [
        ("A", 0, "B", 1, 0.5, 0),
        ("A", 10, "B", 2, 1, 1),
        ("A", 20, "B", 4, 2, 3),
        ("B", 0, "A", 1, 0.5, 0),
        ("B", 10, "A", 1.5, 0.75, 0.5),
        ("B", 20, "A", 1.25, 0.625, 0.25),
        ("C", 0, "A", 2, 1, 0),
        ("C", 10, "A", 2.5, 1.25, 0.5),
        ("C", 20, "A", 2.5, 1.25, 0.5),
    ]
    assert [(toggle.name, toggle.on, toggle.remark) for toggle in figure.toggles] == [
        ("A", True, "+3.00"),
        ("C", True, "+0.50"),
        ("B", True, "+0.25"),
    ]


def test_only_the_three_largest_and_smallest_changes_are_shown_first() -> None:
    labels = [f"label {at}" for at in range(9)]
    table = made_up(tasks={"many": labels})
    at_last = (table.measure == "minimum_distance") & (table.step == 100)
    table.loc[at_last, "value"] = [float(at) * 10 for at in range(9)] * (at_last.sum() // 9)
    figure = next(one for one in draw_figures(index_results(table)) if one.kind == "distances")
    assert [toggle.name for toggle in figure.toggles if toggle.on] == [labels[at] for at in (8, 7, 6, 2, 1, 0)]
    assert len(figure.toggles) == 9


def test_minimum_distances_during_fine_tuning_on_another_task() -> None:
    figure = next(one for one in draw_figures(index_results(golden_beyond())) if one.kind == "cross-distances")
    assert (figure.encoder, figure.task) == ("bert-tiny", "pos → ps-fxn")
    assert figure.title == "Distance to the nearest other label: bert-tiny, fine-tuned on pos, probed on ps-fxn"
    assert figure.caption.startswith("Fine-tuned on pos, probed on ps-fxn: train, layer 2, 3 labels.")
    assert rows(figure, "label", "step", "nearest_label", "distance", "change") == [
        ("A", 0, "B", 1, 0),
        ("A", 20, "C", 0.5, -0.5),
        ("B", 0, "A", 1, 0),
        ("B", 20, "A", 0.75, -0.25),
        ("C", 0, "A", 2, 0),
        ("C", 20, "A", 2.5, 0.5),
    ]
    assert figure.data.distance_in_rms_radii.tolist()[:2] == [0.5, 0.25]
    assert [(toggle.name, toggle.remark) for toggle in figure.toggles] == [
        ("C", "+0.50 †"),
        ("B", "-0.25"),
        ("A", "-0.50"),
    ]
    assert "Of 3 labels, C has the largest increase (+0.50) and A the largest decrease (-0.50)." in figure.alt


def test_heat_map_holds_each_pair_both_ways_before_and_after(figures: dict[tuple[str, str], Figure]) -> None:
    found = rows(figures["label-distances", "ps-fxn"], "state", "label", "other", "distance")
    assert len(found) == 12
    assert ("before", "C", "B", 3) in found
    assert ("after", "B", "C", 2.5) in found
    assert "Closest after fine-tuning: B and C, distance 2.50." in figures["label-distances", "ps-fxn"].alt


def test_paths_of_centroids_at_the_first_and_last_layer(figures: dict[tuple[str, str], Figure]) -> None:
    figure = figures["paths", "ps-fxn"]
    assert rows(figure, "layer", "label", "step", "x", "y", "end")[:2] == [
        (1, "A", 0, 0, 0, "start"),
        (1, "A", 20, 1, -1, "end"),
    ]
    assert (2, "C", 20, 4, 0, "end") in rows(figure, "layer", "label", "step", "x", "y", "end")
    assert "They explain 75% (layer 1) and 75% (layer 2) of the variance." in figure.caption


def test_every_point_of_a_path_is_drawn() -> None:
    """The marks of the chart show each value of `end` in the data, so that every snapshot has a point and a tooltip."""
    figure = next(figure for figure in draw_figures(index_results(made_up())) if figure.kind == "paths")
    assert set(figure.data.end) == {"start", "between", "end"}
    text = json.dumps(figure.chart.to_dict())
    assert set(re.findall(r"datum\.end == '([^']+)'", text)) == set(figure.data.end)


def test_shifts_give_the_share_of_their_squared_length(figures: dict[tuple[str, str], Figure]) -> None:
    panels = figures["shifts", "ps-fxn"].chart.to_dict()["concat"]
    assert panels[0]["title"]["subtitle"] == "85% of squared length"


def test_the_chart_of_the_paths_draws_the_start_the_end_and_all_steps_between(results: Results) -> None:
    figure = centroid_paths(results)[0]
    chart = json.dumps(figure.chart.to_dict(validate=False))
    assert all(f"datum.end == '{end}'" in chart for end in ("start", "between", "end"))


def test_the_three_closest_labels_are_those_with_the_smallest_triangle() -> None:
    distances = {"AB": 1.0, "AC": 9.0, "AD": 9.0, "BC": 2.0, "BD": 2.5, "CD": 1.5}
    place = {"encoder": "bert-tiny", "task": "ps-fxn", "layer": 2, "step": 0, "is_final": False}
    table = frame(
        place | {"measure": "label_distance", "label": a, "other": b, "value": v} for (a, b), v in distances.items()
    )
    start = frame([place | {"measure": "n_clusters", "value": 4.0}])
    import pandas as pd

    results = index_results(pd.concat([table, start]))
    assert closest_labels(results, OWN, list("ABCD")) == ["B", "C", "D"]  # 2 + 2.5 + 1.5


def test_shifts_point_to_the_right_and_keep_their_length(figures: dict[tuple[str, str], Figure]) -> None:
    assert rows(figures["shifts", "ps-fxn"], "layer", "label", "x", "y", "length") == [
        (1, "A", 1, 0, 3),
        (1, "B", 2, 1, 3),
        (1, "C", 3, 2, 3),
        (2, "A", 2, 0, 6),
        (2, "B", 4, 2, 6),
        (2, "C", 6, 4, 6),
    ]


def test_similarity_to_the_original_along_the_updates(figures: dict[tuple[str, str], Figure]) -> None:
    figure = figures["similarity", "ps-fxn"]
    assert rows(figure, "layer", "step", "similarity", "low", "high", "p", "n") == [
        (0, 20, 0.99, 0.89, 1, 0.01, 3),
        (1, 20, 0.9, 0.8, 1, 0.01, 3),
        (2, 0, 1, 0.9, 1, 0.01, 3),
        (2, 10, 0.7, 0.6, 1, 0.01, 3),
        (2, 20, 0.5, 0.4, 1, 0.01, 3),
    ]
    assert "Some layers were measured only before and after fine-tuning." in figure.caption


def test_seeds_are_averaged_with_their_range() -> None:
    figure = next(one for one in draw_figures(index_results(made_up(seeds=(0, 5)))) if one.kind == "distances")
    last = figure.data[(figure.data.label == "cat") & (figure.data.step == 100)].iloc[0]
    assert (last.low, last.distance, last.high) == (4.0, 4.25, 4.5)
    assert "mean of 2 seeds" in figure.caption


def test_every_layer_has_a_colour_of_its_own() -> None:
    assert len(set(layer_colours(25))) == 25
    assert len(layer_colours(1)) == 1


def test_numbers_keep_five_digits() -> None:
    import pandas as pd

    found = compact(pd.DataFrame({"x": [123456.7, 0.000123456, 0.0, float("nan"), -2.0]})).x
    assert found.tolist()[:3] == [123460.0, 0.00012346, 0.0]
    assert found.isna().tolist() == [False, False, False, True, False]


def test_each_figure_is_written_as_svg_png_pdf_and_csv(results: Results, tmp_path: Path) -> None:
    figures = [figure for figure in draw_figures(results) if figure.kind in {"distances", "accuracy"}]
    written = write_figures(figures, tmp_path)
    assert sorted(path.suffix for path in written) == [".csv"] * 2 + [".pdf"] * 2 + [".png"] * 2 + [".svg"] * 2
    heads = {path.suffix: path.read_bytes()[:4] for path in written}
    assert (heads[".png"], heads[".pdf"], heads[".svg"]) == (b"\x89PNG", b"%PDF", b"<svg")
    svg = (tmp_path / "distances_bert-tiny_ps-fxn.svg").read_text()
    assert "Distance to the nearest other label: bert-tiny on ps-fxn" in svg
    assert "3 labels" in svg
    first = (tmp_path / "distances_bert-tiny_ps-fxn.csv").read_text().splitlines()[0]
    assert first == (
        "label,step,nearest_label,distance,low,high,distance_in_rms_radii,change,p,few_points,change_group"
    )


def test_files_are_the_same_whether_drawn_in_one_process_or_in_two(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = [figure for figure in draw_figures(results) if figure.kind == "label-distances"] * 3
    monkeypatch.setattr("closerlook.report.writing.count_threads", lambda requested: 2)
    for per_process, folder in ((1, "two"), (100, "one")):
        monkeypatch.setattr("closerlook.report.writing.FIGURES_PER_PROCESS", per_process)
        write_figures(figures, tmp_path / folder)
    for path in (tmp_path / "one").iterdir():
        if path.suffix != ".pdf":  # contains the time
            assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_hostile_names_are_text_in_svg_files(tmp_path: Path) -> None:
    table = made_up(encoders=["<script>alert(1)</script>"], tasks={"../t": ["<img src=x onerror=alert(1)>", "b", "c"]})
    figures = [
        figure for figure in draw_figures(index_results(table)) if figure.kind in {"label-distances", "distances"}
    ]
    written = write_figures(figures, tmp_path / "figures")
    assert {path.parent for path in written} == {tmp_path / "figures"}
    for path in written:
        if path.suffix == ".svg":
            text = path.read_text()
            assert "<script" not in text
            assert "<img" not in text


def test_file_names_are_plain_and_different() -> None:
    tables = [made_up(encoders=["a/b"], tasks={"x y": list("abc"), "x:y": list("abc"), "日本": list("abc")})]
    names = file_names(
        [figure for figure in draw_figures(index_results(tables[0])) if figure.kind == "label-distances"]
    )
    assert names == ["label-distances_a-b_x-y", "label-distances_a-b_x-y~2", "label-distances_a-b_日本"]


def test_names_are_in_data_and_scales_never_in_expressions() -> None:
    """Vega writes sort orders and conditions into code of its own; a line separator in a label would break it."""
    table = made_up(["odd encoder"], {"odd task": ["odd \u2028 one", "odd two", "odd three", "odd four"]}, wider=True)
    for figure in draw_figures(index_results(table)):
        for key, value in _texts(figure.specification() | {"datasets": {}}):
            assert "odd" not in value or key in {"domain", "values", "value", "description"}, (key, value)


def _texts(part: object, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(part, str):
        yield key, part
    elif isinstance(part, dict):
        for name, one in part.items():
            yield from _texts(one, name)
    elif isinstance(part, list):
        for one in part:
            yield from _texts(one, key)


def test_specifications_hold_all_their_data(figures: dict[tuple[str, str], Figure]) -> None:
    for figure in figures.values():
        spec = figure.specification()
        assert len(spec["datasets"]["rows"]) == len(figure.data)
        json.dumps(spec, allow_nan=False)


def test_figures_of_an_earlier_table_go_and_other_files_stay(tmp_path: Path) -> None:
    drawn = draw_figures(index_results(golden()))[:3]
    before = write_figures(drawn, tmp_path)
    own = tmp_path / "paths_of_my_own.csv"
    own.write_text("mine")
    after = write_figures(drawn[:1], tmp_path)
    assert {path for path in tmp_path.iterdir() if path.suffix} == {*after, own}
    assert len(before) > len(after)

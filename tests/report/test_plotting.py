"""`plot_study`: every figure of the page as a chart."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import vl_convert

import closerlook
from closerlook.errors import InputError
from closerlook.report.figures import Figure
from closerlook.report.outline import draw_figures, figure_entries
from closerlook.report.plotting import to_chart
from closerlook.study.readings import index_results
from tests.report.studies import golden, golden_beyond, made_up, write_study

KINDS = [entry.kind for entry in figure_entries()]


TWO = ("bert-tiny", "bert-mini")
Drawn = dict[str, tuple[pd.DataFrame, list[Figure]]]


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    """For each kind of figure, a table that has the data for it, and the figures of the page."""
    found: Drawn = {}
    for table in (golden_beyond(), golden(), made_up(TWO, {"animals": ["cat", "dog"]}, steps=(0, 9), layers=(0, 1))):
        for figure in draw_figures(index_results(table)):
            if found.setdefault(figure.kind, (table, []))[0] is table:
                found[figure.kind][1].append(figure)
    return found


def draw(chart: Any) -> str:
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_of_the_page_is_a_chart_with_the_same_rows(kind: str, drawn: Drawn) -> None:
    table, figures = drawn[kind]
    chart = closerlook.plot_study(table, kind)
    parts = [chart] if len(figures) == 1 else chart.vconcat
    assert [len(part.data.values) for part in parts] == [len(figure.data) for figure in figures]
    assert [part.title.text for part in parts] == [figure.title for figure in figures]


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_can_be_composed_with_itself_and_drawn(kind: str, drawn: Drawn) -> None:
    chart = to_chart(drawn[kind][1][0])
    one, two = draw(chart), draw(chart & chart)
    assert one.count("<path") * 1.5 < two.count("<path")


def test_a_figure_shows_what_the_page_shows_at_first() -> None:
    (figure,) = [one for one in draw_figures(index_results(golden())) if one.kind == "distances"]
    spec = figure.specification()
    spec.pop("config")
    page = str(vl_convert.vegalite_to_svg(spec))
    chart = to_chart(figure)
    chart.title = closerlook.plots.style.heading("")
    assert draw(chart).count("<path") == page.count("<path")


def test_figures_of_one_encoder_and_one_task() -> None:
    table = made_up(TWO, steps=(0, 9), layers=(0, 1))
    whole = closerlook.plot_study(table, "distances").vconcat
    assert len(whole) == 4
    one = closerlook.plot_study(table, "distances", encoder="bert-mini", task="colours")
    assert "bert-mini" in one.title.text
    assert "colours" in one.title.text
    accuracy = closerlook.plot_study(table, "accuracy", encoder="bert-tiny", task="animals")
    assert {row["task"] for row in accuracy.data.values} == {"animals"}


def test_an_unknown_kind_encoder_or_task_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="kind is 'nothing'; expected one of glance, side-by-side, by-layer,"):
        closerlook.plot_study(golden(), "nothing")
    with pytest.raises(InputError, match="encoder 'x' requested; the table has bert-tiny"):
        closerlook.plot_study(golden(), "accuracy", encoder="x")
    with pytest.raises(InputError, match="task 'x' requested; the table has ps-fxn, ps-role, pos"):
        closerlook.plot_study(golden(), "accuracy", task="x")
    with pytest.raises(
        InputError, match="kind is 'nulls'; the table has no rows for such a figure of bert-tiny on pos"
    ):
        closerlook.plot_study(golden(), "nulls", encoder="bert-tiny", task="pos")


def test_a_table_without_the_columns_of_results_is_an_error() -> None:
    with pytest.raises(InputError, match="the table has no column 'study'; expected a table of results"):
        closerlook.plot_study(pd.DataFrame({"a": [1]}), "accuracy")


def test_the_folder_of_a_study_is_read(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "study", golden())
    from_folder, from_table = (closerlook.plot_study(source, "accuracy") for source in (folder, golden()))
    assert from_folder.to_dict() == from_table.to_dict()


def test_hostile_labels_in_a_figure_are_only_data() -> None:
    hostile = 'x\'"] + alert(1) + ["shown\\'
    table = golden()
    table["label"] = table["label"].replace("A", hostile)
    table["other"] = table["other"].replace("A", hostile)
    plain, changed = (draw(closerlook.plot_study(one, "distances", task="ps-fxn")) for one in (golden(), table))
    assert plain.count("<path") == changed.count("<path")


def test_the_documentation_lists_every_kind_of_figure() -> None:
    page = (Path(__file__).parents[2] / "docs" / "plots.md").read_text(encoding="utf-8")
    listed = page.split("<!-- figures -->")[1].split("<!-- end -->")[0]
    rows = "".join(f"| `{entry.kind}` | {entry.title} |\n" for entry in figure_entries())
    assert listed == f"\n\n| kind | figure |\n|---|---|\n{rows}\n"

"""The gallery shows every kind of figure: those of a study, with the texts of the report page, and those of results."""

import inspect
import re
from pathlib import Path

import pytest

from closerlook.report.outline import FigureEntry, figure_entries
from tests.docs.public import public_names

PAGE = (Path(__file__).parents[2] / "docs" / "gallery.md").read_text(encoding="utf-8")
CHART = re.compile(r"^```{chart}([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE = "".join(code for _, code in CHART.findall(PAGE))


@pytest.mark.parametrize("entry", figure_entries(), ids=lambda entry: entry.kind)
def test_it_shows_every_kind_of_figure_of_a_study(entry: FigureEntry) -> None:
    (section,) = re.findall(rf"^### {re.escape(entry.title)}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    ((_, code),) = CHART.findall(section)
    assert entry.reading in section
    assert re.search(rf'plot_study\(\w+, "{entry.kind}"', code)


def test_it_shows_every_chart_of_a_result() -> None:
    methods = {
        method
        for named in public_names().values()
        if inspect.isclass(named)
        for method in vars(named)
        if method.startswith("plot")
    }
    assert {"plot", "plot_merges"} <= methods
    assert {method for method in methods if f".{method}(" not in CODE} == set()


def test_every_chart_has_a_description() -> None:
    without = [code for described, code in CHART.findall(PAGE) if not described.strip()]
    assert all(re.search(r"^\w+ = .*$", code.splitlines()[-1]) for code in without)  # these draw nothing

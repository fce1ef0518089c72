"""The outline is the one list of what a page shows: nothing that draws or tabulates is missing from it."""

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from closerlook import report
from closerlook.report import figures, outline, shape
from closerlook.report.archive import shown_rows
from closerlook.report.comparison import shape_table
from closerlook.report.export import all_tables
from closerlook.report.figures import encoders
from closerlook.report.outline import OUTLINE, FigureEntry, Section, draw_figures, figure_entries
from closerlook.report.writing import write_report
from closerlook.study import registry
from closerlook.study.measure import Measure
from closerlook.study.readings import index_results
from tests.report.studies import golden_beyond, made_up, write_study
from tests.report.test_page import MANIFEST


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        yield import_module(info.name)


def functions_returning(package: ModuleType, annotation: str) -> set[Callable[..., object]]:
    """The public functions of a package that take the results of one study and return something of a type."""
    found = set()
    for module in modules(package):
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_"):
                signature = inspect.signature(function)
                first = next(iter(signature.parameters.values()), None)
                if signature.return_annotation == annotation and first is not None and first.annotation == "Results":
                    found.add(function)
    return found


def test_every_table_of_the_package_is_in_the_outline() -> None:
    tables = functions_returning(report, "Table")
    assert len(tables) > 15
    assert tables == {entry.make for section in OUTLINE for entry in section.tables}


def test_every_figure_of_the_package_is_in_the_outline() -> None:
    drawn = functions_returning(figures, "Figure | None")
    assert len(drawn) > 10
    assert drawn == {entry.draw for entry in figure_entries()}


def test_every_sentence_of_the_package_is_in_the_outline() -> None:
    texts = {function for function in functions_returning(report, "str") if function.__name__.endswith("_text")}
    assert texts
    assert texts == {write for section in OUTLINE for write in section.texts}


def test_names_are_distinct() -> None:
    kinds, sections = [entry.kind for entry in figure_entries()], [section.name for section in OUTLINE]
    tables = [table.name for table in all_tables(index_results(golden_beyond()))]
    for names in (kinds, sections, tables):
        assert len(set(names)) == len(names)


def test_every_figure_and_table_says_how_to_read_it() -> None:
    assert [entry.kind for entry in figure_entries() if not entry.reading.endswith(".")] == []
    for study in (golden_beyond(), made_up(["a", "b"]), made_up(steps=())):
        assert [table.name for table in all_tables(index_results(study, MANIFEST)) if not table.note] == []


def test_a_new_figure_takes_one_line_in_the_outline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = FigureEntry("twice", "The same figure again", encoders.by_layer)
    added = Section("new", "A new section", "New", figures=(entry,))
    monkeypatch.setattr("closerlook.report.outline.OUTLINE", (*OUTLINE, added))
    folder = write_study(tmp_path, made_up())
    assert "twice" in {figure.kind for figure in outline.draw_figures(index_results(made_up()))}
    page = write_report(folder, figures=False).read_text(encoding="utf-8")
    assert '<a href="#new">New</a>' in page
    assert 'data-kind="twice"' in page
    assert "The same figure again" in page


def test_a_new_scalar_needs_no_change_of_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    new = Measure("kurtosis", "kurtosis", "how heavy the tails are; 3: normal", digits=1, group="dimension")
    monkeypatch.setitem(registry.MEASURES, "kurtosis", new)
    table = made_up(wider=True)
    rows = table[table.measure == "two_nn"].assign(measure="kurtosis", value=4.25)
    study = index_results(pd.concat([table, rows]))
    shown = next(entry for entry in all_tables(study) if entry.name == "shape").shown()
    assert ["dimension", "kurtosis: how heavy the tails are; 3: normal", "4.2 → 4.2", "4.2 → 4.2"] in shown
    assert any(row[2] == "kurtosis" for row in shape_table([study, study]).shown())
    assert (shown_rows(pd.concat([table, rows])).measure == "kurtosis").sum() == len(rows)
    monkeypatch.setitem(registry.MEASURES, "kurtosis", replace(new, archive="none"))
    assert not (shown_rows(pd.concat([table, rows])).measure == "kurtosis").any()


def test_measures_of_one_group_are_together() -> None:
    groups = [measure.group for measure in shape.shape_measures()]
    changes = sum(first != second for first, second in pairwise(groups))
    assert changes == len(set(groups)) - 1


def test_figures_know_their_kind() -> None:
    studies = (golden_beyond(), made_up(["a", "b"]))
    kinds = {figure.kind for table in studies for figure in draw_figures(index_results(table))}
    assert kinds == {entry.kind for entry in figure_entries()}

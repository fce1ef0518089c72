"""Hostile labels, words and names: every file of the report opens, no script runs, and no request leaves."""

import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from closerlook.errors import InputError
from closerlook.escaping import csv_text, from_csv_text, show_text
from closerlook.report import write_report
from closerlook.report.blocked_merges import blocked_spaces
from closerlook.report.export import all_tables, write_tables
from closerlook.report.figures import Figure
from closerlook.report.inlining import CHART_LIBRARY
from closerlook.report.outline import draw_figures
from closerlook.report.writing import load_study, write_figures
from closerlook.study.results import CSV, load_results
from closerlook.study.spreadsheet import write_csv
from tests.report.studies import browser, data_of, made_up, write_study
from tests.report.test_page import MANIFEST

IMAGE = "\"><img src=http://rain.example/ onerror='window.ran = 1'>"
SCRIPT = "</script><script>window.ran = 1</script>"
LONG = "long " * 2000
LABELS = ["a\0", "a", "a\\x00", SCRIPT, IMAGE, "gnp\u202eexe", "=1+1", "\x1b[31m\ufffe\x85", LONG]
FORMULAS = ["=1+1", "+1", "-LRB-", "@a", "\tx", "\rx", "\nx", "'=x", "''", "'", "a\rb", 'a"b', "NA", "", "a\0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a hostile study, with its page."""
    tasks = {f"task {IMAGE}": LABELS, "=task\x1b": LABELS[:4]}
    table = made_up([f"encoder\0{SCRIPT}"], tasks, word=f"\0{SCRIPT}", steps=(0, 9), layers=(0, 1), wider=True)
    manifest = MANIFEST | {"study": f"\0{SCRIPT}", "packages": {f"\x1b{IMAGE}": "\0"}}
    out = write_study(tmp_path_factory.mktemp("hostile"), table, manifest)
    write_report(out, figures=False)
    return out


@pytest.fixture(scope="module")
def figures(folder: Path) -> list[Figure]:
    return draw_figures(load_study(folder))


# ---- files ----


def check_files(figures: list[Figure], folder: Path) -> None:
    """Write the figures, and check that every file opens."""
    write_figures(figures, folder)
    written = sorted(folder.glob("*.svg"))
    assert len(written) == len(figures)
    for figure in written:
        root = ET.fromstring(figure.read_text(encoding="utf-8"))  # noqa: S314 - our own file
        assert not [tag for tag in root.iter() if tag.tag.rpartition("}")[2] in {"script", "image", "foreignObject"}]
        assert figure.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert figure.with_suffix(".pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
def test_every_figure_is_well_formed(figures: list[Figure], tmp_path: Path) -> None:
    assert len(figures) > 5
    check_files(figures, tmp_path)


def test_the_figure_of_label_distances_is_well_formed_and_keeps_labels_apart(
    figures: list[Figure], tmp_path: Path
) -> None:
    check_files([next(figure for figure in figures if figure.kind == "label-distances")], tmp_path)
    with next(tmp_path.glob("*.csv")).open(encoding="utf-8", newline="") as stream:
        labels = {row["label"] for row in csv.DictReader(stream)}
    assert {"a", "a\\x00", "a\\\\x00", "gnp\\u202eexe", "'=1+1"} <= labels


def test_no_control_character_reaches_the_page(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    data = {name: value for name, value in data_of(page).items() if name != CHART_LIBRARY}
    assert len(data) > 5
    for text in (page, json.dumps(data, ensure_ascii=False)):
        assert not {"\0", "\x1b", "\u202e", "\x85", "\ufffe"} & set(text)


def test_tables_in_every_format_have_no_control_characters_and_no_formulas(folder: Path) -> None:
    tables = all_tables(load_study(folder))
    for form in ("markdown", "latex", "csv"):
        text = write_tables(tables, form)  # type: ignore[arg-type]
        assert not {"\0", "\x1b", "\u202e", "\x85", "\r"} & set(text)
    cells = [cell for row in csv.reader(write_tables(tables, "csv").splitlines()) for cell in row]
    assert "'=task\\x1b" in cells
    numbers = [cell for cell in cells if cell[:1] in {"=", "+", "-", "@"}]
    assert [float(cell) for cell in numbers] == [float(cell) for cell in numbers]


# ---- CSV ----


def test_the_table_as_csv_has_no_formulas_and_comes_back_unchanged(tmp_path: Path) -> None:
    table = made_up(["-encoder"], {"=task": FORMULAS[:13]}, word="=x")
    table["value"] = -table["value"]
    with (tmp_path / CSV).open("wb") as stream:
        write_csv(table, stream)
    with (tmp_path / CSV).open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    texts = {row[name] for row in rows for name in ("encoder", "task", "label", "other", "text")}
    assert not [text for text in texts if text[:1] in {"=", "+", "-", "@", "\t", "\r", "\n"}]
    assert any(row["value"].startswith("-") for row in rows)  # numbers stay numbers
    pd.testing.assert_frame_equal(load_results(tmp_path / CSV), table.astype(load_results(tmp_path / CSV).dtypes))


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_comes_back_from_its_cell(text: str) -> None:
    assert from_csv_text(csv_text(text)) == text
    assert csv_text(text)[:1] not in {"=", "+", "-", "@", "\t", "\r", "\n"} or not text


def test_different_texts_are_shown_differently_and_without_control_characters() -> None:
    texts = [*LABELS, *FORMULAS, "\\", "\\\\", "\\\\x00", "\\\0", "\\u202e", "\ud800", "\n", "\\n", "\\x0a"]
    shown = [show_text(text) for text in texts]
    assert len(set(shown)) == len(set(texts))
    assert all(text.encode() and (text.isprintable() or text == "") for text in shown if text)


# ---- manifest ----


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"a": ' * 600 + "1" + "}" * 600,
        '{"encoders": 5}',
        '{"encoders": {"e": {"parameters": "many"}}}',
        '{"kinds": {"tune": {}}}',
        '{"kinds": {"tune": {"cells": 1, "seconds": Infinity, "cpu_seconds": 0}}}',
        '{"tasks": {"t": {"labels": 5}}}',
        '{"failed": [5]}',
        '{"plan": {"cross": [5]}}',
        "\udcff",
    ],
)
def test_a_malformed_manifest_is_refused(tmp_path: Path, content: str) -> None:
    out = write_study(tmp_path, made_up())
    (out / "manifest.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(
        InputError, match="manifest.json.*; expected the manifest that a study writes, or none"
    ) as caught:
        write_report(out, figures=False)
    assert "\n" not in str(caught.value)
    assert not (out / "report.html").exists()


def test_the_words_of_a_blocked_merge_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    table = made_up()
    for text in ("[" * 100_000, "5", json.dumps({"points": 5})):
        table.loc[table["measure"] == "blocked_merge", "text"] = text
        with pytest.raises(InputError, match="a blocked merge in the table cannot be read"):
            blocked_spaces(load_study(write_study(tmp_path, table)))


# ---- browser ----

in_browser = pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")
UNTOUCHED = "window.ran === undefined && !document.querySelector('main img, main script:not([type])')"


@pytest.fixture(scope="module")
def visit_of(chromium: Any) -> Any:
    from tests.report.test_browser import visit

    return lambda path: visit(chromium, path)


@pytest.mark.slow
@in_browser
def test_no_script_runs_and_no_request_leaves(visit_of: Any, folder: Path) -> None:
    from tests.report.test_browser import draw_all

    here = visit_of(folder / "report.html")
    draw_all(here.page)
    here.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    for select in here.page.query_selector_all("[data-pick] select"):
        for option in select.query_selector_all("option"):
            select.select_option(option.get_attribute("value"))
    draw_all(here.page)
    assert here.page.evaluate(UNTOUCHED)
    assert "a\\x00" in here.page.inner_text("main")
    assert here.problems == []
    here.page.close()


@pytest.mark.slow
@in_browser
def test_every_figure_downloads_and_opens(visit_of: Any, folder: Path, tmp_path: Path) -> None:
    from tests.report.test_browser import draw_all

    saved: list[Path] = []
    for kind in ("svg", "png", "csv"):
        done, whole = 0, 1
        while done < whole:
            here = visit_of(folder / "report.html")  # Chromium stops a page after ten downloads
            draw_all(here.page)
            buttons = here.page.query_selector_all(f"figure [data-save={kind}]")
            whole = len(buttons)
            for button in buttons[done : done + 8]:
                with here.page.expect_download() as waiting:
                    button.click()
                saved.append(tmp_path / f"{len(saved)}.{kind}")
                waiting.value.save_as(saved[-1])
            done += 8
            assert here.problems == []
            here.page.close()
    assert len({path.suffix for path in saved}) == 3
    for path in saved:
        if path.suffix == ".svg":
            ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 - our own file
            opened = visit_of(path)
            assert opened.page.evaluate("window.ran === undefined && !document.querySelector('script, image')")
            assert [problem for problem in opened.problems if not problem.endswith(path.name)] == []
            opened.page.close()
        elif path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        else:
            cells = [cell for row in csv.reader(path.read_text(encoding="utf-8").splitlines()) for cell in row]
            for cell in cells:
                assert cell[:1] not in {"=", "+", "-", "@"} or float(cell) is not None

"""The page in Chromium: the choice of encoder and task, and tables that are sorted, searched, collapsed and linked."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from closerlook.report import write_report
from tests.report.studies import browser, made_up, write_study
from tests.report.test_browser import scroll_to, until, visit

pytestmark = pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")
pytest.importorskip("playwright.sync_api")

TASKS = {
    "animals": ["cat", "dog", "eel"],
    "colours": ["red", "green", "blue", "grey"],
    "shapes": ["cube", "ring", "cone"],
}
ROWS = "id => [...document.querySelectorAll(`#table-${id} tbody tr`)].filter(one => one.offsetParent)"
TEXTS = """([id, column]) => {
    const heads = [...document.querySelectorAll(`#table-${id} thead tr:last-child th`)];
    const fromEnd = heads.length - heads.findIndex(one => one.querySelector('bdi').textContent === column);
    return [...document.querySelectorAll(`#table-${id} tbody tr`)]
        .map(row => row.cells[row.cells.length - fromEnd]?.querySelector('bdi')?.textContent);
}"""
IS_WHOLE = """id => {
    const rows = [...document.querySelectorAll(`#table-${id} tbody tr`)], taken = rows.map(() => 0);
    rows.forEach((row, at) => [...row.cells].forEach(cell => {
        for (let one = at; one < at + cell.rowSpan; one += 1) taken[one] += cell.colSpan; }));
    return new Set(taken).size === 1;
}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two encoders on three tasks; the second encoder was not measured on the third task."""
    whole = made_up(["bert-tiny", "bert-mini"], TASKS, wider=True)
    table = pd.DataFrame(whole[(whole.encoder != "bert-mini") | (whole.task != "shapes")])
    return write_report(write_study(tmp_path_factory.mktemp("choice"), table), figures=False)


def choose(page: Any, **names: str) -> None:
    for what, name in names.items():
        page.select_option(f".filter [name={what}]", name)


def shown(page: Any, table: str, column: str) -> list[str]:
    texts: list[str] = page.evaluate(TEXTS, [table, column])
    return texts


def count(page: Any, table: str) -> int:
    rows: int = page.evaluate(f"id => ({ROWS})(id).length", table)
    return rows


def test_all_tables_and_figures_follow_the_choice_and_verdicts_say_that_they_do_not(chromium: Any, page: Path) -> None:
    here = visit(chromium, page)
    verdicts = here.page.inner_text(".cards")
    assert not here.page.is_visible(".whole >> nth=0")
    choose(here.page, encoder="bert-mini", task="colours")
    assert set(shown(here.page, "harm", "task")) == {"colours"}
    assert here.page.inner_text("#table-harm tbody th[scope=rowgroup]") == "bert-mini"
    heads = here.page.query_selector_all("#table-summary thead th:not([hidden]) bdi")
    assert [head.inner_text() for head in heads] == ["encoder", "measure", "colours"]
    assert here.page.evaluate("[...document.querySelectorAll('.answers li:not(.filtered-out)')].length") <= 5
    picks = here.page.query_selector_all("#figure-distances .tab:not([hidden]) input")
    assert [pick.get_attribute("value") for pick in picks] == ["bert-mini", "colours"]
    assert here.page.is_visible(".whole >> nth=0")
    assert here.page.inner_text(".cards") == verdicts
    assert here.page.evaluate("location.hash") == "#?encoder=bert-mini&task=colours"
    here.page.click(".filter [type=reset]")
    until(here.page, "location.hash === ''")
    assert len(set(shown(here.page, "harm", "task"))) == 3
    assert here.problems == []
    here.page.close()


def test_figures_draw_the_rows_of_the_choice(chromium: Any, page: Path) -> None:
    here = visit(chromium, page)
    choose(here.page, task="animals")
    for name in ("glance", "accuracy", "by-layer"):
        figure = here.page.query_selector(f"#figure-{name}")
        scroll_to(figure)
        until(here.page, "one => one.querySelector('.chart').dataset.state === 'drawn'", figure)
        assert "animals" in figure.inner_text()
        assert "colours" not in figure.inner_text()
    figure = here.page.query_selector("#figure-glance")
    assert "Only animals is drawn" in figure.inner_text()
    assert len(figure.query_selector_all(".mark-symbol path")) >= 4  # two encoders in two panels
    figure.query_selector("summary").click()
    until(here.page, "one => one.querySelectorAll('details.data tbody tr').length === 4", figure)
    assert here.problems == []
    here.page.close()


def test_what_has_nothing_left_says_so(chromium: Any, page: Path) -> None:
    here = visit(chromium, page)
    choose(here.page, encoder="bert-mini", task="shapes")
    assert here.page.inner_text("#table-harm tbody") == "This table has nothing about bert-mini on shapes."
    for figure in ("distances", "glance"):
        scroll_to(here.page.query_selector(f"#figure-{figure}"))
        assert "nothing about bert-mini on shapes" in here.page.inner_text(f"#figure-{figure} .chart").replace(
            "There is no such figure", "nothing"
        )
    assert "bert-mini on shapes" in here.page.text_content("#finding-1 .answers .nothing")
    assert "No blocked merges on this page are about bert-mini on shapes." in here.page.inner_text("#drill")
    assert here.problems == []
    here.page.close()


def test_a_link_keeps_place_and_choice_and_ignores_unknown_names(chromium: Any, page: Path) -> None:
    here = visit(chromium, page)
    here.page.goto(f"{page.as_uri()}#table-labels?task=colours&encoder=nobody")
    here.page.reload()
    assert here.page.input_value(".filter [name=task]") == "colours"
    assert here.page.input_value(".filter [name=encoder]") == ""
    assert here.page.is_visible("#table-labels")  # in a part of the page that is closed at first
    assert {label.removesuffix(" †") for label in shown(here.page, "labels", "label")} == set(TASKS["colours"])
    here.page.evaluate("document.querySelector('.contents a[href=\"#finding-2\"]').click()")
    until(here.page, "location.hash === '#finding-2?task=colours'")
    assert here.problems == []
    here.page.close()


def test_every_figure_and_table_has_a_link_to_itself(chromium: Any, page: Path) -> None:
    here = visit(chromium, page)
    missing = """selector => [...document.querySelectorAll(selector)].filter(one =>
        !document.querySelector(`.permalink[href="#${one.id}"]`)).map(one => one.id)"""
    assert here.page.evaluate(missing, ".figures, .sheet table") == []
    assert here.page.evaluate("document.querySelectorAll('table[id]:not(.sheet table)').length") == 0
    here.page.evaluate("document.querySelector('[href=\"#table-harm\"]').click()")
    until(here.page, "location.hash === '#table-harm'")
    until(here.page, "Math.abs(document.querySelector('#table-harm').getBoundingClientRect().top - 70) < 60")
    here.page.close()


def test_a_table_is_sorted_by_pointer_and_keyboard_and_stays_whole(chromium: Any, page: Path) -> None:
    here = visit(chromium, page)
    first = shown(here.page, "labels", "label")
    here.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    head = here.page.query_selector("#table-labels th:has-text('after')")
    head.click()
    numbers = [float(text.replace(",", "")) for text in shown(here.page, "labels", "after")]
    assert numbers == sorted(numbers)
    assert head.get_attribute("aria-sort") == "ascending"
    assert here.page.evaluate(IS_WHOLE, "labels")
    head.query_selector("button").focus()
    here.page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    numbers = [float(text.replace(",", "")) for text in shown(here.page, "labels", "after")]
    assert numbers == sorted(numbers, reverse=True)
    here.page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") is None
    assert shown(here.page, "labels", "label") == first
    assert here.page.evaluate(IS_WHOLE, "labels")
    assert here.problems == []
    here.page.close()


def test_a_long_table_shows_ten_rows_and_all_of_them_on_demand_and_on_paper(chromium: Any, page: Path) -> None:
    here = visit(chromium, page)
    n = len(shown(here.page, "summary", "measure"))
    assert n > 10
    assert count(here.page, "summary") == 10
    button = here.page.query_selector(".sheet:has(#table-summary) .more")
    assert button.inner_text() == f"show all {n} rows"
    here.page.emulate_media(media="print")
    assert count(here.page, "summary") == n
    here.page.emulate_media(media="screen")
    button.click()
    assert count(here.page, "summary") == n
    assert button.get_attribute("aria-expanded") == "true"
    assert not here.page.is_visible(".sheet:has(#table-harm) .more")
    here.page.close()


def test_without_scripts_tables_are_complete_and_nothing_is_offered(chromium: Any, page: Path) -> None:
    here = visit(chromium, page, java_script_enabled=False)
    rows = here.page.query_selector_all("#table-summary tbody tr")
    assert len(rows) > 10
    assert all(row.is_visible() for row in rows)
    assert not here.page.is_visible(".filter")
    assert here.page.query_selector(".sheet-tools, .sort") is None
    here.page.close()


def test_a_table_is_searched(chromium: Any, page: Path) -> None:
    here = visit(chromium, page)
    here.page.fill(".sheet:has(#table-summary) input", "CLUSTERS")
    assert all("clusters" in text for text in shown(here.page, "summary", "measure"))
    assert here.page.evaluate(IS_WHOLE, "summary")
    here.page.fill(".sheet:has(#table-summary) input", "nothing like it")
    assert here.page.inner_text("#table-summary tbody") == "No row contains “nothing like it”."
    here.page.fill(".sheet:has(#table-summary) input", "")
    assert count(here.page, "summary") == 10
    assert here.problems == []
    here.page.close()


def test_a_table_is_downloaded_with_all_rows_of_the_choice(chromium: Any, page: Path) -> None:
    here = visit(chromium, page)
    choose(here.page, encoder="bert-tiny")
    with here.page.expect_download() as waiting:
        here.page.evaluate("document.querySelector('.sheet:has(#table-harm) [data-save-table]').click()")
    lines = Path(waiting.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith('"encoder","task","accuracy, points change"')
    assert [line.split(",")[:2] for line in lines[1:]] == [['"bert-tiny"', f'"{task}"'] for task in TASKS]
    here.page.close()


@pytest.mark.parametrize(("width", "height", "scheme"), [(1280, 800, "light"), (390, 844, "dark")])
def test_the_first_screen_has_three_sentences_and_a_picture(
    chromium: Any, page: Path, width: int, height: int, scheme: str
) -> None:
    here = visit(chromium, page, width, color_scheme=scheme)
    here.page.set_viewport_size({"width": width, "height": height})
    assert len(here.page.query_selector_all(".brief p:has(strong)")) == 3
    chart = here.page.query_selector("#figure-glance .chart")
    scroll_to(chart)
    until(here.page, "one => one.dataset.state === 'drawn'", chart)
    here.page.evaluate("scrollTo(0, 0)")
    below = chart if width > 1000 else here.page.query_selector(".brief p:has(strong) >> nth=2")
    assert below.evaluate("one => one.getBoundingClientRect().bottom") <= height
    assert here.page.evaluate("document.documentElement.scrollWidth") <= width
    assert here.problems == []
    here.page.close()


def test_parts_of_the_page_open_and_close_and_open_for_links_and_paper(chromium: Any, page: Path) -> None:
    here = visit(chromium, page)
    here.page.evaluate("document.querySelectorAll('.chapter > summary').forEach(one => one.click())")
    assert not here.page.is_visible("#finding-2")
    count_open = "document.querySelectorAll('.chapter[open]').length"
    here.page.evaluate(f"() => addEventListener('beforeprint', () => {{ window.printed = {count_open}; }})")
    here.page.pdf()
    assert here.page.evaluate("window.printed") == 3
    assert here.page.evaluate(count_open) == 0
    here.page.evaluate("document.querySelector('.contents a[href=\"#finding-2\"]').click()")
    until(here.page, "document.querySelector('.chapter:has(#finding-2)').open")
    assert here.problems == []
    here.page.close()

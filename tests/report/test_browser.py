"""The page in a real Chromium: drawn, quiet, offline, and usable by pointer, keyboard and reader."""

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from closerlook.report import write_comparison, write_report
from closerlook.report.inlining import pack_data
from closerlook.report.watched import write_watched
from closerlook.study.registry import MEASURES
from tests.report.studies import browser, data_of, golden, golden_beyond, made_up, write_study
from tests.report.test_page import HOSTILE, MANIFEST
from tests.report.test_watched import line, write

pytestmark = pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")
pytest.importorskip("playwright.sync_api")

DRAWN = "[...document.querySelectorAll('.chart')].every(one => one.dataset.state === 'drawn')"
IS_DRAWN = "one => one.querySelector('.chart').dataset.state === 'drawn'"
MARKS = ".mark-symbol path, .mark-rect path, .mark-line path, .mark-rule line"
FITS = """[...document.querySelectorAll('.chart')].every(one => one.dataset.state === 'drawn' &&
    one.querySelector('svg').getBoundingClientRect().width <= one.clientWidth + 1 &&
    one.scrollWidth <= one.clientWidth)"""
LONG = "a very long label that goes on and on " * 6


@dataclass
class Visit:
    """A page that is open, and what it complained about or asked for meanwhile."""

    page: Any
    problems: list[str] = field(default_factory=list)


def seven_tasks() -> pd.DataFrame:
    """A study of two encoders, of which the second was measured on one task only: every pair more takes a second."""
    table = made_up(["a", "b"], {f"task {at}": ["x", "y", "z"] for at in range(7)}, wider=True)
    return pd.DataFrame(table[(table.encoder == "a") | (table.task == "task 0")])


STUDIES: dict[str, Callable[[], Any]] = {
    "plain": lambda: made_up(seeds=(0, 1), wider=True),
    "hostile": lambda: made_up(
        [HOSTILE[0], HOSTILE[4]],
        {HOSTILE[1]: HOSTILE, HOSTILE[5]: HOSTILE[:3]},
        word=HOSTILE[2],
        steps=(0, 9),
        wider=True,
    ),
    "golden": golden,
    "beyond": golden_beyond,
    "frozen": lambda: made_up(steps=()),
    "one checkpoint": lambda: made_up(steps=(0, 50), tasks={"only": ["a", "b", "c"]}),
    "sixty labels": lambda: made_up(tasks={"sixty": [f"label {at}" for at in range(60)]}, steps=(0, 9, 90)),
    "seven tasks": seven_tasks,
    "long names": lambda: made_up(
        [LONG, f"{LONG}2"], {LONG + str(at): [f"{LONG}{n}" for n in range(5)] for at in range(2)}, wider=True
    ),
}


class Pages:
    """A page of each kind of study, made when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getitem__(self, name: str) -> Path:
        page = self.folder / name / "report.html"
        if not page.exists():
            manifest = MANIFEST if name == "plain" else None
            write_report(write_study(page.parent, STUDIES[name](), manifest), figures=False)
        return page


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return Pages(tmp_path_factory.mktemp("pages"))


def visit(chromium: Any, path: Path, width: int = 1280, **options: Any) -> Visit:
    page = chromium.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce", **options)
    here = Visit(page)
    page.on("console", lambda message: here.problems.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: here.problems.append(f"error: {error}"))
    page.on("dialog", lambda dialog: here.problems.append(f"dialog: {dialog.message}") or dialog.dismiss())
    page.on("request", lambda request: _outside(here, request.url))
    page.goto(path.as_uri())
    return here


def _outside(here: Visit, address: str) -> None:
    if not address.startswith(("file:", "data:", "blob:")) or ("file:" in address and not address.endswith(".html")):
        here.problems.append(f"request: {address}")


def until(page: Any, expression: str, arg: Any = None) -> None:
    """Wait for it; wait_for_function would evaluate text in the page, which the page's policy rightly forbids."""
    for attempt in range(1200):
        if page.evaluate(expression, arg):
            return
        page.wait_for_timeout(50)
        if attempt % 100 == 99:
            draw_frame(page)
    raise AssertionError(f"never came true: {expression}")


def draw_frame(page: Any) -> None:
    """Ask for a picture of the page: a browser without a screen sometimes draws no frames, and nothing is seen then."""
    with contextlib.suppress(Exception):
        page.screenshot(clip={"x": 0, "y": 0, "width": 1, "height": 1}, timeout=5_000)


def scroll_to(element: Any) -> None:
    """Scroll by script: Playwright would wait until the element keeps its place, for as long as no frames are drawn."""
    element.evaluate("one => one.scrollIntoView({block: 'center'})")


def draw_all(page: Any) -> None:
    """Bring every chart into view, and wait until all are drawn."""
    for chart in page.query_selector_all(".chart"):
        scroll_to(chart)
        until(page, "one => one.dataset.state", chart)
    until(page, DRAWN)


@pytest.mark.parametrize("name", STUDIES)
def test_every_chart_is_drawn_without_a_complaint_narrow_and_wide(chromium: Any, pages: Pages, name: str) -> None:
    here = visit(chromium, pages[name], 400)
    for width in (400, 1600):
        here.page.set_viewport_size({"width": width, "height": 900})
        draw_all(here.page)
        until(here.page, FITS)
        assert all(chart.query_selector(MARKS) for chart in here.page.query_selector_all(".chart"))
        assert here.page.evaluate("document.documentElement.scrollWidth") <= width
    assert here.problems == []
    here.page.close()


def test_figures_are_drawn_from_the_compressed_data_of_the_page(chromium: Any, pages: Pages, tmp_path: Path) -> None:
    text = pages["plain"].read_text(encoding="utf-8")
    data = data_of(text)
    for name in data:
        if name.startswith("entries-"):
            data[name][0]["panels"][0]["caption"] = [("A caption of the compressed data.", "")]
    changed = tmp_path / "report.html"
    changed.write_text(with_data(text, pack_data(data)), encoding="utf-8")
    here = visit(chromium, changed)
    draw_all(here.page)
    captions = [one.inner_text() for one in here.page.query_selector_all("figcaption")]
    assert len(captions) > 5
    assert set(captions) == {"A caption of the compressed data."}
    assert here.problems == []
    here.page.close()


def test_a_browser_that_cannot_unpack_the_data_says_so_and_shows_the_tables(chromium: Any, pages: Pages) -> None:
    page = chromium.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(pages["plain"].as_uri())
    until(page, "document.querySelectorAll('[role=alert]').length === 1")
    assert page.inner_text("[role=alert]").startswith(
        "The figures and points of this page need a newer browser: Chrome"
    )
    assert page.query_selector("table .sort")
    page.close()


def test_a_page_with_damaged_data_says_so(chromium: Any, pages: Pages, tmp_path: Path) -> None:
    text = pages["plain"].read_text(encoding="utf-8")
    damaged = tmp_path / "report.html"
    damaged.write_text(with_data(text, pack_data(data_of(text))[:5000]), encoding="utf-8")
    here = visit(chromium, damaged)
    until(here.page, "document.querySelectorAll('[role=alert]').length === 1")
    assert "because the file is damaged" in here.page.inner_text("[role=alert]")
    assert len(here.problems) == 1
    here.page.close()


def with_data(page: str, packed: str) -> str:
    """A page with other compressed data."""
    return re.sub(r'(id="page-data">)[^<]+', lambda found: found[1] + packed, page)


@pytest.mark.parametrize("layers", [1, 3, 13])
def test_the_page_of_a_measured_training_is_drawn_without_a_complaint(
    chromium: Any, tmp_path: Path, layers: int
) -> None:
    lines = [line(step, task, layer) for step in (0, 4, 8) for task in (HOSTILE[0], LONG) for layer in range(layers)]
    lines[-1] |= {"alarms": ["similarity", "held_out_accuracy"]}
    page, _ = write_watched(write(tmp_path / "geometry.jsonl", *lines), figures=False)
    here = visit(chromium, page, 1280)
    draw_all(here.page)
    assert all(chart.query_selector(MARKS) for chart in here.page.query_selector_all(".chart"))
    assert here.page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert here.problems == []
    here.page.close()


WIDE_TABLES = """[...document.querySelectorAll('.scroll:has(table[id])')]
    .filter(one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"""


@pytest.mark.parametrize("name", ["plain", "beyond", "frozen", "seven tasks"])
def test_every_table_fits_at_1280_pixels(chromium: Any, pages: Pages, name: str) -> None:
    here = visit(chromium, pages[name], 1280)
    here.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert here.page.evaluate(WIDE_TABLES) == []
    here.page.close()


def test_terms_lead_to_their_meanings_also_in_captions_that_change(chromium: Any, pages: Pages) -> None:
    here = visit(chromium, pages["seven tasks"], 1280)
    figure = here.page.query_selector("[data-kind=accuracy]")
    figure.query_selector("input[value=b]").evaluate("one => one.click()")
    caption = figure.query_selector("figcaption a.defined")
    assert caption.inner_text() == "before fine-tuning"
    broken = "[...document.querySelectorAll('a[href^=\"#\"]')].filter(one => !document.querySelector(one.hash))"
    assert here.page.evaluate(f"{broken}.map(one => one.hash)") == []
    here.page.close()


def test_every_choice_of_task_and_encoder_is_drawn(chromium: Any, pages: Pages) -> None:
    here = visit(chromium, pages["hostile"])
    for group in here.page.query_selector_all(".figures"):
        scroll_to(group)
        for option in group.query_selector_all("[data-pick] input"):
            option.evaluate("one => one.click()")
            until(here.page, IS_DRAWN, group)
            assert group.query_selector(MARKS) is not None
        for select in group.query_selector_all("[data-pick] select"):
            for option in select.query_selector_all("option"):
                select.select_option(option.get_attribute("value"))
                until(here.page, IS_DRAWN, group)
                assert group.query_selector(MARKS) is not None
    assert here.problems == []
    here.page.close()


def test_a_page_that_opens_is_small_and_draws_only_the_charts_near_the_view(chromium: Any, pages: Pages) -> None:
    here = visit(chromium, pages["sixty labels"])
    charts = here.page.query_selector_all(".chart")
    until(here.page, "one => one.dataset.state === 'drawn'", charts[0])
    far = [chart for chart in charts if chart.evaluate("one => one.getBoundingClientRect().top > 2 * innerHeight")]
    assert len(far) > 5
    assert [chart.get_attribute("data-state") for chart in far] == [None] * len(far)
    assert here.page.evaluate("document.querySelectorAll('*').length") < 4_000
    assert pages["sixty labels"].stat().st_size < 800_000
    here.page.close()


def test_a_tooltip_shows_names_as_text(chromium: Any, pages: Pages) -> None:
    here = visit(chromium, pages["hostile"])
    chart = here.page.query_selector("[data-kind=label-distances] .chart")
    scroll_to(chart)
    until(here.page, "one => one.dataset.state === 'drawn'", chart)
    seen = ""
    for mark in chart.query_selector_all(".mark-rect path")[:12]:
        mark.hover()
        here.page.wait_for_selector("#vg-tooltip-element.visible")
        seen += here.page.inner_text("#vg-tooltip-element")
    assert "distance" in seen
    assert HOSTILE[0] in seen
    assert here.page.query_selector("#vg-tooltip-element script, #vg-tooltip-element img") is None
    assert here.problems == []
    here.page.close()


def test_labels_are_shown_and_hidden_by_pointer_and_keyboard(chromium: Any, pages: Pages) -> None:
    here = visit(chromium, pages["sixty labels"])
    figure = here.page.query_selector("[data-kind=distances] figure")
    scroll_to(figure)
    until(here.page, IS_DRAWN, figure)

    def lines(n: int) -> None:
        until(here.page, "([one, n]) => one.querySelectorAll('.mark-line path').length === n", [figure, n])

    lines(6)
    chips = figure.query_selector_all("[data-toggle]")
    assert [chip.get_attribute("aria-pressed") for chip in chips].count("true") == 6
    chips[0].evaluate("one => one.click()")
    lines(5)
    assert chips[0].get_attribute("aria-pressed") == "false"
    chips[10].focus()
    here.page.keyboard.press("Space")
    lines(6)
    figure.query_selector("[data-all]").evaluate("one => one.click()")
    lines(60)
    here.page.click("#theme")  # what is shown outlives drawing anew
    until(here.page, IS_DRAWN, figure)
    lines(60)
    assert here.problems == []
    here.page.close()


def test_marked_labels_say_why(chromium: Any, pages: Pages) -> None:
    here = visit(chromium, pages["beyond"])
    chips = here.page.query_selector_all("[data-kind=distances] [data-toggle]")
    buttons = {chip.get_attribute("data-toggle"): (chip.inner_text(), chip.get_attribute("title")) for chip in chips}
    assert buttons["A"] == ("A\n+3.50 *", "A: p = 0.03 (Holm-corrected)")
    assert buttons["C"] == ("C\n+0.25 †", "C: p = 0.2 (Holm-corrected); 4 points in 128 dimensions; fewer than 5")
    assert MEASURES["nc1"].meaning in here.page.inner_text("#table-shape .term small")
    here.page.close()


def test_the_drill_down_shows_words_in_their_sentences(chromium: Any, pages: Pages) -> None:
    here = visit(chromium, pages["golden"])
    merge = here.page.query_selector("#drill .merges details")
    assert merge.query_selector("summary").inner_text() == (
        "A clusters of 35 points and 5 points, blocked by B (30 points)"
    )
    merge.query_selector("summary").evaluate("one => one.click()")  # charts that are drawn above move it
    assert "a cup of tea" in merge.inner_text()
    assert merge.query_selector("mark").inner_text() == "of"
    here.page.fill("#drill input", "nothing like it")
    assert here.page.query_selector("#drill .merges details") is None
    for name in ("blocker_size", "weight", "decided", "word"):  # names of entries in the data, not words of a text
        here.page.fill("#drill input", name)
        assert here.page.query_selector("#drill .merges details") is None, name
    here.page.fill("#drill input", "TEA")
    assert here.page.query_selector("#drill .merges details") is not None
    assert here.problems == []
    here.page.close()


def test_hostile_words_stay_text_in_the_drill_down_and_in_tables(chromium: Any, pages: Pages) -> None:
    here = visit(chromium, pages["hostile"])
    draw_all(here.page)
    here.page.query_selector("#drill .merges summary").evaluate("one => one.click()")
    assert HOSTILE[2] in here.page.inner_text("#drill")
    assert HOSTILE[0] in here.page.inner_text("#table-summary")
    here.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    here.page.wait_for_selector("[data-kind=label-distances] details.data table")
    assert HOSTILE[1] in here.page.inner_text("[data-kind=label-distances] details.data table")
    assert here.page.evaluate("document.querySelectorAll('main img, main script:not([type])').length") == 0
    assert here.problems == []
    here.page.close()


def test_a_figure_gives_its_data_and_itself(chromium: Any, pages: Pages) -> None:
    here = visit(chromium, pages["plain"])
    draw_all(here.page)
    for kind, start in (("csv", b'"label","step"'), ("svg", b"<svg"), ("png", b"\x89PNG")):
        with here.page.expect_download() as waiting:
            here.page.click(f"[data-kind=distances] [data-save={kind}]")
        assert Path(waiting.value.path()).read_bytes().startswith(start)
    here.page.close()


def test_light_and_dark_are_both_readable(chromium: Any, pages: Pages) -> None:
    here = visit(chromium, pages["plain"], color_scheme="dark")
    draw_all(here.page)
    background = "getComputedStyle(document.body).backgroundColor"
    dark = here.page.evaluate(background)
    here.page.click("#theme")
    until(here.page, DRAWN)
    assert here.page.evaluate(background) != dark
    assert here.problems == []
    here.page.close()


def test_structure_for_screen_readers(chromium: Any, pages: Pages) -> None:
    here = visit(chromium, pages["plain"])
    draw_all(here.page)
    count = "selector => document.querySelectorAll(selector).length"
    assert here.page.evaluate(count, "h1") == 1
    assert here.page.evaluate(count, "main") == 1
    assert here.page.evaluate(count, "nav[aria-label]") == 1
    assert here.page.evaluate(count, "table:not(:has(caption))") == 0
    assert here.page.evaluate(count, "thead th:not([scope])") == 0
    assert here.page.evaluate(count, ".chart:not([aria-label]), .chart[aria-label='']") == 0
    levels = here.page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(one => Number(one.tagName[1]))")
    assert all(after - before <= 1 for before, after in pairwise(levels))
    named = "one.labels?.length || one.textContent.trim() || one.ariaLabel"
    assert here.page.evaluate(f"[...document.querySelectorAll('button,select,input')].every(one => {named})")
    ids = here.page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
    here.page.close()


def test_two_studies_are_drawn_side_by_side(chromium: Any, pages: Pages) -> None:
    both = write_comparison(pages["plain"].parent, pages["frozen"].parent, pages.folder / "comparison.html")
    here = visit(chromium, both, 1600)
    draw_all(here.page)
    heat = here.page.query_selector("[data-kind=label-distances]")
    assert len(heat.query_selector_all("figure svg")) == 2
    assert "This study has no such figure." in here.page.inner_text("[data-kind=distances]")
    assert here.problems == []
    here.page.close()

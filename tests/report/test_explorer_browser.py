"""The explorers on a study's page in a real Chromium: choice, blocked merges both ways, zoom; quiet and offline."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from closerlook.report import write_report
from closerlook.study.explored import write_explorers
from tests.explorer.stored import stored
from tests.report.studies import browser, made_up, write_study
from tests.report.test_browser import Visit, scroll_to, until, visit

pytestmark = pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")
pytest.importorskip("playwright.sync_api")

EXPLORER = "document.querySelector('#explorers .explorer')?.explorer"
PLOT = f"{EXPLORER}.plot"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of two tasks; both have points at layer 2, and the table has a blocked merge with row 3 of each space."""
    folder = write_study(tmp_path_factory.mktemp("study"), made_up())
    write_explorers(folder, [stored(), stored(task="colours")])
    return write_report(folder, figures=False)


@pytest.fixture
def here(chromium: Any, page: Path) -> Iterator[Visit]:
    opened = visit(chromium, page, accept_downloads=True)
    scroll_to(opened.page.locator("#explorers"))
    until(opened.page, f"{PLOT}?.width > 0")
    yield opened
    assert opened.problems == []
    opened.page.close()


def chosen(here: Visit) -> str:
    name: str = here.page.locator("#explorers .explorer").get_attribute("aria-label")
    return name


def select_all(here: Visit) -> None:
    box = here.page.locator("#explorers canvas").bounding_box()
    here.page.mouse.move(box["x"] + 3, box["y"] + 3)
    here.page.mouse.down()
    here.page.mouse.move(box["x"] + box["width"] - 3, box["y"] + box["height"] - 3)
    here.page.mouse.up()


def test_a_task_is_chosen_and_its_points_are_shown(here: Visit) -> None:
    assert chosen(here) == "Points of bert-tiny, animals"
    here.page.locator("#explorers").get_by_text("colours", exact=True).click()
    until(here.page, "document.querySelector('#explorers .explorer').ariaLabel === 'Points of bert-tiny, colours'")
    assert here.page.locator("#explorers .explorer").count() == 1
    here.page.locator("#explorers input[type=range]").fill("2")
    assert "linearly separable" in here.page.locator("#explorers .status").inner_text()


def test_the_points_follow_the_choice_for_the_whole_page(here: Visit) -> None:
    here.page.select_option(".filter [name=task]", "colours")
    until(here.page, "document.querySelector('#explorers .explorer').ariaLabel === 'Points of bert-tiny, colours'")
    assert here.page.locator("#explorers [data-pick=task] input:checked").get_attribute("value") == "colours"
    here.page.click(".filter [type=reset]")
    assert chosen(here) == "Points of bert-tiny, colours"


def test_words_are_searched_pointed_at_and_exported(here: Visit) -> None:
    here.page.locator("#explorers").get_by_role("searchbox", name="search").fill("word59")
    assert here.page.locator("#explorers .side-list button").all_inner_texts() == ["word59\nVERB"]
    here.page.locator("#explorers .side-list button").hover()
    assert "train · in a cluster of" in here.page.locator("#explorers .tip").inner_text()
    with here.page.expect_download() as download:
        here.page.locator("#explorers").get_by_role("button", name="Export CSV").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert lines[1].startswith('"59","train","word59",')


def test_a_blocked_merge_in_the_table_selects_its_points(here: Visit) -> None:
    row = here.page.locator("#drill .merges details").first
    space = here.page.evaluate("document.getElementById('drill').current()")
    assert (space["layer"], space["state"]) == (2, "before")
    here.page.locator("#explorers input[type=range]").fill("2")
    row.locator("summary").click()
    row.get_by_role("button", name="Show these points in the explorer").click()
    until(here.page, f"{PLOT}.selected.size > 0")
    assert here.page.evaluate(f"[...{PLOT}.selected].map(at => [{PLOT}.test[at], {PLOT}.row[at]])") == [[0, 3]]
    assert here.page.evaluate(f"{PLOT}.snapshot") == 0
    until(here.page, "document.activeElement.tagName === 'CANVAS'")
    until(here.page, "document.querySelector('#explorers').getBoundingClientRect().top < 900")


def test_the_table_of_another_task_switches_the_explorer(here: Visit) -> None:
    is_wanted = "s => s.task === 'colours' && s.layer === 2 && s.state === 'after'"
    at = here.page.evaluate(f"document.getElementById('drill').spaces.findIndex({is_wanted})")
    here.page.locator("#drill select").select_option(str(at))
    here.page.locator("#drill .merges summary").first.click()
    until(here.page, "document.querySelector('#explorers .explorer').ariaLabel === 'Points of bert-tiny, colours'")
    until(here.page, f"{PLOT}.selected.size > 0")
    assert here.page.evaluate(f"{PLOT}.snapshot") == 2
    assert here.page.locator("#explorers input[value=colours]").is_checked()


def test_spaces_without_points_on_the_page_have_no_link(here: Visit) -> None:
    at = here.page.evaluate("document.getElementById('drill').spaces.findIndex(s => s.layer === 0)")
    here.page.locator("#drill select").select_option(str(at))
    assert here.page.locator("#drill .merges details").count() == 1
    assert here.page.locator("#drill .to-points").count() == 0


def test_pinning_a_point_marks_its_blocked_merges_in_the_table(here: Visit) -> None:
    point = here.page.evaluate(f"[...{PLOT}.row.keys()].find(at => !{PLOT}.test[at] && {PLOT}.row[at] === 3)")
    other = here.page.evaluate(f"[...{PLOT}.row.keys()].find(at => !{PLOT}.test[at] && {PLOT}.row[at] === 4)")
    here.page.locator("#explorers input[type=range]").fill("2")
    here.page.evaluate(f"at => {EXPLORER}.pin(at)", point)
    links = here.page.locator("#explorers .merge-links")
    assert links.inner_text().startswith("“word3” is a point of 1 blocked merge.")
    assert here.page.locator("#drill details.marked").count() == 1
    space = here.page.evaluate("document.getElementById('drill').current()")
    assert (space["task"], space["layer"], space["state"]) == ("animals", 2, "after")
    here.page.get_by_role("button", name="Show them in the table").click()
    until(here.page, "document.activeElement.tagName === 'SUMMARY'")
    here.page.evaluate(f"at => {EXPLORER}.pin(at)", other)
    assert links.inner_text() == ""


def test_zooming_and_moving_keep_the_selection_and_can_be_undone(here: Visit) -> None:
    select_all(here)
    chosen_points = here.page.evaluate(f"[...{PLOT}.selected]")
    whole = here.page.evaluate(f"[...{PLOT}.px]")
    box = here.page.locator("#explorers canvas").bounding_box()
    here.page.mouse.move(box["x"] + 100, box["y"] + 100)
    scrolled = here.page.evaluate("scrollY")
    here.page.keyboard.down("Control")
    here.page.mouse.wheel(0, -300)
    here.page.keyboard.up("Control")
    until(here.page, f"{PLOT}.zoomed.k > 1")
    assert here.page.evaluate("scrollY") == scrolled
    zoomed = here.page.evaluate(f"[...{PLOT}.px]")
    spread = [max(values) - min(values) for values in (whole, zoomed)]
    assert spread[1] == pytest.approx(spread[0] * here.page.evaluate(f"{PLOT}.zoomed.k"), rel=1e-3)
    here.page.locator("#explorers").get_by_text("Move", exact=True).click()
    here.page.mouse.move(box["x"] + 200, box["y"] + 200)
    here.page.mouse.down()
    here.page.mouse.move(box["x"] + 170, box["y"] + 200)
    here.page.mouse.up()
    assert here.page.evaluate(f"{PLOT}.px[0]") == pytest.approx(zoomed[0] - 30, abs=0.1)
    assert here.page.evaluate(f"[...{PLOT}.selected]") == chosen_points
    here.page.get_by_role("button", name="Show all points").click()
    assert here.page.evaluate(f"[...{PLOT}.px]") == pytest.approx(whole, abs=0.01)
    assert here.page.get_by_role("button", name="Show all points").is_disabled()


def test_the_keyboard_zooms_and_moves(here: Visit) -> None:
    here.page.locator("#explorers canvas").focus()
    here.page.keyboard.press("+")
    here.page.keyboard.press("+")
    assert here.page.evaluate(f"{PLOT}.zoomed.k") == pytest.approx(1.4**2)
    before = here.page.evaluate(f"{PLOT}.px[0]")
    here.page.keyboard.press("Shift+ArrowRight")
    assert here.page.evaluate(f"{PLOT}.px[0]") < before
    here.page.keyboard.press("-")
    here.page.keyboard.press("0")
    assert here.page.evaluate(f"{PLOT}.zoomed") == {"k": 1, "x": 0, "y": 0}


def test_two_fingers_zoom(chromium: Any, page: Path) -> None:
    here = visit(chromium, page, 390, has_touch=True)
    scroll_to(here.page.locator("#explorers"))
    until(here.page, f"{PLOT}?.width > 0")
    here.page.evaluate(
        """() => { const canvas = document.querySelector('#explorers canvas'), box = canvas.getBoundingClientRect();
        canvas.setPointerCapture = () => {};
        const send = (type, id, x, y) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: id,
            pointerType: 'touch', button: 0, clientX: box.left + x, clientY: box.top + y }));
        send('pointerdown', 1, 100, 150); send('pointerdown', 2, 200, 150);
        send('pointermove', 2, 300, 150); send('pointerup', 2, 300, 150); send('pointerup', 1, 100, 150); }"""
    )
    assert here.page.evaluate(f"{PLOT}.zoomed.k") == pytest.approx(2)
    assert here.page.evaluate(f"{PLOT}.selected.size + {PLOT}.pinned.size") == 0
    assert here.problems == []
    here.page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_with_points_fits_narrow_and_wide(chromium: Any, page: Path, width: int, scheme: str) -> None:
    here = visit(chromium, page, width, color_scheme=scheme)
    scroll_to(here.page.locator("#explorers"))
    until(here.page, f"{PLOT}?.width > 0")
    assert here.page.evaluate("document.documentElement.scrollWidth") <= width
    assert here.problems == []
    here.page.close()

"""The explorer in a real Chromium: slider, hover, search, selection, export, keyboard; quiet and offline."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from closerlook import Space, Task, explore
from closerlook.explorer.page import write_page
from closerlook.scatter.series import task_context
from tests.explorer.made import training
from tests.report.studies import browser
from tests.report.test_browser import Visit, until, visit

pytestmark = pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")
pytest.importorskip("playwright.sync_api")

PLOT = "document.querySelector('.explorer').explorer.plot"
TEXTS = "word{} is an example"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ninety points of three snapshots in their sentences."""
    explorer = explore(*training(), test=training(30, split="test"), threads=1)
    examples = [((f"word{at}", "is", "an", "example"), [((0,), "X")]) for at in [*range(60), *range(30)]]
    task = Task.build("texts", "token", {"train": examples})
    explorer = replace(explorer, scatter=replace(explorer.scatter, context=task_context(task, task.splits)))
    return explorer.write(tmp_path_factory.mktemp("page") / "explorer.html")


@pytest.fixture
def here(chromium: Any, page: Path) -> Iterator[Visit]:
    opened = visit(chromium, page, accept_downloads=True)
    until(opened.page, f"{PLOT}.width > 0")
    yield opened
    assert opened.problems == []
    opened.page.close()


def at(here: Visit, point: int) -> tuple[float, float]:
    """The place of a point on the screen."""
    x, y = here.page.evaluate(f"point => [{PLOT}.px[point], {PLOT}.py[point]]", point)
    box = here.page.locator(".explorer canvas").bounding_box()
    return box["x"] + x, box["y"] + y


def lonely(here: Visit, *, test: int = 0) -> int:
    """A point with no other point near it."""
    found: int = here.page.evaluate(
        f"""test => {{ const p = {PLOT}, all = [...p.label.keys()];
        const far = (i, j) => i === j || Math.hypot(p.px[i] - p.px[j], p.py[i] - p.py[j]) > 6;
        return all.find(i => p.test[i] === test && all.every(j => far(i, j))); }}""",
        test,
    )
    return found


def slide(here: Visit, snapshot: int) -> None:
    here.page.locator("input[type=range]").fill(str(snapshot))


def pixels(here: Visit) -> str:
    drawn: str = here.page.evaluate("document.querySelector('.explorer canvas').toDataURL()")
    return drawn


def test_the_slider_moves_the_points_and_says_where_it_is(here: Visit) -> None:
    before = here.page.evaluate(f"[...{PLOT}.px]")
    assert "pretrained" not in here.page.locator("output").inner_text()
    first = pixels(here)
    slide(here, 2)
    assert here.page.locator("output").inner_text() == "made (tuned on made, step 2), 3 of 3"
    assert "3 clusters of 3 labels, linearly separable" in here.page.locator(".status").inner_text()
    after = here.page.evaluate(f"[...{PLOT}.px]")
    assert np.abs(np.array(before) - after).max() > 20
    assert pixels(here) != first


def test_play_goes_to_the_last_snapshot_and_stops(here: Visit) -> None:
    here.page.get_by_role("button", name="Play").click()
    here.page.get_by_role("button", name="Pause").wait_for(state="detached")
    assert here.page.locator("input[type=range]").input_value() == "2"
    assert here.page.get_by_role("button", name="Play").is_visible()


def test_pointing_shows_the_word_in_its_sentence_its_label_and_its_cluster(here: Visit) -> None:
    slide(here, 2)
    point = lonely(here, test=1)
    here.page.mouse.move(*at(here, point))
    text = here.page.locator(".tip").inner_text()
    assert f"word{point - 60} is an example" in text
    assert here.page.locator(".tip mark").inner_text() == f"word{point - 60}"
    assert "test · nearest cluster" in text
    assert "✓ right" in text or "✕ wrong" in text
    assert "RMS radii" in text
    here.page.mouse.move(2, 2)
    assert here.page.locator(".tip").is_hidden()


def test_clicking_pins_the_path_and_clicking_again_removes_it(here: Visit) -> None:
    plain = pixels(here)
    point = lonely(here)
    place = at(here, point)
    here.page.mouse.click(*place)
    assert here.page.evaluate(f"[...{PLOT}.pinned]") == [point]
    assert here.page.locator(".side-list").inner_text().startswith(f"word{point}")
    here.page.mouse.click(*place)
    here.page.mouse.move(2, 2)
    assert here.page.evaluate(f"[...{PLOT}.pinned]") == []
    assert pixels(here) == plain


def test_search_lists_the_words_and_the_csv_has_them(here: Visit) -> None:
    here.page.get_by_role("searchbox", name="search").fill("word1")
    matches = [at for at in [*range(60), *range(30)] if f"word{at}".startswith("word1")]
    assert here.page.locator(".panel h3").inner_text() == f"{len(matches)} points selected"
    assert here.page.locator(".side-list button").count() == len(matches)
    with here.page.expect_download() as download:
        here.page.get_by_role("button", name="Export CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    assert [row["word"] for row in rows] == [f"word{at}" for at in matches]
    assert {row["split"] for row in rows} == {"train", "test"}
    assert rows[0]["text"] == "word1 is an example"
    here.page.get_by_role("searchbox", name="search").fill("nothing like it")
    assert here.page.locator(".panel h3").inner_text() == "No point matches “nothing like it”"
    assert here.page.get_by_role("button", name="Export CSV").is_disabled()


@pytest.mark.parametrize("kind", ["Box", "Lasso"])
def test_dragging_selects_the_points_inside(here: Visit, kind: str) -> None:
    slide(here, 2)
    here.page.get_by_text(kind, exact=True).click()
    box = here.page.locator(".explorer canvas").bounding_box()
    left, top, right, low = box["x"] + 5, box["y"] + 5, box["x"] + box["width"] / 2, box["y"] + box["height"] - 5
    here.page.mouse.move(left, top)
    here.page.mouse.down()
    for place in ((right, top), (right, low), *([(left, low)] if kind == "Lasso" else [])):
        here.page.mouse.move(*place)
    here.page.mouse.up()
    expected = here.page.evaluate(f"[...{PLOT}.label.keys()].filter(i => {PLOT}.px[i] < {box['width'] / 2})")
    assert 0 < len(expected) < 90
    assert here.page.evaluate(f"[...{PLOT}.selected]") == expected
    assert here.page.locator(".panel h3").inner_text() == f"{len(expected)} points selected"


def test_the_legend_hides_labels_from_drawing_and_pointing(here: Visit) -> None:
    point = lonely(here)
    name = here.page.evaluate(f"point => {PLOT}.data.labels[{PLOT}.label[point]]", point)
    place = at(here, point)
    chip = here.page.locator(f".chip[data-label={name}]")
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    here.page.mouse.move(*place)
    assert here.page.evaluate(f"{PLOT}.nearest({PLOT}.px[{point}], {PLOT}.py[{point}], 4)") == -1
    chip.click()
    here.page.mouse.move(place[0] + 1, place[1])
    assert f"word{point} " in here.page.locator(".tip").inner_text()


def test_the_margin_view_shows_the_distance_of_the_hulls_as_the_gap(here: Visit) -> None:
    slide(here, 2)
    here.page.get_by_text("Margin of two labels", exact=True).first.click()
    data = here.page.evaluate(f"{PLOT}.data.layers[0].margins[0]")
    gap = data["gaps"][2]
    assert f"separable, distance of the hulls {gap['distance']:.4g}"[:40] in here.page.locator(".status").inner_text()
    seen = here.page.evaluate(
        f"""() => {{ const p = {PLOT}, m = p.data.layers[0].margins[0], xy = p.plane().at(2);
        const has = (i, name) => !p.test[i] && p.data.labels[p.label[i]] === name;
        const of = (name) => [...p.label.keys()].filter(i => has(i, name)).map(i => xy[2 * i]);
        return Math.min(...of(m.first)) - Math.max(...of(m.second)); }}"""
    )
    assert seen == pytest.approx(gap["distance"], rel=1e-3)


def test_outlines_highlights_and_fitted_axes_change_the_picture(here: Visit) -> None:
    pictures = [pixels(here)]
    here.page.get_by_label("cluster outlines (projected)").check()
    pictures.append(pixels(here))
    here.page.get_by_label("fit axes to snapshot").check()
    pictures.append(pixels(here))
    here.page.get_by_label("highlight").select_option("wrong")
    pictures.append(pixels(here))
    assert len(set(pictures)) == 4
    assert "shown points: nearest cluster is wrong" in here.page.locator(".status").inner_text()


def test_the_keyboard_reaches_points_pins_and_clears(here: Visit) -> None:
    canvas = here.page.locator(".explorer canvas")
    canvas.focus()
    here.page.keyboard.press("ArrowRight")
    first = here.page.evaluate(f"{PLOT}.focus")
    here.page.keyboard.press("ArrowRight")
    second = here.page.evaluate(f"{PLOT}.focus")
    assert second != first
    assert here.page.evaluate(f"{PLOT}.px[{second}] > {PLOT}.px[{first}]")
    assert here.page.locator(".tip[role=status]").is_visible()
    here.page.keyboard.press("Enter")
    assert here.page.evaluate(f"[...{PLOT}.pinned]") == [second]
    here.page.keyboard.press("Escape")
    assert here.page.evaluate(f"{PLOT}.pinned.size") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_narrow_and_wide_pages_light_and_dark(chromium: Any, page: Path, width: int, scheme: str) -> None:
    here = visit(chromium, page, width, color_scheme=scheme)
    assert here.page.evaluate("document.documentElement.scrollWidth") <= width
    until(here.page, f"{PLOT}.width > 0")
    before = pixels(here)
    here.page.locator("#theme").click()
    until(here.page, "before => document.querySelector('.explorer canvas').toDataURL() !== before", before)
    assert here.problems == []
    here.page.close()


def test_hostile_words_are_shown_and_exported_as_text(chromium: Any, tmp_path: Path) -> None:
    words = ["=cmd()", "<img src=x onerror=alert(1)>", '"quoted", comma', "-LRB-"]
    space = Space.from_arrays(np.eye(4), ["<b>a</b>", "b", "c", "d"], words=words)
    here = visit(chromium, write_page(explore(space, threads=1), tmp_path / "explorer.html"), accept_downloads=True)
    until(here.page, f"{PLOT}.width > 0")
    here.page.locator(".explorer canvas").focus()
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp"):
        here.page.keyboard.press(key)
    box = here.page.locator(".explorer canvas").bounding_box()
    here.page.mouse.move(box["x"] + 2, box["y"] + 2)
    here.page.mouse.down()
    here.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] - 2)
    here.page.mouse.up()
    assert here.page.locator(".side-list button bdi").all_inner_texts() == words
    with here.page.expect_download() as download:
        here.page.get_by_role("button", name="Export CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    assert [row["word"] for row in rows] == ["'=cmd()", words[1], words[2], "'-LRB-"]
    assert here.problems == []
    here.page.close()

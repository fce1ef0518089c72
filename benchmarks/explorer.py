"""Times the explorer in Chromium: milliseconds until a step of the slider has redrawn its points; takes its pictures.

python benchmarks/explorer.py study/report.html                          # a study's page, or one of `explore`
python benchmarks/explorer.py study/report.html --pictures docs/figures  # also explorer-before, -after, -margin.png
"""

from __future__ import annotations

import argparse
import io
import shutil
from pathlib import Path
from statistics import median
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright
from tables import table

EXPLORER = "document.querySelector('.explorer').explorer"
ROUNDS = 4

STEPS = """rounds => {
  const section = document.querySelector('.explorer'), slider = section.querySelector('input[type=range]');
  const context = section.querySelector('canvas').getContext('2d'), times = [];
  for (let round = 0; round < rounds; round++) for (let at = 0; at <= Number(slider.max); at++) {
    const start = performance.now();
    slider.value = at;
    slider.dispatchEvent(new Event('input'));
    context.getImageData(0, 0, 1, 1); // waits until it is drawn
    times.push(performance.now() - start);
  }
  return times;
}"""

MOVED = """explorer => [...explorer.plot.label.keys()].filter((at) => explorer.plot.test[at])
  .sort((a, b) => explorer.plot.moved(b) - explorer.plot.moved(a))[0]"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        page.goto(options.page.absolute().as_uri())
        if page.locator("#explorers").count():
            page.locator("#explorers").scroll_into_view_if_needed()
        page.locator(".explorer canvas").wait_for()
        page.wait_for_timeout(500)
        times = page.evaluate(STEPS, ROUNDS)
        points = page.evaluate(f"{EXPLORER}.plot.n")
        table(
            "A step of the slider",
            ["points", "steps", "median ms", "slowest ms"],
            [[points, len(times), median(times), max(times)]],
        )
        if options.pictures:
            take_pictures(page, options.pictures)


def take_pictures(page: Any, folder: Path) -> None:
    """Before fine-tuning; after it, with the path of the test point that moved most; the margin of two labels."""
    box = page.locator(".explorer")
    page.evaluate(f"{EXPLORER}.step(0)")
    save(box.screenshot(), folder / "explorer-before.png")
    page.evaluate(f"{EXPLORER}.step({EXPLORER}.data.snapshots.length - 1)")
    point = page.evaluate(f"({MOVED})({EXPLORER})")
    page.evaluate(f"{EXPLORER}.pin({point})")
    page.evaluate(f"{EXPLORER}.point({point})")
    save(box.screenshot(), folder / "explorer-after.png")
    page.get_by_role("button", name="Clear").click()
    page.evaluate(f"{EXPLORER}.point(-1)")
    page.get_by_text("Margin of two labels", exact=True).first.click()
    save(box.screenshot(), folder / "explorer-margin.png")


def save(picture: bytes, path: Path) -> None:
    """Write a picture with 256 colours, which takes a third of the space."""
    colours = Image.open(io.BytesIO(picture)).convert("RGB")
    colours.quantize(256, kmeans=4, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()

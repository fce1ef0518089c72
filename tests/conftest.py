"""Tests of pages share how a browser is opened."""

from collections.abc import Iterator
from typing import Any

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Exclude tests in a browser from coverage: pages take 1.8 times as long, and a browser may be missing."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("no_cover")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The system's Chromium; the test is skipped without playwright."""
    from tests.report.studies import browser

    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=browser(), args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()

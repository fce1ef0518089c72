"""Every test has a store of its own and no network; tests of pages share how a browser is opened."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # read when huggingface_hub is imported, so it must be set before
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the same numbers on every machine


@pytest.fixture(autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("store")
    monkeypatch.setenv("CLOSERLOOK_STORE", str(folder))
    monkeypatch.delenv("CLOSERLOOK_DATA", raising=False)
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The system's Chromium; the test is skipped without playwright."""
    from tests.report.studies import browser

    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        yield opened
        opened.close()

"""Every test has a store of its own and no network."""

import os
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # read when huggingface_hub is imported, so it must be set before
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the same numbers on every machine


@pytest.fixture(autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("store")
    monkeypatch.setenv("CLOSERLOOK_STORE", str(folder))
    monkeypatch.delenv("CLOSERLOOK_DATA", raising=False)
    return folder

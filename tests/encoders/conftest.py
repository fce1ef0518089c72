"""Model folders of every family, written once for all tests of a worker."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from closerlook.encoders.encoder import Encoder
from tests.encoders.families import save_family


@pytest.fixture(scope="session")
def family(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    @cache
    def folder(name: str) -> Path:
        return save_family(name, tmp_path_factory.mktemp("families") / name)

    return folder


@pytest.fixture(scope="session")
def encoder(family: Callable[[str], Path]) -> Callable[[str], Encoder]:
    @cache
    def load(name: str) -> Encoder:
        return Encoder.load(str(family(name)), device="cpu")

    return load

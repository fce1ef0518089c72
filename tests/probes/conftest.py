"""Torch keeps to one thread: with several, tiny products wait for each other most of the time on a busy machine."""

from collections.abc import Iterator

import pytest

from tests.threads import one_torch_thread


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with one_torch_thread():
        yield

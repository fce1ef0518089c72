"""Tests of fine-tuning use one torch thread: on shared cores more threads are up to ten times slower."""

from collections.abc import Iterator

import pytest

from tests.threads import one_torch_thread


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    with one_torch_thread():
        yield

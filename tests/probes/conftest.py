"""Limit torch to one thread: small products are slower on several threads of a busy machine."""

from collections.abc import Iterator

import pytest

from tests.threads import one_torch_thread


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with one_torch_thread():
        yield

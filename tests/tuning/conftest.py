"""One thread: the machine is shared, and threads that wait for each other cost ten times what they save."""

from collections.abc import Iterator

import pytest

from tests.threads import one_torch_thread


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    with one_torch_thread():
        yield

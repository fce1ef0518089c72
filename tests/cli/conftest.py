"""Commands that load torch use one thread in tests."""

import logging
from collections.abc import Iterator

import pytest

from tests.threads import one_torch_thread


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Use one torch thread, and no log handlers of earlier tests, whose streams are closed."""
    logging.getLogger("closerlook").handlers.clear()
    with one_torch_thread():
        yield

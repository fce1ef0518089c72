"""Every test and every example in a docstring has its own store and no network; examples run in an empty folder."""

import functools
import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # read when huggingface_hub is imported, so it must be set before
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the same numbers on every machine
# xdist uses every core: more threads of torch and BLAS wait for each other, also in processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests/portable.py sets it


def pytest_collection_finish() -> None:
    """Keep two costs low: garbage collection of what all tests share, such as modules, and coverage of altair."""
    if sys.gettrace() is not None:
        leave_altair_untraced()
    gc.freeze()


def leave_altair_untraced() -> None:
    """Suspend coverage inside altair: a page takes 1.8 times as long under it, and half of a page is altair."""
    import altair  # noqa: PLC0415 - only where coverage is measured
    from altair.utils.schemapi import SchemaBase  # noqa: PLC0415

    SchemaBase.copy = untraced(SchemaBase.copy)
    for chart in (altair.Chart, altair.LayerChart, altair.ConcatChart, altair.HConcatChart, altair.VConcatChart):
        chart.to_dict = untraced(chart.to_dict)
        chart.__init__ = untraced(chart.__init__)


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, run without the trace function of coverage, which continues after it."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return function(*arguments, **options)
        finally:
            sys.settrace(tracer)

    return run


@pytest.fixture(autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a test's store, removed after it; other settings of the user are hidden from it."""
    folder = tmp_path_factory.mktemp("store")
    monkeypatch.setenv("CLOSERLOOK_STORE", str(folder))
    monkeypatch.delenv("CLOSERLOOK_DATA", raising=False)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def own_folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Examples in docstrings write their files to an empty folder, and use one thread of torch."""
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    from tests.threads import one_torch_thread  # noqa: PLC0415 - torch is loaded for examples only

    monkeypatch.chdir(request.getfixturevalue("tmp_path"))
    with one_torch_thread():
        yield

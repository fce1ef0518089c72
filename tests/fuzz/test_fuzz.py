"""Mutated files: every reader returns a valid result or our own error, in one line, and takes little memory.

`make fuzz N=100000` tries N inputs, different ones each time; `make test` tries 2,000, the same ones each time. An
input that fails is kept in `found/`, with the reader's name in front, and tried again in every run.
"""

import hashlib
import os
import resource
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from closerlook.errors import CloserLookError
from tests.fuzz.mutations import OPERATIONS, Operation, mutate
from tests.fuzz.readers import READERS

FOUND = Path(__file__).parent / "found"
REQUESTED = os.environ.get("FUZZ_INPUTS")
INPUTS = max(1, int(REQUESTED or 2000) // len(READERS))
MOST_BYTES = 200_000_000


def read_or_refuse(name: str, data: bytes, folder: Path) -> bool:
    """Whether the reader accepts the data; fails for any exception but our own, and for more than one line."""
    reader = READERS[name]
    path = folder / reader.name
    path.write_bytes(data)
    try:
        reader.read(path)
    except CloserLookError as error:
        message = str(error)
    else:
        return True
    assert "\n" not in message
    assert len(message) < 10_000
    return False


def peak_memory() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@pytest.mark.parametrize("name", READERS)
def test_every_seed_is_read(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    accepted = [read_or_refuse(name, reader.wrap(seed), tmp_path) for seed in reader.seeds()]
    assert any(accepted)


@pytest.mark.parametrize("name", READERS)
def test_mutated_files_are_read_or_refused(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    reader, folder = READERS[name], tmp_path_factory.mktemp("fuzz")
    seeds = reader.seeds()
    read_or_refuse(name, reader.wrap(seeds[0]), folder)  # loads what the reader needs
    before, kept = peak_memory(), list[Path]()

    @settings(
        max_examples=INPUTS,
        derandomize=REQUESTED is None,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(which=st.integers(0, len(seeds) - 1), operations=OPERATIONS)
    def attempt(which: int, operations: list[Operation]) -> None:
        data = reader.wrap(mutate(seeds[which], operations, seeds))
        try:
            read_or_refuse(name, data, folder)
        except BaseException:
            for larger in kept:  # Hypothesis tries smaller and smaller inputs
                larger.unlink(missing_ok=True)
            kept.append(FOUND / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}")
            kept[-1].write_bytes(data)
            raise

    attempt()
    assert peak_memory() - before < MOST_BYTES


@pytest.mark.parametrize("path", sorted(FOUND.glob("*-*")), ids=lambda path: path.name)
def test_inputs_that_failed_once_are_read_or_refused(path: Path, tmp_path: Path) -> None:
    read_or_refuse(path.name.partition("-")[0], path.read_bytes(), tmp_path)

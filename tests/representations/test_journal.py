"""A damaged journal of an interrupted extraction is noticed, reported and kept under another name."""

from pathlib import Path

import numpy as np
import pytest

from closerlook.encoders.source import EMBEDDED
from closerlook.representations import forward
from closerlook.representations.extract import extract
from tests.representations.test_extract import task


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no checksum"),
        (b"{}", "has no checksum"),
        (b'["x"]', "has no checksum"),
        (b"\xff", "has no checksum"),
        (b"[" * 100_000, "has no checksum"),
        (None, "is a folder; expected a file"),
    ],
)
def test_a_damaged_journal_is_reported_and_the_extraction_starts_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    content: bytes | None,
    message: str,
) -> None:
    monkeypatch.setattr(forward, "CHUNK", 30 / 2048)
    monkeypatch.setattr(forward, "SECONDS", 0)

    def stop(done: int, total: int) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(EMBEDDED, task("pair"), store=tmp_path / "cut", progress=stop)
    (journal,) = (tmp_path / "cut" / "work").glob("*/journal.json")
    journal.unlink()
    if content is None:
        journal.mkdir()
    else:
        journal.write_bytes(content)
    whole = extract(EMBEDDED, task("pair"), store=tmp_path / "whole")
    for space, expected_space in zip(extract(EMBEDDED, task("pair"), store=tmp_path / "cut"), whole, strict=True):
        np.testing.assert_array_equal(space.X, expected_space.X)
    (line,) = [record.getMessage() for record in caplog.records if str(journal) in record.getMessage()]
    assert line.startswith(f"{journal} {message}")
    assert line.endswith("and the extraction starts again")

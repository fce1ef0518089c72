"""A damaged `tuned.json` is refused, or kept under another name and made again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from closerlook.encoders.source import EMBEDDED
from closerlook.errors import InputError
from closerlook.tuning import TuningResult, tune
from tests.tuning.tasks import small

SHORT: dict[str, Any] = {"snapshots": 2, "epochs": 1, "batch_size": 8, "learning_rate": 1e-3, "layers": "last"}
"""Five steps of eight texts."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> TuningResult:
    return tune(EMBEDDED, small(), store=tmp_path_factory.mktemp("run"), **SHORT)


def test_a_damaged_file_is_refused_in_one_line(run: TuningResult, tmp_path: Path) -> None:
    file = tmp_path / "tuned.json"
    run.save(tmp_path)
    intact = file.read_bytes()
    assert TuningResult.load(tmp_path) == run
    for damaged, message in (
        (b'{"encoder": ', r"is not JSON \(.*\)"),
        (b"", "is not JSON"),
        (b"\xff\xfe{", "is not JSON"),
        (b"[" * 100_000, r"is not JSON \(it is nested too deeply\)"),
        (b"5", "contains int; expected a JSON object"),
        (b"{}", r"cannot be read \(KeyError: 'encoder'\)"),
        (intact.replace(b'"steps": 5', b'"steps": 6'), "does not match its checksum: it was damaged or edited"),
    ):
        assert damaged != intact
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=rf"tuned\.json {message}.*; move it away and tune again") as caught:
            TuningResult.load(tmp_path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_damaged_run_is_kept_under_another_name_and_trained_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_folder: bool
) -> None:
    options: dict[str, Any] = {"out": tmp_path, **SHORT}
    first = tune(EMBEDDED, small(), **options)
    file = tmp_path / "tuned.json"
    if is_folder:
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(file.read_bytes().replace(b'"seed": 0', b'"seed": 1'))
    again = tune(EMBEDDED, small(), **options)
    assert replace(again, seconds=first.seconds) == first
    assert TuningResult.load(tmp_path) == again
    (aside,) = tmp_path.glob("tuned.json.*.damaged")
    assert f"it is kept as {aside.name}; training again" in caplog.text

"""Damaged files in a study's folder are noticed, reported with their names, and written again from intact ones."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from closerlook.errors import DamagedFileError, InputError, WorkError
from closerlook.study.files import is_finished, read_payload, read_result, result_path, write_result
from closerlook.study.kinds import geometry
from closerlook.study.results import COLUMNS, load_results, read_manifest, study_in
from closerlook.study.study import CompletedStudy, forecast, resolve_study, run_study
from tests.study.small import small_plan, values

KEY = "ab" * 32
OTHER = "cd" * 32
RESULT = {"kind": "geometry", "rows": [{"measure": "n_clusters", "value": 3.0, "text": "é"}], "payload": {"a": [1, 2]}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of one result."""
    write_result(tmp_path, {"key": KEY, **RESULT})
    return result_path(tmp_path, KEY)


def same(first: Path, second: Path) -> None:
    pd.testing.assert_frame_equal(values(load_results(first)), values(load_results(second)), check_exact=True)


# ---- one result ----


def test_a_result_is_read_as_it_was_written(tmp_path: Path, file: Path) -> None:
    result = read_result(tmp_path, KEY)
    assert result is not None
    assert result.pop("checksum")
    assert result == {"key": KEY, **RESULT}
    assert is_finished(tmp_path, KEY)
    assert read_payload(tmp_path, KEY) == {"a": [1, 2]}


def test_a_flipped_bit_in_any_byte_is_noticed(tmp_path: Path, file: Path) -> None:
    intact = file.read_bytes()
    for position in range(len(intact)):
        damaged = bytearray(intact)
        damaged[position] ^= 1 << position % 8
        file.write_bytes(damaged)
        assert not is_finished(tmp_path, KEY), position
    file.write_bytes(intact)
    assert is_finished(tmp_path, KEY)


def test_every_cut_is_noticed(tmp_path: Path, file: Path) -> None:
    intact = file.read_bytes()
    for length in range(len(intact)):
        file.write_bytes(intact[:length])
        assert read_result(tmp_path, KEY) is None, length


def test_the_result_of_a_different_cell_is_noticed(tmp_path: Path, file: Path) -> None:
    target = result_path(tmp_path, OTHER)
    target.parent.mkdir()
    shutil.copy(file, target)
    assert not is_finished(tmp_path, OTHER)
    with pytest.raises(WorkError, match="contains the result of a different cell; run the same command again"):
        read_payload(tmp_path, OTHER)


def test_a_result_that_cannot_be_opened_is_not_taken_for_damaged(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(WorkError, match=r"\.json cannot be read: Permission denied"):
        is_finished(tmp_path, KEY)


# ---- a study ----


def altered(path: Path) -> None:
    """Change one digit of one value."""
    content = json.loads(path.read_bytes())
    numbers = [row for row in content["rows"] if isinstance(row["value"], float)]
    numbers[0]["value"] += 1.0
    path.write_text(json.dumps(content, ensure_ascii=False))


def made_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").write_text("something")


def without_checksum(path: Path) -> None:
    """As versions before checksums wrote it."""
    content = json.loads(path.read_bytes())
    del content["checksum"]
    path.write_text(json.dumps(content, ensure_ascii=False))


def set_entry(name: str, value: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_bytes()) | {name: value}, ensure_ascii=False))

    return change


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.write_bytes(b""), "has no checksum"),
    (lambda path: path.write_bytes(b"{}"), "has no checksum"),
    (lambda path: path.write_bytes(b"null"), "has no checksum"),
    (lambda path: path.write_bytes(b"{]}"), "has no checksum"),
    (lambda path: path.write_bytes(b"\xff\xfe\x00"), "has no checksum"),
    (lambda path: path.write_bytes(path.read_bytes()[:-1]), "does not match its checksum"),
    (altered, "does not match its checksum"),
    (set_entry("rows", None), "does not match its checksum"),
    (set_entry("payload", 5), "does not match its checksum"),
    (set_entry("seconds", "long"), "does not match its checksum"),
    (made_folder, "is a folder; expected the result of a cell"),
    (without_checksum, "has no checksum: it is damaged, or from an earlier version"),
]


def test_damaged_results_are_named_kept_and_computed_again(
    single: CompletedStudy,
    tasks: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("closerlook.study.files.SHOWN", 100)
    out = Path(shutil.copytree(single.out, tmp_path / "copy"))
    cells = [cell for cell in single.state.graph.cells.values() if cell.kind not in ("extract", "tune")]
    paths = [result_path(out, cell.key) for cell in cells[: len(DAMAGES)]]
    paths.sort(key=lambda path: not any(row["value"] for row in json.loads(path.read_bytes())["rows"]))
    for path, (damage, _) in zip(paths, reversed(DAMAGES), strict=True):
        damage(path)
    again = run_study(small_plan(tasks), out, engine="here")
    assert again.state.computed == len(DAMAGES)
    same(out, single.out)
    for path, (_, message) in zip(paths, reversed(DAMAGES), strict=True):
        (line,) = [record.getMessage() for record in caplog.records if str(path) in record.getMessage()]
        (aside,) = path.parent.glob(f"{path.name}.*.damaged")
        assert line.startswith(f"{path} {message}")
        assert line.endswith(f"; it is kept as {aside.name}, and its cell is computed again")
        assert "\n" not in line
    assert len(read_manifest(out)["damaged"]) == len(DAMAGES)


def test_two_swapped_results_are_both_computed_again(single: CompletedStudy, tasks: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(single.out, tmp_path / "copy"))
    first, second = [
        result_path(out, cell.key) for cell in single.state.graph.cells.values() if cell.kind == "geometry"
    ][:2]
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    assert run_study(small_plan(tasks), out, engine="here").state.computed == 2
    same(out, single.out)


def test_damaged_results_of_fine_tuning_and_extraction_are_made_again(
    single: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(single.out, tmp_path / "copy"))
    cells = [cell for cell in single.state.graph.cells.values() if cell.kind in ("extract", "tune")]
    for cell in cells:
        result_path(out, cell.key).write_bytes(b"{}")
    assert run_study(small_plan(tasks), out, engine="here").state.computed == len(cells) == 3
    same(out, single.out)


def test_a_file_in_place_of_a_folder_of_results_is_kept_under_another_name(
    single: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(single.out, tmp_path / "copy"))
    folder = sorted((out / "cells").iterdir())[0]
    lost = len(list(folder.glob("*.json")))
    shutil.rmtree(folder)
    folder.write_text("")
    assert run_study(small_plan(tasks), out, engine="here").state.computed == lost
    assert len(list((out / "cells").glob("*.damaged"))) == 1
    same(out, single.out)


def test_many_damaged_results_are_counted_instead_of_named(
    single: CompletedStudy,
    tasks: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("closerlook.study.files.SHOWN", 2)
    out = Path(shutil.copytree(single.out, tmp_path / "copy"))
    cells = [cell for cell in single.state.graph.cells.values() if cell.kind == "geometry"][:3]
    for cell in cells:
        result_path(out, cell.key).write_bytes(b"{}")
    run_study(small_plan(tasks), out, engine="here")
    lines = [record.getMessage() for record in caplog.records if "computed again" in record.getMessage()]
    assert len(lines) == 3
    assert lines[-1] == f"1 more damaged results in {out / 'cells'} are computed again"


def test_a_dry_run_counts_a_damaged_result_as_unfinished_and_changes_nothing(
    single: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(single.out, tmp_path / "copy"))
    (cell, *_) = [cell for cell in single.state.graph.cells.values() if cell.kind == "geometry"]
    result_path(out, cell.key).write_bytes(b"{}")
    kinds = {kind.kind: kind for kind in forecast(resolve_study(small_plan(tasks), out), out)}
    assert kinds["geometry"].done == kinds["geometry"].cells - 1
    assert result_path(out, cell.key).read_bytes() == b"{}"


def test_an_input_damaged_while_the_study_runs_is_computed_again(
    single: CompletedStudy, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Path(shutil.copytree(single.out, tmp_path / "copy"))
    (cell, *_) = [cell for cell in single.state.graph.cells.values() if cell.kind == "comparison"]
    result_path(out, cell.key).unlink()
    victim = result_path(out, cell.inputs[0])
    plain, computed = geometry.KIND.run, 0

    def counted(*arguments: object) -> object:
        nonlocal computed
        computed += 1
        return plain(*arguments)  # type: ignore[arg-type]

    def damage(state: object) -> None:
        if not computed and victim.exists():
            victim.write_bytes(b"{}")

    object.__setattr__(geometry.KIND, "run", counted)
    try:
        again = run_study(small_plan(tasks), out, engine="here", watch=damage)
    finally:
        object.__setattr__(geometry.KIND, "run", plain)
    assert computed == 1
    assert not again.state.failed
    same(out, single.out)


def test_a_result_that_disappears_before_the_table_is_written_is_an_error(
    single: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(single.out, tmp_path / "copy"))
    (cell, *_) = [cell for cell in single.state.graph.cells.values() if cell.kind == "geometry"]
    with pytest.raises(WorkError, match="has disappeared; run the same command again: it is computed again"):
        run_study(
            small_plan(tasks),
            out,
            engine="here",
            watch=lambda state: result_path(out, cell.key).unlink(missing_ok=True),
        )
    assert run_study(small_plan(tasks), out, engine="here").state.computed == 1
    same(out, single.out)


# ---- the table and the manifest ----


def test_every_flipped_byte_of_the_table_is_noticed(single: CompletedStudy, tmp_path: Path) -> None:
    table = tmp_path / "results.parquet"
    intact = (single.out / "results.parquet").read_bytes()
    whole, start = load_results(single.out), intact.index(b"closerlook.checksum")
    marker = range(start - 2, start + len("closerlook.checksum") + 34)
    for position in [*range(0, len(intact) - 8, 599), *marker]:
        damaged = bytearray(intact)
        damaged[position] ^= 0x10
        table.write_bytes(damaged)
        if position in marker:  # without the name of its entry, the checksum is not found; the values are intact
            with suppress(InputError):
                pd.testing.assert_frame_equal(load_results(table), whole)
        else:
            with pytest.raises(DamagedFileError, match="does not match its checksum"):
                load_results(table)


def test_a_damaged_table_names_the_cure_and_a_study_writes_it_again(
    single: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(single.out, tmp_path / "copy"))
    table = out / "results.parquet"
    content = bytearray(table.read_bytes())
    content[100] ^= 1
    table.write_bytes(content)
    with pytest.raises(
        DamagedFileError, match=r"results\.parquet does not match its checksum: .*; run the study again: it writes the"
    ):
        load_results(out)
    assert run_study(small_plan(tasks), out, engine="here").state.computed == 0
    same(out, single.out)


def test_folders_in_place_of_tables_and_manifest_are_kept_under_other_names(
    single: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(single.out, tmp_path / "copy"))
    for name in ("results.parquet", "results.csv", "manifest.json"):
        (out / name).unlink()
        (out / name).mkdir()
    assert run_study(small_plan(tasks), out, engine="here").state.computed == 0
    assert len(list(out.glob("*.damaged"))) == 3
    same(out, single.out)


def test_a_table_that_was_edited_is_read_with_a_warning(
    single: CompletedStudy, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = Path(shutil.copytree(single.out, tmp_path / "copy"))
    whole = load_results(out / "results.csv")
    load_results(out)
    assert not caplog.records
    whole.head(5).to_csv(out / "results.csv", index=False)
    whole.head(5).to_parquet(out / "results.parquet", index=False)
    for name in ("results.csv", "results.parquet"):
        caplog.clear()
        assert len(load_results(out / name)) == 5
        (record,) = caplog.records
        assert record.getMessage().startswith(f"{out / name} is not the table that the study wrote")


def test_a_table_without_checksum_and_manifest_is_read_silently(
    single: CompletedStudy, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load_results(single.out).to_parquet(tmp_path / "results.parquet")
    assert list(load_results(tmp_path).columns) == list(COLUMNS)
    assert not caplog.records


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[]", "contains list; expected a JSON object"),
        (b"[" * 100_000, "is not JSON .it is nested too deeply."),
        (None, "does not match its checksum: it was damaged or edited"),
    ],
)
def test_a_damaged_manifest_is_refused_in_one_line_and_written_again_by_the_study(
    single: CompletedStudy, tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes | None, message: str
) -> None:
    file = tmp_path / "manifest.json"
    file.write_bytes((single.out / "manifest.json").read_bytes().replace(b'"small"', b'"large"', 1))
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=rf"manifest\.json {message}.*; expected the manifest that a study writes"):
        read_manifest(tmp_path)
    assert study_in(tmp_path) is None
    assert "the study writes it again at its end" in caplog.text


def test_a_manifest_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"study": "kept"}')
    assert study_in(tmp_path) == "kept"

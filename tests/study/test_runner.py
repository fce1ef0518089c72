"""A study carried out: every cell once, going on after whatever stopped it, failures kept apart."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from closerlook.errors import InputError, WorkError
from closerlook.study import execution
from closerlook.study.cells import Cell
from closerlook.study.execution import attempt
from closerlook.study.files import LostError, read_result, result_path
from closerlook.study.kinds import geometry
from closerlook.study.plan import make_plan
from closerlook.study.results import load_results
from closerlook.study.runner import StudyState, study_lock
from closerlook.study.study import CompletedStudy, run_study
from closerlook.tuning.tuned import TuningResult
from tests.study.small import begun, computed_twice, small_plan, values

Copied = Callable[[], Path]


def same(first: Path, second: Path) -> None:
    pd.testing.assert_frame_equal(values(load_results(first)), values(load_results(second)), check_exact=True)


def some(done: CompletedStudy, kind: str, n: int = 1) -> list[Cell]:
    found = [cell for cell in done.state.graph.cells.values() if cell.kind == kind]
    assert len(found) >= n
    return found[:n]


# ---- doing it once ----


def test_every_cell_is_done_and_begun_once(single: CompletedStudy) -> None:
    assert single.state.done == set(single.state.graph.cells)
    assert (single.state.failed, single.state.blocked) == ({}, 0)
    assert single.state.computed == single.state.total
    assert {key: len(times) for key, times in begun(single.out).items()} == dict.fromkeys(single.state.done, 1)
    assert single.state.seconds_left == pytest.approx(0, abs=1e-6)


def test_a_second_run_computes_nothing_and_gives_the_same_table(
    single: CompletedStudy, copied: Copied, tasks: Path
) -> None:
    out = copied()
    again = run_study(small_plan(tasks), out, engine="here")
    assert again.state.computed == 0
    assert again.state.total == single.state.total
    same(out, single.out)
    assert not computed_twice(out)


def test_what_is_missing_is_done_again_and_nothing_else(single: CompletedStudy, copied: Copied, tasks: Path) -> None:
    out = copied()
    gone = [*some(single, "geometry", 2), *some(single, "comparison"), *some(single, "centroids")]
    for cell in gone:
        result_path(out, cell.key).unlink()
    before = begun(out)
    again = run_study(small_plan(tasks), out, engine="here")
    assert again.state.computed == len(gone)
    new = {key for key, times in begun(out).items() if len(times) > len(before[key])}
    assert new == {cell.key for cell in gone}
    same(out, single.out)


def test_a_result_cut_short_is_done_again_and_what_was_half_written_is_swept(
    single: CompletedStudy, copied: Copied, tasks: Path
) -> None:
    out = copied()
    (cell,) = some(single, "geometry")
    path = result_path(out, cell.key)
    path.write_bytes(path.read_bytes()[:100])
    empty = result_path(out, some(single, "comparison")[0].key)
    empty.write_bytes(b"")
    part = path.with_name(f".{path.name}.0123.part")
    part.write_bytes(b"half")
    again = run_study(small_plan(tasks), out, engine="here")
    assert again.state.computed == 2
    assert not part.exists()
    same(out, single.out)


def test_a_fine_tuning_whose_result_is_lost_finds_its_vectors_and_measures_nothing_anew(
    single: CompletedStudy, copied: Copied, tasks: Path
) -> None:
    out = copied()
    (cell,) = some(single, "tune")
    result_path(out, cell.key).unlink()
    again = run_study(small_plan(tasks), out, engine="here")
    assert again.state.computed == 1
    same(out, single.out)


@pytest.mark.parametrize("kind", ["extract", "tune"])
def test_vectors_gone_from_the_store_are_made_again(
    single: CompletedStudy, copied: Copied, tasks: Path, kind: str
) -> None:
    out = copied()
    keys = [cell.content["space"] for cell in some(single, "geometry", 9)]
    key = keys[0] if kind == "extract" else keys[-1]
    (maker,) = some(single, kind)
    measured = next(cell for cell in single.state.graph.cells.values() if cell.content.get("space") == key)
    assert measured.inputs == (maker.key,)
    (space,) = (out / "store" / "spaces").glob(f"*/{key}.safetensors")
    space.unlink()
    result_path(out, measured.key).unlink()
    again = run_study(small_plan(tasks), out, engine="here")
    assert not again.state.failed
    assert again.state.computed == 2  # the maker and the measurement
    assert space.exists()
    same(out, single.out)


def test_vectors_that_nothing_asks_for_any_more_may_go(single: CompletedStudy, copied: Copied, tasks: Path) -> None:
    out = copied()
    shutil.rmtree(out / "store")
    again = run_study(small_plan(tasks), out, engine="here")
    assert again.state.computed == 0
    same(out, single.out)


def test_a_larger_plan_goes_on_from_a_smaller_one(single: CompletedStudy, copied: Copied, tasks: Path) -> None:
    out = copied()
    geometry = {"permutations": 99, "resamples": 50, "tau": 1e-5}
    again = run_study(small_plan(tasks, geometry=geometry), out, engine="here")
    kinds = {again.state.graph.cells[key].kind for key in set(again.state.graph.cells) - set(single.state.graph.cells)}
    assert kinds == {"geometry", "comparison", "centroids", "panel", "nulls", "split_halves", "explorer"}
    assert again.state.computed == again.state.total - 8  # two extractions, a fine-tuning, two grids, three likenesses


def test_a_task_that_changed_meanwhile_is_not_taken_for_what_it_was(
    single: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    (cell,) = some(single, "tune")
    resources = cell.resources | {
        "probe": dict.fromkeys(cell.resources["probe"], "another content"),
        "store": str(tmp_path / "store"),
    }
    changed = Cell(cell.kind, cell.format, cell.content, resources, cell.inputs, cell.title)
    ended = attempt(changed, str(tmp_path), 1)
    assert "has changed since the study began; run the same command again" in ended.error


# ---- options of plans ----


def test_a_training_that_stops_early_ends_the_study_early(tasks: Path, tmp_path: Path) -> None:
    tuning = {"epochs": 8, "learning_rate": 0.3, "batch_size": 12, "early_stopping": 1, "warmup": 0}
    plan = small_plan(
        tasks, tuning=tuning, snapshots="epoch", layers="last", measures=["clusters"], compare={"original": False}
    )
    told: list[int] = []
    done = run_study(plan, tmp_path / "out", engine="here", watch=lambda state: told.append(state.total))
    assert told[-1] < told[0]
    table = load_results(done.out)
    steps = sorted(set(table[table.tuned_on == "words"].step))
    assert len(steps) < 9
    assert table[table["is_final"]].step.unique().tolist() == [steps[-1]]
    assert done.state.blocked == 0


def test_adapters_can_be_tuned_in_place_of_the_encoder(tasks: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    plan = small_plan(
        tasks, tuning={"epochs": 1, "lora": 2, "batch_size": 12}, snapshots=2, layers="last", measures=["clusters"]
    )
    done = run_study(plan, tmp_path / "out", engine="here")
    (cell,) = some(done, "tune")
    result = read_result(done.out, cell.key)
    assert result is not None
    assert TuningResult.from_dict(result["payload"]["tuned"]).settings.lora == 2
    assert not done.state.failed


def test_encoders_as_they_came_can_be_compared(tasks: Path, tmp_path: Path) -> None:
    plan = small_plan(
        tasks,
        encoders=["bert-tiny", "random:bert-tiny"],
        tuning=None,
        layers="last",
        tasks=[str(tasks / "words"), str(tasks / "questions")],
        measures=["clusters", "similarity"],
        compare={"encoders": True},
    )
    table = load_results(run_study(plan, tmp_path / "out", engine="here").out)
    assert set(table.encoder) == {"bert-tiny", "random:bert-tiny"}
    assert set(table.tuned_on) == {""}
    between = table[table.measure == "similarity_encoder"]
    assert set(zip(between.encoder, between.other, between.task, strict=True)) == {
        ("bert-tiny", "random:bert-tiny", "words"),
        ("bert-tiny", "random:bert-tiny", "questions"),
    }
    assert between.value.between(-1, 1).all()
    assert not len(table[table.measure == "minimum_distance_change"])


def test_weights_are_kept_where_the_plan_says_so(tasks: Path, tmp_path: Path) -> None:
    plan = small_plan(tasks, save_weights=True, snapshots=2, layers="last", measures=["clusters"])
    done = run_study(plan, tmp_path / "out", engine="here")
    (cell,) = some(done, "tune")
    assert (done.out / "weights" / cell.key / "step-4" / "config.json").exists()


def test_two_labels_are_enough_for_a_study(tmp_path: Path) -> None:
    for split in ("train", "test"):
        lines = [f"a {mood} day number {i},{mood}" for i in range(6) for mood in ("good", "bad")]
        (tmp_path / f"{split}.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    plan = small_plan(tmp_path, tasks=str(tmp_path), name="moods", layers="last")
    done = run_study(plan, tmp_path / "out", engine="here")
    assert not done.state.failed
    table = load_results(done.out)
    assert table[table.measure == "similarity_original"].value.isna().all()
    assert len(table[(table.measure == "n_labels_increased") & table["is_final"]]) == 1


# ---- failures ----


class Broken:
    """A measure that fails on some spaces."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception, layer: int = 0) -> None:
        self.real, self.error, self.layer = geometry.measure_space, error, layer
        self.broken = True
        monkeypatch.setattr(geometry, "measure_space", self)

    def __call__(self, space: Any, context: Any, **rest: Any) -> Any:
        if self.broken and space.provenance.layer == self.layer:
            raise self.error
        return self.real(space, context, **rest)


def test_a_failed_cell_is_recorded_the_rest_goes_on_and_the_next_run_tries_again(
    single: CompletedStudy, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(monkeypatch, ZeroDivisionError("float\ndivision"))
    out = tmp_path / "out"
    done = run_study(small_plan(tasks), out, engine="here")
    failed = [cell for cell in done.state.graph.cells.values() if cell.key in done.state.failed]
    assert {cell.kind for cell in failed} == {"geometry"}
    assert {cell.title.split(" · ")[-2] for cell in failed} == {"layer 0"}
    assert set(done.state.failed.values()) == {"ZeroDivisionError: float division"}
    assert len(done.state.done) + len(failed) + done.state.blocked == done.state.total
    assert done.state.blocked > 0
    assert len(load_results(out))
    kept = json.loads((out / "failed" / f"{failed[0].key}.json").read_text())
    assert kept["title"] == failed[0].title
    assert "in __call__" in kept["traceback"]
    told = json.loads((out / "manifest.json").read_text())
    assert len(told["failed"]) == len(failed)
    assert told["blocked"] == done.state.blocked
    broken.broken = False
    again = run_study(small_plan(tasks), out, engine="here")
    assert again.state.computed == len(failed) + done.state.blocked
    assert not again.state.failed
    assert not list((out / "failed").iterdir())
    assert not computed_twice(out)
    same(out, single.out)


def test_a_failed_fine_tuning_holds_back_what_it_would_have_brought(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any, **rest: Any) -> None:
        raise WorkError("cpu is out of memory; pass a smaller --batch-size")

    monkeypatch.setattr("closerlook.tuning.tune", fails)
    done = run_study(small_plan(tasks), tmp_path / "out", engine="here")
    (error,) = done.state.failed.values()
    assert error == "cpu is out of memory; pass a smaller --batch-size"
    assert done.state.total == 40
    assert done.state.blocked == 40 - len(done.state.done) - 1
    assert set(load_results(tmp_path / "out").tuned_on) == {""}


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), WorkError("it cannot be written")])
def test_a_full_disk_stops_the_study_and_other_errors_do_not(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    Broken(monkeypatch, error)
    if isinstance(error, OSError):
        with pytest.raises(WorkError, match="No space left on device; free disk space, and run the same command again"):
            run_study(small_plan(tasks, tuning=None), tmp_path / "out", engine="here")
        assert not (tmp_path / "out" / "failed").exists()
    else:
        assert run_study(small_plan(tasks, tuning=None), tmp_path / "out", engine="here").state.failed


def test_the_reason_of_an_error_is_found_behind_the_one_that_was_raised() -> None:
    def behind(first: Exception) -> Exception:
        try:
            try:
                raise first
            except Exception:
                raise WorkError("something cannot be written") from None
        except WorkError as error:
            return error

    assert execution._reason(behind(OSError(28, "No space left on device"))) == "full"
    assert execution._reason(behind(OSError(30, "Read-only file system"))) == "full"
    assert execution._reason(behind(LostError("gone"))) == "lost"
    assert execution._reason(behind(ValueError("else"))) == ""


# ---- the folder ----


def test_two_runs_in_one_folder_are_refused(tasks: Path, tmp_path: Path) -> None:
    with study_lock(tmp_path / "out"):
        with pytest.raises(InputError, match="is in use by another run of this study; wait for it, or choose another"):
            run_study(small_plan(tasks), tmp_path / "out", engine="here")


def test_a_file_in_the_place_of_the_folder_is_refused(tasks: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="is a file; expected a folder"):
        run_study(small_plan(tasks), tmp_path / "out", engine="here")


def test_a_plan_that_is_refused_leaves_nothing_behind(tasks: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="layer 7 requested"):
        run_study(small_plan(tasks, layers=7), tmp_path / "out", engine="here")
    assert not (tmp_path / "out").exists()


def test_whoever_watches_sees_cells_come_and_go(tasks: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int, tuple[str, ...], float | None]] = []

    def watch(state: StudyState) -> None:
        titles = tuple(state.graph.cells[key].title for key in state.running)
        seen.append((len(state.done), state.total, titles, state.seconds_left))

    run_study(small_plan(tasks, tuning=None), tmp_path / "out", engine="here", watch=watch)
    assert seen[0][2] == ("extract bert-tiny",)
    assert [done for done, *_ in seen] == sorted(done for done, *_ in seen)
    assert {total for _, total, *_ in seen} == {17}
    assert seen[0][3] is None  # nothing is known before a cell has finished
    assert seen[-1][3] == 0
    assert seen[-1][:3] == (17, 17, ())


def test_a_task_may_name_its_columns_and_is_found_from_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        f"word {at} {'good' if at % 2 else 'bad'},{at % 2 + 1},{'test' if at > 19 else 'train'}" for at in range(26)
    ]
    (tmp_path / "reviews.csv").write_text("\n".join(["review,stars,part", *lines]) + "\n")
    monkeypatch.chdir(tmp_path)
    task = "reviews.csv?text=review&label=stars&split_column=part"
    plan = make_plan({"encoders": "bert-tiny", "tasks": task, "tuning": None, "measures": ["clusters"]})
    done = run_study(plan, tmp_path / "out", workers=2, engine="processes")
    assert not done.state.failed
    assert set(load_results(tmp_path / "out").task) == {"reviews"}

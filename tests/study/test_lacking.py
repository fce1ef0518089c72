"""A study completed from what given results lack: only the cells that measure it run, and cells that these need."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from closerlook.errors import InputError
from closerlook.report.archive import archive
from closerlook.study.cells import Cell
from closerlook.study.combining import combine_results
from closerlook.study.engines import GPU_CELLS, check_gpu_cells, limit_gpu_cells
from closerlook.study.execution import Outcome, attempt
from closerlook.study.forecasting import foresee
from closerlook.study.lacking import Lacking
from closerlook.study.lacking import _place as place_of
from closerlook.study.results import load_results, read_manifest
from closerlook.study.runner import Limits, StudyState, work_through
from closerlook.study.study import CompletedStudy, execute_study, forecast, run_study
from closerlook.tuning.steps import planned_steps
from tests.encoders.families import save_family
from tests.report.studies import write_study
from tests.study.small import begun, full_plan, measures_of, opened, small_plan, values

Rows = Callable[[pd.DataFrame], "pd.Series[bool]"]


def without(study: CompletedStudy, folder: Path, rows: Rows) -> Path:
    """The results of a study without some rows of its table, in a folder of their own."""
    table = load_results(study.out)
    removed = rows(table).astype(bool)
    assert removed.any()
    return write_study(folder, table[~removed], read_manifest(study.out))


def kinds(done: CompletedStudy) -> Counter[str]:
    return Counter(done.state.graph.cells[key].kind for key in begun(done.out))


def expected_kinds(study: CompletedStudy, plan: Any, kept: Path) -> dict[str, int]:
    """How many cells of each kind a forecast expects."""
    return {part.kind: part.cells for part in forecast(opened(plan, study.out), kept / "nowhere", kept)}


def is_after(table: pd.DataFrame, measure: str) -> "pd.Series[bool]":
    return (table["measure"] == measure) & table["is_final"]


def test_whole_results_lack_nothing(done: CompletedStudy, tasks: Path) -> None:
    assert expected_kinds(done, full_plan(tasks), done.out) == {}


def test_an_archive_lacks_nothing_although_it_has_fewer_rows(done: CompletedStudy, tasks: Path, tmp_path: Path) -> None:
    kept = archive(done.out, tmp_path / "archive", distances="ends").parent
    assert len(load_results(kept)) < len(load_results(done.out))
    assert expected_kinds(done, full_plan(tasks), kept) == {}


def test_what_is_lacking_after_a_fine_tuning_repeats_the_fine_tuning_and_nothing_else(
    single: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    kept = without(single, tmp_path / "kept", lambda table: is_after(table, "separable_pairs"))
    assert expected_kinds(single, small_plan(tasks), kept) == {}  # other measurements of the same cell are there

    def shuffled(table: pd.DataFrame) -> "pd.Series[bool]":
        return table["is_final"] & table["measure"].str.contains("separable|subsampled|noise_similarity")

    kept = without(single, tmp_path / "lacking", shuffled)
    assert expected_kinds(single, small_plan(tasks), kept) == {"tune": 1, "nulls": 1}
    part = run_study(small_plan(tasks), tmp_path / "part", engine="here", complete=kept)
    assert kinds(part) == {"tune": 1, "nulls": 1}
    assert (part.state.total, part.state.blocked) == (2, 0)
    assert read_manifest(part.out)["cells"] == {"done": 2, "total": 2, "computed": 2, "whole": single.state.total}


def test_results_and_what_they_lacked_make_the_whole_table(single: CompletedStudy, tasks: Path, tmp_path: Path) -> None:
    kept = without(single, tmp_path / "kept", lambda table: table["measure"].str.startswith("similarity"))
    part = run_study(small_plan(tasks), tmp_path / "part", engine="here", complete=kept)
    assert kinds(part).keys() == {"extract", "tune", "geometry", "comparison", "split_halves"}
    assert not load_results(kept)["measure"].str.startswith("similarity").any()
    combine_results([kept, part.out], tmp_path / "whole")
    whole = load_results(tmp_path / "whole")
    expected = load_results(single.out).sort_values(list(whole.columns), ignore_index=True)
    pd.testing.assert_frame_equal(values(whole.sort_values(list(whole.columns), ignore_index=True)), values(expected))


def test_an_interrupted_completion_continues(single: CompletedStudy, tasks: Path, tmp_path: Path) -> None:
    kept = without(single, tmp_path / "kept", lambda table: table["tuned_on"] != "")
    part = run_study(small_plan(tasks), tmp_path / "part", engine="here", complete=kept)
    again = run_study(small_plan(tasks), tmp_path / "part", engine="here", complete=kept)
    assert (again.state.computed, again.state.total) == (0, part.state.total)
    assert 0 < part.state.total < single.state.total  # not the measures of the pretrained encoder that no run repeats


def test_a_lacking_seed_is_compared_with_the_seeds_that_results_have(
    single: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    plan = small_plan(tasks, seeds=[0, 1], measures=["clusters", "similarity"])
    assert expected_kinds(single, plan, single.out)["tune"] == 2
    part = run_study(plan, tmp_path / "part", engine="here", complete=single.out)
    table = load_results(part.out)
    compared = table[table["measure"] == "similarity_seed"]
    assert compared[["seed", "other"]].to_numpy().tolist() == [[1, "0"]]


def test_a_repeated_training_with_different_weights_is_not_measured(
    done: CompletedStudy, tasks: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = load_results(done.out)
    table.loc[table["tuned_on"] == "words", "weights"] = "other"
    lacks = table["measure"].isin(measures_of("panel")) & table["is_final"]
    kept = write_study(tmp_path / "kept", table[~lacks], read_manifest(done.out))
    part = run_study(full_plan(tasks), tmp_path / "part", engine="here", complete=kept)
    assert [(one.encoder, one.tuned_on, one.seed) for one in part.state.differing] == [("bert-tiny", "words", 0)]
    found = load_results(part.out)
    assert set(found[found["tuned_on"] == "words"]["measure"]) <= set(measures_of("tune"))
    assert kinds(part).keys() == {"tune", "panel"}
    message = f"different weights than in {kept}, as on another kind of processor: bert-tiny on words (full, seed 0)"
    assert caplog.text.count(message) == 1
    again = run_study(full_plan(tasks), tmp_path / "part", engine="here", complete=kept)
    assert (again.state.computed, again.state.differing) == (0, part.state.differing)


def test_what_an_earlier_completion_measured_stays_in_the_table(
    single: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    panel = measures_of("panel")
    kept = without(single, tmp_path / "kept", lambda table: table["measure"].isin(panel) & table["is_final"])
    first = run_study(small_plan(tasks), tmp_path / "part", engine="here", complete=kept)
    known = load_results(first.out).query("measure in @panel")
    combine_results([kept, first.out], tmp_path / "whole")
    run_study(small_plan(tasks, seeds=[0, 1]), first.out, engine="here", complete=tmp_path / "whole")
    table = load_results(first.out)
    assert set(table["seed"]) == {0, 1}
    assert len(table[(table["seed"] == 0) & table["measure"].isin(panel) & table["is_final"]]) == len(known) > 0


def test_lost_vectors_are_made_again_for_a_completion(single: CompletedStudy, tasks: Path, tmp_path: Path) -> None:
    kept = write_study(tmp_path / "kept", load_results(single.out).query("tuned_on == ''"))
    first = run_study(small_plan(tasks), tmp_path / "part", engine="here", complete=kept)
    for file in (first.out / "store" / "spaces").glob("*/*.safetensors"):
        file.unlink()
    lost = [key for key in begun(first.out) if first.state.graph.cells[key].kind == "panel"]
    for key in lost:
        (first.out / "cells" / key[:2] / f"{key}.json").unlink()
    totals: set[int] = set()
    again = run_study(
        small_plan(tasks), first.out, engine="here", complete=kept, watch=lambda state: totals.add(state.total)
    )
    assert not again.state.failed
    assert totals == {first.state.total}
    assert len(again.state.done) == first.state.total


# ---- refused ----


def test_results_of_another_study_are_refused(single: CompletedStudy, tasks: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"single has results of the study 'small', and the plan is of 'other'"):
        run_study(small_plan(tasks, name="other"), tmp_path / "part", complete=single.out)
    assert not (tmp_path / "part" / "cells").exists()


def changed(study: CompletedStudy, folder: Path, change: Callable[[pd.DataFrame, dict[str, Any]], Any]) -> Path:
    """The results of a study with a change in their table or manifest, in a folder of their own."""
    table, manifest = load_results(study.out), read_manifest(study.out)
    change(table, manifest)
    return write_study(folder, table, manifest)


def set_weights(table: pd.DataFrame, manifest: dict[str, Any]) -> None:
    table["weights"] = "other"


def set_hash(table: pd.DataFrame, manifest: dict[str, Any]) -> None:
    manifest["tasks"] = {
        f"elsewhere/{Path(name).name}": facts | {"hash": "o"} for name, facts in manifest["tasks"].items()
    }


def remove_name(table: pd.DataFrame, manifest: dict[str, Any]) -> None:
    manifest.pop("study")
    table["study"] = "other"


def remove_pool(table: pd.DataFrame, manifest: dict[str, Any]) -> None:
    table["pool"] = ""


def set_tau(table: pd.DataFrame, manifest: dict[str, Any]) -> None:
    manifest["plan"]["geometry"]["tau"] = 0.5


def set_rate(table: pd.DataFrame, manifest: dict[str, Any]) -> None:
    manifest["settings"] = {name: one | {"learning_rate": 0.5} for name, one in manifest["settings"].items()}


def set_rate_elsewhere(table: pd.DataFrame, manifest: dict[str, Any]) -> None:
    (settings,) = manifest["settings"].values()
    manifest["settings"] = {"elsewhere/bert-tiny on elsewhere/words": settings | {"learning_rate": 0.5}}


def set_template(table: pd.DataFrame, manifest: dict[str, Any]) -> None:
    manifest["plan"]["template"] = "About {text}"
    manifest["settings"] = {}


def set_intervals(table: pd.DataFrame, manifest: dict[str, Any]) -> None:
    manifest["plan"]["uncertainty"]["layers"] = "all"


def set_measures(table: pd.DataFrame, manifest: dict[str, Any]) -> None:
    manifest["plan"]["measures"] = ["clusters", "distances"]


def spoil_tasks(table: pd.DataFrame, manifest: dict[str, Any]) -> None:
    manifest["tasks"] = []


REFUSED = {
    set_hash: "the task .*words has different examples or labels than in .*kept; expected the same data: restore its",
    set_weights: "the encoder bert-tiny has different weights than in .*kept; expected the same encoder: restore its",
    remove_name: "kept has results of the study 'other', and the plan is of 'small'; expected the plan of the same",
    remove_pool: "kept has a table of version 0.1, which does not say how subwords were pooled; expected",
    set_tau: "kept has results with geometry.tau = 0.5, and the plan has 1e-06; expected the settings of these results",
    set_rate: "kept has results with learning_rate of bert-tiny on .*words = 0.5, and the plan has 0.001; expected the",
    set_rate_elsewhere: "kept has results with learning_rate of bert-tiny on .*words = 0.5, and the plan has 0.001; e",
    set_template: "kept has results with template = About {text}, and the plan has None; expected the settings of",
    set_intervals: "kept has results with uncertainty.layers = all, and the plan has last; expected the settings of th",
    set_measures: "kept has clusters without uncertainty, which are measured together; expected the measures of these",
    spoil_tasks: "manifest.json: tasks: .*; expected the manifest that a study writes, or none",
}


@pytest.mark.parametrize(("change", "message"), REFUSED.items(), ids=lambda one: getattr(one, "__name__", ""))
def test_results_of_different_data_weights_or_settings_are_refused_before_any_work(
    single: CompletedStudy, tasks: Path, tmp_path: Path, change: Any, message: str
) -> None:
    kept = changed(single, tmp_path / "kept", change)
    with pytest.raises(InputError, match=message) as error:
        run_study(small_plan(tasks), tmp_path / "part", complete=kept)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "part" / "cells").exists()


@pytest.mark.parametrize("given", [".", "results.parquet"])
def test_results_are_never_completed_in_their_own_folder(
    single: CompletedStudy, tasks: Path, tmp_path: Path, given: str
) -> None:
    kept = changed(single, tmp_path / "kept", lambda table, manifest: None)
    before = load_results(kept)
    with pytest.raises(InputError, match="is the folder that the study writes to; expected another --out than --comp"):
        run_study(small_plan(tasks, seeds=[0, 1]), kept, complete=kept / given)
    pd.testing.assert_frame_equal(load_results(kept), before)


def test_two_encoders_of_one_name_are_told_apart(tasks: Path, tmp_path: Path) -> None:
    encoders = [str(save_family("bert-cased", tmp_path / folder / "bert")) for folder in "ab"]  # with random weights
    plan = small_plan(tasks, encoders=encoders, tuning=None, measures=["clusters"], layers="last")
    kept = run_study(plan, tmp_path / "kept", engine="here")
    assert forecast(opened(plan, kept.out), tmp_path / "part", kept.out) == []


# ---- what is expected ----


def test_a_training_that_stopped_early_lacks_nothing(tasks: Path, tmp_path: Path) -> None:
    tuning = {"epochs": 4, "learning_rate": 1.0, "batch_size": 12, "warmup": 0, "early_stopping": 1}
    plan = small_plan(tasks, tuning=tuning, measures=["clusters", "similarity"], compare={"train_test": False})
    kept = run_study(plan, tmp_path / "kept", engine="here")
    steps = load_results(kept.out).step
    assert steps.max() < max(planned_steps(*settings_of(plan, tmp_path)))
    assert forecast(opened(plan, tmp_path), tmp_path / "part", kept.out) == []


def settings_of(plan: Any, folder: Path) -> tuple[Any, Any]:
    """The settings of the only fine-tuning of a plan, and its task."""
    resolved = opened(plan, folder)
    ((key, settings),) = resolved.settings.items()
    return settings, resolved.tasks[key[1]]


def test_each_pair_of_seeds_is_a_comparison_of_its_own(tasks: Path, tmp_path: Path) -> None:
    plan = small_plan(tasks, seeds=[0, 1, 2], measures=["clusters", "similarity"])
    graph = foresee(opened(plan, tmp_path), lambda key: None)
    one = next(p for p in graph.placements if p.comparison == "seed" and (p.position.seed, p.other) == (2, "1"))
    kinds_of = {key: cell.kind for key, cell in graph.cells.items()}
    places = {place_of(kinds_of[placement.key], placement) for placement in graph.placements if placement != one}
    lacking = Lacking(frozenset(places), {}).cells(graph)
    assert one.key in lacking
    assert [kinds_of[key] for key in lacking].count("comparison") == 1


def test_the_number_of_cells_is_known_from_the_start(single: CompletedStudy, tasks: Path, tmp_path: Path) -> None:
    plan = small_plan(tasks, seeds=[0, 1])
    totals = []
    part = run_study(
        plan, tmp_path / "part", engine="here", complete=single.out, watch=lambda state: totals.append(state.total)
    )
    expected = sum(expected_kinds(single, plan, single.out).values())
    assert set(totals) == {expected}
    assert (part.state.total, part.state.whole) == (
        expected,
        len(foresee(opened(plan, tmp_path), lambda key: None).cells),
    )


def test_cells_that_a_complete_training_shares_with_a_lacking_one_count_once(
    done: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    kept = without(done, tmp_path / "kept", lambda table: table["tuned_on"] == "prepositions")
    part = run_study(full_plan(tasks), tmp_path / "part", engine="here", complete=kept)
    assert kinds(part)["tune"] == 1
    assert (part.state.total, part.state.blocked, part.state.coming) == (len(part.state.done), 0, {})


def test_a_part_that_has_not_run_does_not_make_a_study_complete(
    single: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    plan = small_plan(tasks, seeds=[0, 1])
    whole = len(foresee(opened(plan, tmp_path), lambda key: None).cells)
    part = run_study(plan, tmp_path / "part", engine="here", complete=single.out, finished_only=True)
    combine_results([single.out, part.out], tmp_path / "whole")
    assert read_manifest(tmp_path / "whole")["cells"] == {"done": single.state.total, "total": whole, "computed": 0}


# ---- how many cells use the GPU ----


class Recorder:
    """Takes up to four cells, and runs the first of them once the runner has started all that it may."""

    name, workers = "recorder", 4

    def __init__(self) -> None:
        self.most_gpu_cells = self.most_cells = self.asked = 0
        self.running: list[tuple[Future[Outcome], Cell, str]] = []

    def submit(self, cell: Cell, out: str) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        self.running.append((future, cell, out))
        self.most_cells = max(self.most_cells, len(self.running))
        self.most_gpu_cells = max(self.most_gpu_cells, sum(cell.gpu for _, cell, _ in self.running))
        return future

    def has_room(self, running: int, expected: int, reserved: int) -> bool:
        self.asked += 1
        return running < self.workers

    def watch(self, state: StudyState) -> None:
        if self.running and len(state.running) == len(self.running):
            future, cell, out = self.running.pop(0)
            future.set_result(attempt(cell, out, 1))

    def close(self, *, now: bool = False) -> None:
        pass


@pytest.mark.parametrize("limit", [1, 2, None])
def test_no_more_cells_use_the_gpu_than_the_limit_says(tasks: Path, tmp_path: Path, limit: int | None) -> None:
    measures = ["classifier", "clusters", "panel"]
    plan = small_plan(tasks, measures=measures, classifier={"sizes": [[4]], "seeds": 1, "layers": [0, 2]})
    engine = Recorder()
    state = work_through(opened(plan, tmp_path), tmp_path, engine, engine.watch, Limits(gpu_cells=lambda: limit))
    assert (len(state.done), state.failed) == (state.total, {})
    assert engine.most_cells > 2
    assert engine.most_gpu_cells == limit if limit else engine.most_gpu_cells > 2


def test_the_gpu_has_a_limit_by_default_and_the_cpu_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limit_gpu_cells("processes", "cpu", None) is None
    assert limit_gpu_cells("processes", "cpu", 3) is None
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert limit_gpu_cells("processes", "auto", None) == GPU_CELLS
    assert limit_gpu_cells("processes", "auto", 2) == 2
    assert limit_gpu_cells("dask", "auto", None) is None


@pytest.mark.parametrize(
    ("engine", "requested", "message"),
    [
        ("processes", 0, "0 GPU cells requested; expected at least 1"),
        ("dask", 2, "GPU cells given for a Dask cluster; expected none: its workers say what they run"),
    ],
)
def test_a_number_of_gpu_cells_that_no_engine_can_run_is_refused(engine: str, requested: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_gpu_cells(engine, requested)


def test_the_engine_is_not_asked_for_room_for_cells_that_wait_for_the_gpu(tasks: Path, tmp_path: Path) -> None:
    probes = {"sizes": [[4]], "seeds": 1, "layers": [0, 2], "at": "all"}
    engine = Recorder()
    plan = small_plan(tasks, measures=["classifier", "clusters"], classifier=probes)
    state = work_through(opened(plan, tmp_path), tmp_path, engine, engine.watch, Limits(gpu_cells=lambda: 1))
    assert engine.asked <= 2 * state.total


def test_a_finished_study_for_a_gpu_is_tabulated_without_one(
    single: CompletedStudy, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_device(name: str) -> None:
        raise AssertionError(f"no cell is to run, but the device {name} was looked for")

    resolved = opened(small_plan(tasks), single.out)
    monkeypatch.setattr("closerlook.encoders.loading.choose_device", no_device)
    done = execute_study(resolved, single.out, workers=2, finished_only=True)
    assert len(done.state.done) == single.state.total


# ---- cells without results ----


def test_no_cell_shuffles_labels_if_no_shuffles_are_requested(tasks: Path, tmp_path: Path) -> None:
    def count(**nulls: int) -> int:
        plan = small_plan(tasks, tuning=None, nulls=nulls)
        return {part.kind: part.cells for part in forecast(opened(plan, tmp_path), tmp_path)}.get("nulls", 0)

    assert (count(shuffles=0, cluster_shuffles=0), count(shuffles=1, cluster_shuffles=0)) == (0, 1)

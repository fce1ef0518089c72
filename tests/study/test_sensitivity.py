"""A study that tries other settings: its cells, and that its numbers are those of a study with that setting."""

from pathlib import Path
from typing import Any

import pytest

from closerlook.geometry import cluster
from closerlook.study.forecasting import foresee
from closerlook.study.kinds.sensitivity import measure_settings
from closerlook.study.kinds.sensitivity_comparison import similarity_rows
from closerlook.study.plan import PlanError, make_plan
from closerlook.study.resolving import resolve_plan
from closerlook.study.results import load_results
from closerlook.study.states import Graph
from closerlook.study.study import CompletedStudy
from tests.study.small import small_plan
from tests.study.test_panel_kinds import blobs

VALUES: dict[str, Any] = {"encoders": ["bert-tiny"], "tasks": ["toy-pos"]}


def graph_of(folder: Path, store: Path, **changes: Any) -> Graph:
    return foresee(resolve_plan(small_plan(folder, **changes), store), lambda key: None)


@pytest.mark.parametrize(
    ("entry", "min_points"),
    [(True, [1, 2, 6, 11]), ([1, 6], [1, 6]), ({"min_points": 3, "tau": 1e-3, "pools": "first"}, [3])],
)
def test_a_plan_requests_it_as_a_whole_by_a_list_or_by_settings(entry: Any, min_points: list[int]) -> None:
    plan = make_plan(VALUES | {"sensitivity": entry})
    assert plan.sensitivity is not None
    assert plan.sensitivity.min_points == min_points
    assert make_plan(plan.to_dict()).sensitivity == plan.sensitivity


@pytest.mark.parametrize("entry", [False, None])
def test_it_is_off_by_default(entry: Any) -> None:
    assert make_plan(VALUES).sensitivity is make_plan(VALUES | {"sensitivity": entry}).sensitivity is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ([0], r"sensitivity.min_points.0: expected greater than or equal to 1 \(got 0\)"),
        ({"tau": [2]}, r"sensitivity.tau.0: expected less than 1 \(got 2\)"),
        ({"pools": ["middle"]}, r"expected poolings such as first, last, cls or mean \(got 'middle'\)"),
        ({"taus": [1e-3]}, "sensitivity.taus is unknown; did you mean tau?"),
    ],
)
def test_wrong_values_are_refused(entry: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        make_plan(VALUES | {"sensitivity": entry})


def test_it_needs_the_measures_that_it_is_about() -> None:
    with pytest.raises(PlanError, match="sensitivity is about clusters, distances and similarity, but measures has"):
        make_plan(VALUES | {"sensitivity": True, "measures": ["classifier"]})


def test_other_cells_keep_their_keys(tasks: Path, tmp_path: Path) -> None:
    without, with_it = (graph_of(tasks, tmp_path, sensitivity=entry) for entry in (False, True))
    assert set(without.cells) < set(with_it.cells)
    added = [with_it.cells[key] for key in set(with_it.cells) - set(without.cells)]
    # train and test before and after; first and last instead of mean before
    assert sum(cell.kind == "sensitivity" for cell in added) == 4 + 4
    # train with test before, after, and with two other poolings; before with after
    assert sum(cell.kind == "sensitivity_comparison" for cell in added) == 2 + 2 + 1
    assert sum(cell.kind == "extract" for cell in added) == 2


def test_poolings_that_a_task_does_not_have_are_not_tried(tasks: Path, tmp_path: Path) -> None:
    both = [str(tasks / "words"), str(tasks / "questions")]
    graph = graph_of(tasks, tmp_path, tasks=both, sensitivity={"pools": ["cls", "first", "mean"]})
    found = {
        (placement.position.task, placement.position.pool)
        for placement in graph.placements
        if graph.cells[placement.key].kind == "sensitivity"
    }
    assert found == {("words", "mean"), ("words", "first"), ("questions", "cls"), ("questions", "mean")}


def test_the_values_of_the_study_itself_are_among_those_tried(done: CompletedStudy) -> None:
    table = load_results(done.out)
    table = table[table.layer == 2]
    own = table[(table.pool == "mean") & (table.text == "1")].set_index("cell")
    for comparison in ("train_test", "original"):
        tried = own[own.measure == f"similarity_at_min_points_{comparison}"].sort_values(["task", "seed", "step"])
        plain = table[table.measure == f"similarity_{comparison}"]
        merged = tried.merge(plain, on=["encoder", "task", "tuned_on", "seed", "step"])
        assert len(merged) == len(tried) > 0
        assert merged.value_x.tolist() == pytest.approx(merged.value_y.tolist(), abs=1e-6)
        assert merged.n_x.tolist() == merged.n_y.tolist()


def test_every_state_has_clusters_for_every_tolerance(done: CompletedStudy) -> None:
    table = load_results(done.out)
    found = table[(table.measure == "clusters_at_tau") & (table.pool == "mean")]
    by_state = found.groupby(["task", "tuned_on", "step"]).text.agg(set)
    assert len(by_state) == 2 + 2 * 2  # two tasks: pretrained, and both ends of the fine-tuning
    assert all(set(texts) == {"1e-08", "1e-06", "0.0001", "0.01"} for texts in by_state)
    plain = table[(table.measure == "n_clusters") & (table.split == "train") & (table.layer == 2)]
    merged = found[found.text == "1e-06"].merge(plain, on=["task", "tuned_on", "step"])
    assert merged.value_x.tolist() == merged.value_y.tolist()


def test_clusters_for_a_tolerance_and_spaces_with_one_label() -> None:
    space = blobs()
    settings: dict[str, Any] = {"tau": 1e-6, "taus": [1e-6, 0.5], "min_points": [1], "statistic": "mean"}
    rows, payload = measure_settings(space, **settings)
    assert [(row["text"], row["value"]) for row in rows] == [
        (f"{tau:g}", cluster(space.X, space.label_names, tau=tau).n_clusters) for tau in (1e-6, 0.5)
    ]
    alone = {"labels": ["a"], "by_min_points": {}}
    assert similarity_rows(payload, alone) == []

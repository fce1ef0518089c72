"""A plan's cells: addresses that depend on content alone, each piece of work once, and all that was asked for."""

import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.files import read_result
from closerlook.study.forecasting import _expected_result, foresee, foresee_run
from closerlook.study.graph import add_run, expand
from closerlook.study.kinds import KINDS, estimate_cell
from closerlook.study.resolving import resolve_plan
from closerlook.study.states import Graph
from closerlook.study.study import CompletedStudy, forecast
from closerlook.tuning.steps import planned_steps
from tests.study.small import full_plan, opened, small_plan, write_tasks


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("none") / "store"


def cells(opened: ResolvedPlan) -> dict[str, Cell]:
    return foresee(opened, lambda key: None).cells


def kinds(graph: Graph | dict[str, Cell]) -> Counter[str]:
    found = graph.cells if isinstance(graph, Graph) else graph
    return Counter(cell.kind for cell in found.values())


# ---- keys ----


def test_a_key_is_a_hash_of_the_content_whatever_names_and_folders_are_used(tasks: Path, tmp_path: Path) -> None:
    elsewhere = write_tasks(tmp_path / "moved")
    first = resolve_plan(small_plan(tasks), tmp_path / "a")
    second = resolve_plan(small_plan(elsewhere, name="other", device="cpu", threads=2), tmp_path / "b")
    assert list(cells(first)) == list(cells(second))


def test_a_cell_survives_the_way_to_another_process(tasks: Path, store: Path) -> None:
    for cell in cells(resolve_plan(small_plan(tasks), store)).values():
        again = pickle.loads(pickle.dumps(cell))  # noqa: S301 - our own bytes
        assert vars(again) == vars(cell)
        assert again.key == cell.key


def test_other_content_of_a_task_gives_other_keys_everywhere(tasks: Path, store: Path, tmp_path: Path) -> None:
    other = write_tasks(tmp_path / "other", texts=23)
    first, second = (cells(resolve_plan(small_plan(folder), store)) for folder in (tasks, other))
    tested_alone = set(first) & set(second)
    assert {first[key].title for key in tested_alone} <= {
        "clusters and distances of bert-tiny · layer 0 · words/test",
        "clusters and distances of bert-tiny · layer 2 · words/test",
    }


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        (
            {"geometry": {"tau": 1e-5, "permutations": 99, "resamples": 50}},
            {"geometry", "comparison", "centroids", "panel", "nulls", "split_halves", "explorer"},
        ),
        ({"geometry": {"permutations": 9, "resamples": 50}}, {"comparison"}),
        ({"geometry": {"attempts": "both", "permutations": 99, "resamples": 50}}, {"released_clusters"}),
        ({"classifier": {"sizes": [[8]], "seeds": 2, "max_rounds": 3}}, {"classifier"}),
        (
            {"pool": "first"},
            {kind.name for kind in KINDS}
            - {
                "checkpoint",
                "control",
                "description_length",
                "released_clusters",
                "sensitivity",
                "sensitivity_comparison",
            },
        ),
        ({"compare": {"train_test": False}}, set()),
        ({"panel": {"neighbours": 3}}, {"point_similarity"}),
        ({"nulls": {"shuffles": 1, "cluster_shuffles": 1, "points": 30}}, {"nulls"}),
        ({"halves": {"folds": 3}}, {"split_halves"}),
        ({"explorer": {"points": 50}}, {"explorer"}),
        ({"name": "other"}, set()),
    ],
)
def test_changing_a_setting_changes_only_the_cells_below_it(
    tasks: Path, store: Path, changes: dict[str, Any], changed: set[str]
) -> None:
    before, after = (cells(resolve_plan(plan, store)) for plan in (small_plan(tasks), small_plan(tasks, **changes)))
    new = {after[key].kind for key in set(after) - set(before)}
    kept = {after[key].kind for key in set(after) & set(before)}
    assert new == changed
    assert not kept & changed


def test_other_tuning_changes_the_fine_tuning_and_what_follows_but_not_the_start(tasks: Path, store: Path) -> None:
    tuned = {"epochs": 3, "learning_rate": 1e-3, "batch_size": 12, "warmup": 0}
    before, after = (cells(resolve_plan(plan, store)) for plan in (small_plan(tasks), small_plan(tasks, tuning=tuned)))
    kept = {before[key].title for key in set(before) & set(after)}
    assert all("tuned on" not in title or "step 0" in title for title in kept)
    assert "extract bert-tiny" in kept
    assert "train classifier probes on bert-tiny · layer 2 · words/test" in kept


def test_a_seed_more_adds_cells_and_changes_none(tasks: Path, store: Path) -> None:
    one, two = (cells(resolve_plan(small_plan(tasks, seeds=seeds), store)) for seeds in ([0], [0, 1]))
    assert set(one) < set(two)
    assert kinds(two)["tune"] == 2


# ---- what is there ----


def test_the_cells_of_a_small_plan_are_these(tasks: Path, store: Path) -> None:
    graph = foresee(resolve_plan(small_plan(tasks), store), lambda key: None)
    assert kinds(graph) == {
        "extract": 2,  # as it came, and of random weights
        "tune": 1,
        # two layers at the start and the end, on train and test; the last layer in between, on train; a random one
        "geometry": 2 * 2 + 2 * 2 + 1 + 1,
        "classifier": 2,
        # train and test at both layers of both ends; to the start: itself and the end, and one in between; both ends
        # to random weights
        "comparison": 2 * 2 + 2 * 2 + 1 + 2,
        "centroids": 2,
        # three layers would be described, but two are looked at, at both ends
        "panel": 4,
        "point_similarity": 2 + 1,  # each layer's end to its start, and the start to random weights
        "nulls": 2,
        "split_halves": 2,
        "explorer": 1,  # all snapshots together
    }


def test_points_are_compared_without_clusters(tasks: Path, store: Path) -> None:
    graph = foresee(resolve_plan(small_plan(tasks, measures=["panel"]), store), lambda key: None)
    assert kinds(graph) == {"extract": 1, "tune": 1, "panel": 4, "point_similarity": 2}


def test_step_zero_is_the_encoder_as_it_came_and_costs_nothing_more(tasks: Path, store: Path) -> None:
    opened = resolve_plan(small_plan(tasks), store)
    graph = foresee(opened, lambda key: None)
    start = {use.key for use in graph.placements if use.position.tuned_on == "words" and use.position.step == 0}
    frozen = {use.key for use in graph.placements if use.position.tuned_on == ""}
    measured = {key for key in start if graph.cells[key].kind in {"geometry", "classifier"}}
    assert measured
    assert measured <= frozen
    alone = foresee_run(opened, *next(iter(expand(opened, lambda key: None).waiting.items())))
    assert measured <= set(alone.cells)


def test_every_input_of_a_cell_is_a_cell(tasks: Path, store: Path) -> None:
    words, prepositions = str(tasks / "words"), str(tasks / "prepositions")
    graph = foresee(resolve_plan(small_plan(tasks, tasks=[words, prepositions], cross="all"), store), lambda key: None)
    for cell in graph.cells.values():
        assert set(cell.inputs) <= set(graph.cells)
        assert cell.key not in cell.inputs
    assert {use.key for use in graph.placements} <= set(graph.cells)


def test_what_was_foreseen_is_what_came(done: CompletedStudy, tasks: Path) -> None:
    opened = resolve_plan(full_plan(tasks), done.out / "store")
    imagined, real = foresee(opened, lambda key: None), expand(opened, lambda key: read_result(done.out, key))
    assert not real.waiting
    assert [cell.title for cell in imagined.cells.values()] == [cell.title for cell in real.cells.values()]
    places = [[replace(use.position, weights="", epoch=0.0) for use in graph.placements] for graph in (imagined, real)]
    assert places[0] == places[1]
    assert len(real.cells) == done.state.total == len(done.state.done)


def test_both_counts_of_clusters_add_a_cell_for_each_train_space_and_change_none(tasks: Path, store: Path) -> None:
    words, prepositions = str(tasks / "words"), str(tasks / "prepositions")
    both = full_plan(tasks)
    plan = small_plan(tasks, tasks=[words, prepositions], cross=both.cross, sensitivity=True)
    one, two = (foresee(resolve_plan(each, store), lambda key: None) for each in (plan, both))
    added = set(two.cells) - set(one.cells)
    assert set(one.cells) < set(two.cells)
    assert {two.cells[key].kind for key in added} == {"released_clusters"}
    exact, limited = (
        {use.position for use in two.placements if two.cells[use.key].kind == kind and use.position.split == "train"}
        for kind in ("geometry", "released_clusters")
    )
    assert exact == limited


def test_fewer_measures_need_fewer_cells(tasks: Path, store: Path) -> None:
    def asked(*measures: str, **rest: Any) -> Counter[str]:
        return kinds(cells(resolve_plan(small_plan(tasks, measures=list(measures), **rest), store)))

    assert set(asked("classifier")) == {"extract", "tune", "classifier"}
    assert set(asked("clusters")) == {"extract", "tune", "geometry"}
    assert set(asked("centroids")) == {"extract", "tune", "geometry", "centroids"}
    assert set(asked("similarity", compare={"original": False})) == {"extract", "tune", "geometry", "comparison"}
    assert set(asked("similarity", compare={"original": False, "train_test": False})) == {"extract", "tune", "geometry"}
    assert asked("classifier", classifier={"at": "all", "sizes": [[8]], "seeds": 1})["classifier"] == 3


def test_without_tuning_only_the_encoder_as_it_came_is_looked_at(tasks: Path, store: Path) -> None:
    found = cells(resolve_plan(small_plan(tasks, tuning=None), store))
    assert kinds(found) == {
        **{"extract": 2, "geometry": 4 + 1, "classifier": 1, "comparison": 2 + 1},
        **{"panel": 2, "point_similarity": 1, "nulls": 1, "split_halves": 1, "explorer": 1},
    }


def test_the_explorer_shows_the_first_seed_and_the_task_of_the_fine_tuning(tasks: Path, store: Path) -> None:
    words, prepositions = str(tasks / "words"), str(tasks / "prepositions")
    plan = small_plan(tasks, tasks=[words, prepositions], cross="all", seeds=[3, 1])
    graph = foresee(resolve_plan(plan, store), lambda key: None)
    shown = [use.position for use in graph.placements if graph.cells[use.key].kind == "explorer"]
    assert [(at.tuned_on, at.task, at.seed) for at in shown] == [
        ("words", "words", 3),
        ("prepositions", "prepositions", 3),
    ]


@pytest.mark.parametrize(
    ("layers", "steps", "rows"),
    [("last", 3, [2]), (0, 2, [0]), ("0,2", 3, [2]), (1, 0, None)],
)
def test_the_explorer_has_the_layers_that_all_its_snapshots_have(
    tasks: Path, store: Path, layers: Any, steps: int, rows: list[int] | None
) -> None:
    found = cells(resolve_plan(small_plan(tasks, measures=["explorer"], explorer={"layers": layers}), store))
    contents = [cell.content for cell in found.values() if cell.kind == "explorer"]
    assert [(len(content["steps"]), content["layers"]) for content in contents] == ([(steps, rows)] if rows else [])


def test_cross_pairs_are_probed_beside_the_tuned_task(tasks: Path, store: Path) -> None:
    words, prepositions = str(tasks / "words"), str(tasks / "prepositions")
    pairs = [{"tuned": words, "probed": prepositions}]
    graph = foresee(resolve_plan(small_plan(tasks, tasks=[words, prepositions], cross=pairs), store), lambda key: None)
    seen = {(use.position.tuned_on, use.position.task) for use in graph.placements if use.position.tuned_on}
    assert seen == {("words", "words"), ("words", "prepositions"), ("prepositions", "prepositions")}
    every = foresee(resolve_plan(small_plan(tasks, tasks=[words, prepositions], cross="all"), store), lambda key: None)
    assert ("prepositions", "words") in {(use.position.tuned_on, use.position.task) for use in every.placements}


def test_encoders_are_compared_two_by_two_at_their_last_layers(tasks: Path, store: Path) -> None:
    plan = small_plan(tasks, encoders=["bert-tiny", "random:bert-tiny"], compare={"encoders": True}, tuning=None)
    graph = foresee(resolve_plan(plan, store), lambda key: None)
    uses = [use for use in graph.placements if use.comparison == "encoder"]
    assert [graph.cells[use.key].kind for use in uses] == ["comparison", "point_similarity"]
    for use in uses:
        assert (use.position.encoder, use.other, use.position.layer) == ("bert-tiny", "random:bert-tiny", 2)
    titles = {graph.cells[key].title for key in graph.cells[uses[0].key].inputs}
    assert titles == {
        "clusters and distances of bert-tiny · layer 2 · words/train",
        "clusters and distances of random:bert-tiny · layer 2 · words/train",
    }
    assert not [use for use in graph.placements if use.comparison == "random"]


def test_ends_of_seeds_are_compared_two_by_two(tasks: Path, store: Path) -> None:
    graph = foresee(resolve_plan(small_plan(tasks, seeds=[3, 0, 7]), store), lambda key: None)
    uses = [use for use in graph.placements if use.comparison == "seed" and graph.cells[use.key].kind == "comparison"]
    assert sorted((use.position.seed, use.other) for use in uses) == [(0, "3"), (7, "0"), (7, "3")]
    assert {(use.position.is_final, use.position.layer, use.position.split) for use in uses} == {(True, 2, "train")}
    for use in uses:
        inputs = [graph.cells[key].title for key in graph.cells[use.key].inputs]
        assert {f"seed {use.position.seed} ·" in title for title in inputs} == {True, False}
    alone = foresee(resolve_plan(small_plan(tasks, seeds=[0, 1], compare={"seeds": False}), store), lambda key: None)
    assert not [use for use in alone.placements if use.comparison == "seed"]


def test_the_order_in_which_seeds_finish_changes_no_cell(tasks: Path, store: Path) -> None:
    opened = resolve_plan(small_plan(tasks, seeds=[0, 1]), store)
    found = []
    for order in (1, -1):
        graph = expand(opened, lambda key: None)
        for key, run in list(graph.waiting.items())[::order]:
            add_run(opened, graph, key, run, _expected_result(opened, key, run))
        found.append({(use.key, use.position, use.comparison, use.other) for use in graph.placements})
    assert found[0] == found[1]


def test_both_ends_are_compared_with_random_weights_that_have_no_rows_of_their_own(tasks: Path, store: Path) -> None:
    graph = foresee(resolve_plan(small_plan(tasks), store), lambda key: None)
    uses = [use for use in graph.placements if use.comparison == "random"]
    assert {(graph.cells[use.key].kind, use.position.tuned_on) for use in uses} == {
        ("comparison", ""),
        ("comparison", "words"),
        ("point_similarity", ""),
    }
    assert {use.other for use in uses} == {"random:bert-tiny"}
    assert {use.position.encoder for use in graph.placements} == {"bert-tiny"}
    without = foresee(resolve_plan(small_plan(tasks, nulls={"random_encoder": False}), store), lambda key: None)
    assert kinds(without)["extract"] == 1


def test_the_wider_panel_is_of_own_tasks_at_the_ends(tasks: Path, store: Path) -> None:
    words, prepositions = str(tasks / "words"), str(tasks / "prepositions")
    graph = foresee(resolve_plan(small_plan(tasks, tasks=[words, prepositions], cross="all"), store), lambda key: None)
    for kind in ("panel", "nulls", "split_halves", "point_similarity"):
        places = [use.position for use in graph.placements if graph.cells[use.key].kind == kind]
        assert {place.tuned_on in {"", place.task} for place in places} == {True}
        assert {place.split for place in places} == {"train"}
        assert all(place.is_final or place.step == 0 for place in places)


def test_files_of_the_same_name_are_told_apart_by_their_paths(tasks: Path, store: Path, tmp_path: Path) -> None:
    other = write_tasks(tmp_path / "other", texts=20)
    both = [str(tasks / "words"), str(other / "words")]
    graph = expand(resolve_plan(small_plan(tasks, tasks=both), store), lambda key: None)
    assert {use.position.task for use in graph.placements} == set(both)


# ---- steps and estimates ----


@pytest.mark.parametrize(
    ("tuning", "steps"),
    [
        ({"epochs": 2, "batch_size": 12}, [0, 1, 2, 4]),
        ({"epochs": 2, "batch_size": 12, "trainer_arguments": {"gradient_accumulation_steps": 2}}, [0, 1, 2]),
        ({"epochs": 2, "batch_size": 11, "early_stopping": 1}, [0, 1, 2, 4]),
        ({"epochs": 2, "batch_size": 11}, [0, 1, 2, 4, 6]),
    ],
)
def test_steps_are_counted_as_the_training_counts_them(
    tasks: Path, store: Path, tuning: dict[str, Any], steps: list[int]
) -> None:
    plan = small_plan(tasks, tuning=tuning, snapshots="log")
    opened = resolve_plan(plan, store)
    (settings,), (task,) = opened.settings.values(), opened.tasks.values()
    assert planned_steps(settings, task) == steps


def test_every_kind_of_cell_has_an_estimate(tasks: Path, store: Path) -> None:
    opened = resolve_plan(small_plan(tasks), store)
    for cell in cells(opened).values():
        found = estimate_cell(opened, cell)
        assert found.seconds > 0
        assert found.bytes > 1e8
        assert found.disk > 0


def test_a_forecast_counts_what_is_done(done: CompletedStudy, tasks: Path) -> None:
    opened = resolve_plan(full_plan(tasks), done.out / "store")
    fresh, after = forecast(opened, done.out / "nowhere"), forecast(opened, done.out)
    assert sum(kind.cells for kind in fresh) == sum(kind.cells for kind in after) == done.state.total
    assert all(kind.done == 0 and kind.seconds > 0 for kind in fresh)
    assert all(kind.done == kind.cells and kind.seconds == 0 and kind.disk == 0 for kind in after)


def test_saving_states_changes_what_a_fine_tuning_does_but_not_its_key(tasks: Path, tmp_path: Path) -> None:
    study = opened(small_plan(tasks), tmp_path)
    cells = [
        next(cell for cell in expand(chosen, lambda key: None).cells.values() if cell.kind == "tune")
        for chosen in (study, replace(study, resume=False))
    ]
    assert [cell.resources["resume"] for cell in cells] == [True, False]
    assert cells[0].key == cells[1].key

"""`where` in a plan gives some fine-tunings other seeds or layers, and leaves all others as they are."""

import logging
from pathlib import Path
from typing import Any

import pytest

from closerlook.errors import InputError
from closerlook.study.explored import read_explorers
from closerlook.study.plan import make_plan, read_plan
from closerlook.study.resolving import resolve_plan
from closerlook.study.results import load_results
from closerlook.study.study import run_study
from tests.study.small import small_plan, small_values

PLAN: dict[str, Any] = {"encoders": ["a", "b"], "tasks": ["x", "y"], "seeds": [0, 1, 2]}


def test_seeds_and_layers_are_replaced_for_the_named_encoders_and_tasks_only() -> None:
    plan = make_plan(
        PLAN
        | {
            "where": [
                {"encoders": "b", "seeds": 0},
                {"encoders": ["b"], "tasks": "y", "snapshot_layers": "all"},
                {"tasks": "y", "seeds": [5, 6]},
            ]
        }
    )
    assert plan.seeds_for("a", "x") == [0, 1, 2]
    assert plan.seeds_for("b", "x") == [0]
    assert plan.seeds_for("a", "y") == plan.seeds_for("b", "y") == [5, 6]  # of two entries, the later counts
    layers = {(encoder, task): plan.snapshot_layers_for(encoder, task) for encoder in "ab" for task in "xy"}
    assert layers == {("a", "x"): "last", ("a", "y"): "last", ("b", "x"): "last", ("b", "y"): "all"}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"seeds": [0]}, "where.0: expected encoders, tasks or both"),
        ({"encoders": "a"}, "where.0: expected seeds, snapshot_layers or both"),
        ({"encoders": "c", "seeds": [0]}, "where names encoder 'c', which is not among the encoders"),
        ({"tasks": "z", "seeds": [0]}, "where names task 'z', which is not among the tasks"),
        ({"encoders": "a", "seeds": []}, "where.0.seeds is empty"),
        ({"encoders": "a", "seeds": [1, 1]}, "a seed is listed twice"),
        ({"encoders": "a", "seed": 1}, "where.0.seed is unknown"),
        ({"encoders": "a", "snapshot_layers": 1.5}, "expected all, last, or numbers"),
    ],
)
def test_an_entry_that_cannot_apply_is_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make_plan(PLAN | {"where": [entry]})
    assert "\n" not in str(caught.value)


def test_where_needs_fine_tuning() -> None:
    with pytest.raises(InputError, match="where is about fine-tunings, but tuning is null"):
        make_plan(PLAN | {"tuning": None, "where": [{"encoders": "a", "seeds": 0}]})


def test_layers_that_the_encoder_does_not_have_are_refused(tasks: Path, tmp_path: Path) -> None:
    plan = small_plan(tasks, where=[{"encoders": "bert-tiny", "snapshot_layers": [7]}])
    with pytest.raises(InputError, match="layer 7"):
        resolve_plan(plan, tmp_path / "store")


def test_entries_of_encoders_that_the_command_line_leaves_out_are_dropped_with_a_note(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(
        "encoders: [a, b]\ntasks: [x]\nwhere: [{encoders: [a, b], seeds: 3}, {encoders: b, snapshot_layers: all}]\n"
    )
    with caplog.at_level(logging.WARNING):
        plan = read_plan(file, encoders=["a"])
    assert [entry.encoders for entry in plan.where] == [["a"]]
    assert "an entry of where" in caplog.text


def test_a_study_measures_more_layers_and_seeds_where_the_plan_says_so(tasks: Path, tmp_path: Path) -> None:
    words, questions = str(tasks / "words"), str(tasks / "questions")
    where = [{"tasks": words, "snapshot_layers": [1, 2]}, {"tasks": questions, "seeds": [3, 4]}]
    changes = {"tasks": [words, questions], "where": where, "measures": ["clusters"]}
    plan = small_values(tasks) | changes
    plain = run_study({key: value for key, value in plan.items() if key != "where"}, tmp_path / "out", engine="here")
    before = load_results(plain.out)
    done = run_study(plan, tmp_path / "out", engine="here")
    rows = load_results(done.out)
    tuned = rows[(rows.measure == "n_clusters") & (rows.step > 0) & ~rows.is_final]
    assert set(tuned[tuned.task == "words"].layer) == {1, 2}
    assert set(tuned[tuned.task == "questions"].layer) == {2}
    assert set(tuned[tuned.task == "words"].seed) == {0}
    assert set(tuned[tuned.task == "questions"].seed) == {3, 4}
    kept = rows[(rows.task == "words") & (rows.layer == 2) & (rows.measure == "n_clusters")]
    same = before[(before.task == "words") & (before.layer == 2) & (before.measure == "n_clusters")]
    assert kept.value.tolist() == same.value.tolist()


def test_the_explorer_shows_the_layers_that_were_measured_along_the_way(tasks: Path, tmp_path: Path) -> None:
    words = str(tasks / "words")
    where = [{"tasks": words, "snapshot_layers": 1}]
    plan = small_plan(tasks, where=where, measures=["clusters", "explorer"], explorer={"layers": [1, 2]})
    done = run_study(plan, tmp_path / "out", engine="here")
    assert done.state.failed == {}
    [explorer] = read_explorers(done.out)
    assert explorer.layers == [1]

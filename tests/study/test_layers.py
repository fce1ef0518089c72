"""The last layer is the highest one at which a space was measured."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from closerlook.errors import InputError
from closerlook.study.layers import last_layer, last_layers, measured_layers
from closerlook.study.resolving import resolve_plan
from closerlook.study.results import load_results
from closerlook.study.study import CompletedStudy, run_study
from tests.study.small import small_plan


def table(*rows: tuple[str, str, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["encoder", "measure", "layer"])


def test_rows_of_a_fine_tuned_head_do_not_count() -> None:
    rows = table(("a", "n_clusters", 0), ("a", "n_clusters", 1), ("a", "head_accuracy", 2), ("b", "nc1", 5))
    assert measured_layers(rows) == {"a": (0, 1), "b": (5,)}
    assert last_layers(rows) == {"a": 1, "b": 5}


def test_the_order_of_layers_does_not_matter() -> None:
    assert last_layer([2, 12, 5]) == 12


@pytest.mark.parametrize("layers", [1])
def test_a_study_of_a_lower_layer_ends_there(layers: int, tasks: Path, tmp_path: Path) -> None:
    measures = ["clusters", "distances"]
    plan = small_plan(tasks, layers=layers, snapshot_layers=layers, measures=measures)
    done = run_study(plan, tmp_path / "out", engine="here")
    rows = load_results(done.out)
    assert set(rows[rows.measure == "head_accuracy"].layer) == {2}
    assert last_layers(rows) == {"bert-tiny": layers}


def test_fewer_layers_are_measured_on_tasks_that_an_encoder_was_not_fine_tuned_on(tasks: Path, tmp_path: Path) -> None:
    words, questions = str(tasks / "words"), str(tasks / "questions")
    plan = small_plan(
        tasks, tasks=[words, questions], cross="all", cross_layers="last", measures=["clusters", "similarity"]
    )
    done = run_study(plan, tmp_path / "out", engine="here")
    rows = load_results(done.out)
    counts = rows[(rows.measure == "n_clusters") & rows.is_final]
    own = counts.tuned_on == counts.task
    assert set(counts[own].layer) == {0, 2}
    assert set(counts[~own].layer) == {2}
    assert set(counts[~own].task) == {"words", "questions"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cross": "all", "cross_layers": 1}, "cross_layers has layer 1 of bert-tiny; layers and snapshot_layers have"),
        ({"cross": "all", "cross_layers": 7}, "layer 7"),
        (
            {"cross_layers": "last"},
            "cross_layers is about other tasks than that of a fine-tuning, but cross names none",
        ),
    ],
)
def test_layers_of_other_tasks_that_are_not_measured_are_refused(
    changes: dict[str, Any], message: str, tasks: Path, tmp_path: Path
) -> None:
    both = {"tasks": [str(tasks / "words"), str(tasks / "questions")]}
    with pytest.raises(InputError, match=message):
        resolve_plan(small_plan(tasks, **both, **changes), tmp_path / "store")


def test_a_whole_study_ends_at_the_encoders_last_layer(single: CompletedStudy) -> None:
    assert last_layers(load_results(single.out)) == {"bert-tiny": 2}

"""No p-value is shown that cannot be small, also in tables of earlier versions."""

from typing import Any

import pytest

from closerlook.report import nulls
from closerlook.report.figures.nulls import null_data
from closerlook.study.plan import PRESETS, read_plan
from closerlook.study.readings import Results, index_results
from tests.report.studies import frame

PLACE: dict[str, Any] = {"encoder": "e", "task": "t", "layer": 1, "step": 0, "is_final": False}


def study(permutations: int, shuffles: int = 20) -> Results:
    values = {
        **{"n_clusters": 3.0, "similarity_train_test": 0.9, "similarity_null_mean_train_test": 0.0},
        **{"separable_pairs": 1.0, "separable_pairs_null_mean": 0.5, "separable_pairs_p_value": 0.2},
        "similarity_p_value_train_test": 0.2,
    }
    rows = [PLACE | {"measure": name, "value": value, "n": permutations} for name, value in values.items()]
    manifest = {"plan": {"nulls": {"shuffles": shuffles, "cluster_shuffles": 2}}}
    return index_results(frame(rows), manifest)


@pytest.mark.parametrize(("permutations", "is_shown"), [(5, False), (18, False), (19, True), (9999, True)])
def test_the_p_value_of_a_similarity_needs_19_permutations(permutations: int, is_shown: bool) -> None:
    results = study(permutations)
    assert ("p" in [column.title for column in nulls.similarity_table(results).columns]) == is_shown
    assert null_data(results, "e").p.notna().tolist() == [is_shown]
    assert bool(nulls.similarity_text(results)) == is_shown


def test_the_reason_is_below_the_table() -> None:
    few, enough = (nulls.separability_table(study(99, shuffles)) for shuffles in (3, 20))
    assert "No p of separable pairs: 3 shuffles cannot give p below 0.25; run with 20 or more." in few.note
    assert "p" not in [column.title for column in few.columns]
    assert "p" in [column.title for column in enough.columns]
    assert "No p of" not in enough.note  # clusters were not compared with shuffled labels at all


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_have_enough_shuffles(preset: str) -> None:
    plan = read_plan(preset, encoders=["bert-tiny"])
    assert min(plan.nulls.shuffles, plan.nulls.cluster_shuffles, plan.geometry.permutations) >= 20
    assert plan.halves.repeats >= 5

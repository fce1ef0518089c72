"""The table and the sentences of a study that tried other settings."""

from typing import Any

from closerlook.report import sensitivity
from closerlook.study.readings import index_results
from tests.report.studies import frame, made_up


def tried_settings() -> list[dict[str, Any]]:
    """A pretrained and a fine-tuned space with three values of min_points, two tolerances and two poolings."""
    rows: list[dict[str, Any]] = []
    for step, tuned in ((0, ""), (9, "animals")):
        place = {"encoder": "e", "task": "animals", "layer": 1, "step": step, "tuned_on": tuned}
        place |= {"is_final": bool(step), "pool": "mean"}
        rows.append(place | {"measure": "n_clusters", "value": 5.0})
        for least, value, n in (("1", 0.9, 5), ("2", 0.8, 4), ("11", None, 2)):
            tried = {"measure": "similarity_at_min_points_train_test", "text": least, "n": n}
            rows.append(place | tried | {"value": None if value is None else value - 0.5 * bool(step) * (n == 4)})
        for tau, clusters in (("0.01", 7.0 + step), ("1e-06", 5.0)):
            rows.append(place | {"measure": "clusters_at_tau", "text": tau, "value": clusters})
        if not step:
            other = place | {"pool": "first"}
            rows.append(other | {"measure": "similarity_at_min_points_train_test", "text": "1", "value": 0.6, "n": 5})
            rows.append(other | {"measure": "clusters_at_tau", "text": "1e-06", "value": 6.0})
    return rows


MANIFEST_OF_SETTINGS = {"plan": {"geometry": {"min_points": 1, "tau": 1e-6}}}


def test_every_value_of_a_setting_has_a_row() -> None:
    table = sensitivity.sensitivity_table(index_results(frame(tried_settings()), MANIFEST_OF_SETTINGS))
    assert [row[2:] for row in table.shown()] == [
        ["min_points 1 (own)", "0.90", "5", "0.90", "5", "–", "–"],
        ["min_points 2", "0.80", "4", "0.30", "4", "–", "–"],
        ["τ 1e-06 (own)", "–", "–", "–", "–", "5", "5"],
        ["τ 0.01", "–", "–", "–", "–", "7", "16"],
        ["pooling first", "0.60", "5", "–", "–", "6", "–"],
    ]


def test_the_effect_of_settings_in_sentences() -> None:
    results = index_results(frame(tried_settings()), MANIFEST_OF_SETTINGS)
    assert sensitivity.sensitivity_text(results) == (
        "For min_points 1, 2, 11, the similarity of train and test differs by 0.10 before fine-tuning (median over 1 "
        "pair of encoder and task; at most 0.10) and by 0.60 after fine-tuning (median over 1 pair of encoder and "
        "task; at most 0.60). For a tolerance τ of 1e-06, 0.01, the number of clusters differs in 2 of 2 spaces (pairs "
        "of encoder and task, before and after fine-tuning), by at most 11. With the poolings first, mean, the "
        "similarity of train and test differs by 0.30 before fine-tuning (median over 1 pair of encoder and task; at "
        "most 0.30). With the poolings first, mean, the number of clusters differs in 1 of 1 space (pairs of encoder "
        "and task, before and after fine-tuning), by at most 1."
    )
    assert sensitivity.sensitivity_text(index_results(made_up())) == ""

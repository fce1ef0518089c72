"""Repeated splits of train into halves: the answer uses their mean, and its interval contains their variation."""

from typing import Any

import numpy as np

from closerlook.report import divergence
from closerlook.study.readings import index_results
from tests.report.studies import frame


def study(splits: int) -> list[dict[str, Any]]:
    """Eight tasks whose halves are as similar as train and test, up to noise that differs between splits."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for at in range(8):
        place = {"encoder": "e", "layer": 1, "step": 0, "is_final": False, "task": f"t{at}"}
        values = 0.1 * at + 0.15 * rng.normal(size=splits)
        rows.append(place | {"measure": "n_clusters", "value": 2.0})
        rows.append(place | {"measure": "similarity_train_test", "value": 0.1 * at + 0.02 * (at % 3)})
        rows.append(place | {"measure": "similarity_halves", "value": float(values.mean())})
        rows += [
            place | {"measure": "similarity_halves_split", "value": float(value), "text": str(number)}
            for number, value in enumerate(values)
        ]
    return rows


def test_the_number_of_splits_is_in_the_table_and_in_the_sentence() -> None:
    results = index_results(frame(study(4)))
    table = divergence.split_halves_table(results)
    assert [row[2:5] for row in table.rows] == [(8, 8, 4)]
    text = divergence.prediction_text(results)
    assert "(95% interval over pairs and splits " in text
    assert "The similarity of halves is the mean over 4 random splits; with one of them alone, the correlation" in text
    assert "split 0" not in divergence.split_half_data(results).columns


def test_tables_of_earlier_versions_have_only_the_mean() -> None:
    rows = [row for row in study(4) if row["measure"] != "similarity_halves_split"]
    results = index_results(frame(rows))
    assert "splits" not in [column.title for column in divergence.split_halves_table(results).columns]
    assert "(95% interval 0" in divergence.prediction_text(results)

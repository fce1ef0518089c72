"""Every similarity of a study can be computed again from the distances in its table, and in its archive."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from closerlook.report.archive import shown_rows
from closerlook.study.recomputing import recompute_similarities
from closerlook.study.results import load_results
from closerlook.study.study import CompletedStudy, run_study
from tests.study.small import small_plan


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, tasks: Path, done: CompletedStudy) -> list[pd.DataFrame]:
    """The tables of three studies, so that every kind of comparison occurs: random weights, two encoders, two seeds."""
    changes: tuple[dict[str, Any], ...] = (
        {"encoders": ["bert-tiny", "random:bert-tiny"], "tuning": None},
        {"seeds": [0, 1], "tuning": {"epochs": 1, "batch_size": 24}},
    )
    folder, few = tmp_path_factory.mktemp("compared"), {"measures": ["clusters", "similarity"], "layers": "last"}
    studies = [
        run_study(small_plan(tasks, snapshots=2, **few, **one), folder / str(at), engine="here")
        for at, one in enumerate(changes)
    ]
    return [load_results(study.out) for study in (done, *studies)]


def test_all_similarities_come_out_again(tables: list[pd.DataFrame]) -> None:
    found = pd.concat(map(recompute_similarities, tables))
    compared = ("train_test", "original", "seed", "random", "encoder")
    assert {f"similarity{kind}_{name}" for name in compared for kind in ("", "_spearman")} <= set(found.measure)
    assert "similarity_size_adjusted_original" in set(found.measure)
    np.testing.assert_allclose(found.recomputed, found.value.to_numpy(float), atol=1e-6)


def test_they_come_out_again_from_the_archive(tables: list[pd.DataFrame]) -> None:
    found = pd.concat([recompute_similarities(shown_rows(table)) for table in tables])
    assert len(found) > 20
    np.testing.assert_allclose(found.recomputed, found.value.to_numpy(float), atol=1e-6)  # few labels: not rounded
    assert found.recomputed.notna().sum() == found.value.notna().sum()


def test_without_distances_nothing_is_computed(tables: list[pd.DataFrame]) -> None:
    found = recompute_similarities(tables[0][tables[0].measure != "label_distance"])
    assert len(found) > 0
    assert found.recomputed.isna().all()

"""A study's archive: smaller, and the page made of it says the same."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from closerlook.errors import InputError
from closerlook.report.archive import archive, shown_rows
from closerlook.report.outline import draw_figures
from closerlook.report.writing import load_study
from closerlook.study.findings import judge_results
from closerlook.study.results import load_results
from tests.report.studies import golden_beyond, made_up, write_study


@pytest.mark.parametrize("table", [golden_beyond(), made_up(seeds=(0, 1))], ids=["golden", "made up"])
def test_figures_and_verdicts_are_those_of_the_whole_table(table: pd.DataFrame, tmp_path: Path) -> None:
    whole = write_study(tmp_path / "whole", table, {"study": "kept"})
    page = archive(whole, tmp_path / "kept")
    assert page == tmp_path / "kept" / "report.html"
    before, after = load_study(whole), load_study(tmp_path / "kept")
    assert [(one.verdict, one.sentence) for one in judge_results(after)] == [
        (one.verdict, one.sentence) for one in judge_results(before)
    ]
    assert after.manifest == {"study": "kept"}
    for one, other in zip(draw_figures(before), draw_figures(after), strict=True):
        pd.testing.assert_frame_equal(one.data, other.data, rtol=1e-6, check_dtype=False)


def test_rows_that_no_page_shows_are_excluded_and_numbers_are_rounded(tmp_path: Path) -> None:
    table = made_up()
    kept = shown_rows(table)
    assert 0 < len(kept) < len(table)
    assert (kept.value.dropna() == kept.value.dropna().astype(np.float32)).all()
    archive(write_study(tmp_path / "whole", table), tmp_path / "kept")
    pd.testing.assert_frame_equal(load_results(tmp_path / "kept"), kept, check_dtype=False)


def test_the_study_itself_is_not_overwritten(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "whole", golden_beyond())
    before = (folder / "results.parquet").read_bytes()
    with pytest.raises(InputError, match="is the study itself"):
        archive(folder, folder)
    assert (folder / "results.parquet").read_bytes() == before


def test_the_last_layer_is_the_highest_one_measured_not_the_depth_of_the_encoder(tmp_path: Path) -> None:
    """A study with `layers: [1]` of two: rows of the fine-tuning's own head are at layer 2."""
    table = made_up(layers=(1,))
    head = table[(table.measure == "accuracy") & table["is_final"]].assign(measure="head_accuracy", layer=2)
    table = pd.concat([table, head], ignore_index=True)
    kept = shown_rows(table)
    for measure in ("label_distance", "minimum_distance", "label_clusters", "blocked_merge"):
        assert len(kept[kept.measure == measure]) > 0, measure
    whole = write_study(tmp_path / "whole", table)
    archive(whole, tmp_path / "kept")
    names = [[figure.kind for figure in draw_figures(load_study(folder))] for folder in (whole, tmp_path / "kept")]
    assert names[0] == names[1]
    assert {"distances", "label-distances"} <= set(names[0])

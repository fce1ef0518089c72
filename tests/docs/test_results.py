"""The results kept with the documentation: small, and their page can be made again from them without a model."""

import shutil
from pathlib import Path

import pytest

from closerlook.report import write_report
from closerlook.study.results import load_results
from tests.report.studies import data_of, without_data

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_the_table_is_small_and_whole() -> None:
    assert (RESULTS / "results.parquet").stat().st_size < 8_000_000
    table = load_results(RESULTS)
    runs = table[(table.tuned_on != "") & table["is_final"]][["encoder", "tuned_on", "seed"]].drop_duplicates()
    assert len(runs) == 4 * 5 * 3
    assert set(table.measure) >= {"accuracy", "n_clusters", "separable_pairs_null_mean", "similarity_random", "nc1"}


@pytest.mark.slow
def test_the_page_and_every_figure_come_out_again(tmp_path: Path) -> None:
    for name in ("results.parquet", "manifest.json"):
        shutil.copy(RESULTS / name, tmp_path)
    page = write_report(tmp_path)
    first, second = (file.read_text(encoding="utf-8") for file in (page, RESULTS / "report.html"))
    assert data_of(first) == data_of(second)  # not the compressed bytes, which differ between versions of zlib
    assert without_data(first) == without_data(second)
    drawn = tmp_path / "figures"
    for kept in (RESULTS.parent / "figures").glob("*.svg"):
        assert (drawn / kept.name).read_bytes() == kept.read_bytes(), f"{kept.name} is not what the table gives"

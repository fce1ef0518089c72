"""The results kept with the documentation: small, and their page can be made again from them without a model."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyarrow import parquet

from closerlook.report import write_report
from tests.report.studies import data_of, without_data

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_the_table_is_small_and_whole() -> None:
    """`load_results` and its checksum are tested where tests/docs/test_write_up.py renders the pages."""
    file = RESULTS / "results.parquet"
    assert file.stat().st_size < 8_000_000
    final = parquet.read_table(
        file, columns=["encoder", "tuned_on", "seed"], filters=[("is_final", "==", True), ("tuned_on", "!=", "")]
    )
    runs = Counter(final.group_by(final.column_names).aggregate([])["encoder"].to_pylist())
    three_seeds = dict.fromkeys(("bert-tiny", "bert-mini", "bert-small", "bert-medium", "all-MiniLM-L6-v2"), 15)
    assert runs == three_seeds | {"bert-base": 5}  # one seed
    measures = set(parquet.read_table(file, columns=["measure"])["measure"].unique().to_pylist())
    assert measures >= {"accuracy", "n_clusters", "separable_pairs_null_mean", "similarity_random", "nc1"}


def test_all_kept_results_take_less_than_10_mb() -> None:
    kept = [file for folder in RESULTS.parent.glob("results*") for file in folder.iterdir()]
    assert RESULTS / "results.parquet" in kept
    assert sum(file.stat().st_size for file in kept) < 10_000_000


@pytest.mark.slow
def test_the_page_and_every_figure_come_out_again(tmp_path: Path) -> None:
    for name in ("results.parquet", "manifest.json", "explorer.json"):
        shutil.copy(RESULTS / name, tmp_path)
    page = write_report(tmp_path)
    first, second = (file.read_text(encoding="utf-8") for file in (page, RESULTS / "report.html"))
    assert data_of(first) == data_of(second)  # not the compressed bytes, which differ between versions of zlib
    assert without_data(first) == without_data(second)
    drawn = tmp_path / "figures"
    for kept in (RESULTS.parent / "figures").glob("*.svg"):
        assert (drawn / kept.name).read_bytes() == kept.read_bytes(), f"{kept.name} is not what the table gives"

"""Studies in which nothing was fine-tuned confirm none of the five findings."""

import pandas as pd
import pytest

from closerlook.study.earlier_rules import earlier_verdicts
from closerlook.study.findings import judge
from closerlook.study.readings import index_results
from tests.science.null_studies import CHANGES, ENCODERS, Change, null_study, path_of, small_tasks

NAMES = [change.name for change in CHANGES]


def supporting(table: pd.DataFrame) -> list[int]:
    """The findings that hold."""
    return [finding.number for finding in judge(table) if finding.verdict == "holds"]


@pytest.mark.parametrize("change", CHANGES, ids=NAMES)
def test_a_null_study_confirms_no_finding(change: Change) -> None:
    assert supporting(pd.read_parquet(path_of(change))) == []


@pytest.mark.parametrize("change", CHANGES, ids=NAMES)
def test_the_findings_of_a_null_study_can_be_judged(change: Change) -> None:
    """Otherwise the test above would mean nothing: except for finding 2, there are enough pairs with an answer."""
    found = judge(pd.read_parquet(path_of(change)))
    assert [finding.number for finding in found if finding.verdict == "cannot tell"] in ([], [2])
    assert all(finding.n_for == 0 for finding in found if finding.number in {4, 5})


@pytest.mark.parametrize(("name", "encoders"), [("one_update", list(ENCODERS)), ("noise_5_percent", ["bert-tiny"])])
def test_earlier_rules_confirmed_finding_5_in_a_null_study(name: str, encoders: list[str]) -> None:
    """So the null studies can tell rules apart."""
    (change,) = [change for change in CHANGES if change.name == name]
    table = pd.read_parquet(path_of(change))
    results = index_results(table[table.encoder.isin(encoders)])
    assert [one.number for one in earlier_verdicts(results) if one.verdict == "holds"] == [5]


def test_the_kept_tables_are_small() -> None:
    assert sum(path_of(change).stat().st_size for change in CHANGES) < 800_000


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES, ids=NAMES)
def test_a_null_study_that_is_made_anew_confirms_no_finding(change: Change) -> None:
    table = null_study(change, {"bert-tiny": ENCODERS["bert-tiny"]}, small_tasks())
    assert supporting(table) == []
    kept = pd.read_parquet(path_of(change))
    assert set(table.measure) == set(kept[kept.encoder == "bert-tiny"].measure)

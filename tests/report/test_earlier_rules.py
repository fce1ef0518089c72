"""The verdicts by the rules of version 1, worked out by hand from golden.csv and from the paper's own table."""

import csv
from importlib import resources
from typing import Any

import pandas as pd
import pytest

from closerlook.report.verdict_tables import earlier_table, earlier_text
from closerlook.study.earlier_rules import EarlierVerdict, earlier_verdicts
from closerlook.study.readings import index_results
from closerlook.study.rules import rules_hash
from tests.report.studies import frame, golden, made_up


def earlier(table: pd.DataFrame, number: int, version: int = 1) -> EarlierVerdict:
    """The verdict on a finding by one version."""
    (found,) = [one for one in earlier_verdicts(index_results(table)) if (one.number, one.version) == (number, version)]
    return found


@pytest.mark.parametrize(
    ("number", "verdict", "counts"),
    [
        *((1, "mixed", (2, 1, 0)), (2, "cannot tell", (1, 1, 1)), (3, "holds", (3, 0, 0))),
        *((4, "mixed", (2, 1, 0)), (5, "mixed", (1, 2, 0))),
    ],
)
def test_version_1_counts_the_fine_tunings_of_the_golden_table(
    number: int, verdict: str, counts: tuple[int, int, int]
) -> None:
    one = earlier(golden(), number)
    assert (one.verdict, one.n_for, one.n_against, one.n_no_answer) == (verdict, *counts)


def with_conflicts(version: int, *, before: float, after: float) -> tuple[int, int, int]:
    """The answers to finding 2 of two fine-tunings: 3 labels and 2 points in conflict before and after."""
    table = made_up()
    table.loc[table.measure == "n_labels", "value"] = 3.0
    table.loc[table.measure == "n_conflicts", "value"] = 2.0
    for end, value in ((table.step == 0, before), (table.step != 0, after)):
        table.loc[end & (table.measure == "n_clusters"), "value"] = value
    one = earlier(table, 2, version)
    return one.n_for, one.n_against, one.n_no_answer


def test_version_0_took_points_in_conflict_as_evidence_against_finding_2() -> None:
    assert with_conflicts(1, before=5, after=5) == (0, 0, 2)
    assert with_conflicts(0, before=5, after=5) == (0, 2, 0)
    assert with_conflicts(1, before=6, after=5) == with_conflicts(0, before=6, after=5) == (2, 0, 0)
    assert with_conflicts(1, before=6, after=6) == (0, 2, 0)


def test_version_1_took_any_change_as_a_change() -> None:
    table = made_up(tasks={name: ["a", "b", "c"] for name in ("one", "two", "three")}, steps=(0, 1))
    for measure, change in (("n_labels_increased", 3.0), ("mean_minimum_distance_change", 1e-9)):
        table.loc[(table.measure == measure) & (table.step == 1), "value"] = change
    assert earlier(table, 3).verdict == "holds"


def test_a_related_task_alone_did_not_make_finding_4_hold() -> None:
    rows = golden()
    extra = rows[(rows.tuned_on == "ps-role") & (rows.task == "ps-fxn")]
    seeds = [extra.assign(seed=seed) for seed in (1, 2)]
    found = earlier(pd.concat([rows[rows.tuned_on != "pos"], *seeds]), 4)
    assert (found.n_for, found.n_against, found.verdict) == (3, 0, "cannot tell")


@pytest.mark.parametrize(("tried", "answers"), [(5, (0, 0, 2)), (23, (0, 2, 0))])
def test_too_few_permutations_gave_no_answer(tried: int, answers: tuple[int, int, int]) -> None:
    table = made_up()
    table.loc[table.measure == "similarity_p_value_original", ["value", "n"]] = 1 / 6, tried
    one = earlier(table, 5)
    assert (one.n_for, one.n_against, one.n_no_answer) == answers


def paper_table() -> pd.DataFrame:
    """Table 7 as if a study had measured it."""
    text = resources.files("closerlook.report").joinpath("paper", "table7_probing.csv").read_text()
    rows: list[dict[str, Any]] = []
    for line in csv.DictReader(text.splitlines()):
        tuned = line["state"] == "fine-tuned"
        place = {"encoder": line["encoder"], "task": line["task"], "layer": 2, "step": 5 * tuned, "is_final": tuned}
        place |= {"tuned_on": line["task"] if tuned else ""}
        labels = {"pos": 17, "dep": 46, "ps-fxn": 40, "ps-role": 46, "trec-50": 50}[line["task"]]
        rows.append(place | {"split": "test", "measure": "accuracy", "value": float(line["accuracy"]) / 100})
        rows.append(place | {"split": "test", "measure": "accuracy_sd", "value": float(line["accuracy_std"]) / 100})
        rows.append(place | {"measure": "n_clusters", "value": float(line["clusters"])})
        rows.append(place | {"measure": "n_labels", "value": float(labels)})
        if line["train_test_spatial_similarity"]:
            value = float(line["train_test_spatial_similarity"])
            rows.append(place | {"measure": "similarity_train_test", "value": value})
    return frame(rows)


def test_the_published_table_gives_the_published_findings() -> None:
    first, second = (earlier(paper_table(), number) for number in (1, 2))
    assert (first.verdict, first.n_against) == ("holds", 1)
    assert (second.verdict, second.n_against) == ("holds", 0)


def test_the_page_shows_the_verdicts_of_all_versions() -> None:
    results = index_results(golden())
    table = earlier_table(results)
    assert [row[:3] for row in table.rows if row[0] == "2"] == [
        ("2", "2", "cannot tell"),
        ("2", "1", "cannot tell"),
        ("2", "0", "cannot tell"),
    ]
    assert f"version 2 of the rules (hash of their text: {rules_hash()})" in earlier_text(results)
    untuned = index_results(made_up(steps=()))
    assert not earlier_table(untuned)
    assert not earlier_text(untuned)

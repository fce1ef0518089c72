"""Existing trainings whose task the plan does not name: shown like fine-tunings, not judged by rules that need it."""

import pandas as pd
import pytest

from closerlook.report.before_after import before_after
from closerlook.report.blocked_merges import blocked_spaces
from closerlook.report.finding_tables import summary_table
from closerlook.study.findings import judge_results
from closerlook.study.readings import Results, index_results
from closerlook.study.runs import UNKNOWN
from tests.report.studies import made_up


def unknown(table: pd.DataFrame) -> pd.DataFrame:
    """The same study, as if its fine-tunings were one existing training whose task is not known."""
    return table.assign(tuned_on=table["tuned_on"].mask(table["tuned_on"] != "", UNKNOWN))


@pytest.fixture(scope="module")
def results() -> Results:
    return index_results(unknown(made_up(wider=True)))


def test_your_training_is_not_a_task(results: Results) -> None:
    assert results.tasks == ("animals", "colours")
    assert [column.title for column in summary_table(results).columns] == ["encoder", "measure", "animals", "colours"]


def test_before_and_after_are_shown(results: Results) -> None:
    before, after = before_after(results, "accuracy", "bert-tiny", "animals")
    assert before is not None
    assert after is not None
    assert (before.value, after.value) == (0.8, 0.9)
    assert {space["state"] for space in blocked_spaces(results)[0]} == {"before", "after"}


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_rules_that_need_the_task_of_a_training_say_so(results: Results, number: int) -> None:
    finding = judge_results(results)[number - 1]
    assert [answer.support for answer in finding.answers] == ["no answer", "no answer"]
    assert "the task of this training is not known, and the rule needs it" in finding.sentence


def test_the_rule_about_layers_does_not_need_the_task(results: Results) -> None:
    answers = judge_results(results)[4].answers
    assert len(answers) == 2
    assert not any("task of this training" in answer.reason for answer in answers)

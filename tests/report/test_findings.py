"""The verdicts, worked out by hand from golden.csv and from the paper's own table."""

import csv
from importlib import resources
from typing import Any

import pandas as pd
import pytest

from closerlook.study.findings import Answer, Finding, judge
from closerlook.study.runs import Run
from closerlook.study.verdicts import share_interval, verdict_of
from tests.report.studies import frame, golden, golden_beyond, made_up


@pytest.fixture(scope="module")
def found() -> list[Finding]:
    return judge(golden())


@pytest.mark.parametrize(
    ("number", "verdict", "counts"),
    [
        *((1, "mixed", (2, 1, 0)), (2, "cannot tell", (1, 1, 1)), (3, "holds", (3, 0, 0))),
        *((4, "mixed", (2, 1, 0)), (5, "mixed", (1, 2, 0))),
    ],
)
def test_each_finding_counts_the_fine_tunings_of_the_golden_table(
    found: list[Finding], number: int, verdict: str, counts: tuple[int, int, int]
) -> None:
    one = found[number - 1]
    assert (one.number, one.verdict) == (number, verdict)
    assert (one.n_for, one.n_against, one.n_no_answer) == counts


def test_sentences_say_counts_and_uncertainty(found: list[Finding]) -> None:
    assert found[0].sentence == (
        "Train and test become less similar in 2 of 3 fine-tuning runs, and accuracy falls by more than its "
        "standard deviation in 1. 2 fine-tuning runs support the finding, 1 contradicts it (95% confidence interval of "
        "the share of runs that support it: 9% to 99%)."
    )
    assert found[1].sentence.startswith(
        "Of 3 fine-tuning runs, 1 had the lowest possible number of clusters before and after; the number falls in 1 "
        "of the other 2. "
    )
    assert found[1].sentence.endswith("% to 99%). A verdict needs at least 3 runs with an answer.")
    assert "the mean distance divided by the RMS radius of the space grows in 2 of 3" in found[2].sentence
    assert "fine-tuning on an opposed task brings most labels closer in 1 of 2 runs" in found[3].sentence


def test_sentences_give_the_nulls_that_were_measured() -> None:
    first, second, third, _, fifth = judge(golden_beyond())
    assert (
        " (with shuffled labels, the similarity after fine-tuning is 0.02 ± 0.19, mean ± standard deviation), and "
        "accuracy falls by more than its standard deviation in 1. 3 fine-tuning runs support"
    ) in first.sentence
    assert (
        "; on subsamples of at most 80 points, shuffled labels give 36 to 38 clusters on average and true labels 3 to "
        "4, depending on the run."
    ) in second.sentence
    assert (
        "; 2 of 3 labels move significantly farther away and 0 significantly closer (p ≤ 0.05 after Holm correction)."
        in third.sentence
    )
    assert (
        "in 2 (with shuffled labels, the similarity after fine-tuning is 0.01 ± 0.12, mean ± standard deviation); the "
        "mean similarity of the fine-tuned last layer to the pretrained encoder is 0.50, and to the same encoder with "
        "random weights 0.20. 1 fine-tuning run supports"
    ) in fifth.sentence


def test_answers_give_the_nulls() -> None:
    first, second, third, *_ = (finding.answers[0].reason for finding in judge(golden_beyond()))
    assert first == (
        "similarity falls: 0.80 before, 0.60 after (with shuffled labels: 0.04 ± 0.25); accuracy does not fall by more "
        "than its standard deviation"
    )
    assert second == (
        "5 clusters become 3 (on a subsample of 80 points, shuffled labels give 38 clusters on average and true labels "
        "3)"
    )
    assert third == "3 of 3 labels move farther away, 2 of 3 significantly (Holm-corrected)"


def test_a_mean_number_of_clusters_keeps_its_decimal() -> None:
    table = golden_beyond()
    nulls = (table.measure == "subsampled_clusters_null_mean") & (table.step > 0)
    table.loc[nulls & (table.seed == 0), "value"] = 38.5
    table.loc[nulls & (table.seed == 1), "value"] = 19.5
    second = judge(table)[1]
    assert "shuffled labels give 19.5 to 38.5 clusters on average and true labels 3 to 4, " in second.sentence
    assert "shuffled labels give 38.5 clusters on average and true labels 3)" in second.answers[0].reason


def test_a_null_without_a_standard_deviation_is_called_a_mean() -> None:
    table = golden_beyond()
    first = judge(table[~table.measure.str.contains("_null_sd")])[0]
    assert "(with shuffled labels, the similarity after fine-tuning is 0.02, mean), and accuracy" in first.sentence


def test_nulls_change_no_verdict() -> None:
    table = golden_beyond()
    nulls = table.measure.str.contains("_null|subsampled|separable_p|significantly|_random")
    assert [one.verdict for one in judge(table)] == [one.verdict for one in judge(table[~nulls])]


def test_every_finding_says_its_rule(found: list[Finding]) -> None:
    for finding in found:
        assert finding.rule.startswith("A run ")
        assert all(words in finding.rule for words in (" supports the finding if", " contradicts ", " no answer"))
        assert "If at least three quarters of the runs with an answer support the finding, it holds" in finding.rule


def test_answers_say_why(found: list[Finding]) -> None:
    whys = {answer.run.task: answer.reason for answer in found[0].answers}
    by_much = "by more than its standard deviation"
    assert whys["ps-fxn"] == f"similarity falls: 0.80 before, 0.60 after; accuracy does not fall {by_much}"
    assert whys["ps-role"] == f"similarity does not fall: 0.70 before, 0.72 after; accuracy falls {by_much}"
    assert {answer.run.task: answer.reason for answer in found[1].answers}[
        "ps-role"
    ] == "the lowest possible number before and after: 3 clusters for 3 labels"


def with_conflicts(*, before: float, after: float) -> Answer:
    """What one fine-tuning says of finding 2: 3 labels, with 2 points at one place under two of them at both ends."""
    table = made_up()
    table.loc[table.measure == "n_labels", "value"] = 3.0
    table.loc[table.measure == "n_conflicts", "value"] = 2.0
    for end, value in ((table.step == 0, before), (table.step != 0, after)):
        table.loc[end & (table.measure == "n_clusters"), "value"] = value
    return judge(table)[1].answers[0]


def test_points_in_conflict_are_no_evidence_against_finding_2() -> None:
    ready = with_conflicts(before=5, after=5)
    assert (ready.holds, ready.reason) == (
        None,
        "the lowest possible number before and after: 5 clusters for 3 labels and 2 points in conflict",
    )
    assert with_conflicts(before=6, after=5).holds is True
    assert with_conflicts(before=6, after=6).holds is False
    assert with_conflicts(before=5, after=6).holds is False


def test_two_labels_are_given_as_the_reason_for_no_similarity() -> None:
    table = made_up(tasks={"moods": ["good", "bad"]})
    table = table[~table.measure.str.startswith("similarity")]
    first, *_, fifth = judge(table)
    sentence = "Cannot tell: spatial similarity needs 3 labels, and there are 2."
    assert (first.sentence, fifth.sentence) == (sentence, sentence)


@pytest.mark.parametrize(("tried", "says"), [(5, None), (23, False), (None, False)])
def test_too_few_permutations_give_no_answer(tried: int | None, says: bool | None) -> None:
    """Three labels have five others: p is never below a sixth."""
    table = made_up()
    p = table.measure == "similarity_p_value_original"
    table.loc[p, ["value", "n"]] = 1 / 6, tried
    assert {one.holds for one in judge(table)[4].answers} == {says}


@pytest.mark.parametrize(
    ("labels", "tried", "reason"),
    [
        (3, 5, "a permutation test of 3 labels cannot give p ≤ 0.05, at least 4 are needed"),
        (
            17,
            9,
            "a permutation test with 9 permutations cannot give p ≤ 0.05, at least 19 are needed "
            "(geometry.permutations in the plan)",
        ),
    ],
)
def test_finding_5_says_why_a_permutation_test_cannot_be_significant(labels: int, tried: int, reason: str) -> None:
    table = made_up()
    table.loc[table.measure == "n_labels", "value"] = labels
    table.loc[table.measure == "similarity_p_value_original", ["value", "n"]] = 1 / (tried + 1), tried
    assert judge(table)[4].sentence == f"Cannot tell: {reason}."


def test_finding_5_says_that_there_was_no_permutation_test() -> None:
    table = made_up()
    finding = judge(table[table.measure != "similarity_p_value_original"])[4]
    assert finding.sentence == (
        "Cannot tell: no permutation test of the similarity to the pretrained encoder was made at the last layer."
    )


@pytest.mark.parametrize(
    ("n_for", "n_against", "verdict"),
    [
        (2, 0, "cannot tell"),
        (3, 0, "holds"),
        (3, 1, "holds"),
        (2, 1, "mixed"),
        (1, 3, "fails"),
        (0, 3, "fails"),
        (2, 2, "mixed"),
    ],
)
def test_three_quarters_decide(n_for: int, n_against: int, verdict: str) -> None:
    run = Run("e", "t", 0, "t")
    answers = [Answer(run, True, "")] * n_for + [Answer(run, False, "")] * n_against + [Answer(run, None, "")] * 9
    assert verdict_of(answers) == verdict


def test_the_interval_is_that_of_clopper_and_pearson() -> None:
    assert share_interval(5, 5) == pytest.approx((0.478, 1.0), abs=5e-4)  # 0.025 ** (1 / 5)
    assert share_interval(0, 5) == pytest.approx((0.0, 0.522), abs=5e-4)
    assert share_interval(8, 10) == pytest.approx((0.444, 0.975), abs=5e-4)  # a usual textbook example


def test_a_frozen_study_cannot_tell_anything() -> None:
    found = judge(made_up(steps=()))
    assert {one.verdict for one in found} == {"cannot tell"}
    assert all(one.sentence.startswith("Cannot tell: ") for one in found)


def test_a_related_task_alone_does_not_make_finding_4_hold() -> None:
    rows = golden()
    extra = rows[(rows.tuned_on == "ps-role") & (rows.task == "ps-fxn")]
    seeds = [extra.assign(seed=seed) for seed in (1, 2)]
    found = judge(pd.concat([rows[rows.tuned_on != "pos"], *seeds]))[3]
    assert (found.n_for, found.n_against, found.verdict) == (3, 0, "cannot tell")
    assert "no opposed task was measured" in found.sentence


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
    first, second, *_ = judge(paper_table())
    assert first.verdict == "holds"
    assert [(a.run.encoder, a.run.task) for a in first.answers if "harmed" in a.signs] == [("bert-small", "ps-fxn")]
    assert [(a.run.encoder, a.run.task) for a in first.answers if a.holds is False] == [("bert-small", "ps-fxn")]
    assert (second.verdict, second.n_against) == ("holds", 0)

"""The verdicts: small tables whose answers are worked out by hand."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest

from closerlook.study.findings import Answer, Finding, judge
from closerlook.study.noise import Effect, change, count_change, no_harm
from closerlook.study.readings import Measurement
from closerlook.study.rules import RULES, VERSION, rules_hash
from closerlook.study.runs import Pair
from closerlook.study.verdicts import median_effect, sign_test, verdict_of
from tests.report.studies import frame, golden_beyond, made_up

Interval = tuple[float, float]
"""A value and the half-width of its interval."""


def measured(
    place: dict[str, Any], measure: str, value: float, half: float | None = None, **more: Any
) -> dict[str, Any]:
    bounds = {} if half is None else {"ci_low": value - half, "ci_high": value + half}
    return place | {"measure": measure, "value": value} | bounds | more


def study(
    measures: dict[str, tuple[Interval, Sequence[Interval]]],
    *,
    tasks: Sequence[str] = ("a", "b", "c", "d", "e"),
    tuned_on: str | None = None,
    constant: dict[str, float] | None = None,
) -> pd.DataFrame:
    """A study in which all tasks have the same values: before, and after for each seed, with half-widths.

    constant: measures at the end that are the same for all seeds, without interval.
    """
    rows = []
    for task in tasks:
        start = {"encoder": "bert", "task": task, "layer": 1, "step": 0, "is_final": False}
        for measure, (before, after) in measures.items():
            split = {"split": "test"} if measure.startswith("accuracy") else {}
            rows.append(measured(start | split, measure, *before, n=1000))
            for seed, (value, half) in enumerate(after):
                end = start | split | {"tuned_on": tuned_on or task, "seed": seed, "step": 9, "is_final": True}
                rows.append(measured(end, measure, value, half, n=1000))
                rows += [end | {"split": "train", "measure": name, "value": x} for name, x in (constant or {}).items()]
        rows.append(start | {"measure": "n_labels", "value": 4.0})
    return frame(rows)


SIMILARITY = "similarity_over_examples_train_test"


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ([(0.5, 0.1)], "holds"),
        ([(0.7, 0.1)], "within noise"),  # a fall of 0.1 with a margin of √(0.1² + 0.1²)
        ([(0.5, 0.1), (0.5, 0.1)], "holds"),
        ([(0.35, 0.1), (0.65, 0.1)], "within noise"),  # the mean is 0.5, but seeds differ by 0.3
        ([(0.95, 0.05)], "fails"),
    ],
)
def test_finding_1_needs_a_fall_of_similarity_beyond_noise(after: list[Interval], verdict: str) -> None:
    assert judge(study({SIMILARITY: ((0.8, 0.1), after)}))[0].verdict == verdict


def test_finding_1_does_not_speak_of_accuracy_that_was_not_measured() -> None:
    finding = judge(study({SIMILARITY: ((0.8, 0.1), [(0.5, 0.1)])}))[0]
    assert "accuracy was not measured, so harm is not judged" in finding.sentence
    assert "accuracy falls" not in finding.sentence
    assert finding.answers[0].reason == (
        "similarity 0.80 before, 0.50 after, beyond noise (± 0.14); accuracy was not measured"
    )


def test_finding_1_fails_where_accuracy_falls() -> None:
    fall = {SIMILARITY: ((0.8, 0.1), [(0.5, 0.1)]), "accuracy": ((0.9, 0.0), [(0.7, 0.0)])}
    finding = judge(study(fall))[0]
    assert (finding.verdict, finding.n_against) == ("fails", 5)
    assert "accuracy falls beyond its noise in 5 of 5" in finding.sentence


def test_finding_1_gives_the_equivalence_test_and_its_power() -> None:
    same = {SIMILARITY: ((0.8, 0.1), [(0.5, 0.1)]), "accuracy": ((0.9, 0.0), [(0.9, 0.0)])}
    finding = judge(study(same))[0]
    assert finding.verdict == "holds"
    # standard error √(2 · 0.9 · 0.1 / 1000) = 0.0134; Φ(0.02 / 0.0134 − 1.645) = Φ(−0.154) = 0.44
    assert "is excluded in 0 (equivalence test; its median power is 44%)" in finding.sentence


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        *((30, [10], "holds"), (6, [4], "within noise"), (10, [40], "fails"), (30, [30, 30], "within noise")),
        (30, [1, 39], "within noise"),
    ],
)
def test_finding_2_needs_fewer_clusters_beyond_the_noise_of_counts(
    before: float, after: list[float], verdict: str
) -> None:
    table = study({"n_clusters": ((before, 0.0), [(count, 0.0) for count in after])})
    assert judge(table)[1].verdict == verdict


def with_conflicts(*, before: float, after: float) -> Answer:
    """The answer of a pair to finding 2: 4 labels and 2 points in conflict before and after."""
    return judge(study({"n_clusters": ((before, 0.0), [(after, 0.0)]), "n_conflicts": ((2.0, 0.0), [(2.0, 0.0)])}))[
        1
    ].answers[0]


def test_points_in_conflict_are_no_evidence_against_finding_2() -> None:
    lowest = with_conflicts(before=6, after=6)
    assert (lowest.support, lowest.reason) == (
        "no answer",
        "the lowest possible number before and after: 6 clusters for 4 labels and 2 points in conflict",
    )
    assert with_conflicts(before=26, after=6).support == "for"
    assert with_conflicts(before=26, after=26).support == "within noise"


@pytest.mark.parametrize(
    ("after", "verdict"), [((2.0, 0.3), "holds"), ((1.2, 0.3), "within noise"), ((0.2, 0.3), "fails")]
)
def test_finding_3_needs_distances_that_grow_beyond_noise(after: Interval, verdict: str) -> None:
    finding = judge(study({"mean_minimum_distance": ((1.0, 0.3), [after])}))[2]
    assert finding.verdict == verdict


def label_rows(place: dict[str, Any], values: Sequence[float]) -> list[dict[str, Any]]:
    return [measured(place, "minimum_distance", x, 0.1, label=f"L{at}") for at, x in enumerate(values)]


def test_finding_3_needs_more_labels_that_move_farther_than_closer() -> None:
    """One label that moves far away does not speak for the others, which move closer."""
    table = study({"mean_minimum_distance": ((1.0, 0.3), [(3.0, 0.3)])})
    rows = []
    for task in "abcde":
        start = {"encoder": "bert", "task": task, "layer": 1, "step": 0, "is_final": False}
        rows += label_rows(start, [1.0, 1.0, 1.0, 1.0])
        rows += label_rows(start | {"tuned_on": task, "step": 9, "is_final": True}, [9.0, 0.5, 0.5, 1.05])
    finding = judge(pd.concat([table, frame(rows)]))[2]
    assert (finding.verdict, finding.n_within_noise) == ("within noise", 5)
    assert "5 of 20 labels move farther away beyond noise, 10 closer" in finding.sentence


def crossed(related: float, opposed: float, *, n: int = 5, n_related: int = 5) -> Finding:
    """Finding 4 of n encoders, fine-tuned on an opposed and some also on a related task: mean distances after."""
    rows = []
    for at in range(n):
        for task in ("pos", "ps-role", "ps-fxn"):
            start = {"encoder": f"bert-{at}", "task": task, "layer": 1, "step": 0, "is_final": False}
            labels = ["ADP", "NOUN"] if task == "pos" else ["Locus", "Time", "Goal"]
            rows += [start | {"measure": "label_clusters", "label": label, "value": 1.0} for label in labels]
            rows.append(measured(start, "mean_minimum_distance", 1.0, 0.1))
        end = {"encoder": f"bert-{at}", "task": "ps-role", "layer": 1, "step": 9, "is_final": True}
        for tuned_on, value in [("pos", opposed)] + [("ps-fxn", related)] * (at < n_related):
            rows.append(measured(end | {"tuned_on": tuned_on}, "mean_minimum_distance", value, 0.1))
    return judge(frame(rows))[3]


def test_finding_4_does_not_take_labels_that_stay_as_labels_that_come_closer() -> None:
    assert crossed(related=1.0, opposed=1.0).verdict == "within noise"


@pytest.mark.parametrize(
    ("related", "opposed", "verdict"), [(2.0, 0.5, "holds"), (0.5, 2.0, "fails"), (1.0, 0.5, "within noise")]
)
def test_finding_4_is_about_both_relations(related: float, opposed: float, verdict: str) -> None:
    assert crossed(related, opposed).verdict == verdict


def test_finding_4_does_not_hold_by_opposed_tasks_alone() -> None:
    """8 of 10 pairs support it, but none of the two pairs of related tasks."""
    finding = crossed(1.0, 0.5, n=8, n_related=2)
    assert (finding.n_for, finding.n_within_noise, finding.verdict) == (8, 2, "mixed")
    assert crossed(1.0, 0.5, n=8, n_related=0).verdict == "cannot tell"


def test_finding_4_gives_its_effect_in_the_expected_direction() -> None:
    finding = crossed(2.0, 0.5)
    assert "on a related task moves labels farther away beyond noise in 5 of 5 pairs" in finding.sentence
    assert finding.effect is not None
    assert finding.effect.unit == "% in the expected direction"
    assert finding.effect.value == pytest.approx(75)  # half of the pairs +100%, half of them +50%


def layered(last: float, *, half: float = 0.05, random: float = 0.3, seeds: float | None = None) -> Finding:
    """Finding 5 of five tasks: similarity to the pretrained encoder of 1 at layer 0 and of `last` at layer 1."""
    rows = []
    for task in "abcde":
        start = {"encoder": "bert", "task": task, "layer": 1, "step": 0, "is_final": False}
        end = start | {"tuned_on": task, "step": 9, "is_final": True}
        rows.append(measured(start, "similarity_halves", 0.9))
        rows.append(measured(end | {"layer": 0}, "similarity_original", 1.0))
        rows.append(measured(end, "similarity_original", last))
        rows.append(measured(end, "similarity_over_examples_original", last, half))
        rows.append(measured(end, "similarity_random", random))
        rows += [] if seeds is None else [measured(end, "similarity_seed", seeds, other="1")]
    return judge(frame(rows))[4]


def test_finding_5_needs_a_change_larger_than_that_of_halves_of_train() -> None:
    assert layered(0.6).verdict == "holds"
    assert layered(0.93).verdict == "within noise"


def test_finding_5_needs_a_change_larger_than_that_between_seeds() -> None:
    assert layered(0.6, seeds=0.5).verdict == "within noise"
    assert layered(0.6, seeds=0.8).verdict == "holds"


def test_finding_5_needs_more_similarity_than_random_weights_have() -> None:
    assert layered(0.6, random=0.57).verdict == "within noise"
    assert layered(0.6, random=0.8).verdict == "fails"


def test_without_intervals_over_examples_there_is_no_answer() -> None:
    for finding in judge(made_up(wider=False)):
        assert finding.n_for == finding.n_against == 0
    assert "add uncertainty to the plan's measures" in judge(made_up())[2].sentence


def test_finding_5_says_that_one_layer_is_too_few() -> None:
    finding = judge(made_up(layers=(2,)))[4]
    assert "the similarity to the pretrained encoder was not measured at two or more layers" in finding.sentence


def test_two_labels_are_given_as_the_reason_for_no_similarity() -> None:
    table = made_up(tasks={"moods": ["good", "bad"]})
    table = table[~table.measure.str.startswith("similarity")]
    first, *_, fifth = judge(table)
    sentence = "Cannot tell: spatial similarity needs 3 labels, and there are 2."
    assert (first.sentence, fifth.sentence) == (sentence, sentence)


def test_a_frozen_study_cannot_tell_anything() -> None:
    found = judge(made_up(steps=()))
    assert {one.verdict for one in found} == {"cannot tell"}
    assert all(one.sentence.startswith("Cannot tell: ") for one in found)


def test_sentences_give_the_nulls_that_were_measured() -> None:
    first, second, _, _, fifth = judge(golden_beyond())
    assert " (with shuffled labels, the similarity after fine-tuning is 0.02 ± 0.19, mean ± standard" in first.sentence
    assert (
        "shuffled labels give 36 to 38 clusters on average and true labels 3 to 4 (ranges are over runs)"
        in second.sentence
    )
    assert "(with shuffled labels, the similarity after fine-tuning is −0.01 ± 0.15, mean ± stand" in fifth.sentence


def test_counts_that_are_the_same_in_all_runs_do_not_depend_on_the_run() -> None:
    table = golden_beyond()
    for measure, value in (("subsampled_clusters", 3), ("subsampled_clusters_null_mean", 36)):
        table.loc[table.measure == measure, "value"] = value
    second = judge(table)[1]
    assert "shuffled labels give 36 clusters on average and true labels 3" in second.sentence
    assert "over runs" not in second.sentence


def test_a_null_without_a_standard_deviation_is_called_a_mean() -> None:
    table = golden_beyond()
    first = judge(table[~table.measure.str.contains("_null_sd")])[0]
    assert "(with shuffled labels, the similarity after fine-tuning is 0.02, mean)" in first.sentence


# ---- margins ----


def test_the_margin_is_the_larger_one_of_examples_and_seeds() -> None:
    steady = change(Measurement(1.0, 0.7, 1.3), [Measurement(2.0, 1.6, 2.4), Measurement(2.0, 1.6, 2.4)])
    assert steady == Effect(1.0, 0.5)
    spread = change(Measurement(1.0, 0.7, 1.3), [Measurement(1.5, 1.1, 1.9), Measurement(2.5, 2.1, 2.9)])
    assert spread is not None
    assert spread.margin == pytest.approx(12.706 * 0.5, rel=1e-3)  # t of one degree of freedom × √½ / √2


def test_an_interval_that_was_cut_off_counts_by_its_whole_half() -> None:
    assert change(Measurement(0.9, 0.6, 1.0), [Measurement(0.9, 0.5, 1.0)]) == Effect(0.0, 0.5)


def test_without_an_interval_there_is_no_effect() -> None:
    assert change(Measurement(1.0), [Measurement(2.0, 1.0, 3.0)]) is None
    assert change(Measurement(1.0, 0.5, 1.5), [None]) is None


def test_counts_are_as_noisy_as_poisson_counts() -> None:
    assert count_change(9, [7]).margin == pytest.approx(1.96 * 4, rel=1e-3)


def test_no_harm_is_shown_only_with_enough_examples() -> None:
    def test(n: int, after: float) -> tuple[bool, bool]:
        found = no_harm((Measurement(0.9, n=n), None), [(Measurement(after, n=n), None)])
        assert found is not None
        return found.is_shown, found.is_harm

    assert test(100, 0.9) == (False, False)
    assert test(10_000, 0.9) == (True, False)
    assert test(10_000, 0.88) == (False, True)
    assert test(100_000, 0.89) == (True, True)  # a fall that is certain, but smaller than the margin
    assert no_harm((None, None), [(Measurement(0.9, n=9), None)]) is None


# ---- the rule that all findings share ----


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        *(((4, 0, 0), "cannot tell"), ((5, 0, 0), "holds"), ((5, 0, 1), "holds"), ((4, 0, 1), "mixed")),
        *(((0, 5, 0), "fails"), ((3, 2, 0), "mixed"), ((3, 0, 3), "within noise"), ((0, 0, 5), "within noise")),
        *(((9, 3, 0), "mixed"), ((15, 3, 2), "holds")),  # 9 : 3 has p = 0.073
    ],
)
def test_three_quarters_of_the_pairs_and_a_sign_test_decide(counts: tuple[int, int, int], verdict: str) -> None:
    assert verdict_of(*counts) == verdict


def test_the_sign_test_is_that_of_a_fair_coin() -> None:
    assert sign_test(9, 3) == pytest.approx((220 + 66 + 12 + 1) / 4096)


def test_the_interval_of_the_median_resamples_encoders_and_tasks() -> None:
    """If all tasks of an encoder agree, more tasks do not make the interval narrower."""
    few, many = (
        median_effect(
            [
                Answer(Pair(f"e{e}", f"t{t}", f"t{t}"), "for", "", Effect(float(e), 0.0))
                for e in range(5)
                for t in range(n)
            ],
            "",
        )
        for n in (2, 40)
    )
    assert few is not None
    assert many is not None
    assert (few.value, many.value) == (2.0, 2.0)
    assert (many.low, many.high) == (few.low, few.high) == (0.0, 4.0)


def test_a_p_value_that_cannot_be_small_is_not_given() -> None:
    found = judge(study({SIMILARITY: ((0.8, 0.1), [(0.5, 0.1)])}, tasks=("a", "b", "c", "d")))[0]
    assert found.p_value is None
    assert "p =" not in found.sentence
    assert judge(study({SIMILARITY: ((0.8, 0.1), [(0.5, 0.1)])}))[0].p_value == pytest.approx(1 / 32)


def test_every_finding_says_its_rule() -> None:
    for finding in judge(made_up()):
        assert finding.rule.startswith("A pair ")
        assert all(text in finding.rule for text in ("support", "contradicts", "within noise", "no answer"))
        assert finding.rule.endswith("With fewer than 5 pairs with an answer: cannot tell.")


def test_a_changed_rule_needs_another_version() -> None:
    """If this fails because a rule changed: raise VERSION, keep the rule before in earlier_rules, put the hash here."""
    assert (VERSION, rules_hash()) == (2, "e45ab23f")
    assert list(RULES) == [1, 2, 3, 4, 5]

"""The three sentences at the top of the page: from the data, in plain words, and honest about noise."""

import pandas as pd
import pytest

from closerlook.report.brief import brief
from closerlook.report.figures.glance import at_a_glance
from closerlook.study.readings import index_results
from tests.report.studies import golden_beyond, made_up


def sentences(table: pd.DataFrame, manifest: dict[str, object] | None = None) -> list[str]:
    return [one.lead + one.rest for one in brief(index_results(table, manifest))]


def with_margin(table: pd.DataFrame, margin: float) -> pd.DataFrame:
    """The table with intervals over examples of that half-width around the mean distances."""
    is_mean = table.measure == "mean_minimum_distance"
    low, high = table.value - margin, table.value + margin
    return table.assign(ci_low=low.where(is_mean, table.ci_low), ci_high=high.where(is_mean, table.ci_high))


def test_changes_are_counted_by_their_noise() -> None:
    accuracy, distances, layers = sentences(with_margin(made_up(["a", "b"], wider=True), 0.1))
    assert accuracy == (
        "Probe accuracy stayed within noise: it stayed within noise in 4 of 4 pairs of encoder and task "
        "(median change: +10.0 points)."
    )
    assert distances == (
        "Labels moved apart: the mean distance of a label to the nearest other label grew beyond noise in 4 of 4 pairs "
        "of encoder and task (median: 4 times the distance before); divided by the size of the space (RMS radius), it "
        "grew in 4 of 4."
    )
    assert layers == (
        "Upper layers changed more than lower ones: beyond noise in 4 of 4 pairs of encoder and task; the similarity "
        "of the last layer to the pretrained encoder is 0.40 (median); 1 would mean that labels kept their arrangement."
    )


def test_a_change_within_its_margin_is_not_called_a_movement() -> None:
    assert sentences(with_margin(made_up(), 5.0))[1].startswith("Labels kept their distances within noise: ")


def test_unknown_noise_is_said_first() -> None:
    assert sentences(made_up())[1].startswith("Labels moved apart (noise unknown): ")
    assert "beyond noise" not in sentences(made_up())[1]


def test_different_directions_are_both_named() -> None:
    accuracy = sentences(golden_beyond())[0]
    assert accuracy.startswith("Probe accuracy rose in some cases and fell in others: it rose beyond noise in 1 of 3 ")
    assert "fell in 1 and stayed within noise in 1" in accuracy


@pytest.mark.parametrize("share", [3, 4])
def test_mostly_needs_three_quarters(share: int) -> None:
    table = with_margin(made_up(tasks={f"t{at}": ["x", "y", "z"] for at in range(5)}), 0.1)
    still = [f"t{at}" for at in range(share, 5)]
    is_still = table.task.isin(still) & (table.measure == "mean_minimum_distance")
    table = table.assign(
        value=table.value.where(~is_still, 1.0),
        ci_low=table.ci_low.where(~is_still, 0.9),
        ci_high=table.ci_high.where(~is_still, 1.1),
    )
    lead = brief(index_results(table))[1].lead
    assert lead == ("Labels mostly moved apart" if share == 4 else "Labels moved apart in some cases")


def test_a_single_pair_has_its_numbers() -> None:
    accuracy, distances, _ = sentences(with_margin(made_up(tasks={"x": ["a", "b", "c"]}, wider=True), 0.1))
    assert accuracy == "Probe accuracy stayed within noise: 80.0 → 90.0 % (+10.0 points; noise: ± 13.9)."
    assert distances.endswith(" is 1 → 4 (noise: ± 0.14); in RMS radii: 0.500 → 2.000.")


def test_pairs_are_named_after_what_was_compared() -> None:
    table = made_up(["mine"])
    assert "2 pairs of training and task" in sentences(table, {"runs": {"mine": {"base": "bert-tiny"}}})[0]
    methods = made_up(["e", "e (lora 4)"])
    methods["method"] = methods.encoder.map({"e": "full", "e (lora 4)": "lora 4"})
    assert "4 combinations of encoder, method and task" in sentences(methods)[0]


def test_without_fine_tuning_nothing_is_called_a_change() -> None:
    table = made_up(["a", "b"], steps=())
    best = (table.encoder == "b") & (table.task == "colours")
    for measure, value in (("accuracy", 0.9), ("mean_relative_minimum_distance", 0.7), ("is_separable", 1.0)):
        table.loc[best & (table.measure == measure), "value"] = value
    assert sentences(table) == [
        "The highest probe accuracy is 80.0 to 90.0 %, depending on the task: highest on colours (b, layer 2), lowest "
        "on animals (a, layer 2).",
        "1 of 4 spaces are linearly separable by label at the last layer (4 pairs of encoder and task).",
        "Labels are farthest apart in b on colours: the mean distance to the nearest other label is 0.700 RMS radii of "
        "the space; it is lowest in a on animals: 0.500.",
    ]
    assert sentences(made_up(steps=()))[0] == (
        "The highest probe accuracy is 80.0 % on animals (bert-tiny, layer 2), and the same on all 2 tasks."
    )


def test_what_was_not_measured_is_left_out() -> None:
    table = made_up()
    assert sentences(table[table.measure != "accuracy"])[0].startswith("Labels moved apart")
    assert sentences(table[table.measure == "n_points"]) == []


def test_the_picture_has_a_row_for_each_pair_and_says_what_is_noise() -> None:
    figure = at_a_glance(index_results(with_margin(made_up(["a", "b"], wider=True), 0.1)))[0]
    rows = figure.data.set_index(["measure", "row"])
    assert list(dict.fromkeys(figure.data.row)) == ["a · animals", "a · colours", "b · animals", "b · colours"]
    accuracy = rows.loc[("accuracy: change in points", "a · animals")]
    assert (accuracy.value, accuracy.noise) == (10.0, "within noise")
    distance = rows.loc[("label distance: after ÷ before", "b · colours")]
    assert (distance.value, distance.noise) == (4.0, "beyond noise")
    assert distance.low == pytest.approx(4 - 0.1 * 2**0.5, abs=1e-3)


def test_the_picture_without_fine_tuning_shows_levels() -> None:
    figure = at_a_glance(index_results(made_up(steps=())))[0]
    assert list(dict.fromkeys(figure.data.measure)) == ["accuracy, %", "label distance, RMS radii"]
    assert set(figure.data.noise) == {""}

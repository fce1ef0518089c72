"""What stands in a report beyond the paper, worked out by hand from golden.csv and beyond.csv."""

import numpy as np
import pandas as pd
import pytest

from closerlook.report import beyond, chance, foresight, labels, probing, shape, sureness
from closerlook.report.comparison import measures_table, shape_table
from closerlook.report.figures import Figure, draw
from closerlook.report.printing import all_tables, to_csv
from closerlook.report.tables import Column, Measured, Term, show_value
from closerlook.study.readings import Results, Run, index_results
from tests.report.studies import frame, golden, golden_beyond, made_up

SECOND = Run("bert-tiny", "ps-fxn", 1, "ps-fxn")


@pytest.fixture(scope="module")
def results() -> Results:
    return index_results(golden_beyond())


@pytest.fixture(scope="module")
def figures(results: Results) -> dict[tuple[str, str, str], Figure]:
    return {(figure.kind, figure.encoder, figure.task): figure for figure in draw(results)}


def rows(figure: Figure, *columns: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in figure.data[list(columns)].itertuples(index=False)]


# ---- against chance ----


def test_what_chance_gives_stands_beside_headline_numbers(results: Results) -> None:
    accuracy, clusters, distances = (
        make(results).shown()[0] for make in (probing.accuracy_table, probing.clusters_table, probing.distance_table)
    )
    assert accuracy[6:8] == ["0.80 [0.70, 0.84] (chance 0.02 ± 0.15)", "0.55 ± 0.07 (chance 0.02 ± 0.19)"]
    assert clusters[4:6] == ["5 (chance 40.0 ± 4.0 against 5.0)", "3.5 ± 0.7 (chance 37.0 ± 4.0 against 3.5)"]
    assert distances[2:4] == ["1.00 (chance 0.40 ± 0.10 against 1.20)", "3.25 ± 0.35"]  # of 80 points
    assert "on at most 80 points; against: true labels of these points" in probing.clusters_table(results).note


def test_chance_stands_against_nothing_where_it_was_tried_on_all_points() -> None:
    table = golden_beyond()
    table.loc[table.measure.str.startswith("subsampled"), "n"] = 100
    assert probing.clusters_table(index_results(table)).shown()[0][4] == "5 (chance 40.0 ± 4.0)"


def test_the_summary_has_a_row_for_chance(results: Results) -> None:
    shown = {row[1]: row[2:] for row in probing.summary_table(results).shown() if row[0] == "bert-tiny"}
    assert shown["similarity by chance"] == ["0.02 → 0.02", "–", "–"]
    assert shown["clusters by chance"] == ["40 → 37", "–", "–"]
    assert shown["minimum distance by chance"] == ["0.40", "–", "–"]


def test_similarity_against_chance_and_against_other_weights(results: Results) -> None:
    table = chance.similarity_table(results)
    assert [column.title for column in table.columns[3:]] == [
        *("similarity", "by chance", "p"),
        *("the original", "another seed", "random weights", "other encoders"),
    ]
    shown = table.shown()
    assert shown[0] == [
        *("bert-tiny", "ps-fxn", "before", "0.80 [0.70, 0.84]", "0.02 ± 0.15", "0.0010"),
        *("–", "–", "0.30 [0.10, 0.50]", "0.40 [0.20, 0.60]"),
    ]
    assert shown[1][2:] == [
        *("after", "0.55 ± 0.07", "0.02 ± 0.19", "0.0600"),  # of two seeds the mean, and the higher p
        *("0.60 ± 0.14", "0.90 [0.80, 1.00]", "0.20 [0.00, 0.40]", "–"),
    ]


def test_two_encoders_are_compared_once_and_count_for_both(results: Results) -> None:
    assert chance.similarity_table(results).shown()[-1] == [
        *("bert-mini", "ps-fxn", "before", "–", "–", "–", "–", "–", "–", "0.40 [0.20, 0.60]")
    ]


def test_separability_with_true_and_shuffled_labels(results: Results) -> None:
    assert [row[2:] for row in chance.separability_table(results).shown()] == [
        ["before", "75.0", "25.0 ± 5.0", "0.050", "0.40", "90.0", "80", "5.0", "40.0 ± 4.0", "−8.8", "0.25"],
        ["after", "100.0", "100.0", "1.000", "–", "–", "80", "3.5 ± 0.7", "37.0 ± 4.0", "−8.5", "–"],
    ]


def test_chance_in_words(results: Results) -> None:
    assert chance.similarity_words(results) == (
        "Train and test are more alike than labels paired at random would make them (p ≤ 0.05) in 1 of 1 before and 0 "
        "of 1 after fine-tuning; random pairings give 0.02 ± 0.17."
    )
    assert chance.weights_words(results) == (
        "Random weights in the same encoder place the labels alike by 0.30 before and 0.20 after fine-tuning, in the "
        "mean: so much of a similarity needs no training, and chance is the lower bar. Two seeds of the same "
        "fine-tuning end alike by 0.90."
    )
    assert chance.separability_words(results) == (
        "A hyperplane separates 87.5% of the pairs of true labels, and 62.5% of shuffled ones; in 1 of 2 spaces all "
        "pairs separate under shuffled labels too, and being separable says nothing there."
    )


def test_similarities_are_drawn_over_the_band_of_chance(figures: dict[tuple[str, str, str], Figure]) -> None:
    figure = figures["chance", "bert-tiny", ""]
    found = rows(figure, "comparison", "task", "state", "value", "chance", "chance_low", "chance_high", "p")
    assert found[0] == ("train with test", "ps-fxn", "before", 0.8, 0.02, -0.28, 0.32, 0.001)
    assert found[1] == ("train with test", "ps-fxn", "after", 0.55, 0.02, -0.36, 0.4, 0.06)
    assert found[6] == ("original", "ps-fxn", "after", 0.6, -0.01, -0.31, 0.29, 0.01)
    assert [row[0] for row in found[9:]] == ["seed", "random", "random", "encoder"]
    assert "4 of 4 similarities lie above the band that chance gives" in figure.alt
    assert ("chance", "bert-mini", "") not in figures  # of which no null was measured


def test_chance_has_columns_of_its_own_in_csv(results: Results) -> None:
    head, first, *_ = to_csv(probing.clusters_table(results)).splitlines()
    assert "clusters before,clusters before chance,clusters before chance_sd,clusters before against,clusters a" in head
    assert ",5,40.0,4.0,5.0,3.5," in first


def test_chance_is_shown_with_and_without_its_deviation() -> None:
    column = Column("x")
    assert show_value(Measured(0.5, chance=0.1, chance_sd=0.25), column) == "0.50 (chance 0.10 ± 0.25)"
    assert show_value(Measured(0.5, 0.1, chance=-0.1).scaled(10), Column("x", digits=0)) == "5 ± 1 (chance −1)"


@pytest.mark.parametrize(("p", "text"), [(0.00001, "< 0.0001"), (0.0, "< 0.0001"), (0.0001, "0.0001"), (1.0, "1.0000")])
def test_p_values_are_never_nothing(p: float, text: str) -> None:
    assert show_value(p, Column("p", digits=4, level=True)) == text


# ---- how sure ----


def test_over_seeds_mean_deviation_and_students_interval(results: Results) -> None:
    assert [row[1:] for row in sureness.seeds_table(results).shown()] == [
        ["ps-fxn", "accuracy of probes, %", "2", "76.000", "1.414", "63.294", "88.706"],  # 12.706 to each side
        ["ps-fxn", "accuracy of its own head, %", "2", "82.000", "2.828", "56.588", "107.412"],
        ["ps-fxn", "clusters", "2", "3.500", "0.707", "−2.853", "9.853"],
        ["ps-fxn", "mean minimum distance", "2", "3.250", "0.354", "0.073", "6.427"],
        ["ps-fxn", "train–test similarity", "2", "0.550", "0.071", "−0.085", "1.185"],
        ["ps-fxn", "similarity to the original", "2", "0.600", "0.141", "−0.671", "1.871"],
    ]
    assert sureness.seeds_words(results) == ""


def test_one_seed_is_said_in_a_line_without_a_table() -> None:
    results = index_results(made_up(wider=True))
    assert not sureness.seeds_table(results)
    assert sureness.seeds_words(results).startswith("Every fine-tuning was run with one seed")
    assert sureness.seeds_words(index_results(made_up(steps=()))) == ""


def test_intervals_over_examples_for_each_state_and_seed(results: Results) -> None:
    assert [row[2:] for row in sureness.examples_table(results).shown()] == [
        ["before", "20", "1.000", "+0.100", "0.80 [0.70, 0.84]", "0.80 [0.60, 0.90]", "–", "–"],
        [
            *("after, seed 1", "20", "3.500 [3.000, 4.000]", "+0.300"),
            *("0.50 [0.40, 0.54]", "0.50 [0.20, 0.70]", "0.70 [0.60, 1.00]", "0.70 [0.50, 0.80]"),
        ],
    ]


# ---- labels ----


def test_labels_that_moved_surely_and_labels_of_few_points_are_marked(results: Results) -> None:
    table = labels.labels_table(results)
    assert [row[2:] for row in table.shown()] == [
        ["A", "30", "1.00", "4.50 ± 0.71", "+3.50", "0.0300", "* surely farther"],
        ["C †", "30", "2.00", "2.25 ± 0.35", "+0.25", "0.2000", "† 4 points in 128 dimensions; fewer than 5"],
        ["B", "30", "1.00", "1.00 ± 0.35", "0.00", "0.5000", ""],
    ]
    assert "adjusted by Holm's method for all labels of the task" in table.note


def test_a_label_is_sure_only_if_it_is_in_every_seed(results: Results) -> None:
    first = labels.marks_of(results, "bert-tiny", "ps-fxn", [Run("bert-tiny", "ps-fxn", 0, "ps-fxn")])
    both = labels.marks_of(results, "bert-tiny", "ps-fxn", [Run("bert-tiny", "ps-fxn", 0, "ps-fxn"), SECOND])
    assert [first.of(label) for label in "ABC"] == ["*", "", "*†"]
    assert [both.of(label) for label in "ABC"] == ["*", "", "†"]
    assert both.told() == (
        "* a change that is sure: p ≤ 0.05 after Holm's correction for 3 labels (1 of them). "
        "† few points: C (4 points)."
    )


@pytest.mark.parametrize("missing", [False, True])
def test_a_label_that_seeds_move_both_ways_or_do_not_test_is_not_sure(missing: bool) -> None:
    table = golden_beyond()
    sure = (table.measure == "minimum_distance_change_p_value") & (table.label == "A") & (table.tuned_on == "ps-fxn")
    ends = (table.measure == "minimum_distance") & (table.label == "A") & (table.tuned_on == "ps-fxn")
    if missing:
        table = table[~(sure & (table.seed == 1))]
    else:
        table.loc[ends & (table.seed == 1) & table["is_final"], "value"] = 0.5
    found = index_results(table)
    both = labels.marks_of(found, "bert-tiny", "ps-fxn", [Run("bert-tiny", "ps-fxn", 0, "ps-fxn"), SECOND])
    assert both.p["A"] <= 0.05
    assert not both.is_sure("A")


def test_without_tests_nothing_is_marked() -> None:
    results = index_results(golden())
    marks = labels.marks_of(results, "bert-tiny", "ps-fxn", [Run("bert-tiny", "ps-fxn", 0, "ps-fxn")])
    assert (marks.told(), marks.of("A")) == ("", "")
    assert labels.labels_table(results).titles()[-1] == "distance to the nearest other label change"


def test_the_chart_of_distances_bears_the_marks(figures: dict[tuple[str, str, str], Figure]) -> None:
    figure = figures["distances", "bert-tiny", "ps-fxn"]
    assert [(toggle.name, toggle.remark, toggle.told) for toggle in figure.toggles] == [
        ("A", "+3.50 *", "p = 0.03 (Holm)"),
        ("C", "+0.25 †", "p = 0.2 (Holm); 4 points in 128 dimensions; fewer than 5"),
        ("B", "+0.00", "p = 0.5 (Holm)"),
    ]
    assert "Holm's correction for 3 labels" in figure.caption
    assert rows(figure, "label", "step", "low", "high", "p", "few")[2] == ("A", 20, 4, 5, 0.03, "")
    assert "† few points: C (4 points)." in figures["heat", "bert-tiny", "ps-fxn"].caption


def test_one_seed_shows_its_intervals_over_examples(results: Results) -> None:
    table = golden_beyond()
    figure = next(one for one in draw(index_results(table[table.seed == 1])) if one.kind == "distances")
    assert rows(figure, "label", "step", "low", "high")[1] == ("A", 20, 4, 6)
    assert "Bars: 95% interval over examples." in figure.caption


def test_surely_moved_labels_are_counted_beside_all(results: Results) -> None:
    table = probing.distance_table(results)
    assert [column.title for column in table.columns[-2:]] == ["farther", "closer"]
    assert table.shown()[0][-4:] == ["3", "0", "2", "0"]


def test_the_note_of_the_distances_explains_which_changes_are_significant(results: Results) -> None:
    assert "after Holm's correction" in probing.distance_table(results).note
    assert "Holm" not in probing.distance_table(index_results(golden())).note


def test_a_null_alone_is_enough_for_the_table_of_similarities() -> None:
    table = golden_beyond()
    table = table[~table.measure.str.contains("_seed|_random|_encoder")]
    assert chance.similarity_table(index_results(table)).shown()[0][3:5] == ["0.80 [0.70, 0.84]", "0.02 ± 0.15"]


# ---- the shape ----


def test_the_panel_before_and_after_with_its_meaning(results: Results) -> None:
    table = shape.shape_table(results)
    assert table.titles() == ["", "measure", "encoder", "ps-fxn", "ps-role", "pos"]
    names = [one.name for row in table.rows if isinstance(one := row[1], Term)]
    assert [(row[0], name, *row[2:4]) for row, name in zip(table.shown(), names, strict=True)] == [
        ("collapse", "NC1", "bert-tiny", "0.80 → 0.30"),
        ("collapse", "NC1", "bert-mini", "0.90"),
        ("dimension", "participation ratio", "bert-tiny", "10.2 → 6.5"),
        ("label fit", "GDV", "bert-tiny", "−0.10"),
        ("overlap", "overlapping pairs", "bert-tiny", "1 → 0"),
    ]
    assert table.shown()[0][1] == "NC1: spread within labels over spread between them; 0: each label is a point"
    assert to_csv(table).splitlines()[0] == ",measure,measure meaning,encoder,ps-fxn,ps-role,pos"


def test_a_single_encoder_needs_no_column() -> None:
    assert shape.shape_table(index_results(made_up(wider=True))).titles()[:3] == ["", "measure", "animals"]


def test_every_measure_of_the_panel_has_a_line() -> None:
    from closerlook.geometry.panel import describe_space

    flat = describe_space([[0.0], [1.0], [8.0], [9.0]], ["a", "a", "b", "b"]).flat()
    shown = {
        "largest_cluster_share" if one.measure == "mean_largest_cluster_share" else one.measure for one in shape.PANEL
    }
    assert set(flat) == shown


def test_point_by_point_to_the_original_seeds_weights_and_encoders(results: Results) -> None:
    assert [row[2:] for row in shape.alike_table(results).shown()] == [
        ["CKA", "0.60 ± 0.14", "0.80", "0.10", "0.20", "0.30"],
        ["RSA", "0.60", "–", "–", "–", "–"],
        ["CKA", "–", "–", "–", "–", "0.30"],
    ]


def test_likeness_by_layer_is_the_mean_over_seeds(figures: dict[tuple[str, str, str], Figure]) -> None:
    assert rows(figures["alike", "bert-tiny", ""], "measure", "label", "layer", "value", "low", "high", "seeds") == [
        ("cka", "ps-fxn", 0, 1, 1, 1, 1),
        ("cka", "ps-fxn", 1, 0.9, 0.9, 0.9, 1),
        ("cka", "ps-fxn", 2, 0.6, 0.5, 0.7, 2),
        ("rsa", "ps-fxn", 2, 0.6, 0.6, 0.6, 1),
    ]


# ---- what can be foreseen ----


def test_each_space_is_there_once_with_both_similarities(figures: dict[tuple[str, str, str], Figure]) -> None:
    assert rows(figures["foresight", "", ""], "task", "state", "seed", "halves", "similarity") == [
        ("ps-fxn", "before", 0, 0.85, 0.8),
        ("ps-fxn", "after", 0, 0.7, 0.6),
        ("ps-fxn", "after", 1, 0.6, 0.5),
        ("ps-role", "before", 0, 0.75, 0.7),
        ("ps-role", "after", 0, 0.74, 0.72),
        ("pos", "before", 0, 0.96, 0.95),
        ("pos", "after", 0, 0.8, 0.7),
    ]


def test_how_well_halves_foretell_the_divergence(results: Results) -> None:
    table = foresight.foresight_table(results)
    assert [row[:4] for row in table.shown()] == [
        ["halves", "before", "3", "3"],
        ["halves", "after", "4", "3"],
        ["halves", "both", "7", "3"],
    ]
    both = table.rows[-1]
    assert both[4] == pytest.approx(24.5 / (28 * 27.5) ** 0.5)  # of the ranks, two tied; three pairs have no interval
    assert both[6] == pytest.approx(0.43 / 7)
    six = foresight.foresight_table(index_results(_halves([(0.1 * at, 0.1 * at + 0.01 * at % 2) for at in range(6)])))
    assert isinstance(six.rows[0][4], Measured)


def test_foresight_in_a_sentence(results: Results) -> None:
    assert foresight.foresight_words(results) == (
        "Over 4 spaces after fine-tuning, of 3 pairs of encoder and task, both similarities are known; 6 pairs are "
        "needed to say whether halves of train foretell how far test diverges."
    )
    told = foresight.foresight_words(
        index_results(_halves([(0.1 * at, 0.1 * at + 0.01 * (at % 2)) for at in range(8)]))
    )
    assert told.startswith("Over 8 spaces before fine-tuning, of 8 pairs of encoder and task, the similarity of the ")
    assert told.endswith("So the divergence can be foreseen, in part, without test examples.")


def test_fine_tuning_itself_is_no_foresight() -> None:
    """Both similarities fall alike in all, but within either state one says nothing of the other."""
    rng = np.random.default_rng(0)
    before = _halves([*zip(0.9 + rng.normal(size=8) / 100, 0.9 + rng.normal(size=8) / 100, strict=True)])
    after = _halves([*zip(0.5 + rng.normal(size=8) / 100, 0.5 + rng.normal(size=8) / 100, strict=True)])
    after = after.assign(tuned_on=after.task, step=9, is_final=True)
    told = foresight.foresight_words(index_results(pd.concat([before, after])))
    assert told.endswith("So in this study halves of train do not foretell the divergence.")


def test_halves_that_foretell_nothing_are_said_to() -> None:
    values = [(0.9, 0.5), (0.8, 0.6), (0.7, 0.5), (0.6, 0.6), (0.5, 0.5), (0.4, 0.6)]
    table = _halves(values)
    assert foresight.foresight_words(index_results(table)).endswith(
        "So in this study halves of train do not foretell the divergence."
    )


def test_too_few_spaces_say_so() -> None:
    assert foresight.foresight_words(index_results(_halves([(0.9, 0.5), (0.8, 0.6)]))) == (
        "Over 2 spaces before fine-tuning, of 2 pairs of encoder and task, both similarities are known; 6 pairs are "
        "needed to say whether halves of train foretell how far test diverges."
    )
    assert not foresight.foresight_table(index_results(_halves([(0.9, 0.5), (0.8, 0.6)])))


def _halves(values: list[tuple[float, float]]):  # type: ignore[no-untyped-def]
    place = {"encoder": "e", "layer": 1, "step": 0, "is_final": False}
    return frame(
        place | {"task": f"t{at}", "measure": measure, "value": value}
        for at, (halves, alike) in enumerate(values)
        for measure, value in (("similarity_halves", halves), ("similarity_train_test", alike), ("n_clusters", 2.0))
    )


# ---- all of it ----


def test_an_older_table_has_none_of_these_parts() -> None:
    results = index_results(golden())
    kinds = {figure.kind for figure in draw(results)}
    assert beyond.parts(results, kinds) == []
    names = [table.name for table in all_tables(results)]
    assert not {"chance", "separability", "seeds", "examples", "foresight", "shape", "alike"} & set(names)
    assert not {"chance", "foresight", "alike"} & kinds


def test_every_part_is_there_where_all_was_measured(results: Results) -> None:
    found = beyond.parts(results, {figure.kind for figure in draw(results)})
    assert [(part.name, part.kinds) for part in found] == [
        *(("chance", ("chance",)), ("sure", ()), ("foresight", ("foresight",)), ("shape", ("alike",)))
    ]


def test_two_studies_have_chance_and_shape_side_by_side(results: Results) -> None:
    studies = [index_results(golden()), results]
    shown = {(row[1], row[2]): row[3:] for row in measures_table(studies).shown() if row[0] == "bert-tiny"}
    assert shown["ps-fxn", "clusters"] == [
        "5",
        "3",
        "5 (chance 40.00 ± 4.00 against 5.00)",
        "3.50 ± 0.71 (chance 37.00 ± 4.00 against 3.50)",
        "+0.50",
    ]
    assert shown["ps-fxn", "similarity to random weights"][2:4] == ["0.30 [0.10, 0.50]", "0.20 [0.00, 0.40]"]
    assert shown["ps-fxn", "separable pairs of labels, %"][2:4] == ["75 (chance 25.00 ± 5.00)", "100 (chance 100.00)"]
    assert shape_table(studies).shown()[0] == [*("bert-tiny", "ps-fxn", "NC1", "–", "–", "0.800", "0.300 ± 0.141", "–")]

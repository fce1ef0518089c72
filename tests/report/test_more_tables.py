"""The sections beyond the paper; expected values are worked out by hand from golden.csv and beyond.csv."""

import numpy as np
import pandas as pd
import pytest

from closerlook.report import divergence, finding_tables, labels, nulls, sensitivity, shape, uncertainty
from closerlook.report.comparison import measures_table, shape_table
from closerlook.report.export import all_tables, to_csv
from closerlook.report.figures import Figure
from closerlook.report.outline import draw_figures
from closerlook.report.page import group_figures, page_parts
from closerlook.report.tables import Column, Term, show_value
from closerlook.study.findings import judge_results
from closerlook.study.readings import Measurement, Results, Run, index_results
from closerlook.study.registry import MEASURES
from tests.report.studies import frame, golden, golden_beyond, made_up

SECOND = Run("bert-tiny", "ps-fxn", 1, "ps-fxn")


@pytest.fixture(scope="module")
def results() -> Results:
    return index_results(golden_beyond())


@pytest.fixture(scope="module")
def figures(results: Results) -> dict[tuple[str, str, str], Figure]:
    return {(figure.kind, figure.encoder, figure.task): figure for figure in draw_figures(results)}


def rows(figure: Figure, *columns: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in figure.data[list(columns)].itertuples(index=False)]


# ---- shuffled labels ----


def test_nulls_are_shown_with_the_numbers_of_the_findings(results: Results) -> None:
    accuracy, clusters, distances = (
        make(results).shown()[0]
        for make in (finding_tables.accuracy_table, finding_tables.clusters_table, finding_tables.distance_table)
    )
    assert accuracy[6:8] == [
        "0.80 [0.70, 0.84] (shuffled labels 0.02 ± 0.15)",
        "0.55 ± 0.07 (shuffled labels 0.02 ± 0.19)",
    ]
    assert clusters[4:6] == [
        "5 (subsample: shuffled labels 40.0 ± 4.0, subsample: true labels 5.0)",
        "3.5 ± 0.7 (subsample: shuffled labels 37.0 ± 4.0, subsample: true labels 3.5)",
    ]
    assert distances[2:4] == [
        "1.00 (subsample: shuffled labels 0.40 ± 0.10, subsample: true labels 1.20)",
        "3.25 ± 0.35",
    ]
    note = finding_tables.clusters_table(results).note
    assert "Shuffled labels for clusters: the labels are shuffled among the points." in note
    assert "on a subsample of at most 80 points, in which rare labels may be missing." in note
    assert "distances" not in note


def test_a_null_on_all_points_needs_no_second_value_of_the_true_labels() -> None:
    table = golden_beyond()
    table.loc[table.measure.str.startswith("subsampled"), "n"] = 100
    everything = index_results(table)
    clusters = finding_tables.clusters_table(everything)
    assert clusters.shown()[0][4] == "5 (shuffled labels 40.0 ± 4.0)"
    assert "subsample" not in clusters.note
    titles = [row[1] for row in finding_tables.summary_table(everything).shown()]
    assert "clusters (shuffled labels)" in titles
    assert not [title for title in titles if "subsample" in title]


def test_the_summary_has_rows_for_null_labels(results: Results) -> None:
    shown = {row[1]: row[2:] for row in finding_tables.summary_table(results).shown() if row[0] == "bert-tiny"}
    assert shown["train–test similarity (shuffled labels)"] == ["0.02 → 0.02", "–", "–"]
    assert shown["clusters of subsampled points (true labels)"] == ["5.0 → 3.5", "–", "–"]
    assert shown["clusters of subsampled points (shuffled labels)"] == ["40.0 → 37.0", "–", "–"]
    assert shown["mean minimum distance of subsampled points (true labels)"] == ["1.20", "–", "–"]
    assert shown["mean minimum distance of subsampled points (shuffled labels)"] == ["0.40", "–", "–"]


def test_similarity_compared_with_null_labels_and_other_weights(results: Results) -> None:
    table = nulls.similarity_table(results)
    assert [column.title for column in table.columns[3:]] == [
        *("similarity", "shuffled labels", "p"),
        *("the pretrained encoder", "another seed", "random weights", "other encoders"),
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
    assert nulls.similarity_table(results).shown()[-1] == [
        *("bert-mini", "ps-fxn", "before", "–", "–", "–", "–", "–", "–", "0.40 [0.20, 0.60]")
    ]


def test_a_null_just_below_zero_has_no_sign() -> None:
    table = golden_beyond()
    table.loc[table.measure.str.startswith("similarity_null_mean"), "value"] = -0.001
    results = index_results(table)
    assert "the similarity, before and after together, is 0.00 ±" in nulls.similarity_text(results)
    assert "with shuffled labels, the similarity after fine-tuning is 0.00 ±" in judge_results(results)[0].sentence


def test_separability_with_true_and_shuffled_labels(results: Results) -> None:
    assert [row[2:] for row in nulls.separability_table(results).shown()] == [
        ["before", "75.0", "25.0 ± 5.0", "0.050", "0.40", "90.0", "80", "5.0", "40.0 ± 4.0", "−8.8", "0.25"],
        ["after", "100.0", "100.0", "1.000", "–", "–", "80", "3.5 ± 0.7", "37.0 ± 4.0", "−8.5", "–"],
    ]


def test_nulls_in_sentences(results: Results) -> None:
    assert nulls.similarity_text(results) == (
        "Train and test are significantly more similar than with shuffled labels (p ≤ 0.05) for 1 of 1 pair of "
        "encoder and task before fine-tuning and for 0 of 1 after it; with shuffled labels, the similarity, before "
        "and after together, is 0.02 ± 0.17 (mean ± standard deviation)."
    )
    assert nulls.weights_text(results) == (
        "On train, the mean similarity of the encoder to the same encoder with random weights is 0.30 before "
        "fine-tuning and 0.20 after it. So even an encoder with random weights is this similar to the pretrained or "
        "fine-tuned encoder, whereas shuffled labels give a similarity of 0.00: random weights are the stricter "
        "baseline. The mean similarity of two encoders that were fine-tuned on the same task with different seeds is "
        "0.90."
    )
    assert nulls.separability_text(results) == (
        "On train, on average over 2 spaces (1 pair of encoder and task, before and after fine-tuning), 87.5% of the "
        "pairs of labels can be separated by a hyperplane; after shuffling the labels among the points, 62.5% still "
        "can. In 1 of 2 spaces, all pairs are separable with shuffled labels too: there, separability says nothing "
        "about the labels."
    )


def test_baselines_of_one_state_are_not_called_before_and_after() -> None:
    table = golden_beyond()
    results = index_results(table[(table.step == 0) | ~table.measure.str.contains("_null_|_random")])
    assert "; with shuffled labels, the similarity is 0.02 ± 0.15 (mean ± sta" in nulls.similarity_text(results)
    assert nulls.weights_text(results).startswith(
        "On train, the mean similarity of the encoder to the same encoder with random weights is 0.30 before "
        "fine-tuning. So even an encoder with random weights is this similar to the pretrained encoder, whereas"
    )
    assert nulls.separability_text(results).startswith("On train, 75.0% of the pairs of labels can be separated by a")


def test_random_weights_are_called_stricter_only_if_they_are() -> None:
    table = golden_beyond()
    results = index_results(table.assign(value=table.value.mask(table.measure == "similarity_random", -0.1)))
    assert "stricter" not in nulls.weights_text(results)


def test_similarities_are_drawn_with_the_band_of_their_null(figures: dict[tuple[str, str, str], Figure]) -> None:
    figure = figures["nulls", "bert-tiny", ""]
    found = rows(figure, "comparison", "task", "state", "value", "null_mean", "null_low", "null_high", "p")
    assert found[0] == ("train and test", "ps-fxn", "before", 0.8, 0.02, -0.28, 0.32, 0.001)
    assert found[1] == ("train and test", "ps-fxn", "after", 0.55, 0.02, -0.36, 0.4, 0.06)
    assert found[6] == ("original", "ps-fxn", "after", 0.6, -0.01, -0.31, 0.29, 0.01)
    assert [row[0] for row in found[9:]] == ["seed", "random", "random", "encoder"]
    assert "4 of 4 similarities are above the band for shuffled labels" in figure.alt
    assert ("nulls", "bert-mini", "") not in figures  # its null was not measured


def test_nulls_have_columns_of_their_own_in_csv(results: Results) -> None:
    head, first, *_ = to_csv(finding_tables.clusters_table(results)).splitlines()
    assert (
        "clusters before,clusters before null_mean,clusters before null_sd,clusters before subsampled,clusters a"
        in head
    )
    assert ",5,40.0,4.0,5.0,3.5," in first


def test_a_null_is_shown_with_and_without_its_standard_deviation() -> None:
    column = Column("x")
    assert show_value(Measurement(0.5, null_mean=0.1, null_sd=0.25), column) == "0.50 (shuffled labels 0.10 ± 0.25)"
    assert (
        show_value(Measurement(0.5, sd=0.1, null_mean=-0.1).scaled(10), Column("x", digits=0))
        == "5 ± 1 (shuffled labels −1)"
    )


@pytest.mark.parametrize(("p", "text"), [(0.00001, "< 0.0001"), (0.0, "< 0.0001"), (0.0001, "0.0001"), (1.0, "1.0000")])
def test_p_values_are_never_shown_as_zero(p: float, text: str) -> None:
    assert show_value(p, Column("p", digits=4, p_value=True)) == text


# ---- uncertainty ----


def test_over_seeds_mean_deviation_and_students_interval(results: Results) -> None:
    assert [row[1:] for row in uncertainty.seeds_table(results).shown()] == [
        ["ps-fxn", "accuracy, %", "2", "76.000", "1.414", "63.294", "88.706"],  # 12.706 to each side
        ["ps-fxn", "accuracy of the fine-tuned head, %", "2", "82.000", "2.828", "56.588", "107.412"],
        ["ps-fxn", "clusters", "2", "3.500", "0.707", "−2.853", "9.853"],
        ["ps-fxn", "mean minimum distance", "2", "3.250", "0.354", "0.073", "6.427"],
        ["ps-fxn", "train–test similarity", "2", "0.550", "0.071", "−0.085", "1.185"],
        ["ps-fxn", "similarity to pretrained", "2", "0.600", "0.141", "−0.671", "1.871"],
    ]
    assert uncertainty.single_seed_text(results) == ""


def test_one_seed_is_said_in_a_line_without_a_table() -> None:
    results = index_results(made_up(wider=True))
    assert not uncertainty.seeds_table(results)
    assert uncertainty.single_seed_text(results).startswith("Every fine-tuning was run with one seed")
    assert uncertainty.single_seed_text(index_results(made_up(steps=()))) == ""


def test_intervals_over_examples_for_each_state_and_seed(results: Results) -> None:
    assert [row[2:] for row in uncertainty.examples_table(results).shown()] == [
        ["before", "20", "1.000", "+0.100", "0.80 [0.70, 0.84]", "0.80 [0.60, 0.90]", "–", "–"],
        [
            *("after, seed 1", "20", "3.500 [3.000, 4.000]", "+0.300"),
            *("0.50 [0.40, 0.54]", "0.50 [0.20, 0.70]", "0.70 [0.60, 1.00]", "0.70 [0.50, 0.80]"),
        ],
    ]


# ---- labels ----


def test_labels_that_moved_significantly_and_labels_with_few_points_are_marked(results: Results) -> None:
    table = labels.labels_table(results)
    assert [row[2:] for row in table.shown()] == [
        ["A", "30", "1.00", "4.50 ± 0.71", "+3.50", "0.0300", "* significantly farther"],
        ["C †", "30", "2.00", "2.25 ± 0.35", "+0.25", "0.2000", "† 4 points in 128 dimensions; fewer than 5"],
        ["B", "30", "1.00", "1.00 ± 0.35", "0.00", "0.5000", ""],
    ]
    assert "Holm-corrected for all labels of the task" in table.note


def test_a_change_is_significant_only_if_it_is_with_every_seed(results: Results) -> None:
    first = labels.marks_of(results, "bert-tiny", "ps-fxn", [Run("bert-tiny", "ps-fxn", 0, "ps-fxn")])
    both = labels.marks_of(results, "bert-tiny", "ps-fxn", [Run("bert-tiny", "ps-fxn", 0, "ps-fxn"), SECOND])
    assert [first.of(label) for label in "ABC"] == ["*", "", "*†"]
    assert [both.of(label) for label in "ABC"] == ["*", "", "†"]
    assert both.legend() == (
        "* significant change (1 of 3 labels): p ≤ 0.05 after Holm correction. † few points: C (4 points)."
    )


@pytest.mark.parametrize("missing", [False, True])
def test_a_label_that_seeds_move_both_ways_or_do_not_test_is_not_significant(missing: bool) -> None:
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
    assert not both.is_significant("A")


def test_without_tests_nothing_is_marked() -> None:
    results = index_results(golden())
    marks = labels.marks_of(results, "bert-tiny", "ps-fxn", [Run("bert-tiny", "ps-fxn", 0, "ps-fxn")])
    assert (marks.legend(), marks.of("A")) == ("", "")
    assert labels.labels_table(results).titles()[-1] == "distance to the nearest other label change"


def test_the_chart_of_distances_bears_the_marks(figures: dict[tuple[str, str, str], Figure]) -> None:
    figure = figures["distances", "bert-tiny", "ps-fxn"]
    assert [(toggle.name, toggle.remark, toggle.tooltip) for toggle in figure.toggles] == [
        ("A", "+3.50 *", "p = 0.03 (Holm-corrected)"),
        ("C", "+0.25 †", "p = 0.2 (Holm-corrected); 4 points in 128 dimensions; fewer than 5"),
        ("B", "+0.00", "p = 0.5 (Holm-corrected)"),
    ]
    assert "* significant change (1 of 3 labels)" in figure.caption
    assert rows(figure, "label", "step", "low", "high", "p", "few_points")[2] == ("A", 20, 4, 5, 0.03, "")
    assert (
        "Labels with few points, whose distances are unreliable: C (4 points)."
        in figures["label-distances", "bert-tiny", "ps-fxn"].caption
    )


def test_one_seed_shows_its_intervals_over_examples(results: Results) -> None:
    table = golden_beyond()
    figure = next(one for one in draw_figures(index_results(table[table.seed == 1])) if one.kind == "distances")
    assert rows(figure, "label", "step", "low", "high")[1] == ("A", 20, 4, 6)
    assert "Vertical bars (first and last snapshot): 95% interval over examples." in figure.caption


def test_significantly_moved_labels_are_counted_in_columns_of_their_own(results: Results) -> None:
    table = finding_tables.distance_table(results)
    assert [column.title for column in table.columns[-2:]] == ["farther away", "closer"]
    assert table.shown()[0][-4:] == ["3", "0", "2", "0"]


def test_the_note_of_the_distances_explains_which_changes_are_significant(results: Results) -> None:
    assert "Holm-corrected for all labels of the task" in finding_tables.distance_table(results).note
    assert "Holm" not in finding_tables.distance_table(index_results(golden())).note


def test_a_null_alone_is_enough_for_the_table_of_similarities() -> None:
    table = golden_beyond()
    table = table[~table.measure.str.contains("_seed|_random|_encoder")]
    assert nulls.similarity_table(index_results(table)).shown()[0][3:5] == ["0.80 [0.70, 0.84]", "0.02 ± 0.15"]


# ---- the shape ----


def test_the_panel_before_and_after_with_its_meaning(results: Results) -> None:
    table = shape.shape_table(results)
    assert table.titles() == ["", "measure", "encoder", "ps-fxn", "ps-role", "pos"]
    names = [one.name for row in table.rows if isinstance(one := row[1], Term)]
    assert [(row[0], name, *row[2:4]) for row, name in zip(table.shown(), names, strict=True)] == [
        ("neural collapse", "NC1", "bert-tiny", "0.80 → 0.30"),
        ("neural collapse", "NC1", "bert-mini", "0.90"),
        ("dimension", "participation ratio", "bert-tiny", "10.2 → 6.5"),
        ("label fit", "GDV", "bert-tiny", "−0.10"),
        ("overlap", "overlapping pairs", "bert-tiny", "1 → 0"),
    ]
    assert table.shown()[0][1] == f"NC1: {MEASURES['nc1'].meaning}"
    assert to_csv(table).splitlines()[0] == ",measure,measure meaning,encoder,ps-fxn,ps-role,pos"


def test_a_single_encoder_needs_no_column() -> None:
    assert shape.shape_table(index_results(made_up(wider=True))).titles()[:3] == ["", "measure", "animals"]


def test_every_measure_of_the_panel_has_a_line() -> None:
    from closerlook.geometry.panel import describe_space

    flat = describe_space([[0.0], [1.0], [8.0], [9.0]], ["a", "a", "b", "b"]).flat()
    shown = {measure.name for measure in shape.shape_measures()}
    of_panel = {name.replace("largest_cluster_share", "mean_largest_cluster_share") for name in flat}
    assert shown == of_panel | {"nc3_head"}, "the head is measured where it is trained"


def test_both_heads_of_nc3_are_named_where_both_were_measured() -> None:
    place = {"encoder": "bert-tiny", "task": "animals", "layer": 2, "tuned_on": "animals", "step": 100}
    table = made_up(wider=True)
    head = frame([place | {"measure": "nc3_head", "value": 0.8, "is_final": True}])
    results = index_results(pd.concat([table, head], ignore_index=True))
    rows = {row[1].split(":")[0]: row[2] for row in shape.shape_table(results).shown()}
    assert rows["NC3, fine-tuned head"] == "– → 0.80"
    assert "→" in rows["NC3, least-squares head"]
    text = shape.shape_text(results)
    assert "fitted to the space by least squares" in text
    assert "also given for the linear head" in text
    assert "also given" not in shape.shape_text(index_results(table))


def test_point_by_point_to_the_original_seeds_weights_and_encoders(results: Results) -> None:
    assert [row[2:] for row in shape.point_similarity_table(results).shown()] == [
        ["CKA", "0.60 ± 0.14", "0.80", "0.10", "0.20", "0.30"],
        ["RSA", "0.60", "–", "–", "–", "–"],
        ["CKA", "–", "–", "–", "–", "0.30"],
    ]


def test_likeness_by_layer_is_the_mean_over_seeds(figures: dict[tuple[str, str, str], Figure]) -> None:
    assert rows(
        figures["point-similarity", "bert-tiny", ""], "measure", "task", "layer", "value", "low", "high", "seeds"
    ) == [
        ("cka", "ps-fxn", 0, 1, 1, 1, 1),
        ("cka", "ps-fxn", 1, 0.9, 0.9, 0.9, 1),
        ("cka", "ps-fxn", 2, 0.6, 0.5, 0.7, 2),
        ("rsa", "ps-fxn", 2, 0.6, 0.6, 0.6, 1),
    ]


# ---- predicting the train–test gap ----


def test_each_space_is_there_once_with_both_similarities(figures: dict[tuple[str, str, str], Figure]) -> None:
    assert rows(figures["split-halves", "", ""], "task", "state", "seed", "halves", "similarity") == [
        ("ps-fxn", "before", 0, 0.85, 0.8),
        ("ps-fxn", "after", 0, 0.7, 0.6),
        ("ps-fxn", "after", 1, 0.6, 0.5),
        ("ps-role", "before", 0, 0.75, 0.7),
        ("ps-role", "after", 0, 0.74, 0.72),
        ("pos", "before", 0, 0.96, 0.95),
        ("pos", "after", 0, 0.8, 0.7),
    ]


def test_how_well_split_halves_predict_the_divergence(results: Results) -> None:
    table = divergence.split_halves_table(results)
    assert [row[:4] for row in table.shown()] == [
        ["split halves", "before", "3", "3"],
        ["split halves", "after", "4", "3"],
        ["split halves", "both", "7", "3"],
    ]
    both = table.rows[-1]
    assert both[4] == pytest.approx(24.5 / (28 * 27.5) ** 0.5)  # of the ranks, two tied; three pairs have no interval
    assert both[6] == pytest.approx(0.43 / 7)
    six = divergence.split_halves_table(
        index_results(_halves([(0.1 * at, 0.1 * at + 0.01 * at % 2) for at in range(6)]))
    )
    assert isinstance(six.rows[0][4], Measurement)


def test_the_prediction_in_a_sentence(results: Results) -> None:
    assert divergence.prediction_text(results) == (
        "For 4 spaces after fine-tuning (3 pairs of encoder and task), both the similarity of two halves of train and "
        "the similarity of train and test are known. 6 pairs are needed to say whether the first predicts the second."
    )
    text = divergence.prediction_text(
        index_results(_halves([(0.1 * at, 0.1 * at + 0.01 * (at % 2)) for at in range(8)]))
    )
    assert text.startswith("For 8 spaces before fine-tuning (8 pairs of encoder and task), ")
    assert " the similarity of train and test are known. The Spearman correlation of the two is " in text
    assert text.endswith("So the train–test similarity can partly be predicted without test examples.")


def test_the_effect_of_fine_tuning_itself_is_not_counted_as_prediction() -> None:
    """Fine-tuning lowers both similarities equally, but within each state they are unrelated."""
    rng = np.random.default_rng(0)
    before = _halves([*zip(0.9 + rng.normal(size=8) / 100, 0.9 + rng.normal(size=8) / 100, strict=True)])
    after = _halves([*zip(0.5 + rng.normal(size=8) / 100, 0.5 + rng.normal(size=8) / 100, strict=True)])
    after = after.assign(tuned_on=after.task, step=9, is_final=True)
    text = divergence.prediction_text(index_results(pd.concat([before, after])))
    assert text.endswith(
        "So in this study, the similarity of two halves of train does not predict the train–test similarity."
    )


def test_halves_that_predict_nothing_are_reported_as_such() -> None:
    values = [(0.9, 0.5), (0.8, 0.6), (0.7, 0.5), (0.6, 0.6), (0.5, 0.5), (0.4, 0.6)]
    table = _halves(values)
    assert divergence.prediction_text(index_results(table)).endswith(
        "So in this study, the similarity of two halves of train does not predict the train–test similarity."
    )


def test_too_few_spaces_say_so() -> None:
    assert divergence.prediction_text(index_results(_halves([(0.9, 0.5), (0.8, 0.6)]))) == (
        "For 2 spaces before fine-tuning (2 pairs of encoder and task), both the similarity of two halves of train and "
        "the similarity of train and test are known. 6 pairs are needed to say whether the first predicts the second."
    )
    assert not divergence.split_halves_table(index_results(_halves([(0.9, 0.5), (0.8, 0.6)])))


def _halves(values: list[tuple[float, float]]):  # type: ignore[no-untyped-def]
    place = {"encoder": "e", "layer": 1, "step": 0, "is_final": False}
    return frame(
        place | {"task": f"t{at}", "measure": measure, "value": value}
        for at, (halves, train_test) in enumerate(values)
        for measure, value in (
            ("similarity_halves", halves),
            ("similarity_train_test", train_test),
            ("n_clusters", 2.0),
        )
    )


# ---- all of it ----


def test_an_older_table_has_none_of_these_parts() -> None:
    results = index_results(golden())
    kinds = {figure.kind for figure in draw_figures(results)}
    assert not {"nulls", "uncertainty", "divergence", "shape"} & {name for name, _ in parts_of(results)}
    names = [table.name for table in all_tables(results)]
    assert not {"nulls", "separability", "seeds", "examples", "split-halves", "shape", "point-similarity"} & set(names)
    assert not {"nulls", "split-halves", "point-similarity"} & kinds


def test_every_part_is_there_where_all_was_measured(results: Results) -> None:
    assert [part for part in parts_of(results) if part[0] in {"nulls", "uncertainty", "divergence", "shape"}] == [
        *(("nulls", ["nulls"]), ("uncertainty", []), ("divergence", ["split-halves"]), ("shape", ["point-similarity"]))
    ]


def parts_of(results: Results) -> list[tuple[str, list[str]]]:
    """The names of a page's sections, with the kinds of figures in each."""
    groups, _ = group_figures([draw_figures(results)])
    parts = page_parts(results, judge_results(results), groups)
    return [(part.section.name, [group.kind for group in part.groups]) for part in parts]


def test_two_studies_have_chance_and_shape_side_by_side(results: Results) -> None:
    studies = [index_results(golden()), results]
    shown = {(row[1], row[2]): row[3:] for row in measures_table(studies).shown() if row[0] == "bert-tiny"}
    assert shown["ps-fxn", "clusters"] == [
        "5",
        "3",
        "5 (subsample: shuffled labels 40.00 ± 4.00, subsample: true labels 5.00)",
        "3.50 ± 0.71 (subsample: shuffled labels 37.00 ± 4.00, subsample: true labels 3.50)",
        "+0.50",
    ]
    assert shown["ps-fxn", "similarity to random weights"][2:4] == ["0.30 [0.10, 0.50]", "0.20 [0.00, 0.40]"]
    assert shown["ps-fxn", "separable pairs, %"][2:4] == [
        "75 (shuffled labels 25.00 ± 5.00)",
        "100 (shuffled labels 100.00)",
    ]
    assert shape_table(studies).shown()[0] == [*("bert-tiny", "ps-fxn", "NC1", "–", "–", "0.800", "0.300 ± 0.141", "–")]


def test_a_label_that_falls_on_the_way_up_is_counted() -> None:
    table = made_up(tasks={"animals": ["cat", "dog", "eel"]}, steps=(0, 1, 2, 3))
    for label, path in {"cat": (1, 2, 3, 4), "dog": (1, 3, 2, 4), "eel": (4, 3, 2, 1)}.items():
        for step, value in enumerate(path):
            of_label = (table.measure == "minimum_distance") & (table.label == label) & (table.tuned_on != "")
            table.loc[of_label & (table.step == step), "value"] = float(value)
    results = index_results(table)
    assert sensitivity.detours(results, "bert-tiny", "animals") == (2, 1)
    assert [row[1:] for row in sensitivity.monotone_table(results).rows] == [
        ("animals", 2, 1, 50.0),
        ("all tasks", 2, 1, 50.0),
    ]


def test_the_labels_that_a_similarity_rests_on_are_counted() -> None:
    table = sensitivity.sensitivity_table(index_results(made_up()))
    counts = [at for at, column in enumerate(table.columns) if column.title in {"labels of the task", "labels"}]
    found = [[row[at] for at in counts] for row in table.rows]
    assert table.rows[0][:2] == ("bert-tiny", "animals")
    assert found[0] == [3, 3, 3, 3]
    assert found[1] == [4, 3, 3, 4]  # 4 labels; the made-up train–test similarity compares 3


def test_similarity_without_label_sizes_and_of_noise_has_columns() -> None:
    content = []
    for step, tuned in ((0, ""), (9, "animals")):
        place = {"encoder": "e", "task": "animals", "layer": 1, "step": step, "tuned_on": tuned, "is_final": bool(step)}
        for name, value in (
            *(("similarity_train_test", 0.9), ("similarity_null_mean_train_test", 0.0), ("n_clusters", 9.0)),
            *(("similarity_size_adjusted_train_test", 0.3), ("similarity_size_adjusted_p_value_train_test", 0.2)),
            ("noise_similarity", 0.95),
        ):
            content.append(place | {"measure": name, "value": value})
    table = nulls.similarity_table(index_results(frame(content)))
    titles = [column.title for column in table.columns]
    assert {"label sizes removed", "p without sizes", "noise of the same sizes"} <= set(titles)
    assert "Freedman–Lane" in table.note

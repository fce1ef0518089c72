"""The numbers in every table, worked out by hand from golden.csv."""

import pandas as pd
import pytest

from closerlook.report import finding_tables, published, study_facts
from closerlook.report.before_after import over_seeds
from closerlook.report.export import to_csv, to_latex, to_markdown
from closerlook.report.tables import Column, Table, show_value
from closerlook.study import renamed
from closerlook.study.kinds import KINDS
from closerlook.study.readings import Measurement, Results, index_results
from tests.report.studies import golden, made_up
from tests.report.test_earlier_rules import paper_table


@pytest.fixture(scope="module")
def results() -> Results:
    return index_results(golden())


def test_equal_texts_of_a_table_are_one_object_and_missing_ones_are_empty() -> None:
    rows = index_results(golden().assign(text=None)).of("accuracy")
    assert len({id(name) for name in rows["encoder"]}) == rows["encoder"].nunique()
    assert set(rows["text"]) == {""}


def shown(table: Table) -> list[list[str]]:
    return table.shown()


def test_the_summary_shows_each_measure_before_and_after(results: Results) -> None:
    table = finding_tables.summary_table(results)
    assert table.titles() == ["encoder", "measure", "ps-fxn", "ps-role", "pos"]
    assert shown(table) == [
        ["bert-tiny", "accuracy, %", "74.0 → 75.0", "58.0 → 50.0", "90.0 → 92.0"],
        ["bert-tiny", "train–test similarity", "0.80 → 0.60", "0.70 → 0.72", "0.95 → 0.70"],
        ["bert-tiny", "clusters", "5 → 3* (3)", "3* → 3* (3)", "4 → 6 (3)"],
        ["bert-tiny", "mean minimum distance", "1.00 → 3.00", "2.00 → 2.50", "1.50 → 4.00"],
        ["bert-tiny", "mean minimum distance in RMS radii", "0.500 → 0.600", "0.500 → 0.400", "0.300 → 0.800"],
    ]


def test_accuracy_and_similarity_with_exceptions_marked(results: Results) -> None:
    table = finding_tables.accuracy_table(results)
    assert table.titles()[2:6] == ["n", "accuracy, % before", "accuracy, % after", "accuracy, % change"]
    assert [row[1:] for row in shown(table)] == [
        [
            *("ps-fxn", "457", "74.00 ± 1.00", "75.00 ± 1.00", "+1.00"),
            *("0.80 [0.70, 0.84]", "0.60 [0.50, 0.64]", "−0.20"),
            *("train or test is not linearly separable before fine-tuning",),
        ],
        [
            *("ps-role", "457", "58.00 ± 1.00", "50.00 ± 2.00", "−8.00"),
            *("0.70 [0.60, 0.74]", "0.72 [0.62, 0.76]", "+0.02"),
            "exception: accuracy falls beyond its noise; exception: similarity does not fall",
        ],
        [
            *("pos", "4,323", "90.00 ± 0.20", "92.00 ± 0.20", "+2.00"),
            *("0.95 [0.85, 0.99]", "0.70 [0.60, 0.74]", "−0.25", ""),
        ],
    ]


def test_clusters_linearity_and_best_probe(results: Results) -> None:
    assert [row[1:] for row in shown(finding_tables.clusters_table(results))] == [
        ["ps-fxn", "100", "3", "5", "3", "no", "yes", "256×256", "64×32", ""],
        ["ps-role", "100", "3", "3", "3", "yes", "yes", "256×64", "32×32", ""],
        ["pos", "100", "3", "4", "6", "no", "no", "256×64", "64×64", "conflicts: 1 → 1"],
    ]


def test_distances_raw_and_relative(results: Results) -> None:
    assert [row[1:] for row in shown(finding_tables.distance_table(results))] == [
        ["ps-fxn", "1.00", "3.00", "+2.00", "0.500", "0.600", "+0.100", "3", "0"],
        ["ps-role", "2.00", "2.50", "+0.50", "0.500", "0.400", "−0.100", "2", "1"],
        ["pos", "1.50", "4.00", "+2.50", "0.300", "0.800", "+0.500", "3", "0"],
    ]


def test_the_cross_task_table_has_all_pairs_and_the_same_task(results: Results) -> None:
    assert [row[1:] for row in shown(finding_tables.cross_table(results))] == [
        ["ps-fxn", "not fine-tuned", "", "–", "–", "–", "–", "74.00 ± 1.00"],
        ["ps-fxn", "ps-fxn", "same task", "3", "0", "+2.00", "+0.100", "75.00 ± 1.00"],
        ["ps-fxn", "ps-role", "related", "2", "1", "+0.50", "+0.050", "73.00 ± 1.00"],
        ["ps-fxn", "pos", "opposed", "0", "3", "−0.25", "−0.100", "70.00 ± 1.00"],
        ["ps-role", "not fine-tuned", "", "–", "–", "–", "–", "58.00 ± 1.00"],
        ["ps-role", "ps-role", "same task", "2", "1", "+0.50", "−0.100", "50.00 ± 2.00"],
        ["ps-role", "pos", "opposed", "2", "1", "+0.12", "0.000", "55.00 ± 1.00"],
    ]


def test_similarity_by_layer(results: Results) -> None:
    table = finding_tables.layers_table(results)
    assert table.titles() == ["encoder", "task", "layer 0", "layer 1", "layer 2"]
    assert shown(table)[0] == ["bert-tiny", "ps-fxn", "0.99 [0.89, 1.00]", "0.90 [0.80, 1.00]", "0.50 [0.40, 1.00]"]


def test_published_values_are_shown_with_ours_and_the_difference(results: Results) -> None:
    rows = [row[1:] for row in shown(published.published_accuracy(results))]
    weights = "bert-tiny (weights 01234567)"
    assert rows[0] == [
        "ps-fxn",
        "original",
        "74.00 ± 1.00",
        "74.14 ± 1.42",
        "−0.14",
        "0.80 [0.70, 0.84]",
        "–",
        "–",
        weights,
    ]
    assert rows[1][2:] == ["75.00 ± 1.00", "74.40 ± 0.68", "+0.60", "0.60 [0.50, 0.64]", "0.72", "−0.12", weights]
    clusters = [row[1:] for row in shown(published.published_clusters(results))]
    assert clusters[0] == ["ps-fxn", "original", "5", "402", "−397", "no", "no", "256×256", "256×256", weights]
    assert not published.published_cross(results)  # the paper's Table 5 is of bert-base


def test_both_counts_of_clusters_are_compared_with_the_paper(results: Results) -> None:
    table = golden()
    counts = table[table.measure == "n_clusters"].assign(measure="clusters_released")
    released = pd.concat([table, counts.assign(value=counts.value * 70)])
    both = published.published_clusters(index_results(released))
    assert both.titles()[3:8] == [
        *("clusters ours", "clusters ours (attempts: released)", "clusters paper"),
        *("clusters difference", "clusters difference (attempts: released)"),
    ]
    assert shown(both)[0][3:8] == ["5", "350", "402", "−397", "−52"]
    assert "at most as many merges are tried as there are points" in both.note
    assert "released" not in published.published_clusters(results).note


def test_the_cross_task_table_of_bert_base_meets_table_5() -> None:
    table = golden().assign(encoder="google-bert/bert-base-uncased")
    rows = [row[1:-1] for row in shown(published.published_cross(index_results(table)))]
    assert rows == [
        ["ps-fxn", "not fine-tuned", "–", "–", "–", "–", "–", "74.00", "87.75", "−13.75"],
        ["ps-fxn", "ps-fxn", "3", "40", "2.00", "5.29", "−3.29", "75.00", "89.58", "−14.58"],
        ["ps-fxn", "ps-role", "2", "27", "0.50", "1.02", "−0.52", "73.00", "88.53", "−15.53"],
        ["ps-fxn", "pos", "0", "0", "−0.25", "−1.68", "+1.43", "70.00", "83.24", "−13.24"],
    ]


def test_labels_that_moved_are_averaged_over_seeds_in_both_cross_task_tables() -> None:
    table = golden().assign(encoder="google-bert/bert-base-uncased")
    second = table[(table.tuned_on == "ps-role") & (table.task == "ps-fxn")].assign(seed=1)
    second.loc[second.measure == "n_labels_increased", "value"] = 3.0
    results = index_results(pd.concat([table, second]))
    ours = next(row for row in shown(published.published_cross(results)) if row[2] == "ps-role")
    assert ours[3] == "2.50"
    assert next(row for row in shown(finding_tables.cross_table(results)) if row[2] == "ps-role")[4] == "2.50"


def test_the_published_table_differs_from_itself_by_nothing() -> None:
    table = published.published_accuracy(index_results(paper_table()))
    assert len(table.rows) == 50
    assert all(abs(row[5]) < 1e-9 for row in table.rows if isinstance(row[5], float))


@pytest.mark.parametrize(
    ("encoder", "name"),
    [
        ("bert-tiny", "bert-tiny"),
        ("google/bert_uncased_L-4_H-256_A-4", "bert-mini"),
        ("google/bert_uncased_L-4_H-512_A-8@abc", "bert-small"),
        ("google-bert/bert-base-uncased", "bert-base"),
        ("random:bert-tiny", "random:bert-tiny"),
        ("roberta-base", "roberta-base"),
    ],
)
def test_the_papers_encoders_are_known_by_their_hub_ids(encoder: str, name: str) -> None:
    assert published.paper_name(encoder) == name


def test_random_weights_are_never_compared_with_the_paper() -> None:
    table = golden().assign(encoder="random:bert-tiny")
    assert not published.published_accuracy(index_results(table))


def test_several_seeds_give_mean_and_deviation() -> None:
    assert over_seeds([Measurement(1.0), Measurement(2.0), None]) == Measurement(1.5, sd=0.5**0.5)
    assert over_seeds([Measurement(1.0, 0.5, 1.5)]) == Measurement(1.0, 0.5, 1.5)
    assert over_seeds([Measurement(1.0, 0.5, 1.5)], [Measurement(0.1)]) == Measurement(1.0, sd=0.1)
    assert over_seeds([None]) is None


def test_two_seeds_share_a_line_in_each_table() -> None:
    results = index_results(made_up(seeds=(0, 5)))
    table = finding_tables.distance_table(results)
    assert len(table.rows) == 2
    assert shown(table)[0][3] == "4.25 ± 0.35"  # 4.0 and 4.5


@pytest.mark.parametrize(
    ("value", "column", "text"),
    [
        (None, Column("x"), "–"),
        (float("nan"), Column("x"), "–"),
        (1234567, Column("x"), "1,234,567"),
        (-0.001, Column("x", signed=True), "0.00"),
        (True, Column("x"), "yes"),
        ("<b>", Column("x"), "<b>"),
    ],
)
def test_values_are_shown_plainly(value: object, column: Column, text: str) -> None:
    assert show_value(value, column) == text  # type: ignore[arg-type]


def test_the_same_table_as_markdown_latex_and_csv() -> None:
    columns = (Column("a_b", left=True), Column("c", "50%"))
    table = Table("t", "Ti|tle", "No & te", columns, (("x|y & z_1", Measurement(1.234, sd=0.5)), ("−", None)))
    assert "| x\\|y & z\\_1 | 1.23 ± 0.50 |" in to_markdown(table)
    assert r"x|y \& z\_1 & 1.23 $\pm$ 0.50 \\" in to_latex(table)
    assert r"\caption{Ti|tle. No \& te}" in to_latex(table)
    assert to_csv(table) == "a_b,50% c,50% c sd\nx|y & z_1,1.234,0.5\n−,,\n"


def test_what_was_run_comes_from_the_table_where_there_is_no_manifest(results: Results) -> None:
    assert shown(study_facts.encoders_table(results)) == [["bert-tiny", "2", "01234567"]]
    assert shown(study_facts.tasks_table(results))[0] == ["ps-fxn", "3", "100"]
    assert study_facts.missing(results)[0].startswith("There is no manifest.json")


def test_encoders_with_their_entries_in_the_manifest() -> None:
    entry = {"layers": 2, "width": 128, "parameters": 4_385_920, "weights": "f" * 32, "revision": "abc123"}
    results = index_results(
        made_up(["bert-tiny", "bert-mini"]), {"encoders": {"google/x": {"name": "bert-tiny"} | entry}}
    )
    table = study_facts.encoders_table(results)
    assert table.titles() == ["encoder", "layers", "hidden size", "parameters", "weights", "revision"]
    assert shown(table) == [
        ["bert-tiny", "2", "128", "4.4 M", "ffffffff", "abc123"],
        ["bert-mini", "2", "–", "–", "01234567", "–"],  # of which the table knows layers and weights
    ]


def test_tasks_with_labels_and_examples_of_each_split() -> None:
    entry = {"unit": "token", "labels": ["cat", "dog", "eel"], "examples": {"train": 30, "dev": 4, "test": 9}}
    table = study_facts.tasks_table(index_results(made_up(), {"tasks": {"data/animals.tsv": entry}}))
    assert table.titles() == ["task", "an example is a", "labels", "examples train", "examples dev", "examples test"]
    assert shown(table) == [
        ["animals", "token", "3", "30", "4", "9"],
        ["colours", "–", "4", "40", "–", "–"],  # which the manifest does not name
    ]


def test_splits_are_in_the_order_train_dev_test_then_others_by_name() -> None:
    examples = {"test": 9, "zoo": 1, "extra": 2, "train": 30, "dev": 4}
    table = study_facts.tasks_table(index_results(made_up(), {"tasks": {"animals": {"examples": examples}}}))
    assert [column.title for column in table.columns if column.group == "examples"] == [
        *("train", "dev", "test", "extra", "zoo")
    ]
    dev = made_up()
    dev = pd.concat([dev, dev[dev.measure == "n_points"].assign(split="dev")])
    dev = pd.concat([dev[dev.split != "train"], dev[dev.split == "train"]])
    assert [column.title for column in study_facts.tasks_table(index_results(dev)).columns if column.group] == [
        "train",
        "dev",
    ]


def test_settings_are_flat_without_entries_shown_elsewhere() -> None:
    plan = {
        "name": "x",
        "encoders": ["bert-tiny"],
        "tasks": ["animals"],
        "seeds": [0, 1],
        "data": None,
        "classifier": {"sizes": [[32, 64], [64, 64]], "seeds": 5},
        "cross": [{"tuned": "animals", "probed": "colours"}],
        "tuning": {"trainer_arguments": {}},
    }
    table = study_facts.settings_table(index_results(made_up(), {"plan": plan}))
    assert table.note.endswith("the feature is off, or closerlook chooses the value.")
    assert shown(table) == [
        ["seeds", "0, 1"],
        ["data", "not set"],
        ["classifier.sizes", "32×64, 64×64"],
        ["classifier.seeds", "5"],
        ["cross", "fine-tuned on animals, probed on colours"],
        ["tuning.trainer_arguments", "{}"],
    ]


def test_fine_tuning_has_a_line_for_each_encoder_and_task() -> None:
    one = {"epochs": 3.0, "learning_rate": 5e-05, "batch_size": 8, "warmup": 0.1, "weight_decay": 0.01}
    manifest = {"settings": {"a on b on pos": one | {"snapshots": "log"}}, "plan": {"seeds": [0, 7]}}
    table = study_facts.tuning_table(index_results(made_up(), manifest))
    assert shown(table) == [["a on b", "pos", "3", "5e-05", "8", "0.1", "0.01", "log"]]
    assert table.note.endswith(" Seeds: 0, 7.")


def test_machine_and_time() -> None:
    manifest = {
        "version": "1.2",
        "hardware": {"processor": "a processor", "cores": 2, "memory_bytes": 8e9, "host": "not shown"},
        "packages": {"torch": "2.0", "accelerate": None},
        "kinds": {
            "extract": {"cells": 1, "seconds": 5.0, "cpu_seconds": 9.0},
            "tune": {"cells": 2, "seconds": 60.0, "cpu_seconds": 3725.0},
        },
    }
    results = index_results(made_up(), manifest)
    assert shown(study_facts.machine_table(results)) == [
        ["processor", "a processor"],
        ["cores", "2"],
        ["memory", "8 GB"],
        ["closerlook", "1.2"],
        ["torch", "2.0"],
    ]
    assert shown(study_facts.time_table(results)) == [
        ["fine-tune", "2", "1 min", "1 h 2 min"],
        ["extract vectors", "1", "5 s", "9 s"],
    ]
    manifest["kinds"]["tune"]["peak_bytes"] = 1.26e9  # type: ignore[index]
    assert shown(study_facts.time_table(index_results(made_up(), manifest)))[0][-1] == "1.3 GB"


def test_kinds_of_cells_in_older_manifests_have_their_present_names() -> None:
    manifest = {"kinds": {"alike": {"cells": 3, "seconds": 5.0, "cpu_seconds": 9.0}}}
    assert shown(study_facts.time_table(index_results(made_up(), manifest)))[0][0] == "point similarity"
    assert set(renamed.KINDS.values()) <= {kind.name for kind in KINDS}

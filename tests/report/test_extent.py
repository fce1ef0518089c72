"""The page fits what was run: nothing fine-tuned, few fine-tunings, or enough of them for verdicts."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from closerlook.report.comparison import measures_table, shape_table
from closerlook.report.export import all_tables
from closerlook.report.extent import extent_of
from closerlook.report.figures import encoders
from closerlook.report.glossary import TERMS, link_terms
from closerlook.report.layer_values import best_sentences, layer_values_table
from closerlook.report.opening import changes_table, what_changed
from closerlook.report.study_facts import encoders_table, headline, key_facts
from closerlook.report.writing import write_comparison
from closerlook.study.readings import index_results
from closerlook.study.runs import UNKNOWN
from tests.report.studies import frame, golden, made_up, write_study
from tests.report.test_page import Reader, page_of, text_of

ONE: dict[str, Any] = {"animals": ["cat", "dog", "eel"]}


def probed(layers: dict[str, list[float]]) -> pd.DataFrame:
    """A study without fine-tuning: the accuracies of each encoder on the task t, one for each layer."""
    return frame(
        {
            **{"encoder": encoder, "task": "t", "step": 0, "is_final": False, "layer": layer, "split": "test"},
            **{"measure": "accuracy", "value": value, "n": 40, "text": "linear"},
        }
        for encoder, values in layers.items()
        for layer, value in enumerate(values)
    )


@pytest.mark.parametrize(("n", "steps", "extent"), [(9, (), "none"), (4, (0, 9), "few"), (5, (0, 9), "many")])
def test_five_pairs_are_enough_for_verdicts(n: int, steps: tuple[int, ...], extent: str) -> None:
    assert extent_of(index_results(made_up([f"e{at}" for at in range(n)], ONE, steps=steps))) == extent


# ---- nothing fine-tuned ----


def test_without_fine_tuning_the_page_has_no_findings_and_no_before(tmp_path: Path) -> None:
    table = made_up(["one", "two"], steps=(), wider=True)
    text = page_of(tmp_path, table).text.partition("spacethe vectors")[0]  # the glossary begins
    text = text.replace("so no finding can be judged", "")
    assert not re.findall(r".{20}(?:before|[Ff]inding|cannot tell).{20}", text)
    assert "findings" not in {one.name for one in all_tables(index_results(table))}


def test_two_studies_without_fine_tuning_are_compared_without_before_after_and_findings(tmp_path: Path) -> None:
    table = made_up(["one", "two"], steps=(), wider=True)
    folders = [write_study(tmp_path / name, table) for name in ("first", "second")]
    page = write_comparison(*folders, tmp_path / "both.html").read_text(encoding="utf-8")
    text = Reader(page).text.replace("so no finding can be judged", "")
    assert not re.findall(r".{0,20}(?:[Bb]efore|[Aa]fter|[Ff]inding|[Vv]erdict|[Cc]annot tell).{0,20}", text)
    for make in (measures_table, shape_table):
        made = make([index_results(table)] * 2)
        assert made.titles() == ["encoder", "task", "measure", "A", "B", "B − A"]
        assert {len(row) for row in made.rows} == {6}


def test_columns_of_a_study_without_fine_tuning_are_called_by_their_measure() -> None:
    tables = {table.name: table for table in all_tables(index_results(made_up(steps=(), wider=True)))}
    assert [column.title for column in tables["accuracy"].columns][3:5] == ["accuracy, %", "similarity"]
    assert "state" not in [column.title for column in tables["examples"].columns]


def test_the_best_encoder_and_layer_is_said_and_marked_in_chart_and_table() -> None:
    results = index_results(probed({"small": [0.5, 0.7], "large": [0.6, 0.9, 0.8]}))
    assert best_sentences(results) == [
        "t: the highest probe accuracy of 5 spaces is 90.0 % (large, layer 1), the lowest 50.0 % (small, layer 0); "
        "40 test examples."
    ]
    (figure,) = encoders.by_layer(results)
    marked = figure.data[figure.data.best]
    assert marked[["encoder", "layer", "value"]].to_numpy().tolist() == [["large", 1, 90.0]]
    assert len(figure.data) == 5
    rows = layer_values_table(results).shown()
    assert [row for row in rows if "★" in row[-1]] == [["t", "large", "pretrained", "1", "90.0", "★ best accuracy"]]


def test_layers_are_listed_in_their_order_also_if_accuracy_was_measured_at_the_last_one_only() -> None:
    results = index_results(made_up(["b", "a"], ONE))
    places = [row[1:4] for row in layer_values_table(results).shown()]
    assert places == [
        [encoder, state, layer] for encoder in results.encoders for state in ("before", "after") for layer in "012"
    ]


def test_accuracies_of_all_layers_are_on_the_page(tmp_path: Path) -> None:
    page = page_of(tmp_path, probed({"small": [0.5, 0.71], "large": [0.6, 0.93, 0.82]}))
    assert all(number in page.text for number in ("50.0", "71.0", "93.0", "82.0"))
    assert any(attributes.get("data-kind") == "by-layer" for _, attributes in page.tags)


def test_of_one_space_no_best_is_said() -> None:
    results = index_results(probed({"small": [0.5]}))
    assert best_sentences(results) == []
    assert encoders.by_layer(results) == []


# ---- few ----


def test_few_fine_tunings_open_with_what_happened() -> None:
    text = text_of(made_up(tasks=ONE))
    for sentence in (
        "Probe accuracy 80.0 → 90.0 % (+10.0 points, within noise: ± 13.9).",
        "Clusters 5 → 3.5 for 3 labels; not linearly separable before and after.",
        "3 of 3 labels farther from their nearest neighbour, 0 closer",
        "mean distance to the nearest other label 1 → 4 (0.500 → 2.000 RMS radii).",
        "Similarity of the last layer to the pretrained encoder 0.40; train–test similarity 0.90 → 0.80 (−0.10).",
    ):
        assert sentence in text
    start = text.index("What happened")
    assert "cannot tell" not in text[:start]
    assert start < text.index("Before and after fine-tuning")


def test_the_sentences_are_a_table_of_show() -> None:
    table = changes_table(index_results(made_up(tasks=ONE)))
    assert len(table.rows) == 4
    assert not changes_table(index_results(made_up([*"abc"])))
    assert not changes_table(index_results(made_up(steps=())))


def test_seeds_are_averaged_and_counted() -> None:
    (account,) = what_changed(index_results(made_up(tasks=ONE, seeds=(0, 1))))
    assert account.remark == "mean of 2 seeds"


def test_other_tasks_come_after_the_own_and_are_named() -> None:
    accounts = what_changed(index_results(golden()))
    own = [account.pair.own for account in accounts]
    assert own == sorted(own, reverse=True)
    assert accounts[-1].remark.startswith("fine-tuned on ")


def test_an_unknown_task_is_said_in_the_opening() -> None:
    table = made_up(tasks=ONE)
    table = table.assign(tuned_on=table["tuned_on"].mask(table["tuned_on"] != "", UNKNOWN))
    assert "bert-tiny on animals the task of the training is not known" in text_of(table)


# ---- methods and existing runs ----


def test_methods_of_one_task_are_in_one_figure_and_named_in_the_headline() -> None:
    table = made_up(["tiny", "tiny (lora 4)"], ONE)
    methods = table["encoder"].map({"tiny": "full", "tiny (lora 4)": "lora 4"})
    results = index_results(table.assign(method=methods.where(table["tuned_on"] != "", "")))
    (figure,) = encoders.side_by_side(results)
    accuracy = figure.data[figure.data.measure == "accuracy"]
    assert accuracy[["encoder", "state", "value"]].to_numpy().tolist() == [
        ["tiny", "before", 80.0],
        ["tiny", "after", 90.0],
        ["tiny (lora 4)", "before", 80.0],
        ["tiny (lora 4)", "after", 90.0],
    ]
    assert headline(results) == "How 2 methods of fine-tuning changed tiny on animals"
    assert dict(key_facts(results))["encoder"] == "1"
    assert [row[:2] for row in encoders_table(results).rows] == [("tiny", "full"), ("tiny (lora 4)", "lora 4")]


def test_one_encoder_has_no_figure_side_by_side() -> None:
    assert encoders.side_by_side(index_results(made_up())) == []


def test_an_existing_run_is_shown_with_its_base() -> None:
    run = {"base": "bert-base", "tuned_on": UNKNOWN, "method": "full", "seed": 5}
    results = index_results(made_up(["mine"], ONE), {"runs": {"mine": run}, "encoders": {"mine": {"layers": 2}}})
    assert headline(results) == "How the training mine changed bert-base on animals"
    assert encoders_table(results).rows[0][1:3] == ("bert-base", UNKNOWN)


# ---- terms ----


def test_terms_in_texts_lead_to_the_glossary(tmp_path: Path) -> None:
    page = page_of(tmp_path, golden())
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    links = {attributes["href"] for tag, attributes in page.tags if attributes.get("class") == "defined"}
    assert {"#term-cluster", "#term-minimum-distance", "#term-linearly-separable"} <= links
    assert {str(link)[1:] for link in links} <= ids
    assert len({term.anchor for term in TERMS}) == len(TERMS)


def test_the_longest_term_wins_and_markup_stays_text() -> None:
    assert str(link_terms("<b> mean minimum distance")) == (
        '&lt;b&gt; mean <a class="defined" href="#term-minimum-distance">minimum distance</a>'
    )
    assert "href" not in str(link_terms("subspaces and spacecraft"))

"""Every measure is registered once, with what its readers need."""

from pathlib import Path

import pytest

from closerlook.errors import InputError
from closerlook.study.cells import Placement, Position, ResolvedPlan
from closerlook.study.registry import MEASURES, Measure, find, markdown_table, measure, split_name
from closerlook.study.results import _placed
from tests.study.small import opened, small_plan


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("similarity_train_test", ("similarity", "train_test")),
        ("similarity_train_dev_2", ("similarity", "train_dev_2")),
        ("similarity_p_value_train_test", ("similarity_p_value", "train_test")),
        ("similarity_null_mean_encoder", ("similarity_null_mean", "encoder")),
        ("shared_neighbours_random", ("shared_neighbours", "random")),
        ("minimum_distance_change", ("minimum_distance_change", "")),
        ("separable_pairs_null_mean", ("separable_pairs_null_mean", "")),
        ("accuracy_original", ("accuracy_original", "")),  # it compares nothing
    ],
)
def test_a_name_in_the_table_is_a_measure_and_what_was_compared(name: str, parts: tuple[str, str]) -> None:
    assert split_name(name) == parts


def test_an_unknown_measure_is_refused() -> None:
    assert find("accuracy_original") is None
    with pytest.raises(InputError, match="measure 'accuracies' is unknown; expected one of "):
        measure("accuracies")


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_says_what_it_is_in_one_line(name: str) -> None:
    entry = MEASURES[name]
    assert entry.name == name
    assert entry.title
    assert 10 < len(entry.meaning) < 200
    assert "\n" not in entry.meaning
    assert entry.compares or not entry.training_only
    if entry.null:
        assert {f"{entry.null}_null_mean", f"{entry.null}_null_sd"} <= set(MEASURES)


def test_titles_are_distinct() -> None:
    titles = [entry.title for entry in MEASURES.values() if not entry.name.endswith("n_over_2d")]
    assert len(set(titles)) == len(titles)


def placed(study: ResolvedPlan, comparison: str, *names: str) -> list[str]:
    """The names in the table of a comparison's measures."""
    place = Position("bert-tiny", "words", 0, 4, 2.0, 2, "words", "train", is_final=True, weights="")
    result = {"key": "", "version": "", "rows": [{"measure": name, "value": 1.0} for name in names]}
    return [row["measure"] for row in _placed(study, Placement("", place, comparison), result)]


def test_measures_of_a_training_are_kept_where_the_start_is_compared(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = opened(small_plan(tasks), tmp_path)
    moved = Measure("n_labels_moved", "labels that moved", "number of labels that moved", compares=True)
    monkeypatch.setitem(MEASURES, moved.name, moved)
    names = ("similarity", "n_labels_increased", "n_labels_moved")
    assert placed(study, "original", *names) == ["similarity_original", "n_labels_increased", "n_labels_moved_original"]
    assert placed(study, "seed", *names) == ["similarity_seed", "n_labels_moved_seed"]


def test_the_docs_list_all_measures() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "study.md").read_text(encoding="utf-8")
    table = docs.partition("<!-- measures: begin -->\n")[2].partition("<!-- measures: end -->")[0]
    assert table.strip() == markdown_table().strip(), "copy the output of registry.markdown_table() into docs/study.md"

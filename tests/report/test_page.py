"""The page as a file: no word breaks out of it, nothing asks the network, and any study gives one that makes sense."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from closerlook.errors import InputError
from closerlook.escaping import show_text
from closerlook.report import write_comparison, write_report
from closerlook.report.blocked_merges import blocked_spaces
from closerlook.report.inlining import pack, pack_data, safe_script
from closerlook.report.page import make_page
from closerlook.report.writing import load_study
from closerlook.study.findings import judge_results
from closerlook.study.readings import index_results
from closerlook.study.results import load_results
from closerlook.study.rules import VERSION, rules_hash
from tests.report.studies import frame, golden, golden_beyond, made_up, unpack_data, write_study

HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert('x')>",
    "</script><script>alert(2)</script>",
    "<!-- --> & &amp; \u2028 ' `",
    "שלום עולם",
    "🦊🇧🇪",
    "{{ 7 * 7 }} ${1}",
]
MANIFEST: dict[str, Any] = {
    "study": "made up",
    "version": "0.1.0",
    "seconds": 12.0,
    "plan": {"seeds": [0], "tasks": ["animals", "colours"], "cross": [{"tuned": "animals", "probed": "colours"}]},
    "encoders": {
        "bert-tiny": {"name": "bert-tiny", "weights": "f" * 32, "layers": 2, "width": 128, "parameters": 4385920}
    },
    "tasks": {"animals": {"unit": "token", "labels": ["cat", "dog", "eel"], "examples": {"train": 30, "test": 9}}},
    "settings": {"bert-tiny on animals": {"epochs": 3.0, "learning_rate": 0.001, "batch_size": 8, "snapshots": "log"}},
    "hardware": {"processor": "a processor", "cores": 2, "memory_bytes": 8e9},
    "packages": {"torch": "2.0"},
    "kinds": {"tune": {"cells": 2, "seconds": 3725.0, "cpu_seconds": 90.0}},
    "failed": [{"key": "k", "title": "classify <b>x</b>", "error": "WorkError: out of <memory>"}],
    "blocked": 4,
}


class Reader(HTMLParser):
    """The elements of a page as a browser would see them, the text outside scripts, and the scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.scripts, self._open = "", [""], ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag if tag in {"script", "style"} else ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self.scripts.append("")
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts[-1] += data
        elif self._open != "style":
            self.text += data


def page_of(folder: Path, table: Any, manifest: dict[str, Any] | None = None) -> Reader:
    return Reader(write_report(write_study(folder, table, manifest), figures=False).read_text(encoding="utf-8"))


def text_of(table: Any, manifest: dict[str, Any] | None = None) -> str:
    """What a page says, its figures left out."""
    results = index_results(table, manifest)
    return Reader(make_page(results, judge_results(results), [])).text


def test_a_page_is_one_file_that_lets_in_its_own_scripts_only(tmp_path: Path) -> None:
    page = page_of(tmp_path, golden())
    policy = next(attributes["content"] for tag, attributes in page.tags if attributes.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "http" not in policy
    outside = [value for _, attributes in page.tags for name, value in attributes.items() if name in {"src", "href"}]
    assert all(value and value.startswith(("#", "data:")) for value in outside)


def test_a_page_is_small(tmp_path: Path) -> None:
    page = write_report(write_study(tmp_path, made_up()), figures=False)
    assert page.stat().st_size < 8e5


def test_words_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    names = {"t": [f"label {at}" for at in range(len(HOSTILE))]}
    plain = page_of(tmp_path / "plain", made_up(["e"], names, wider=True))
    table = made_up([HOSTILE[0]], {HOSTILE[1]: HOSTILE}, word=HOSTILE[2], wider=True)
    hostile = page_of(tmp_path / "hostile", table)
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]
    assert all(word in hostile.text for word in HOSTILE[:2])
    packed = next(script for script in hostile.scripts if script.startswith("H4sI"))
    specs = [spec for name, spec in unpack_data(packed).items() if name.startswith("spec-")]
    labels = {row for spec in specs for row in spec["datasets"]["rows"].get("label", {}).get("texts", [])}
    assert set(map(show_text, HOSTILE)) <= labels


def test_data_of_a_page_come_back_the_same_without_markup_on_it() -> None:
    data = {"words": HOSTILE, "lines": ["a\nb", "\u2028"], "empty": []}
    text = pack_data(data)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", text)
    assert unpack_data(text) == data
    assert pack_data(data) == text


def test_scripts_cannot_end_early() -> None:
    assert safe_script("'</script>' + '<!--'") == "'<\\/script>' + '<\\!--'"


def test_packed_data_comes_back_the_same() -> None:
    rows = [{"label": "a", "x": 1.5, "n": None}, {"label": "b", "x": None, "n": 2}, {"label": "a", "x": 0.0, "n": 1}]
    packed = pack({"mark": "point", "datasets": {"rows": rows}})["datasets"]["rows"]
    assert packed == {"label": {"texts": ["a", "b"], "at": [0, 1, 0]}, "x": [1.5, None, 0.0], "n": [None, 2, 1]}


def test_the_page_says_what_was_run() -> None:
    text = text_of(made_up(), MANIFEST)
    for part in (
        "1 h 2 min",
        "4.4 M",
        "ffffffff",
        "fine-tuned on animals, probed on colours",
        "a processor",
        "8 GB",
        "0.001",
    ):
        assert part in text


@pytest.fixture(scope="module")
def six_pairs() -> tuple[Any, str]:
    """The table of a study of three encoders on two tasks, and the text of its page."""
    table = made_up(["a", "b", "c"])
    return table, text_of(table)


def test_squares_are_explained_only_where_they_are_shown(
    six_pairs: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, text = six_pairs
    assert "One square for each pair of encoder and task" in text
    monkeypatch.setattr("closerlook.report.page.MOST_SQUARES", 1)
    text = text_of(table)
    assert "One square" not in text
    assert "The number of pairs of encoder and task that support the finding, that contradict it, whose change" in text


def test_the_page_says_which_version_of_the_rules_judged_it(six_pairs: tuple[Any, str]) -> None:
    assert f"Rules: version {VERSION}, hash {rules_hash()}." in six_pairs[1]


def test_sections_beyond_the_paper_appear_if_they_were_measured() -> None:
    titles = (
        "Comparison with shuffled labels",
        "Uncertainty",
        "Predicting train–test similarity",
        "Shape of the spaces",
    )
    with_them, without_them = text_of(golden_beyond()), text_of(golden())
    assert all(title in with_them for title in titles)
    assert not any(title in without_them for title in titles)


def test_only_remarks_about_exceptions_are_marked_not_names_that_contain_the_word(tmp_path: Path) -> None:
    labels = {"exception handling": ["exception", "b", "c"]}
    page = page_of(tmp_path / "names", made_up(["exception-bert"], labels, wider=True), MANIFEST)
    classes = [attributes.get("class") or "" for _, attributes in page.tags]
    assert not any("exception" in one.split() for one in classes)
    golden_page = page_of(tmp_path / "golden", golden())  # ps-role loses accuracy
    assert sum("exception" in (attributes.get("class") or "").split() for _, attributes in golden_page.tags) == 1


def test_a_single_seed_is_mentioned_with_the_intervals_over_examples() -> None:
    text = text_of(made_up(wider=True))
    assert "Every fine-tuning was run with one seed" in text
    assert "Variation over seeds" not in text
    assert "Intervals over examples and over labels" in text


def test_failed_cells_are_listed_and_escaped(tmp_path: Path) -> None:
    page = page_of(tmp_path, made_up(), MANIFEST)
    assert (
        "1 cell failed, and their measurements are missing. 4 other cells could not start because of that." in page.text
    )
    assert "classify <b>x</b>" in page.text
    assert "b" not in {tag for tag, _ in page.tags}


def test_a_frozen_study_says_that_nothing_was_tuned() -> None:
    text = text_of(made_up(steps=()))
    assert "Nothing was fine-tuned, so no finding can be judged." in text
    assert "bert-tiny on 2 tasks, without fine-tuning" in text


def test_one_checkpoint_says_that_lines_have_two_points() -> None:
    assert "Only the start and the end of fine-tuning were measured, so lines have two points." in text_of(
        made_up(steps=(0, 9))
    )


def test_a_single_task_says_what_is_missing() -> None:
    text = text_of(made_up(tasks={"animals": ["cat", "dog", "eel"]}))
    assert "No fine-tuned encoder was measured on a task other than its own" in text
    assert "How fine-tuning changed bert-tiny on animals" in text


@pytest.mark.parametrize("measure", ["accuracy", "minimum_distance", "similarity_train_test"])
def test_a_missing_measure_is_mentioned(measure: str) -> None:
    table = made_up()
    notes = {"accuracy": "there are no accuracies", "minimum_distance": "Label distances were not measured"}
    text = text_of(table[table.measure != measure])
    assert notes.get(measure, "The similarity of train and test was not measured.") in text


def test_an_empty_table_still_gives_a_page() -> None:
    assert "so there is nothing to show" in text_of(frame([]))


def test_a_fine_tuning_without_its_end_counts_as_not_tuned() -> None:
    table = made_up()
    text = text_of(table[~((table.tuned_on == "animals") & table["is_final"])])
    assert "These were not fine-tuned, or not to the end: bert-tiny on animals." in text


def test_a_start_that_is_missing_is_taken_from_step_0() -> None:
    table = made_up()
    results = index_results(table[~((table.tuned_on == "") & (table.measure == "mean_minimum_distance"))])
    found = results.before("mean_minimum_distance", "bert-tiny", "animals")
    assert found is not None
    assert found.value == 1.0


def test_blocked_merges_are_from_before_and_after_last_layer_first() -> None:
    spaces, excluded = blocked_spaces(index_results(golden()))
    assert excluded == 0
    assert [(one["task"], one["state"], one["layer"], one["clusters"], one["labels"]) for one in spaces] == [
        ("ps-fxn", "before", 2, 5, 3)
    ]
    merge = spaces[0]["merges"][0]
    assert (merge["label"], merge["other"], merge["sizes"], merge["blocker_size"]) == ("A", "B", [35, 5], 30)
    assert merge["points"][0]["text"] == "a cup of tea"


def test_undecided_is_defined_only_if_the_page_uses_it() -> None:
    table = made_up()
    assert "undecided" not in text_of(table)
    table.loc[table.measure == "n_undecided", "value"] = 2.0
    text = text_of(table)
    assert "undecided: 2 → 2" in text
    assert "undecidedof two clusters: the distance of their convex hulls" in text


def test_a_page_says_how_many_blocked_merges_are_stored() -> None:
    assert "stores at most 40 blocked merges: the pairs whose smaller cluster has the most" in text_of(golden())


def test_spaces_whose_points_coincide_are_excluded() -> None:
    table = made_up()
    before = blocked_spaces(index_results(table))[0]
    table.loc[(table.measure == "rms_radius") & (table.layer == 0), "value"] = 0.0
    assert {one["layer"] for one in before} - {one["layer"] for one in blocked_spaces(index_results(table))[0]} == {0}


def test_spaces_that_do_not_fit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("closerlook.report.blocked_merges.MOST_BYTES", 1)
    spaces, excluded = blocked_spaces(index_results(made_up()))
    assert (len(spaces), excluded) == (1, 11)  # 2 tasks, 3 layers, before and after


def test_a_table_read_back_from_csv_gives_the_same_page(tmp_path: Path) -> None:
    golden().to_csv(tmp_path / "results.csv", index=False)
    assert text_of(load_results(tmp_path / "results.csv")) == text_of(golden())


def test_a_broken_manifest_is_an_error_in_one_line(tmp_path: Path) -> None:
    folder = write_study(tmp_path, golden())
    (folder / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json is not JSON .*; expected the manifest that a study writes"):
        load_study(folder)


def test_two_studies_side_by_side(tmp_path: Path) -> None:
    first = write_study(tmp_path / "first", made_up(), MANIFEST | {"plan": {"seeds": [0]}})
    second = write_study(tmp_path / "second", made_up(steps=()), MANIFEST | {"plan": {"seeds": [1]}})
    text = Reader(write_comparison(first, second, tmp_path / "both.html").read_text()).text
    assert "A: made up (first)" in text
    assert "Limitations of B" in text
    assert "What differs" in text
    assert "Nothing was fine-tuned" in text

"""The pages that are written from the kept table: up to date, without numbers of their own, and refused when untrue."""

import re
import sys
from pathlib import Path

import pytest

from closerlook.study.readings import index_results
from tests.report.studies import frame, golden

DOCS = Path(__file__).parents[2] / "docs"
TEMPLATES = sorted((DOCS / "templates").glob("*.jinja"))

sys.path.insert(0, str(DOCS))
import write_up  # noqa: E402  (a script next to its pages, not a package)
from writeup import (  # noqa: E402
    facts,
    forgetting,
    further_tables,
    held_out,
    label_gains,
    methods,
    paper_tables,
    phrases,
    records,
    values,
)

NO_PROSE = re.compile(
    r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}"  # comments, statements and expressions of the template
    r"|^```.*?^```|`[^`]*`"  # code
    r"|\]\([^)]*\)|\b(?:19|20)\d\d(?:-\d\d-\d\d)?\b"  # targets of links; years and dates
    r"|\b(?:Tables?|Figures?|[Ff]indings?|[Ll]ayers?|[Vv]ersions?|[Rr]ank) \d+(?:(?:, | and | to )\d+)*"  # numbered
    r"|\b[A-Za-z]+-\d+\b|\ball-MiniLM-L6-v2\b|\bNC\d\b",  # names: trec-50
    re.MULTILINE | re.DOTALL,
)


def bare_numbers(template: str) -> list[str]:
    """The lines of a template with a digit in their prose."""
    prose = NO_PROSE.sub(lambda found: "\n" * found[0].count("\n"), template)
    return [line.strip() for line in prose.splitlines() if re.search(r"\d", line)]


@pytest.fixture(scope="module")
def small() -> values.Study:
    return values.Study(index_results(golden()))


def stale_pages(*templates: str) -> list[str]:
    return write_up.stale(write_up.render(pages=templates))


@pytest.mark.no_cover
def test_the_replication_and_the_note_are_what_the_kept_table_gives() -> None:
    pages = ("reproduction.md.jinja", "lora-and-forgetting.md.jinja", "note.md.jinja", "held-out.md.jinja")
    assert stale_pages(*pages) == []  # together, since the table takes ten seconds


@pytest.mark.slow
def test_the_appendix_is_what_the_kept_table_gives() -> None:
    assert stale_pages("appendix.md.jinja") == []


def test_the_replication_is_short() -> None:
    assert len((DOCS / "reproduction.md").read_text(encoding="utf-8").split()) <= 13_175 / 2  # half of version 0.1's


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_number_in_the_prose_is_an_expression(template: Path) -> None:
    assert bare_numbers(template.read_text(encoding="utf-8")) == []


def test_a_number_that_is_written_by_hand_is_reported() -> None:
    by_hand = "It falls in 15 of 20 pairs.\nOn `trec-50`, {{ n }} of them.\nA gain of 0.5 points (ACL 2022; Table 7)."
    assert bare_numbers(by_hand) == ["It falls in 15 of 20 pairs.", "A gain of 0.5 points (ACL ; )."]
    allowed = (
        "Findings 3 and 4, Figure 6, layer 0, trec-50, NC1, all-MiniLM-L6-v2, 2022-09-22, [a](b.md#c-1)\n```\n5\n```\n"
    )
    assert bare_numbers(f"{allowed}\n```\n5\n```\n") == []


def test_a_page_is_refused_when_a_statement_is_no_longer_true() -> None:
    page = write_up.environment().from_string("It rises.{{ require(after > before, 'accuracy rises') }}")
    assert page.render(before=1, after=2) == "It rises."
    with pytest.raises(phrases.StaleTextError, match="contradicts the text: accuracy rises"):
        page.render(before=2, after=1)


def test_a_page_is_refused_when_it_needs_what_the_table_does_not_have(small: values.Study) -> None:
    with pytest.raises(phrases.StaleTextError, match="has no selectivity of bert-tiny on pos before"):
        small.before("selectivity", "bert-tiny", "pos")


def test_a_paragraph_is_one_line_so_that_no_number_begins_a_list() -> None:
    wrapped = "# A\n\nIt falls in\n1. Then\n  more.\n\n\n- one\n  two\n- three\n\n| a |\n|---|\n\n```\nx\n\n  y\n```\n"
    joined = "# A\n\nIt falls in 1. Then more.\n\n- one two\n- three\n\n| a |\n|---|\n\n```\nx\n\n  y\n```\n"
    assert write_up.unwrap(wrapped) == joined


def test_figures_that_no_page_shows_any_more_are_removed(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    for name in ("old", "shared", "other"):
        (tmp_path / "figures" / f"{name}.svg").touch()
    (tmp_path / "page.md").write_text("![a](figures/old.svg) ![b](figures/shared.svg)")
    (tmp_path / "second.md").write_text("![b](figures/shared.svg)")
    write_up.write(write_up.WriteUp({"page.md": "now without pictures"}), tmp_path)
    assert {file.name for file in (tmp_path / "figures").iterdir()} == {"shared.svg", "other.svg"}


def test_tables_have_our_values_and_the_published_ones_in_brackets(small: values.Study) -> None:
    assert paper_tables.accuracy_table(small).splitlines()[2:] == [
        "| bert-tiny | 74.0→75.0 (74.1→74.4) | 58.0→50.0 (58.4→60.3) | 90.0→92.0 (90.8→91.7) |"
    ]
    assert paper_tables.clusters_table(small).splitlines()[2:] == [
        r"| bert-tiny | 5→3\* (402→40\*) | 3\*→3\* (46\*→46\*) | 4→6 (3,936→20) |"
    ]
    assert paper_tables.similarity_table(small).splitlines()[2:] == [
        "| bert-tiny | 0.80°→0.60 (–→0.72) | 0.70→0.72 (0.76→0.70) | 0.95→0.70 |"
    ]


def test_larger_published_counts_are_shown_with_the_count_of_the_released_code(small: values.Study) -> None:
    recorded = {"released_counts": {"bert-tiny": {"pos": 1000}}}
    rows = paper_tables.released_table(small, recorded).splitlines()[2:]
    assert rows == [
        "| bert-tiny ps-fxn | 100 | 3 | 402 | 5 | – |",
        "| bert-tiny ps-role | 100 | 3 | 46 | 3 | – |",
        "| bert-tiny pos | 100 | 4 | 3,936 | 4 | 1,000 |",
    ]
    assert facts.limit_factor(small, recorded) == 3.936


def test_runs_are_divided_by_the_separability_of_their_spaces(small: values.Study) -> None:
    separable, others = small.by_separability("similarity_train_test")
    assert ([run.task for run in separable], [run.task for run in others]) == (["ps-role", "pos"], ["ps-fxn"])
    assert phrases.named(phrases.which(separable, "rises")) == "bert-tiny (ps-role)"


def test_numbers_are_compared_with_the_published_ones(small: values.Study) -> None:
    before = small.compared("accuracy", "accuracy", "before", 100)
    assert [round(one.difference, 2) for one in before] == [-0.14, -0.38, -0.76]
    falls = phrases.which(small.published_changes("train_test_spatial_similarity"), "falls")
    assert [one.task for one in falls] == ["ps-role"]


def test_forgetting_is_the_change_of_accuracy_on_every_task(small: values.Study) -> None:
    rows = forgetting.forgetting_table(small).splitlines()[2:]
    assert rows[0].startswith("| bert-tiny | ps-fxn | **+1.0** |")
    assert [forgetting.accuracy_change(small, "bert-tiny (lora 4)", "pos", "pos")] == [None]
    assert round(forgetting.accuracy_change(small, "bert-tiny", "ps-role", "ps-role") or 0, 9) == -8


DISTANCES = {"a": (1.0, 2.0, 4.0), "b": (1.0, 2.0, 3.0), "c": (3.0, 2.0, 1.0)}
"""Label distances of three made-up spaces: a and b are similar (correlation 0.98), c is the reverse of b."""


@pytest.fixture(scope="module")
def by_methods() -> values.Study:
    """One encoder on two tasks, by two methods, with two seeds; task x has three times as many seeds of LoRA."""
    rows: list[dict[str, object]] = []
    for task in ("x", "y"):
        start = {"encoder": "e", "task": task, "layer": 2, "measure": "accuracy", "split": "test"}
        rows.append(start | {"tuned_on": "", "step": 0, "is_final": False, "value": 0.5})
        for encoder, spaces in {"e": "ab", "e (lora 4)": "cccccc" if task == "x" else "cc"}.items():
            for seed, space in enumerate(spaces):
                run = {"encoder": encoder, "tuned_on": task, "seed": seed, "step": 9, "is_final": True, "layer": 2}
                accuracy = {"x": 0.6, "y": 0.8}[task]
                rows.append(run | {"task": task, "measure": "accuracy", "split": "test", "value": accuracy})
                lost = {"task": "y" if task == "x" else "x", "measure": "accuracy", "split": "test"}
                rows.append(run | lost | {"value": 0.4 - 0.1 * seed if encoder == "e" else 0.5})
                rows.append(run | {"task": task, "measure": "similarity_original", "split": "train", "value": 0.7})
                rows += [
                    run
                    | {"task": task, "measure": "label_distance", "split": "train", "value": value}
                    | {"label": one, "other": other}
                    for (one, other), value in zip(("pq", "pr", "qr"), DISTANCES[space], strict=True)
                ]
    early = {"encoder": "e", "tuned_on": "x", "seed": 0, "step": 1, "is_final": False, "layer": 2, "task": "y"}
    rows.append(early | {"measure": "accuracy", "split": "test", "value": 0.45})
    return values.Study(index_results(frame(rows), {"plan": {"tuning": {"methods": ["lora 4", "full"]}}}))


def test_methods_are_compared_with_full_fine_tuning_and_with_other_seeds(by_methods: values.Study) -> None:
    between = methods.method_similarities(by_methods, "e", "e (lora 4)")
    assert {task: round(value, 3) for task, value in between.items()} == {"x": -0.991, "y": -0.991}
    assert {round(value, 3) for value in methods.method_similarities(by_methods, "e", "e").values()} == {0.982}
    assert methods.method_table(by_methods).splitlines()[2:] == [
        "| e, pretrained | 50.0 | – | – | – | – | – | – |",
        "| e (full) | 70.0 | – | – | 0.70 | – | 0.98 | −15.0 |",
        "| e (lora 4) | 70.0 | – | – | 0.70 | −0.99 | 1.00 | 0.0 |",
    ]


def test_every_task_counts_the_same_whatever_its_number_of_seeds(by_methods: values.Study) -> None:
    assert round(methods.task_mean(by_methods, "accuracy", "e (lora 4)") or 0, 9) == 0.7
    assert methods.task_mean(by_methods, "nc1", "e") is None


def test_seeds_are_compared_over_the_tasks_that_all_have(by_methods: values.Study) -> None:
    assert [round(mean, 9) for mean in methods.seed_means(by_methods, "accuracy", "e (lora 4)")] == [0.7, 0.7]
    assert methods.seed_means(by_methods, "nc1", "e") == []


def test_layers_and_other_tasks_have_a_column_for_each_method_in_the_order_of_the_plan(
    by_methods: values.Study,
) -> None:
    assert methods.method_layers_table(by_methods, "e").splitlines()[0] == "| encoder and method | layer 2 |"
    assert methods.forgotten_table(by_methods, "e").splitlines() == [
        "| fine-tuned on → measured on | e (full) | e (lora 4) |",
        "|---|--:|--:|",
        "| x→y | −15.0 | 0.0 |",
        "| y→x | −15.0 | 0.0 |",
    ]


def test_methods_are_compared_by_the_labels_that_they_move() -> None:
    place = {"task": "x", "layer": 2, "split": "train"}
    rows: list[dict[str, object]] = [
        place | {"encoder": "e", "tuned_on": "", "step": 0, "measure": label_gains.DISTANCE, "label": label, "value": 1}
        for label in "pqrs"
    ]
    for encoder, ends in {
        "e": [(2, 3, 4, 5), (3, 2, 4, 5)],
        "e (lora 4)": [(5, 4, 3, 2)],
        "e (head)": [(1,) * 4],
    }.items():
        for seed, values_of in enumerate(ends):
            run = place | {"encoder": encoder, "tuned_on": "x", "seed": seed, "step": 9, "is_final": True}
            rows += [
                run | {"measure": label_gains.DISTANCE, "label": label, "value": value}
                for label, value in zip("pqrs", values_of, strict=True)
            ]
            rows.append(run | {"measure": label_gains.SIGNIFICANT, "value": sum(value > 3 for value in values_of)})
    study = values.Study(index_results(frame(rows), {"plan": {"tuning": {"methods": ["full", "lora 4", "head"]}}}))
    assert {task: round(one, 9) for task, one in label_gains.gain_correlations(study, "e", "e").items()} == {"x": 0.8}
    between = label_gains.gain_correlations(study, "e", "e (lora 4)")
    assert {task: round(one, 9) for task, one in between.items()} == {"x": -0.9}
    assert label_gains.moved_labels_table(study).splitlines() == [
        "| encoder and method | x, of 4 |",
        "|---|--:|",
        "| e (full) | 2 |",
        "| e (lora 4) | 2 |",
    ]
    assert label_gains.extreme_labels(study, "e", "x", "most", 2) == "s and r"
    assert label_gains.extreme_labels(study, "e (lora 4)", "x", "least", 1) == "s"


def test_forgetting_is_followed_along_training(by_methods: values.Study) -> None:
    assert round(forgetting.forgetting_course(by_methods, "x", 1), 9) == -5
    with pytest.raises(phrases.StaleTextError, match="no accuracy of other tasks at step 2 of x"):
        forgetting.forgetting_course(by_methods, "x", 2)


def test_answers_that_were_not_expected_are_listed(small: values.Study) -> None:
    expected: dict[int, dict[str, object]] = {number: {"verdict": "holds"} for number in range(1, 6)}
    expected[1] |= {"no answer": ["bert-tiny"], "for": ["bert-base"]}  # bert-base was not run
    expected[2] |= {"against": ["bert-tiny"]}
    rows = held_out.expectation_table(small, expected).splitlines()[2:]
    assert rows[0] == "| 1 | holds | cannot tell | 0 : 0 : 0 : 3 | 3 of 3 | – |"
    assert rows[1].startswith("| 2 | holds | cannot tell | 0 : 0 : 2 : 1 | 0 of 3 | bert-tiny: ")
    assert "(expected: against)" in rows[1]
    assert len(held_out.unexpected(small, expected, 2)) == 3


def test_findings_are_grouped_by_verdict(small: values.Study) -> None:
    assert {finding.verdict for finding in small.findings} == {"cannot tell"}  # one encoder and three tasks
    assert facts.verdict_sentence(small) == "Findings 1, 2, 3, 4 and 5 cannot be judged"


def change(encoder: str, task: str, before: float = 0, after: float = 0, tuned_on: str = "") -> records.Change:
    return records.Change(encoder, task, tuned_on or task, before, after)


def test_an_unfinished_study_counts_the_runs_of_each_encoder_that_lack_a_part() -> None:
    run = {"task": "x", "tuned_on": "x", "step": 9, "is_final": True, "layer": 2}
    places = [run | {"encoder": encoder, "seed": seed} for encoder in "ab" for seed in range(3)]
    rows = [place | {"measure": "n_clusters", "split": "train", "value": 4} for place in places]
    rows += [place | {"measure": "nc1", "split": "train", "value": 1} for place in places[:4]]
    study = values.Study(index_results(frame(rows)))
    assert further_tables.lacking(study) == ["measures of shape such as NC1 (2 of 6 runs: b 2)"]


def test_seeds_are_counted_for_each_task() -> None:
    run = {"measure": "accuracy", "split": "test", "step": 9, "is_final": True, "layer": 2, "value": 1}
    rows = [run | {"encoder": "a", "task": "x", "tuned_on": "x", "seed": seed} for seed in range(3)]
    rows += [run | {"encoder": encoder, "task": "y", "tuned_on": "y", "seed": 0} for encoder in "ab"]
    study = values.Study(index_results(frame(rows)))
    assert [study.seeds_in_all(encoder) for encoder in "ab"] == [(1, 3), (1,)]
    assert [(pair.encoder, pair.task) for pair in study.with_one_seed()] == [("a", "y"), ("b", "y")]


@pytest.mark.parametrize(("known", "text"), [("abc", "all 3 pairs"), ("ab", "2 of 3 pairs")])
def test_the_pairs_that_a_measure_is_known_of_are_counted(known: str, text: str) -> None:
    run = {"task": "x", "tuned_on": "x", "seed": 0, "layer": 2, "split": "train", "value": 1}
    rows = [
        run | {"encoder": encoder, "measure": measure, "step": step, "is_final": step == 9}
        for measure, encoders in (("n_clusters", "abc"), ("nc1", known))
        for encoder in encoders
        for step in (0, 9)
    ]
    study = values.Study(index_results(frame(rows)))
    assert facts.measured_in(study, "nc1", "after") == facts.measured_in(study, "nc1", "before") == text


def test_counts_are_written_in_words_that_fit() -> None:
    changes = [change("a", "x", 1, 2), change("a", "y", 2, 1), change("b", "x", 1, 3)]
    assert phrases.how_many(changes, "rises", "pairs") == "2 of 3 pairs"
    assert phrases.how_many(changes[:1], "rises", "pairs") == "all 1 pairs"
    assert phrases.how_many(changes, "seed") == "none of 3"


def test_pairs_are_named_by_encoder() -> None:
    changes = [change("bert-tiny", "y"), change("bert-tiny", "x"), change("all-MiniLM-L6-v2", "y")]
    assert phrases.named(changes, ("x", "y")) == "bert-tiny and MiniLM (y)"
    assert phrases.named([*changes[:1], change("b", "x", tuned_on="y")]) == "bert-tiny (y) and b (y → x)"
    assert phrases.named([]) == "no pair"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (phrases.span([0.914, 0.4]), "0.40 to 0.91"),
        (phrases.span([0.401, 0.402]), "0.40"),
        (phrases.percents([0.26, 0.425], 1), "26.0% to 42.5%"),
        (phrases.fixed(-0.2, 1), "−0.2"),
        (phrases.signed(1234.4, 0), "+1,234"),
        (phrases.trend([1, 2, 3]), "rises from each size to the next"),
        (phrases.trend([3, 1, 2]), "falls, though not from each size to the next"),
        (phrases.listed(["a", "b", "c"]), "a, b and c"),
    ],
)
def test_numbers_and_lists_are_written_alike_everywhere(shown: str, expected: str) -> None:
    assert shown == expected

"""JSON lines, CSV and TSV: every unit, columns by usual name or option, labels of every kind, and every refusal."""

import json
from pathlib import Path
from typing import Any

import pytest

from closerlook.errors import InputError
from closerlook.tasks.readers import read_task
from closerlook.tasks.task import Task

WORDS = ["light", "rain", "falls"]


def jsonl(tmp_path: Path, *records: Any, **options: Any) -> Task:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(record if isinstance(record, str) else json.dumps(record) for record in records))
    return read_task(path, **options)


def table(tmp_path: Path, content: str, suffix: str = "csv", **options: Any) -> Task:
    path = tmp_path / f"a.{suffix}"
    path.write_text(content, encoding="utf-8", newline="")
    return read_task(path, **options)


def examples(task: Task, split: str = "train") -> list[tuple[Any, ...]]:
    part = task.split(split)
    return [
        (int(text), *where.tolist(), task.labels[y])
        for text, where, y in zip(part.sentence, part.positions, part.y, strict=True)
    ]


@pytest.mark.parametrize(
    ("targets", "unit", "expected"),
    [
        (["ADJ", None, "VERB"], "token", [(0, 0, "ADJ"), (0, 2, "VERB")]),
        ([{"token": 1, "label": "NOUN"}, {"token": 0, "label": None}], "token", [(0, 1, "NOUN")]),
        ([{"start": 0, "stop": 2, "label": "NP"}], "span", [(0, 0, 2, "NP")]),
        ([{"head": 1, "dependent": 0, "label": "amod"}], "pair", [(0, 1, 0, "amod")]),
        ([0, True, 2.5], "token", [(0, 0, "0"), (0, 1, "true"), (0, 2, "2.5")]),
    ],
)
def test_targets_say_their_unit(tmp_path: Path, targets: list[Any], unit: str, expected: list[Any]) -> None:
    task = jsonl(tmp_path, {"words": WORDS, "targets": targets}, {"words": ["so"], "targets": []})
    assert task.unit == unit
    assert examples(task) == expected
    assert task.split("train").texts == (tuple(WORDS), ("so",))


@pytest.mark.parametrize(("value", "label"), [("yes", "yes"), (3, "3"), (-1, "-1"), (False, "false"), ("1.5a", "1.5a")])
def test_labels_may_be_strings_numbers_or_booleans(tmp_path: Path, value: object, label: str) -> None:
    task = jsonl(tmp_path, {"text": "It rains", "label": value}, {"text": "Does it", "label": None})
    assert (task.unit, examples(task)) == ("sentence", [(0, label)])
    assert task.split("train").texts == ("It rains", "Does it")


def test_a_target_may_have_several_labels_to_choose_from(tmp_path: Path) -> None:
    record = {"id": "r1", "tokens": ["of", "it"], "targets": [{"token": 0, "role": "Whole", "function": "Gestalt"}]}
    assert examples(jsonl(tmp_path, record, label="role")) == [(0, 0, "Whole")]
    assert examples(jsonl(tmp_path, record, label="function")) == [(0, 0, "Gestalt")]


@pytest.mark.parametrize("words", ["words", "tokens"])
@pytest.mark.parametrize("targets", ["targets", "tags", "labels"])
def test_usual_names_of_words_and_targets_are_found(tmp_path: Path, words: str, targets: str) -> None:
    expected = [(0, 0, "A"), (0, 1, "B"), (0, 2, "C")]
    assert examples(jsonl(tmp_path, {"id": 1, words: WORDS, targets: ["A", "B", "C"]})) == expected
    assert examples(table(tmp_path, f"id,{words},{targets}\n1,light rain falls,A B C\n")) == expected
    assert examples(table(tmp_path, f"id\t{words}\t{targets}\n1\tlight rain falls\tA B C\n", "tsv")) == expected


@pytest.mark.parametrize("text", ["text", "sentence", "question"])
@pytest.mark.parametrize("label", ["label", "class"])
def test_usual_names_of_text_and_label_are_found(tmp_path: Path, text: str, label: str) -> None:
    assert examples(jsonl(tmp_path, {"id": 1, text: "It rains", label: "L"})) == [(0, "L")]
    assert examples(table(tmp_path, f"id,{text},{label}\n1,It rains,L\n")) == [(0, "L")]


def test_columns_are_named_by_option(tmp_path: Path) -> None:
    record = {"w": WORDS, "t": "It rains", "pos": ["A", "B", "C"], "kind": "K"}
    assert examples(jsonl(tmp_path, record, words="w", label="pos")) == [(0, 0, "A"), (0, 1, "B"), (0, 2, "C")]
    assert jsonl(tmp_path, record, text="t", label="kind").split("train").texts == ("It rains",)
    assert jsonl(tmp_path, record, words="w", label="kind").split("train").texts == (tuple(WORDS),)
    cells = "w,t,pos,kind\nlight rain,It rains,A B,K\n"
    assert examples(table(tmp_path, cells, words="w", label="pos")) == [(0, 0, "A"), (0, 1, "B")]
    assert examples(table(tmp_path, cells, text="t", label="kind")) == [(0, "K")]
    assert examples(table(tmp_path, cells.replace("w,", "words,"), text="t", label="kind")) == [(0, "K")]
    assert examples(table(tmp_path, cells, words="w", label="kind", unit="sentence")) == [(0, "K")]


def test_text_is_preferred_for_a_label_of_the_sentence_and_words_for_targets(tmp_path: Path) -> None:
    record = {"words": WORDS, "text": "Light rain falls.", "label": "L"}
    assert jsonl(tmp_path, record).split("train").texts == ("Light rain falls.",)
    assert jsonl(tmp_path, record, words="words").split("train").texts == (tuple(WORDS),)
    assert jsonl(tmp_path, {**record, "tags": ["A", "B", "C"]}).unit == "token"
    assert jsonl(tmp_path, {**record, "tags": ["A", "B", "C"]}, unit="sentence").labels == ("L",)


def test_words_can_carry_a_label_of_the_sentence(tmp_path: Path) -> None:
    for task in (
        jsonl(tmp_path, {"words": ["It", "rains"], "label": "L"}),
        table(tmp_path, "words,label\nIt rains,L\n"),
    ):
        assert (task.unit, task.split("train").texts) == ("sentence", (("It", "rains"),))


def test_cells_hold_words_or_json_lists(tmp_path: Path) -> None:
    text = 'words,targets\n"[""light rain"", ""falls""]","[""NP"", null]"\n[ 1 ],P _ X\n_,1\n'
    task = table(tmp_path, text)
    assert task.split("train").texts == (("light rain", "falls"), ("[", "1", "]"), ("_",))
    assert examples(task) == [(0, 0, "NP"), (1, 0, "P"), (1, 2, "X"), (2, 0, "1")]
    assert examples(table(tmp_path, 'words,targets\na b,"[0, true]"\n')) == [(0, 0, "0"), (0, 1, "true")]


def test_quoted_cells_may_span_lines_and_blank_rows_are_skipped(tmp_path: Path) -> None:
    task = table(tmp_path, 'text,label\n"It ""rains"",\nagain",L\n\nDry,\nDry,_\n')
    assert task.split("train").texts == ('It "rains",\nagain', "Dry", "Dry")
    assert examples(task) == [(0, "L")]


def test_a_split_column_divides_a_file(tmp_path: Path) -> None:
    text = "text,label,part\na,X,train\nb,Y,test\nc,Y,train\n"
    task = table(tmp_path, text, split_column="part")
    assert {split.name: split.texts for split in task.splits} == {"train": ("a", "c"), "test": ("b",)}
    task = jsonl(tmp_path, {"text": "a", "label": "X", "part": "dev"}, split_column="part")
    assert [split.name for split in task.splits] == ["dev"]


def test_a_column_split_divides_a_file_whose_name_says_nothing(tmp_path: Path) -> None:
    text = "text,label,split\na,X,train\nb,Y,test\nc,Y,train\n"
    assert {split.name: split.texts for split in table(tmp_path, text).splits} == {"train": ("a", "c"), "test": ("b",)}
    (tmp_path / "dev.csv").write_text(text)
    assert [split.name for split in read_task(tmp_path / "dev.csv").splits] == ["dev"]
    words = "text,label,split\na,X,banana\nb,Y,cocoa\n"
    assert [split.name for split in table(tmp_path, words).splits] == ["train"]


def test_texts_without_a_label_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert len(table(tmp_path, "text,label\na,X\nb,\nc,Y\nd,_\n").split("train")) == 2
    assert caplog.messages == [f"{tmp_path / 'a.csv'}: 2 of 4 texts have no label and are excluded (lines 3, 5)"]
    caplog.clear()
    table(tmp_path, "words,tags\na b,X _\n")
    assert not caplog.messages


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        (["{"], {}, "line 1: invalid JSON at character 2: Expecting property name enclosed in double quotes"),
        (["[1]"], {}, r"line 1: invalid record \[1\]; expected a JSON object"),
        (['{"text": "a", "label": NaN}'], {}, "line 1: NaN is not a JSON number; expected JSON"),
        (['{"text": "a", "label": -Infinity}'], {}, "line 1: -Infinity is not a JSON number; expected JSON"),
        (
            ['{"text": "a", "label": ' + "9" * 5000 + "}"],
            {},
            r"line 1: Exceeds the limit \(4300 digits\) .*; expected JSON",
        ),
        (["[" * 100_000], {}, r"line 1: '\[+\.\.\.\[+' is nested too deeply; expected JSON"),
        ([{}], {}, r"line 1: no label column \(.*\); the columns are none: name one with label="),
        (
            [{"a": 1, "words": ["b"]}],
            {},
            r"line 1: no label column \(targets or tags or .* or class\); the columns are 'a', 'words': name one .*",
        ),
        (
            [{"a": 1, "label": "x"}],
            {},
            r"line 1: no text column \(text or .*\); the columns are 'a', 'label': name one with .*",
        ),
        ([{"a": "a", "tags": ["x"]}], {}, r"line 1: no text column \(words or tokens\); .* with words="),
        (
            [{"words": ["a"], "tags": ["x"]}],
            {"words": "w"},
            "line 1: no column 'w'; the columns are 'words', 'tags': set words= to one of them",
        ),
        (
            [{"text": "a", "label": "x"}],
            {"text": "t"},
            "line 1: no column 't'; the columns are 'text', 'label': set text= .*",
        ),
        (
            [{"words": ["a"], "tags": "x"}],
            {"label": "l"},
            "line 1: no column 'l'; .* 'words', 'tags': set label= to one of them",
        ),
        (
            [{"words": ["a"], "tags": ["x"]}],
            {"label": "l"},
            "line 1: label=l names neither a column .* omit it or name a column",
        ),
        (
            [{"words": ["a"], "tags": []}, {"words": ["a"], "tags": ["x"]}],
            {"label": "l"},
            r"line 2: label=l names neither a column \('words', 'tags'\) nor a key of the targets, .* plain labels; .*",
        ),
        (
            [{"words": ["a"], "targets": [{"token": 0, "role": "x"}]}],
            {},
            r"line 1: a target has no key 'label'; its keys are 'token', 'role': name its label with label=",
        ),
        (
            [{"text": "a", "label": "x"}, {"text": "a"}],
            {},
            "line 2: no column 'label'; the columns are 'text': all records must have the same columns",
        ),
        (
            [{"text": "a", "label": ["x", "y"]}],
            {"unit": "sentence"},
            r"line 1: 2 labels \['x', 'y'\] of one text; expected one: make a task for each label, with has=x .*",
        ),
        ([{"text": 7, "label": "x"}], {}, "line 1: invalid text 7; expected a string"),
        ([{"words": "a b", "tags": ["x"]}], {}, "line 1: invalid words 'a b'; expected a list of words"),
        ([{"words": ["a", 1], "tags": ["x", "y"]}], {}, r"line 1: invalid words \['a', 1\]; expected a list of words"),
        ([{"words": ["a"], "tags": "x"}], {"unit": "token"}, "line 1: invalid tags 'x'; expected a list of targets"),
        (
            [{"words": ["a"], "tags": ["x"]}, {"words": ["a", "b"], "tags": ["x"]}],
            {},
            "line 2: 2 words but 1 labels; expected one label per word",
        ),
        (
            [{"words": ["a"], "tags": [["x"]]}],
            {},
            r"line 1: invalid label \['x'\]; expected a string, a number or true/false",
        ),
        (
            [{"words": ["a"], "tags": ["x"]}],
            {"unit": "span"},
            r"line 1: unit 'span' requested; expected token or sentence: .*",
        ),
        (
            [{"words": ["a"], "tags": [{"at": 0}]}],
            {},
            "line 1: invalid target {'at': 0}; expected keys token, or start .*",
        ),
        (
            [{"words": ["a"], "tags": [{"token": 0, "label": "x"}, "y"]}],
            {},
            "line 1: invalid target 'y'; expected a token target, like the first target of this record",
        ),
        (
            [{"words": ["a"], "tags": [{"token": 0, "label": "x"}, {"head": 0, "dependent": 0, "label": "x"}]}],
            {},
            "line 1: invalid target {.*}; expected a token target, like the first target of this record",
        ),
        (
            [{"words": ["a"], "tags": ["x"]}, {"words": ["a"], "tags": [{"start": 0, "stop": 1, "label": "x"}]}],
            {},
            "line 2: span target after token targets; expected targets of one unit in all records",
        ),
        *(
            (
                [{"words": ["a"], "tags": [{"token": place, "label": "x"}]}],
                {},
                "line 1: invalid target .* expected whole numbers .*",
            )
            for place in ("0", 0.0, True, None)
        ),
        (
            [{"text": "a", "label": "x", "part": None}],
            {"split_column": "part"},
            "line 1: invalid split None; expected a name in column 'part'",
        ),
        (
            [{"text": "a", "label": "x"}],
            {"split_column": "part"},
            "line 1: no column 'part'; the columns are 'text', 'label': set split_column= to one of them",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(
    tmp_path: Path, records: list[Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=f"(?s)^{tmp_path / 'a.jsonl'}, {message}$") as caught:
        jsonl(tmp_path, *records, **options)
    assert "\n" not in str(caught.value)


def test_records_without_any_label_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.jsonl: no labelled example found; check the options"):
        jsonl(tmp_path, {"text": "a", "label": None})


def test_a_place_beyond_the_words_or_int32_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"invalid positions \(9{30},\); the sentence has words 0 to 0"):
        jsonl(tmp_path, {"words": ["a"], "targets": [{"token": int("9" * 30), "label": "x"}]})


def test_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="half a surrogate pair"):
        jsonl(tmp_path, r'{"text": "\ud800", "label": "x"}')
    with pytest.raises(InputError, match="half a surrogate pair"):
        jsonl(tmp_path, r'{"text": "a", "label": "\udfff"}')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "text,label\na,x\nb\n",
            "line 3: 1 fields, but the header has 2; separate fields by commas, .* contains a comma",
        ),
        ("text,label\na,x,y\n", "line 2: 3 fields, but the header has 2; .*"),
        ("text,text\na,x\n", r"line 1: duplicate names in the columns \['text', 'text'\]; expected each name once"),
        (
            'text,label\n"a"b,x\n',
            "line 2: ',' expected after '\"'; enclose a field that contains a quote in quotes, .*",
        ),
        ('text,label\n"a,x\n', "line 2: unexpected end of data; enclose a field that contains a quote in quotes, .*"),
        (f"text,label\n{'a' * 140_000},x\n", r"line 2: field larger than field limit \(131072\); .*"),
        ("words,tags\na b,X\n", "line 2: 2 words but 1 labels; expected one label per word"),
        ("words,tags\na b,\n", "line 2: 2 words but 0 labels; expected one label per word"),
        (
            "words,tags\n['a'],X\n",
            r"line 2: \"\['a'\]\" is not a JSON list; use double quotes, or items separated by spaces",
        ),
        ('words,tags\na,"[[1]]"\n', r"line 2: invalid label \[1\]; expected a string, a number or true/false"),
        ("a,b\n1,2\n", r"line 2: no label column \(.*\); the columns are 'a', 'b': name one with label="),
    ],
)
def test_a_malformed_table_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{tmp_path / 'a.csv'}, {message}$"):
        table(tmp_path, text)

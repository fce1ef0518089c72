"""Tables as people have them: delimiters, encodings, missing values, scores, several labels, texts that disagree."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from closerlook.errors import InputError
from closerlook.tasks.readers import read_task
from closerlook.tasks.task import Task
from closerlook.texts import RunningText, TextPair


def table(tmp_path: Path, content: str | bytes, suffix: str = "csv", **options: Any) -> Task:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_task(path, **options)


def labelled(task: Task, split: str = "train") -> list[tuple[Any, str]]:
    part = task.split(split)
    return [(part.texts[text], task.labels[y]) for text, y in zip(part.sentence, part.y, strict=True)]


def notes(task: Task, tmp_path: Path) -> list[str]:
    return [note.replace(f"{tmp_path}/", "") for note in task.notes]


def refusal(tmp_path: Path, *arguments: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        table(tmp_path, *arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{tmp_path}/", "")


# ---- delimiters and encodings ----


@pytest.mark.parametrize(("delimiter", "name"), [(";", "semicolon"), ("\t", "tab"), ("|", "vertical bar")])
def test_the_delimiter_is_found_in_the_header(tmp_path: Path, delimiter: str, name: str) -> None:
    task = table(tmp_path, f"text{delimiter}label\nso, so{delimiter}x\n")
    assert labelled(task) == [("so, so", "x")]
    assert notes(task, tmp_path) == [f"a.csv: its fields are separated by {name}s"]


def test_a_tsv_file_may_be_separated_by_commas_and_commas_are_usual_in_csv(tmp_path: Path) -> None:
    assert labelled(table(tmp_path, "text,label\na;b,x\n")) == [("a;b", "x")]
    assert notes(table(tmp_path, "text,label\na,x\n"), tmp_path) == []
    assert labelled(table(tmp_path, "text,label\na,x\n", "tsv")) == [("a", "x")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_is_recognised_without_a_note(tmp_path: Path, encoding: str) -> None:
    task = table(tmp_path, "text,label\ncafé,x\n".encode(encoding))
    assert (labelled(task), task.notes) == ([("café", "x")], ())


def test_western_encodings_are_read_with_a_note(tmp_path: Path) -> None:
    task = table(tmp_path, "text,label\nplain,y\n“café”,x\n".encode("cp1252"))
    assert labelled(task)[1] == ("“café”", "x")
    assert notes(task, tmp_path) == [
        "a.csv: byte 0x93 at offset 19 is not UTF-8 (line 3); it is read as Windows-1252 (cp1252): if it is not, give "
        "encoding="
    ]
    assert "Latin-1" in table(tmp_path, b"text,label\n\x81\xe9,x\n").notes[0]
    assert labelled(table(tmp_path, "text,label\n茶,x\n".encode("shift_jis"), encoding="shift_jis")) == [("茶", "x")]


def test_bytes_that_are_no_text_or_not_in_the_encoding_are_refused(tmp_path: Path) -> None:
    assert "is not UTF-8; expected UTF-8 text" in refusal(tmp_path, b"PK\x03\x04\0\xff\0")
    assert "expected text in that encoding" in refusal(tmp_path, b"text,label\n\xff,x\n", encoding="ascii")
    assert "encoding 'klingon' is unknown" in refusal(tmp_path, "text,label\na,x\n", encoding="klingon")


def test_columns_without_a_name_and_rows_without_content_are_not_read(tmp_path: Path) -> None:
    task = table(tmp_path, "\ntext,label,,\na,x,,\n,,,\nb,y,,\n")
    assert labelled(task) == [("a", "x"), ("b", "y")]


# ---- problems, empty texts, missing labels ----


def test_all_problems_are_listed_by_line(tmp_path: Path) -> None:
    lines = ['{"text": "a", "label": "x"}', "{", '{"text": 1, "label": "x"}', '{"text": "b"}', "[]"]
    message = refusal(tmp_path, "\n".join(lines), "jsonl")
    assert message.startswith("a.jsonl has 4 problems: line 2: invalid JSON at character 2")
    for part in (
        "line 3: invalid text 1; expected a string; ",
        "line 4: no column 'label'",
        "line 5: invalid record []",
    ):
        assert part in message
    assert refusal(tmp_path, "text,label\n" + "a\n" * 12).endswith("; and 2 more")


def test_a_problem_is_at_the_first_line_of_its_row(tmp_path: Path) -> None:
    assert "a.csv, line 4: 1 fields" in refusal(tmp_path, 'text,label\n"a\nb",x\nc\n')


def test_empty_texts_are_skipped_with_their_lines(tmp_path: Path) -> None:
    task = table(tmp_path, "text,label\na,x\n,y\n  ,y\nb,y\n")
    assert labelled(task) == [("a", "x"), ("b", "y")]
    assert notes(task, tmp_path) == ["a.csv: 2 empty texts are skipped (lines 3, 4)"]
    records = [{"text": None, "label": "x"}, {"text": "a", "label": "x"}]
    assert notes(read_task(records), tmp_path) == ["table: 1 empty text is skipped (row 1)"]


@pytest.mark.parametrize("missing", ["", "NA", "N/A", "null", "NULL", "None", "nan", "NaN", "<NA>", "#N/A"])
def test_missing_labels_are_no_class(tmp_path: Path, missing: str) -> None:
    task = table(tmp_path, f"text,label\na,x\nb,{missing}\nc,y\n")
    assert task.labels == ("x", "y")
    (note,) = notes(task, tmp_path)
    assert note.startswith("a.csv: 1 of 3 texts have no label and are excluded (")
    assert "line 3)" in note
    assert (f"{missing}: 1; " in note, note.endswith(f"give keep={missing}")) == (bool(missing),) * 2


def test_keep_makes_them_a_class(tmp_path: Path) -> None:
    assert table(tmp_path, "text,label\na,x\nb,None\nc,NA\nd,\n", keep="None,NA").labels == ("NA", "None", "x")


def test_strings_of_json_frames_and_words_are_labels(tmp_path: Path) -> None:
    records = [{"text": "a", "label": "None"}, {"text": "b", "label": "NA"}, {"text": "c", "label": None}]
    assert table(tmp_path, "\n".join(map(json.dumps, records)), "jsonl").labels == ("NA", "None")
    assert read_task(pd.DataFrame(records)).labels == ("NA", "None")
    assert table(tmp_path, "words,tags\na b,None NA\n").labels == ("NA", "None")
    assert table(tmp_path, "a None\nb NA\n", "conll").labels == ("NA", "None")


# ---- numbers ----


def test_scores_are_refused_with_the_option_that_bins_them(tmp_path: Path) -> None:
    message = refusal(tmp_path, "text,label\na,0.5\nb,1.25\nc,3\n")
    assert message == (
        "a.csv: the labels are numbers such as 0.5, 1.25 (3 different ones in 3 examples), which look like scores; "
        "expected classes: bins=3 divides them into three classes, bins=each makes every number a class"
    )
    assert "look like scores" in refusal(tmp_path, "text;label\na;0,5\nb;1,25\n")
    many = "".join(f"text {i},{i}\n" for i in range(30))
    assert "(30 different ones in 30 examples)" in refusal(tmp_path, f"text,label\n{many}")
    twice = "".join(f"text {i},{i // 2}\n" for i in range(60))
    assert len(table(tmp_path, f"text,label\n{twice}").labels) == 30


def test_one_number_is_one_label(tmp_path: Path) -> None:
    task = table(tmp_path, "text,label\na,1\nb,1.0\nc,2.0\n")
    assert task.labels == ("1", "2")
    assert notes(task, tmp_path) == ["a.csv: labels '1.0', '2.0' are read as '1', '2'"]
    assert read_task(pd.DataFrame({"text": ["a", "b", "c"], "label": [1, 2, None]})).labels == ("1", "2")
    assert table(tmp_path, "text,label\na,01\nb,1.0x\n").labels == ("01", "1.0x")


def test_bins_have_about_equally_many_examples_of_train(tmp_path: Path) -> None:
    rows = "".join(f"text {i},{i / 10},train\n" for i in range(40)) + "other,99,test\n"
    task = table(tmp_path, f"text,label,split\n{rows}", bins="4")
    train = [label for _, label in labelled(task)]
    assert {label: train.count(label) for label in task.labels} == dict.fromkeys(task.labels, 10)
    assert task.labels == ("0.975 to 1.95", "1.95 to 2.925", "2.925 and above", "below 0.975")
    assert labelled(task, "test") == [("other", "2.925 and above")]
    assert "41 different numbers are divided into labels" in task.notes[0]


def test_bins_may_be_boundaries_or_each_number(tmp_path: Path) -> None:
    text = "text,label\na,1\nb,2.5\nc,4\n"
    assert dict(labelled(table(tmp_path, text, bins="2,3"))) == {"a": "below 2", "b": "2 to 3", "c": "3 and above"}
    assert table(tmp_path, text, bins="each").labels == ("1", "2.5", "4")
    for wrong in ("1", "0", "x", "2,x", "nan"):
        assert "expected a number of bins from 2, boundaries such as 1.5,3 or each" in refusal(
            tmp_path, text, bins=wrong
        )
    assert "label 'x' is not a number; omit bins" in refusal(tmp_path, "text,label\na,x\n", bins="2")
    assert "nearly all numbers are 1" in refusal(tmp_path, "text,label\na,1\nb,1\nc,1\nd,2\n", bins="2")


# ---- several labels, disagreements ----

NEWS = [{"text": "a", "labels": ["sport", "world"]}, {"text": "b", "labels": ["world"]}, {"text": "c", "labels": []}]


def test_several_labels_of_a_text_are_refused_with_the_option_for_one(tmp_path: Path) -> None:
    text = "\n".join(map(json.dumps, NEWS))
    assert refusal(tmp_path, text, "jsonl") == (
        "a.jsonl, line 1: 2 labels ['sport', 'world'] of one text; expected one: make a task for each label, with "
        "has=sport for texts that have it and texts that do not"
    )
    task = table(tmp_path, text, "jsonl", has="sport")
    assert labelled(task) == [("a", "sport"), ("b", "not sport"), ("c", "not sport")]
    assert "no text has this label; the labels are 'sport', 'world'" in refusal(tmp_path, text, "jsonl", has="art")
    assert read_task(NEWS[1:2]).labels == ("world",)


def test_several_labels_in_a_field(tmp_path: Path) -> None:
    text = "text,label\na,sport|world\nb,world\nc,sport\n"
    assert labelled(table(tmp_path, text, has="sport")) == [("a", "sport"), ("b", "not sport"), ("c", "sport")]
    (note,) = notes(table(tmp_path, text), tmp_path)
    assert note.startswith("a.csv: labels such as 'sport|world' look like several labels in one; has=sport makes")
    assert table(tmp_path, "text,label\na,A|B\nb,C\n").notes == ()


def test_equal_texts_with_different_labels_are_counted_and_listed(tmp_path: Path) -> None:
    task = table(tmp_path, "text,label,split\na,x,train\nb,x,train\na,y,train\na,x,test\nb,z,test\nc,x,test\n")
    assert notes(task, tmp_path) == [
        "a.csv: 2 of 3 different examples occur with more than one label ('a': x in train line 2, y in train line 4; "
        "'b': x in train line 3, z in test line 6)"
    ]
    task = table(tmp_path, "so X\nmuch Y\n\nso X\nmuch Z\n", "conll")
    assert notes(task, tmp_path) == [
        "a.conll: 1 of 2 different examples occur with more than one label ('so much' word 1: Y in line 1, Z in line 4)"
    ]
    assert table(tmp_path, "text,label\na,x\na,x\nb,y\n").notes == ()


# ---- splits ----


def test_usual_names_of_splits_are_recognised_in_any_case(tmp_path: Path) -> None:
    task = table(tmp_path, "text,label,split\na,x,TEST\nb,x,Train\nc,x,Validation\nd,x,extra\ne,x,valid\n")
    assert [(split.name, split.texts) for split in task.splits] == [
        ("train", ("b",)),
        ("dev", ("c", "e")),
        ("test", ("a",)),
        ("extra", ("d",)),
    ]
    assert notes(task, tmp_path) == [
        "a.csv: splits are read under their usual names: 'TEST' as test, 'Train' as train, 'Validation' as dev, "
        "'valid' as dev"
    ]
    assert task.split("validation") is task.split("dev")


# ---- DataFrames, Parquet, JSON ----

ROWS = [{"review": "fine", "stars": "good", "n": 1}, {"review": "poor", "stars": "bad", "n": 2}]


def test_frames_dicts_parquet_and_json_are_the_same_task(tmp_path: Path) -> None:
    options: dict[str, Any] = {"text": "review", "label": "stars"}
    expected = read_task(ROWS, name="reviews", **options)
    assert (expected.name, labelled(expected)) == ("reviews", [("fine", "good"), ("poor", "bad")])
    frame = pd.DataFrame(ROWS)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.astype({"stars": "category"}).to_parquet(tmp_path / "b.parquet")
    (tmp_path / "a.json").write_text(json.dumps(ROWS))
    (tmp_path / "b.json").write_text("\n".join(map(json.dumps, ROWS)))
    for source in (frame, *(tmp_path / name for name in ("a.parquet", "b.parquet", "a.json", "b.json"))):
        assert read_task(source, **options) == expected


def test_lists_of_words_in_parquet_and_frames(tmp_path: Path) -> None:
    frame = pd.DataFrame({"words": [["It", "rains"]], "tags": [["PRON", "VERB"]]})
    frame.to_parquet(tmp_path / "a.parquet")
    read_back = pd.read_parquet(tmp_path / "a.parquet")  # lists become arrays
    for source in (frame, tmp_path / "a.parquet", read_back):
        assert read_task(source).labels == ("PRON", "VERB")


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="int given as a task; expected a file, a folder, a DataFrame or a list"):
        read_task(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"table, row 1: invalid record 'a'; expected a JSON object"):
        read_task(["a"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="option join is unknown to a table in memory"):
        read_task(ROWS, join="spaces")
    assert "cannot be read as Parquet" in refusal(tmp_path, b"nothing", "parquet")


# ---- pairs and spans ----


@pytest.mark.parametrize(("first", "second"), [("text_a", "text_b"), ("premise", "hypothesis")])
def test_pairs_of_texts_are_found_by_their_columns(tmp_path: Path, first: str, second: str) -> None:
    expected = [(TextPair("It rains.", "It is wet."), "yes")]
    assert labelled(table(tmp_path, f"{first},{second},label\nIt rains.,It is wet.,yes\n")) == expected
    named = table(tmp_path, "q,text,label\nIt rains.,It is wet.,yes\n", text="q", text_b="text")
    assert labelled(named) == expected
    assert labelled(table(tmp_path, "text,text_b,label\nIt rains.,,yes\na,b,no\n", text_b="text_b")) == [
        (TextPair("a", "b"), "no")
    ]


def test_a_pair_is_another_task_than_its_joined_texts() -> None:
    pair = read_task([{"text_a": "a", "text_b": "b", "label": "x"}])
    swapped = read_task([{"text_a": "b", "text_b": "a", "label": "x"}])
    assert len({pair.content_hash, swapped.content_hash, read_task([{"text": "a\nb", "label": "x"}]).content_hash}) == 3


TEXT = "Ada Lovelace met  Babbage."
SPANS = [(0, 12, "PER"), (18, 25, "PER"), (13, 16, "ACT")]


@pytest.mark.parametrize(
    "record",
    [
        {"text": TEXT, "spans": [{"start": a, "end": b, "label": label} for a, b, label in SPANS]},
        {"text": TEXT, "entities": [list(span) for span in SPANS]},
        {"text": TEXT, "label": [list(span) for span in SPANS]},
        {"text": TEXT, "label": [{"start": a, "end": b, "text": TEXT[a:b], "labels": [x]} for a, b, x in SPANS]},
        {
            "data": {"text": TEXT},
            "annotations": [{"result": [{"value": {"start": a, "end": b, "labels": [x]}} for a, b, x in SPANS]}],
        },
        {"text": TEXT, "tokens": [{"text": "Ada"}], "spans": [{"start": a, "end": b, "label": x} for a, b, x in SPANS]},
    ],
    ids=["spaCy", "spaCy tuples", "doccano", "Label Studio, small", "Label Studio", "Prodigy"],
)
def test_spans_by_characters_as_tools_export_them(tmp_path: Path, record: dict[str, Any]) -> None:
    for task in (read_task([record]), table(tmp_path, json.dumps([record]), "json")):
        assert task.unit == "span"
        assert task.split("train").texts == (RunningText(TEXT, ((0, 12), (13, 16), (18, 25))),)
        assert task.words(task.split("train")) == ("Ada Lovelace", "met", "Babbage")
        assert [task.labels[y] for y in task.split("train").y] == ["PER", "ACT", "PER"]


def test_spans_in_a_field_of_csv_and_texts_without_spans(tmp_path: Path) -> None:
    task = table(tmp_path, 'text,label\nnothing,[]\nAda met,"[{""start"": 0, ""end"": 4, ""labels"": [""PER""]}]"\n')
    assert (task.unit, task.words(task.split("train"))) == ("span", ("Ada",))
    task = read_task([{"text": "nothing", "spans": []}, {"text": "Ada", "spans": [[0, 3, "PER"]]}])
    assert len(task.split("train")) == 1


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ({"start": 0, "end": 99, "label": "x"}, "span 0 to 99 is not in the text, which has characters 0 to 26"),
        ({"start": 5, "end": 5, "label": "x"}, "span 5 to 5 is not in the text"),
        ({"start": 0, "end": 3, "text": "Eve", "label": "x"}, "is 'Ada' in the text, but the span says 'Eve'"),
        ({"start": 16, "end": 18, "label": "x"}, "has only spaces"),
        ({"start": 0, "end": 3, "kind": "x"}, "a span has no key 'label'; its keys are 'start', 'end', 'kind'"),
        ({"start": 0, "end": 3, "labels": ["x", "y"]}, r"2 labels \['x', 'y'\] of one span"),
        ({"first": 0}, "invalid span {'first': 0}; expected {"),
    ],
)
def test_spans_that_cannot_be_used_are_refused(span: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_task([{"text": TEXT, "spans": [span]}])


def test_the_choice_of_label_studio_is_the_label_of_the_text() -> None:
    choice = {"data": {"text": "fine"}, "annotations": [{"result": [{"value": {"choices": ["good"]}}]}]}
    assert labelled(read_task([choice])) == [("fine", "good")]


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ([None], r"invalid annotations \[None\]; expected a list of objects, as Label Studio exports"),
        ([{"result": None}], "invalid result None; expected a list of objects"),
        ([{"result": ["good"]}], r"invalid result \['good'\]; expected a list of objects"),
        ([{"result": [{"value": {"choices": "good"}}]}], "invalid choices 'good'; expected a list of texts"),
        ([{"result": [{"value": {"choices": [None]}}]}], r"invalid choices \[None\]; expected a list of texts"),
    ],
)
def test_broken_annotations_of_label_studio_are_refused(annotations: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_task([{"data": {"text": "fine"}, "annotations": annotations}])

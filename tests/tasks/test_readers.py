"""read_task: formats by suffix, splits by name, options by format, and every refusal; TREC's lines."""

from pathlib import Path
from typing import Any

import pytest

from closerlook.errors import InputError
from closerlook.tasks import load_task
from closerlook.tasks.readers import FORMATS, Options, read_files, read_task

ROW = "1\t{0}\t_\t{1}\t_\t_\t0\troot\t_\t_\n\n"
CONLLU = ROW.format("Rain", "NOUN")
JSONL = '{"words": ["Rain"], "targets": ["NOUN"]}\n'
CSV = "words,targets\nRain,NOUN\n"
SAMPLES = {
    "conllu": CONLLU,
    "conllulex": "1\tof" + "\t_" * 11 + "\tp.Whole\tp.Gestalt" + "\t_" * 4 + "\n",
    "conll": "Rain NN B-NP NOUN\n",
    "trec": "NUM:dist How far is it ?\n",
    "jsonl": JSONL,
    "json": f"[{JSONL}]",
    "csv": CSV,
    "tsv": CSV.replace(",", "\t"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "weather"


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", "-").replace("_dot_", ".")).write_text(text, encoding="utf-8", newline="")
    return folder


def refusal(path: Path | str, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_task(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


TEXT_FORMATS = [name for name in FORMATS if name != "parquet"]


@pytest.mark.parametrize(("format", "suffix"), [(name, s) for name in TEXT_FORMATS for s in FORMATS[name].suffixes])
def test_every_suffix_is_read(folder: Path, format: str, suffix: str) -> None:
    write(folder, **{f"a_dot_{suffix[1:]}": SAMPLES[format]})
    task = read_task(folder / f"a{suffix}")
    assert (task.name, len(task.split("train"))) == ("a", 1)
    assert task == read_task(folder / f"a{suffix}", format=format)


def test_the_case_of_a_suffix_does_not_matter(folder: Path) -> None:
    write(folder, a_dot_CONLLU=CONLLU)
    assert read_task(folder / "a.CONLLU").labels == ("NOUN",)


def test_format_overrides_the_suffix(folder: Path) -> None:
    write(folder, a_dot_txt=CONLLU)
    assert read_task(folder / "a.txt", format="conllu", name="rain").labels == ("NOUN",)


@pytest.mark.parametrize(
    ("stem", "split"),
    [
        ("en_ewt-ud-test", "test"),
        ("train_5500", "train"),
        ("valid", "dev"),
        ("my.Validation.set", "dev"),
        ("dev", "dev"),
        ("reviews_val", "dev"),
        ("train-of-thought-test", "test"),
        ("contest", "train"),
        ("trainer", "train"),
        ("rain-test2", "train"),
        ("TREC_10", "train"),
    ],
)
def test_a_file_is_the_split_that_its_stem_names_else_train(folder: Path, stem: str, split: str) -> None:
    write(folder, **{stem + "_dot_conllu": CONLLU})
    assert [s.name for s in read_task(folder / f"{stem}.conllu").splits] == [split]


def test_a_folder_is_a_task_with_a_file_for_each_split(folder: Path) -> None:
    write(folder, en__ud__train_dot_conllu=CONLLU, en__ud__test_dot_conllu=ROW.format("Falls", "VERB"))
    write(folder, en__ud__dev_dot_conllu=CONLLU, README_dot_md="# test", notes__test_dot_txt="nothing")
    task = read_task(folder)
    assert [split.name for split in task.splits] == ["train", "dev", "test"]
    assert task.split("test").texts == (("Falls",),)
    assert task.name == "weather"


def test_splits_of_a_folder_may_have_different_formats(folder: Path) -> None:
    write(folder, train_dot_conllu=CONLLU, test_dot_jsonl=JSONL)
    assert read_task(folder).labels == ("NOUN",)


def test_format_decides_between_files_of_one_split(folder: Path) -> None:
    write(folder, train_dot_conllu=CONLLU, train_dot_jsonl=JSONL.replace("NOUN", "X"))
    assert read_task(folder, format="jsonl").labels == ("X",)
    assert refusal(folder) == (
        f"{folder}: train.conllu, train.jsonl are all 'train'; expected one file: choose with format=, or name it"
    )


def test_a_folder_without_splits_is_refused(folder: Path) -> None:
    write(folder, a_dot_conllu=CONLLU)
    assert refusal(folder).startswith(f"{folder}: no split found; expected files such as train.conllu, test.conllu")
    write(folder, train_dot_conllu=CONLLU)
    assert "no split found" in refusal(folder, format="csv")


def test_a_folder_with_a_split_column_is_refused(folder: Path) -> None:
    write(folder, train_dot_csv=CSV)
    assert refusal(folder, split_column="split") == (
        f"{folder}: is a folder, but split_column needs a single file that contains all splits"
    )


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.conllu") == f"{tmp_path / 'no.conllu'}: no such file or folder"
    assert refusal("nul\0.conllu").endswith("no such file or folder")
    assert refusal("a" * 5000).endswith("no such file or folder")
    with pytest.raises(InputError, match=r"no\.conllu: no such file$"):
        read_files({"train": tmp_path / "no.conllu"}, name="t", options=Options())


def test_a_path_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory\); expected a text file$"):
        read_files({"train": tmp_path}, name="t", format="conllu", options=Options())


def test_an_unknown_suffix_is_refused(folder: Path) -> None:
    write(folder, a_dot_xml="<a/>")
    message = refusal(folder / "a.xml")
    assert message.startswith(f"{folder / 'a.xml'}: suffix '.xml' is unknown; expected conllu (.conllu), ")
    assert message.endswith("or give format=")


def test_an_unknown_format_is_refused(folder: Path) -> None:
    write(folder, a_dot_conllu=CONLLU)
    assert refusal(folder / "a.conllu", format="xml").startswith("format 'xml' is unknown; expected one of conllu (")


@pytest.mark.parametrize(
    ("format", "options", "message"),
    [
        ("conllu", {"words": "w"}, "option words is unknown to format conllu; its options are label, empty_nodes"),
        ("conllu", {"unit": "token"}, "option unit is unknown to format conllu; its options are label, empty_nodes"),
        (
            "conllulex",
            {"empty_nodes": True},
            "option empty_nodes is unknown to format conllulex; its options are label",
        ),
        ("trec", {"split_column": "s"}, "option split_column is unknown to format trec; its options are label"),
        (
            "csv",
            {"empty_nodes": True},
            "option empty_nodes is unknown to format csv; its options are label, words, text, text_b, unit",
        ),
        ("conllu", {"label": "pos"}, "label 'pos' is unknown in CoNLL-U; expected upos, xpos, deprel, feats:KEY, misc"),
        ("conllu", {"label": "feats:"}, "label 'feats:' is unknown in CoNLL-U"),
        ("conllu", {"label": "upos:x"}, "label 'upos:x' is unknown in CoNLL-U"),
        ("conllulex", {"label": "upos"}, "label 'upos' is unknown in .conllulex; expected role or function"),
        ("trec", {"label": "upos"}, "label 'upos' is unknown in TREC files; expected fine or coarse"),
    ],
)
def test_an_option_that_the_format_does_not_know_is_refused(
    folder: Path, format: str, options: dict[str, Any], message: str
) -> None:
    write(folder, a=SAMPLES[format])
    assert refusal(folder / "a", format=format, **options).startswith(message)


def test_splits_of_different_units_are_refused(folder: Path) -> None:
    write(folder, train_dot_conllu=CONLLU, test_dot_csv="text,label\nRain,yes\n")
    assert refusal(folder) == (
        f"units differ (token in {folder / 'train.conllu'}, sentence in {folder / 'test.csv'});"
        " expected one unit in all splits"
    )


@pytest.mark.parametrize("format", ["conllu", "conllulex", "jsonl", "json"])
def test_bytes_that_are_not_utf8_are_refused_with_their_offset(tmp_path: Path, format: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"ab\xffcd")
    assert refusal(path, format=format) == (
        f"{path}: byte 0xff at offset 2 is not UTF-8; expected UTF-8 text: convert the file first"
    )


@pytest.mark.parametrize("format", TEXT_FORMATS)
def test_byte_order_mark_and_crlf_and_missing_final_newline_change_nothing(tmp_path: Path, format: str) -> None:
    plain, other = tmp_path / "plain", tmp_path / "other"
    plain.write_text(SAMPLES[format])
    for text in (SAMPLES[format].replace("\n", "\r\n"), SAMPLES[format].rstrip("\n")):
        other.write_bytes(b"\xef\xbb\xbf" + text.encode())
        assert read_task(other, format=format) == read_task(plain, format=format)


@pytest.mark.parametrize("format", TEXT_FORMATS)
def test_an_empty_file_is_refused(tmp_path: Path, format: str) -> None:
    (tmp_path / "a").write_bytes(b"")
    assert refusal(tmp_path / "a", format=format).partition(";")[0].endswith("no labelled example found")


def test_trec_lines_are_questions_with_fine_or_coarse_labels(folder: Path) -> None:
    write(folder, a_dot_label="NUM:dist How far ?\n\nHUM:ind Who\u2028is it ?\n")
    task = read_task(folder / "a.label")
    assert (task.unit, task.labels) == ("sentence", ("HUM:ind", "NUM:dist"))
    assert task.split("train").texts == ("How far ?", "Who\u2028is it ?")
    assert read_task(folder / "a.label", label="coarse").labels == ("HUM", "NUM")


def test_trec_falls_back_to_latin_1(tmp_path: Path) -> None:
    (tmp_path / "a.label").write_bytes(b"LOC:city a sister\xf0city ?\n")
    assert read_task(tmp_path / "a.label").split("train").texts == ("a sisterðcity ?",)


@pytest.mark.parametrize("line", ["NUM:dist", "NUM How far ?", ":dist How far ?", "NUM: How far ?"])
def test_a_trec_line_without_its_parts_is_refused(folder: Path, line: str) -> None:
    write(folder, a_dot_label=f"NUM:dist How far ?\n{line}\n")
    assert refusal(folder / "a.label") == f"{folder / 'a.label'}, line 2: {line!r}; expected 'LABEL:sublabel question'"


def test_options_may_stand_in_a_task_s_name(tmp_path: Path) -> None:
    file = tmp_path / "reviews.csv"
    file.write_text("review,stars,part\nfine,5,train\nbad,1,train\ngood,4,test\n")
    task = load_task(f"{file}?text=review&label=stars&split_column=part&name=opinions")
    assert (task.name, task.unit, task.labels) == ("opinions", "sentence", ("1", "4", "5"))
    assert [len(split) for split in task.splits] == [2, 1]
    assert load_task(f"{file}?text=review", label="stars", split_column="part").labels == task.labels


def test_a_file_with_a_question_mark_in_its_name_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "what?.csv"
    file.write_text("text,label\nfine,a\nbad,b\n")
    assert load_task(str(file)).labels == ("a", "b")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("text", "'text' follows the question mark; expected text=COLUMN&label=COLUMN"),
        ("colour=red", "colour is unknown; expected some of name, format, label, words"),
    ],
)
def test_options_in_a_name_that_are_none_are_refused(tmp_path: Path, options: str, message: str) -> None:
    (tmp_path / "a.csv").write_text("text,label\nfine,a\nbad,b\n")
    with pytest.raises(InputError, match=message):
        load_task(f"{tmp_path / 'a.csv'}?{options}")


def test_a_name_in_the_catalogue_takes_no_options() -> None:
    with pytest.raises(InputError, match="label given with task toy-pos, whose options are fixed"):
        load_task("toy-pos?label=xpos")


def test_a_file_with_the_name_of_a_predefined_task_is_not_shadowed_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "toy-question", train_dot_csv="text,label\nfine,a\nbad,b\n")
    assert len(load_task("toy-question").labels) == 20
    message = "task toy-question is the predefined task; for the file or folder of that name here, write ./toy-question"
    assert caplog.messages == [message]
    assert load_task("./toy-question").labels == load_task("toy-question/").labels == ("a", "b")

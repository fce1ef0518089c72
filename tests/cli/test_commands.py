"""`extract`, `tasks`, `data` and `store`, and the help of every command, run in this process."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import closerlook
from closerlook.representations.space import Space
from tests.cli.console import answer, assert_refused, run

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def wide(one_thread: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal on which no message is wrapped."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize(
    "level",
    [
        ("extract",),
        ("study",),
        ("tune",),
        ("probe",),
        ("classify",),
        ("compare",),
        ("describe",),
        ("report",),
        ("show",),
        ("compare-studies",),
        ("combine",),
        ("tasks",),
        ("measures",),
        ("data",),
        ("data", "get"),
        ("store",),
        ("store", "ls"),
        ("store", "verify"),
        ("store", "gc"),
    ],
)
def test_help_on_every_level_has_an_example(capsys: Capsys, level: tuple[str, ...]) -> None:
    assert f"Example: closerlook {' '.join(level)}" in run(capsys, *level, "--help")[0]


@pytest.mark.parametrize("group", ["store", "data"])
def test_a_group_without_command_shows_its_help(capsys: Capsys, group: str) -> None:
    assert f"Usage: closerlook {group}" in run(capsys, group)[0]


def test_tasks_whose_files_would_have_the_same_name_are_refused(capsys: Capsys, tmp_path: Path) -> None:
    for name in ("my task.csv", "my_task.csv"):
        (tmp_path / name).write_text("text,label\na day,good\n")
    files = [argument for name in ("my task.csv", "my_task.csv") for argument in ("-t", tmp_path / name)]
    assert_refused(capsys, "two tasks are called my_task", "extract", *files)


@pytest.mark.parametrize(
    "splits", [("--splits", "all"), ("--splits", "test,train"), ("--split", "test", "--split", "train")]
)
def test_extract_prints_one_json_object(capsys: Capsys, splits: tuple[str, ...]) -> None:
    found = answer(capsys, "extract", "--task", "toy-question", "--layers", "0,2", *splits)
    assert [(s["task"], s["split"], s["layer"], s["d"]) for s in found["spaces"]] == [
        ("toy-question", split, layer, 128) for split in ("train", "test") for layer in (0, 2)
    ]
    assert found["seconds"] > 0


@pytest.mark.parametrize(
    ("form", "name"),
    [("npz", "bert-tiny-toy-fxn-test-layer2.npz"), ("safetensors", "bert-tiny-toy-fxn-test-layer2.safetensors")],
)
def test_extract_writes_files(capsys: Capsys, tmp_path: Path, form: str, name: str) -> None:
    out = tmp_path / "out"
    options = ("--splits", "test", "--layers", "last", "--out", out, "--out-format", form)
    run(capsys, "extract", "-t", "toy-fxn", *options)
    assert [file.name for file in out.iterdir()] == [name]
    space = Space.load(out / name)
    assert (space.d, space.provenance.task, space.provenance.layer) == (128, "toy-fxn", 2)


def test_extract_writes_a_directprobe_folder_of_all_splits_and_layers(capsys: Capsys, tmp_path: Path) -> None:
    run(capsys, "extract", "-t", "toy-question", "--splits", "all", "--out", tmp_path, "--out-format", "directprobe")
    for split in ("train", "test"):
        for layer in range(3):
            space = Space.load(tmp_path / "bert-tiny-toy-question", split=split, layer=layer)
            assert (space.provenance.split, space.provenance.layer) == (split, layer)


def test_a_users_own_csv_needs_no_python(capsys: Capsys, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("utterance,mood,part\nwhat a day,good,train\noh no,bad,train\nfine,good,test\n")
    options = ("--text", "utterance", "--label", "mood", "--split-column", "part", "--name", "moods", "--splits", "all")
    spaces = answer(capsys, "extract", "-t", file, *options)["spaces"]
    assert [(s["task"], s["split"], s["layer"], s["n"], s["labels"], s["pool"]) for s in spaces[::3]] == [
        ("moods", "train", 0, 2, ["bad", "good"], "cls"),
        ("moods", "test", 0, 1, ["bad", "good"], "cls"),
    ]


def test_vectors_of_other_weights_are_not_written_over(capsys: Capsys, tmp_path: Path) -> None:
    command = ("extract", "-t", "toy-question", "--splits", "test", "--layers", "last", "--out", tmp_path)
    run(capsys, *command)
    (file,) = tmp_path.iterdir()
    before = file.read_bytes()
    run(capsys, *command)
    _, err = run(capsys, *command, "--pool", "mean", code=2)
    assert f"{file} exists, and its vectors differ from the new ones in pool; choose another folder" in err
    assert file.read_bytes() == before


def test_a_users_own_columns_may_have_any_name(capsys: Capsys, tmp_path: Path) -> None:
    stream = io.StringIO()
    csv.writer(stream, delimiter="\t").writerows([["toks", "gold"], ["light rain", "ADJ NOUN"]])
    (tmp_path / "t.tsv").write_text(stream.getvalue())
    options = ("--words", "toks", "--label", "gold", "--layers", "last")
    (space,) = answer(capsys, "extract", "-t", tmp_path / "t.tsv", *options)["spaces"]
    assert (space["n"], space["pool"]) == (2, "mean")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("extract",), "no task given; pass --task NAME"),
        (("extract", "-t", "tpy-pos"), "task 'tpy-pos' is unknown; did you mean toy-pos"),
        (("extract", "-t", "pos"), "task pos needs UD English-PUD r2.6; name the data folder"),
        (("extract", "-t", "pos", "--data", "/nowhere"), "task pos: no /nowhere/ud-english-pud/train.conllu"),
        (("extract", "-t", "nowhere.csv"), "nowhere.csv: no such file or folder"),
        (("extract", "-t", "toy-pos", "--label", "xpos"), "label given with task toy-pos, whose options are fixed"),
        (("extract", "-t", "toy-pos", "--splits", "dev"), "split 'dev' requested; task toy-pos has train, test"),
        (("extract", "-t", "toy-pos", "--layers", "3"), "layer 3 requested; bert-tiny has layers 0 to 2"),
        (("extract", "-t", "toy-pos", "--pool", "cls"), "pool 'cls' requested; expected auto, mean"),
        (("extract", "-t", "toy-pos", "--encoder", "./nowhere"), "encoder ./nowhere: there is no such folder"),
        (("extract", "-t", "toy-pos", "--dtype", "int16"), "dtype 'int16' is unknown"),
        (("extract", "-t", "toy-pos", "--device", "abacus"), "device 'abacus' is unknown"),
        (("extract", "-t", "toy-pos", "--out-format", "xml"), "out format 'xml' is unknown; expected npz"),
        (("extract", "-t", "toy-pos", "--window", "9999"), "window 9999 requested; encoder bert-tiny reads 6 to 512"),
        (("extract", "-t", "toy-pos", "--out", __file__), "is a file; expected a folder, existing or new"),
        (("extract", "-t", "toy-pos", "--layers", "0-99999999999"), "layer 99999999999 requested"),
        (("extract", "-t", "hf:"), "task 'hf:' names no dataset"),
        (("extract", "--bogus"), "No such option: --bogus"),
        (("extract", "--window", "many"), "Invalid value for '--window'"),
        (("frobnicate",), "No such command 'frobnicate'"),
        (("tasks", "tpy-pos"), "task 'tpy-pos' is unknown; did you mean toy-pos"),
        (("data", "get", "pos"), "no data folder given; pass --data DIR or set CLOSERLOOK_DATA"),
        (("data", "get"), "Missing argument"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_two(capsys: Capsys, arguments: tuple[str, ...], message: str) -> None:
    assert_refused(capsys, message, *arguments)


def test_a_store_that_cannot_be_written_is_one_line(
    capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CLOSERLOOK_STORE", str(tmp_path / "file" / "store"))
    _, err = run(capsys, "extract", "-t", "toy-question", code=1)
    assert err.splitlines()[-1].startswith("closerlook: ")
    assert "Traceback" not in err


def test_tasks_says_what_is_present(capsys: Capsys, tmp_path: Path) -> None:
    found = {one["name"]: one for one in json.loads(run(capsys, "tasks", "--json")[0])}
    assert {name for name, one in found.items() if one["present"]} == {
        name for name in found if name.startswith("toy-")
    }
    assert (found["pos"]["labels"], found["pos"]["train"], found["pos"]["test"]) == (17, 16860, 4323)
    (tmp_path / "trec").mkdir()
    for file in ("train_5500.label", "TREC_10.label"):
        (tmp_path / "trec" / file).write_text("")
    table, _ = run(capsys, "tasks", "--data", tmp_path)
    row = next(line for line in table.splitlines() if "trec-50" in line)
    assert "yes" in row
    assert "noisy-PERCENT:TASK" in table
    assert "merged-4:toy-pos" in table
    whole, _ = run(capsys, "tasks", "ps-role")
    assert "streusle-4.2/train.conllulex or streusle-4.2/train.jsonl" in whole
    assert "Schneider" in whole


def test_getting_a_built_in_task_says_so(capsys: Capsys) -> None:
    assert "is built in; there is nothing to download" in run(capsys, "data", "get", "toy-pos")[1]


def test_store_commands(capsys: Capsys, own_store: Path) -> None:
    run(capsys, "extract", "-t", "toy-question", "--splits", "test")
    listed = json.loads(run(capsys, "store", "ls", "--json")[0])
    assert [(one["task"], one["d"]) for one in listed] == [("toy-question", 128)] * 3
    assert "3 files match their checksums" in run(capsys, "store", "verify")[1]
    victim = next(own_store.glob("spaces/*/*.safetensors"))
    victim.write_bytes(victim.read_bytes()[:-5])
    _, err = run(capsys, "store", "verify", code=1)
    assert err.splitlines()[-1] == "closerlook: 1 of 3 files are damaged; `closerlook store gc` removes them"
    assert "1 files would be removed" in run(capsys, "store", "gc", "--dry-run")[1]
    assert victim.exists()
    run(capsys, "store", "gc")
    assert not victim.exists()
    assert "toy-question" in run(capsys, "store", "ls")[0]
    run(capsys, "store", "gc", "--max-size", "0")
    assert json.loads(run(capsys, "store", "ls", "--json")[0]) == []


def test_vectors_on_disk_are_those_in_python(capsys: Capsys, tmp_path: Path) -> None:
    run(capsys, "extract", "-t", "toy-question", "--splits", "test", "--layers", "1", "--out", tmp_path)
    (space,) = closerlook.extract("bert-tiny", "toy-question", splits="test", layers=1)
    np.testing.assert_array_equal(np.load(tmp_path / "bert-tiny-toy-question-test-layer1.npz")["X"], space.X)

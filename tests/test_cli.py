"""The command line as a user meets it: in a process of its own."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from closerlook.representations.space import Space
from tests.cli.console import shown_on_a_terminal

RUN = [sys.executable, "-m", "closerlook"]
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "CLOSERLOOK_DATA"}


def closerlook(*arguments: str, store: Path, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """The finished command; its exit code is checked."""
    done = subprocess.run(
        [*RUN, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT | {"CLOSERLOOK_STORE": str(store), "COLUMNS": "200"} | environment,
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def own_csv(tmp_path: Path) -> Path:
    file = tmp_path / "mine.csv"
    file.write_text("utterance,mood,part\nwhat a day,good,train\noh no,bad,train\nfine,good,test\n")
    return file


@pytest.mark.parametrize(
    "level",
    [
        (),
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
def test_help_on_every_level_has_an_example(own_store: Path, level: tuple[str, ...]) -> None:
    assert f"Example: closerlook {' '.join(level)}".strip() in closerlook(*level, "--help", store=own_store).stdout


def test_help_and_import_need_no_torch_and_no_numpy() -> None:
    code = (
        "import sys, closerlook\n"
        "from closerlook.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'transformers', 'numpy', 'datasets', 'pandas'} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_a_store_hit_needs_no_torch(own_store: Path) -> None:
    code = (
        "import sys, closerlook\n"
        "closerlook.extract('bert-tiny', 'toy-question', splits='test')\n"
        "print('torch' in sys.modules)\n"
    )
    outputs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in "ab"]
    assert [done.stdout.strip() for done in outputs] == ["True", "False"]


def test_version(own_store: Path) -> None:
    assert closerlook("--version", store=own_store).stdout == "closerlook 0.1.0\n"


def test_without_arguments_help_is_shown(own_store: Path) -> None:
    assert "Usage:" in closerlook(store=own_store).stdout


@pytest.mark.parametrize("group", ["store", "data"])
def test_a_group_without_command_shows_its_help(own_store: Path, group: str) -> None:
    done = closerlook(group, store=own_store)
    assert f"Usage: closerlook {group}" in done.stdout


def test_tasks_whose_files_would_have_the_same_name_are_refused(own_store: Path, tmp_path: Path) -> None:
    for name in ("my task.csv", "my_task.csv"):
        (tmp_path / name).write_text("text,label\na day,good\n")
    files = [argument for name in ("my task.csv", "my_task.csv") for argument in ("-t", str(tmp_path / name))]
    assert "two tasks are called my_task" in closerlook("extract", *files, store=own_store, code=2).stderr


def test_extract_shows_a_table_and_says_how_it_computed(own_store: Path) -> None:
    done = closerlook("extract", "--task", "toy-question", "--splits", "test", store=own_store)
    assert "bert-tiny" in done.stdout
    assert "toy-question" in done.stdout
    assert "encoder bert-tiny: 2 layers × 128, 4.4 M parameters, " in done.stderr
    assert "float32, window 512" in done.stderr
    assert "0 of 3 spaces are in the store" in done.stderr
    again = closerlook("extract", "--task", "toy-question", "--splits", "test", store=own_store)
    assert again.stdout == done.stdout
    assert "3 of 3 spaces are in the store" in again.stderr


@pytest.mark.parametrize(
    "splits", [("--splits", "all"), ("--splits", "test,train"), ("--split", "test", "--split", "train")]
)
def test_extract_prints_one_json_object(own_store: Path, splits: tuple[str, ...]) -> None:
    done = closerlook("extract", "--task", "toy-role", "--layers", "0,2", *splits, "--json", store=own_store)
    told = json.loads(done.stdout)
    assert [(s["task"], s["split"], s["layer"], s["d"]) for s in told["spaces"]] == [
        ("toy-role", split, layer, 128) for split in ("train", "test") for layer in (0, 2)
    ]
    assert told["seconds"] > 0


@pytest.mark.parametrize(
    ("form", "name"),
    [("npz", "bert-tiny-toy-fxn-test-layer2.npz"), ("safetensors", "bert-tiny-toy-fxn-test-layer2.safetensors")],
)
def test_extract_writes_files(own_store: Path, tmp_path: Path, form: str, name: str) -> None:
    out = tmp_path / "out"
    closerlook(
        "extract",
        "-t",
        "toy-fxn",
        "--splits",
        "test",
        "--layers",
        "last",
        "--out",
        str(out),
        "--out-format",
        form,
        store=own_store,
    )
    assert [file.name for file in out.iterdir()] == [name]
    space = Space.load(out / name)
    assert (space.d, space.provenance.task, space.provenance.layer) == (128, "toy-fxn", 2)


def test_extract_writes_a_directprobe_folder_of_all_splits_and_layers(own_store: Path, tmp_path: Path) -> None:
    closerlook(
        "extract",
        "-t",
        "toy-fxn",
        "--splits",
        "all",
        "--out",
        str(tmp_path),
        "--out-format",
        "directprobe",
        store=own_store,
    )
    for split in ("train", "test"):
        for layer in range(3):
            space = Space.load(tmp_path / "bert-tiny-toy-fxn", split=split, layer=layer)
            assert (space.provenance.split, space.provenance.layer) == (split, layer)


def test_a_users_own_csv_needs_no_python(own_store: Path, own_csv: Path) -> None:
    options = ("--text", "utterance", "--label", "mood", "--split-column", "part", "--name", "moods", "--splits", "all")
    told = json.loads(closerlook("extract", "-t", str(own_csv), *options, "--json", store=own_store).stdout)
    found = [(s["task"], s["split"], s["layer"], s["n"], s["labels"], s["pool"]) for s in told["spaces"]]
    assert found[::3] == [
        ("moods", "train", 0, 2, ["bad", "good"], "cls"),
        ("moods", "test", 0, 1, ["bad", "good"], "cls"),
    ]


def test_vectors_of_other_weights_are_not_written_over(own_store: Path, tmp_path: Path) -> None:
    asked = ("extract", "-t", "toy-question", "--splits", "test", "--layers", "last", "--out", str(tmp_path))
    closerlook(*asked, store=own_store)
    (file,) = tmp_path.iterdir()
    before = file.read_bytes()
    closerlook(*asked, store=own_store)
    done = closerlook(*asked, "--pool", "mean", store=own_store, code=2)
    assert f"{file} exists, and its vectors differ from the new ones in pool; choose another folder" in done.stderr
    assert file.read_bytes() == before


def test_a_users_own_columns_may_have_any_name(own_store: Path, tmp_path: Path) -> None:
    stream = io.StringIO()
    csv.writer(stream, delimiter="\t").writerows([["toks", "gold"], ["light rain", "ADJ NOUN"]])
    (tmp_path / "t.tsv").write_text(stream.getvalue())
    options = ("--words", "toks", "--label", "gold", "--layers", "last", "--json")
    told = json.loads(closerlook("extract", "-t", str(tmp_path / "t.tsv"), *options, store=own_store).stdout)
    assert (told["spaces"][0]["n"], told["spaces"][0]["pool"]) == (2, "mean")


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
def test_bad_input_is_one_line_and_exit_code_two(own_store: Path, arguments: tuple[str, ...], message: str) -> None:
    done = closerlook(*arguments, store=own_store, code=2)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("closerlook: ")
    assert message in done.stderr


def test_failed_work_is_one_line_and_exit_code_one(own_store: Path, tmp_path: Path) -> None:
    done = closerlook(
        "data", "get", "trec-50", "--data", str(tmp_path), "--mirror", "http://127.0.0.1:9", store=own_store, code=1
    )
    assert done.stderr.count("\n") == 1
    assert (
        f"save https://cogcomp.seas.upenn.edu/Data/QA/QC/train_5500.label as {tmp_path}/trec/train_5500.label"
        in done.stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_an_unexpected_error_is_still_one_line(own_store: Path) -> None:
    code = (
        "from closerlook import cli; import closerlook.tasks as t\n"
        "def broken(*a, **k): raise ZeroDivisionError('boom')\n"
        "t.load_task = broken\n"
        "cli.main(['extract', '-t', 'toy-pos'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "closerlook: unexpected ZeroDivisionError: boom; run again with --debug to see where\n"


def test_interrupting_is_exit_code_130_and_one_line(own_store: Path, tmp_path: Path) -> None:
    listening = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a job in the background does not
    )
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", f"{listening}; from closerlook.cli import main; main()"),
            *("extract", "-t", "toy-pos", "-t", "toy-dep", "--batch-tokens", "1"),
        ],
        env=ENVIRONMENT | {"CLOSERLOOK_STORE": str(own_store)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(own_store.glob("work/*/*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == "closerlook: interrupted; run the same command again to continue where it stopped"
    assert "Traceback" not in stderr


def test_a_reader_that_stops_early_is_no_error(own_store: Path) -> None:
    command = f"{sys.executable} -m closerlook tasks | head -1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert "Error" not in done.stderr
    assert "closerlook:" not in done.stderr


def test_a_store_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = closerlook("extract", "-t", "toy-question", store=tmp_path / "file" / "store", code=1)
    assert done.stderr.splitlines()[-1].startswith("closerlook: ")
    assert "Traceback" not in done.stderr


def test_progress_is_a_bar_on_a_terminal(own_store: Path) -> None:
    command = [*RUN, "extract", "-t", "toy-pos", "--batch-tokens", "256"]
    shown = shown_on_a_terminal(command, ENVIRONMENT | {"CLOSERLOOK_STORE": str(own_store)})
    assert "extracting examples" in shown
    assert "left" in shown


def test_tasks_says_what_is_present(own_store: Path, tmp_path: Path) -> None:
    told = {one["name"]: one for one in json.loads(closerlook("tasks", "--json", store=own_store).stdout)}
    assert {name for name, one in told.items() if one["present"]} == {name for name in told if name.startswith("toy-")}
    assert (told["pos"]["labels"], told["pos"]["train"], told["pos"]["test"]) == (17, 16860, 4323)
    (tmp_path / "trec").mkdir()
    for file in ("train_5500.label", "TREC_10.label"):
        (tmp_path / "trec" / file).write_text("")
    table = closerlook("tasks", "--data", str(tmp_path), store=own_store).stdout
    row = next(line for line in table.splitlines() if "trec-50" in line)
    assert "yes" in row
    assert "noisy-PERCENT:TASK" in table
    assert "merged-4:toy-pos" in table
    whole = closerlook("tasks", "ps-role", store=own_store).stdout
    assert "streusle-4.2/train.conllulex or streusle-4.2/train.jsonl" in whole
    assert "Schneider" in whole


def test_getting_a_built_in_task_says_so(own_store: Path) -> None:
    assert "is built in; there is nothing to download" in closerlook("data", "get", "toy-pos", store=own_store).stderr


def test_store_commands(own_store: Path) -> None:
    closerlook("extract", "-t", "toy-question", "--splits", "test", store=own_store)
    listed = json.loads(closerlook("store", "ls", "--json", store=own_store).stdout)
    assert [(one["task"], one["d"]) for one in listed] == [("toy-question", 128)] * 3
    assert "3 files match their checksums" in closerlook("store", "verify", store=own_store).stderr
    victim = next(own_store.glob("spaces/*/*.safetensors"))
    victim.write_bytes(victim.read_bytes()[:-5])
    done = closerlook("store", "verify", store=own_store, code=1)
    assert done.stderr.splitlines()[-1] == "closerlook: 1 of 3 files are damaged; `closerlook store gc` removes them"
    assert "1 files would be removed" in closerlook("store", "gc", "--dry-run", store=own_store).stderr
    assert victim.exists()
    closerlook("store", "gc", store=own_store)
    assert not victim.exists()
    assert "toy-question" in closerlook("store", "ls", store=own_store).stdout
    closerlook("store", "gc", "--max-size", "0", store=own_store)
    assert json.loads(closerlook("store", "ls", "--json", store=own_store).stdout) == []


def test_vectors_on_disk_are_those_in_python(own_store: Path, tmp_path: Path) -> None:
    closerlook(
        "extract", "-t", "toy-question", "--splits", "test", "--layers", "1", "--out", str(tmp_path), store=own_store
    )
    import closerlook as library

    (space,) = library.extract("bert-tiny", "toy-question", splits="test", layers=1)
    np.testing.assert_array_equal(np.load(tmp_path / "bert-tiny-toy-question-test-layer1.npz")["X"], space.X)

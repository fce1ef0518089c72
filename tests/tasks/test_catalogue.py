"""The catalogue: every predefined task is described, is read from a data folder, and has the counts of the paper."""

import csv
import os
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from closerlook.errors import InputError
from closerlook.tasks import catalogue
from closerlook.tasks.catalogue import CATALOGUE, Corpus, Entry, find_task, is_present, list_tasks, load_catalogue_task
from closerlook.tasks.readers import FORMATS, Options

DATA = Path(os.environ.get("CLOSERLOOK_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
PAPER = DATA.parent / "paper" / "tasks.csv"
EMBEDDED = Path(catalogue.__file__).parent / "embedded"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no corpora: name their folder with CLOSERLOOK_DATA")
needs_paper = pytest.mark.skipif(not PAPER.is_file(), reason="no paper/tasks.csv next to the corpora")
needs_embedded = pytest.mark.skipif(not (EMBEDDED / "train.conllu").is_file(), reason="no embedded sentences yet")

RAIN = "1\tIt\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\trains\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """A task 'rain' with its files in tmp_path; its test split may be .conllu or .jsonl."""
    files = {"train": ("rain/train.conllu",), "test": ("rain/test.conllu", "rain/test.jsonl")}
    corpus = Corpus("Rain 1.0", "https://rain.example", "MIT", "@misc{rain}", files)
    entry = Entry("rain", "token", "part of speech", corpus, Options(label="upos"), 2, 4, 2)
    monkeypatch.setitem(catalogue.CATALOGUE, "rain", entry)
    monkeypatch.delenv("CLOSERLOOK_DATA", raising=False)
    (tmp_path / "rain").mkdir()
    (tmp_path / "rain" / "train.conllu").write_text(RAIN * 2)
    (tmp_path / "rain" / "test.conllu").write_text(RAIN)
    return entry


def test_every_name_of_the_paper_and_its_small_twins_are_listed() -> None:
    names = [entry.name for entry in list_tasks()]
    assert names[:6] == ["pos", "dep", "ps-role", "ps-fxn", "trec-50", "partut-pos"]
    assert names[6:] == ["toy-pos", "toy-dep", "toy-role", "toy-fxn", "toy-question"]


@pytest.mark.parametrize("entry", list_tasks(), ids=lambda entry: entry.name)
def test_every_entry_is_described_in_full(entry: Entry) -> None:
    corpus = entry.corpus
    assert all([entry.title, corpus.name, corpus.licence])
    assert corpus.url.startswith("https://")
    assert corpus.citation.startswith("@")
    assert corpus.citation.count("{") == corpus.citation.count("}")
    assert {"train", "test"} <= set(corpus.files)
    files = [file for alternatives in corpus.files.values() for file in alternatives]
    assert all(any(file.endswith(known.suffixes) for known in FORMATS.values()) for file in files)
    assert corpus.embedded or {target for remote in corpus.remotes for target in remote.targets} <= set(files)


def test_entries_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        CATALOGUE["pos"].name = "other"  # type: ignore[misc]


@needs_data
@pytest.mark.parametrize("entry", [entry for entry in list_tasks() if not entry.corpus.embedded], ids=lambda e: e.name)
def test_every_corpus_has_its_counts(entry: Entry) -> None:
    assert is_present(entry, DATA)
    task = load_catalogue_task(entry.name, DATA)
    assert (task.name, task.unit) == (entry.name, entry.unit)
    counts = (len(task.labels), len(task.split("train")), len(task.split("test")))
    assert counts == (entry.labels, entry.train, entry.test)
    assert [split.name for split in task.splits] == list(entry.corpus.files)


@needs_paper
def test_counts_are_those_of_the_paper() -> None:
    with PAPER.open(newline="") as file:
        rows = {row["task"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"pos", "dep", "ps-role", "ps-fxn", "trec-50"}
    for name, row in rows.items():
        entry = CATALOGUE[name]
        expected = (int(row["labels"]), int(row["train_examples"]), int(row["test_examples"]))
        assert (entry.labels, entry.train, entry.test) == expected


@needs_data
def test_alternatives_give_the_same_task(tmp_path: Path) -> None:
    (tmp_path / "streusle-4.2").mkdir()
    for split in ("train", "test"):
        (tmp_path / "streusle-4.2" / f"{split}.jsonl").symlink_to(DATA / "streusle-4.2" / f"{split}.jsonl")
    assert load_catalogue_task("ps-role", tmp_path) == load_catalogue_task("ps-role", DATA)


@needs_embedded
@pytest.mark.parametrize("entry", [entry for entry in list_tasks() if entry.corpus.embedded], ids=lambda e: e.name)
def test_built_in_tasks_need_no_folder(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOSERLOOK_DATA", raising=False)
    assert is_present(entry)
    assert load_catalogue_task(entry.name).unit == entry.unit


def test_the_data_folder_is_the_argument_else_the_environment(
    made_up: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_present(made_up)
    assert load_catalogue_task("rain", tmp_path).labels == ("PRON", "VERB")
    monkeypatch.setenv("CLOSERLOOK_DATA", str(tmp_path))
    assert is_present(made_up)
    assert load_catalogue_task("rain") == load_catalogue_task("rain", tmp_path)
    assert not is_present(made_up, tmp_path / "rain")


def test_the_first_alternative_that_exists_is_read(made_up: Entry, tmp_path: Path) -> None:
    record = '{"words": ["It", "rains"], "upos": ["PRON", "VERB"]}'
    (tmp_path / "rain" / "test.jsonl").write_text(record.replace("It", "He"))
    assert load_catalogue_task("rain", tmp_path).split("test").texts == (("It", "rains"),)
    (tmp_path / "rain" / "test.conllu").unlink()
    assert load_catalogue_task("rain", tmp_path).split("test").texts == (("He", "rains"),)


def test_a_data_folder_that_cannot_be_looked_into_holds_nothing(made_up: Entry) -> None:
    assert not is_present(made_up, "d" * 5000)
    with pytest.raises(InputError, match=r"^task rain: no d+/rain/train\.conllu; expected Rain 1\.0 there"):
        load_catalogue_task("rain", "d" * 5000)


def test_no_data_folder_is_refused(made_up: Entry) -> None:
    with pytest.raises(
        InputError,
        match=r"^task rain needs Rain 1\.0; name the data folder with data= \(--data on the command line\) or "
        r"CLOSERLOOK_DATA; `closerlook data get rain --data FOLDER` downloads the corpus$",
    ):
        load_catalogue_task("rain")


def test_a_missing_file_is_refused_with_what_belongs_there(made_up: Entry, tmp_path: Path) -> None:
    path = tmp_path / "rain" / "test.conllu"
    path.unlink()
    with pytest.raises(
        InputError, match=rf"^task rain: no {path}; expected Rain 1\.0 there \(https://rain\.example\)$"
    ):
        load_catalogue_task("rain", tmp_path)


def test_another_release_is_refused_with_both_counts(
    made_up: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rain" / "train.conllu").write_text(RAIN * 3)
    message = rf"^task rain: train 6 \(expected 4\); {tmp_path / 'rain'} contains a different release than Rain 1\.0$"
    with pytest.raises(InputError, match=message):
        load_catalogue_task("rain", tmp_path)
    monkeypatch.setitem(catalogue.CATALOGUE, "rain", replace(made_up, labels=3, train=None, test=1))
    with pytest.raises(InputError, match=r"labels 2 \(expected 3\), test 2 \(expected 1\);"):
        load_catalogue_task("rain", tmp_path)


def test_an_unknown_name_is_refused_with_close_ones() -> None:
    with pytest.raises(InputError, match=r"^task 'ps-rolle' is unknown; did you mean ps-role or .*\?$"):
        find_task("ps-rolle")
    with pytest.raises(InputError, match=r"^task 'zzzz' is unknown; expected one of pos, dep, ps-role"):
        load_catalogue_task("zzzz")
    with pytest.raises(InputError, match="is unknown; expected one of"):
        load_catalogue_task("z" * 5000)


def test_a_path_is_not_a_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"but a file or folder of that name exists: use read_task\('/.*'\)$"):
        load_catalogue_task(str(tmp_path))

"""The page about trainings that a user already has: every command on it runs, on real output of a Trainer."""

import csv
import functools
import logging
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import closerlook.report
from closerlook.encoders.source import resolve
from closerlook.study.plan import PRESETS, read_plan
from closerlook.study.results import load_results
from closerlook.tasks import load_task
from closerlook.texts import joined
from closerlook.tuning.existing import read_run
from tests.cli.console import run
from tests.threads import one_torch_thread
from tests.tuning.trainings import train

PAGE = (Path(__file__).parents[2] / "docs" / "your-training.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([^`\n]+)`:\n\n```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = [
    line.removeprefix("closerlook ")
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
(PYTHON,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
HUB = {"step0": "bert-tiny", "step1000": "out/checkpoint-2", "step2000": "out/checkpoint-6"}

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page names: questions, plans, a Trainer's output, adapters, a hub cache."""
    folder = tmp_path_factory.mktemp("trainings")
    for name, content in FILES.items():
        (folder / name).write_text(content, encoding="utf-8")
    write_questions(folder / "questions.csv")
    with one_torch_thread():
        train(folder / "out", str(folder / "questions.csv"))
        train(folder / "adapters", str(folder / "questions.csv"), lora=4)
    write_hub_cache(folder)
    return folder


def write_questions(file: Path) -> None:
    """Questions of the embedded corpus with three coarse labels, 48 for training and 24 for testing."""
    task = load_task("toy-question")
    rows = []
    for split, n in (("train", 48), ("test", 24)):
        part = task.split(split)
        labels = [task.labels[code].partition(":")[0] for code in part.y]
        kept = sorted(set(labels), key=labels.count)[-3:]
        texts = [joined(part.texts[at]) for at in part.sentence]
        chosen = [(text, label, split) for text, label in zip(texts, labels, strict=True) if label in kept]
        rows += chosen[:n]
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("text", "label", "split"), *rows])


def write_hub_cache(folder: Path) -> None:
    """A local cache of the Hugging Face hub in `folder/hub`, with three revisions of owner/encoder."""
    home = folder / "hub" / "models--owner--encoder"
    (home / "refs").mkdir(parents=True)
    for number, (revision, source) in enumerate(HUB.items()):
        commit = f"{number:040x}"
        found = resolve(source).folder if source == "bert-tiny" else folder / source
        shutil.copytree(found, home / "snapshots" / commit)
        (home / "refs" / revision).write_text(commit)


@pytest.fixture
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder as working folder; the hub cannot be reached, only its cache; figures are not written as files."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder / "hub"))
    monkeypatch.setenv("CLOSERLOOK_STORE", str(folder / "store"))
    quick = functools.partial(closerlook.report.write_report, figures=False)
    monkeypatch.setattr(closerlook.report, "write_report", quick)
    logging.getLogger("closerlook").handlers.clear()
    with one_torch_thread():
        yield folder


def words(command: str) -> list[str]:
    """The words of a command of the page; studies run in this process."""
    more = ["--engine", "here"] if command.startswith("study") else []
    return [*shlex.split(command), *more]


@pytest.mark.parametrize("command", [command for command in COMMANDS if not command.startswith("study")])
def test_every_command_that_is_no_study_runs(there: Path, command: str, capsys: Capsys) -> None:
    out, _ = run(capsys, *words(command))
    if command.startswith("diff"):
        assert "Probe accuracy" in out
        page = re.search(r"--page (\S+)", command)
        name = None if "--no-page" in command else page[1] if page else "diff.html"
        assert name is None or "Examples that moved most" in (there / name).read_text(encoding="utf-8")
    assert "out/checkpoint-6" not in command or "checkpoint-6" in out


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("study")])
def test_every_study_runs_and_has_a_page(there: Path, command: str, capsys: Capsys) -> None:
    if "--run tuned" in command and not (there / "tuned").exists():
        run(capsys, *words(next(other for other in COMMANDS if other.startswith("tune"))))
    run(capsys, *words(command))
    match = re.search(r"--out (\S+)", command)
    assert match is not None
    if "--dry-run" in command:
        assert not (there / match[1]).exists()
        return
    assert "questions" in (there / match[1] / "report.html").read_text(encoding="utf-8")
    table = load_results(there / match[1])
    assert table.is_final.any()
    if "pretraining" in command:
        assert sorted(set(table.step)) == [0, 1000, 2000]


def test_revisions_on_the_hub_are_the_checkpoints_of_a_run(there: Path) -> None:
    found = read_run("owner/encoder@step1000, owner/encoder@step2000", "owner/encoder@step0")
    assert [checkpoint.step for checkpoint in found.checkpoints] == [1000, 2000]
    assert [checkpoint.source.revision for checkpoint in found.checkpoints] == ["step1000", "step2000"]
    expected = [resolve(str(there / HUB[name])).fingerprint for name in ("step1000", "step2000")]
    assert [checkpoint.source.fingerprint for checkpoint in found.checkpoints] == expected
    assert found.base.source.fingerprint == resolve("bert-tiny").fingerprint


def test_the_python_of_the_page_runs(there: Path, capsys: Capsys) -> None:
    exec(compile(PYTHON, "docs/your-training.md", "exec"), {})  # noqa: S102 - the code of our own page
    assert "Probe accuracy" in capsys.readouterr().out
    assert os.path.getsize(there / "diff.html") > 100_000


def test_the_plans_of_the_page_are_valid_and_the_preset_is_on_it(there: Path) -> None:
    assert [read_plan(name).name for name in FILES] == ["mine", "methods"]
    assert "lora-vs-full" in PRESETS
    assert "study lora-vs-full" in PAGE
